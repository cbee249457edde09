//! What went wrong, and the exit code that says so.

use std::process::ExitCode;

use holdfast_host::api::client::HolderError;
use holdfast_host::engines::{CommandError, StartError};
use holdfast_host::lock::LockError;
use serde_json::json;

use crate::print;

/// Exit codes, as `holdfast --help` documents them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It was not done.
    Failed = 1,
    /// The command line is wrong, or says too little.
    Usage = 2,
    /// No Holdfast runs on the data folder, and the command needs one.
    NotRunning = 3,
    /// The data folder is in use by a process that cannot be asked.
    Held = 4,
    /// A drill or a doctor found that something does not work.
    Found = 5,
    /// The seat's holder lives and does not answer.
    Frozen = 6,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// Why a command failed.
#[derive(Debug)]
pub struct Failure {
    exit: Exit,
    code: String,
    message: String,
}

impl Failure {
    /// A failure without a code of its own.
    pub fn plain(message: impl Into<String>) -> Failure {
        Failure { exit: Exit::Failed, code: "failed".into(), message: message.into() }
    }

    /// The command line is not one that can be done.
    pub fn usage(message: impl Into<String>) -> Failure {
        Failure { exit: Exit::Usage, code: "invalid_request".into(), message: message.into() }
    }

    /// The same with words of its own, if it is of this code.
    pub fn named(self, code: &str, message: impl FnOnce() -> String) -> Failure {
        if self.is(code) { Failure { message: message(), ..self } } else { self }
    }

    /// Nothing runs on the data folder.
    pub fn not_running() -> Failure {
        CommandError::new("not_running", "no Holdfast runs on this data folder; `holdfast serve` starts one").into()
    }

    /// Whether it is of this code.
    pub fn is(&self, code: &str) -> bool {
        self.code == code
    }

    /// In one sentence.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Writes it to stderr, with `--json` as a document, and returns the exit code.
    pub fn tell(&self, as_json: bool) -> ExitCode {
        if as_json {
            print::note(&json!({"error": {"code": self.code, "message": self.message}}).to_string());
        } else {
            print::note(&format!("holdfast: {}", self.message));
        }
        self.exit.into()
    }
}

impl From<CommandError> for Failure {
    fn from(error: CommandError) -> Failure {
        let exit = match error.code.as_str() {
            "not_running" => Exit::NotRunning,
            "seat_frozen" => Exit::Frozen,
            "silent" => Exit::Held,
            _ => Exit::Failed,
        };
        Failure { exit, code: error.code, message: error.message }
    }
}

impl From<HolderError> for Failure {
    fn from(error: HolderError) -> Failure {
        let exit = if matches!(error, HolderError::Silent(_)) { Exit::Held } else { Exit::Failed };
        Failure { exit, code: "unavailable".into(), message: error.to_string() }
    }
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Failure {
        let exit = if matches!(error, StartError::Lock(LockError::Held { .. })) { Exit::Held } else { Exit::Failed };
        Failure { exit, code: error.code().into(), message: error.sentence() }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        Failure::plain(error.to_string())
    }
}
