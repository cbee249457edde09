//! Programs that a courier starts: each in a group of its own, given its input, bounded in time and output, gone with
//! everything it started when nobody waits for it any more.

use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use holdfast_core::limits;
use holdfast_core::line::one_line;
use parking_lot::Mutex;
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

use crate::asked::Asked;
use crate::exec::{End, HeadTail, Keep, Trees, end_escaped, own_environment, to_end};

/// Starts programs.
pub(super) struct Programs {
    trees: Arc<Trees>,
    /// Whether folders are there.
    pub(super) folders: Asked<bool>,
}

impl std::fmt::Debug for Programs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Programs")
    }
}

/// One program to its end.
pub(super) struct Run<'a> {
    /// The program and its arguments.
    pub argv: &'a [String],
    /// Where it runs; in the person's home without one.
    pub folder: Option<&'a Path>,
    /// What it reads.
    pub input: Vec<u8>,
    /// Awake time after which it is ended.
    pub time: Duration,
    /// Ends it.
    pub stop: CancellationToken,
}

/// How a program ended.
pub(super) enum Ran {
    /// By itself: how, and what it wrote.
    Exited(ExitStatus, Said),
    /// It took too long, and was ended.
    TooLong,
    /// It was stopped.
    Stopped,
}

/// The beginning and the end of what a program wrote.
#[derive(Debug)]
pub(super) struct Said {
    pub out: String,
    pub err: String,
}

impl Said {
    /// Why it failed, as it says itself: its last words.
    pub(super) fn last_line(&self) -> Option<String> {
        let last = |text: &str| text.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned);
        last(&self.err).or_else(|| last(&self.out)).map(|line| one_line(&line, limits::ASK_PREVIEW_MAX))
    }
}

impl Programs {
    /// With the folder that has a note of each living one. What a killed process left running is ended.
    pub(super) fn open(notes: PathBuf) -> Result<Programs, String> {
        Ok(Programs { trees: Trees::open(notes).map_err(|e| e.to_string())?, folders: Asked::default() })
    }

    /// Runs a program to its end. Dropped, it ends it.
    ///
    /// # Errors
    /// It cannot be started, in plain words.
    pub(super) async fn run(&self, run: Run<'_>) -> Result<Ran, String> {
        let (program, arguments) = run.argv.split_first().ok_or("no program is named")?;
        let mut command = Command::new(program);
        // The folders are no secret, and an agent's own hook has to find this Holdfast by them.
        let folders = ["HOLDFAST_DATA_DIR", "HOLDFAST_CONFIG_DIR", "HOLDFAST_STATE_DIR"];
        let folders = folders.into_iter().filter_map(|name| std::env::var_os(name).map(|value| (name, value)));
        command.args(arguments).env_clear().envs(own_environment()).envs(folders);
        if let Some(folder) = run.folder.map(Path::to_owned).or_else(dirs::home_dir) {
            match self.folders.ask(&folder, Path::is_dir).await {
                Some(true) => command.current_dir(folder),
                Some(false) => return Err(format!("{} is no folder", folder.display())),
                None => return Err(format!("{}: the disk does not answer", folder.display())),
            };
        }
        let kept = || Arc::new(Mutex::new(HeadTail::keeping(limits::RESULT_PREVIEW)));
        let (out, err) = (kept(), kept());
        let keep = Keep { to: &out, push: HeadTail::push };
        let end = to_end(&self.trees, &run.stop, command, run.input, run.time, keep, &err).await;
        let ran = end.map_err(|e| format!("{program}: {}", e.message))?;
        if matches!(ran.end, End::TimedOut | End::Stopped) {
            // An agent runs its own programs in groups of their own, and a person wants those to stop above all.
            end_escaped(&ran.mark).await;
        }
        Ok(match ran.end {
            End::Exited(status) => {
                Ran::Exited(status, Said { out: out.lock().shown().text, err: err.lock().shown().text })
            }
            End::TimedOut => Ran::TooLong,
            End::Stopped => Ran::Stopped,
        })
    }

    pub(super) async fn close(&self) {
        self.trees.close().await;
    }
}

/// A program that does not end well, as the sender reads it.
pub(super) fn failure(program: &str, status: ExitStatus, said: &Said) -> String {
    let how = match status.code() {
        Some(code) => format!("{program} ended with code {code}"),
        None => format!("{program} was killed"),
    };
    said.last_line().map_or_else(|| how.clone(), |why| format!("{how}: {why}"))
}
