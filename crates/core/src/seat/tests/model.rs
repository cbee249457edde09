//! Random histories: whatever happens, one seat has one holder.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Op {
    Want(usize, Want),
    Release(usize),
    Kill(usize),
    Freeze(usize),
    Thaw(usize),
    Connected(usize),
    Lost(usize, Failed),
    Left(usize),
    ReplaceLock,
    Full(bool),
    Silent(bool),
    Pass(u64),
}

const PROCESSES: usize = 4;

fn op() -> impl Strategy<Value = Op> {
    let at = 0..PROCESSES;
    let want = prop_oneof![
        Just(Want::IfVacant),
        Just(Want::Wait),
        Just(Want::Take { force: false }),
        Just(Want::Take { force: true })
    ];
    let why = prop_oneof![
        1 => Just(Failed::ForGood("bad token".into())),
        3 => Just(Failed::ForNow { reason: "no network".into(), after: None }),
        1 => Just(Failed::UsedElsewhere("conflict".into())),
    ];
    prop_oneof![
        6 => (at.clone(), want).prop_map(|(at, want)| Op::Want(at, want)),
        2 => at.clone().prop_map(Op::Release),
        2 => at.clone().prop_map(Op::Kill),
        2 => at.clone().prop_map(Op::Freeze),
        3 => at.clone().prop_map(Op::Thaw),
        8 => at.clone().prop_map(Op::Connected),
        2 => (at.clone(), why).prop_map(|(at, why)| Op::Lost(at, why)),
        4 => at.prop_map(Op::Left),
        1 => Just(Op::ReplaceLock),
        2 => any::<bool>().prop_map(Op::Full),
        1 => any::<bool>().prop_map(Op::Silent),
        6 => (0u64..12_000).prop_map(Op::Pass),
    ]
}

impl World {
    fn run(&mut self, op: Op) {
        match op {
            Op::Want(at, want) => self.input(at, Input::Want(want)),
            Op::Release(at) => self.input(at, Input::Release),
            Op::Kill(at) => {
                self.kill(at);
                self.settle();
            }
            Op::Freeze(at) => self.all[at].frozen = true,
            Op::Thaw(at) => {
                self.all[at].frozen = false;
                self.settle();
            }
            Op::Connected(at) => {
                if let Some(conn) = self.all[at].trying.take() {
                    self.input(at, Input::Connected(conn));
                }
            }
            Op::Lost(at, why) => {
                let conn = self.all[at].trying.or(self.all[at].serving.map(|(c, _)| c)).or(self.all[at].leaving);
                if let (Some(conn), false) = (conn, self.all[at].frozen) {
                    self.disconnected(at);
                    self.input(at, Input::Lost(conn, why));
                }
            }
            Op::Left(at) => {
                if let (Some(conn), false) = (self.all[at].leaving, self.all[at].frozen) {
                    self.input(at, Input::Left(conn));
                }
            }
            Op::Full(full) => self.disk.full = full,
            Op::Silent(silent) => {
                self.disk.silent = silent;
                if !silent {
                    self.pass(limits::SEAT_LOOK);
                }
            }
            Op::ReplaceLock => {
                self.disk.silent = false;
                self.replace_lock();
                // Until every holder that runs has looked, two files are locked; a generation is still one holder's.
                self.pass(limits::SEAT_LOOK);
            }
            Op::Pass(ms) => self.pass(MS * ms as u32),
        }
        self.check();
    }

    fn check(&self) {
        let mut serving = 0;
        for (at, process) in self.all.iter().enumerate() {
            let state = process.seat.state();
            if process.frozen {
                continue;
            }
            if let Some((_, generation)) = process.serving {
                assert!(matches!(state, SeatState::Serving | SeatState::Draining), "{at} is {state:?}");
                assert_eq!(self.disk.stamped[&generation], process.life, "a generation is one holder's");
                // Whoever was stopped while its lock went cannot see it on a disk that says nothing, and can store nothing
                // either.
                if !self.disk.silent {
                    assert_eq!(process.locked, Some(self.disk.file), "{at} serves without the lock");
                    serving += 1;
                }
            }
            let holds = matches!(state, SeatState::Connecting | SeatState::Serving | SeatState::Draining);
            assert_eq!(holds, self.owns_a_lock(at), "{at} is {state:?}");
        }
        assert!(serving <= 1, "{serving} serve");
        let told = self.all.iter().flat_map(|p| &p.told);
        let mut count: BTreeMap<(u64, bool), usize> = BTreeMap::new();
        for told in told {
            match told {
                Told::Acquired { generation } => *count.entry((*generation, true)).or_default() += 1,
                Told::Superseded { generation } => *count.entry((*generation, false)).or_default() += 1,
                Told::Failed { .. } => {}
            }
        }
        assert!(count.values().all(|n| *n == 1), "told more than once: {count:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(512), ..ProptestConfig::default() })]

    #[test]
    fn one_seat_has_one_holder_and_things_are_told_once(ops in proptest::collection::vec(op(), 1..60)) {
        let mut world = World::new(PROCESSES);
        world.smooth = false;
        for op in ops {
            world.run(op);
        }
        // Left alone, everything comes to rest.
        for process in &mut world.all {
            process.frozen = false;
        }
        (world.smooth, world.disk.full, world.disk.silent) = (true, false, false);
        world.pass(S * 300);
        world.check();
        for at in 0..PROCESSES {
            prop_assert!(!matches!(
                world.state(at),
                SeatState::Claiming | SeatState::Connecting | SeatState::Draining
            ), "{} is {:?}", at, world.state(at));
        }
    }
}
