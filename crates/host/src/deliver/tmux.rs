//! `tmux`: typed into a pane, as if the person sat there.
//!
//! The text goes in by a buffer that tmux reads from a pipe, so it never stands among arguments; it is pasted as one
//! paste (bracketed where the program in the pane knows that), without control characters but newline and tab, and then
//! Enter is pressed.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use holdfast_core::chat::inbox::{Message, Prepared, Undelivered};
use holdfast_core::limits;
use tokio_util::sync::CancellationToken;

use super::programs::{Programs, Ran, Run, failure};
use super::{Agent, Letter};
use crate::config::BindingConfig;

/// An agent in a pane.
#[derive(Debug)]
pub(super) struct TmuxAgent {
    programs: Arc<Programs>,
    /// The program, and the options that say which server.
    pub(super) tmux: Vec<String>,
    pane: String,
    stop_key: String,
}

impl TmuxAgent {
    pub(super) fn new(programs: Arc<Programs>, config: &BindingConfig) -> Result<TmuxAgent, String> {
        let pane = config.pane.clone().ok_or("`pane` is not set")?;
        // tmux takes a word that ends in `;` for the end of a command.
        let fits = (1..=limits::PANE_MAX).contains(&pane.len()) && !pane.starts_with('-');
        if !fits || pane.chars().any(|c| c.is_control() || c == ';') {
            return Err("`pane` is no pane as `tmux -t` takes it".to_owned());
        }
        let stop_key = config.stop_key.clone().unwrap_or_else(|| "Escape".to_owned());
        let fits = (1..=limits::PANE_MAX).contains(&stop_key.len()) && !stop_key.starts_with('-');
        if !fits || !stop_key.chars().all(|c| c.is_ascii_alphanumeric() || "-^/".contains(c)) {
            return Err("`stop_key` is no key as `tmux send-keys` takes it, such as Escape or C-c".to_owned());
        }
        Ok(TmuxAgent { programs, tmux: vec!["tmux".to_owned()], pane, stop_key })
    }

    async fn tmux(&self, arguments: &[&str], input: Vec<u8>) -> Result<String, String> {
        let argv: Vec<String> = self.tmux.iter().cloned().chain(arguments.iter().map(|a| (*a).to_owned())).collect();
        let stop = CancellationToken::new();
        let run = Run { argv: &argv, folder: None, input, time: limits::TMUX_TIME, stop };
        match self.programs.run(run).await? {
            Ran::Exited(status, said) if status.success() => Ok(said.out),
            Ran::Exited(status, said) => Err(said.last_line().unwrap_or_else(|| failure("tmux", status, &said))),
            Ran::TooLong | Ran::Stopped => Err(SILENT.to_owned()),
        }
    }

    /// The pane by its own name, out of any mode in which it would not hear. The others could come to mean another one
    /// between two commands.
    async fn ready(&self) -> Result<String, String> {
        let told = ["display-message", "-p", "-t", &self.pane, "#{pane_id} #{pane_dead} #{pane_in_mode}"];
        let told = self.tmux(&told, Vec::new()).await?;
        let words: Vec<&str> = told.split_whitespace().collect();
        let [pane, dead, mode] = words[..] else { return Err(format!("tmux knows no pane {}", self.pane)) };
        if dead != "0" {
            return Err(format!("the program in pane {} has ended", self.pane));
        }
        if mode != "0" {
            self.tmux(&["send-keys", "-t", pane, "-X", "cancel"], Vec::new()).await?;
        }
        Ok(pane.to_owned())
    }

    async fn give(&self, message: &Message, prepared: &Prepared) -> Result<(), Undelivered> {
        let pane = self.ready().await?;
        let text = typed(&Letter::of(&message.incoming, prepared), prepared);
        let buffer = format!("holdfast-{}-{}", std::process::id(), message.seq);
        self.tmux(&["load-buffer", "-b", &buffer, "-"], text.into_bytes()).await?;
        let pasted = self.tmux(&["paste-buffer", "-p", "-d", "-b", &buffer, "-t", &pane], Vec::new()).await;
        if pasted.is_err() {
            let _ = self.tmux(&["delete-buffer", "-b", &buffer], Vec::new()).await;
        }
        pasted.map_err(|why| if why == SILENT { Undelivered::Perhaps(why) } else { Undelivered::Not(why) })?;
        // Programs that tell pasting from typing by its speed take an Enter that follows at once for a part of the
        // text.
        tokio::time::sleep(limits::TMUX_ENTER).await;
        let entered = self.tmux(&["send-keys", "-t", &pane, "Enter"], Vec::new()).await;
        entered.map(drop).map_err(|why| Undelivered::Perhaps(format!("it was typed, but Enter was not pressed: {why}")))
    }
}

/// What tmux was asked for may be done or not.
const SILENT: &str = "tmux does not answer";

/// What is typed.
fn typed(letter: &Letter, prepared: &Prepared) -> String {
    let mut text = letter.content.clone();
    for file in &prepared.files {
        text.push_str(&format!("\n[file: {file}]"));
    }
    text.replace("\r\n", "\n").chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

impl Agent for TmuxAgent {
    fn deliver<'a>(&'a self, message: &'a Message, prepared: &'a Prepared) -> BoxFuture<'a, Result<(), Undelivered>> {
        self.give(message, prepared).boxed()
    }

    fn stop(&self) -> BoxFuture<'_, Result<String, String>> {
        async move {
            let pane = self.ready().await?;
            self.tmux(&["send-keys", "-t", &pane, &self.stop_key], Vec::new()).await?;
            Ok(format!("Pressed {} in the agent's pane.", self.stop_key))
        }
        .boxed()
    }
}
