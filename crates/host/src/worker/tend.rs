//! One try of a run, tended by a task of its own: it starts the runner or finds it again, passes on what both sides say, and
//! tells what became of it.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use holdfast_core::code::Code;
use holdfast_core::limits;
use holdfast_core::operation::{Failure, Operation, Request, Stream};
use holdfast_core::run::{Ask, Claim, Identity, Signal, Spec, Tell, VERSION};
use holdfast_core::worker::{Launch, RunNews};
use serde_json::json;
use tokio::sync::{Notify, mpsc, oneshot};

use super::perform;
use super::rules::Rules;
use crate::exec::io_error;
use crate::files::{self, FileError};
use crate::run::{self, Attached, Found, Starter};
use crate::spool;

/// What a task is told.
#[derive(Debug)]
pub(super) enum Order {
    /// Say this to the runner, if one is connected.
    Ask(Ask),
    /// Output up to there is not needed any more.
    Trim(Stream, u64),
    /// Answer when everything ordered before was said.
    Said(oneshot::Sender<()>),
}

/// How a task begins.
pub(super) enum Begin {
    /// Starts a runner.
    Launch(Box<Launch>),
    /// Finds the runner again.
    Attach,
    /// Settles whether there ever was one.
    Void,
    /// The end is known.
    Over,
}

/// What runs are started with.
#[derive(Clone)]
pub(super) struct Means {
    pub(super) rules: Arc<Rules>,
    pub(super) starter: Starter,
    /// Where the workspace's defaults are kept.
    pub(super) dir: PathBuf,
}

/// See the module.
pub(super) struct Tending {
    pub(super) folder: PathBuf,
    pub(super) means: Means,
    pub(super) orders: mpsc::UnboundedReceiver<Order>,
    pub(super) news: Box<dyn Fn(RunNews) + Send + Sync>,
    /// The latest of each stream: said again to every new connection.
    pub(super) trims: BTreeMap<Stream, u64>,
    /// Its program is to end, which is said by a signal where the runner cannot be reached: asked since then.
    pub(super) ending: Option<Instant>,
    /// A runner's claim stood there once.
    pub(super) claimed: bool,
}

/// How long a runner that was asked to end its program has until it is ended itself.
const TO_END: Duration = limits::RUNNER_START.saturating_add(limits::TREE_KILL_WAIT.saturating_mul(2));

/// How a connection to a runner ended.
#[derive(PartialEq)]
enum Talked {
    /// It says that its end stands there.
    Ended,
    /// The connection broke.
    Broken,
    /// It was asked to end its program long ago, and whether it hears anything is not known.
    Doubtful,
    /// Nobody wants this try tended any more.
    Dropped,
}

impl Tending {
    /// Tends the try until its orders end.
    pub(super) async fn run(mut self, begin: Begin) {
        let over = match begin {
            Begin::Launch(launch) => self.launch(*launch).await,
            Begin::Attach => {
                self.claimed = true;
                self.follow(None).await
            }
            Begin::Void if self.void(None).await => self.follow(None).await,
            Begin::Void | Begin::Over => true,
        };
        if over {
            self.rest().await;
        }
    }

    /// As [`Tending::follow`].
    async fn launch(&mut self, launch: Launch) -> bool {
        let (folder, means) = (self.folder.clone(), self.means.clone());
        if let Err(failure) = blocking(move || prepare(&folder, &means, launch)).await {
            // No runner was started, so nothing can come of this folder.
            (self.news)(RunNews::Void(Some(failure)));
            return true;
        }
        let started = self.means.starter.start(&self.folder).await;
        self.follow(started.err().map(|e| not_started("the runner cannot be started", &e))).await
    }

    /// Puts the void claim in place, unless one stands there. Whether that is a runner's; else the void one is told.
    async fn void(&self, failure: Option<Failure>) -> bool {
        loop {
            let folder = self.folder.clone();
            let claimed = blocking(move || {
                files::make_dir(&folder).map_err(io::Error::other)?;
                run::claim(&folder, &Claim::Void)
            });
            match claimed.await {
                Ok(Claim::Void) => {
                    (self.news)(RunNews::Void(failure));
                    return false;
                }
                Ok(Claim::Runner(_)) => return true,
                // What it says cannot be known, but something does stand there.
                Err(e) if e.kind() == io::ErrorKind::InvalidData => return true,
                Err(e) => self.pause("claimed", &e).await,
            }
        }
    }

    /// Follows a runner until what became of it is told, or its connection is lost. With a failure, none may have started.
    /// Returns whether the try is over.
    async fn follow(&mut self, failure: Option<Failure>) -> bool {
        let mut patience = limits::SPOOL_RETRY;
        loop {
            let folder = self.folder.clone();
            match blocking(move || run::look(&folder)).await {
                Ok(Found::Lives(identity)) => match run::attach(&self.folder).await {
                    Ok(attached) => match self.talk(attached).await {
                        Talked::Ended => {}
                        Talked::Broken => {
                            tokio::time::sleep(limits::SPOOL_RETRY).await;
                            (self.news)(RunNews::Detached);
                            return false;
                        }
                        // One that lives says hello to another connection, and is asked again on that.
                        Talked::Doubtful => {}
                        Talked::Dropped => return false,
                    },
                    Err(e) => {
                        tracing::debug!("a runner cannot be reached: {e}");
                        self.unreached(&identity, patience).await;
                        patience = (patience * 2).min(limits::RUNNER_LOOK);
                    }
                },
                Ok(Found::Gone { end: Some(end), .. }) => {
                    (self.news)(RunNews::Ended(end));
                    return true;
                }
                Ok(Found::Gone { identity, end: None }) => {
                    self.gone(&identity).await;
                    return true;
                }
                Ok(Found::Void | Found::NotStarted) => {
                    if self.claimed {
                        // Somebody removed what stood there.
                        self.orphan().await;
                    }
                    if !self.void(failure.clone()).await {
                        return true;
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::InvalidData => {
                    let left = self.orphan().await;
                    self.tell_gone(json!({"runner": "unreadable", "why": e.to_string(), "left": left})).await;
                    return true;
                }
                Err(e) => self.pause("read", &e).await,
            }
        }
    }

    /// A runner that lives and does not answer may have lost its socket's name: a hang-up makes it listen again. It is ended
    /// by signals, if that is asked for, and looked at less and less often otherwise.
    async fn unreached(&mut self, identity: &Identity, patience: Duration) {
        let since = self.ending.map(|since| since.elapsed());
        run::signal(
            identity,
            match since {
                None => Signal::HangUp,
                Some(since) if since < TO_END => Signal::Term,
                Some(_) => Signal::Kill,
            },
        );
        let patience = if since.is_some() { limits::SPOOL_RETRY } else { patience };
        let asked = async {
            while since.is_some() || self.ending.is_none() {
                match self.orders.recv().await {
                    Some(order) => self.note(order),
                    None => std::future::pending().await,
                }
            }
        };
        // Either it is time to look again, or its end is wanted now.
        let _ = tokio::time::timeout(patience, asked).await;
    }

    /// Passes on what both sides say, as long as the connection stands.
    async fn talk(&mut self, mut attached: Attached) -> Talked {
        // What was asked of an earlier connection is asked again, where it still counts.
        while let Ok(order) = self.orders.try_recv() {
            self.note(order);
        }
        (self.news)(RunNews::Attached { written: attached.written.clone(), stalled: attached.stalled });
        let (asker, news) = (attached.asker(), &self.news);
        let (orders, trims, ending) = (&mut self.orders, &mut self.trims, &mut self.ending);
        let asked_to_end = Notify::new();
        let say = async {
            for (&stream, &offset) in &*trims {
                if asker.ask(&Ask::Trim { stream, offset }).await.is_err() {
                    return Talked::Broken;
                }
            }
            while let Some(order) = orders.recv().await {
                let ask = match order {
                    Order::Ask(ask) => {
                        if ask == (Ask::Kill {}) {
                            ending.get_or_insert_with(Instant::now);
                            asked_to_end.notify_one();
                        }
                        ask
                    }
                    Order::Trim(stream, offset) => {
                        trims.insert(stream, offset);
                        Ask::Trim { stream, offset }
                    }
                    Order::Said(tell) => {
                        // Whoever waited may have given up.
                        let _ = tell.send(());
                        continue;
                    }
                };
                if asker.ask(&ask).await.is_err() {
                    return Talked::Broken;
                }
            }
            Talked::Dropped
        };
        let hear = async {
            while let Some(tell) = attached.next().await {
                news(match tell {
                    Tell::Hello { written, stalled, .. } => RunNews::Attached { written, stalled },
                    Tell::Grew { written } => RunNews::Grew(written),
                    Tell::Stalled { since } => RunNews::Stalled(since),
                    Tell::Done { id, error } => RunNews::Done(id, error.map_or(Ok(()), Err)),
                    Tell::Ended {} => return Talked::Ended,
                });
            }
            Talked::Broken
        };
        // What it was asked may stand unread before a runner that was stopped, or that waits for its disk.
        let doubt = async {
            asked_to_end.notified().await;
            tokio::time::sleep(TO_END).await;
            Talked::Doubtful
        };
        // One task each way: neither waits for the other's peer to read.
        tokio::select! { talked = say => talked, talked = hear => talked, talked = doubt => talked }
    }

    /// An order while no runner is connected.
    fn note(&mut self, order: Order) {
        match order {
            Order::Ask(Ask::Kill {}) => _ = self.ending.get_or_insert_with(Instant::now),
            Order::Ask(_) => {}
            Order::Trim(stream, offset) => _ = self.trims.insert(stream, offset),
            Order::Said(tell) => _ = tell.send(()),
        }
    }

    /// The runner is gone without a word: ends what it left, and tells what is known.
    async fn gone(&self, identity: &Identity) {
        let left = loop {
            match run::kill_leftovers(&self.folder, identity).await {
                Ok(left) => break left,
                Err(e) => self.pause("ended", &e).await,
            }
        };
        let evidence = json!({"runner": "gone", "left": left});
        self.tell_gone(evidence).await;
    }

    /// Ends what runs for a folder whose claim says nothing.
    async fn orphan(&self) -> run::Leftovers {
        loop {
            match run::end_orphan(&self.folder).await {
                Ok(left) => return left,
                Err(e) => self.pause("ended", &e).await,
            }
        }
    }

    async fn tell_gone(&self, evidence: serde_json::Value) {
        let folder = self.folder.clone();
        let written = blocking(move || spool::written(&folder)).await.unwrap_or_default();
        (self.news)(RunNews::Gone { written, evidence });
    }

    /// The end is known: what is left to do is to give room back.
    async fn rest(mut self) {
        for (stream, offset) in std::mem::take(&mut self.trims) {
            self.trim(stream, offset).await;
        }
        while let Some(order) = self.orders.recv().await {
            match order {
                Order::Trim(stream, offset) => self.trim(stream, offset).await,
                other => self.note(other),
            }
        }
    }

    async fn trim(&self, stream: Stream, offset: u64) {
        let folder = self.folder.clone();
        // What stays is removed with the folder.
        let _ = blocking(move || spool::trim(&folder, stream, offset)).await;
    }

    async fn pause(&self, what: &str, error: &io::Error) {
        tracing::debug!("a run cannot be {what} yet: {error}");
        tokio::time::sleep(limits::SPOOL_RETRY).await;
    }
}

/// Writes what is to run into the folder. The lease's end is on the system's boot clock by now.
fn prepare(folder: &std::path::Path, means: &Means, launch: Launch) -> Result<(), Failure> {
    let Launch { operation, attempt, quota, lease } = launch;
    // Another policy may be in force since it was received.
    means.rules.judge(&operation)?;
    let workspace = perform::kept(&means.dir);
    let prepared = means.rules.executor.prepare(&operation, workspace.cwd.as_deref(), workspace.env)?;
    let Operation { request_id, run_id, request, .. } = operation;
    let run = run_id.ok_or_else(|| Failure::new(Code::InvalidRequest, "it names no run"))?;
    let (timeout, on_full) = match request {
        Request::Exec { timeout_ms, on_full, .. } => (timeout_ms.map(Duration::from_millis), on_full),
        _ => Default::default(),
    };
    let text = |path: PathBuf| {
        let told = path.into_os_string().into_string();
        told.map_err(|_| Failure::new(Code::InvalidRequest, "the folder's name is no text"))
    };
    let socket = run::socket(folder).map_err(not_prepared)?;
    let spec = Spec {
        version: VERSION,
        operation: request_id,
        run,
        attempt,
        program: prepared.program,
        cwd: text(prepared.cwd)?,
        env: prepared.env,
        timeout,
        on_full,
        quota,
        lease,
        socket: text(socket)?,
    };
    run::prepare(folder, &spec).map_err(not_prepared)
}

/// Nothing ran: the same may be asked again.
fn not_started(what: &str, error: &io::Error) -> Failure {
    Failure { retryable: true, ..io_error(what, error).into() }
}

fn not_prepared(error: FileError) -> Failure {
    match error {
        FileError::Io { source, .. } => not_started("the run's folder", &source),
        FileError::NotOurs { why, .. } => {
            Failure::new(Code::PermissionDenied, format!("the run's folder is not used, because {why}"))
        }
    }
}

/// Does work that blocks, on a thread that may.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        // Without a runtime nobody is left to go on.
        Err(lost) => match lost.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => std::future::pending().await,
        },
    }
}
