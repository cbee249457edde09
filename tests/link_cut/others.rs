//! Another instance, device or account never receives or claims a call, nor evicts a device that answers (`docs/PROMISES.md`, L4).

use std::time::Duration;

use holdfast_testkit::base::{self, Frame};
use holdfast_testkit::home::Home;
use holdfast_testkit::stand::{Stand, WireKind, work};

use super::{assert_done_once, on_both_wires};

on_both_wires!(
    a_stolen_token_cannot_evict_a_device_that_answers,
    another_device_never_gets_the_calls_of_this_one,
    another_device_cannot_claim_calls_with_this_ones_instance_id,
);

/// The device's credential, as a thief of its secrets file has it.
fn credential(stand: &Stand) -> String {
    holdfast_testkit::stand::device_credential(&stand.home)
}

async fn a_stolen_token_cannot_evict_a_device_that_answers(wire: WireKind) {
    let stand = Stand::start(wire).await;
    let client = stand.modern();
    let call = client.call("run_process", work("a")).send();
    let theft = async {
        stand.journal_has("started a").await;
        let mut thief = base::dial(&stand.relay.url, &credential(&stand)).await.expect("the token is right");
        thief.send(base::hello(&base::instance("thief"), &["run_process"])).await;
        let (before, code, reason) = thief.closed().await;
        assert_eq!((code, &*reason), (1013, "device_in_use"));
        assert!(
            before.iter().all(|frame| frame["type"] != "resume_calls" && frame["type"] != "tool_call"),
            "{before:?}"
        );
        stand.release("a");
    };
    let (answer, ()) = tokio::join!(call, theft);
    assert_done_once(&stand, "a", answer);
    assert_eq!(stand.proxy.seen().down.of("ready_ack"), 1, "nothing of the incumbent changed");
}

/// Enrols a second device of the same account and dials as it.
async fn second_device(stand: &Stand) -> base::Wire {
    let home = Home::new();
    home.ok(&["enroll", &stand.relay.url, &stand.relay.code().await]).await;
    let token = holdfast_testkit::stand::device_credential(&home);
    base::dial(&stand.relay.url, &token).await.expect("enrolled")
}

async fn another_device_never_gets_the_calls_of_this_one(wire: WireKind) {
    let stand = Stand::start(wire).await;
    let mut second = second_device(&stand).await;
    let resumed = ready_as(&mut second, wire, "second").await;
    assert_eq!(resumed, Vec::<String>::new());
    stand.release("a");
    assert_done_once(&stand, "a", stand.modern().call("run_process", work("a")).send().await);
    nothing_but_life(&mut second).await;
}

async fn another_device_cannot_claim_calls_with_this_ones_instance_id(wire: WireKind) {
    let stand = Stand::start(wire).await;
    let client = stand.modern();
    let call = client.call("run_process", work("a")).send();
    let forgery = async {
        stand.journal_has("started a").await;
        stand.proxy.cut();
        stand.proxy.until("a refused dial", |seen| seen.refused > 0).await;
        let hello: serde_json::Value = serde_json::from_str(&stand.proxy.captured("hello")).expect("JSON");
        let mut second = second_device(&stand).await;
        second.send(base::hello(hello["instance_id"].as_str().expect("an id"), &["run_process"])).await;
        let resumed = prove(&mut second).await;
        assert_eq!(resumed, Vec::<String>::new());
        stand.proxy.heal();
        stand.ready(2).await;
        stand.release("a");
    };
    let (answer, ()) = tokio::join!(call, forgery);
    assert_done_once(&stand, "a", answer);
}

async fn ready_as(daemon: &mut base::Wire, wire: WireKind, tail: &str) -> Vec<String> {
    if wire == WireKind::Base {
        return daemon.become_ready(&base::instance(tail), &["run_process"]).await;
    }
    daemon.send(base::hello(&base::instance(tail), &["run_process"])).await;
    prove(daemon).await
}

/// The rest of the handshake after `hello`, whatever name the relay carries.
async fn prove(daemon: &mut base::Wire) -> Vec<String> {
    daemon.expect("welcome").await;
    daemon.expect("hello_ack").await;
    let probe = daemon.expect("relay_probe").await;
    daemon.send(serde_json::json!({"type": "relay_probe_result", "id": probe["id"]})).await;
    let resumed = daemon.expect("resume_calls").await;
    daemon.expect("ready_ack").await;
    resumed["ids"].as_array().expect("ids").iter().map(|id| id.as_str().expect("an id").to_owned()).collect()
}

/// Half a second in which no call comes.
async fn nothing_but_life(daemon: &mut base::Wire) {
    while let Some(frame) = daemon.next_within(Duration::from_millis(500)).await {
        match frame {
            Frame::Json(message) => assert_ne!(message["type"], "tool_call"),
            other => panic!("the second device lost its link: {other:?}"),
        }
    }
}
