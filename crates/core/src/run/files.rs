//! What stands in the folder of a run.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::id::{OperationId, RunId};
use crate::operation::{Exit, OnFull, Streams};
use crate::status::UnixMs;

/// What a runner runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Program {
    /// A program with pipes.
    Pipes {
        /// Program and arguments, at least one.
        argv: Vec<String>,
        /// Whether its input stays open.
        stdin: bool,
    },
    /// A program in a terminal.
    Pty {
        /// Program and arguments, at least one.
        argv: Vec<String>,
        /// Columns.
        cols: u16,
        /// Rows.
        rows: u16,
    },
    /// A connection to a port of this machine.
    Port(u16),
}

/// The lease a runner enforces by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Fences it: an end under an older generation is evidence, not the result.
    pub generation: u64,
    /// The system's boot clock at which the tree is killed; `None` while an announced sleep holds it, which
    /// ends by awake time after [`crate::limits::WORKER_LEASE`].
    pub until: Option<Duration>,
}

/// `meta`: what the worker asks of a runner. It is whole before the runner starts; the file is private (0600).
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// Version of these files and of the talk: [`super::VERSION`].
    pub version: u32,
    /// The operation.
    pub operation: OperationId,
    /// The run.
    pub run: RunId,
    /// Counts the tries to start it; each has a folder of its own.
    pub attempt: u32,
    /// What to run.
    pub program: Program,
    /// Its folder, absolute.
    pub cwd: String,
    /// Its whole environment.
    pub env: Vec<(String, String)>,
    /// Awake time after which it is killed.
    pub timeout: Option<Duration>,
    /// When its output finds no room.
    pub on_full: OnFull,
    /// Unacknowledged output it may hold, in bytes.
    pub quota: u64,
    /// Of a run that must not go on unsupervised.
    pub lease: Option<Lease>,
    /// Where the runner listens.
    pub socket: String,
}

/// Environment and arguments can hold secrets.
impl std::fmt::Debug for Spec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Spec").field("run", &self.run).field("attempt", &self.attempt).finish_non_exhaustive()
    }
}

/// Which process a runner is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Its process id.
    pub pid: u32,
    /// When it started, as the system says it: with the pid and the boot id it names one process for ever.
    pub started: Option<String>,
    /// The boot it lives in.
    pub boot: String,
    /// The mark in the environment of everything it starts.
    pub mark: String,
    /// The control group that it and everything it starts live in, if that is its own.
    pub scope: Option<String>,
}

/// `leader`: the process a runner started, so that it can be found without the runner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leader {
    /// Its process id, and that of its process group.
    pub pid: u32,
    /// When it started, as the system says it.
    pub started: Option<String>,
}

/// `claim`: put in place once, whole, by whoever comes first; it decides whether anything ever ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Claim {
    /// Nothing ran and nothing will.
    Void,
    /// This runner went on to start the program.
    Runner(Identity),
}

/// `exit`: how it ended, written atomically after the last byte of output is on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// How the program ended; `None` when it could not be started.
    pub exit: Option<Exit>,
    /// All of its output, in bytes per stream.
    pub written: Streams,
    /// Why it could not be started, in the system's words.
    pub not_started: Option<String>,
    /// The runner killed it because its time was over.
    pub timed_out: bool,
    /// The runner killed it because it was asked to.
    pub killed: bool,
    /// Not the worker asked for that but the system: a shutdown, say, or a person with a signal.
    #[serde(default)]
    pub interrupted: bool,
    /// The runner killed it because this lease expired, or it ended after that.
    pub lease_expired: Option<u64>,
    /// Output given up in the middle, in bytes.
    pub dropped: u64,
    /// Processes that had left the tree. They live on if the program ended by itself, and were killed if it was.
    pub escaped: Vec<u32>,
    /// When.
    pub at: UnixMs,
}
