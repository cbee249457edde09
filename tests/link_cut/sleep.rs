//! A machine that is frozen and goes on (`docs/PROMISES.md`, L8). Announced sleep is proven in virtual time.

use std::time::{Duration, Instant};

use holdfast_testkit::stand::{Stand, WireKind, work};

use super::{assert_done_once, on_both_wires};

on_both_wires!(a_daemon_frozen_for_fifteen_seconds_completes_its_call_after_the_wake);

async fn a_daemon_frozen_for_fifteen_seconds_completes_its_call_after_the_wake(wire: WireKind) {
    let stand = Stand::start(wire).await;
    let client = stand.modern();
    let call = client.call("run_process", work("a")).send();
    let sleep = async {
        stand.journal_has("started a").await;
        stand.device.freeze();
        stand.release("a");
        stand.journal_has("finished a").await;
        tokio::time::sleep(Duration::from_secs(15)).await;
        stand.device.thaw();
        Instant::now()
    };
    let (answer, thawed) = tokio::join!(call, sleep);
    let took = thawed.elapsed();
    assert_done_once(&stand, "a", answer);
    assert!(took < Duration::from_secs(30), "answered {took:?} after the wake");
}
