//! Random histories against honest daemons: whatever happens, what `docs/PROMISES.md` says of calls holds.

use std::collections::{BTreeMap, HashMap, HashSet};

use proptest::prelude::*;

use super::super::*;
use super::desk::*;
use crate::id::CallId;
use crate::limits;
use crate::wire::*;

/// What one instance knows of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    Running,
    Done,
    Lost,
}

/// One process life of the daemon.
#[derive(Default)]
struct Life {
    calls: BTreeMap<CallId, Known>,
    executed: HashMap<CallId, usize>,
}

struct World {
    desk: Desk,
    speakers: Vec<Speaker>,
    lives: Vec<Life>,
    /// The open socket, whose it is, and how many of its frames the daemon has read.
    link: Option<(SocketId, usize, usize)>,
    swallow: bool,
    waiting: Vec<WaiterId>,
    left: HashSet<WaiterId>,
    dispatched: HashMap<CallId, usize>,
    unknown: HashMap<CallId, usize>,
    sent_to: HashMap<CallId, usize>,
    asked: usize,
    controls: HashSet<CallId>,
    ended: HashSet<CallId>,
    noted: usize,
}

#[derive(Debug, Clone)]
enum Op {
    Open { control: bool, key: Option<u8>, outlives: Option<bool> },
    Link { who: usize },
    ProveAndDie { who: usize },
    Cut,
    Swallow,
    Finish { at: usize },
    Repeat,
    Leave { at: usize },
    Cancel { at: usize },
    Commit { at: usize },
    Store { yes: bool },
    Pass { millis: u64 },
    Sleep,
    Shutdown,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (any::<bool>(), proptest::option::weighted(0.3, 0u8..3), proptest::option::weighted(0.4, any::<bool>()))
            .prop_map(|(control, key, outlives)| Op::Open { control, key, outlives }),
        4 => (0usize..10).prop_map(|who| Op::Link { who: who / 9 }),
        1 => (0usize..10).prop_map(|who| Op::ProveAndDie { who: who / 9 }),
        2 => Just(Op::Cut),
        1 => Just(Op::Swallow),
        8 => (0usize..64).prop_map(|at| Op::Finish { at }),
        1 => Just(Op::Repeat),
        1 => (0usize..64).prop_map(|at| Op::Leave { at }),
        1 => (0usize..64).prop_map(|at| Op::Cancel { at }),
        6 => (0usize..64).prop_map(|at| Op::Commit { at }),
        5 => proptest::bool::weighted(0.8).prop_map(|yes| Op::Store { yes }),
        4 => (1u64..20_000).prop_map(|millis| Op::Pass { millis }),
        1 => Just(Op::Sleep),
        1 => Just(Op::Shutdown),
    ]
}

/// Short, so that histories run into it.
const PATIENCE: Duration = Duration::from_secs(10);

fn result_of(call: &CallId) -> String {
    format!("\"{call}\"")
}

impl World {
    fn new(base_wire: bool) -> World {
        // Few places, so that histories run into the bounds.
        let few = |n| Speaker { max_calls: Some(6), ..holdfast(n) };
        let speaker = if base_wire { base } else { few };
        World {
            desk: Desk::new(),
            speakers: vec![speaker(1), speaker(2)],
            lives: vec![Life::default(), Life::default()],
            link: None,
            swallow: false,
            waiting: Vec::new(),
            left: HashSet::new(),
            dispatched: HashMap::new(),
            unknown: HashMap::new(),
            sent_to: HashMap::new(),
            asked: 0,
            controls: HashSet::new(),
            ended: HashSet::new(),
            noted: 0,
        }
    }

    fn run(&mut self, op: &Op) {
        match op {
            Op::Open { control, key, outlives } => {
                let key = key.map(|key| IdempotencyKey { key: key.to_string(), digest: [0; 32] });
                let outlives = outlives.map(|when_away| Outlives { after: PATIENCE, when_away, grant: "grant".into() });
                let waiter =
                    self.desk.open_with(|call| (call.control, call.key, call.outlives) = (*control, key, outlives));
                let call = self.desk.id(waiter);
                // One that joined runs as what the first of them asked for.
                let first = self.waiting.iter().all(|waiter| self.desk.id(*waiter) != call);
                if *control && first {
                    self.controls.insert(call);
                }
                self.waiting.push(waiter);
            }
            Op::Link { who } => self.connect(*who, true),
            Op::ProveAndDie { who } => self.connect(*who, false),
            Op::Cut => self.cut(),
            Op::Swallow => self.swallow = true,
            Op::Finish { at } => self.finish(*at),
            Op::Repeat => self.replay(),
            Op::Leave { at } => {
                if let Some(waiter) = self.pick(*at) {
                    self.left.insert(waiter);
                    self.desk.leave(waiter);
                }
            }
            Op::Cancel { at } => {
                if let Some(waiter) = self.pick(*at) {
                    let call = self.desk.id(waiter);
                    self.desk.tell(Input::Cancel { call });
                }
            }
            Op::Commit { at } => {
                if let Some(waiter) = self.pick(*at).filter(|waiter| self.desk.ends.contains_key(waiter)) {
                    self.desk.commit(waiter);
                }
            }
            Op::Store { yes } => self.store(*yes),
            Op::Pass { millis } => self.pass(MS * u32::try_from(*millis).unwrap_or(1)),
            Op::Sleep => {
                if let Some((socket, who, _)) = self.link
                    && self.speakers[who].features.is_some()
                {
                    self.desk.say(socket, DaemonFrame::Suspending(Suspending {}));
                }
            }
            Op::Shutdown => {
                if let Some((socket, who, _)) = self.link.take() {
                    self.lives[who].calls.clear();
                    self.desk.tell(Input::Closed { socket, word: Some((1000, "daemon shutdown".into())) });
                }
            }
        }
        self.read();
        self.check();
    }

    fn pick(&self, at: usize) -> Option<WaiterId> {
        let open: Vec<_> = self.waiting.iter().filter(|waiter| !self.left.contains(waiter)).collect();
        (!open.is_empty()).then(|| *open[at % open.len()])
    }

    /// Answers the oldest request that waits for an answer.
    fn store(&mut self, yes: bool) {
        while let Some(request) = self.desk.store.get(self.asked) {
            self.asked += 1;
            if request.is_answered() {
                let call = request.call().clone();
                let answer = match (request, yes) {
                    (StoreRequest::Keep { .. }, true) => StoreAnswer::Kept,
                    (StoreRequest::Keep { .. }, false) => StoreAnswer::NotKept,
                    (_, true) => StoreAnswer::Committed,
                    (_, false) => StoreAnswer::Refused,
                };
                return self.desk.tell(Input::Stored { call, answer });
            }
        }
    }

    fn cut(&mut self) {
        if let Some((socket, _, _)) = self.link.take() {
            self.desk.lose(socket);
        }
    }

    /// Both instances are honest: one starts only when the other's process is gone, so its socket is gone too.
    fn connect(&mut self, who: usize, complete: bool) {
        if self.link.is_some_and(|(_, other, _)| other != who) {
            self.cut();
        }
        let speaker = self.speakers[who].clone();
        let socket = self.desk.connect();
        self.desk.hello(socket, &speaker);
        if !self.desk.kinds(socket).contains(&"relay_probe") {
            return self.desk.lose(socket);
        }
        self.desk.answer_probe(socket);
        let named = self.desk.named(socket);
        assert!(named.len() <= limits::RESUME_IDS_MAX);
        for call in &named {
            assert!(self.sent_to.get(call).is_none_or(|to| *to == who), "named to another instance");
        }
        if speaker.features.is_none() {
            // On the base wire resume_calls and ready_ack come together.
            assert!(named.len() <= limits::BASE_RESUME_IDS_MAX);
            self.resume(who, &named);
            self.link = Some((socket, who, 0));
            return self.answer_lost(socket, who, &named);
        }
        if !complete {
            return self.desk.lose(socket);
        }
        self.resume(who, &named);
        let mut report = ResumeReport::default();
        for call in named {
            match self.lives[who].calls.get(&call) {
                Some(Known::Running) => report.running.push(call),
                Some(Known::Done) => report.done.push(call),
                Some(Known::Lost) => report.lost.push(call),
                None => {
                    *self.unknown.entry(call.clone()).or_default() += 1;
                    report.unknown.push(call);
                }
            }
        }
        self.link = Some((socket, who, 0));
        self.desk.say(socket, DaemonFrame::ResumeReport(report));
        self.read();
        self.replay();
    }

    /// What is not named is cancelled or dropped.
    fn resume(&mut self, who: usize, named: &[CallId]) {
        self.lives[who].calls.retain(|call, _| named.contains(call));
    }

    /// Base wire: a named call that was lost or never seen is answered with an error, so that it does not hang until its deadline.
    fn answer_lost(&mut self, socket: SocketId, who: usize, named: &[CallId]) {
        for call in named {
            match self.lives[who].calls.get(call) {
                Some(Known::Lost) => self.desk.fail(socket, call, crate::code::Code::ExecutionFailed),
                None => self.desk.fail(socket, call, crate::code::Code::Unavailable),
                _ => {}
            }
        }
        self.read();
        self.replay();
    }

    fn replay(&mut self) {
        let Some((socket, who, _)) = self.link else { return };
        let done = self.lives[who].calls.iter().filter(|(_, known)| **known == Known::Done);
        for call in done.map(|(call, _)| call.clone()).collect::<Vec<_>>() {
            if !self.desk.closes.contains_key(&socket) {
                self.desk.finish(socket, &call, &result_of(&call));
            }
        }
    }

    fn finish(&mut self, at: usize) {
        // A call runs on whether the link is there or not.
        let who = self.link.map_or(0, |(_, who, _)| who);
        let running: Vec<_> = self.lives[who]
            .calls
            .iter()
            .filter(|(_, known)| **known == Known::Running)
            .map(|(call, _)| call.clone())
            .collect();
        if running.is_empty() {
            return;
        }
        let call = running[at % running.len()].clone();
        self.lives[who].calls.insert(call.clone(), Known::Done);
        if let Some((socket, _, _)) = self.link {
            self.desk.finish(socket, &call, &result_of(&call));
        }
    }

    fn pass(&mut self, time: Duration) {
        match self.link {
            Some((socket, _, _)) => self.desk.pass_alive(socket, time),
            None => self.desk.pass(time),
        }
    }

    /// The daemon reads what was written to its socket.
    fn read(&mut self) {
        let Some((socket, who, mut at)) = self.link else { return };
        let frames = self.desk.frames.get(&socket).map_or(Vec::new(), |frames| frames[at..].to_vec());
        for frame in frames {
            at += 1;
            match frame {
                RelayFrame::ToolCall(call) => {
                    *self.dispatched.entry(call.id.clone()).or_default() += 1;
                    let first = *self.sent_to.entry(call.id.clone()).or_insert(who);
                    let count = self.dispatched[&call.id];
                    let again = self.unknown.get(&call.id).copied().unwrap_or(0);
                    assert!(count <= 1 + again, "dispatched again without being unknown");
                    assert_eq!(first, who, "another instance got a call that was sent");
                    if std::mem::take(&mut self.swallow) {
                        // The gap is noticed with the next frame: the link ends.
                        self.link = None;
                        return self.desk.lose(socket);
                    }
                    let life = &mut self.lives[who];
                    if life.calls.insert(call.id.clone(), Known::Running).is_none() {
                        *life.executed.entry(call.id).or_default() += 1;
                    }
                }
                RelayFrame::CancelCall(cancel) => {
                    if let Some(known) = self.lives[who].calls.get_mut(&cancel.id) {
                        *known = Known::Lost;
                    }
                }
                RelayFrame::ToolResultAck(ack) => {
                    self.lives[who].calls.remove(&ack.id);
                }
                _ => {}
            }
        }
        self.link = (!self.desk.closes.contains_key(&socket)).then_some((socket, who, at));
    }

    fn check(&mut self) {
        for note in &self.desk.notes[self.noted..] {
            if let Note::Ended { call, .. } = note {
                assert!(self.ended.insert(call.clone()), "a call ended twice");
            }
        }
        self.noted = self.desk.notes.len();
        for life in &self.lives {
            assert!(life.executed.values().all(|count| *count <= 1), "executed twice");
        }
        for (waiter, end) in &self.desk.ends {
            if let Ok(result) = end {
                assert_eq!(result.get(), result_of(&self.desk.id(*waiter)), "another call's result");
            }
        }
        let pending = self.desk.pending();
        assert!(pending.active <= limits::DEVICE_CALLS_MAX + limits::PROMOTED_WAITING_MAX);
        for waiter in self.desk.kept.keys() {
            let call = self.desk.id(*waiter);
            let asked = self.desk.store.iter().filter(|request| *request.call() == call);
            let finished = asked.clone().any(|request| matches!(request, StoreRequest::Finish { .. }));
            assert!(
                !asked.clone().any(|request| matches!(request, StoreRequest::Forget { .. })),
                "a handle was forgotten"
            );
            // Only a stop leaves a promoted call to the next start.
            assert!(finished == self.ended.contains(&call) || self.desk.stopped == 1, "a handle without its end");
        }
        assert_eq!(pending.active, pending.queued + pending.sent + pending.detached + pending.uncommitted);
        let (window, reserve) = if self.speakers[0].features.is_some() { (6, 4) } else { (16, 2) };
        // A call that was reported unknown takes no place until it is sent again.
        let is_out = |(call, sent): &(&CallId, &usize)| *sent > self.unknown.get(*call).unwrap_or(&0);
        let out: Vec<_> = self
            .dispatched
            .iter()
            .filter(is_out)
            .map(|(call, _)| call)
            .filter(|call| !self.ended.contains(*call))
            .collect();
        assert!(out.len() <= window, "more than the device takes");
        let ordinary = out.iter().filter(|call| !self.controls.contains(**call)).count();
        assert!(ordinary <= window - reserve, "ordinary calls on reserved places");
    }

    /// Whatever happened, a stop ends everything within its time.
    fn settle(&mut self) {
        self.desk.tell(Input::Stop);
        self.pass(limits::RELAY_STOP_WAIT);
        assert_eq!(self.desk.stopped, 1);
        for waiter in &self.waiting {
            let ended = self.desk.ends.contains_key(waiter) || self.desk.kept.contains_key(waiter);
            assert!(ended || self.left.contains(waiter), "an end was lost");
        }
        assert_eq!(self.desk.pending().active, 0);
        assert_eq!(self.desk.board.poll_timeout(self.desk.now), None);
        self.check();
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
    fn every_call_ends_once_and_runs_at_most_once_whatever_happens(
        base_wire in any::<bool>(),
        ops in proptest::collection::vec(op(), 1..150),
    ) {
        let mut world = World::new(base_wire);
        for op in &ops {
            world.run(op);
        }
        world.settle();
    }
}
