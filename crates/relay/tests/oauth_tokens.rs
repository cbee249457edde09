//! Attacks on authorization codes, tokens and registration, over HTTP.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "panics are findings")]

mod common;

use common::{PASSWORD, REDIRECT, Relay, VERIFIER, challenge};
use holdfast_core::policy::Role;
use serde_json::json;

#[tokio::test]
async fn a_code_is_good_once_and_its_replay_ends_what_it_gave() {
    let (relay, _) = Relay::with_ada().await;
    let client = relay.register().await;
    let code = relay.code(&client).await;
    let tokens = relay.trade(&client, &code, &[]).await.json();
    let access = tokens["access_token"].as_str().unwrap();
    assert_ne!(relay.mcp("/mcp", access).await, 401);
    let replay = relay.trade(&client, &code, &[]).await;
    assert_eq!((replay.status, replay.code().as_str()), (400, "invalid_grant"));
    assert_eq!(relay.mcp("/mcp", access).await, 401);
    assert_eq!(relay.refresh(&client, tokens["refresh_token"].as_str().unwrap()).await.code(), "invalid_grant");
}

#[tokio::test]
async fn two_trades_of_one_code_at_once_leave_no_token_alive() {
    let (relay, _) = Relay::with_ada().await;
    let client = relay.register().await;
    let code = relay.code(&client).await;
    let (one, two) = tokio::join!(relay.trade(&client, &code, &[]), relay.trade(&client, &code, &[]));
    for answer in [one, two] {
        if answer.status == 200 {
            assert_eq!(relay.mcp("/mcp", answer.json()["access_token"].as_str().unwrap()).await, 401);
        } else {
            assert_eq!(answer.code(), "invalid_grant");
        }
    }
}

#[tokio::test]
async fn a_code_is_bound_to_verifier_client_address_and_resource_and_survives_a_wrong_guess() {
    let (relay, _) = Relay::with_ada().await;
    let (client, other) = (relay.register().await, relay.register().await);
    let code = relay.code(&client).await;
    let wrong = format!("{VERIFIER}x");
    let foreign = format!("{}/mcp/dev_abcdefgh", relay.origin());
    for (change, expected) in [
        (("code_verifier", Some(wrong.as_str())), "invalid_grant"),
        (("code_verifier", Some(challenge(VERIFIER).as_str())), "invalid_grant"),
        (("code_verifier", None), "invalid_request"),
        (("client_id", Some(other.as_str())), "invalid_grant"),
        (("client_id", None), "invalid_request"),
        (("redirect_uri", Some("https://client.example/cb2")), "invalid_grant"),
        (("resource", Some(foreign.as_str())), "invalid_target"),
        (("resource", Some("https://evil.example/mcp")), "invalid_target"),
        (("code", Some("hf_code_nonsense")), "invalid_grant"),
        (("grant_type", Some("password")), "unsupported_grant_type"),
        (("grant_type", None), "invalid_request"),
    ] {
        let answer = relay.trade(&client, &code, &[change]).await;
        assert_eq!((answer.status, answer.code().as_str()), (400, expected), "{change:?}");
    }
    assert_eq!(relay.trade(&client, &code, &[("redirect_uri", None)]).await.status, 200);
}

#[tokio::test]
async fn a_code_lapses_after_five_minutes() {
    let (relay, _) = Relay::with_ada().await;
    let client = relay.register().await;
    let code = relay.code(&client).await;
    relay.advance(300);
    assert_eq!(relay.trade(&client, &code, &[]).await.code(), "invalid_grant");
}

#[tokio::test]
async fn a_lost_refresh_answer_is_repeated_until_ten_minutes_after_the_new_pair_was_used() {
    let (relay, _) = Relay::with_ada().await;
    let (client, first) = relay.connect().await;
    let old = first["refresh_token"].as_str().unwrap();
    let new = relay.refresh(&client, old).await.json();
    relay.advance(7200);
    let again = relay.refresh(&client, old).await.json();
    assert_eq!((&again["access_token"], &again["refresh_token"]), (&new["access_token"], &new["refresh_token"]));
    assert_eq!(again["expires_in"], 3600, "a pair nobody used begins its life when it arrives");
    assert_ne!(relay.mcp("/mcp", again["access_token"].as_str().unwrap()).await, 401);
    // The first use is recorded behind the request; a write that is answered comes after it.
    relay.token("ada").await;
    relay.advance(600);
    assert_eq!(relay.refresh(&client, old).await.json()["refresh_token"], new["refresh_token"]);
    relay.advance(1);
    let late = relay.refresh(&client, old).await;
    assert_eq!((late.status, late.code().as_str()), (400, "invalid_grant"));
    assert_eq!(relay.mcp("/mcp", new["access_token"].as_str().unwrap()).await, 401, "the family is revoked");
    assert_eq!(relay.refresh(&client, new["refresh_token"].as_str().unwrap()).await.code(), "invalid_grant");
}

#[tokio::test]
async fn an_older_refresh_token_revokes_the_family_at_once() {
    let (relay, _) = Relay::with_ada().await;
    let (client, first) = relay.connect().await;
    let oldest = first["refresh_token"].as_str().unwrap();
    let second = relay.refresh(&client, oldest).await.json();
    let third = relay.refresh(&client, second["refresh_token"].as_str().unwrap()).await.json();
    assert_eq!(relay.refresh(&client, oldest).await.code(), "invalid_grant");
    for tokens in [first, second, third] {
        assert_eq!(relay.mcp("/mcp", tokens["access_token"].as_str().unwrap()).await, 401);
        assert_eq!(relay.refresh(&client, tokens["refresh_token"].as_str().unwrap()).await.code(), "invalid_grant");
    }
}

#[tokio::test]
async fn refreshes_at_once_get_one_pair() {
    let (relay, _) = Relay::with_ada().await;
    let (client, first) = relay.connect().await;
    let old = first["refresh_token"].as_str().unwrap();
    let answers = futures_util::future::join_all((0..8).map(|_| relay.refresh(&client, old))).await;
    let pairs: Vec<_> = answers.iter().map(|answer| answer.json()["refresh_token"].clone()).collect();
    assert!(pairs[0].is_string() && pairs.iter().all(|pair| *pair == pairs[0]), "{pairs:?}");
}

#[tokio::test]
async fn a_refresh_is_bound_to_client_scope_resource_and_time() {
    let (relay, _) = Relay::with_ada().await;
    let (client, first) = relay.connect().await;
    let other = relay.register().await;
    let token = first["refresh_token"].as_str().unwrap();
    assert_eq!(relay.refresh(&other, token).await.code(), "invalid_grant");
    for (name, value, expected) in [
        ("scope", "mcp operations", "invalid_scope"),
        ("scope", "nonsense", "invalid_scope"),
        ("resource", "https://evil.example/mcp", "invalid_target"),
    ] {
        let fields = [("grant_type", "refresh_token"), ("refresh_token", token), ("client_id", &client), (name, value)];
        assert_eq!(relay.form("/oauth/token", &fields, &[]).await.code(), expected);
    }
    relay.advance(30 * 86_400);
    assert_eq!(relay.refresh(&client, token).await.code(), "invalid_grant");
}

#[tokio::test]
async fn refreshing_goes_on_after_a_restart_with_the_same_answer() {
    let (relay, _) = Relay::with_ada().await;
    let (client, first) = relay.connect().await;
    let old = first["refresh_token"].as_str().unwrap();
    let new = relay.refresh(&client, old).await.json();
    let relay = relay.restart().await;
    assert_eq!(relay.refresh(&client, old).await.json()["refresh_token"], new["refresh_token"]);
    assert_ne!(relay.mcp("/mcp", new["access_token"].as_str().unwrap()).await, 401);
    let file = std::fs::read(relay.dir.path().join("relay.sqlite")).unwrap();
    for tokens in [&first, &new] {
        for name in ["access_token", "refresh_token"] {
            let secret = tokens[name].as_str().unwrap().as_bytes();
            assert!(!file.windows(secret.len()).any(|window| window == secret), "{name} stands in the store");
        }
    }
}

#[tokio::test]
async fn an_access_token_lives_an_hour_and_only_for_its_resource() {
    let (relay, device) = Relay::with_ada().await;
    let client = relay.register().await;
    let (own, foreign) = (format!("/mcp/{}", device.device), "/mcp/dev_abcdefgh");
    let resource = format!("{}{own}", relay.origin());
    let path = relay.authorize_path(&client, &[("resource", Some(&resource))]);
    let code = relay.consent(&path, "ada").await.sent_to("code").unwrap();
    let tokens = relay.trade(&client, &code, &[("resource", Some(&resource))]).await.json();
    let access = tokens["access_token"].as_str().unwrap();
    assert_ne!(relay.mcp(&own, access).await, 401);
    assert_eq!(relay.mcp("/mcp", access).await, 401);
    assert_eq!(relay.mcp(foreign, access).await, 401);
    relay.advance(3600);
    assert_eq!(relay.mcp(&own, access).await, 401);
}

#[tokio::test]
async fn revoking_either_token_ends_the_grant_and_tells_it() {
    let (relay, _) = Relay::with_ada().await;
    for which in ["access_token", "refresh_token"] {
        let (client, tokens) = relay.connect().await;
        let other = relay.register().await;
        let mut told = relay.handle.state().auth.revocations();
        let token = tokens[which].as_str().unwrap();
        let access = tokens["access_token"].as_str().unwrap();
        assert_eq!(relay.form("/oauth/revoke", &[("token", token), ("client_id", &other)], &[]).await.status, 200);
        assert_ne!(relay.mcp("/mcp", access).await, 401, "another client's word does not count");
        assert_eq!(relay.form("/oauth/revoke", &[("token", token), ("client_id", &client)], &[]).await.status, 200);
        assert_eq!(relay.mcp("/mcp", access).await, 401);
        let grant = told.try_recv().unwrap();
        assert!(!relay.handle.state().auth.is_live(&grant));
    }
    assert_eq!(relay.form("/oauth/revoke", &[("token", "unknown")], &[]).await.status, 200);
    assert_eq!(relay.form("/oauth/revoke", &[], &[]).await.code(), "invalid_request");
}

#[tokio::test]
async fn registrations_are_bounded_per_source_and_unused_ones_are_forgotten() {
    let (relay, _) = Relay::with_ada().await;
    let first = relay.register().await;
    for _ in 1..20 {
        relay.register().await;
    }
    let body = json!({"redirect_uris": [REDIRECT]});
    let flood = relay.post("/oauth/register", &body, &[]).await;
    assert_eq!((flood.status, flood.code().as_str()), (429, "too_many_requests"));
    assert!(flood.header("retry-after").is_some());
    relay.advance(3600);
    assert_eq!(relay.get(&relay.authorize_path(&first, &[]), &[]).await.status, 400);
    relay.register().await;
}

#[tokio::test]
async fn malformed_registrations_are_refused_with_their_code() {
    let relay = Relay::start().await;
    for (body, expected) in [
        (json!({}), "invalid_client_metadata"),
        (json!([]), "invalid_client_metadata"),
        (json!({"redirect_uris": []}), "invalid_client_metadata"),
        (json!({"redirect_uris": "https://a.example"}), "invalid_client_metadata"),
        (json!({"redirect_uris": [1]}), "invalid_client_metadata"),
        (json!({"redirect_uris": vec![REDIRECT; 6]}), "invalid_client_metadata"),
        (json!({"redirect_uris": ["http://a.example/cb"]}), "invalid_redirect_uri"),
        (json!({"redirect_uris": ["javascript:alert(1)"]}), "invalid_redirect_uri"),
        (json!({"redirect_uris": [REDIRECT], "response_types": ["token"]}), "invalid_client_metadata"),
        (json!({"redirect_uris": [REDIRECT], "grant_types": ["password"]}), "invalid_client_metadata"),
    ] {
        let answer = relay.post("/oauth/register", &body, &[]).await;
        assert_eq!((answer.status, answer.code().as_str()), (400, expected), "{body}");
    }
    let huge = json!({"redirect_uris": [REDIRECT], "client_name": "x".repeat(70_000)});
    assert_eq!(relay.post("/oauth/register", &huge, &[]).await.status, 413);
    let text = relay.send("POST", "/oauth/register", &[("content-type", "text/plain")], "{}").await;
    assert_eq!(text.status, 415);
    let broken = relay.send("POST", "/oauth/register", &[("content-type", "application/json")], "{\"a\"").await;
    assert_eq!((broken.status, broken.code().as_str()), (400, "invalid_client_metadata"));
    let client = relay
        .post(
            "/oauth/register",
            &json!({"redirect_uris": [REDIRECT], "token_endpoint_auth_method": "client_secret_basic"}),
            &[],
        )
        .await;
    assert_eq!(client.json()["token_endpoint_auth_method"], "none");
}

#[tokio::test]
async fn discovery_names_the_host_it_was_asked_under_and_both_resources() {
    let (relay, device) = Relay::with_ada().await;
    let port = relay.addr().port();
    for host in [format!("127.0.0.1:{port}"), format!("localhost:{port}"), format!("[::1]:{port}")] {
        let server = relay.get("/.well-known/oauth-authorization-server", &[("host", &host)]).await.json();
        assert_eq!(server["issuer"], format!("http://{host}"));
        assert_eq!(server["token_endpoint"], format!("http://{host}/oauth/token"));
        assert_eq!(server["code_challenge_methods_supported"], json!(["S256"]));
        assert_eq!(server["authorization_response_iss_parameter_supported"], true);
        for path in ["/mcp".to_owned(), format!("/mcp/{}", device.device)] {
            let resource =
                relay.get(&format!("/.well-known/oauth-protected-resource{path}"), &[("host", &host)]).await.json();
            assert_eq!(resource["resource"], format!("http://{host}{path}"));
            assert_eq!(resource["authorization_servers"], json!([format!("http://{host}")]));
        }
    }
    for path in [
        "/.well-known/oauth-authorization-server/mcp",
        "/.well-known/openid-configuration",
        "/.well-known/oauth-protected-resource",
    ] {
        assert_eq!(relay.get(path, &[]).await.status, 200, "{path}");
    }
    assert_eq!(relay.get("/.well-known/oauth-protected-resource/elsewhere", &[]).await.status, 404);
}

#[tokio::test]
async fn a_changed_account_loses_its_tokens_codes_and_open_pages() {
    let (relay, _) = Relay::with_ada().await;
    relay.add("bob", Role::Operator).await;
    let client = relay.register().await;
    let path = relay.authorize_path(&client, &[]);
    let token = relay.token("bob").await;
    let code = relay.consent(&path, "bob").await.sent_to("code").unwrap();
    let (id, cookie) = relay.open(&path).await;
    relay.step(&id, &cookie, &[("action", "password"), ("account", "bob"), ("password", PASSWORD)]).await;
    assert_ne!(relay.mcp("/mcp", &token).await, 401);
    let change = holdfast_relay::AccountPatch { role: Some(Role::Reviewer), ..Default::default() };
    let changed = relay.handle.admin.change_account("bob", change).await.unwrap();
    assert_eq!((changed.role, changed.version), (Role::Reviewer, 2));
    assert_eq!(relay.mcp("/mcp", &token).await, 401);
    assert_eq!(relay.trade(&client, &code, &[]).await.code(), "invalid_grant");
    assert_eq!(relay.step(&id, &cookie, &[("action", "allow")]).await.status, 410);
}

#[tokio::test]
async fn a_token_of_another_address_of_this_relay_is_not_for_this_one() {
    let (relay, _) = Relay::with_ada().await;
    let (_, tokens) = relay.connect().await;
    let access = tokens["access_token"].as_str().unwrap().to_owned();
    let Relay { handle, clock, dir, port } = relay;
    handle.shutdown().await;
    let mut options = holdfast_relay::RelayOptions::loopback(0, dir.path());
    options.clock = clock.clone();
    options.public_url = Some("https://relay.example".parse().unwrap());
    let handle = holdfast_relay::start(options).await.unwrap();
    let relay = Relay { handle, clock, dir, port };
    assert_eq!(relay.mcp("/mcp", &access).await, 401);
    let failure = relay.handle.state().auth.check(&access, &Default::default()).unwrap_err();
    assert_eq!(failure, holdfast_relay::AuthFailure::WrongAudience);
}
