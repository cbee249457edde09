//! What a run outlives, and what happens to it when the relay is away.

use std::time::Duration;

use base64::Engine as _;
use holdfast_testkit::process::{Signal, send};
use holdfast_testkit::stand::{alive, until};
use serde_json::json;

use crate::desk::Desk;

/// Leaves its marks and waits for a file.
fn waiting(name: &str) -> String {
    format!(
        "echo pid {name} $$ >> journal; echo started {name} >> journal; \
         while [ ! -e release-{name} ]; do [ -e journal ] || exit 9; sleep 0.05; done; echo result-{name}; exit 3"
    )
}

#[tokio::test]
async fn a_run_outlives_a_worker_that_stops_and_its_end_arrives_when_the_next_one_starts() {
    let mut desk = Desk::start().await;
    let id = desk.script(&waiting("a")).await;
    desk.stand.journal_has("started a").await;
    let pid = desk.stand.work_pid("a");
    desk.state(&id, &["running"]).await;
    desk.stand.device.stop().await;
    assert!(alive(pid), "stopping Holdfast ends no run");
    desk.stand.release("a");
    assert!(until(|| !alive(pid)).await);
    assert_eq!(desk.view(&id).await.expect("a view")["state"], "running", "nobody has told the relay");
    desk.stand.restart_device().await;
    let view = desk.end(&id).await;
    assert_eq!((&view["state"], &view["outcome"]["exit"]["code"]), (&json!("completed"), &json!(3)), "{view}");
    assert_eq!(desk.output(&id, "stdout").await, b"result-a\n");
    assert_eq!(desk.started("a"), 1);
}

#[tokio::test]
async fn an_operation_that_is_asked_for_while_the_worker_is_away_runs_once_when_it_comes() {
    let mut desk = Desk::start().await;
    desk.stand.device.kill_9().await;
    let id = desk.script("echo started late >> journal; echo done").await;
    assert_eq!(desk.view(&id).await.expect("a view")["state"], "queued");
    desk.stand.relay.process.kill_9().await;
    desk.stand.relay.restart().await;
    desk.stand.restart_device().await;
    assert_eq!(desk.end(&id).await["state"], "completed");
    assert_eq!((desk.started("late"), desk.output(&id, "stdout").await), (1, b"done\n".to_vec()));
}

#[tokio::test]
async fn output_that_is_written_while_the_network_is_away_arrives_whole_afterwards() {
    let desk = Desk::start().await;
    let id = desk.script("echo started cut >> journal; for i in 1 2 3 4 5 6; do seq $i 20000; sleep 0.2; done").await;
    desk.stand.journal_has("started cut").await;
    desk.stand.proxy.cut();
    tokio::time::sleep(Duration::from_secs(2)).await;
    desk.stand.proxy.heal();
    assert_eq!(desk.end(&id).await["state"], "completed");
    let expected: String = (1..=6).flat_map(|first| first..=20_000).map(|number| format!("{number}\n")).collect();
    assert!(desk.output(&id, "stdout").await == expected.as_bytes());
}

#[tokio::test]
async fn a_worker_that_was_frozen_goes_on_with_what_it_has() {
    let desk = Desk::start().await;
    let id = desk.script(&waiting("frozen")).await;
    desk.stand.journal_has("started frozen").await;
    desk.stand.device.freeze();
    desk.stand.release("frozen");
    tokio::time::sleep(Duration::from_secs(12)).await;
    desk.stand.device.thaw();
    let view = desk.end(&id).await;
    assert_eq!((&view["state"], &view["outcome"]["exit"]["code"]), (&json!("completed"), &json!(3)), "{view}");
}

#[tokio::test]
async fn a_cancelled_run_is_ended_with_everything_it_started_even_if_it_does_not_listen() {
    let desk = Desk::start().await;
    let id = desk
        .script("trap '' TERM; sh -c 'trap \"\" TERM; echo pid child $$ >> journal; sleep 600' & echo started stubborn >> journal; wait; sleep 600")
        .await;
    desk.stand.journal_has("started stubborn").await;
    assert!(until(|| desk.stand.journal().iter().any(|line| line.starts_with("pid child"))).await);
    let child = desk.stand.work_pid("child");
    assert_eq!(desk.post(&format!("/{id}/cancel"), json!({})).await.0, 200);
    assert_eq!(desk.end(&id).await["state"], "cancelled");
    assert!(until(|| !alive(child)).await, "what it started is ended too");
}

#[tokio::test]
async fn input_reaches_a_program_once_and_in_order_across_a_worker_that_dies() {
    let mut desk = Desk::start().await;
    let id = desk.begin(json!({"type": "exec", "command": {"argv": ["cat"]}, "stdin": true})).await;
    let input = |text: &str, close: bool| {
        let data = base64::engine::general_purpose::STANDARD.encode(text);
        json!({"request": {"type": "exec_stdin", "data": data, "close": close}, "key": format!("key of {text}")})
    };
    for number in 0..5 {
        assert_eq!(desk.post(&format!("/{id}/input"), input(&format!("before {number}\n"), false)).await.0, 202);
    }
    desk.stand.device.kill_9().await;
    for number in 0..5 {
        for _repeated in 0..2 {
            let (status, _) = desk.post(&format!("/{id}/input"), input(&format!("after {number}\n"), false)).await;
            assert_eq!(status, 202);
        }
    }
    assert_eq!(desk.post(&format!("/{id}/input"), input("", true)).await.0, 202);
    desk.stand.restart_device().await;
    assert_eq!(desk.end(&id).await["state"], "completed");
    let lines = |when: &str| (0..5).map(|number| format!("{when} {number}\n")).collect::<String>();
    let written = String::from_utf8(desk.output(&id, "stdout").await).expect("text");
    assert_eq!(written, lines("before") + &lines("after"));
}

#[tokio::test]
async fn a_killed_runner_is_told_as_unknown_and_what_it_left_behind_is_ended() {
    let desk = Desk::start().await;
    let id = desk.script(&waiting("orphan")).await;
    desk.stand.journal_has("started orphan").await;
    let child = desk.stand.work_pid("orphan");
    send(desk.runner().await, Signal::SIGKILL);
    let view = desk.end(&id).await;
    assert_eq!(view["state"], "unknown", "{view}");
    assert!(until(|| !alive(child)).await, "unknown means over");
    desk.stand.release("orphan");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_runner_that_waits_keeps_little_of_its_program_in_memory() {
    let desk = Desk::start().await;
    let id = desk.script(&waiting("idle")).await;
    desk.stand.journal_has("started idle").await;
    let status = format!("/proc/{}/status", desk.runner().await);
    // Its start alone touches more than 15 MB of the file in a build for tests.
    let kept = || {
        let status = std::fs::read_to_string(&status).expect("it lives");
        let line = status.lines().find_map(|line| line.strip_prefix("RssFile:")).expect("a size");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number")
    };
    assert!(until(|| kept() < 8 * 1024).await, "{} kB", kept());
    desk.stand.release("idle");
    assert_eq!(desk.end(&id).await["outcome"]["exit"]["code"], 3);
}
