//! What is around the machine in a random history: runners and their folders, an honest relay, and what must hold.

mod relay;

use std::collections::{BTreeMap, BTreeSet};

use super::super::*;
use super::{OPERATIONS, Op, operation};
use crate::limits;
use crate::operation::Kind;

/// What stands in the folder of a try.
#[derive(Default)]
struct Folder {
    void: bool,
    claimed: bool,
    alive: bool,
    interrupted: bool,
    written: u64,
    end: Option<End>,
    given: BTreeSet<OperationId>,
    removed: bool,
}

type Try = (RunId, u32);

pub(super) struct World {
    rig: Rig,
    open: bool,
    recoveries: u8,
    folders: BTreeMap<Try, Folder>,
    /// Runners that were spawned and have not tried to claim.
    spawned: Vec<Try>,
    performing: Vec<OperationId>,
    executed: BTreeMap<OperationId, usize>,
    given: BTreeMap<OperationId, usize>,
    /// What the relay was told and has committed.
    received: BTreeSet<OperationId>,
    results: BTreeMap<OperationId, Outcome>,
    output: BTreeMap<RunId, u64>,
    /// What it said that it has of it.
    acked: BTreeMap<RunId, u64>,
    confirmed: BTreeSet<OperationId>,
}

fn number(id: &OperationId) -> u8 {
    (0..OPERATIONS).find(|n| op(*n) == *id).expect("one of ours")
}

impl World {
    pub(super) fn new() -> World {
        let mut rig = Rig::new();
        rig.holding = true;
        World {
            rig,
            open: false,
            recoveries: 0,
            folders: BTreeMap::new(),
            spawned: Vec::new(),
            performing: Vec::new(),
            executed: BTreeMap::new(),
            given: BTreeMap::new(),
            received: BTreeSet::new(),
            results: BTreeMap::new(),
            output: BTreeMap::new(),
            acked: BTreeMap::new(),
            confirmed: BTreeSet::new(),
        }
    }

    pub(super) fn run(&mut self, what: &Op) {
        match what.clone() {
            Op::Send { n, denied } => {
                // A relay does not send again what it has the end of, nor what is refused for another reason than room.
                if self.open && !self.results.contains_key(&op(n)) {
                    let verdict = if denied { Err(Failure::new(Code::PolicyDenied, "no")) } else { Ok(()) };
                    let frame = ControlFrame::Operation(operation(n));
                    self.rig.tell(Input::Frame(self.rig.socket, frame, verdict));
                }
            }
            Op::Conflict { n } => {
                if self.open && self.rig.ledger.row(&op(n)).is_some() {
                    self.rig.send(Operation { session_id: Some("x".into()), ..operation(n) });
                }
            }
            Op::Cancel { n } => {
                if self.open {
                    self.rig.cancel(n);
                }
            }
            Op::CancelSession { session } => {
                if self.open {
                    let (session_id, cancellation_id) = (session.to_string(), session.to_string());
                    self.rig.say(ControlFrame::CancelSession { session_id, cancellation_id });
                }
            }
            Op::Commit => self.commit(1),
            Op::CommitAll => self.commit(64),
            Op::Fail => {
                self.rig.failing = Some(LedgerError::Full);
                self.commit(1);
                self.rig.failing = None;
            }
            Op::Crash { made } => self.crash(made),
            Op::CommitAndCrash => {
                if !self.rig.held.is_empty() {
                    self.rig.commit_next();
                    self.rig.settle();
                }
                self.crash(0);
            }
            Op::Claim { at } => {
                if let Some(tried) = take(&mut self.spawned, at) {
                    self.claim(tried);
                }
            }
            Op::NoClaim { at } => {
                if let Some(tried) = take(&mut self.spawned, at) {
                    let folder = self.folders.entry(tried.clone()).or_default();
                    folder.void = true;
                    let failure = Failure::nothing_done(Code::Unavailable, "no runner");
                    self.news(&tried, RunNews::Void(Some(failure)));
                }
            }
            Op::Write { at, bytes } => {
                if let Some(tried) = self.alive(at) {
                    let folder = self.folders.get_mut(&tried).unwrap();
                    folder.written += u64::from(bytes);
                    let written = streams(folder.written);
                    self.news(&tried, RunNews::Grew(written));
                }
            }
            Op::Exit { at } => {
                if let Some(tried) = self.alive(at) {
                    self.exit(&tried, false);
                }
            }
            Op::Interrupt { at } => {
                if let Some(tried) = self.alive(at) {
                    self.folders.get_mut(&tried).unwrap().interrupted = true;
                    self.exit(&tried, true);
                }
            }
            Op::Kill { at } => {
                if let Some(tried) = self.alive(at) {
                    self.folders.get_mut(&tried).unwrap().alive = false;
                    self.found(&tried);
                }
            }
            Op::Perform { at, fails } => {
                if let Some(id) = take(&mut self.performing, at) {
                    self.perform(id, fails);
                }
            }
            Op::Lose => self.lose(),
            Op::Connect { completes } => self.connect(completes),
            Op::Ack { at } => self.ack(at),
            Op::AckOutput { at } => {
                if let Some((run, offset)) = self.output.iter().nth(at).filter(|_| self.open) {
                    let (run_id, next_offset) = (run.clone(), *offset);
                    self.acked.insert(run_id.clone(), next_offset);
                    self.rig.say(ControlFrame::ExecOutputAck { run_id, stream: Stream::Stdout, next_offset });
                }
            }
            Op::Pass { millis } => {
                if self.open {
                    self.rig.life();
                }
                self.rig.pass(MS * u32::try_from(millis).unwrap());
            }
            Op::Sleep { secs } => self.rig.sleep(S * u32::try_from(secs).unwrap()),
            Op::Renew => {
                if self.open {
                    self.rig.say(ControlFrame::WorkerExecutionLease { lease_ms: 120_000 });
                }
            }
            Op::Along => self.along(),
        }
        self.shell();
        self.check();
    }

    fn commit(&mut self, most: usize) {
        for _ in 0..most {
            if self.rig.held.is_empty() {
                return;
            }
            self.rig.commit_next();
            self.rig.settle();
            self.shell();
        }
    }

    fn crash(&mut self, made: usize) {
        for _ in 0..made {
            if let Some((_, changes)) = self.rig.held.pop_front() {
                self.rig.ledger.commit(changes);
            }
        }
        self.open = false;
        self.performing.clear();
        let living: BTreeSet<_> = self
            .rig
            .ledger
            .stored(S)
            .rows
            .into_iter()
            .filter_map(|living| Some((living.row.operation.run_id?, living.row.attempt)))
            .collect();
        for (tried, folder) in &mut self.folders {
            folder.removed |= !living.contains(tried);
        }
        self.rig.restart();
        self.rig.holding = true;
    }

    /// Carries out what the machine asked for.
    fn shell(&mut self) {
        loop {
            for frame in if self.open { self.rig.written() } else { Vec::new() } {
                self.hear(frame);
            }
            let Some(output) = self.rig.out.pop_front() else { return };
            match output {
                Output::Launch(launch) => {
                    let run = launch.operation.run_id.clone().unwrap();
                    assert_eq!(self.rig.ledger.row(&launch.operation.request_id).unwrap().attempt, launch.attempt);
                    self.spawned.push((run, launch.attempt));
                }
                Output::Void(run, attempt) => {
                    let folder = self.folders.entry((run.clone(), attempt)).or_default();
                    folder.void |= !folder.claimed;
                    self.found(&(run, attempt));
                }
                Output::Attach(run, attempt) => self.found(&(run, attempt)),
                Output::Tell(run, attempt, ask) => self.ask((run, attempt), ask),
                Output::Read(read) => {
                    let bytes = (read.offset..read.offset + read.max as u64).map(|at| (at % 251) as u8);
                    let piece = Piece::Bytes(bytes.collect::<Vec<_>>().into());
                    self.rig.tell(Input::Piece(read.run, read.stream, read.offset, piece));
                }
                Output::Trim(run, _, _, offset) => {
                    assert!(offset <= self.output[&run], "trimmed what the relay has not")
                }
                Output::Remove(run, attempt) => {
                    let folder = self.folders.entry((run.clone(), attempt)).or_default();
                    folder.removed = true;
                    let had = self.acked.get(&run).copied().unwrap_or(0);
                    assert!(folder.void || !folder.claimed || folder.written <= had, "removed what the relay has not");
                }
                Output::Perform(operation) => {
                    let id = operation.request_id.clone();
                    let times = self.executed.entry(id.clone()).or_default();
                    *times += 1;
                    assert!(*times == 1 || operation.kind().is_repeatable(), "done twice");
                    self.performing.push(id);
                }
                Output::Drop(socket) | Output::Close(socket, ..) if socket == self.rig.socket => self.open = false,
                _ => {}
            }
        }
    }

    fn news(&mut self, (run, attempt): &Try, news: RunNews) {
        self.rig.tell(Input::Run(run.clone(), *attempt, news));
    }

    /// What whoever looks at a folder finds.
    fn found(&mut self, tried: &Try) {
        let folder = &self.folders[tried];
        assert!(!folder.removed, "looked for what was removed");
        let written = streams(folder.written);
        let news = match folder {
            Folder { end: Some(end), .. } => RunNews::Ended(end.clone()),
            Folder { alive: true, .. } => RunNews::Attached { written, stalled: None },
            Folder { claimed: true, .. } => RunNews::Gone { written, evidence: json!({}) },
            _ => RunNews::Void(None),
        };
        self.news(tried, news);
    }

    /// A runner puts its claim in place and starts the program, unless a claim stands there.
    fn claim(&mut self, tried: Try) {
        let folder = self.folders.entry(tried.clone()).or_default();
        if folder.void || folder.claimed || folder.removed {
            return;
        }
        (folder.claimed, folder.alive) = (true, true);
        let id = (0..OPERATIONS).map(op).find(|id| operation(number(id)).run_id.as_ref() == Some(&tried.0)).unwrap();
        let times = self.executed.entry(id).or_default();
        *times += 1;
        assert_eq!(*times, 1, "ran twice");
        self.found(&tried);
    }

    fn alive(&self, at: usize) -> Option<Try> {
        let alive: Vec<_> = self.folders.iter().filter(|(_, folder)| folder.alive).collect();
        (!alive.is_empty()).then(|| alive[at % alive.len()].0.clone())
    }

    fn exit(&mut self, tried: &Try, killed: bool) {
        let folder = self.folders.get_mut(tried).unwrap();
        folder.alive = false;
        folder.end = Some(End { killed, interrupted: folder.interrupted, ..ended(3, folder.written) });
        self.found(tried);
    }

    fn ask(&mut self, tried: Try, ask: Ask) {
        let Some(folder) = self.folders.get_mut(&tried).filter(|folder| folder.alive) else { return };
        match ask {
            Ask::Kill {} => self.exit(&tried, true),
            Ask::Input { id, .. } => {
                assert!(self.rig.ledger.row(&id).is_some(), "told before it was committed");
                if folder.given.insert(id.clone()) {
                    *self.given.entry(id.clone()).or_default() += 1;
                }
                assert_eq!(self.given[&id], 1, "given twice");
                self.news(&tried, RunNews::Done(id, Ok(())));
            }
            _ => {}
        }
    }

    fn perform(&mut self, id: OperationId, fails: bool) {
        let result = if fails { Err(Failure::nothing_done(Code::NetworkError, "away")) } else { Ok(json!(1)) };
        self.rig.tell(Input::Performed(id, result));
    }

    fn lose(&mut self) {
        if std::mem::take(&mut self.open) {
            self.rig.lose();
        }
    }

    fn check(&mut self) {
        for row in &self.rig.ledger.rows {
            let id = &row.operation.request_id;
            let ran = self.executed.get(id).copied().unwrap_or(0);
            match &row.outcome {
                Some(Outcome::Completed { .. }) if self.was_killed(row) => {
                    panic!("killed, and said to be done: {row:?}")
                }
                Some(Outcome::Unknown { .. }) if row.operation.kind().is_run() => assert_eq!(ran, 1, "not started"),
                Some(Outcome::Completed { .. }) if !row.operation.kind().is_input() => assert!(ran >= 1),
                Some(Outcome::Failed { started: false, .. } | Outcome::Cancelled { started: false, .. }) => {
                    assert_eq!(ran, 0, "it did start: {row:?}");
                }
                _ => {}
            }
            if row.acked {
                assert!(self.confirmed.contains(id), "forgotten before it was acknowledged");
            }
        }
        for id in &self.received {
            assert!(self.rig.ledger.row(id).is_some(), "an acknowledged operation was lost");
        }
        assert!(self.rig.worker.snapshot(self.rig.now).living.len() <= limits::OPERATIONS_HELD_MAX);
    }

    fn was_killed(&self, row: &Row) -> bool {
        let end = |((run, attempt), folder): (&Try, &Folder)| {
            let its = Some(run) == row.operation.run_id.as_ref() && *attempt == row.attempt;
            its && folder.end.as_ref().is_some_and(|end| end.killed)
        };
        row.operation.kind().is_run() && self.folders.iter().any(end)
    }

    /// A relay is there, commits are made, and runners start.
    fn along(&mut self) {
        self.commit(64);
        if !self.open || !self.rig.worker.snapshot(self.rig.now).live {
            self.connect(true);
        }
        self.commit(64);
        while let Some(tried) = self.spawned.pop() {
            self.claim(tried);
            self.commit(64);
        }
    }

    /// Whatever happened, with a disk and a relay again everything ends and arrives.
    pub(super) fn settle(&mut self) {
        self.rig.failing = None;
        for _ in 0..40 {
            self.along();
            while let Some(tried) = self.alive(0) {
                self.exit(&tried, false);
                self.commit(64);
            }
            while let Some(id) = self.performing.pop() {
                self.perform(id, false);
                self.commit(64);
            }
            for at in 0..OPERATIONS as usize {
                self.run(&Op::Ack { at });
                self.run(&Op::AckOutput { at });
            }
            self.run(&Op::Renew);
            self.run(&Op::Pass { millis: 1000 });
        }
        let snapshot = self.rig.worker.snapshot(self.rig.now);
        assert!(snapshot.living.is_empty(), "not over: {:?}", snapshot.living);
        for row in &self.rig.ledger.rows {
            let id = &row.operation.request_id;
            assert!(row.acked && row.outcome.as_ref() == self.results.get(id), "{row:?}");
            let ran = self
                .folders
                .iter()
                .find(|((of, _), folder)| Some(of) == row.operation.run_id.as_ref() && folder.claimed);
            if let Some(((run, _), folder)) = ran.filter(|_| row.operation.kind() != Kind::ExecStdin) {
                assert_eq!(self.output.get(run).copied().unwrap_or(0), folder.written, "output was lost");
                assert!(folder.removed);
            }
        }
        assert!(self.rig.worker.window_is_empty());
    }
}

fn take<T>(from: &mut Vec<T>, at: usize) -> Option<T> {
    (!from.is_empty()).then(|| from.remove(at % from.len()))
}
