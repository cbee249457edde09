//! `command`: a program for each message, for instance an agent's own way to go on with a session.
//!
//! `{session}` and `{project}` in its arguments are filled in. What people write never stands there: it is the
//! program's input, below a few lines that say who wrote where (see [`Letter::headed`]). The program ending with code 0
//! means that the agent had it.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use holdfast_core::chat::inbox::{Message, Prepared, Undelivered};
use holdfast_core::limits;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::programs::{Programs, Ran, Run, failure};
use super::{Agent, Letter, Session};
use crate::config::BindingConfig;

/// An agent that is started for each message.
pub(super) struct CommandAgent {
    programs: Arc<Programs>,
    argv: Vec<String>,
    project: Option<PathBuf>,
    /// The session that the configuration names.
    named: Option<String>,
    session: Session,
    running: Running,
}

impl std::fmt::Debug for CommandAgent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CommandAgent").field("program", &self.argv.first()).finish_non_exhaustive()
    }
}

impl CommandAgent {
    pub(super) fn new(
        programs: Arc<Programs>,
        running: Running,
        config: &BindingConfig,
        session: Session,
    ) -> Result<CommandAgent, String> {
        if config.command.first().is_none_or(String::is_empty) {
            return Err("`command` names no program".to_owned());
        }
        if config.command.iter().any(|item| item.contains("{project}")) && config.project.is_none() {
            return Err("`command` needs `project`, which is not set".to_owned());
        }
        Ok(CommandAgent {
            programs,
            argv: config.command.clone(),
            project: config.project.as_deref().map(PathBuf::from),
            named: config.session.clone(),
            session,
            running,
        })
    }

    fn filled(&self) -> Result<Vec<String>, String> {
        let session = || self.named.clone().or_else(|| (self.session)()).ok_or("the agent has no session yet");
        let project = self.project.as_deref().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
        let fill = |item: &String| {
            // Each is filled in once: what stands in a session's or a folder's name is no pattern.
            let parts = item.split("{session}").map(|part| part.replace("{project}", &project));
            let parts: Vec<String> = parts.collect();
            if parts.len() == 1 { Ok(parts.concat()) } else { Ok(parts.join(&session()?)) }
        };
        self.argv.iter().map(fill).collect()
    }

    async fn give(&self, message: &Message, prepared: &Prepared) -> Result<(), Undelivered> {
        let argv = self.filled()?;
        let stop = CancellationToken::new();
        let _runs = self.running.begins(&stop);
        let input = Letter::of(&message.incoming, prepared).headed(&prepared.files).into_bytes();
        let run = Run { argv: &argv, folder: self.project.as_deref(), input, time: limits::COMMAND_LIFE, stop };
        match self.programs.run(run).await? {
            Ran::Exited(status, _) if status.success() => Ok(()),
            // It may have done what it was told, and failed at its end.
            Ran::Exited(status, said) => Err(Undelivered::Failed(failure(&argv[0], status, &said))),
            Ran::TooLong => {
                let hours = limits::COMMAND_LIFE.as_secs() / 3600;
                Err(Undelivered::Perhaps(format!("the agent's program did not end within {hours} h and was ended")))
            }
            Ran::Stopped => Ok(()),
        }
    }
}

/// The program that works on a message for a binding, whatever its configuration was when that began: what ends it.
#[derive(Debug, Clone)]
pub(super) struct Running(watch::Sender<Option<CancellationToken>>);

impl Default for Running {
    fn default() -> Running {
        Running(watch::Sender::new(None))
    }
}

impl Running {
    fn begins(&self, stop: &CancellationToken) -> Runs<'_> {
        self.0.send_replace(Some(stop.clone()));
        Runs(self)
    }

    /// Ends it. None: there is none.
    pub(super) async fn end(&self) -> Option<Result<String, String>> {
        let mut running = self.0.subscribe();
        running.borrow_and_update().clone()?.cancel();
        // It is over when the last process of it is gone.
        Some(match tokio::time::timeout(4 * limits::TREE_KILL_WAIT, running.changed()).await {
            Ok(_) => Ok("Stopped.".to_owned()),
            Err(_) => Err("the agent's program does not end".to_owned()),
        })
    }
}

/// While a program runs.
struct Runs<'a>(&'a Running);

impl Drop for Runs<'_> {
    fn drop(&mut self) {
        self.0.0.send_replace(None);
    }
}

impl Agent for CommandAgent {
    fn deliver<'a>(&'a self, message: &'a Message, prepared: &'a Prepared) -> BoxFuture<'a, Result<(), Undelivered>> {
        self.give(message, prepared).boxed()
    }

    fn stop(&self) -> BoxFuture<'_, Result<String, String>> {
        async move { self.running.end().await.unwrap_or_else(|| Ok("Nothing is running.".to_owned())) }.boxed()
    }
}
