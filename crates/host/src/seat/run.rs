//! The seat's task: turns what the machine says into I/O, and everything that happens into inputs.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use futures_util::FutureExt as _;
use holdfast_core::id::SeatId;
use holdfast_core::limits;
use holdfast_core::seat::{
    Advert, Answer, Ask, ConnId, Failed, Heard, Input, Look, Output, PeerId, Seat, Taker, Unusable, Want,
};
use holdfast_core::status::{ChannelNotice, ForwarderStatus, SeatState};
use holdfast_core::time::Now;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;

use super::disk::OnDisk;
use super::door::{Asked, Door, Line};
use super::folder::{self, Folder, unusable};
use super::process::{self, Proof};
use super::serve::Conn;
use super::show::{self, Shown};
use super::{SeatHandle, SeatOptions};
use crate::channel::ChannelBackend;
use crate::engines::machine_name;
use crate::files::FileError;
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
    #[cfg(test)]
    Defect,
    Close,
}

#[derive(Debug)]
pub(super) enum Command {
    Want(Want, oneshot::Sender<()>),
    Release(oneshot::Sender<()>),
    Look(oneshot::Sender<()>),
}

/// A question to the holder.
struct Question {
    number: u64,
    task: AbortHandle,
    /// Tells it that the seat is still wanted.
    confirm: Option<oneshot::Sender<()>>,
}

pub(super) struct Run {
    machine: Seat,
    turns: Turns,
    pub(super) backend: Arc<dyn ChannelBackend>,
    me: Taker,
    pub(super) disk: OnDisk,
    door: Option<Door>,
    door_sender: mpsc::Sender<Asked>,
    peers: HashMap<PeerId, mpsc::Sender<Answer>>,
    pub(super) minted: u64,
    advert: Option<Advert>,
    pub(super) conn: Option<Conn>,
    pub(super) means: Means,
    /// What serves while the seat is held, since it first served; by number.
    pub(super) forwarder: Option<(u64, Forwarder)>,
    /// What a forwarder opens the store for.
    pub(super) opening: Option<ConnId>,
    /// What is being finished.
    pub(super) leaving: Option<ConnId>,
    /// Boot time until which a stranger's use of the bot is worth a warning.
    pub(super) stranger: Option<Duration>,
    /// The question that is under way, and who was reached by it.
    asking: Option<Question>,
    reached: Option<u32>,
    /// How many notices wait among the events.
    pub(super) notices: Arc<AtomicUsize>,
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
    let disk = OnDisk::new(place, me.clone());
    let (events, inbox) = mpsc::unbounded_channel();
    let (door_sender, asked) = mpsc::channel(limits::SEAT_PEERS);
    let machine = Seat::new(now, rand::random());
    let (shown, status) = Shown::new(now, &options, &machine.snapshot(now), hub);
    let view = options.means.desk.view();
    let run = Run {
        disk,
        me,
        door: None,
        door_sender,
        peers: HashMap::new(),
        minted: 0,
        advert: None,
        conn: None,
        means: options.means,
        forwarder: None,
        opening: None,
        leaving: None,
        stranger: None,
        asking: None,
        reached: None,
        notices: Arc::default(),
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
        let mut pause = limits::SEAT_BACKOFF_MIN;
        while AssertUnwindSafe(self.serve_all(&mut inbox, &mut asked, &mut view)).catch_unwind().await.is_err() {
            // A defect: nothing of what it was doing can be gone on with.
            tracing::error!("the seat's task failed unexpectedly and begins anew");
            self.shown.noticed(ChannelNotice::Failed, "it failed unexpectedly and begins anew");
            self.begin_anew().await;
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(limits::SEAT_BACKOFF_MAX);
        }
        self.cut().await;
        self.hang_up();
    }

    /// Lets go of everything, and wants the seat if it was wanted.
    async fn begin_anew(&mut self) {
        let view = self.machine.snapshot(self.turns.now());
        let want = match view.state {
            SeatState::Standby if view.waits => Some(Want::Wait),
            SeatState::Claiming | SeatState::Connecting | SeatState::Serving => Some(Want::IfVacant),
            SeatState::Standby | SeatState::Off | SeatState::Draining | SeatState::Failed => None,
        };
        self.cut().await;
        self.hang_up();
        (self.door, self.advert) = (None, None);
        self.peers.clear();
        self.disk.finish(Folder::abandon).await;
        let now = self.turns.now();
        self.machine = Seat::new(now, rand::random());
        if let Some(want) = want {
            self.machine.handle(now, Input::Want(want));
        }
        self.publish(now).await;
    }

    /// Until nobody can want the seat any more.
    async fn serve_all(
        &mut self,
        inbox: &mut mpsc::UnboundedReceiver<Event>,
        asked: &mut mpsc::Receiver<Asked>,
        view: &mut watch::Receiver<Arc<ForwarderStatus>>,
    ) {
        let mut config = self.means.config.clone();
        loop {
            let now = self.turn().await;
            self.publish(now).await;
            let wait = self.machine.poll_timeout(now).unwrap_or(limits::SHELL_TURN_MAX).min(limits::SHELL_TURN_MAX);
            tokio::select! {
                event = inbox.recv() => match event {
                    None | Some(Event::Close) => return,
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
            Event::Command(Command::Look(known)) => {
                self.known.push(known);
                self.shown.forgets();
                return;
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
            #[cfg(test)]
            Event::Defect => panic!("a defect"),
            Event::Heard(..) | Event::Close => return,
        };
        self.machine.handle(now, input);
    }

    fn asks(&self, question: u64) -> bool {
        self.asking.as_ref().is_some_and(|under_way| under_way.number == question)
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
            // Means nothing by itself.
            Ask::Confirm {} => {}
        }
    }

    async fn output(&mut self, output: Output) -> Option<Input> {
        match output {
            Output::TryLock => {
                return Some(Input::Lock(self.disk.try_lock().await));
            }
            Output::Stamp(generation) => return Some(Input::Stamped(self.stamp(generation).await)),
            Output::Look(connected) => {
                return Some(Input::Looked(self.look(connected).await));
            }
            Output::Open(conn, generation) => return self.open(conn, generation),
            Output::Connect(conn) => {
                self.ready(false).await;
                self.connect(conn);
            }
            Output::Serve(conn, _) => {
                self.serve(conn);
                self.ready(true).await;
            }
            Output::Leave(conn) => {
                self.leaving = Some(conn);
                match &self.forwarder {
                    Some((_, forwarder)) => forwarder.leave(),
                    None => self.part(),
                }
            }
            Output::Cut(_) => self.cut().await,
            Output::Unlock(taker) => {
                self.cut().await;
                let door = self.door.take();
                self.advert = None;
                let unlock = move |folder: &mut Folder| {
                    if let Some(door) = door {
                        door.close();
                    }
                    folder.unlock(taker.as_ref());
                };
                self.disk.finish(unlock).await;
            }
            Output::Abandon => {
                self.cut().await;
                self.door = None;
                self.advert = None;
                self.disk.finish(Folder::abandon).await;
            }
            Output::Ask => self.ask(),
            Output::Confirm => {
                if let Some(confirm) = self.asking.as_mut().and_then(|question| question.confirm.take()) {
                    // A question that broke is told by itself.
                    let _ = confirm.send(());
                }
            }
            Output::HangUp => self.hang_up(),
            Output::Kill => {
                let reached = self.reached;
                let killed = self.disk.act(move |folder| match folder.locker() {
                    Some(proof) => proof.kill(reached),
                    None => Err("it cannot be told which process holds the seat".into()),
                });
                let killed = killed.await.map_err(|why| why.reason).and_then(|result| result);
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
            Output::Told(told) => self.shown.tell(&told),
            Output::Changed => {}
        }
        None
    }

    pub(super) async fn look(&self, connected: Option<ConnId>) -> Look {
        self.disk.act(move |folder| folder.look(connected)).await.unwrap_or(Look::Unknown { connected })
    }

    async fn stamp(&mut self, generation: u64) -> Result<u64, Unusable> {
        let sender = self.door_sender.clone();
        let stamp = move |folder: &mut Folder| {
            folder.stamp(generation)?;
            let door = Door::open(folder.path(), sender).map_err(FileError::io(folder.path())).map_err(|error| {
                let Unusable { code, reason, for_good } = unusable(error);
                Unusable { code, reason: format!("other processes could not ask for the seat: {reason}"), for_good }
            })?;
            Ok::<_, Unusable>((door, Proof::of_this_process()))
        };
        let (door, proof) = self.disk.act(stamp).await??;
        self.door = Some(door);
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
            let _ = self.disk.act(move |folder| folder.advertise(&advert)).await;
        }
    }

    fn ask(&mut self) {
        self.hang_up();
        let folder = self.disk.path().to_path_buf();
        self.minted += 1;
        let (number, events) = (self.minted, self.events.clone());
        let ask = Ask::Take { taker: self.me.clone() };
        let (confirm, wanted) = oneshot::channel();
        let task = tokio::spawn(async move {
            let mut wanted = Some(wanted);
            if let Ok(mut line) = Line::ask(&folder, &ask).await {
                tell(&events, Event::Reached(number, line.peer));
                loop {
                    let heard = match line.answer().await {
                        Some(Answer::Ready {}) => Heard::Ready,
                        Some(Answer::Draining {}) => Heard::Draining,
                        Some(Answer::Released {}) => Heard::Released,
                        Some(Answer::Busy {}) => Heard::Busy,
                        Some(Answer::NotHolder {} | Answer::Status { .. }) | None => break,
                    };
                    tell(&events, Event::Heard(number, heard));
                    match (heard, wanted.take()) {
                        (Heard::Ready, Some(wanted)) => {
                            if wanted.await.is_err() || line.say(&Ask::Confirm {}).await.is_err() {
                                break;
                            }
                        }
                        (Heard::Ready, None) => break,
                        (Heard::Draining, _) => {}
                        _ => return,
                    }
                }
            }
            tell(&events, Event::Heard(number, Heard::Gone));
        });
        self.asking = Some(Question { number, task: task.abort_handle(), confirm: Some(confirm) });
    }

    fn hang_up(&mut self) {
        self.reached = None;
        if let Some(question) = self.asking.take() {
            question.task.abort();
        }
    }

    /// Shows what it is now to everybody who reads, then lets commands return.
    async fn publish(&mut self, now: Now) {
        let mut view = self.machine.snapshot(now);
        if self.shown.wonders(now, &view) {
            let other = self.disk.act(|folder| folder.advertised()).await;
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
