//! Random histories: frames in any order, commits that fail or are lost, processes that die at any moment, claims that go
//! either way. Whatever happens, O1 of `docs/PROMISES.md` holds.

mod world;

use proptest::prelude::*;

use super::*;
use world::World;

const OPERATIONS: u8 = 6;

/// Which operation a number is, so that every history has some of each kind.
fn operation(n: u8) -> Operation {
    let of = Operation { session_id: Some((n % 2).to_string()), ..exec(n) };
    match n {
        2 => Operation { session_id: None, ..input(n, 0, "YWI=") },
        3 => Operation {
            session_id: None,
            ..asked(n, None, &json!({"type": "file_sync", "target": "t", "manifestUrl": "u"}))
        },
        4 => Operation { request: supervised(n).request, ..of },
        5 => Operation {
            session_id: None,
            ..asked(n, None, &json!({"type": "create_project_branch", "path": "p", "branch": "b"}))
        },
        _ => of,
    }
}

#[derive(Debug, Clone)]
enum Op {
    Send {
        n: u8,
        denied: bool,
    },
    Conflict {
        n: u8,
    },
    Cancel {
        n: u8,
    },
    CancelSession {
        session: u8,
    },
    Commit,
    CommitAll,
    Fail,
    /// The worker dies; so many of the commits under way were made.
    Crash {
        made: usize,
    },
    /// It dies with the outputs of its last commit not carried out.
    CommitAndCrash,
    Claim {
        at: usize,
    },
    NoClaim {
        at: usize,
    },
    Write {
        at: usize,
        bytes: u16,
    },
    Exit {
        at: usize,
    },
    /// The system ends its runner.
    Interrupt {
        at: usize,
    },
    Kill {
        at: usize,
    },
    Perform {
        at: usize,
        fails: bool,
    },
    Lose,
    Connect {
        completes: bool,
    },
    Ack {
        at: usize,
    },
    AckOutput {
        at: usize,
    },
    Pass {
        millis: u64,
    },
    Sleep {
        secs: u64,
    },
    Renew,
    /// Everything goes its way for once.
    Along,
}

fn any_op() -> impl Strategy<Value = Op> {
    let at = || 0usize..8;
    prop_oneof![
        8 => (0..OPERATIONS, proptest::bool::weighted(0.1)).prop_map(|(n, denied)| Op::Send { n, denied }),
        1 => (0..OPERATIONS).prop_map(|n| Op::Conflict { n }),
        2 => (0..OPERATIONS).prop_map(|n| Op::Cancel { n }),
        1 => (0u8..2).prop_map(|session| Op::CancelSession { session }),
        8 => Just(Op::Commit),
        5 => Just(Op::CommitAll),
        1 => Just(Op::Fail),
        2 => (0usize..4).prop_map(|made| Op::Crash { made }),
        1 => Just(Op::CommitAndCrash),
        5 => at().prop_map(|at| Op::Claim { at }),
        1 => at().prop_map(|at| Op::NoClaim { at }),
        4 => (at(), 1u16..3000).prop_map(|(at, bytes)| Op::Write { at, bytes }),
        4 => at().prop_map(|at| Op::Exit { at }),
        1 => at().prop_map(|at| Op::Interrupt { at }),
        1 => at().prop_map(|at| Op::Kill { at }),
        3 => (at(), any::<bool>()).prop_map(|(at, fails)| Op::Perform { at, fails }),
        1 => Just(Op::Lose),
        4 => proptest::bool::weighted(0.8).prop_map(|completes| Op::Connect { completes }),
        5 => at().prop_map(|at| Op::Ack { at }),
        4 => at().prop_map(|at| Op::AckOutput { at }),
        3 => (1u64..8_000).prop_map(|millis| Op::Pass { millis }),
        1 => (1u64..400).prop_map(|secs| Op::Sleep { secs }),
        2 => Just(Op::Renew),
        8 => Just(Op::Along),
    ]
}

proptest! {
    // PROPTEST_CASES asks for more.
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases.max(512),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn nothing_runs_twice_is_lost_or_acknowledged_too_early_whatever_happens(
        ops in proptest::collection::vec(any_op(), 1..150),
    ) {
        let mut world = World::new();
        for op in &ops {
            world.run(op);
        }
        world.settle();
    }
}
