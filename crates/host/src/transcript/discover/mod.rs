//! Which transcripts there are on this machine, and which one is most likely meant.

mod layout;
mod processes;
mod rollouts;
#[cfg(test)]
#[cfg(unix)]
mod tests;

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use holdfast_core::limits;
use holdfast_core::transcript::discovery::{Candidate, Origin, best, session};

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

/// The transcripts of interactive sessions, the one most likely meant first; at most [`limits::DISCOVERY_FOUND`]. What cannot be
/// read is passed over.
pub async fn discover(homes: Homes, wanted: Wanted) -> Vec<Found> {
    tokio::task::spawn_blocking(move || look(&homes, &wanted)).await.unwrap_or_default()
}

/// Something that was found, and what decides about it.
struct Sight {
    found: Found,
    candidate: Candidate,
}

fn look(homes: &Homes, wanted: &Wanted) -> Vec<Found> {
    let wish = Wish::new(wanted);
    let mut sights = Vec::new();
    for (agent, home) in [(Agent::Claude, &homes.claude), (Agent::Generic, &homes.generic)] {
        if let Some(home) = home {
            sights.extend(layout::look(agent, home, &wish));
        }
    }
    if let Some(home) = &homes.codex {
        sights.extend(rollouts::look(home, &wish));
    }
    let (mut candidates, mut found): (Vec<_>, Vec<_>) = sights.into_iter().map(|s| (s.candidate, s.found)).unzip();
    let mut ordered = Vec::new();
    while ordered.len() < limits::DISCOVERY_FOUND
        && let Some(at) = best(&candidates)
    {
        candidates.swap_remove(at);
        ordered.push(found.swap_remove(at));
    }
    ordered
}

/// What is wanted, ready to compare with.
struct Wish {
    /// The project as it was named, and as it is named without links.
    project: Option<[PathBuf; 2]>,
    session: Option<String>,
    /// The processes above the one that asks, and that one.
    above: Vec<u32>,
}

impl Wish {
    fn new(wanted: &Wanted) -> Wish {
        let project = wanted.project.clone().map(|project| [real(&project), project]);
        // It becomes the name of a file.
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let session = wanted.session.clone().map(|s| if s.chars().all(plain) { s } else { String::new() });
        let above = wanted.asker.map(processes::above).unwrap_or_default();
        Wish { project, session, above }
    }

    fn is_here(&self, cwd: &str) -> bool {
        let cwd = Path::new(cwd);
        self.project.as_ref().is_none_or(|[real_one, named]| cwd == named || real(cwd) == *real_one)
    }

    /// Whether a session is wanted: that very one, or one with a person before it in the project.
    fn admits(&self, session: &str, cwd: Option<&str>, interactive: bool) -> bool {
        cwd.is_none_or(|cwd| self.is_here(cwd))
            && self.session.as_deref().map_or(interactive, |wanted| wanted == session)
    }
}

fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf())
}

/// A file and when it was last written.
struct Aged {
    path: PathBuf,
    modified: u64,
}

/// The files of a folder whose names are right, the newest first. Follows no link.
fn newest(folder: &Path, right: impl Fn(&str) -> bool) -> Vec<Aged> {
    let names = fs::read_dir(folder).into_iter().flatten().flatten().take(limits::DISCOVERY_NAMES);
    let right = names.filter(|entry| entry.file_name().to_str().is_some_and(&right));
    let mut files: Vec<Aged> = right.filter_map(|entry| age(entry.path())).collect();
    files.sort_unstable_by(|a, b| b.modified.cmp(&a.modified).then_with(|| a.path.cmp(&b.path)));
    files
}

fn age(path: PathBuf) -> Option<Aged> {
    let meta = fs::symlink_metadata(&path).ok().filter(fs::Metadata::is_file)?;
    let modified = meta.modified().ok()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    Some(Aged { path, modified: u64::try_from(modified.as_millis()).unwrap_or(u64::MAX) })
}

/// What the beginning of a transcript says of its session.
fn origin(path: &Path) -> Option<Origin> {
    first(path, Origin::read)
}

/// What the first line that says it says.
fn first<T>(path: &Path, read: impl Fn(&[u8]) -> Option<T>) -> Option<T> {
    let mut head = BufReader::new(File::open(path).ok()?.take(limits::DISCOVERY_HEAD));
    let mut line = Vec::new();
    while head.read_until(b'\n', &mut line).ok()? > 0 {
        if let Some(found) = read(&line) {
            return Some(found);
        }
        line.clear();
    }
    None
}

/// The session that writes a transcript: that of its last lines, or of its beginning where those name none.
pub(super) fn writer(path: &Path) -> Option<String> {
    let mut file = File::open(path).ok()?;
    let end = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(end.saturating_sub(limits::TRANSCRIPT_BACK as u64))).ok()?;
    let mut last = Vec::new();
    file.by_ref().take(limits::TRANSCRIPT_BACK as u64).read_to_end(&mut last).ok()?;
    last.split(|byte| *byte == b'\n').rev().find_map(session).or_else(|| first(path, session))
}
