//! The seat's task: turns what the machine says into I/O, and everything that happens into inputs.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use holdfast_core::id::SeatId;
use holdfast_core::limits;
use holdfast_core::seat::{
    Advert, Answer, Ask, ConnId, Failed, Heard, Input, LockTry, Look, Output, PeerId, Seat, Taker, Want,
};
use holdfast_core::status::{ForwarderStatus, SeatState};
use holdfast_core::time::Now;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;

use super::door::{Asked, Door, Line};
use super::folder::{self, Folder};
use super::process::{self, Proof};
use super::serve::Conn;
use super::show::{self, Shown};
use super::{SeatHandle, SeatOptions};
use crate::channel::ChannelBackend;
use crate::engines::machine_name;
use crate::forwarder::{Forwarder, Means, News, idle};
use crate::link::clock::Turns;
use crate::status_hub::{StatusHub, unix_ms};

/// What reaches the task from elsewhere. Bounded by what the machine asked for: one connection, one question; and commands.
#[derive(Debug)]
pub(super) enum Event {
    Command(Command),
    Connected(ConnId),
    Lost(ConnId, Failed),
    Left(ConnId),
    /// Of the forwarder with this number.
    Forwarder(u64, News),
    /// The holder's process, as the system names it, for the question of this number.
    Reached(u64, Option<u32>),
    Heard(u64, Heard),
    Close,
}

#[derive(Debug)]
pub(super) enum Command {
    Want(Want, oneshot::Sender<()>),
    Release(oneshot::Sender<()>),
}

pub(super) struct Run {
    machine: Seat,
    turns: Turns,
    pub(super) backend: Arc<dyn ChannelBackend>,
    me: Taker,
    /// Absent when the folder cannot be used; then why.
    pub(super) folder: Result<Arc<Mutex<Folder>>, String>,
    door: Option<Door>,
    door_sender: mpsc::Sender<Asked>,
    peers: HashMap<PeerId, mpsc::Sender<Answer>>,
    pub(super) minted: u64,
    advert: Option<Advert>,
    pub(super) conn: Option<Conn>,
    pub(super) means: Means,
    /// What serves while the seat is held, since it first served; by number.
    pub(super) forwarder: Option<(u64, Forwarder)>,
    /// Boot time until which a stranger's use of the bot is worth a warning.
    pub(super) stranger: Option<Duration>,
    /// The question that is under way, and who was reached by it.
    asking: Option<(u64, AbortHandle)>,
    reached: Option<u32>,
    pub(super) events: mpsc::WeakUnboundedSender<Event>,
    known: Vec<oneshot::Sender<()>>,
    pub(super) shown: Shown,
}

pub(super) fn spawn(options: SeatOptions, hub: Arc<StatusHub>) -> SeatHandle {
    let mut turns = Turns::new();
    let now = turns.now();
    let mut random = [0; SeatId::RANDOM_BYTES];
    rand::fill(&mut random[..]);
    let me = Taker { instance: SeatId::mint(random), pid: std::process::id() };
    let place = folder::place(&options.state, &options.service, &options.bot);
    let folder = Folder::open(place, me.clone()).map(|f| Arc::new(Mutex::new(f))).map_err(|e| e.to_string());
    let (events, inbox) = mpsc::unbounded_channel();
    let (door_sender, asked) = mpsc::channel(limits::SEAT_PEERS);
    let machine = Seat::new(now, rand::random());
    let (shown, status) = Shown::new(now, &options, &machine.snapshot(now), hub);
    let view = options.means.desk.view();
    let run = Run {
        folder,
        me,
        door: None,
        door_sender,
        peers: HashMap::new(),
        minted: 0,
        advert: None,
        conn: None,
        means: options.means,
        forwarder: None,
        stranger: None,
        asking: None,
        reached: None,
        // Without a handle nobody can want the seat.
        events: events.downgrade(),
        known: Vec::new(),
        shown,
        machine,
        turns,
        backend: options.backend,
    };
    tokio::spawn(run.run(inbox, asked, view));
    SeatHandle { events, status }
}

impl Run {
    async fn run(
        mut self,
        mut inbox: mpsc::UnboundedReceiver<Event>,
        mut asked: mpsc::Receiver<Asked>,
        mut view: watch::Receiver<Arc<ForwarderStatus>>,
    ) {
        let mut config = self.means.config.clone();
        loop {
            let now = self.turn().await;
            self.publish(now).await;
            let wait = self.machine.poll_timeout(now).unwrap_or(limits::SHELL_TURN_MAX).min(limits::SHELL_TURN_MAX);
            tokio::select! {
                event = inbox.recv() => match event {
                    None | Some(Event::Close) => break,
                    Some(event) => {
                        // What is overdue goes first: after a freeze the seat is looked at before anything is believed.
                        let now = self.turn().await;
                        self.take(now, event).await;
                    }
                },
                Some(asked) = asked.recv() => {
                    let now = self.turn().await;
                    self.asked(now, asked);
                }
                // Both are only to be shown. Their other ends live as long as this does, or nobody wants the seat.
                Ok(()) = view.changed() => {}
                Ok(()) = config.changed() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
        self.cut().await;
        if let Some((_, asking)) = self.asking {
            asking.abort();
        }
    }

    /// What is due, and everything that follows from it.
    async fn turn(&mut self) -> Now {
        let now = self.turns.now();
        self.machine.handle_timeout(now);
        while let Some(output) = self.machine.poll_output() {
            if let Some(input) = self.output(output).await {
                self.machine.handle(now, input);
            }
        }
        now
    }

    async fn take(&mut self, now: Now, event: Event) {
        let input = match event {
            Event::Command(Command::Want(want, known)) => {
                self.known.push(known);
                Input::Want(want)
            }
            Event::Command(Command::Release(known)) => {
                self.known.push(known);
                Input::Release
            }
            Event::Connected(conn) => Input::Connected(conn),
            Event::Lost(conn, why) => {
                if let Some((_, forwarder)) = self.forwarder.as_ref().filter(|_| self.is_conn(conn)) {
                    forwarder.lost();
                    // What is finished now needs nothing that is heard.
                    if self.machine.state() == SeatState::Draining {
                        return;
                    }
                }
                Input::Lost(conn, why)
            }
            Event::Left(conn) => Input::Left(conn),
            Event::Forwarder(number, news) => match self.news(now, number, news).await {
                Some(input) => input,
                None => return,
            },
            Event::Heard(question, heard) if self.asks(question) => Input::Heard(heard),
            Event::Reached(question, pid) => {
                if self.asks(question) {
                    self.reached = pid;
                }
                return;
            }
            Event::Heard(..) | Event::Close => return,
        };
        self.machine.handle(now, input);
    }

    fn asks(&self, question: u64) -> bool {
        self.asking.as_ref().is_some_and(|(under_way, _)| *under_way == question)
    }

    fn asked(&mut self, now: Now, Asked { ask, answers }: Asked) {
        match ask {
            Ask::Status {} => {
                let advert = self.advert.clone().map(Box::new);
                let status = advert.map(|advert| Answer::Status { state: self.machine.state(), advert });
                // Whoever asked may have left, here and below.
                let _ = answers.try_send(status.unwrap_or(Answer::NotHolder {}));
            }
            Ask::Take { taker } => {
                self.minted += 1;
                let peer = PeerId(self.minted);
                self.peers.insert(peer, answers);
                self.machine.handle(now, Input::TakeAsked(peer, taker));
            }
        }
    }

    async fn output(&mut self, output: Output) -> Option<Input> {
        match output {
            Output::TryLock => {
                let tried = self.on_disk(Folder::try_lock).await;
                return Some(Input::Lock(tried.unwrap_or_else(LockTry::Broken)));
            }
            Output::Stamp(generation) => return Some(Input::Stamped(self.stamp(generation).await)),
            Output::Look(connected) => {
                let look = self.on_disk(move |folder| folder.look(connected)).await;
                return Some(Input::Looked(look.unwrap_or(Look::Replaced)));
            }
            Output::Connect(conn) => {
                self.ready(false).await;
                self.connect(conn);
            }
            Output::Serve(conn, generation) => {
                self.serve(conn, generation);
                self.ready(true).await;
            }
            Output::Leave(_) => match &self.forwarder {
                Some((_, forwarder)) => forwarder.leave(),
                None => self.part(),
            },
            Output::Cut(_) => self.cut().await,
            Output::Unlock(taker) => {
                self.cut().await;
                if let Some(door) = self.door.take() {
                    door.close();
                }
                self.advert = None;
                let _ = self.on_disk(move |folder| folder.unlock(taker.as_ref())).await;
            }
            Output::Abandon => {
                self.cut().await;
                self.door = None;
                self.advert = None;
                let _ = self.on_disk(Folder::abandon).await;
            }
            Output::Ask => self.ask(),
            Output::HangUp => self.hang_up(),
            Output::Kill => {
                let reached = self.reached;
                let killed = self.on_disk(move |folder| match folder.locker() {
                    Some(proof) => proof.kill(reached),
                    None => Err("it cannot be told which process holds the seat".into()),
                });
                let killed = killed.await.and_then(|result| result);
                tracing::warn!(?killed, "a person asked to end the process that holds the seat");
                return Some(Input::Killed(killed));
            }
            Output::Answer(peer, answer) => {
                let goes_on = matches!(answer, Answer::Draining {});
                let answers = if goes_on { self.peers.get(&peer).cloned() } else { self.peers.remove(&peer) };
                if let Some(answers) = answers {
                    let _ = answers.try_send(answer);
                }
            }
            Output::Told(told) => show::tell(&told),
            Output::Changed => {}
        }
        None
    }

    /// Does something with the folder, off the runtime's threads.
    pub(super) async fn on_disk<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut Folder) -> T + Send + 'static,
    ) -> Result<T, String> {
        let folder = Arc::clone(self.folder.as_ref().map_err(Clone::clone)?);
        tokio::task::spawn_blocking(move || act(&mut folder.lock())).await.map_err(|e| e.to_string())
    }

    async fn stamp(&mut self, generation: u64) -> Result<u64, String> {
        self.on_disk(move |folder| folder.stamp(generation)).await?.map_err(|e| e.to_string())?;
        let folder = self.folder.as_ref().map_err(Clone::clone)?.lock().path().to_path_buf();
        let door = Door::open(&folder, self.door_sender.clone());
        self.door = Some(door.map_err(|e| format!("other processes could not ask for the seat: {e}"))?);
        let proof = Proof::of_this_process();
        self.advert = Some(Advert {
            instance: self.me.instance.clone(),
            pid: proof.pid,
            process_started: proof.started,
            boot: process::boot(),
            host: machine_name(),
            generation,
            channel: None,
            transcript: None,
            backend_ready: false,
            since: unix_ms(),
        });
        self.advertise().await;
        Ok(generation)
    }

    async fn ready(&mut self, ready: bool) {
        if let Some(advert) = self.advert.as_mut().filter(|advert| advert.backend_ready != ready) {
            advert.backend_ready = ready;
            self.advertise().await;
        }
    }

    /// The advert says what is forwarded.
    async fn advertise_what(&mut self, passing: &ForwarderStatus) {
        let Some(advert) = self.advert.as_mut() else { return };
        let (channel, transcript) = show::named(passing);
        if (&advert.channel, &advert.transcript) != (&channel, &transcript) {
            (advert.channel, advert.transcript) = (channel, transcript);
            self.advertise().await;
        }
    }

    async fn advertise(&self) {
        if let Some(advert) = self.advert.clone() {
            // An advert is only for people.
            let _ = self.on_disk(move |folder| folder.advertise(&advert)).await;
        }
    }

    fn ask(&mut self) {
        self.hang_up();
        let Ok(folder) = &self.folder else { return };
        let folder = folder.lock().path().to_path_buf();
        self.minted += 1;
        let (question, events) = (self.minted, self.events.clone());
        let ask = Ask::Take { taker: self.me.clone() };
        let task = tokio::spawn(async move {
            if let Ok(mut line) = Line::ask(&folder, &ask).await {
                tell(&events, Event::Reached(question, line.peer));
                loop {
                    let heard = match line.answer().await {
                        Some(Answer::Draining {}) => Heard::Draining,
                        Some(Answer::Released {}) => Heard::Released,
                        Some(Answer::Busy {}) => Heard::Busy,
                        Some(Answer::NotHolder {} | Answer::Status { .. }) | None => break,
                    };
                    tell(&events, Event::Heard(question, heard));
                    if heard != Heard::Draining {
                        return;
                    }
                }
            }
            tell(&events, Event::Heard(question, Heard::Gone));
        });
        self.asking = Some((question, task.abort_handle()));
    }

    fn hang_up(&mut self) {
        self.reached = None;
        if let Some((_, asking)) = self.asking.take() {
            asking.abort();
        }
    }

    /// Shows what it is now to everybody who reads, then lets commands return.
    async fn publish(&mut self, now: Now) {
        let mut view = self.machine.snapshot(now);
        if self.shown.wonders(now, &view) {
            let other = self.on_disk(|folder| folder.advertised()).await;
            self.shown.learns(now, other.ok().flatten());
        }
        if self.forwarder.is_none() {
            self.means.desk.show(idle(&self.means.config.borrow()));
        }
        let passing = self.means.desk.view().borrow().clone();
        self.advertise_what(&passing).await;
        if self.stranger.is_some_and(|until| now.boot >= until) {
            self.stranger = None;
        }
        view.used_elsewhere |= self.stranger.is_some();
        self.shown.show(&view, self.advert.as_ref(), &passing);
        for known in self.known.drain(..) {
            // Whoever asked may have left.
            let _ = known.send(());
        }
    }
}

/// Without the task, or anybody who could want the seat, there is nobody to tell.
pub(super) fn tell(events: &mpsc::WeakUnboundedSender<Event>, event: Event) {
    if let Some(events) = events.upgrade() {
        let _ = events.send(event);
    }
}
