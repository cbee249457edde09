//! Devices, enrolment and policy.

use holdfast_testkit::home::Home;
use holdfast_testkit::stand::{RelayStand, Stand, WireKind, found, until, work};
use serde_json::json;

#[tokio::test]
async fn a_code_enrols_once_and_may_come_from_stdin() {
    let relay = RelayStand::start(WireKind::Feature).await;
    let code = relay.code().await;
    assert!(code.chars().filter(char::is_ascii_alphanumeric).count() == 20 && code.lines().count() == 1, "{code:?}");
    let home = Home::new();
    let enrolled = home.run_with(&["enroll", &relay.url], &format!("{code}\n")).await;
    assert!(enrolled.status.success(), "{}", String::from_utf8_lossy(&enrolled.stderr));
    let again = Home::new().run(&["enroll", &relay.url, &code]).await;
    assert!(!again.status.success());
    let nowhere = Home::new().run(&["enroll", "http://203.0.113.1:8787", &code]).await;
    assert!(!nowhere.status.success(), "plain HTTP only to this machine");
}

#[tokio::test]
async fn devices_are_listed_renamed_made_default_and_revoked() {
    let stand = Stand::start(WireKind::Feature).await;
    let relay = &stand.relay.home;
    let second = Home::new();
    second.ok(&["enroll", &stand.relay.url, &stand.relay.code().await]).await;
    let devices = relay.json(&["device", "list", "--json"]).await;
    let devices = devices.as_array().expect("a list").clone();
    assert_eq!(devices.len(), 2);
    let default = devices.iter().find(|d| d["default"] == true).expect("one is the default")["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let other =
        devices.iter().find(|d| d["default"] == false).expect("one is not")["id"].as_str().expect("an id").to_owned();
    relay.ok(&["device", "rename", &other, "spare"]).await;
    relay.ok(&["device", "default", "spare"]).await;
    let devices = relay.json(&["device", "list", "--json"]).await;
    let spare = devices.as_array().expect("a list").iter().find(|d| d["id"] == *other).expect("there").clone();
    assert_eq!((&spare["name"], &spare["default"]), (&json!("spare"), &json!(true)));

    // The device of the stand runs a call; revoking it closes its link at once.
    let client = stand.modern();
    let call = tokio::spawn(async move { client.call("run_process", work("a")).send().await });
    stand.journal_has("started a").await;
    relay.ok(&["device", "revoke", &default]).await;
    stand.proxy.until("the link's end", |seen| seen.open == 0).await;
    stand.work_ended("a").await;
    let _ = call.await;
    found("sign_in_needed", async || (stand.status().await["relay"]["state"] == "sign_in_needed").then_some(())).await;
}

#[tokio::test]
async fn enrolling_anew_stops_what_ran_for_the_old_device_and_says_so() {
    let stand = Stand::start(WireKind::Feature).await;
    let client = stand.modern();
    let call = tokio::spawn(async move { client.call("run_process", work("a")).send().await });
    stand.journal_has("started a").await;
    stand.home.ok(&["enroll", &stand.proxy.http(), &stand.relay.code().await]).await;
    stand.work_ended("a").await;
    let answer = call.await.expect("the task").expect("an answer");
    assert_eq!(answer.code(), Some("outcome_unknown"), "{answer:?}");
    stand.ready(2).await;
    assert!(until(|| stand.device.log().contains("cannot know their outcome")).await, "{}", stand.device.log());
}

#[tokio::test]
async fn policy_set_changes_what_the_device_offers() {
    let stand = Stand::start(WireKind::Feature).await;
    assert!(stand.modern().tools().await.contains(&"run_process".to_owned()));
    stand.home.ok(&["policy", "set", "review"]).await;
    offers(&stand, "run_process", false).await;
    let answer = stand.modern().call("run_process", work("a")).send().await.expect("an answer");
    assert!(answer.code().is_some() && stand.journal().is_empty(), "{answer:?}");
    stand.home.ok(&["policy", "set", "full"]).await;
    offers(&stand, "exec_command", true).await;
    let answer =
        stand.modern().call("exec_command", json!({"command": "echo $((6*7))"})).send().await.expect("an answer");
    assert_eq!(answer.content()["stdout"], "42\n");
    let wrong = stand.home.run(&["policy", "set", "everything"]).await;
    assert!(!wrong.status.success());
}

async fn offers(stand: &Stand, tool: &str, there: bool) {
    let offered = async || stand.modern().tools().await.iter().any(|name| name == tool);
    found(&format!("{tool} offered: {there}"), async || (offered().await == there).then_some(())).await;
}
