//! The worker's end of the talk with a runner.

use std::io;
use std::path::Path;
use std::sync::Arc;

use holdfast_core::limits;
use holdfast_core::operation::Streams;
use holdfast_core::run::{Ask, Claim, Identity, Tell, VERSIONS};
use holdfast_core::status::UnixMs;
use tokio::io::{ReadHalf, WriteHalf};
use tokio::sync::Mutex;

use super::folder::{CLAIM, read, spec};
use crate::local_socket::{self, Lines, write_line};

/// A connection to a runner. The runner talks to its newest one only.
#[derive(Debug)]
pub struct Attached {
    /// Who it is: the one that claimed the folder.
    pub identity: Identity,
    /// What was written when the connection was made.
    pub written: Streams,
    /// Since when its program waited for room then.
    pub stalled: Option<UnixMs>,
    tells: Lines<ReadHalf<local_socket::Stream>>,
    asker: Asker,
}

/// Asks a runner; may be copied, and is of use as long as the connection stands.
#[derive(Debug, Clone)]
pub struct Asker(Arc<Mutex<WriteHalf<local_socket::Stream>>>);

/// Connects to the runner of a folder. Fails with `NotFound` or `ConnectionRefused` when none listens, with `InvalidData`
/// when who answers is not the runner that claimed the folder or speaks another version, and when it does not answer within
/// [`limits::RUNNER_START`].
pub async fn attach(folder: &Path) -> io::Result<Attached> {
    let invalid = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why);
    let socket = spec(folder)?.socket;
    let claimed = match read(&folder.join(CLAIM))? {
        Some(Claim::Runner(identity)) => identity,
        _ => return Err(io::ErrorKind::NotFound.into()),
    };
    let greeting = async {
        let (stream, peer) = local_socket::connect(Path::new(&socket)).await?;
        let (reader, writer) = tokio::io::split(stream);
        let mut tells = Lines::new(reader, limits::RUNNER_LINE_MAX);
        match tells.next().await? {
            Some(Tell::Hello { version, .. }) if !VERSIONS.contains(&version) => {
                Err(invalid("the runner is of another version of Holdfast"))
            }
            Some(Tell::Hello { identity, .. })
                if identity != claimed || peer.is_some_and(|pid| pid != identity.pid) =>
            {
                Err(invalid("another process listens where the runner should"))
            }
            Some(Tell::Hello { identity, written, stalled, .. }) => {
                Ok(Attached { identity, written, stalled, tells, asker: Asker(Arc::new(Mutex::new(writer))) })
            }
            Some(_) => Err(invalid("the runner does not say hello")),
            None => Err(io::ErrorKind::ConnectionRefused.into()),
        }
    };
    tokio::time::timeout(limits::RUNNER_START, greeting).await?
}

impl Attached {
    /// What the runner tells next; `None` when the connection is over: the runner is gone, or has a newer one. Waiting may
    /// be given up and taken up again.
    pub async fn next(&mut self) -> Option<Tell> {
        self.tells.next().await.ok().flatten()
    }

    /// Asks.
    pub fn asker(&self) -> Asker {
        self.asker.clone()
    }
}

impl Asker {
    /// Asks. Fails when the connection is over. Must not be given up in the middle: the line would be torn.
    pub async fn ask(&self, ask: &Ask) -> io::Result<()> {
        write_line(&mut *self.0.lock().await, ask).await
    }
}
