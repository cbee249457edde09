//! Commands that show: status, calls, logs, doctor.

use holdfast_testkit::stand::{Stand, WireKind, found, work};
use serde_json::Value;

#[tokio::test]
async fn status_shows_link_calls_outages_and_warnings_as_they_change() {
    let stand = Stand::start(WireKind::Feature).await;
    let first = healthy(&stand).await;
    for path in [
        "/relay/state",
        "/relay/since",
        "/relay/attempts",
        "/relay/route",
        "/calls/pending",
        "/calls/detached",
        "/calls/queued_results",
        "/calls/by_tool",
        "/outages",
        "/health",
        "/seq",
    ] {
        assert!(first.pointer(path).is_some(), "{path} is missing: {first}");
    }
    for path in ["/relay/cause", "/relay/next_try_at", "/calls/oldest_ms"] {
        let (parent, key) = path.rsplit_once('/').expect("a path");
        assert!(
            first.pointer(parent).and_then(Value::as_object).expect("an object").contains_key(key),
            "{path}: {first}"
        );
    }
    assert_eq!((&first["calls"]["pending"], &first["relay"]["route"]), (&0.into(), &"direct".into()));

    let client = stand.modern();
    let call = tokio::spawn(async move { client.call("run_process", work("a")).send().await });
    stand.journal_has("started a").await;
    // The program says that it runs before the snapshot does.
    let running = status_when(&stand, |status| status["calls"]["pending"] == 1).await;
    assert_eq!((&running["calls"]["pending"], &running["calls"]["by_tool"]["run_process"]), (&1.into(), &1.into()));
    stand.proxy.cut();
    stand.proxy.until("a refused dial", |seen| seen.refused > 0).await;
    // The worker's dial may be the one that was refused.
    let cut = status_when(&stand, |status| status["relay"]["attempts"].as_u64() >= Some(1)).await;
    assert_eq!(cut["calls"]["detached"], 1, "{cut}");
    assert!(["blip", "outage"].contains(&cut["relay"]["state"].as_str().expect("text")), "{cut}");
    assert!(cut["relay"]["attempts"].as_u64() >= Some(1) && cut["relay"]["cause"].is_string(), "{cut}");
    assert!(cut["seq"].as_u64() > first["seq"].as_u64());
    // The relay hears of the cut later than the device.
    found("a detached call as the relay sees it", async || {
        let seen = stand.relay.ask(&stand.token, "server_info", serde_json::json!({})).await;
        (seen["worker"]["pending_calls"]["detached"] == 1).then_some(())
    })
    .await;
    stand.release("a");
    stand.journal_has("finished a").await;
    stand.proxy.heal();
    assert_eq!(call.await.expect("no panic").expect("an answer").content()["stdout"], "result-a\n");
    let after = healthy(&stand).await;
    assert_eq!(
        (&after["calls"]["pending"], &after["calls"]["detached"], &after["calls"]["queued_results"]),
        (&0.into(), &0.into(), &0.into())
    );

    let calls = stand.home.json(&["calls", "--json"]).await;
    assert!(calls.to_string().contains("run_process"), "{calls}");
    let text = stand.home.ok(&["status"]).await;
    assert!(text.contains("healthy") || text.contains("Connected"), "{text}");
}

/// The status once this holds.
async fn status_when(stand: &Stand, holds: impl Fn(&Value) -> bool) -> Value {
    found("such a status", async || Some(stand.status().await).filter(&holds)).await
}

async fn healthy(stand: &Stand) -> Value {
    status_when(stand, |status| {
        status["relay"]["state"] == "healthy"
            && status["calls"]["pending"] == 0
            // The acknowledgement comes a moment after the answer.
            && status["calls"]["queued_results"] == 0
    })
    .await
}

#[tokio::test]
async fn logs_and_doctor_say_something_without_secrets() {
    let stand = Stand::start(WireKind::Feature).await;
    healthy(&stand).await;
    let credential = holdfast_testkit::stand::device_credential(&stand.home);
    let report = stand.home.json(&["doctor", "--json"]).await;
    assert!(report.is_object(), "{report}");
    let text = stand.home.ok(&["doctor"]).await;
    let logs = stand.home.ok(&["logs"]).await;
    assert!(text.lines().count() > 5 && !logs.is_empty());
    for shown in [report.to_string(), text, logs] {
        assert!(!shown.contains(&credential) && !shown.contains(&stand.token));
    }
}

#[tokio::test]
async fn status_without_a_running_holdfast_says_so_and_fails() {
    let home = holdfast_testkit::home::Home::new();
    let output = home.run(&["status"]).await;
    assert!(!output.status.success());
    assert!(!output.stderr.is_empty());
}

#[tokio::test]
async fn help_names_every_command_and_an_unknown_one_is_refused() {
    let home = holdfast_testkit::home::Home::new();
    let help = home.ok(&["--help"]).await;
    for command in [
        "serve", "relay", "account", "device", "enroll", "token", "approve", "client", "policy", "status", "calls",
        "logs", "doctor", "drill", "open",
    ] {
        assert!(help.contains(command), "{command} is missing in {help}");
    }
    assert_eq!(home.run(&["no-such-command"]).await.status.code(), Some(2));
}
