//! Several processes, one disk, one clock.

mod frozen;
mod model;
mod scenes;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::*;
use crate::code::Code;
use crate::id::SeatId;
use crate::limits;
use crate::status::SeatState;
use crate::time::Now;

pub(super) const MS: Duration = Duration::from_millis(1);
pub(super) const S: Duration = Duration::from_secs(1);

fn id(at: usize) -> SeatId {
    SeatId::mint([at as u8; SeatId::RANDOM_BYTES])
}

pub(super) fn no_room() -> Unusable {
    Unusable::for_now(Code::StorageFull, "the disk is full")
}

/// What the processes share.
#[derive(Debug, Default)]
pub(super) struct Disk {
    /// Which file the path of the lock names.
    file: u32,
    locks: BTreeMap<u32, usize>,
    pub(super) record: Record,
    /// Who listens at the holder's socket.
    listens: Option<usize>,
    /// Which process life stamped which generation.
    stamped: BTreeMap<u64, u64>,
    /// Nothing can be written.
    pub(super) full: bool,
    /// Nothing is answered.
    pub(super) silent: bool,
}

#[derive(Debug)]
pub(super) struct Process {
    pub(super) seat: Seat,
    life: u64,
    pub(super) frozen: bool,
    locked: Option<u32>,
    inbox: VecDeque<Input>,
    /// Who knocked and is not answered yet.
    knocks: VecDeque<u64>,
    /// The ask that is under way.
    asking: Option<u64>,
    pub(super) opened: bool,
    pub(super) trying: Option<ConnId>,
    /// How often it connected.
    pub(super) logins: usize,
    pub(super) leaving: Option<ConnId>,
    pub(super) serving: Option<(ConnId, u64)>,
    pub(super) told: Vec<Told>,
    pub(super) kills: Vec<usize>,
}

impl Process {
    fn new(now: Now, life: u64) -> Process {
        Process {
            seat: Seat::new(now, life),
            life,
            frozen: false,
            locked: None,
            inbox: VecDeque::new(),
            knocks: VecDeque::new(),
            asking: None,
            opened: false,
            trying: None,
            logins: 0,
            leaving: None,
            serving: None,
            told: Vec::new(),
            kills: Vec::new(),
        }
    }
}

#[derive(Debug)]
pub(super) struct World {
    pub(super) now: Now,
    pub(super) disk: Disk,
    pub(super) all: Vec<Process>,
    /// Who asked and whom, by the number the holder knows them by.
    asks: BTreeMap<u64, (usize, usize)>,
    lives: u64,
    /// Connections succeed and end by themselves.
    pub(super) smooth: bool,
}

impl World {
    pub(super) fn new(processes: usize) -> World {
        let now = Now::at(S * 1000);
        let all = (0..processes).map(|i| Process::new(now, i as u64)).collect();
        World { now, disk: Disk::default(), all, asks: BTreeMap::new(), lives: processes as u64, smooth: true }
    }

    pub(super) fn state(&self, at: usize) -> SeatState {
        self.all[at].seat.state()
    }

    pub(super) fn view(&self, at: usize) -> SeatView {
        self.all[at].seat.snapshot(self.now)
    }

    /// Something happens to one process, and everything that follows at once.
    pub(super) fn input(&mut self, at: usize, input: Input) {
        self.all[at].inbox.push_back(input);
        self.settle();
    }

    pub(super) fn take(&mut self, at: usize) {
        self.input(at, Input::Want(Want::Take { force: false }));
    }

    /// kill -9, and a new life that wants nothing yet.
    pub(super) fn kill(&mut self, at: usize) {
        if let Some(file) = self.all[at].locked {
            self.disk.locks.remove(&file);
        }
        if self.disk.listens == Some(at) {
            self.disk.listens = None;
        }
        let (told, life) = (std::mem::take(&mut self.all[at].told), self.lives);
        self.lives += 1;
        self.all[at] = Process { told, ..Process::new(self.now, life) };
        let asked = self.asks.iter().filter(|(_, (_, holder))| *holder == at).map(|(ask, _)| *ask);
        for ask in asked.collect::<Vec<_>>() {
            self.hear(ask, Heard::Gone);
        }
    }

    /// The lock file is taken away and another one put there.
    pub(super) fn replace_lock(&mut self) {
        self.disk.file += 1;
    }

    /// Time passes, timer by timer.
    pub(super) fn pass(&mut self, lasting: Duration) {
        let end = self.now.boot + lasting;
        loop {
            self.settle();
            let awake = self.all.iter().filter(|p| !p.frozen);
            let next = awake.filter_map(|p| p.seat.poll_timeout(self.now)).min();
            match next.filter(|wait| self.now.boot + *wait <= end) {
                Some(wait) => self.now = self.now.plus(wait.max(MS)),
                None => break,
            }
        }
        self.now = self.now.plus(end.saturating_sub(self.now.boot));
        self.settle();
    }

    /// Until nothing more happens at this moment.
    pub(super) fn settle(&mut self) {
        for _ in 0..10_000 {
            let mut quiet = true;
            for at in 0..self.all.len() {
                if self.all[at].frozen {
                    continue;
                }
                self.all[at].seat.handle_timeout(self.now);
                quiet &= !self.carry_out(at);
                if let Some(ask) = self.all[at].knocks.pop_front() {
                    self.hear(ask, Heard::Ready);
                    quiet = false;
                }
                if let Some(input) = self.all[at].inbox.pop_front() {
                    self.all[at].seat.handle(self.now, input);
                    self.carry_out(at);
                    quiet = false;
                }
                if self.smooth {
                    quiet &= !self.go_well(at);
                }
            }
            if quiet {
                return;
            }
        }
        panic!("it never settles: {self:#?}");
    }

    fn go_well(&mut self, at: usize) -> bool {
        let process = &mut self.all[at];
        let good = [process.trying.take().map(Input::Connected), process.leaving.take().map(Input::Left)];
        let any = good.iter().any(Option::is_some);
        process.inbox.extend(good.into_iter().flatten());
        any
    }

    fn carry_out(&mut self, at: usize) -> bool {
        let mut any = false;
        while let Some(output) = self.all[at].seat.poll_output() {
            any = true;
            if let Some(input) = self.output(at, output) {
                self.all[at].seat.handle(self.now, input);
            }
        }
        any
    }

    fn output(&mut self, at: usize, output: Output) -> Option<Input> {
        let file = self.disk.file;
        let wall = self.now.boot.as_millis() as u64;
        match output {
            Output::TryLock => {
                let me = id(at);
                return Some(Input::Lock(match self.disk.locks.get(&file) {
                    _ if self.disk.full => LockTry::Broken(no_room()),
                    _ if self.disk.record.kept_from(&me, wall) => LockTry::Reserved,
                    Some(_) => LockTry::Held,
                    None => {
                        self.disk.locks.insert(file, at);
                        self.all[at].locked = Some(file);
                        LockTry::Ours { last: self.disk.record.generation }
                    }
                }));
            }
            Output::Stamp(generation) => {
                assert_eq!(self.disk.locks.get(&file), Some(&at), "only who holds the lock writes");
                assert!(generation > self.disk.record.generation);
                if self.disk.full {
                    return Some(Input::Stamped(Err(no_room())));
                }
                self.disk.record = Record { generation, reserved_for: None };
                let before = self.disk.stamped.insert(generation, self.all[at].life);
                assert_eq!(before, None, "generation {generation} was used before");
                self.disk.listens = Some(at);
                return Some(Input::Stamped(Ok(generation)));
            }
            Output::Look(connected) => {
                let generation = self.disk.record.generation;
                let intact = self.all[at].locked == Some(file);
                let look = if self.disk.silent {
                    Look::Unknown { connected }
                } else if intact {
                    Look::Intact { generation, connected }
                } else {
                    Look::Replaced
                };
                return Some(Input::Looked(look));
            }
            Output::Open(conn, generation) => {
                assert_eq!(self.disk.stamped.get(&generation), Some(&self.all[at].life));
                self.all[at].opened = !self.disk.full;
                return Some(Input::Opened(conn, if self.disk.full { Err(no_room()) } else { Ok(()) }));
            }
            Output::Connect(conn) => {
                assert!(std::mem::take(&mut self.all[at].opened), "what it keeps is opened before it logs in");
                assert!(self.owns_a_lock(at), "it connects only with the lock");
                assert_eq!(self.all[at].serving, None);
                self.all[at].trying = Some(conn);
                self.all[at].logins += 1;
            }
            Output::Serve(conn, generation) => {
                assert_eq!(self.all[at].locked, Some(file), "it serves only with the lock");
                assert_eq!(self.disk.stamped.get(&generation), Some(&self.all[at].life));
                self.all[at].serving = Some((conn, generation));
            }
            Output::Leave(conn) => {
                self.all[at].trying = None;
                self.all[at].leaving = Some(conn);
            }
            Output::Cut(_) => self.disconnected(at),
            Output::Unlock(taker) => {
                assert!(self.owns_a_lock(at));
                self.disconnected(at);
                let until = wall + limits::SEAT_RESERVED.as_millis() as u64;
                self.disk.record.reserved_for = taker.map(|t| Reserved { instance: t.instance, until });
                self.unlock(at);
            }
            Output::Abandon => {
                assert!(self.all[at].serving.is_none(), "cut before it is abandoned");
                self.unlock(at);
            }
            Output::Ask => {
                let ask = self.lives;
                self.lives += 1;
                self.all[at].asking = Some(ask);
                self.asks.insert(ask, (at, self.disk.listens.unwrap_or(at)));
                match self.disk.listens {
                    Some(holder) => self.all[holder].knocks.push_back(ask),
                    None => self.hear(ask, Heard::Gone),
                }
            }
            Output::Confirm => {
                // One whose holder died meanwhile leads nowhere.
                let ask = self.all[at].asking?;
                let taker = Taker { instance: id(at), pid: at as u32 };
                self.all[self.asks[&ask].1].inbox.push_back(Input::TakeAsked(PeerId(ask), taker));
            }
            Output::HangUp => self.all[at].asking = None,
            Output::Kill => {
                let Some(holder) = self.disk.locks.get(&file).copied() else { return Some(Input::Killed(Ok(()))) };
                self.all[at].kills.push(holder);
                self.kill(holder);
                return Some(Input::Killed(Ok(())));
            }
            Output::Answer(PeerId(ask), answer) => self.hear(
                ask,
                match answer {
                    Answer::Draining {} => Heard::Draining,
                    Answer::Released {} => Heard::Released,
                    Answer::Busy {} => Heard::Busy,
                    _ => Heard::Gone,
                },
            ),
            Output::Told(told) => self.all[at].told.push(told),
            Output::Changed => {}
        }
        None
    }

    fn owns_a_lock(&self, at: usize) -> bool {
        self.all[at].locked.is_some_and(|file| self.disk.locks.get(&file) == Some(&at))
    }

    fn unlock(&mut self, at: usize) {
        if let Some(file) = self.all[at].locked.take() {
            self.disk.locks.remove(&file);
        }
        if self.disk.listens == Some(at) {
            self.disk.listens = None;
        }
    }

    fn hear(&mut self, ask: u64, heard: Heard) {
        let Some(process) = self.asks.get(&ask).map(|(at, _)| &mut self.all[*at]) else { return };
        if process.asking == Some(ask) {
            process.inbox.push_back(Input::Heard(heard));
            if heard == Heard::Gone {
                process.asking = None;
            }
        }
    }

    /// Whatever connection a process had is gone.
    pub(super) fn disconnected(&mut self, at: usize) {
        let process = &mut self.all[at];
        (process.trying, process.leaving, process.serving) = (None, None, None);
    }
}
