//! Tokens: missing, wrong, foreign, of a lower role, revoked.

use holdfast_testkit::mcp::{Modern, http};
use holdfast_testkit::oauth::OAuthClient;
use holdfast_testkit::stand::{ACCOUNT, PASSWORD, Stand, WireKind, work};
use serde_json::{Value, json};

async fn status(url: &str, token: &str) -> u16 {
    Modern::new(url, token).call("list_dir", json!({})).send().await.expect("an answer").status
}

#[tokio::test]
async fn without_a_good_token_every_request_is_a_401_that_says_where_to_get_one() {
    let stand = Stand::start(WireKind::Feature).await;
    for token in ["", "x", "hf_pat_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", &stand.token[..stand.token.len() - 1]]
    {
        let sent = http().post(stand.relay.mcp()).bearer_auth(token).json(&json!({})).send().await.expect("an answer");
        assert_eq!(sent.status(), 401, "{token:?}");
        let challenge = sent.headers()["www-authenticate"].to_str().expect("text");
        assert!(challenge.contains("resource_metadata="), "{challenge}");
    }
    let in_the_url = format!("{}?access_token={}", stand.relay.mcp(), stand.token);
    let sent = http().post(in_the_url).json(&json!({})).send().await.expect("an answer");
    assert_eq!(sent.status(), 401, "a token in a URL counts for nothing");
}

#[tokio::test]
async fn a_token_of_one_device_is_worth_nothing_at_another() {
    let stand = Stand::start(WireKind::Feature).await;
    let second = holdfast_testkit::home::Home::new();
    second.ok(&["enroll", &stand.relay.url, &stand.relay.code().await]).await;
    let devices = stand.relay.home.json(&["device", "list", "--json"]).await;
    let devices: Vec<_> =
        devices.as_array().expect("a list").iter().map(|d| d["id"].as_str().expect("an id").to_owned()).collect();
    assert_eq!(devices.len(), 2);
    let mut good = 0;
    for device in &devices {
        match status(&format!("{}/{device}", stand.relay.mcp()), &stand.token).await {
            200 => good += 1,
            refused => assert!([401, 403, 404].contains(&refused), "{refused}"),
        }
    }
    assert_eq!(good, 1, "only its own");
    assert!(
        [401, 403, 404].contains(&status(&format!("{}/dev_AAAAAAAAAAAAAAAA", stand.relay.mcp()), &stand.token).await)
    );
}

#[tokio::test]
async fn a_reviewer_sees_and_runs_only_what_reads() {
    let stand = Stand::start(WireKind::Feature).await;
    let client = Modern::new(stand.relay.mcp(), stand.relay.token("reviewer").await);
    let tools = client.tools().await;
    assert!(tools.contains(&"read_file".to_owned()), "{tools:?}");
    for hidden in ["write_file", "run_process", "exec_command", "start_process"] {
        assert!(!tools.contains(&hidden.to_owned()), "{hidden}");
    }
    let answer = client.call("run_process", work("a")).send().await.expect("an answer");
    assert!(matches!(answer.code(), Some("authorization_denied" | "invalid_request")), "{answer:?}");
    let answer = client.call("write_file", json!({"path": "x", "content": "y"})).send().await.expect("an answer");
    assert!(matches!(answer.code(), Some("authorization_denied" | "invalid_request")), "{answer:?}");
    assert!(stand.journal().is_empty() && !stand.home.workspace().join("x").exists());
}

#[tokio::test]
async fn a_revoked_token_is_dead_at_once_and_its_calls_are_killed() {
    let stand = Stand::start(WireKind::Feature).await;
    let session = stand.session().await;
    let client = stand.modern();
    let call = tokio::spawn(async move { client.call("run_process", work("a")).send().await });
    let stream = session.start_call(1, "run_process", work("b")).await.expect("a stream");
    stand.journal_has("started a").await;
    stand.journal_has("started b").await;
    let tokens = stand.relay.home.json(&["token", "list", "--json"]).await;
    let id = tokens[0]["id"].as_str().expect("an id").to_owned();
    stand.relay.home.ok(&["token", "revoke", &id]).await;
    stand.work_ended("a").await;
    stand.work_ended("b").await;
    if let Ok(answer) = call.await.expect("no panic") {
        assert_eq!(answer.code(), Some("cancelled"), "{answer:?}");
    }
    if let Ok(answer) = stream.answer().await {
        assert_eq!(answer.code(), Some("cancelled"), "{answer:?}");
    }
    assert_eq!(status(&stand.relay.mcp(), &stand.token).await, 401);
    assert_eq!(session.request("tools/list", json!({})).await.expect("an answer").status, 401);
    assert!(!stand.journal().iter().any(|line| line.starts_with("finished")));
}

#[tokio::test]
async fn a_revoked_client_loses_access_and_refresh_at_once() {
    let stand = Stand::start(WireKind::Feature).await;
    let client = OAuthClient::register(&stand.relay.mcp()).await;
    let tokens = client.log_in(ACCOUNT, PASSWORD).await;
    let access = tokens["access_token"].as_str().expect("a token");
    assert_eq!(status(&stand.relay.mcp(), access).await, 200);
    let clients = stand.relay.home.json(&["client", "list", "--json"]).await;
    let clients = clients.as_array().expect("a list");
    let mine = clients.iter().find(|one| one["name"] == "holdfast-testkit").unwrap_or_else(|| panic!("{clients:?}"));
    let id = mine["id"].as_str().expect("an id").to_owned();
    stand.relay.home.ok(&["client", "revoke", &id]).await;
    assert_eq!(status(&stand.relay.mcp(), access).await, 401);
    let (refused, body): (u16, Value) = client.refresh(tokens["refresh_token"].as_str().expect("a token")).await;
    assert_eq!((refused, &body["error"]), (400, &json!("invalid_grant")));
}

#[tokio::test]
async fn cutting_all_access_ends_every_token_kills_what_runs_and_stops_the_link() {
    let stand = Stand::start(WireKind::Feature).await;
    let tokens = OAuthClient::register(&stand.relay.mcp()).await.log_in(ACCOUNT, PASSWORD).await;
    let access = tokens["access_token"].as_str().expect("a token");
    let client = stand.modern();
    let call = tokio::spawn(async move { client.call("run_process", work("a")).send().await });
    stand.journal_has("started a").await;
    stand.relay.home.ok(&["client", "revoke", "--all"]).await;
    stand.work_ended("a").await;
    if let Ok(answer) = call.await.expect("no panic") {
        assert_eq!(answer.code(), Some("cancelled"), "{answer:?}");
    }
    for token in [&*stand.token, access] {
        assert_eq!(status(&stand.relay.mcp(), token).await, 401);
    }
    stand.home.ok(&["client", "revoke", "--all"]).await;
    stand.proxy.until("the link's end", |seen| seen.open == 0).await;
    assert_eq!(stand.status().await["relay"]["state"], "stopped");
}
