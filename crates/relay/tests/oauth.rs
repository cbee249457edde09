//! Attacks on the pages of authorization, over HTTP.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "panics are findings")]

mod common;

use common::{PASSWORD, REDIRECT, Relay, field, shown_code};
use holdfast_core::limits;
use holdfast_core::policy::Role;
use holdfast_relay::NewAccount;
use serde_json::json;

#[tokio::test]
async fn a_whole_flow_gives_tokens_that_reach_the_device() {
    let (relay, _) = Relay::with_ada().await;
    let client = relay.register().await;
    let redirect = relay.consent(&relay.authorize_path(&client, &[]), "ada").await;
    assert_eq!(redirect.status, 303);
    assert!(redirect.header("location").unwrap().starts_with(REDIRECT));
    assert_eq!(redirect.sent_to("state").as_deref(), Some("st&te"));
    assert_eq!(redirect.sent_to("iss"), Some(relay.origin()));
    let tokens = relay.trade(&client, &redirect.sent_to("code").unwrap(), &[]).await;
    assert_eq!(tokens.header("cache-control"), Some("no-store"));
    let tokens = tokens.json();
    assert_eq!(
        (&tokens["token_type"], &tokens["expires_in"], &tokens["scope"]),
        (&json!("Bearer"), &json!(3600), &json!("mcp"))
    );
    assert_ne!(relay.mcp("/mcp", tokens["access_token"].as_str().unwrap()).await, 401);
    assert_eq!(relay.mcp("/mcp", tokens["refresh_token"].as_str().unwrap()).await, 401);
}

#[tokio::test]
async fn what_cannot_be_trusted_to_redirect_gets_a_page_and_the_rest_is_told_to_the_client() {
    let (relay, _) = Relay::with_ada().await;
    let client = relay.register().await;
    for change in [
        ("client_id", Some("client_unknown")),
        ("client_id", None),
        ("redirect_uri", Some("https://client.example/cb/")),
        ("redirect_uri", Some("https://evil.example/cb")),
        ("redirect_uri", Some("https://client.example.evil.example/cb")),
        ("redirect_uri", Some("https://client.example/cb?x=1")),
        ("redirect_uri", Some("javascript:alert(1)")),
    ] {
        let page = relay.get(&relay.authorize_path(&client, &[change]), &[]).await;
        assert_eq!((page.status, page.header("location")), (400, None), "{change:?}");
    }
    let long = "s".repeat(1025);
    for (change, expected) in [
        (("response_type", Some("token")), "unsupported_response_type"),
        (("response_type", None), "invalid_request"),
        (("code_challenge_method", Some("plain")), "invalid_request"),
        (("code_challenge_method", None), "invalid_request"),
        (("code_challenge", None), "invalid_request"),
        (("code_challenge", Some("short")), "invalid_request"),
        (("code_challenge", Some("E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw+cM")), "invalid_request"),
        (("scope", Some("mcp admin")), "invalid_scope"),
        (("scope", Some("offline_access")), "invalid_scope"),
        (("scope", Some("mcp mcp")), "invalid_scope"),
        (("resource", Some("https://evil.example/mcp")), "invalid_target"),
        (("resource", Some("nonsense")), "invalid_target"),
        (("state", Some(long.as_str())), "invalid_request"),
    ] {
        let back = relay.get(&relay.authorize_path(&client, &[change]), &[]).await;
        assert_eq!((back.status, back.sent_to("error").as_deref()), (303, Some(expected)), "{change:?}");
        assert_eq!(back.sent_to("iss"), Some(relay.origin()));
        assert_eq!(back.sent_to("code"), None);
    }
}

#[tokio::test]
async fn a_parameter_that_stands_twice_is_refused() {
    let (relay, _) = Relay::with_ada().await;
    let client = relay.register().await;
    let path = relay.authorize_path(&client, &[]);
    let twice = relay.get(&format!("{path}&state=other"), &[]).await;
    assert_eq!((twice.status, twice.header("location")), (400, None));
    let fields =
        [("grant_type", "refresh_token"), ("refresh_token", "a"), ("refresh_token", "b"), ("client_id", &client)];
    let twice = relay.form("/oauth/token", &fields, &[]).await;
    assert_eq!((twice.status, twice.code().as_str()), (400, "invalid_request"));
}

#[tokio::test]
async fn an_address_on_this_machine_may_change_its_port() {
    let (relay, _) = Relay::with_ada().await;
    let body = json!({"redirect_uris": ["http://127.0.0.1:1/cb"]});
    let client = relay.post("/oauth/register", &body, &[]).await.json()["client_id"].as_str().unwrap().to_owned();
    let path = relay.authorize_path(&client, &[("redirect_uri", Some("http://127.0.0.1:54321/cb"))]);
    let redirect = relay.consent(&path, "ada").await;
    assert!(redirect.header("location").unwrap().starts_with("http://127.0.0.1:54321/cb?"));
    let code = redirect.sent_to("code").unwrap();
    let tokens = relay.trade(&client, &code, &[("redirect_uri", Some("http://127.0.0.1:54321/cb"))]).await.json();
    assert_eq!(tokens.get("refresh_token"), None, "it did not say that it refreshes");
}

#[tokio::test]
async fn another_browser_can_neither_see_nor_end_a_request() {
    let (relay, _) = Relay::with_ada().await;
    let client = relay.register().await;
    let path = relay.authorize_path(&client, &[]);
    let (id, cookie) = relay.open(&path).await;
    let (_, foreign) = relay.open(&path).await;
    let name = cookie.split('=').next().unwrap();
    let forged = format!("{name}={}", foreign.split('=').nth(1).unwrap());
    let origin = relay.origin();
    for stolen in [None, Some(foreign.as_str()), Some(forged.as_str())] {
        let mut headers = vec![("origin", origin.as_str())];
        headers.extend(stolen.map(|cookie| ("cookie", cookie)));
        for action in ["password", "local", "allow", "deny"] {
            let fields = [("request", id.as_str()), ("action", action), ("account", "ada"), ("password", PASSWORD)];
            assert_eq!(relay.form("/oauth/authorize", &fields, &headers).await.status, 410, "{action}");
        }
        assert_eq!(relay.get(&format!("/oauth/authorize?request={id}"), &headers[1..]).await.status, 410);
    }
    let allowed = relay.step(&id, &cookie, &[("action", "allow")]).await;
    assert_eq!(allowed.status, 410, "nobody signed in");
}

#[tokio::test]
async fn the_form_is_not_taken_from_a_foreign_page() {
    let (relay, _) = Relay::with_ada().await;
    let client = relay.register().await;
    let (id, cookie) = relay.open(&relay.authorize_path(&client, &[])).await;
    for origin in ["https://evil.example", "null", "http://127.0.0.1:1"] {
        let fields = [("request", id.as_str()), ("action", "deny")];
        let answer = relay.form("/oauth/authorize", &fields, &[("cookie", &cookie), ("origin", origin)]).await;
        assert_eq!((answer.status, answer.code().as_str()), (403, "origin_not_allowed"), "{origin}");
    }
}

#[tokio::test]
async fn denying_tells_the_client_and_ends_the_request() {
    let (relay, _) = Relay::with_ada().await;
    let client = relay.register().await;
    let (id, cookie) = relay.open(&relay.authorize_path(&client, &[])).await;
    let denied = relay.step(&id, &cookie, &[("action", "deny")]).await;
    assert_eq!(denied.sent_to("error").as_deref(), Some("access_denied"));
    assert_eq!(relay.step(&id, &cookie, &[("action", "deny")]).await.status, 410);
}

#[tokio::test]
async fn pages_forbid_scripts_frames_and_foreign_forms_and_show_hostile_names_as_text() {
    let (relay, _) = Relay::with_ada().await;
    let body = json!({"redirect_uris": [REDIRECT], "client_name": "<img src=x onerror=alert(1)>\u{202e}"});
    let client = relay.post("/oauth/register", &body, &[]).await.json()["client_id"].as_str().unwrap().to_owned();
    let page = relay.get(&relay.authorize_path(&client, &[]), &[]).await;
    assert!(page.body.contains("&lt;img src=x onerror=alert(1)&gt;"));
    assert!(!page.body.contains("<img") && !page.body.contains("<script") && !page.body.contains('\u{202e}'));
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    assert!(
        policy.ends_with("; form-action 'self' https://client.example; base-uri 'none'; frame-ancestors 'none'"),
        "{policy}"
    );
    assert_eq!(page.header("x-frame-options"), Some("DENY"));
    assert_eq!(page.header("referrer-policy"), Some("same-origin"));
    let cookie = page.header("set-cookie").unwrap();
    assert!(cookie.ends_with("; Path=/oauth/authorize; HttpOnly; SameSite=Strict; Max-Age=600"), "{cookie}");
}

#[tokio::test]
async fn a_code_typed_into_holdfast_signs_in_and_the_page_then_shows_device_and_rights() {
    let (relay, device) = Relay::with_ada().await;
    let client = relay.register().await;
    let (id, cookie) = relay.open(&relay.authorize_path(&client, &[])).await;
    let first = relay.get(&format!("/oauth/authorize?request={id}"), &[("cookie", &cookie)]).await;
    assert!(
        !first.body.contains("laptop") && !first.body.contains(device.device.as_str()),
        "nothing about the account yet"
    );
    assert_eq!(relay.handle.admin.approvals(), []);
    let waits = relay.step(&id, &cookie, &[("action", "local"), ("account", "ada")]).await;
    assert_eq!(waits.status, 303);
    let page = relay.get(waits.header("location").unwrap(), &[("cookie", &cookie)]).await;
    let code = shown_code(&page.body);
    let pending = relay.handle.admin.approvals();
    assert_eq!(
        (pending[0].client.as_str(), pending[0].redirect_host.as_str(), pending[0].account.as_str()),
        ("Test client", "client.example", "ada")
    );
    assert!(!format!("{pending:?}").contains(&code.replace('-', "")));
    let approved = relay.handle.admin.approve(&code.to_lowercase()).await.unwrap();
    assert_eq!(approved.account, "ada");
    let page = relay.get(&format!("/oauth/authorize?request={id}"), &[("cookie", &cookie)]).await;
    assert!(page.body.contains("ada&#39;s laptop") && page.body.contains("run any program as the user"));
    let redirect = relay.step(&id, &cookie, &[("action", "allow")]).await;
    assert_eq!(relay.trade(&client, &redirect.sent_to("code").unwrap(), &[]).await.status, 200);
}

#[tokio::test]
async fn what_waits_is_told_as_it_comes_and_goes_and_a_refused_client_is_sent_away() {
    let (relay, _) = Relay::with_ada().await;
    let mut waiting = relay.handle.admin.watch_approvals();
    let client = relay.register().await;
    let local = [("action", "local"), ("account", "ada")];
    let (id, cookie) = relay.open(&relay.authorize_path(&client, &[])).await;
    relay.step(&id, &cookie, &local).await;
    let told = waiting.wait_for(|told| told.len() == 1).await.unwrap()[0].clone();
    assert_eq!((told.account.as_str(), told.lapses_in.as_secs()), ("ada", 300));

    assert_eq!(relay.handle.admin.deny("another").unwrap_err().code, "not_found");
    assert_eq!(relay.handle.admin.deny(&told.id).unwrap().client, "Test client");
    waiting.wait_for(|told| told.is_empty()).await.unwrap();
    let away = relay.get(&format!("/oauth/authorize?request={id}"), &[("cookie", &cookie)]).await;
    assert_eq!((away.status, away.sent_to("error").as_deref()), (303, Some("access_denied")));

    let (id, cookie) = relay.open(&relay.authorize_path(&client, &[])).await;
    relay.step(&id, &cookie, &local).await;
    waiting.wait_for(|told| told.len() == 1).await.unwrap();
    relay.clock.advance(limits::APPROVAL_TTL / 2);
    relay.step(&id, &cookie, &local).await;
    waiting.wait_for(|told| told[0].lapses_in == limits::APPROVAL_TTL).await.unwrap();
    let other = NewAccount { name: "bob".into(), role: Role::Reviewer, password: None };
    relay.handle.admin.create_account(other).await.unwrap();
    relay.step(&id, &cookie, &[("action", "local"), ("account", "bob")]).await;
    waiting.wait_for(|told| told[0].account == "bob").await.unwrap();
    relay.clock.advance(limits::APPROVAL_TTL);
    waiting.wait_for(|told| told.is_empty()).await.unwrap();
}

#[tokio::test]
async fn three_wrong_codes_cancel_the_request_and_the_fourth_waiting_one_is_refused() {
    let (relay, _) = Relay::with_ada().await;
    let client = relay.register().await;
    let path = relay.authorize_path(&client, &[]);
    let local = [("action", "local"), ("account", "ada")];
    let (id, cookie) = relay.open(&path).await;
    relay.step(&id, &cookie, &local).await;
    for _ in 0..2 {
        let (id, cookie) = relay.open(&path).await;
        assert_eq!(relay.step(&id, &cookie, &local).await.status, 303);
    }
    let (fourth, fourth_cookie) = relay.open(&path).await;
    let refused = relay.step(&fourth, &fourth_cookie, &local).await;
    assert_eq!(refused.status, 429);
    assert!(refused.body.contains("This account already has three waiting requests"));
    for code in ["approval_code_invalid", "approval_code_invalid", "approvals_cancelled", "approval_code_invalid"] {
        assert_eq!(relay.handle.admin.approve("AAAA-AAA2").await.unwrap_err().code, code);
    }
    assert_eq!(relay.get(&format!("/oauth/authorize?request={id}"), &[("cookie", &cookie)]).await.status, 410);
    assert_eq!(relay.handle.admin.approvals(), []);
}

#[tokio::test]
async fn ten_wrong_passwords_block_the_password_and_not_the_typed_code() {
    let (relay, _) = Relay::with_ada().await;
    let client = relay.register().await;
    let path = relay.authorize_path(&client, &[]);
    let (id, cookie) = relay.open(&path).await;
    let wrong = [("action", "password"), ("account", "ada"), ("password", "wrong wrong wrong")];
    for _ in 0..9 {
        let answer = relay.step(&id, &cookie, &wrong).await;
        assert_eq!(answer.status, 401);
        assert!(answer.body.contains("Name or password is wrong.") && !answer.body.contains("wrong wrong"));
    }
    assert_eq!(relay.step(&id, &cookie, &wrong).await.status, 429);
    let right = [("action", "password"), ("account", "ada"), ("password", PASSWORD)];
    assert_eq!(relay.step(&id, &cookie, &right).await.status, 429);
    relay.step(&id, &cookie, &[("action", "local"), ("account", "ada")]).await;
    let page = relay.get(&format!("/oauth/authorize?request={id}"), &[("cookie", &cookie)]).await;
    relay.handle.admin.approve(&shown_code(&page.body)).await.unwrap();
    assert_eq!(relay.step(&id, &cookie, &[("action", "allow")]).await.status, 303);
    relay.advance(901);
    let (id, cookie) = relay.open(&path).await;
    assert_eq!(relay.step(&id, &cookie, &right).await.status, 303);
}

#[tokio::test]
async fn many_guesses_at_once_do_not_pass_the_brake_together() {
    let (relay, _) = Relay::with_ada().await;
    let client = relay.register().await;
    let (id, cookie) = relay.open(&relay.authorize_path(&client, &[])).await;
    let wrong = [("action", "password"), ("account", "ada"), ("password", "wrong wrong wrong")];
    let guesses = futures_util::future::join_all((0..30).map(|_| relay.step(&id, &cookie, &wrong))).await;
    let tried = guesses.iter().filter(|answer| answer.status == 401).count();
    assert!(tried <= 10, "{tried}");
}

#[tokio::test]
async fn an_unknown_name_looks_like_a_wrong_password_and_like_a_waiting_code() {
    let (relay, _) = Relay::with_ada().await;
    let client = relay.register().await;
    let path = relay.authorize_path(&client, &[]);
    let mut pages = Vec::new();
    for name in ["ada", "bob"] {
        let (id, cookie) = relay.open(&path).await;
        let wrong = relay
            .step(&id, &cookie, &[("action", "password"), ("account", name), ("password", "wrong wrong wrong")])
            .await;
        relay.step(&id, &cookie, &[("action", "local"), ("account", name)]).await;
        let waits = relay.get(&format!("/oauth/authorize?request={id}"), &[("cookie", &cookie)]).await;
        let code = shown_code(&waits.body);
        pages.push((
            wrong.status,
            wrong.body.replace(&id, ""),
            waits.body.replace(&id, "").replace(&code, "").replace(name, ""),
        ));
    }
    assert_eq!(pages[0], pages[1]);
}

#[tokio::test]
async fn a_device_of_another_account_cannot_be_consented_to() {
    let (relay, _) = Relay::with_ada().await;
    let foreign = relay.add("bob", Role::Operator).await.device;
    let client = relay.register().await;
    let resource = format!("{}/mcp/{foreign}", relay.origin());
    let (id, cookie) = relay.open(&relay.authorize_path(&client, &[("resource", Some(&resource))])).await;
    relay.step(&id, &cookie, &[("action", "password"), ("account", "ada"), ("password", PASSWORD)]).await;
    assert_eq!(relay.step(&id, &cookie, &[("action", "allow")]).await.status, 409);
    let (id, cookie) = relay.open(&relay.authorize_path(&client, &[])).await;
    relay.step(&id, &cookie, &[("action", "password"), ("account", "ada"), ("password", PASSWORD)]).await;
    let chosen = [("action", "allow"), ("device", foreign.as_str())];
    assert_eq!(relay.step(&id, &cookie, &chosen).await.status, 400);
}

#[tokio::test]
async fn the_account_field_is_filled_in_only_on_a_relay_for_this_computer() {
    let (relay, _) = Relay::with_ada().await;
    let client = relay.register().await;
    let page = relay.get(&relay.authorize_path(&client, &[]), &[]).await;
    assert_eq!(field(&page.body, "account"), "ada");
    relay.add("bob", Role::Operator).await;
    let page = relay.get(&relay.authorize_path(&client, &[]), &[]).await;
    assert_eq!(field(&page.body, "account"), "");
}

#[tokio::test]
async fn a_request_gives_one_code_and_its_page_nothing_more() {
    let (relay, _) = Relay::with_ada().await;
    let client = relay.register().await;
    let (id, cookie) = relay.open(&relay.authorize_path(&client, &[])).await;
    relay.step(&id, &cookie, &[("action", "password"), ("account", "ada"), ("password", PASSWORD)]).await;
    let (one, two) = tokio::join!(
        relay.step(&id, &cookie, &[("action", "allow")]),
        relay.step(&id, &cookie, &[("action", "allow")])
    );
    let mut statuses = [one.status, two.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [303, 410]);
    for action in ["allow", "deny", "local", "password"] {
        assert_eq!(relay.step(&id, &cookie, &[("action", action)]).await.status, 410, "{action}");
    }
}

#[tokio::test]
async fn a_request_lapses_after_ten_minutes_even_when_somebody_signed_in() {
    let (relay, _) = Relay::with_ada().await;
    let client = relay.register().await;
    let (id, cookie) = relay.open(&relay.authorize_path(&client, &[])).await;
    relay.step(&id, &cookie, &[("action", "password"), ("account", "ada"), ("password", PASSWORD)]).await;
    relay.advance(600);
    assert_eq!(relay.step(&id, &cookie, &[("action", "allow")]).await.status, 410);
}

#[tokio::test]
async fn a_resource_is_one_of_ours_by_any_of_our_names_and_nothing_that_only_looks_like_it() {
    let (relay, device) = Relay::with_ada().await;
    let client = relay.register().await;
    let port = relay.addr().port();
    for good in [
        format!("http://127.0.0.1:{port}/mcp"),
        format!("http://localhost:{port}/mcp"),
        format!("HTTP://LOCALHOST:{port}/mcp/"),
        format!("http://[::1]:{port}/mcp/{}", device.device),
    ] {
        let page = relay.get(&relay.authorize_path(&client, &[("resource", Some(&good))]), &[]).await;
        assert_eq!(page.status, 200, "{good}");
    }
    for bad in [
        format!("https://127.0.0.1:{port}/mcp"),
        "http://127.0.0.1/mcp".to_owned(),
        format!("http://127.0.0.1:{port}"),
        format!("http://127.0.0.1:{port}/mcp?x=1"),
        format!("http://127.0.0.1:{port}/mcp#x"),
        format!("http://x@127.0.0.1:{port}/mcp"),
        format!("http://127.0.0.1:{port}/mcp/nonsense"),
        format!("http://127.0.0.1:{port}/mcp/../admin"),
        format!("http://127.0.0.1:{port}@evil.example/mcp"),
        "urn:mcp".to_owned(),
    ] {
        let back = relay.get(&relay.authorize_path(&client, &[("resource", Some(&bad))]), &[]).await;
        assert_eq!(back.sent_to("error").as_deref(), Some("invalid_target"), "{bad}");
    }
}
