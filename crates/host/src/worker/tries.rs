//! The tries that are tended, by run and number.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use holdfast_core::id::RunId;
use holdfast_core::limits;
use holdfast_core::operation::Stream;
use holdfast_core::run::{Ask, Lease, Segment};
use holdfast_core::worker::{Launch, Piece, Read};
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;

use super::run::Event;
use super::tend::{Begin, Means, Order, Tending};
use crate::run;
use crate::spool::{self, Reader};

/// See the module. Dropped, it leaves the runs to their runners.
pub(super) struct Tries {
    ground: Ground,
    /// What the system's boot clock is ahead of the machine's.
    boot_ahead: Duration,
    open: HashMap<(RunId, u32), Tended>,
}

/// What every try is tended with.
struct Ground {
    /// The folder of all runs.
    folder: PathBuf,
    means: Means,
    events: mpsc::UnboundedSender<Event>,
}

impl Ground {
    fn tend(&self, run: &RunId, attempt: u32, begin: Begin, trims: BTreeMap<Stream, u64>) -> Tended {
        let (events, of) = (self.events.clone(), run.clone());
        let (orders, inbox) = mpsc::unbounded_channel();
        let tending = Tending {
            folder: run::folder(&self.folder, run, attempt),
            means: self.means.clone(),
            orders: inbox,
            // Without the worker's task there is nobody to tell, here and below.
            news: Box::new(move |news| _ = events.send(Event::Run(of.clone(), attempt, news))),
            trims: trims.clone(),
            ending: None,
            claimed: false,
        };
        let task = tokio::spawn(tending.run(begin)).abort_handle();
        Tended { orders, task, trims, readers: HashMap::new() }
    }
}

struct Tended {
    orders: mpsc::UnboundedSender<Order>,
    task: AbortHandle,
    /// The latest of each stream: whoever tends it next says them again.
    trims: BTreeMap<Stream, u64>,
    /// One per stream, because each keeps a file open.
    readers: HashMap<Stream, Arc<Mutex<Reader>>>,
}

impl Drop for Tended {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Tries {
    pub(super) fn new(
        folder: PathBuf,
        means: Means,
        events: mpsc::UnboundedSender<Event>,
        boot_ahead: Duration,
    ) -> Tries {
        Tries { ground: Ground { folder, means, events }, boot_ahead, open: HashMap::new() }
    }

    pub(super) fn launch(&mut self, mut launch: Launch) {
        let Some(run) = launch.operation.run_id.clone() else { return };
        launch.lease = launch.lease.map(|lease| self.on_boot_clock(lease));
        self.begin(run, launch.attempt, Begin::Launch(Box::new(launch)));
    }

    /// Begins to tend a try; whoever tended it before does not any more, and what it was told and has not said is gone.
    pub(super) fn begin(&mut self, run: RunId, attempt: u32, begin: Begin) {
        let before = self.open.remove(&(run.clone(), attempt));
        let trims = before.map(|tended| tended.trims.clone()).unwrap_or_default();
        let tended = self.ground.tend(&run, attempt, begin, trims);
        self.open.insert((run, attempt), tended);
    }

    pub(super) fn ask(&mut self, run: RunId, attempt: u32, ask: Ask) {
        let ask = match ask {
            Ask::Lease { lease } => Ask::Lease { lease: self.on_boot_clock(lease) },
            other => other,
        };
        if let Some(tended) = self.open.get(&(run, attempt)) {
            // A task that ended has nobody to ask.
            let _ = tended.orders.send(Order::Ask(ask));
        }
    }

    pub(super) fn trim(&mut self, run: RunId, attempt: u32, stream: Stream, offset: u64) {
        let tended = self.tended(run, attempt);
        tended.trims.insert(stream, offset);
        let _ = tended.orders.send(Order::Trim(stream, offset));
    }

    /// Reads from a spool, and tells the piece.
    pub(super) fn read(&mut self, read: Read) {
        let Read { run, attempt, stream, offset, max } = read;
        let folder = run::folder(&self.ground.folder, &run, attempt);
        let events = self.ground.events.clone();
        let tended = self.tended(run.clone(), attempt);
        let reader =
            Arc::clone(tended.readers.entry(stream).or_insert_with(|| Arc::new(Mutex::new(Reader::new(folder)))));
        tokio::task::spawn_blocking(move || {
            let piece = match reader.lock().read(stream, offset, max) {
                Ok(spool::Read::Bytes(bytes)) => Piece::Bytes(bytes),
                Ok(spool::Read::Gap { next }) => Piece::Gap(next),
                // It was written, and is not there: whoever damaged the spool took it.
                Ok(spool::Read::End) => lost(stream, offset, max),
                Err(e) if is_lost(&e) => lost(stream, offset, max),
                Err(e) => {
                    tracing::debug!("a spool cannot be read: {e}");
                    Piece::Unreadable
                }
            };
            let _ = events.send(Event::Piece(run, stream, offset, piece));
        });
    }

    /// Forgets a try and removes its folder.
    pub(super) fn remove(&mut self, run: RunId, attempt: u32) {
        let folder = run::folder(&self.ground.folder, &run, attempt);
        self.open.remove(&(run, attempt));
        tokio::task::spawn_blocking(move || {
            // The next start finds that nobody knows it.
            if let Err(e) = spool::remove(&folder) {
                tracing::warn!("the folder of a run stays: {e}");
            }
        });
    }

    /// Waits until every connected runner was told what it was to be told before, for a moment at most.
    pub(super) fn said(&self) -> impl Future<Output = ()> + Send + 'static {
        let asked: Vec<_> = self
            .open
            .values()
            .map(|tended| {
                let (tell, told) = oneshot::channel();
                let _ = tended.orders.send(Order::Said(tell));
                told
            })
            .collect();
        async move {
            let all = futures_util::future::join_all(asked);
            // One that cannot be told now is not waited for: sleep comes anyway.
            let _ = tokio::time::timeout(limits::RUNNER_TOLD_WAIT, all).await;
        }
    }

    /// A try, tended from now on if it was not: its end is known then.
    fn tended(&mut self, run: RunId, attempt: u32) -> &mut Tended {
        let Tries { ground, open, .. } = self;
        open.entry((run.clone(), attempt)).or_insert_with(|| ground.tend(&run, attempt, Begin::Over, BTreeMap::new()))
    }

    fn on_boot_clock(&self, lease: Lease) -> Lease {
        Lease { until: lease.until.map(|until| until + self.boot_ahead), ..lease }
    }
}

/// Bytes that will not be had any more, up to the end of their segment.
fn lost(stream: Stream, offset: u64, max: usize) -> Piece {
    Piece::Gap(Segment::at(stream, offset).end().min(offset + max as u64))
}

/// Whether a spool that cannot be read is gone or broken, not only out of reach for now.
fn is_lost(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || cfg!(unix) && error.raw_os_error() == Some(EIO)
}

/// The disk does not give it back.
const EIO: i32 = 5;
