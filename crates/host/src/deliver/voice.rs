//! Voice messages: a program of the person writes down what is said.

use std::path::Path;

use holdfast_core::limits;
use holdfast_core::line::one_line;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::programs::{Programs, Ran, Run, failure};

/// One voice message at a time: what writes them down takes all of the machine.
#[derive(Debug, Default)]
pub(super) struct Turn(Mutex<()>);

impl Turn {
    /// What is said in a file, or a line in its place that says why that is not known.
    pub(super) async fn heard(&self, programs: &Programs, hook: &[String], file: &Path) -> String {
        let _turn = self.0.lock().await;
        let argv: Vec<String> = hook.iter().cloned().chain([file.to_string_lossy().into_owned()]).collect();
        let once = || async {
            let (input, stop) = (Vec::new(), CancellationToken::new());
            let run = Run { argv: &argv, folder: None, input, time: limits::VOICE_TIME, stop };
            match programs.run(run).await? {
                Ran::Exited(status, said) if status.success() => Ok(said.out.trim().to_owned()),
                Ran::Exited(status, said) => Err(failure(&argv[0], status, &said)),
                Ran::TooLong | Ran::Stopped => Err("it took too long".to_owned()),
            }
        };
        match patiently(once).await {
            Ok(text) if text.is_empty() => "[voice message — transcription failed]".to_owned(),
            Ok(text) => text,
            Err(why) => marker(&why),
        }
    }
}

/// What stands in the place of a voice message that could not be written down.
pub(super) fn marker(why: &str) -> String {
    match is_network(why) {
        true => "[attachment: voice transcription failed (network)]".to_owned(),
        false => format!("[voice message — transcription error: {}]", one_line(why, limits::OUTBOX_EXCERPT)),
    }
}

/// Tries again what failed for the network's sake, [`limits::FETCH_TRIES`] times in all.
pub(super) async fn patiently<T, F: Future<Output = Result<T, String>>>(act: impl Fn() -> F) -> Result<T, String> {
    let mut tries = 1;
    loop {
        match act().await {
            Err(why) if tries < limits::FETCH_TRIES && is_network(&why) => {
                tokio::time::sleep(limits::FETCH_RETRY * tries).await;
                tries += 1;
            }
            done => return done,
        }
    }
}

/// Whether an error is one of the network, which may go away.
fn is_network(why: &str) -> bool {
    const WORDS: [&str; 12] = [
        "fetch failed",
        "econnreset",
        "etimedout",
        "enotfound",
        "eai_again",
        "socket hang up",
        "network",
        "timeout",
        "timed out",
        "aborted",
        "connection",
        "unreachable",
    ];
    let why = why.to_lowercase();
    WORDS.iter().any(|word| why.contains(word))
}
