//! Another account, another client, another process on the same relay.

use holdfast_testkit::home::Home;
use holdfast_testkit::mcp::{Modern, Session};
use holdfast_testkit::oauth::OAuthClient;
use holdfast_testkit::stand::{ACCOUNT, PASSWORD, Stand, WireKind, work};
use serde_json::{Value, json};

/// A second account with a device of its own, and a token for it.
async fn stranger(stand: &Stand) -> (Home, String) {
    let relay = &stand.relay.home;
    let added = relay
        .run_with(&["account", "add", "eve", "--role", "owner", "--password-stdin"], "another long password\n")
        .await;
    assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
    let home = Home::new();
    home.ok(&["enroll", &stand.relay.url, &relay.ok(&["device", "code", "--account", "eve"]).await]).await;
    let devices = relay.json(&["device", "list", "--json"]).await;
    let devices = devices.as_array().expect("a list");
    let hers = devices.iter().find(|device| device["account"] == "eve").unwrap_or_else(|| panic!("{devices:?}"));
    let device = hers["id"].as_str().expect("an id");
    let token = relay.ok(&["token", "create", "--name", "eve", "--account", "eve", "--device", device]).await;
    (home, token)
}

#[tokio::test]
async fn another_account_reaches_neither_device_nor_session_nor_call() {
    let stand = Stand::start(WireKind::Feature).await;
    let (_home, eve) = stranger(&stand).await;
    let devices = stand.relay.home.json(&["device", "list", "--json"]).await;
    for device in devices.as_array().expect("a list").iter().filter(|device| device["account"] == ACCOUNT) {
        let url = format!("{}/{}", stand.relay.mcp(), device["id"].as_str().expect("an id"));
        let status = Modern::new(url, &*eve).call("list_dir", json!({})).send().await.expect("an answer").status;
        assert!([401, 403, 404].contains(&status), "{status}");
    }
    let mine = stand.session().await;
    let stream = mine.start_call(1, "run_process", work("a")).await.expect("a stream");
    stand.journal_has("started a").await;
    let stolen = mine.stolen_by(&eve);
    assert_eq!(stolen.request("tools/list", json!({})).await.expect("an answer").status, 404);
    assert_eq!(stolen.cancel(1).await, 404);
    assert_eq!(stolen.delete().await, 404);
    assert_eq!(stolen.resume("0").await.expect("an answer").status(), 404);
    let hers = Session::open(stand.relay.mcp(), &*eve).await;
    assert_eq!(hers.cancel(1).await, 202, "her own session knows no such call");
    stand.release("a");
    assert_eq!(stream.answer().await.expect("an answer").content()["stdout"], "result-a\n");
}

#[tokio::test]
async fn equal_json_rpc_ids_of_two_clients_never_mix() {
    let stand = Stand::start(WireKind::Feature).await;
    let (one, two) = (stand.session().await, stand.session().await);
    let first = one.start_call(1, "run_process", work("a")).await.expect("a stream");
    let second = two.start_call(1, "run_process", work("b")).await.expect("a stream");
    stand.journal_has("started a").await;
    stand.journal_has("started b").await;
    assert_eq!(one.cancel(1).await, 202);
    stand.work_ended("a").await;
    drop(first);
    stand.release("b");
    assert_eq!(second.answer().await.expect("an answer").content()["stdout"], "result-b\n");
    let (c, d) = (stand.modern(), stand.modern());
    stand.release("c");
    stand.release("d");
    let (c, d) =
        tokio::join!(c.call("run_process", work("c")).id(1).send(), d.call("run_process", work("d")).id(1).send());
    assert_eq!(c.expect("an answer").content()["stdout"], "result-c\n");
    assert_eq!(d.expect("an answer").content()["stdout"], "result-d\n");
}

#[tokio::test]
async fn a_process_session_belongs_to_the_client_that_started_it() {
    let stand = Stand::start(WireKind::Feature).await;
    let started = stand.modern().call("start_process", json!({"argv": ["cat"]})).send().await.expect("an answer");
    let id = started.content()["session_id"].as_str().expect("an id").to_owned();
    let other = OAuthClient::register(&stand.relay.mcp()).await.log_in(ACCOUNT, PASSWORD).await;
    let other = Modern::new(stand.relay.mcp(), other["access_token"].as_str().expect("a token"));
    for (tool, arguments) in [
        ("read_process", json!({"session_id": id})),
        ("write_process", json!({"session_id": id, "data": "x"})),
        ("kill_process", json!({"session_id": id})),
    ] {
        let answer = other.call(tool, arguments).send().await.expect("an answer");
        assert_eq!(answer.code(), Some("not_found"), "{tool}: {answer:?}");
    }
    let mine = stand
        .modern()
        .call("write_process", json!({"session_id": id, "data": "hello\n", "close_stdin": true}))
        .send()
        .await;
    assert_eq!(mine.expect("an answer").code(), None);
    let read = json!({"session_id": id, "wait_for_exit": true, "wait_ms": 10_000});
    let read = stand.modern().call("read_process", read).send().await.expect("an answer");
    assert_eq!(read.content()["stdout"]["text"], "hello\n");
}

#[tokio::test]
async fn one_key_of_two_clients_is_two_keys() {
    let stand = Stand::start(WireKind::Feature).await;
    let other = OAuthClient::register(&stand.relay.mcp()).await.log_in(ACCOUNT, PASSWORD).await;
    let other = Modern::new(stand.relay.mcp(), other["access_token"].as_str().expect("a token"));
    stand.release("a");
    for client in [&stand.modern(), &other] {
        let answer = client.call("run_process", work("a")).idempotency_key("k").send().await.expect("an answer");
        assert_eq!(answer.content()["stdout"], "result-a\n");
    }
    assert_eq!(stand.journal().iter().filter(|line| *line == "started a").count(), 2);
}

#[tokio::test]
async fn calls_held_during_an_outage_are_bounded() {
    let stand = Stand::start(WireKind::Feature).await;
    stand.proxy.cut();
    stand.missed().await;
    let calls: Vec<_> = (0..80)
        .map(|_| {
            let client = stand.modern();
            tokio::spawn(async move { client.call("list_dir", json!({})).send().await.expect("an answer") })
        })
        .collect();
    let mut codes = std::collections::BTreeMap::<String, usize>::new();
    for call in calls {
        let answer = call.await.expect("no panic");
        assert_eq!(answer.retryable(), Some(true), "{answer:?}");
        *codes.entry(answer.code().expect("a code").to_owned()).or_default() += 1;
    }
    assert_eq!(codes, [("busy".to_owned(), 20), ("unavailable".to_owned(), 60)].into());
}

#[tokio::test]
async fn a_client_that_reads_nothing_blocks_nobody() {
    let stand = Stand::start(WireKind::Feature).await;
    let session = stand.session().await;
    let flood = json!({"argv": ["/bin/sh", "-c", "head -c 400000 /dev/zero | tr '\\0' x"]});
    let mut stalled = Vec::new();
    for id in 0..8 {
        stalled
            .push(session.start_call(format!("stalled {id}"), "run_process", flood.clone()).await.expect("a stream"));
    }
    stand.release("a");
    let answer = session.call("run_process", work("a")).await.expect("an answer");
    assert_eq!(answer.content()["stdout"], "result-a\n");
    assert_eq!(session.notify("notifications/cancelled", json!({"requestId": "stalled 0"})).await, 202);
    let read: Value = stalled.pop().expect("one").answer().await.expect("an answer").content()["code"].clone();
    assert_eq!(read, 0, "what was not read waits");
}
