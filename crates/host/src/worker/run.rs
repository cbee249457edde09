//! The worker's task: turns what the machine says into I/O, and everything that happens into inputs.

use std::collections::{BTreeSet, HashMap};
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use holdfast_core::code::Code;
use holdfast_core::daemon::Compat;
use holdfast_core::id::{OperationId, RunId, RuntimeId};
use holdfast_core::limits;
use holdfast_core::operation::{Failure, Operation, Stream};
use holdfast_core::status::{LinkState, WorkerStatus};
use holdfast_core::time::Now;
use holdfast_core::wire::WireError;
use holdfast_core::wire::worker::{ControlFrame, WORKER_PATH};
use holdfast_core::worker::{Found, Input, LedgerError, Output, Piece, RunNews, Settings, Snapshot, Ticket, Worker};
use secrecy::ExposeSecret as _;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::ledger::{Ledger, Opened};
use super::perform::{PerformOptions, Performer};
use super::report::report;
use super::rules::Rules;
use super::strays;
use super::tend::{Begin, Means, blocking};
use super::tries::Tries;
use super::types::{Command, WorkerError, WorkerHandle, WorkerObserver, WorkerOptions};
use crate::files;
use crate::link::clock::Turns;
use crate::link::dial::{Destination, Route};
use crate::link::network::WayOut;
use crate::link::sleep::{self, Delay, Sleep};
use crate::link::socket::Happened;
use crate::link::sockets::{News, Sockets};
use crate::run;

/// What reaches the task from elsewhere. Each kind is bounded by what the machine asked for.
pub(super) enum Event {
    Command(Command),
    Committed(Ticket, Result<Vec<Found>, LedgerError>),
    /// Whether the ledger has room again, if that was in question, and how much is free on the disk.
    Storage {
        room: Option<bool>,
        free: Option<u64>,
    },
    Run(RunId, u32, RunNews),
    Piece(RunId, Stream, u64, Piece),
    Performed(OperationId, Result<Value, Failure>),
    /// What runs and no operation knows is over, or has had its time.
    NoStrays,
}

struct Shell {
    machine: Worker,
    turns: Turns,
    sockets: Sockets,
    ledger: Ledger,
    tries: Tries,
    performer: Arc<Performer>,
    performing: HashMap<OperationId, CancellationToken>,
    rules: Arc<Rules>,
    observer: Arc<dyn WorkerObserver>,
    events: mpsc::UnboundedSender<Event>,
    status: watch::Sender<Arc<WorkerStatus>>,
    dismissed: BTreeSet<OperationId>,
    unpublished: bool,
    published_at: Duration,
    sleep: Delay,
    way_out: WayOut,
    looked_at: Duration,
    data_dir: PathBuf,
    full: bool,
    /// When the disk is to be looked at next.
    look_at_disk: Duration,
    swept_at: Option<Duration>,
    /// Strays are being ended, and whether a start waits for that: a relay that sees a new ledger takes everything for over
    /// that it sent to the old one.
    held: Option<bool>,
}

/// Opens the ledger and starts the worker's task; the worker itself rests until [`WorkerHandle::start`], and tends at once
/// what an earlier process left. Blocks; needs a tokio runtime.
pub(crate) fn spawn(options: WorkerOptions, observer: Arc<dyn WorkerObserver>) -> Result<WorkerHandle, WorkerError> {
    let route = Route::new(&Destination {
        relay: &options.relay,
        path: WORKER_PATH,
        token: &options.token,
        compat: Compat::Holdfast,
        ca_file: options.ca_file.as_deref(),
        proxies: &options.proxies,
    })?;
    let (dir, runs) = (options.dirs.data.join("worker"), options.dirs.data.join("runs"));
    for folder in [&dir, &runs] {
        files::make_dir(folder)?;
        files::own_dir(folder)?;
    }
    let mut random = [0; RuntimeId::RANDOM_BYTES];
    getrandom::fill(&mut random).map_err(|_| WorkerError::Random)?;
    let owner = Sha256::digest(options.token.expose_secret().as_bytes());
    let Opened { ledger, stored, set_aside } = Ledger::open(&dir, owner.into())?;
    if let Some((why, to)) = set_aside {
        observer.set_aside(why, &to);
    }
    let tries_known = stored.rows.iter().filter_map(|living| {
        let run = living.row.operation.run_id.as_ref()?;
        run::folder(&runs, run, living.row.attempt).file_name().map(ToOwned::to_owned)
    });
    let strays = strays::find(&runs, &tries_known.collect()).map_err(files::FileError::io(&runs))?;

    let rules = Arc::new(Rules::new(&options));
    let settings = Settings { runtime: RuntimeId::mint(random), host: rules.host() };
    let mut turns = Turns::new();
    let now = turns.now();
    let machine = Worker::new(now, settings, stored, rand::random());
    let (events, inbox) = mpsc::unbounded_channel();
    let held = (!strays.is_empty()).then_some(false);
    if held.is_some() {
        let events = events.clone();
        tokio::spawn(async move {
            strays::end(strays).await;
            // Without the worker's task there is nobody to tell.
            let _ = events.send(Event::NoStrays);
        });
    }
    let means = Means { rules: Arc::clone(&rules), starter: options.starter, dir: dir.clone() };
    let tries = Tries::new(runs, means, events.clone(), run::boot_clock().saturating_sub(now.boot));
    let performer = Performer::new(PerformOptions {
        executor: options.executor,
        relay: options.relay,
        token: options.token,
        ca_file: options.ca_file,
        sync: options.sync,
        dir,
    });
    let status = report(&machine.snapshot(now), now, turns.unix_ms(), &BTreeSet::new());
    let (status, reader) = watch::channel(Arc::new(status));
    let (sleep, sleeps) = sleep::watch();
    let shell = Shell {
        machine,
        turns,
        sockets: Sockets::new(route),
        ledger,
        tries,
        performer: Arc::new(performer),
        performing: HashMap::new(),
        rules,
        observer,
        events: events.clone(),
        status,
        dismissed: BTreeSet::new(),
        unpublished: true,
        published_at: now.boot,
        sleep,
        way_out: WayOut::default(),
        looked_at: now.boot,
        data_dir: options.dirs.data,
        full: false,
        look_at_disk: now.boot,
        swept_at: None,
        held,
    };
    tokio::spawn(shell.run(inbox, sleeps));
    Ok(WorkerHandle { events, status: reader })
}

impl Shell {
    async fn run(mut self, mut inbox: mpsc::UnboundedReceiver<Event>, mut sleeps: mpsc::UnboundedReceiver<Sleep>) {
        loop {
            let now = self.turns.now();
            self.look_out(now);
            self.machine.handle_timeout(now);
            self.carry_out(now);
            // A relay in this process neither moves nor sleeps alone: nothing but the machine's own times is waited for.
            let local = self.sockets.route().is_local() && !self.machine.has_work();
            let turn = if local { limits::WORKER_ALIVE } else { limits::SHELL_TURN_MAX };
            let wait = self.machine.poll_timeout(now).unwrap_or(turn).min(turn).min(self.publish(now));
            tokio::select! {
                // The task holds a sender of its own, so the channel never ends.
                Some(event) = inbox.recv() => {
                    for event in batch(event, &mut inbox) {
                        if !self.take(event) {
                            return self.close().await;
                        }
                    }
                }
                news = self.sockets.next() => {
                    self.hear(news);
                    for _ in 1..limits::LINK_BATCH {
                        let Some(news) = self.sockets.try_next().await else { break };
                        self.hear(news);
                    }
                }
                Some(sleep) = sleeps.recv() => {
                    let now = self.turns.now();
                    self.machine.handle(now, match sleep {
                        Sleep::Announced => Input::SleepAnnounced,
                        Sleep::Over => Input::Wake,
                    });
                }
                () = tokio::time::sleep(wait) => {}
            }
            let now = self.turns.now();
            for (socket, traffic) in self.sockets.traffic() {
                self.machine.handle(now, Input::Traffic(socket, traffic));
            }
        }
    }

    /// Ends: what was handed to the ledger is still written; runs go on.
    async fn close(self) {
        for stop in self.performing.values() {
            stop.cancel();
        }
        let Shell { ledger, status, .. } = self;
        blocking(move || ledger.close()).await;
        // Whoever waits for the end waits for this.
        drop(status);
    }

    /// Looks, in idle turns, at the network, the disk and the age of what the ledger remembers.
    fn look_out(&mut self, now: Now) {
        if !self.sockets.route().is_local() && now.boot >= self.looked_at + limits::SHELL_TURN_MAX {
            self.looked_at = now.boot;
            if self.way_out.changed() {
                self.machine.handle(now, Input::NetworkChanged);
            }
        }
        if (self.full || self.machine.has_work()) && now.boot >= self.look_at_disk {
            self.look_at_disk = now.boot + limits::SPOOL_RETRY;
            let (events, folder) = (self.events.clone(), self.data_dir.clone());
            let ledger = self.full.then(|| self.ledger.clone());
            tokio::task::spawn_blocking(move || {
                let free = files::free_space(&folder);
                // Without the task there is nobody to tell, here and below.
                match ledger {
                    Some(ledger) => {
                        ledger.try_room(move |room| _ = events.send(Event::Storage { room: Some(room), free }))
                    }
                    None => _ = events.send(Event::Storage { room: None, free }),
                }
            });
        }
        if self.swept_at.is_none_or(|at| now.boot >= at + limits::LEDGER_SWEEP_EVERY) {
            self.swept_at = Some(now.boot);
            let (ledger, now) = (self.ledger.clone(), self.turns.unix_ms());
            tokio::spawn(async move {
                if let Err(e) = ledger.sweep(now).await {
                    tracing::warn!("the ledger was not swept: {e}");
                }
            });
        }
    }

    /// One event. `false` ends the task.
    fn take(&mut self, event: Event) -> bool {
        let now = self.turns.now();
        let input = match event {
            Event::Command(Command::Close) => return false,
            Event::Command(Command::Start) if self.held.is_some() => {
                self.held = Some(true);
                return true;
            }
            Event::NoStrays => match self.held.take() {
                Some(true) => Input::Start,
                _ => return true,
            },
            Event::Command(Command::Start) => Input::Start,
            Event::Command(Command::Stop) => {
                self.held = self.held.map(|_| false);
                Input::Stop
            }
            Event::Command(Command::Cut(lasting)) => Input::Cut(lasting),
            Event::Command(Command::Cancel(id)) => Input::Cancel(id),
            Event::Command(Command::CancelAll) => Input::CancelAll,
            Event::Command(Command::Dismiss(id)) => {
                self.dismiss(id);
                return true;
            }
            Event::Committed(ticket, outcome) => {
                if outcome == Err(LedgerError::Full) {
                    self.full = true;
                    self.look_at_disk = now.boot;
                }
                Input::Committed(ticket, outcome)
            }
            Event::Storage { room, free } => {
                self.full = room.map_or(self.full, |room| !room);
                Input::Storage { full: self.full, free }
            }
            Event::Run(run, attempt, news) => Input::Run(run, attempt, news),
            Event::Piece(run, stream, offset, piece) => Input::Piece(run, stream, offset, piece),
            Event::Performed(id, outcome) => {
                self.performing.remove(&id);
                Input::Performed(id, outcome)
            }
        };
        self.machine.handle(now, input);
        true
    }

    /// Remembered as long as it would be shown.
    fn dismiss(&mut self, id: OperationId) {
        let Snapshot { living, ended, .. } = self.machine.snapshot(self.turns.now());
        self.dismissed.insert(id);
        self.dismissed.retain(|id| living.iter().chain(&ended).any(|shown| shown.id == *id));
        self.unpublished = true;
    }

    fn hear(&mut self, news: News) {
        let now = self.turns.now();
        let (socket, happened) = match news {
            News::Happened(socket, happened) => (socket, happened),
            News::Dialled(socket, Ok(())) => return self.machine.handle(now, Input::Opened(socket)),
            News::Dialled(socket, Err(error)) => return self.machine.handle(now, Input::Refused(socket, error)),
            News::SaidGoodbye => return,
        };
        let input = match &happened {
            Happened::Text(text) => self.read(socket, text),
            Happened::Binary(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => self.read(socket, text),
                Err(_) => Input::Unreadable(socket, WireError::InvalidUtf8, None),
            },
            Happened::Unreadable(error) => Input::Unreadable(socket, *error, None),
            Happened::Closed(word) => Input::Closed(socket, word.clone()),
            Happened::Control | Happened::Drained => return,
        };
        self.machine.handle(now, input);
    }

    fn read(&self, socket: holdfast_core::daemon::SocketId, text: &str) -> Input<'static> {
        match ControlFrame::decode(text) {
            Ok(frame) => {
                let verdict = match &frame {
                    ControlFrame::Operation(operation) => self.rules.judge(operation),
                    _ => Ok(()),
                };
                Input::Frame(socket, frame, verdict)
            }
            Err(error) => Input::Unreadable(socket, error, ControlFrame::request_id(text)),
        }
    }

    /// Does what the machine says, then gives every socket with room what there is to write.
    fn carry_out(&mut self, now: Now) {
        while let Some(output) = self.machine.poll_output() {
            self.output(output);
        }
        let Shell { sockets, machine, .. } = self;
        sockets.feed(|socket| machine.poll_transmit(now, socket));
        // Writing makes room, and what is read into it.
        while let Some(output) = self.machine.poll_output() {
            self.output(output);
        }
    }

    fn output(&mut self, output: Output) {
        match output {
            Output::Dial(socket) => self.sockets.dial(socket),
            Output::Close(socket, code, reason) => self.sockets.close(socket, code, reason),
            Output::Drop(socket) => self.sockets.drop(socket),
            Output::Ping(socket) => self.sockets.ping(socket),
            Output::Commit(ticket, changes) => {
                let events = self.events.clone();
                self.ledger.commit(changes, move |outcome| _ = events.send(Event::Committed(ticket, outcome)));
            }
            Output::Launch(launch) => self.tries.launch(*launch),
            Output::Attach(run, attempt) => self.tries.begin(run, attempt, Begin::Attach),
            Output::Void(run, attempt) => self.tries.begin(run, attempt, Begin::Void),
            Output::Tell(run, attempt, ask) => self.tries.ask(run, attempt, ask),
            Output::Read(read) => self.tries.read(read),
            Output::Trim(run, attempt, stream, offset) => self.tries.trim(run, attempt, stream, offset),
            Output::Remove(run, attempt) => self.tries.remove(run, attempt),
            Output::Perform(operation) => self.perform(*operation),
            Output::Abandon(id) => {
                if let Some(stop) = self.performing.get(&id) {
                    stop.cancel();
                }
            }
            Output::Step(step) => self.observer.step(step),
            Output::Told(told) => self.observer.told(told),
            Output::Changed | Output::Stopped => self.unpublished = true,
            Output::AllowSleep => {
                let (said, sleep) = (self.tries.said(), self.sleep.clone());
                tokio::spawn(async move {
                    said.await;
                    sleep.allow();
                });
            }
        }
    }

    fn perform(&mut self, operation: Operation) {
        let stop = CancellationToken::new();
        self.performing.insert(operation.request_id.clone(), stop.clone());
        let (performer, rules, events) = (Arc::clone(&self.performer), Arc::clone(&self.rules), self.events.clone());
        tokio::spawn(async move {
            let panicked = |_| Err(Failure::new(Code::InternalError, "the operation failed unexpectedly"));
            // It may have waited since it was allowed.
            let performed = match rules.judge(&operation) {
                Err(refused) => Err(refused),
                Ok(()) => {
                    let performed = AssertUnwindSafe(performer.perform(&operation, &stop)).catch_unwind().await;
                    performed.unwrap_or_else(panicked)
                }
            };
            let _ = events.send(Event::Performed(operation.request_id, performed));
        });
    }

    /// Publishes the state if it is new and its time has come; returns how long it may still wait.
    fn publish(&mut self, now: Now) -> Duration {
        if !self.unpublished {
            return Duration::MAX;
        }
        let state = self.machine.state();
        if state == LinkState::Stopped && self.sockets.say_goodbye() {
            return Duration::MAX;
        }
        let due = self.published_at + limits::STATUS_PACE;
        if state == self.status.borrow().state && now.boot < due {
            return due - now.boot;
        }
        self.unpublished = false;
        self.published_at = now.boot;
        let status = report(&self.machine.snapshot(now), now, self.turns.unix_ms(), &self.dismissed);
        self.observer.status(&status);
        self.status.send_replace(Arc::new(status));
        Duration::MAX
    }
}

/// An event and those that wait behind it, at most [`limits::LINK_BATCH`] in all; whatever is not taken stays in line.
fn batch<T>(first: T, inbox: &mut mpsc::UnboundedReceiver<T>) -> impl Iterator<Item = T> {
    std::iter::once(first).chain(std::iter::from_fn(|| inbox.try_recv().ok()).take(limits::LINK_BATCH - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_event_is_lost_between_two_batches() {
        let (events, mut inbox) = mpsc::unbounded_channel();
        for number in 1..=2 * limits::LINK_BATCH {
            events.send(number).unwrap();
        }
        let first = inbox.try_recv().unwrap();
        let taken: Vec<_> = batch(first, &mut inbox).collect();
        assert_eq!(taken, (1..=limits::LINK_BATCH).collect::<Vec<_>>());
        assert_eq!(inbox.try_recv(), Ok(limits::LINK_BATCH + 1));
    }
}
