//! Random histories of clients, a store that refuses, a relay and a worker that are killed, and a network that loses:
//! whatever happens, what `docs/PROMISES.md` says of operations holds at the relay.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proptest::prelude::*;

use super::super::fake::Segment;
use super::super::*;
use super::desk::*;
use super::worker::{Ledger, Worker, byte};
use crate::id::{OperationId, RunId};
use crate::limits;
use crate::operation::{Outcome, State, Stream};
use crate::wire::worker::ControlFrame;

#[derive(Debug, Clone)]
enum Op {
    Start {
        key: Option<u8>,
        session: Option<u8>,
        hasty: bool,
    },
    Input {
        at: usize,
    },
    Cancel {
        at: usize,
    },
    CancelSession {
        session: u8,
    },
    /// The worker dials if it has no socket, or all the same.
    Dial {
        anew: bool,
    },
    /// Everything goes its way for some rounds.
    Flow {
        rounds: usize,
        piece: u64,
    },
    /// The worker's side of the socket is gone; the relay hears of it, or does not yet.
    Cut {
        heard: bool,
    },
    /// The relay gives frames to the network.
    Write {
        frames: usize,
    },
    /// The network delivers to the worker.
    Down {
        frames: usize,
    },
    /// The network delivers to the relay.
    Up {
        frames: usize,
        piece: u64,
    },
    Store {
        commits: usize,
    },
    Refuse {
        commits: usize,
    },
    Advance {
        at: usize,
        bytes: u64,
        gives_up: bool,
        ends: bool,
    },
    Reoffer,
    WorkerFull {
        full: bool,
    },
    /// Of the commits in flight the first ones happened.
    RelayKilled {
        happened: usize,
    },
    LedgerLost,
    LedgerBack,
    Pass {
        millis: u64,
    },
}

fn op() -> impl Strategy<Value = Op> {
    let key = proptest::option::weighted(0.3, 0u8..3);
    let session = proptest::option::weighted(0.3, 0u8..2);
    prop_oneof![
        6 => (key, session, proptest::bool::weighted(0.2)).prop_map(|(key, session, hasty)| Op::Start { key, session, hasty }),
        2 => (0usize..16).prop_map(|at| Op::Input { at }),
        2 => (0usize..16).prop_map(|at| Op::Cancel { at }),
        1 => (0u8..2).prop_map(|session| Op::CancelSession { session }),
        6 => proptest::bool::weighted(0.15).prop_map(|anew| Op::Dial { anew }),
        8 => (1usize..6, 1u64..40).prop_map(|(rounds, piece)| Op::Flow { rounds, piece }),
        2 => any::<bool>().prop_map(|heard| Op::Cut { heard }),
        10 => (1usize..8).prop_map(|frames| Op::Write { frames }),
        10 => (1usize..8).prop_map(|frames| Op::Down { frames }),
        12 => (1usize..8, 1u64..40).prop_map(|(frames, piece)| Op::Up { frames, piece }),
        12 => (1usize..6).prop_map(|commits| Op::Store { commits }),
        3 => (1usize..3).prop_map(|commits| Op::Refuse { commits }),
        10 => (0usize..16, 0u64..60, proptest::bool::weighted(0.15), proptest::bool::weighted(0.2))
            .prop_map(|(at, bytes, gives_up, ends)| Op::Advance { at, bytes, gives_up, ends }),
        2 => Just(Op::Reoffer),
        1 => proptest::bool::weighted(0.3).prop_map(|full| Op::WorkerFull { full }),
        1 => (0usize..6).prop_map(|happened| Op::RelayKilled { happened }),
        1 => proptest::bool::weighted(0.5).prop_map(|lost| if lost { Op::LedgerLost } else { Op::LedgerBack }),
        3 => (1u64..6_000).prop_map(|millis| Op::Pass { millis }),
    ]
}

struct World {
    desk: Desk,
    worker: Worker,
    /// Ledgers that were set aside.
    aside: Vec<Ledger>,
    ledgers: u8,
    socket: Option<SocketId>,
    down: VecDeque<ControlFrame>,
    named: usize,
    /// Whose cancel was asked for; it may be forgotten by a store that refuses and a relay that is killed.
    called_off: BTreeSet<OperationId>,
    /// What was handed to a socket, or stood as sent when a relay was killed: the next one cannot know.
    handed: BTreeSet<OperationId>,
    /// Ends as they were first seen in the store.
    ends: BTreeMap<OperationId, Outcome>,
}

impl World {
    fn new() -> World {
        let mut desk = Desk::new();
        desk.mood = Mood::Slow;
        let mut worker = Worker::default();
        worker.ledger = Ledger::new(1);
        World {
            desk,
            worker,
            aside: Vec::new(),
            ledgers: 1,
            socket: None,
            down: VecDeque::new(),
            named: 0,
            called_off: BTreeSet::new(),
            handed: BTreeSet::new(),
            ends: BTreeMap::new(),
        }
    }

    fn run(&mut self, op: &Op) {
        match *op {
            Op::Start { key, session, hasty } => {
                self.named += 1;
                // Keys come with the same request, mostly.
                let line = key.map_or_else(|| format!("run {}", self.named), |key| format!("keyed {key}"));
                self.desk.start_with(|start| {
                    start.key = key.map(|key| key.to_string().into());
                    start.session_id = session.filter(|_| key.is_none()).map(|session| session.to_string());
                    start.ttl = hasty.then_some(S * 2);
                    start.request = exec(&line);
                });
            }
            Op::Input { at } => {
                let runs: Vec<RunId> =
                    self.desk.control.views().iter().filter_map(|view| view.record.operation.run_id.clone()).collect();
                if let Some(run) = runs.get(at % runs.len().max(1)) {
                    let request = serde_json::from_str(r#"{"type":"exec_stdin","data":"eA=="}"#).unwrap();
                    self.desk.start_with(|start| (start.run_id, start.request) = (Some(run.clone()), request));
                }
            }
            Op::Cancel { at } => {
                let all: Vec<OperationId> = self.desk.store.rows.keys().cloned().collect();
                if let Some(id) = all.get(at % all.len().max(1)) {
                    self.desk.cancel(id);
                    self.called_off.insert(id.clone());
                }
            }
            Op::CancelSession { session } => {
                self.named += 1;
                self.desk.cancel_session(&session.to_string(), &format!("c{}", self.named));
            }
            Op::Dial { anew } => {
                if self.socket.is_none() || anew {
                    self.dial();
                }
            }
            Op::Flow { rounds, piece } => {
                for _ in 0..rounds {
                    self.write(8);
                    self.run(&Op::Down { frames: 8 });
                    self.up(8, piece);
                    self.run(&Op::Store { commits: 8 });
                }
            }
            Op::Cut { heard } => self.cut(heard),
            Op::Write { frames } => self.write(frames),
            Op::Down { frames } => {
                for frame in self.down.drain(..frames.min(self.down.len())) {
                    self.worker.hear(frame);
                }
            }
            Op::Up { frames, piece } => self.up(frames, piece),
            Op::Store { commits } => {
                for _ in 0..commits {
                    self.desk.answer_one();
                }
            }
            Op::Refuse { commits } => {
                for _ in 0..commits {
                    let Some((ticket, _)) = self.desk.waiting.pop_front() else { break };
                    self.desk.tell(Input::Committed { ticket, result: Err(Refused::Full) });
                }
            }
            Op::Advance { at, bytes, gives_up, ends } => self.worker.advance(at, bytes, gives_up, ends),
            Op::Reoffer => self.worker.reoffer(),
            Op::WorkerFull { full } => self.worker.full = full,
            Op::RelayKilled { happened } => {
                for (_, changes) in self.desk.waiting.drain(..).take(happened) {
                    _ = self.desk.store.commit(&changes);
                }
                self.cut(false);
                let before = self.handed.len();
                let rows = self.desk.store.rows.values().filter(|row| row.record.outcome.is_none());
                let stand_as_sent = rows.filter(|row| row.record.sent_to.is_some());
                self.handed.extend(stand_as_sent.map(|row| row.record.operation.request_id.clone()));
                assert!(self.handed.len() - before <= limits::CONTROL_UNRECEIVED_MAX, "too many stand as sent");
                self.desk.crash();
            }
            Op::LedgerLost => {
                self.cut(true);
                self.ledgers += 1;
                let fresh = Ledger::new(self.ledgers);
                self.aside.push(std::mem::replace(&mut self.worker.ledger, fresh));
            }
            Op::LedgerBack => {
                if let Some(old) = self.aside.pop() {
                    self.cut(true);
                    self.aside.insert(0, std::mem::replace(&mut self.worker.ledger, old));
                }
            }
            Op::Pass { millis } => self.pass(S * u32::try_from(millis).unwrap() / 1000),
        }
        self.look();
    }

    fn dial(&mut self) {
        self.down.clear();
        self.worker.dial();
        self.socket = Some(self.desk.connect());
    }

    fn cut(&mut self, heard: bool) {
        self.down.clear();
        if let Some(socket) = self.socket.take()
            && heard
        {
            self.desk.close(socket);
        }
    }

    fn write(&mut self, frames: usize) {
        let Some(socket) = self.socket else { return };
        for _ in 0..frames {
            let Some(frame) = self.desk.control.poll_transmit(self.desk.now, socket) else { break };
            self.acknowledged(&frame);
            self.down.push_back(frame);
        }
    }

    fn up(&mut self, frames: usize, piece: u64) {
        for _ in 0..frames {
            let Some(socket) = self.socket else { return };
            if self.desk.closes.contains_key(&socket) {
                return self.cut(false);
            }
            let Some(frame) = self.worker.say(piece) else { return };
            self.desk.say(socket, frame);
        }
    }

    fn pass(&mut self, time: std::time::Duration) {
        match self.socket {
            Some(socket) => self.desk.pass_alive(socket, time),
            None => self.desk.pass(time),
        }
    }

    fn of_run(&self, run: &RunId) -> Option<&super::super::fake::Row> {
        self.desk
            .store
            .rows
            .values()
            .find(|row| row.record.operation.kind().is_run() && row.record.operation.run_id.as_ref() == Some(run))
    }

    /// Whatever is acknowledged is in the store.
    fn acknowledged(&mut self, frame: &ControlFrame) {
        match frame {
            ControlFrame::ExecOutputAck { run_id, stream, next_offset } => {
                let row = self.of_run(run_id).expect("output of nobody");
                let has = row.record.received.get(stream).copied().unwrap_or(0);
                assert!(has >= *next_offset || row.record.state == State::Unknown, "acknowledged and not committed");
            }
            ControlFrame::ExecTerminalAck { run_id } => {
                assert!(self.of_run(run_id).expect("a run of nobody").record.outcome.is_some());
            }
            ControlFrame::OperationResultAck { request_id } => {
                assert!(self.desk.record(request_id).outcome.is_some(), "acknowledged and not committed");
            }
            ControlFrame::Operation(operation) => {
                let record = self.desk.record(&operation.request_id);
                assert_eq!(record.sent_to.as_ref(), Some(&ledger(self.worker.ledger.n)), "sent before it stood so");
                assert_eq!(record.outcome, None, "an ended one was sent");
                self.handed.insert(operation.request_id.clone());
            }
            _ => {}
        }
    }

    /// What must be true at every moment.
    fn look(&mut self) {
        for answer in self.desk.answers.values() {
            if let Ok(Accepted::Operation(id)) = answer {
                assert!(self.desk.store.rows.contains_key(id), "admitted and forgotten");
            }
        }
        for (id, count) in &self.worker.started {
            assert_eq!(*count, 1, "{id} was started again");
        }
        for inputs in self.worker.inputs.values() {
            let inputs = inputs.iter().filter(|id| !self.called_off.contains(id));
            assert!(inputs.is_sorted_by_key(|id| self.desk.store.rows[id].place), "inputs out of order");
        }
        for (id, row) in &self.desk.store.rows {
            assert!(row.ends <= 1, "two ends");
            self.is_prefix(row);
            let Some(outcome) = &row.record.outcome else { continue };
            let first = self.ends.entry(id.clone()).or_insert_with(|| outcome.clone());
            if first.state() == State::Unknown {
                assert_eq!(outcome.state(), State::Unknown, "evidence became a result");
            } else {
                assert_eq!(outcome, first, "an end changed");
            }
            self.is_true(id, outcome);
        }
    }

    /// The bytes are those that were written, in order, and what is missing was told.
    fn is_prefix(&self, row: &super::super::fake::Row) {
        let Some(run) = &row.record.operation.run_id else { return };
        let mut at = 0;
        for segment in row.streams.get(&Stream::Stdout).into_iter().flatten() {
            match segment {
                Segment::Bytes(bytes) => {
                    for has in bytes {
                        assert_eq!(*has, byte(run, at), "wrong byte at {at}");
                        at += 1;
                    }
                }
                Segment::Gap(from, to) => {
                    assert_eq!(*from, at, "a gap elsewhere");
                    let ledgers = self.aside.iter().chain([&self.worker.ledger]);
                    let told = ledgers.filter_map(|ledger| ledger.rows.get(&row.record.operation.request_id));
                    let given_up =
                        |at: u64| told.clone().any(|row| row.gaps.iter().any(|(a, b)| (*a..*b).contains(&at)));
                    assert!((*from..*to).all(given_up), "a hole that was not told");
                    at = *to;
                }
            }
        }
        assert_eq!(row.record.received.get(&Stream::Stdout).copied().unwrap_or(0), at);
    }

    fn is_true(&self, id: &OperationId, outcome: &Outcome) {
        let started = self.worker.started.get(id).copied().unwrap_or(0);
        let row = self.aside.iter().chain([&self.worker.ledger]).find_map(|ledger| ledger.rows.get(id));
        match outcome {
            Outcome::Expired {}
            | Outcome::Failed { started: false, .. }
            | Outcome::Cancelled { started: false, .. } => {
                assert_eq!(started, 0, "{id} ran and is said not to have started");
            }
            Outcome::Unknown { .. } => assert!(self.handed.contains(id), "{id} was never handed to a socket"),
            outcome => {
                let row = row.expect("the result of nobody");
                assert_eq!(row.outcome.as_ref(), Some(outcome), "another result");
                let record = self.desk.record(id);
                assert_eq!(
                    record.received.get(&Stream::Stdout).copied().unwrap_or(0),
                    row.written,
                    "output is missing"
                );
            }
        }
    }

    /// Left alone, everything comes to its end.
    fn settle(&mut self) {
        self.desk.mood = Mood::Prompt;
        self.desk.answer_all();
        self.worker.full = false;
        self.cut(true);
        self.pass(S * 20);
        self.dial();
        for _ in 0..40 {
            self.write(usize::MAX);
            self.run(&Op::Down { frames: usize::MAX });
            for at in 0..16 {
                self.worker.advance(at, 3, false, true);
            }
            self.up(1000, 50);
            self.worker.reoffer();
            self.pass(S);
            self.look();
        }
        let living = self.desk.store.rows.values().filter(|row| row.record.outcome.is_none()).count();
        assert_eq!((living, self.desk.control.views().len()), (0, 0), "not every operation ended");
        assert!(self.worker.ledger.rows.values().all(|row| row.forgotten), "the worker still waits");
        assert_eq!(self.desk.control.snapshot().behind, 0);
        assert!(self.desk.control.snapshot().live);
    }
}

proptest! {
    // PROPTEST_CASES asks for more.
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases.max(512),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn one_outcome_each_nothing_acknowledged_is_lost_and_output_is_what_was_written(
        ops in proptest::collection::vec(op(), 1..200),
    ) {
        let mut world = World::new();
        for op in &ops {
            world.run(op);
        }
        world.settle();
    }
}
