//! A runner's decisions: when its program is read, when it is ended and why, and what the worker hears.

use std::collections::VecDeque;
use std::time::Duration;

use super::inputs::{Inputs, Offer};
use super::io::{RunnerInput, RunnerOutput, Signal};
use super::{Ask, End, Lease, Program, Room, Segment, Spec, Tell};
use crate::id::OperationId;
use crate::limits;
use crate::operation::{Exit, Stream, Streams};
use crate::status::UnixMs;
use crate::time::{Due, Now, TimerTable};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// The lease expires.
    Lease,
    /// The program's time is over.
    Timeout,
    /// Whoever still holds the pipes after the program ended had its time.
    Drain,
    /// Whoever was asked to end is ended.
    Kill,
    /// Whoever was ended and still does not go is left behind.
    GiveUp,
    /// Growth may be told again.
    News,
    /// The disk may have room again.
    Retry,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The program is being started.
    Starting,
    /// It runs.
    Running,
    /// It ended by itself; its pipes are not.
    Draining,
    /// The tree was told to end.
    Ending,
    /// Nothing of the tree lives; what is in its pipes is read.
    ReadingOut,
    /// The end is being written.
    Over,
}

/// The machine of one runner. `now.boot` is the system's boot clock, by which leases are told.
#[derive(Debug)]
pub struct Runner {
    phase: Phase,
    timers: TimerTable<Timer>,
    out: VecDeque<RunnerOutput>,
    room: Room,
    inputs: Inputs,
    lease: Option<Lease>,
    timeout: Option<Duration>,
    open: Vec<Stream>,
    /// Whether closing the input is a hang-up.
    terminal: bool,
    disk_full: bool,
    stalled: bool,
    /// Growth that was not told yet.
    untold: bool,
    end: End,
}

impl Runner {
    /// The machine of what is to run. It starts the program, unless the lease is over already.
    pub fn new(now: Now, spec: &Spec) -> Runner {
        let open = match spec.program {
            Program::Pipes { .. } => vec![Stream::Stdout, Stream::Stderr],
            Program::Pty { .. } => vec![Stream::Pty],
            Program::Port(_) => vec![Stream::Stdout],
        };
        let mut runner = Runner {
            phase: Phase::Starting,
            timers: TimerTable::default(),
            out: VecDeque::new(),
            room: Room::new(spec.on_full, spec.quota, &open),
            inputs: Inputs::default(),
            lease: spec.lease,
            timeout: spec.timeout,
            open,
            terminal: matches!(spec.program, Program::Pty { .. }),
            disk_full: false,
            stalled: false,
            untold: false,
            end: End {
                exit: None,
                written: Streams::new(),
                not_started: None,
                timed_out: false,
                killed: false,
                interrupted: false,
                lease_expired: None,
                dropped: 0,
                escaped: Vec::new(),
                at: UnixMs::default(),
            },
        };
        runner.watch_lease(now);
        runner.handle_timeout(now);
        if runner.phase == Phase::Starting {
            runner.out.push_back(RunnerOutput::Start);
        }
        runner
    }

    /// Something happens. What was due before it comes first.
    pub fn handle(&mut self, now: Now, input: RunnerInput) {
        // A lease that ends meanwhile finds it started.
        if input == RunnerInput::Started {
            self.phase = Phase::Running;
        }
        self.handle_timeout(now);
        match input {
            RunnerInput::Started => {
                if let Some(timeout) = self.timeout {
                    self.timers.set(Timer::Timeout, Due::awake(now, timeout));
                }
            }
            RunnerInput::NotStarted(why) => {
                self.end.not_started.get_or_insert(why);
                self.finish();
            }
            RunnerInput::Wrote { stream, bytes } => {
                let removed = self.room.wrote(stream, bytes);
                self.remove(removed);
                self.untold = true;
                if self.timers.get(&Timer::News).is_none() {
                    self.tell_growth(now);
                }
            }
            RunnerInput::DiskFull => {
                self.disk_full = true;
                // Nothing is given up for an end that finds no room: it is small, and would be given up for again and again.
                let given_up = if self.phase == Phase::Over { None } else { self.room.disk_full() };
                match given_up {
                    Some(segment) => {
                        self.remove(vec![segment]);
                        self.out.push_back(RunnerOutput::Retry);
                    }
                    None => self.timers.set(Timer::Retry, Due::boot(now, limits::SPOOL_RETRY)),
                }
            }
            RunnerInput::DiskRoom => self.disk_full = false,
            RunnerInput::Closed(stream) => {
                self.open.retain(|open| *open != stream);
                if self.open.is_empty() {
                    match self.phase {
                        Phase::Draining => self.end_tree(now, Signal::Term),
                        Phase::ReadingOut => self.finish(),
                        _ => {}
                    }
                }
            }
            RunnerInput::Exited(exit) => self.exited(now, exit),
            RunnerInput::Gone { escaped } => self.gone(escaped),
            RunnerInput::Given { id, error } => self.given(id, error),
            RunnerInput::Asked(ask) => self.asked(now, ask),
            RunnerInput::Interrupted => self.interrupted(now),
        }
        self.tell_stalled();
    }

    /// Lets everything that is due happen.
    pub fn handle_timeout(&mut self, now: Now) {
        while let Some(timer) = self.timers.expired(now) {
            match timer {
                Timer::Lease => self.lease_over(now),
                Timer::Timeout if self.phase == Phase::Running => {
                    self.end.timed_out = true;
                    self.end_tree(now, Signal::Term);
                }
                Timer::Timeout => {}
                Timer::Drain => self.end_tree(now, Signal::Term),
                Timer::Kill => {
                    self.out.push_back(RunnerOutput::Signal(Signal::Kill));
                    self.timers.set(Timer::GiveUp, Due::awake(now, limits::TREE_KILL_WAIT));
                }
                // A program that the kernel does not let go is not over.
                Timer::GiveUp if self.end.exit.is_none() => {}
                Timer::GiveUp => self.read_out(),
                Timer::News => {
                    if self.untold {
                        self.tell_growth(now);
                    }
                }
                Timer::Retry if self.phase == Phase::Over => self.finish(),
                Timer::Retry => self.out.push_back(RunnerOutput::Retry),
            }
        }
    }

    /// Whether it was ended by somebody or by its time: then what left its tree is ended too. A program that ended by itself may
    /// leave one behind on purpose.
    pub const fn ends_everything(&self) -> bool {
        self.end.killed || self.end.timed_out || self.end.lease_expired.is_some()
    }

    /// What is to be done next.
    pub fn poll_output(&mut self) -> Option<RunnerOutput> {
        self.out.pop_front()
    }

    /// Time until something is due.
    pub fn poll_timeout(&self, now: Now) -> Option<Duration> {
        self.timers.earliest(now)
    }

    /// Bytes of output that may be read from the program now.
    pub fn room(&self) -> u64 {
        match self.phase {
            _ if self.disk_full => 0,
            Phase::ReadingOut | Phase::Over => u64::MAX,
            _ => self.room.room(),
        }
    }

    /// Written so far.
    pub fn written(&self) -> Streams {
        self.room.written()
    }

    fn asked(&mut self, now: Now, ask: Ask) {
        match ask {
            Ask::Input { id, data, close } => match self.offer(&id) {
                true if close && self.terminal => {
                    self.given(id, None);
                    self.end_tree(now, Signal::HangUp);
                }
                true => self.out.push_back(RunnerOutput::Give { id, data, close }),
                false => {}
            },
            Ask::Resize { id, cols, rows } => {
                if self.offer(&id) {
                    self.out.push_back(RunnerOutput::Resize { id, cols, rows });
                }
            }
            Ask::Kill {} => {
                // One that ended by itself was not killed.
                self.end.killed |= matches!(self.phase, Phase::Starting | Phase::Running);
                self.end_tree(now, Signal::Term);
            }
            Ask::Lease { lease } => {
                // A lease that is over is over.
                if self.end.lease_expired.is_none()
                    && self.lease.is_some_and(|current| lease.generation >= current.generation)
                {
                    self.lease = Some(lease);
                    self.watch_lease(now);
                    self.handle_timeout(now);
                }
            }
            Ask::Quota { bytes } => {
                let removed = self.room.quota(bytes);
                self.remove(removed);
            }
            Ask::Trim { stream, offset } => {
                let removed = self.room.acked(stream, offset);
                let freed = !removed.is_empty();
                self.remove(removed);
                if self.disk_full && freed {
                    self.timers.set(Timer::Retry, Due::boot(now, Duration::ZERO));
                    self.handle_timeout(now);
                }
            }
        }
    }

    /// Whoever asks the runner to end may have asked its program too, which was faster then: what a signal ended just before
    /// did not end by itself.
    fn interrupted(&mut self, now: Now) {
        let runs = matches!(self.phase, Phase::Starting | Phase::Running);
        let cut_off = self.phase == Phase::Draining && self.end.exit.is_some_and(|exit| exit.signal.is_some());
        if runs || cut_off {
            (self.end.killed, self.end.interrupted) = (true, true);
        }
        self.end_tree(now, Signal::Term);
    }

    /// Whether an input is to be given now; otherwise it is answered, or will be.
    fn offer(&mut self, id: &OperationId) -> bool {
        let error = match self.inputs.offer(id) {
            Offer::New => return true,
            Offer::Waits => return false,
            Offer::Known(error) => error,
            Offer::TooMany => Some("too much input waits for the program; it may be sent again".into()),
        };
        self.out.push_back(RunnerOutput::Tell(Tell::Done { id: id.clone(), error }));
        false
    }

    fn given(&mut self, id: OperationId, error: Option<String>) {
        if self.inputs.answer(&id, error.clone()) {
            self.out.push_back(RunnerOutput::Tell(Tell::Done { id, error }));
        }
    }

    /// A lease that an announced sleep holds ends by awake time: the worker that announced it may never come back.
    fn watch_lease(&mut self, now: Now) {
        match self.lease.map(|lease| lease.until) {
            Some(Some(until)) => self.timers.set(Timer::Lease, Due::Boot(until)),
            Some(None) => self.timers.set(Timer::Lease, Due::awake(now, limits::WORKER_LEASE)),
            None => self.timers.stop(&Timer::Lease),
        }
    }

    /// Only what has not ended by itself before is ended by its lease.
    fn lease_over(&mut self, now: Now) {
        if self.end.exit.is_none() {
            self.end.lease_expired = self.lease.map(|lease| lease.generation);
        }
        match self.phase {
            Phase::Starting => {
                self.end.not_started = Some("its lease was over before it could start".into());
                self.finish();
            }
            _ => self.end_tree(now, Signal::Term),
        }
    }

    fn exited(&mut self, now: Now, exit: Exit) {
        self.end.exit = Some(exit);
        self.timers.stop(&Timer::Timeout);
        if self.phase == Phase::Ending && [Timer::Kill, Timer::GiveUp].iter().all(|t| self.timers.get(t).is_none()) {
            // The kernel let it go late. What is left of its tree has as much time as it would have had.
            self.timers.set(Timer::GiveUp, Due::awake(now, limits::TREE_KILL_WAIT));
        }
        if self.phase != Phase::Running {
            return;
        }
        self.phase = Phase::Draining;
        match self.open.is_empty() {
            true => self.end_tree(now, Signal::Term),
            false => self.timers.set(Timer::Drain, Due::awake(now, limits::RUNNER_DRAIN)),
        }
    }

    /// Tells the tree to end, once.
    fn end_tree(&mut self, now: Now, signal: Signal) {
        if matches!(self.phase, Phase::Starting | Phase::Running | Phase::Draining) {
            self.phase = Phase::Ending;
            self.timers.stop(&Timer::Drain);
            self.timers.set(Timer::Kill, Due::awake(now, limits::TREE_KILL_WAIT));
            self.out.push_back(RunnerOutput::Signal(signal));
        }
    }

    fn gone(&mut self, mut escaped: Vec<u32>) {
        escaped.truncate(limits::RUNNER_ESCAPED);
        self.end.escaped = escaped;
        self.read_out();
    }

    fn read_out(&mut self) {
        self.timers.stop(&Timer::Kill);
        self.timers.stop(&Timer::GiveUp);
        if self.phase != Phase::Ending {
            return;
        }
        self.phase = Phase::ReadingOut;
        match self.open.is_empty() {
            true => self.finish(),
            false => self.out.push_back(RunnerOutput::ReadOut),
        }
    }

    fn finish(&mut self) {
        self.phase = Phase::Over;
        self.timers = TimerTable::default();
        self.end.written = self.room.written();
        self.end.dropped = self.room.dropped();
        self.out.push_back(RunnerOutput::Finish(self.end.clone()));
    }

    fn remove(&mut self, segments: Vec<Segment>) {
        self.out.extend(segments.into_iter().map(RunnerOutput::Remove));
    }

    fn tell_growth(&mut self, now: Now) {
        self.untold = false;
        self.out.push_back(RunnerOutput::Tell(Tell::Grew { written: self.room.written() }));
        self.timers.set(Timer::News, Due::awake(now, limits::RUNNER_NEWS));
    }

    fn tell_stalled(&mut self) {
        let stalled = self.room() == 0;
        if stalled != self.stalled {
            self.stalled = stalled;
            self.out.push_back(RunnerOutput::Stalled(stalled));
        }
    }
}
