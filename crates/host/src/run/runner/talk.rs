//! The runner's end of the talk with a worker.

use std::io;

use holdfast_core::limits;
use holdfast_core::operation::Streams;
use holdfast_core::run::{Ask, Tell};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadHalf, WriteHalf};

use crate::local_socket::Lines;

/// A connection of the worker.
pub(super) struct Talk<S> {
    asks: Lines<ReadHalf<S>>,
    to: WriteHalf<S>,
    /// Lines that are not written yet.
    out: Vec<u8>,
    /// Growth since; told when `out` is written, the latest only.
    grew: Option<Streams>,
    /// The worker hears nothing any more. What it said before counts.
    deaf: bool,
}

impl<S: AsyncRead + AsyncWrite> Talk<S> {
    pub(super) fn new(stream: S) -> Self {
        let (from, to) = tokio::io::split(stream);
        Talk { asks: Lines::new(from, limits::RUNNER_LINE_MAX), to, out: Vec::new(), grew: None, deaf: false }
    }

    /// Tells something, as soon as the worker reads. What waits is bounded: one growth, and an answer per ask, and asks are
    /// read only while little waits.
    pub(super) fn tell(&mut self, tell: Tell) {
        if self.deaf {
            return;
        }
        if let (Tell::Grew { written }, false) = (&tell, self.out.is_empty()) {
            self.grew = Some(written.clone());
            return;
        }
        if serde_json::to_writer(&mut self.out, &tell).is_ok() {
            self.out.push(b'\n');
        }
    }

    /// The next ask; `None` when the worker is gone. Writes what is to be told meanwhile. Waiting may be given up.
    pub(super) async fn next(&mut self) -> Option<Ask> {
        loop {
            let writes = !self.out.is_empty();
            let reads = self.out.len() < limits::RUNNER_LINE_MAX;
            tokio::select! {
                ask = self.asks.next(), if reads => return ask.ok().flatten(),
                wrote = self.to.write(&self.out), if writes => if self.wrote(wrote).is_err() {
                    self.deaf = true;
                    self.out.clear();
                },
            }
        }
    }

    /// Writes all that is to be told.
    pub(super) async fn flush(&mut self) -> io::Result<()> {
        while !self.out.is_empty() {
            let wrote = self.to.write(&self.out).await;
            self.wrote(wrote)?;
        }
        self.to.shutdown().await
    }

    fn wrote(&mut self, wrote: io::Result<usize>) -> io::Result<()> {
        match wrote? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            bytes => drop(self.out.drain(..bytes)),
        }
        if let Some(written) = self.grew.take_if(|_| self.out.is_empty()) {
            self.tell(Tell::Grew { written });
        }
        Ok(())
    }
}
