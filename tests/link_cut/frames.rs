//! A proxy that stays open and swallows frames (`docs/PROMISES.md`, L6).

use holdfast_testkit::fault::Swallow;
use holdfast_testkit::stand::{Stand, WireKind, work};
use serde_json::json;

use super::{assert_done_once, marks, on_both_wires};

on_both_wires!(
    frames_swallowed_one_in_a_hundred_lose_nothing_silently,
    a_swallowed_result_is_not_lost_silently,
    a_swallowed_call_is_not_lost_silently,
);

/// Every call ends in one outcome that is true: done and run once, or an honest error.
async fn frames_swallowed_one_in_a_hundred_lose_nothing_silently(wire: WireKind) {
    let stand = Stand::start(wire).await;
    let client = stand.modern();
    stand.proxy.set(|faults| {
        faults.up.swallow = Swallow::OneIn(100);
        faults.down.swallow = Swallow::OneIn(100);
    });
    // On the base wire only its deadline ends a call that was swallowed.
    let timeout = if wire == WireKind::Base { 1 } else { 30 };
    for call in 0..120 {
        let script = format!("echo ran {call} >> journal; echo {call}");
        let arguments = json!({"argv": ["/bin/sh", "-c", script], "timeout_seconds": timeout});
        let answer = client.call("run_process", arguments).send().await.expect("an answer");
        let ran = stand.journal().iter().filter(|line| **line == format!("ran {call}")).count();
        match answer.code() {
            None => {
                assert_eq!(answer.content()["stdout"], format!("{call}\n"));
                assert_eq!(ran, 1);
            }
            Some("outcome_unknown" | "timeout") => assert!(ran <= 1),
            Some("unavailable") => assert_eq!(ran, 0),
            other => panic!("{other:?} after {ran} runs: {answer:?}"),
        }
        if wire == WireKind::Feature {
            assert_eq!(answer.code(), None, "with numbered frames every loss is noticed and mended: {answer:?}");
        }
    }
    let seen = stand.proxy.seen();
    assert!(seen.up.swallowed > 0 && seen.down.swallowed > 0, "{seen:?}");
}

async fn a_swallowed_result_is_not_lost_silently(wire: WireKind) {
    let stand = Stand::start(wire).await;
    stand.proxy.set(|faults| faults.up.swallow = Swallow::Kind { kind: "tool_result", times: 1 });
    swallowed(&stand, wire, 1).await;
    assert_eq!(stand.proxy.seen().up.swallowed, 1);
}

async fn a_swallowed_call_is_not_lost_silently(wire: WireKind) {
    let stand = Stand::start(wire).await;
    stand.proxy.set(|faults| faults.down.swallow = Swallow::Kind { kind: "tool_call", times: 1 });
    swallowed(&stand, wire, 0).await;
    assert_eq!(stand.proxy.seen().down.swallowed, 1);
}

/// With numbers the call completes. Without them (base wire) its deadline ends it: whether it ran cannot be known.
async fn swallowed(stand: &Stand, wire: WireKind, ran_on_base: usize) {
    stand.release("a");
    let mut arguments = work("a");
    if wire == WireKind::Base {
        // What arrives must have begun before the deadline, however late its shell is.
        arguments["timeout_seconds"] = json!(if ran_on_base == 0 { 1 } else { 15 });
    }
    let answer = stand.modern().call("run_process", arguments).send().await;
    if wire == WireKind::Feature {
        return assert_done_once(stand, "a", answer);
    }
    let answer = answer.expect("an answer");
    assert_eq!((answer.code(), answer.retryable()), (Some("outcome_unknown"), Some(false)), "{answer:?}");
    assert_eq!(marks(stand, "a").0, ran_on_base);
    stand.release("b");
    assert_done_once(stand, "b", stand.modern().call("run_process", work("b")).send().await);
}
