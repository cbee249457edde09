//! The link's task: turns what the machine says into I/O, and everything that happens into inputs.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use holdfast_core::daemon::{Daemon, Input, Output, Progress, Settings, SocketId};
use holdfast_core::id::CallId;
use holdfast_core::limits;
use holdfast_core::status::LinkState;
use holdfast_core::time::Now;
use holdfast_core::wire::LINK_PATH;
use tokio::sync::{mpsc, watch};

use super::clock::Turns;
use super::dial::{Destination, Route};
use super::network::WayOut;
use super::sleep::Sleep;
use super::socket::Happened;
use super::sockets::{News, Sockets};
use super::spill::Spill;
use super::{Command, LinkError, LinkHandle, LinkObserver, LinkOptions, LinkSnapshot};
use crate::exec::{CallSink, Executor, Outcome, ProbeSink, Update};

/// What reaches the task from elsewhere. Each kind is bounded by what the machine asked for: calls, dials, files.
pub(super) enum Event {
    Command(Command),
    Probed(SocketId),
    Finished(CallId, Outcome),
    Stored(CallId, bool),
    Loaded(CallId, Option<Arc<str>>),
}

struct Link {
    machine: Daemon,
    turns: Turns,
    spill: Spill,
    executor: Arc<dyn Executor>,
    observer: Arc<dyn LinkObserver>,
    url: Arc<str>,
    events: mpsc::UnboundedSender<Event>,
    news: Arc<dyn Fn(CallId, Update) + Send + Sync>,
    status: watch::Sender<Arc<LinkSnapshot>>,
    sockets: Sockets,
    unpublished: bool,
    published_at: Duration,
    sleep: super::sleep::Delay,
    way_out: WayOut,
    looked_at: Duration,
}

/// Starts the link's task; the link itself rests until [`LinkHandle::start`]. Needs a tokio runtime.
pub fn spawn(
    options: LinkOptions,
    executor: Arc<dyn Executor>,
    observer: Arc<dyn LinkObserver>,
) -> Result<LinkHandle, LinkError> {
    let route = Route::new(&Destination {
        relay: &options.relay,
        path: LINK_PATH,
        token: &options.token,
        compat: options.compat,
        ca_file: options.ca_file.as_deref(),
        proxies: &options.proxies,
    })?;
    let spill = Spill::open(&options.data_dir)?;
    let mut turns = Turns::new();
    let settings = Settings {
        instance: options.instance.clone(),
        compat: options.compat,
        features: options.features,
        version: env!("CARGO_PKG_VERSION").into(),
        advertised: executor.advertised(),
    };
    let now = turns.now();
    let machine = Daemon::new(now, settings, rand::random());
    let url: Arc<str> = options.relay.as_str().trim_end_matches('/').into();
    let snapshot = LinkSnapshot {
        link: machine.snapshot(now),
        taken: now,
        taken_at: turns.unix_ms(),
        route: None,
        url: url.clone(),
    };
    let (status, status_reader) = watch::channel(Arc::new(snapshot));
    let (events, inbox) = mpsc::unbounded_channel();
    let (progress, progress_inbox) = mpsc::channel(limits::LINK_PROGRESS_QUEUE);
    let news = {
        let events = events.clone();
        Arc::new(move |id, update| match update {
            // Progress is lossy: the next report says more. Without the task there is nobody to tell.
            Update::Progress(report) => drop(progress.try_send((id, report))),
            Update::Finished(outcome) => drop(events.send(Event::Finished(id, outcome))),
        })
    };
    let handle = LinkHandle { events: events.clone(), status: status_reader };
    let (sleep, sleeps) = super::sleep::watch();
    let link = Link {
        machine,
        turns,
        spill,
        executor,
        observer,
        url,
        sleep,
        events,
        news,
        status,
        sockets: Sockets::new(route),
        unpublished: true,
        published_at: now.boot,
        way_out: WayOut::default(),
        looked_at: now.boot,
    };
    tokio::spawn(link.run(inbox, progress_inbox, sleeps));
    Ok(handle)
}

impl Link {
    async fn run(
        mut self,
        mut inbox: mpsc::UnboundedReceiver<Event>,
        mut progress: mpsc::Receiver<(CallId, Progress)>,
        mut sleeps: mpsc::UnboundedReceiver<Sleep>,
    ) {
        loop {
            let now = self.turns.now();
            self.look_out(now);
            self.machine.handle_timeout(now);
            self.carry_out(now);
            let wait = self.machine.poll_timeout(now).unwrap_or(limits::SHELL_TURN_MAX);
            let wait = wait.min(limits::SHELL_TURN_MAX).min(self.publish(now));
            tokio::select! {
                event = inbox.recv() => {
                    // The task holds a sender of its own, so the channel never ends.
                    let Some(event) = event else { return };
                    if !self.take(event) {
                        return;
                    }
                    // Calls that are about to end go first, so that their results leave with the same write.
                    others_first().await;
                    for _ in 1..limits::LINK_BATCH {
                        let Ok(event) = inbox.try_recv() else { break };
                        if !self.take(event) {
                            return;
                        }
                    }
                }
                Some((id, report)) = progress.recv() => {
                    let now = self.turns.now();
                    self.machine.handle(now, Input::Progress(id, report));
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
            self.count_traffic();
        }
    }

    /// Looks, once per idle turn, whether the network is another one.
    fn look_out(&mut self, now: Now) {
        if self.sockets.route().is_local() || now.boot < self.looked_at + limits::SHELL_TURN_MAX {
            return;
        }
        self.looked_at = now.boot;
        if self.way_out.changed() {
            self.machine.handle(now, Input::NetworkChanged);
        }
    }

    /// One event. `false` ends the task.
    fn take(&mut self, event: Event) -> bool {
        let now = self.turns.now();
        let input = match event {
            Event::Command(Command::Close) => return false,
            Event::Command(Command::Start) => Input::Start,
            Event::Command(Command::Stop { patient }) => Input::Stop { patient },
            Event::Command(Command::Cut(lasting)) => Input::Cut(lasting),
            Event::Command(Command::NetworkChanged) => Input::NetworkChanged,
            Event::Command(Command::Advertised) => Input::Advertise(self.executor.advertised()),
            Event::Command(Command::Wake) => Input::Wake,
            Event::Probed(socket) => Input::Probed(socket),
            Event::Finished(id, outcome) => Input::Finished(id, outcome),
            Event::Stored(id, ok) => Input::Stored(id, ok),
            Event::Loaded(id, text) => Input::Loaded(id, text),
        };
        self.machine.handle(now, input);
        true
    }

    fn hear(&mut self, news: News) {
        let now = self.turns.now();
        let (socket, happened) = match news {
            News::Happened(socket, happened) => (socket, happened),
            News::Dialled(socket, Ok(())) => return self.machine.handle(now, Input::Opened(socket)),
            News::Dialled(socket, Err(error)) => return self.machine.handle(now, Input::Refused(socket, error)),
            News::SaidGoodbye => return,
        };
        match happened {
            Happened::Text(text) => self.machine.handle(now, Input::Frame(socket, &text)),
            Happened::Binary(bytes) => match std::str::from_utf8(&bytes) {
                Ok(text) => self.machine.handle(now, Input::Frame(socket, text)),
                Err(_) => {
                    self.machine.handle(now, Input::Unreadable(socket, holdfast_core::wire::WireError::InvalidUtf8))
                }
            },
            Happened::Control => self.machine.handle(now, Input::Control(socket)),
            Happened::Unreadable(error) => self.machine.handle(now, Input::Unreadable(socket, error)),
            Happened::Closed(word) => self.machine.handle(now, Input::Closed(socket, word)),
            Happened::Drained => {}
        }
    }

    fn count_traffic(&mut self) {
        let now = self.turns.now();
        for (id, traffic) in self.sockets.traffic() {
            self.machine.handle(now, Input::Traffic(id, traffic));
        }
    }

    /// Does what the machine says, then gives every socket with room what there is to write.
    fn carry_out(&mut self, now: Now) {
        while let Some(output) = self.machine.poll_output() {
            self.output(output);
        }
        let Link { sockets, machine, .. } = self;
        sockets.feed(|socket| machine.poll_transmit(now, socket));
        // Writing makes steps of the timeline.
        while let Some(output) = self.machine.poll_output() {
            self.output(output);
        }
    }

    fn output(&mut self, output: Output) {
        let events = self.events.clone();
        match output {
            Output::Dial(socket) => self.sockets.dial(socket),
            Output::Close(socket, code, reason) => self.sockets.close(socket, code, reason),
            Output::Drop(socket) => self.sockets.drop(socket),
            Output::Probe(socket) => {
                self.executor.probe(ProbeSink::new(move || drop(events.send(Event::Probed(socket)))));
            }
            Output::Run(run) => {
                let sink = CallSink::new(run.id.clone(), self.news.clone());
                self.executor.start(run, sink);
            }
            Output::Cancel(id, why) => self.executor.cancel(&id, why),
            Output::Store(id, text) => {
                let spill = self.spill.clone();
                tokio::task::spawn_blocking(move || {
                    let ok = spill.store(&id, &text).is_ok();
                    let _ = events.send(Event::Stored(id, ok));
                });
            }
            Output::Load(id) => {
                let spill = self.spill.clone();
                tokio::task::spawn_blocking(move || {
                    let text = spill.load(&id);
                    let _ = events.send(Event::Loaded(id, text));
                });
            }
            Output::Remove(id) => {
                let spill = self.spill.clone();
                tokio::task::spawn_blocking(move || spill.remove(&id));
            }
            Output::Step(step) => self.observer.step(step),
            Output::Told(told) => self.observer.told(told),
            Output::Changed | Output::Stopped => self.unpublished = true,
            Output::AllowSleep => self.sleep.allow(),
        }
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
        if state == self.status.borrow().link.state && now.boot < due {
            return due - now.boot;
        }
        self.unpublished = false;
        self.published_at = now.boot;
        self.status.send_replace(Arc::new(LinkSnapshot {
            link: self.machine.snapshot(now),
            taken: now,
            taken_at: self.turns.unix_ms(),
            route: Some(self.sockets.route().name()),
            url: self.url.clone(),
        }));
        Duration::MAX
    }
}

/// Lets every task that is ready run once. Unlike `yield_now` it does not ask the operating system for events in between.
async fn others_first() {
    let mut yielded = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}
