//! The git program in one project, for steps that change it or talk to a remote.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use holdfast_core::code::Code;
use holdfast_core::limits;
use holdfast_core::line::one_line;
use holdfast_core::operation::Failure;
use holdfast_core::policy::ExecMode;
use holdfast_core::redact::redact;
use parking_lot::Mutex;

use super::again::{Broken, Tries};
use super::download::blocking;
use super::locks::{self, Note, Place};
use crate::exec::git::{self, Git, Output};

/// Longest piece of git's own words in an error.
const SAID: usize = 200;

/// Settings of a repository that name programs which no option of a command turns off without changing what is stored.
const PROGRAMS: &str = r"^(filter\..*\.(clean|smudge|process)|credential\.(.*\.)?helper|core\.alternaterefscommand)$";

/// What a step that talks begins with: it starts no work that outlives it, and a silent peer ends it.
const TALKING: &[&str] = &["-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "http.lowSpeedLimit=1", "-c"];

/// Projects in which an operation works now: one at a time.
#[derive(Debug, Clone)]
pub(super) struct AtWork {
    projects: Arc<Mutex<HashSet<PathBuf>>>,
    /// Where it is noted in which.
    notes: PathBuf,
    /// When this began.
    born: SystemTime,
}

/// The place in one project; given back when dropped.
struct Turn {
    all: AtWork,
    project: PathBuf,
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.all.projects.lock().remove(&self.project);
    }
}

impl AtWork {
    pub(super) fn new(notes: PathBuf) -> AtWork {
        AtWork { projects: Arc::default(), notes, born: SystemTime::now() }
    }

    fn take(&self, project: PathBuf) -> Result<Turn, Failure> {
        match self.projects.lock().insert(project.clone()) {
            true => Ok(Turn { all: self.clone(), project }),
            false => Err(Failure::nothing_done(Code::Busy, "another operation works in this project")),
        }
    }
}

/// A project that may be worked in.
pub(super) struct Tree<'a> {
    git: Git<'a>,
    // In this order: what is left locked is seen to before the next one has its turn.
    _note: Option<Note>,
    _turn: Turn,
}

impl<'a> Tree<'a> {
    /// Opens the project whose working tree is `git.folder`.
    pub(super) async fn open(git: Git<'a>, at_work: &AtWork) -> Result<Tree<'a>, Failure> {
        if git.policy.exec_mode < ExecMode::Direct || !git.policy.allow_write {
            return Err(Failure::new(Code::PolicyDenied, "the policy of this device does not allow running git"));
        }
        if !git::exists() {
            return Err(Failure::new(Code::Unavailable, "there is no git program on this machine"));
        }
        let mut tree = Tree { git, _note: None, _turn: at_work.take(git.folder.to_path_buf())? };
        let asked = ["rev-parse", "--show-toplevel", "--absolute-git-dir", "--git-common-dir"];
        let told = tree.must(&asked, Code::ExecutionFailed).await?;
        let mut told = told.lines().map(|line| git.folder.join(line));
        let (Some(top), Some(own), Some(shared)) = (told.next(), told.next(), told.next()) else {
            return Err(Failure::new(Code::ExecutionFailed, "git does not say where it keeps the project"));
        };
        // Its configuration may name another place.
        if top.canonicalize().ok().as_deref() != Some(git.folder) {
            return Err(Failure::new(Code::PathBoundary, "the project's working tree lies elsewhere"));
        }
        let place = Place { project: git.folder.to_path_buf(), own, shared };
        let (notes, born) = (at_work.notes.clone(), at_work.born);
        tree._note = Some(blocking(move || Note::put(&notes, place, born)).await?);
        match git.own_keys(PROGRAMS).await?.first() {
            None => Ok(tree),
            Some(key) => {
                let key = one_line(key, SAID);
                let why = format!("its own configuration names a program ({key}), which Holdfast does not run");
                Err(Failure::new(Code::PolicyDenied, why))
            }
        }
    }

    /// Runs git; the first line it writes, or nothing if it said no.
    pub(super) async fn ask(&self, arguments: &[&str]) -> Result<Option<String>, Failure> {
        let output = self.git.run(arguments, &[], limits::RESULT_PREVIEW).await?;
        let text = String::from_utf8_lossy(&output.bytes);
        Ok(output.status.success().then(|| text.trim_end().to_owned()))
    }

    /// Runs git; `code` and what it said, if it said no.
    pub(super) async fn must(&self, arguments: &[&str], code: Code) -> Result<String, Failure> {
        let output = self.git.run(arguments, &[], limits::RESULT_PREVIEW).await?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.bytes).trim_end().to_owned()),
            false => Err(failed(code, &output.said)),
        }
    }

    /// Runs a step that talks to a remote, again while the network is what fails. Its output is whatever it answered.
    pub(super) async fn talk(&self, arguments: &[&str]) -> Result<Output, Failure> {
        let slow = format!("http.lowSpeedTime={}", limits::SYNC_TRY.as_secs());
        let arguments: Vec<&str> =
            TALKING.iter().copied().chain([slow.as_str()]).chain(arguments.iter().copied()).collect();
        let mut tries = Tries::new(self.git.stop);
        loop {
            if let Some(output) = tries.make(self.talk_once(&arguments)).await? {
                return Ok(output);
            }
        }
    }

    async fn talk_once(&self, arguments: &[&str]) -> Result<Output, Broken> {
        match self.git.run(arguments, &[], limits::RESULT_PREVIEW).await {
            Ok(output) if output.status.success() => Ok(output),
            Ok(output) => match network(&output.said) {
                Some(why) => Err(Broken::network(why)),
                None => Ok(output),
            },
            Err(error) if error.code == Code::Timeout => Err(Broken::network("git did not come to an end")),
            Err(error) => Err(Failure::from(error).into()),
        }
    }
}

/// Why a step failed.
fn failed(code: Code, said: &str) -> Failure {
    locks::found(said).map_or_else(|| Failure::new(code, words(said)), locks::locked)
}

/// What git said, on one line and without secrets.
pub(super) fn words(said: &str) -> String {
    let line = one_line(&redact(said.trim()), SAID);
    if line.is_empty() { "git failed without a word".into() } else { line }
}

/// What a remote's refusal means; not for failures of the network.
pub(super) fn refusal(said: &str) -> Failure {
    let lower = said.to_lowercase();
    let code = match () {
        () if DENIED.iter().any(|sign| lower.contains(sign)) => Code::AuthenticationFailed,
        () if lower.contains("not found") || lower.contains("does not appear to be a git repository") => Code::NotFound,
        () if lower.contains("transport '") && lower.contains("not allowed") => Code::PolicyDenied,
        () => Code::ExecutionFailed,
    };
    failed(code, said)
}

/// What a remote says to somebody it does not know.
const DENIED: &[&str] = &[
    "permission denied",
    "authentication failed",
    "could not read username",
    "could not read password",
    "host key verification failed",
    "access denied",
    "returned error: 401",
    "returned error: 403",
];

/// What git, curl and ssh say when the network failed, or the server for now.
const NETWORK: &[&str] = &[
    "could not resolve",
    "couldn't resolve",
    "name resolution",
    "failed to connect",
    "couldn't connect",
    "could not connect",
    "unable to connect",
    "connection refused",
    "connection reset",
    "connection timed out",
    "connection closed",
    "operation timed out",
    "operation too slow",
    "network is unreachable",
    "no route to host",
    "broken pipe",
    "empty reply from server",
    "early eof",
    "unexpected disconnect",
    "hung up unexpectedly",
    "rpc failed",
    "recv failure",
    "send failure",
    "ssl_error_syscall",
    "unexpected eof",
    "returned error: 408",
    "returned error: 429",
    "returned error: 5",
];

/// Why a step failed, if the network is what failed; the words are ours.
fn network(said: &str) -> Option<&'static str> {
    let lower = said.to_lowercase();
    // A refused login ends with a connection that was closed.
    let denied =
        DENIED.iter().any(|sign| lower.contains(sign)) || lower.contains("does not appear to be a git repository");
    NETWORK.iter().find(|sign| lower.contains(**sign)).filter(|_| !denied).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_of_the_network_are_told_from_refusals() {
        for said in [
            "fatal: unable to access 'https://h/x.git/': Could not resolve host: h",
            "fatal: unable to access 'https://h/': Failed to connect to h port 443 after 2 ms: Couldn't connect to server",
            "ssh: connect to host h port 22: Connection timed out\nfatal: Could not read from remote repository.",
            "kex_exchange_identification: Connection closed by remote host\nfatal: Could not read from remote repository.",
            "error: RPC failed; curl 56 Recv failure: Connection reset by peer\nfatal: early EOF",
            "fatal: unable to access 'https://h/': The requested URL returned error: 503",
        ] {
            assert!(network(said).is_some(), "{said}");
        }
        for (said, code) in [
            (
                "git@h: Permission denied (publickey).\nfatal: the remote end hung up unexpectedly",
                Code::AuthenticationFailed,
            ),
            ("fatal: could not read Username for 'https://h': terminal prompts disabled", Code::AuthenticationFailed),
            (
                "Host key verification failed.\nfatal: Could not read from remote repository.",
                Code::AuthenticationFailed,
            ),
            ("remote: Repository not found.", Code::NotFound),
            ("fatal: transport 'file' not allowed", Code::PolicyDenied),
            ("fatal: something else", Code::ExecutionFailed),
        ] {
            assert_eq!((network(said), refusal(said).code), (None, code), "{said}");
        }
    }
}
