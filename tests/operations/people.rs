//! `holdfast op`, as a person uses it.

use std::process::Stdio;

use holdfast_testkit::stand::until;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;

use crate::desk::Desk;

#[tokio::test]
async fn op_run_shows_both_streams_and_ends_with_the_programs_own_code() {
    let desk = Desk::start().await;
    let ran = desk.stand.home.run(&["op", "run", "--", "sh", "-c", "echo out; echo err >&2; exit 9"]).await;
    assert_eq!(ran.status.code(), Some(9));
    assert_eq!((&ran.stdout[..], &ran.stderr[..]), (&b"out\n"[..], &b"err\n"[..]));
    let failed = desk.stand.home.run(&["op", "run", "--", "/no/such/program"]).await;
    assert_eq!(failed.status.code(), Some(125), "{}", String::from_utf8_lossy(&failed.stderr));
    let killed = desk.stand.home.run(&["op", "run", "--", "sh", "-c", "kill -9 $$"]).await;
    assert_eq!(killed.status.code(), Some(137));
}

#[tokio::test]
async fn with_json_each_line_of_op_run_is_an_object_and_output_is_base64() {
    let desk = Desk::start().await;
    let ran = desk.stand.home.run(&["op", "run", "--json", "--", "sh", "-c", "printf '\\377a'; exit 3"]).await;
    assert_eq!((ran.status.code(), &ran.stderr[..]), (Some(3), &b""[..]));
    let lines: Vec<Value> = ran
        .stdout
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).expect("JSON"))
        .collect();
    let events: Vec<_> = lines.iter().map(|line| line["event"].as_str().expect("a name")).collect();
    assert_eq!(events, ["started", "output", "end"]);
    assert_eq!(lines[1], json!({"event": "output", "stream": "stdout", "offset": 0, "data": "/2E="}));
    assert_eq!(lines[0]["operation"]["id"], lines[2]["operation"]["id"]);
    assert_eq!((&lines[2]["operation"]["outcome"]["exit"]["code"], &lines[2]["missing"]), (&json!(3), &json!(0)));
}

#[tokio::test]
async fn a_watcher_waits_through_a_holdfast_that_dies_and_comes_back() {
    let mut desk = Desk::start().await;
    let script = "echo started watched >> journal; echo before; \
                  while [ ! -e release-watched ]; do [ -e journal ] || exit 9; sleep 0.05; done; echo after; exit 5";
    let mut command = desk.stand.home.command(&["op", "run", "--", "sh", "-c", script]);
    let mut watcher = command.stdout(Stdio::piped()).spawn().expect("it starts");
    let mut out = watcher.stdout.take().expect("piped");
    let mut first = [0; 7];
    out.read_exact(&mut first).await.expect("the first line");
    assert_eq!(&first, b"before\n");
    desk.stand.device.kill_9().await;
    desk.stand.restart_device().await;
    desk.stand.release("watched");
    let mut rest = String::new();
    out.read_to_string(&mut rest).await.expect("the rest");
    assert_eq!(rest, "after\n");
    assert_eq!(watcher.wait().await.expect("it ends").code(), Some(5));
    assert_eq!(desk.started("watched"), 1);
}

#[tokio::test]
async fn stdin_is_passed_on_and_its_end_too() {
    let desk = Desk::start().await;
    let text = "one\ntwo\n".repeat(20_000);
    let ran = desk.stand.home.run_with(&["op", "run", "--stdin", "--", "sort", "-u"], &text).await;
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "one\ntwo\n", "{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(ran.status.code(), Some(0));
}

#[tokio::test]
async fn the_same_key_is_the_same_operation_and_another_request_under_it_a_conflict() {
    let desk = Desk::start().await;
    let home = &desk.stand.home;
    let script = "echo started keyed >> journal; echo one";
    for _ in 0..2 {
        assert_eq!(home.ok(&["op", "run", "--key", "k", "--", "sh", "-c", script]).await, "one");
    }
    assert_eq!(desk.started("keyed"), 1);
    let other = home.run(&["op", "run", "--key", "k", "--", "true", "--json"]).await;
    assert_eq!(other.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&other.stderr).contains("another"), "{}", String::from_utf8_lossy(&other.stderr));
}

#[tokio::test]
async fn a_detached_operation_is_listed_shown_read_and_cancelled() {
    let desk = Desk::start().await;
    let home = &desk.stand.home;
    let id = home.ok(&["op", "run", "--detach", "--", "sh", "-c", "echo here; sleep 600"]).await;
    desk.state(&id, &["running"]).await;
    let listed = home.json(&["op", "list", "--living", "--json"]).await;
    assert_eq!(listed[0]["id"], id.as_str());
    assert!(home.ok(&["op", "show", &id]).await.contains("running"));
    let read = async || home.ok(&["op", "read", &id]).await;
    let mut text = read().await;
    while text.is_empty() {
        text = read().await;
    }
    assert_eq!(text, "here");
    let told = async || home.ok(&["status"]).await.contains("1 operation runs").then_some(());
    holdfast_testkit::stand::found("the operation in the status", told).await;
    home.ok(&["op", "cancel", &id]).await;
    assert_eq!(desk.end(&id).await["state"], "cancelled");
}

#[tokio::test]
async fn an_operation_is_cancelled_on_this_machine_while_the_relay_is_away() {
    let mut desk = Desk::start().await;
    let id = desk.script("echo pid away $$ >> journal; echo started away >> journal; sleep 600").await;
    desk.stand.journal_has("started away").await;
    let pid = desk.stand.work_pid("away");
    desk.stand.relay.process.kill_9().await;
    desk.stand.home.ok(&["op", "cancel", &id]).await;
    assert!(until(|| !holdfast_testkit::stand::alive(pid)).await);
    desk.stand.relay.restart().await;
    assert_eq!(desk.end(&id).await["state"], "cancelled");
}
