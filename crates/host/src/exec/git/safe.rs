//! One run of the git program, told to run nothing that the repository names: no monitor, hook, filter, converter, signature
//! check, pager or submodule, and no transport but the ones it may use.

use std::path::Path;
use std::process::ExitStatus;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use holdfast_core::code::{Code, ToolError};
use holdfast_core::limits;
use holdfast_core::policy::Policy;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::exec::call::stopped;
use crate::exec::env::Env;
use crate::exec::process::{End, HeadTail, Keep, direct, to_end};

/// Options before the subcommand.
const QUIET: &[&str] = &[
    "--no-pager",
    "-c",
    "safe.bareRepository=explicit",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "log.showSignature=false",
    "-c",
    "core.quotePath=false",
    "-c",
    "color.ui=false",
];

/// Whether there is a git program at all. Looked for once.
pub(crate) fn exists() -> bool {
    static EXISTS: OnceLock<bool> = OnceLock::new();
    *EXISTS.get_or_init(|| {
        let name = if cfg!(windows) { "git.exe" } else { "git" };
        std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(name).is_file()))
    })
}

/// How git is run.
#[derive(Clone, Copy)]
pub(crate) struct Git<'a> {
    pub(crate) env: &'a Arc<Env>,
    pub(crate) policy: &'a Policy,
    pub(crate) stop: &'a CancellationToken,
    /// The working tree.
    pub(crate) folder: &'a Path,
    /// Transports it may use, as in `https:ssh`; without any it talks to nobody. Nobody is asked for a password.
    pub(crate) transports: Option<&'a str>,
    /// Awake time after which it is killed.
    pub(crate) timeout: Duration,
}

/// What a run of git left.
pub(crate) struct Output {
    pub(crate) status: ExitStatus,
    /// What it wrote, up to the bound that was given.
    pub(crate) bytes: Vec<u8>,
    pub(crate) truncated: bool,
    /// Head and tail of what it said besides.
    pub(crate) said: String,
}

/// What is kept of an output: its beginning.
struct Head {
    bytes: Vec<u8>,
    max: usize,
    truncated: bool,
}

impl Head {
    fn push(&mut self, bytes: &[u8]) {
        let room = self.max - self.bytes.len();
        self.truncated |= bytes.len() > room;
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

impl Git<'_> {
    /// Runs it, with filters off by their configuration keys. An exit code of any kind is an output.
    pub(crate) async fn run(&self, arguments: &[&str], filters: &[String], max: usize) -> Result<Output, ToolError> {
        let argv: Vec<String> = std::iter::once("git")
            .chain(QUIET.iter().copied())
            .chain(arguments.iter().copied())
            .map(str::to_owned)
            .collect();
        let mut command = direct(self.env, self.policy, &argv, ".")?.command();
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"GIT_")) {
            command.env_remove(name);
        }
        command
            .current_dir(self.folder)
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_ASKPASS", "")
            .env("GIT_ALLOW_PROTOCOL", self.transports.unwrap_or("none"))
            // By environment, because a filter's name may hold what `-c` would split at.
            .env("GIT_CONFIG_COUNT", filters.len().to_string());
        match self.transports {
            None => command.env("GIT_NO_LAZY_FETCH", "1"),
            // What it says is read by programs too. A peer that is silent ends the run, not the user's patience.
            Some(_) => command.env("LC_ALL", "C").env("GIT_SSH_COMMAND", ssh()),
        };
        for (number, key) in filters.iter().enumerate() {
            let off = if key.ends_with(".required") { "false" } else { "" };
            command.env(format!("GIT_CONFIG_KEY_{number}"), key).env(format!("GIT_CONFIG_VALUE_{number}"), off);
        }
        let stdout = Arc::new(Mutex::new(Head { bytes: Vec::new(), max, truncated: false }));
        let stderr = Arc::new(Mutex::new(HeadTail::keeping(limits::RESULT_PREVIEW)));
        let keep = Keep { to: &stdout, push: Head::push };
        let status = match to_end(&self.env.trees, self.stop, command, Vec::new(), self.timeout, keep, &stderr)
            .await?
            .end
        {
            End::Exited(status) => status,
            End::TimedOut => return Err(ToolError::new(Code::Timeout, "git did not end in its time and was killed")),
            End::Stopped => return Err(stopped()),
        };
        let Head { bytes, truncated, .. } =
            std::mem::replace(&mut *stdout.lock(), Head { bytes: Vec::new(), max: 0, truncated: false });
        let said = stderr.lock().shown().text;
        Ok(Output { status, bytes, truncated, said })
    }

    /// Keys of the repository's own configuration that match. What the user configured is the user's; these came with it.
    pub(crate) async fn own_keys(&self, pattern: &str) -> Result<Vec<String>, ToolError> {
        let query = ["config", "--show-scope", "--name-only", "-z", "--get-regexp", pattern];
        let listed = self.run(&query, &[], limits::FILE_BYTES_MAX).await?;
        if listed.truncated {
            return Err(ToolError::new(Code::LimitExceeded, "the repository's configuration is too large"));
        }
        let text = String::from_utf8_lossy(&listed.bytes);
        let mut words = text.split('\0');
        let mut keys = Vec::new();
        while let (Some(scope), Some(key)) = (words.next(), words.next()) {
            if !matches!(scope, "system" | "global") {
                keys.push(key.to_owned());
            }
        }
        Ok(keys)
    }
}

fn ssh() -> String {
    let seconds = limits::SYNC_TRY.as_secs();
    format!(
        "ssh -oBatchMode=yes -oConnectTimeout={seconds} -oServerAliveInterval={} -oServerAliveCountMax=3",
        seconds / 3
    )
}
