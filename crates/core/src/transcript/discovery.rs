//! Which transcript is most likely meant, of those that were found.

use std::cmp::Reverse;

use serde::Deserialize;
use serde_json::Value;

use super::is_session;
use super::line::text;
use crate::limits;

/// A running agent's note about itself: `<home>/sessions/<pid>.json`, of Claude Code or the generic kind.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionRecord {
    /// Of the agent. The generic kind has it in the file's name only.
    pub pid: Option<u32>,
    /// Its session: the name of its transcript.
    pub session_id: String,
    /// Where it works.
    pub cwd: Option<String>,
    /// Its transcript, if it says so.
    pub transcript_path: Option<String>,
    /// Milliseconds since 1970.
    pub started_at: Option<u64>,
    /// Milliseconds since 1970.
    pub updated_at: Option<u64>,
    kind: Option<String>,
    entrypoint: Option<String>,
}

impl SessionRecord {
    /// Reads one; nothing, if it is none.
    pub fn read(bytes: &[u8]) -> Option<SessionRecord> {
        serde_json::from_slice(bytes).ok().filter(|record: &SessionRecord| is_session(&record.session_id))
    }

    /// A person sits before it.
    pub fn is_interactive(&self) -> bool {
        match self.kind.as_deref() {
            Some(kind) => kind == "interactive",
            None => self.entrypoint.as_deref() == Some("cli"),
        }
    }
}

/// What a transcript says of the session that writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The session.
    pub session: String,
    /// Where it works.
    pub cwd: String,
    /// A person sits before it: neither a script nor another agent began it.
    pub interactive: bool,
}

impl Origin {
    /// Reads it from the first line of a Codex rollout, or from one of the first lines of a Claude Code or generic transcript;
    /// nothing, if the line does not say so much.
    pub fn read(line: &[u8]) -> Option<Origin> {
        let line: Value = serde_json::from_slice(line).ok()?;
        if text(&line, "type") == Some("session_meta") {
            let meta = line.get("payload")?;
            return Some(Origin {
                session: text(meta, "id").filter(|id| is_session(id))?.to_owned(),
                cwd: text(meta, "cwd")?.to_owned(),
                interactive: matches!(text(meta, "source"), Some("cli" | "vscode")),
            });
        }
        let of_agent = line.get("isSidechain").and_then(Value::as_bool) == Some(true);
        let of_script = text(&line, "entrypoint").is_some_and(|from| from.starts_with("sdk"));
        Some(Origin {
            session: text(&line, "sessionId").filter(|id| is_session(id))?.to_owned(),
            cwd: text(&line, "cwd")?.to_owned(),
            interactive: !of_agent && !of_script,
        })
    }
}

/// The session that wrote a line of a transcript, if the line says so and no agent that another one started wrote it.
pub fn session(line: &[u8]) -> Option<String> {
    let line: Value = serde_json::from_slice(line).ok()?;
    let named = match text(&line, "type") {
        Some("session_meta") => text(line.get("payload")?, "id"),
        _ if line.get("isSidechain").and_then(Value::as_bool) == Some(true) => None,
        _ => text(&line, "sessionId"),
    };
    named.filter(|id| is_session(id)).map(str::to_owned)
}

/// The names that agents give the folder of a project's transcripts: Claude Code's, and the generic one.
pub fn slugs(cwd: &str) -> [String; 2] {
    let generic = match cwd.split_at_checked(2) {
        Some((drive, rest)) if drive.ends_with(':') => format!("{}-{rest}", &drive[..1]),
        _ => cwd.to_owned(),
    };
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    [cwd.chars().map(plain).collect(), generic.replace(['/', '\\'], "-")]
}

/// The process a record names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Process {
    /// There is none.
    Gone,
    /// There is one, and it began then, in milliseconds since 1970, if that is known.
    Runs(Option<u64>),
}

/// A record that names a transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// Who is said to write it.
    pub pid: u32,
    /// Whether there is such a process.
    pub process: Process,
    /// When the record was last written, by its own word or the file's; milliseconds since 1970.
    pub written: u64,
    /// When the session began, in milliseconds since 1970.
    pub started: u64,
    /// The session runs above whoever asks, in the tree of processes.
    pub above: bool,
}

/// A transcript that could be meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Its path.
    pub path: String,
    /// When it was last written, in milliseconds since 1970; nothing, if there is no file yet.
    pub modified: Option<u64>,
    /// It belongs to the project that was asked for.
    pub here: bool,
    /// The record that names it, if one does.
    pub claim: Option<Claim>,
}

impl Candidate {
    /// The process that wrote the record still runs. One that began after the record was written is another one with the
    /// same number.
    pub fn is_live(&self) -> bool {
        let skew = u64::try_from(limits::DISCOVERY_SKEW.as_millis()).unwrap_or(u64::MAX);
        match self.claim {
            Some(Claim { process: Process::Runs(Some(began)), written, .. }) => began <= written.saturating_add(skew),
            Some(Claim { process: Process::Runs(None), .. }) => true,
            _ => false,
        }
    }

    fn is_above(&self) -> bool {
        self.claim.is_some_and(|claim| claim.above)
    }

    fn affinity(&self) -> u8 {
        match (self.is_live(), self.here) {
            (true, true) => 4,
            (true, false) if self.is_above() && self.modified.is_some() => 3,
            (true, false) => 2,
            (false, true) => 1,
            (false, false) => 0,
        }
    }

    /// What decides where nothing else does; the greatest wins.
    fn rank(&self) -> impl Ord {
        let claim = self.claim.map(|claim| (claim.written, claim.started, claim.pid));
        (self.affinity(), self.modified.is_some(), self.modified, claim, Reverse(self.path.clone()))
    }
}

/// The index of the one that is most likely meant: that of a living session above, else of a living session, here before
/// elsewhere; else, of those written last, one of this project before others.
pub fn best(candidates: &[Candidate]) -> Option<usize> {
    let live = candidates.iter().any(Candidate::is_live);
    let above = candidates.iter().any(|c| c.is_live() && c.is_above());
    let newest = candidates.iter().filter_map(|c| c.modified).max();
    let fresh = u64::try_from(limits::DISCOVERY_FRESH.as_millis()).unwrap_or(u64::MAX);
    let admitted = |c: &Candidate| {
        if live {
            c.is_live() && (!above || c.is_above())
        } else {
            newest.is_none_or(|newest| c.modified.is_some_and(|at| at.saturating_add(fresh) > newest))
        }
    };
    (0..candidates.len()).filter(|at| admitted(&candidates[*at])).max_by_key(|at| candidates[*at].rank())
}
