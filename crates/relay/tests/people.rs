//! Enrolment, devices, tokens, and the people's API, over HTTP.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "panics are findings")]

mod common;

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use common::{PASSWORD, Relay};
use holdfast_core::limits;
use holdfast_core::policy::Role;
use holdfast_relay::{DeviceAuthFailure, NewAccount, TokenRequest};
use serde_json::{Value, json};

const ENROLMENT: &str = "0123456789abcdef0123456789abcdef";

fn ask(code: &str, enrolment: &str) -> Value {
    json!({"code": code, "enrolment": enrolment, "name": "laptop"})
}

fn basic(name: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{name}:{password}")))
}

#[tokio::test]
async fn an_enrolment_code_is_good_once_and_repeatable_with_the_same_id() {
    let (relay, _) = Relay::with_ada().await;
    let code = relay.handle.admin.device_code(None).await.unwrap().code;
    assert_eq!(code.len(), 20);
    let typed = format!(" {}-{} ", code[..10].to_lowercase(), &code[10..]);
    let first = relay.post("/api/enroll", &ask(&typed, ENROLMENT), &[]).await;
    assert_eq!(first.status, 200, "{first:?}");
    let device = relay.handle.state().auth.device(first.json()["token"].as_str().unwrap()).unwrap();
    assert_eq!(json!(device.id), first.json()["device"]);
    let repeated = relay.post("/api/enroll", &ask(&code, ENROLMENT), &[]).await;
    assert_eq!(repeated.json(), first.json());
    let second = relay.post("/api/enroll", &ask(&code, "fedcba9876543210fedcba9876543210"), &[]).await;
    assert_eq!((second.status, second.code().as_str()), (403, "enrolment_code_invalid"));
    relay.advance(600);
    let late = relay.post("/api/enroll", &ask(&code, ENROLMENT), &[]).await;
    assert_eq!((late.status, late.code().as_str()), (403, "enrolment_code_invalid"));
    let file = std::fs::read(relay.dir.path().join("relay.sqlite")).unwrap();
    assert!(!file.windows(20).any(|window| window == code.as_bytes()));
}

#[tokio::test]
async fn a_code_lapses_after_ten_minutes() {
    let (relay, _) = Relay::with_ada().await;
    let code = relay.handle.admin.device_code(None).await.unwrap().code;
    relay.advance(600);
    assert_eq!(relay.post("/api/enroll", &ask(&code, ENROLMENT), &[]).await.status, 403);
}

#[tokio::test]
async fn five_wrong_codes_stop_a_source_for_ten_minutes_even_with_the_right_one() {
    let (relay, _) = Relay::with_ada().await;
    for _ in 0..5 {
        assert_eq!(relay.post("/api/enroll", &ask("AAAAAAAAAAAAAAAAAAAA", ENROLMENT), &[]).await.status, 403);
    }
    let code = relay.handle.admin.device_code(None).await.unwrap().code;
    let blocked = relay.post("/api/enroll", &ask(&code, ENROLMENT), &[]).await;
    assert_eq!((blocked.status, blocked.code().as_str()), (429, "too_many_requests"));
    relay.advance(300);
    let later = relay.handle.admin.device_code(None).await.unwrap().code;
    relay.advance(301);
    assert_eq!(relay.post("/api/enroll", &ask(&later, ENROLMENT), &[]).await.status, 200);
}

#[tokio::test]
async fn malformed_enrolments_are_refused_with_their_code() {
    let (relay, _) = Relay::with_ada().await;
    for (body, status, code) in [
        (json!({}), 400, "invalid_request"),
        (json!({"code": 1, "enrolment": ENROLMENT, "name": "x"}), 400, "invalid_request"),
        (json!({"code": "x", "enrolment": "short", "name": "x"}), 400, "invalid_request"),
        (json!({"code": "x", "enrolment": "e".repeat(129), "name": "x"}), 400, "invalid_request"),
        (json!({"code": "x", "enrolment": ENROLMENT, "name": ""}), 400, "invalid_request"),
        (json!({"code": "x", "enrolment": ENROLMENT, "name": "a\u{202e}b"}), 400, "invalid_request"),
        (json!({"code": "x", "enrolment": ENROLMENT, "name": "x", "more": 1}), 400, "invalid_request"),
        (json!({"code": "x", "enrolment": ENROLMENT, "name": "x".repeat(65)}), 400, "invalid_request"),
        (json!({"code": "x".repeat(70_000), "enrolment": ENROLMENT, "name": "x"}), 413, "request_body_too_large"),
        (json!({"code": "1".repeat(20), "enrolment": ENROLMENT, "name": "x"}), 403, "enrolment_code_invalid"),
    ] {
        let answer = relay.post("/api/enroll", &body, &[]).await;
        assert_eq!((answer.status, answer.code().as_str()), (status, code), "{body}");
    }
    let twice = r#"{"code":"A","code":"B","enrolment":"0123456789abcdef","name":"x"}"#;
    let twice = relay.send("POST", "/api/enroll", &[("content-type", "application/json")], twice).await;
    assert_eq!((twice.status, twice.code().as_str()), (400, "invalid_request"));
    let origin = relay.post("/api/enroll", &ask("A", ENROLMENT), &[("origin", &relay.origin())]).await;
    assert_eq!((origin.status, origin.code().as_str()), (403, "origin_not_allowed"));
}

#[tokio::test]
async fn a_revoked_device_is_told_so_and_its_tokens_end() {
    let (relay, device) = Relay::with_ada().await;
    let token = relay.token("ada").await;
    let auth = &relay.handle.state().auth;
    assert_eq!(auth.device(&device.token).unwrap().id, device.device);
    assert_eq!(auth.device("hf_dev_unknown"), Err(DeviceAuthFailure::Unknown));
    relay.handle.admin.revoke_device(None, "ada's laptop").await.unwrap();
    assert_eq!(auth.device(&device.token), Err(DeviceAuthFailure::Revoked));
    assert_eq!(relay.mcp("/mcp", &token).await, 401);
    let relay = relay.restart().await;
    assert_eq!(relay.handle.state().auth.device(&device.token), Err(DeviceAuthFailure::Revoked));
    assert_eq!(relay.mcp("/mcp", &token).await, 401);
    let devices = relay.handle.admin.devices(None).await.unwrap();
    assert_eq!((devices.len(), devices[0].default, devices[0].revoked.is_some()), (1, false, true));
    let order = TokenRequest { name: "x".into(), ..TokenRequest::default() };
    assert_eq!(relay.handle.admin.create_token(order).await.unwrap_err().code, "no_device");
}

#[tokio::test]
async fn a_token_reaches_its_device_by_both_paths_expires_and_can_be_revoked() {
    let (relay, device) = Relay::with_ada().await;
    let other = relay.add("bob", Role::Operator).await;
    let made = relay.handle.admin.create_token(TokenRequest {
        name: "ci".into(),
        account: Some("ada".into()),
        ..TokenRequest::default()
    });
    let made = made.await.unwrap();
    assert_ne!(relay.mcp("/mcp", &made.token).await, 401);
    assert_ne!(relay.mcp(&format!("/mcp/{}", device.device), &made.token).await, 401);
    assert_eq!(relay.mcp(&format!("/mcp/{}", other.device), &made.token).await, 401, "another's device");
    for wrong in ["", "x", "hf_pat_", &made.token[1..], &format!("{}x", made.token), &device.token] {
        assert_eq!(relay.mcp("/mcp", wrong).await, 401, "{wrong}");
    }
    relay.advance(90 * 86_400 - 1);
    assert_ne!(relay.mcp("/mcp", &made.token).await, 401);
    relay.advance(1);
    assert_eq!(relay.mcp("/mcp", &made.token).await, 401);
    let short =
        TokenRequest { name: "short".into(), account: Some("bob".into()), days: Some(1), ..TokenRequest::default() };
    let short = relay.handle.admin.create_token(short).await.unwrap();
    assert_ne!(relay.mcp("/mcp", &short.token).await, 401);
    relay.handle.admin.revoke_token(&short.view.id).await.unwrap();
    assert_eq!(relay.mcp("/mcp", &short.token).await, 401);
    assert_eq!(relay.handle.admin.revoke_token(&short.view.id).await.unwrap_err().code, "not_found");
}

#[tokio::test]
async fn when_a_token_was_last_used_is_told_a_minute_behind_at_most() {
    let (relay, _) = Relay::with_ada().await;
    let admin = &relay.handle.admin;
    let made = admin.create_token(TokenRequest { name: "ci".into(), ..TokenRequest::default() }).await.unwrap();
    // The store writes in order: what comes back after a write was written before it.
    let last_used = async || {
        admin.ensure_owner("ada").await.unwrap();
        admin.tokens().await.unwrap()[0].last_used.map(|at| at - made.view.created)
    };
    assert_eq!(last_used().await, None);
    for (seconds, told) in [(5, 5), (59, 5), (1, 65)] {
        relay.advance(seconds);
        assert_ne!(relay.mcp("/mcp", &made.token).await, 401);
        assert_eq!(last_used().await, Some(told), "after {seconds} s");
    }
}

#[tokio::test]
async fn a_token_needs_a_named_account_where_there_are_two_and_no_more_rights_than_it() {
    let (relay, _) = Relay::with_ada().await;
    let order = |account: Option<&str>, role| TokenRequest {
        name: "t".into(),
        account: account.map(Into::into),
        role,
        ..TokenRequest::default()
    };
    assert!(relay.handle.admin.create_token(order(None, None)).await.is_ok());
    relay.add("bob", Role::Editor).await;
    let admin = &relay.handle.admin;
    assert_eq!(admin.create_token(order(None, None)).await.unwrap_err().code, "account_needed");
    assert_eq!(admin.create_token(order(Some("eve"), None)).await.unwrap_err().code, "account_not_found");
    assert_eq!(admin.create_token(order(Some("bob"), Some(Role::Owner))).await.unwrap_err().code, "invalid_request");
    let capped = admin.create_token(order(Some("bob"), Some(Role::Reviewer))).await.unwrap();
    let principal = relay.handle.state().auth.check(&capped.token, &Default::default()).unwrap();
    assert_eq!((principal.role, &*principal.account_name), (Role::Reviewer, "bob"));
    for days in [0, 367] {
        let order =
            TokenRequest { name: "t".into(), account: Some("bob".into()), days: Some(days), ..TokenRequest::default() };
        assert_eq!(admin.create_token(order).await.unwrap_err().code, "invalid_request");
    }
}

#[tokio::test]
async fn accounts_have_rules() {
    let relay = Relay::start().await;
    let admin = &relay.handle.admin;
    let new = |name: &str, role| NewAccount { name: name.into(), role, password: None };
    assert_eq!(admin.create_account(new("bob", Role::Operator)).await.unwrap_err().code, "first_account_must_be_owner");
    admin.create_account(new("ada", Role::Owner)).await.unwrap();
    assert_eq!(admin.create_account(new("ada", Role::Owner)).await.unwrap_err().code, "account_name_exists");
    for bad in ["", "ab", "Ada", "-ada", "ada.", "a da", "ad\u{e4}", &"a".repeat(65)] {
        assert_eq!(admin.create_account(new(bad, Role::Owner)).await.unwrap_err().code, "invalid_account", "{bad}");
    }
    let demote = holdfast_relay::AccountPatch { role: Some(Role::Editor), ..Default::default() };
    assert_eq!(admin.change_account("ada", demote).await.unwrap_err().code, "last_owner_required");
    let off = holdfast_relay::AccountPatch { active: Some(false), ..Default::default() };
    assert_eq!(admin.change_account("ada", off).await.unwrap_err().code, "last_owner_required");
    assert_eq!(admin.remove_account("ada").await.unwrap_err().code, "last_owner_required");
    let weak = holdfast_relay::AccountPatch { password: Some("short".into()), ..Default::default() };
    assert_eq!(admin.change_account("ada", weak).await.unwrap_err().code, "weak_password");
    assert_eq!(admin.ensure_owner("owner").await.unwrap().name, "ada");
}

#[tokio::test]
async fn removing_an_account_takes_its_devices_and_tokens_with_it() {
    let (relay, _) = Relay::with_ada().await;
    let device = relay.add("bob", Role::Operator).await;
    let token = relay.token("bob").await;
    relay.handle.admin.remove_account("bob").await.unwrap();
    assert_eq!(relay.mcp("/mcp", &token).await, 401);
    assert!(relay.handle.state().auth.device(&device.token).is_err());
    assert_eq!(relay.handle.admin.devices(None).await.unwrap().len(), 1);
}

#[tokio::test]
async fn nothing_is_remembered_of_the_link_of_a_device_that_is_gone() {
    let (relay, ada) = Relay::with_ada().await;
    let bob = relay.add("bob", Role::Operator).await;
    let account = relay.handle.state().auth.device(&ada.token).unwrap().account.clone();
    let spare = relay.handle.admin.enrol_local(&account, "spare").await.unwrap();
    let db = rusqlite::Connection::open(relay.dir.path().join("relay.sqlite")).unwrap();
    for device in [&ada, &bob, &spare] {
        relay.handle.state().devices.room(&device.device);
        let id = [device.device.as_str()];
        db.execute("INSERT INTO catalogues VALUES (?1, '{}', 1)", id).unwrap();
        let call = "INSERT INTO calls (device, principal, tool, key, account, digest, call, budget_ms, control, opened)
                    VALUES (?1, 'p', 't', 'k', 'a', x'00', 'call of ' || ?1, 1, 0, 1)";
        db.execute(call, id).unwrap();
    }
    relay.handle.admin.revoke_device(None, spare.device.as_str()).await.unwrap();
    relay.handle.admin.remove_account("bob").await.unwrap();
    for table in ["catalogues", "calls"] {
        let left: String =
            db.query_row(&format!("SELECT group_concat(device) FROM {table}"), [], |row| row.get(0)).unwrap();
        assert_eq!(left, ada.device.as_str(), "{table}");
    }
    let rooms = relay.handle.state().devices.rooms();
    assert_eq!(rooms.iter().map(|room| room.id()).collect::<Vec<_>>(), [&ada.device]);
    assert_eq!(relay.handle.state().auth.device(&spare.token), Err(DeviceAuthFailure::Revoked));
    assert_eq!(relay.handle.state().auth.device(&bob.token), Err(DeviceAuthFailure::Unknown));
}

#[tokio::test]
async fn only_so_many_revoked_devices_are_still_told_so() {
    let (relay, ada) = Relay::with_ada().await;
    let account = relay.handle.state().auth.device(&ada.token).unwrap().account.clone();
    let mut tokens = Vec::new();
    for _ in 0..=limits::DEVICES_REVOKED_KEPT {
        let device = relay.handle.admin.enrol_local(&account, "spare").await.unwrap();
        relay.handle.admin.revoke_device(None, device.device.as_str()).await.unwrap();
        relay.advance(1);
        tokens.push(device.token);
    }
    let said = |token: &String| relay.handle.state().auth.device(token).unwrap_err();
    assert_eq!(said(&tokens[0]), DeviceAuthFailure::Unknown);
    assert!(tokens[1..].iter().all(|token| said(token) == DeviceAuthFailure::Revoked));
}

#[tokio::test]
async fn cutting_all_access_ends_every_token() {
    let (relay, device) = Relay::with_ada().await;
    let (client, tokens) = relay.connect().await;
    let pat = relay.token("ada").await;
    let mut told = relay.handle.state().auth.revocations();
    assert_eq!(relay.handle.admin.cut_all_access().await.unwrap(), 2);
    assert_eq!(relay.mcp("/mcp", &pat).await, 401);
    assert_eq!(relay.mcp("/mcp", tokens["access_token"].as_str().unwrap()).await, 401);
    assert_eq!(relay.refresh(&client, tokens["refresh_token"].as_str().unwrap()).await.status, 400);
    assert!(told.try_recv().is_ok() && told.try_recv().is_ok());
    assert!(relay.handle.state().auth.device(&device.token).is_ok(), "the device itself stays enrolled");
}

#[tokio::test]
async fn the_peoples_api_takes_passwords_only_and_others_reach_only_what_is_theirs() {
    let (relay, ada_device) = Relay::with_ada().await;
    let bob_device = relay.add("bob", Role::Operator).await;
    let token = format!("Bearer {}", relay.token("ada").await);
    for path in ["/api/accounts", "/api/devices", "/api/clients"] {
        for headers in [&[][..], &[("authorization", token.as_str())]] {
            let answer = relay.get(path, headers).await;
            assert_eq!((answer.status, answer.code().as_str()), (401, "authentication_failed"), "{path}");
        }
    }
    let (ada, bob) = (basic("ada", PASSWORD), basic("bob", PASSWORD));
    let ada = [("authorization", ada.as_str())];
    let bob = [("authorization", bob.as_str())];
    assert_eq!(relay.get("/api/accounts", &ada).await.json().as_array().unwrap().len(), 2);
    assert_eq!(relay.get("/api/accounts", &bob).await.json().as_array().unwrap().len(), 1);
    assert_eq!(relay.get("/api/devices", &bob).await.json()[0]["id"], json!(bob_device.device));
    let new = json!({"name": "eve", "role": "owner", "password": PASSWORD});
    assert_eq!(relay.post("/api/accounts", &new, &bob).await.code(), "authorization_denied");
    let path = format!("/api/devices/{}", ada_device.device);
    assert_eq!(relay.send("DELETE", &path, &bob, "").await.status, 404, "another's device");
    let own = relay.get("/api/accounts", &bob).await.json()[0]["id"].as_str().unwrap().to_owned();
    let json_bob = [bob[0], ("content-type", "application/json")];
    let raise = relay.send("PATCH", &format!("/api/accounts/{own}"), &json_bob, r#"{"role":"owner"}"#).await;
    assert_eq!(raise.code(), "authorization_denied");
    let path = format!("/api/devices/{}", bob_device.device);
    let renamed = relay.send("PATCH", &path, &json_bob, r#"{"name":"desk"}"#).await;
    assert_eq!(renamed.json()["name"], "desk");
    assert_eq!(relay.send("DELETE", &path, &ada, "").await.status, 204, "an owner reaches everything");
    assert_eq!(relay.post("/api/devices/code", &json!({}), &bob).await.json()["code"].as_str().unwrap().len(), 20);
    let (client, tokens) = relay.connect().await;
    assert_eq!(relay.get("/api/clients", &bob).await.json(), json!([]));
    assert_eq!(relay.get("/api/clients", &ada).await.json()[0]["grants"][0]["account"], "ada");
    assert_eq!(relay.send("DELETE", &format!("/api/clients/{client}"), &bob, "").await.status, 404);
    assert_eq!(
        relay.send("DELETE", &format!("/api/clients/{client}"), &ada, "").await.json(),
        json!({"grants_ended": 1})
    );
    assert_eq!(relay.mcp("/mcp", tokens["access_token"].as_str().unwrap()).await, 401);
}

#[tokio::test]
async fn a_drill_needs_the_devices_own_credential() {
    let (relay, device) = Relay::with_ada().await;
    let order = json!({"wait_ms": 10});
    let refused = relay.post("/api/drill", &order, &[]).await;
    assert_eq!((refused.status, refused.code().as_str()), (401, "device_unknown"));
    let too_long = relay.post("/api/drill", &json!({"wait_ms": 60_001}), &[("x-bridge-token", &device.token)]).await;
    assert_eq!((too_long.status, too_long.code().as_str()), (400, "invalid_request"));
    relay.handle.admin.revoke_device(None, device.device.as_str()).await.unwrap();
    let revoked = relay.post("/api/drill", &order, &[("x-bridge-token", &device.token)]).await;
    assert_eq!((revoked.status, revoked.code().as_str()), (401, "device_revoked"));
}

#[tokio::test]
async fn what_expired_is_swept_away() {
    let (relay, _) = Relay::with_ada().await;
    relay.connect().await;
    relay.token("ada").await;
    assert_eq!(relay.handle.admin.clients(None).await.unwrap()[0].grants.len(), 1);
    relay.clock.advance(Duration::from_secs(91 * 86_400));
    let relay = relay.restart().await;
    assert_eq!(relay.handle.admin.tokens().await.unwrap(), []);
    assert_eq!(relay.handle.admin.clients(None).await.unwrap(), []);
}
