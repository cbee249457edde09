//! Where a holder listens to other processes of this user, and how they reach it: one question a connection, one JSON line.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::FutureExt as _;
use holdfast_core::limits;
use holdfast_core::seat::{Answer, Ask};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::AbortHandle;

use crate::local_socket::{self, Lines, write_line};

/// Where the holder of a seat's folder listens.
fn place(folder: &Path) -> PathBuf {
    folder.join("holder.sock")
}

/// A question of another process, and where its answers go. Its connection ends when this is dropped.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) ask: Ask,
    pub(super) answers: mpsc::Sender<Answer>,
}

/// An open door. Dropping it closes it to newcomers and leaves its name alone, which may be another holder's by now;
/// connections that stand may still be answered.
#[derive(Debug)]
pub(super) struct Door {
    listening: AbortHandle,
    place: PathBuf,
}

impl Door {
    /// Listens in a seat's folder. What stood there before is of a holder that is gone: the lock is ours.
    pub(super) fn open(folder: &Path, asked: mpsc::Sender<Asked>) -> io::Result<Door> {
        let place = place(folder);
        let mut listener = local_socket::listen(&place)?;
        let places = Arc::new(Semaphore::new(limits::SEAT_PEERS));
        let listening = tokio::spawn(async move {
            loop {
                // The place first: who finds none waits in the system's queue.
                let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
                let stream = match local_socket::accept(&mut listener).await {
                    Ok(stream) => stream,
                    Err(e) => {
                        tracing::warn!("another process could not be listened to: {e}");
                        tokio::time::sleep(limits::SEAT_RETRY).await;
                        continue;
                    }
                };
                let asked = asked.clone();
                tokio::spawn(async move {
                    // Whoever leaves or says nothing sensible is gone.
                    let _ = serve(stream, asked).await;
                    drop(place);
                });
            }
        });
        Ok(Door { listening: listening.abort_handle(), place })
    }

    /// Closes it and takes its name away, while the lock is still ours.
    pub(super) fn close(self) {
        local_socket::close(&self.place);
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite, asked: mpsc::Sender<Asked>) -> io::Result<()> {
    let (reader, mut writer) = tokio::io::split(stream);
    let mut lines = Lines::new(reader, limits::SEAT_LINE_MAX);
    let Some(ask) = tokio::time::timeout(limits::SEAT_ASK_WAIT, lines.next()).await?? else { return Ok(()) };
    if matches!(ask, Ask::Take { .. }) {
        // Whoever asked before this process was frozen, or waited in the system's queue, may not want it any more.
        write_line(&mut writer, &Answer::Ready {}).await?;
        let confirmed = tokio::time::timeout(limits::SEAT_ASK_WAIT, lines.next()).await??;
        if confirmed != Some(Ask::Confirm {}) || lines.next::<Ask>().now_or_never().is_some() {
            return Ok(());
        }
    }
    let (answers, mut to_write) = mpsc::channel(2);
    if asked.send(Asked { ask, answers }).await.is_err() {
        return Ok(());
    }
    while let Some(answer) = to_write.recv().await {
        write_line(&mut writer, &answer).await?;
    }
    writer.shutdown().await
}

/// A question to the holder, once it is connected.
#[derive(Debug)]
pub(super) struct Line {
    answers: Lines<ReadHalf<local_socket::Stream>>,
    writer: WriteHalf<local_socket::Stream>,
    /// The process at the other end, as the system names it.
    pub(super) peer: Option<u32>,
}

impl Line {
    /// Connects to the holder in a seat's folder and asks.
    pub(super) async fn ask(folder: &Path, ask: &Ask) -> io::Result<Line> {
        let (stream, peer) = local_socket::connect(&place(folder)).await?;
        let (reader, writer) = tokio::io::split(stream);
        let mut line = Line { answers: Lines::new(reader, limits::SEAT_LINE_MAX), writer, peer };
        line.say(ask).await?;
        Ok(line)
    }

    /// Says something more.
    pub(super) async fn say(&mut self, ask: &Ask) -> io::Result<()> {
        write_line(&mut self.writer, ask).await
    }

    /// The next answer; `None` when there is none that can be read.
    pub(super) async fn answer(&mut self) -> Option<Answer> {
        self.answers.next().await.ok().flatten()
    }
}
