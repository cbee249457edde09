//! Which transcripts there are on this machine, and which one is most likely meant.

use std::path::PathBuf;
use std::sync::Arc;

/// Which agent writes a transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agent {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// One that writes the generic format.
    Generic,
}

impl Agent {
    /// Its name, for people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Agent::Claude => "Claude Code",
            Agent::Codex => "Codex",
            Agent::Generic => "generic",
        }
    }
}

/// Where agents keep their transcripts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Homes {
    /// Claude Code's: `CLAUDE_CONFIG_DIR`, else `~/.claude`.
    pub claude: Option<PathBuf>,
    /// Codex's: `CODEX_HOME`, else `~/.codex`.
    pub codex: Option<PathBuf>,
    /// That of an agent of the generic kind, if one is used.
    pub generic: Option<PathBuf>,
}

impl Homes {
    /// Those of this user.
    pub fn here() -> Homes {
        let home = |variable: &str, otherwise: &str| {
            let named = std::env::var_os(variable).filter(|named| !named.is_empty()).map(PathBuf::from);
            named.or_else(|| Some(dirs::home_dir()?.join(otherwise)))
        };
        Homes { claude: home("CLAUDE_CONFIG_DIR", ".claude"), codex: home("CODEX_HOME", ".codex"), generic: None }
    }
}

/// Which transcripts are wanted; by default all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wanted {
    /// Only of agents that work in this folder.
    pub project: Option<PathBuf>,
    /// Only of this session.
    pub session: Option<String>,
    /// A session that runs above this process is meant before all others.
    pub asker: Option<u32>,
}

/// A transcript that could be meant, as a person sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its path, as [`super::real_path`] gives it.
    pub path: Arc<str>,
    /// Who writes it.
    pub agent: Agent,
    /// Its session, where that is known.
    pub session: Option<String>,
    /// The folder the agent works in, where that is known.
    pub project: Option<String>,
    /// The agent still runs, as far as can be told; Codex says nothing of that.
    pub live: bool,
    /// When it was last written, in milliseconds since 1970; nothing, if there is no file yet.
    pub modified: Option<u64>,
}

/// The transcripts of interactive sessions, the one most likely meant first.
pub async fn discover(homes: Homes, wanted: Wanted) -> Vec<Found> {
    let _ = (homes, wanted);
    Vec::new()
}
