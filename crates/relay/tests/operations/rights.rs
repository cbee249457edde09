//! Whose operations: guessed ids, other accounts, low roles, missing scopes, pages of strangers.

use holdfast_core::operation::{Outcome, Streams};
use holdfast_core::policy::Role;
use holdfast_core::wire::worker::WorkerFrame;
use holdfast_relay::TokenRequest;
use serde_json::json;

use crate::common::{PASSWORD, REDIRECT};
use crate::stage::{Stage, eventually, exec, id};

/// Every way to an operation.
fn ways(id: &str) -> Vec<(&'static str, String, serde_json::Value)> {
    vec![
        ("GET", format!("/{id}"), json!(null)),
        ("GET", format!("/{id}/output"), json!(null)),
        ("GET", format!("/{id}/output?follow=1"), json!(null)),
        ("GET", format!("?before={id}"), json!(null)),
        ("POST", format!("/{id}/cancel"), json!({})),
        ("POST", format!("/{id}/input"), json!({"request": {"type": "exec_stdin", "close": true}})),
    ]
}

#[tokio::test]
async fn an_operation_of_another_account_is_not_there_whatever_is_asked_of_it() {
    let mut stage = Stage::new().await;
    let owned = stage.start().await;
    stage.relay.add("eve", Role::Owner).await;
    let eve = stage.relay.token("eve").await;
    stage.token = eve;
    let guessed = "op_aaaaaaaaaaaaaaaaaaaaaa";
    for target in [owned.as_str(), guessed, "op_short", "..%2f", "x"] {
        for (method, path, body) in ways(target) {
            let answer = if method == "GET" { stage.get(&path).await } else { stage.post(&path, body).await };
            assert_eq!((answer.status, answer.code()), (404, "not_found".into()), "{method} {path}");
        }
    }
    assert_eq!(stage.get("").await.json(), json!({"operations": []}));
    // Her session of the same name is another one.
    assert_eq!(stage.post("/cancel-session", json!({"session": "nightly"})).await.status, 204);
    stage.token = stage.relay.token("ada").await;
    stage.start_with(json!({"request": exec(), "session": "nightly"})).await;
    assert_eq!(stage.state(&owned).await, "queued");
}

#[tokio::test]
async fn it_takes_the_role_operator_and_the_scope() {
    let stage = Stage::new().await;
    for (role, status) in [(Role::Reviewer, 403), (Role::Editor, 403), (Role::Operator, 202), (Role::Owner, 202)] {
        let request =
            TokenRequest { name: "t".into(), account: Some("ada".into()), role: Some(role), ..TokenRequest::default() };
        let token = stage.relay.handle.admin.create_token(request).await.unwrap().token;
        let bearer = format!("Bearer {token}");
        let answer =
            stage.relay.post("/api/operations", &json!({"request": exec()}), &[("authorization", &bearer)]).await;
        assert_eq!(answer.status, status, "{role:?} {answer:?}");
    }
    let client = stage.relay.register().await;
    for (scope, status) in [("mcp", 403), ("mcp operations", 200)] {
        let path = stage.relay.authorize_path(&client, &[("scope", Some(scope))]);
        let code = stage.relay.consent(&path, "ada").await.sent_to("code").unwrap();
        let tokens = stage.relay.trade(&client, &code, &[("redirect_uri", Some(REDIRECT))]).await.json();
        let bearer = format!("Bearer {}", tokens["access_token"].as_str().unwrap());
        let answer = stage.relay.get("/api/operations", &[("authorization", &bearer)]).await;
        assert_eq!(answer.status, status, "{scope}");
        let challenge = answer.header("www-authenticate").map(|text| text.contains("scope=\"operations\""));
        assert_eq!(challenge, (status == 403).then_some(true));
    }
}

#[tokio::test]
async fn the_consent_says_what_the_scope_means_to_whom_it_means_something() {
    let stage = Stage::new().await;
    stage.relay.add("rita", Role::Reviewer).await;
    let client = stage.relay.register().await;
    for (account, scope, named) in [
        ("ada", "mcp operations", true),
        ("ada", "mcp", true),
        ("rita", "mcp operations", false),
        ("rita", "mcp", false),
    ] {
        let path = stage.relay.authorize_path(&client, &[("scope", Some(scope))]);
        let (id, cookie) = stage.relay.open(&path).await;
        let fields = [("action", "password"), ("account", account), ("password", PASSWORD)];
        let signed = stage.relay.step(&id, &cookie, &fields).await;
        let page = stage.relay.get(signed.header("location").unwrap(), &[("cookie", &cookie)]).await;
        assert_eq!(
            page.body.contains("It can also start durable operations"),
            named,
            "{account} {scope}: {}",
            page.body
        );
    }
}

#[tokio::test]
async fn nobody_gets_in_without_a_credential_that_stands() {
    let stage = Stage::new().await;
    for headers in [
        vec![],
        vec![("authorization", "Bearer hf_pat_x")],
        vec![("authorization", "Basic YWRhOmNvcnJlY3Q=")],
        vec![("x-bridge-token", "hf_dev_x")],
        // A device's credential alone decides when there is one.
        vec![("x-bridge-token", ""), ("authorization", &*format!("Bearer {}", stage.token))],
        vec![("authorization", &*format!("Bearer {}", stage.device.token))],
        vec![("x-bridge-token", &*stage.token)],
    ] {
        let answer = stage.relay.get("/api/operations", &headers).await;
        assert_eq!(answer.status, 401, "{answer:?}");
    }
}

#[tokio::test]
async fn a_foreign_page_and_a_foreign_name_are_refused() {
    let stage = Stage::new().await;
    let bearer = format!("Bearer {}", stage.token);
    let own = stage.relay.origin();
    for (headers, status) in [
        (vec![("authorization", bearer.as_str()), ("origin", "https://evil.example")], 403),
        (vec![("authorization", &bearer), ("host", "evil.example")], 403),
        (vec![("x-bridge-token", &stage.device.token), ("origin", own.as_str())], 403),
        (vec![("x-bridge-token", &stage.device.token), ("host", "any.example")], 200),
        (vec![("authorization", &bearer), ("origin", &own)], 200),
    ] {
        assert_eq!(stage.relay.get("/api/operations", &headers).await.status, status, "{headers:?}");
    }
}

#[tokio::test]
async fn the_device_sees_and_cancels_everything_that_is_to_run_on_it_and_nothing_else() {
    let stage = Stage::new().await;
    let owned = stage.start().await;
    let stranger = stage.relay.add("eve", Role::Owner).await;
    let ask = async |token: &str, method: &str, path: &str| {
        let headers = [("x-bridge-token", token), ("content-type", "application/json")];
        stage.relay.send(method, &format!("/api/operations{path}"), &headers, "").await
    };
    let listed = ask(&stage.device.token, "GET", "").await.json();
    assert_eq!(listed["operations"][0]["id"], owned.as_str());
    assert_eq!(ask(&stranger.token, "GET", &format!("/{owned}")).await.status, 404);
    assert_eq!(ask(&stranger.token, "POST", &format!("/{owned}/cancel")).await.status, 404);
    let cancelled = ask(&stage.device.token, "POST", &format!("/{owned}/cancel")).await;
    assert_eq!(cancelled.json()["state"], "cancelled", "it was never sent");
}

#[tokio::test]
async fn cutting_all_access_cancels_every_operation_and_revoking_one_client_none() {
    let stage = Stage::new().await;
    let (client, tokens) = {
        let client = stage.relay.register().await;
        let path = stage.relay.authorize_path(&client, &[("scope", Some("mcp operations"))]);
        let code = stage.relay.consent(&path, "ada").await.sent_to("code").unwrap();
        (client.clone(), stage.relay.trade(&client, &code, &[]).await.json())
    };
    let bearer = format!("Bearer {}", tokens["access_token"].as_str().unwrap());
    let started = stage.relay.post("/api/operations", &json!({"request": exec()}), &[("authorization", &bearer)]).await;
    let of_client = id(&started.json());
    stage.relay.handle.admin.revoke_client(None, &client).await.unwrap();
    assert_eq!(stage.state(&of_client).await, "queued", "it is the account's");
    let admin = &stage.relay.handle.admin;
    admin.cut_all_access().await.unwrap();
    let counts = || stage.relay.handle.state().operations.counts();
    eventually("it is cancelled", async || counts().operations_cancelled == 1).await;
}

#[tokio::test]
async fn what_is_asked_is_bounded_and_told_by_its_code() {
    let stage = Stage::new().await;
    let too_long = "x".repeat(129);
    for (body, status, code) in [
        (json!({}), 400, "invalid_request"),
        (json!({"request": {"type": "format_disk"}}), 400, "invalid_request"),
        (json!({"request": exec(), "colour": 1}), 400, "invalid_request"),
        (json!({"request": {"type": "exec", "command": {"argv": []}}}), 400, "invalid_request"),
        (json!({"request": {"type": "exec_stdin", "close": true}}), 400, "invalid_request"),
        (json!({"request": exec(), "key": too_long}), 400, "invalid_request"),
        (json!({"request": exec(), "key": ""}), 400, "invalid_request"),
        (json!({"request": exec(), "session": "a\nb"}), 400, "invalid_request"),
        (json!({"request": exec(), "session": "x".repeat(65)}), 400, "invalid_request"),
        (
            json!({"request": {"type": "exec", "command": {"shell": "x".repeat(600_000)}}}),
            413,
            "request_body_too_large",
        ),
    ] {
        let answer = stage.post("", body).await;
        assert_eq!((answer.status, answer.code()), (status, code.to_owned()), "{answer:?}");
        assert!(!answer.body.contains("format_disk"), "what was asked is not repeated");
    }
    let id = stage.start().await;
    let no_input = json!({"request": exec()});
    assert_eq!(stage.post(&format!("/{id}/input"), no_input).await.code(), "invalid_request");
    let metrics = stage.relay.get("/metrics", &[]).await.body;
    for line in ["holdfast_operations_living 1", "holdfast_operations_admitted_total 1", "holdfast_workers_live 0"] {
        assert!(metrics.lines().any(|found| found.starts_with(line)), "{line}: {metrics}");
    }
}

#[tokio::test]
async fn a_list_comes_in_pages_newest_first_without_inputs() {
    let stage = Stage::new().await;
    let mut all = Vec::new();
    for _ in 0..5 {
        all.push(
            stage.start_with(json!({"request": {"type": "exec", "command": {"argv": ["cat"]}, "stdin": true}})).await,
        );
    }
    let mut worker = stage.worker().await;
    let (operation, other) = (worker.operation().await, worker.operation().await);
    worker.runs(&operation).await;
    let input = json!({"request": {"type": "exec_stdin", "data": "aGk=", "close": true}});
    let given = stage.post(&format!("/{}/input", operation.request_id), input).await;
    assert_eq!((given.status, given.json()["kind"].as_str()), (202, Some("exec_stdin")));
    let ids = |answer: crate::common::Answer| -> Vec<_> {
        answer.json()["operations"].as_array().unwrap().iter().map(id).collect()
    };
    all.reverse();
    assert_eq!(ids(stage.get("?limit=2").await), all[..2]);
    assert_eq!(ids(stage.get(&format!("?limit=2&before={}", all[1])).await), all[2..4]);
    worker.exits(&operation, 0, Streams::new()).await;
    assert_eq!(ids(stage.get("?living=true").await), all[..4]);
    // What came of one in full is told by itself.
    let outcome = Outcome::Unknown { reason: "nobody knows".into(), evidence: Some(json!("much")) };
    let (request_id, run_id) = (other.request_id.clone(), other.run_id.clone().unwrap());
    worker.say(WorkerFrame::ExecError { request_id, run_id, outcome, written: Streams::new() }).await;
    eventually("its end", async || stage.state(&other.request_id).await == "unknown").await;
    let listed = stage.get("").await.json();
    let listed = listed["operations"].as_array().unwrap();
    let found = listed.iter().find(|found| found["id"] == other.request_id.as_str()).unwrap();
    assert_eq!(found["outcome"], json!({"state": "unknown", "reason": "nobody knows"}));
    assert_eq!(stage.view(&other.request_id).await["outcome"]["evidence"], "much");
}
