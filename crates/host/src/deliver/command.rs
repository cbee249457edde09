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
    /// The program that runs: what ends it.
    running: watch::Sender<Option<CancellationToken>>,
}

impl std::fmt::Debug for CommandAgent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CommandAgent").field("program", &self.argv.first()).finish_non_exhaustive()
    }
}

impl CommandAgent {
    pub(super) fn new(
        programs: Arc<Programs>,
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
            running: watch::Sender::new(None),
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
        let _running = Running(&self.running);
        self.running.send_replace(Some(stop.clone()));
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

/// While a program runs.
struct Running<'a>(&'a watch::Sender<Option<CancellationToken>>);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.send_replace(None);
    }
}

impl Agent for CommandAgent {
    fn deliver<'a>(&'a self, message: &'a Message, prepared: &'a Prepared) -> BoxFuture<'a, Result<(), Undelivered>> {
        self.give(message, prepared).boxed()
    }

    fn stop(&self) -> BoxFuture<'_, Result<String, String>> {
        async move {
            let mut running = self.running.subscribe();
            let Some(stop) = running.borrow_and_update().clone() else { return Ok("Nothing is running.".to_owned()) };
            stop.cancel();
            // It answers when the last process of it is gone.
            match tokio::time::timeout(3 * limits::TREE_KILL_WAIT, running.changed()).await {
                Ok(_) => Ok("Stopped.".to_owned()),
                Err(_) => Err("the agent's program does not end".to_owned()),
            }
        }
        .boxed()
    }
}
