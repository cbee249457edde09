//! The authorization server.

use std::collections::HashSet;

use holdfast_testkit::mcp::http;
use holdfast_testkit::oauth::{Browser, OAuthClient, REDIRECT};
use holdfast_testkit::stand::{ACCOUNT, PASSWORD, Stand, WireKind};
use serde_json::{Value, json};

async fn client(stand: &Stand) -> OAuthClient {
    OAuthClient::register(&stand.relay.mcp()).await
}

/// The `error` in a redirect to the client.
fn told(page: &holdfast_testkit::oauth::Page) -> Option<String> {
    let to = page.location.as_ref()?;
    to.query_pairs().find(|(key, _)| key == "error").map(|(_, value)| value.into_owned())
}

#[tokio::test]
async fn a_code_works_once_and_a_replay_kills_what_it_gave() {
    let stand = Stand::start(WireKind::Feature).await;
    let client = client(&stand).await;
    let (mut flow, page) = client.authorize().await;
    let page = flow.browser.log_in(&page, ACCOUNT, PASSWORD).await;
    let issuer = page
        .location
        .as_ref()
        .expect("a redirect")
        .query_pairs()
        .find(|(key, _)| key == "iss")
        .expect("iss")
        .1
        .into_owned();
    assert_eq!(issuer, client.server()["issuer"].as_str().expect("text"), "RFC 9207: no mix-up");
    let code = flow.code(&page);
    let (status, tokens) = client.redeem(&code, flow.verifier()).await;
    assert_eq!(status, 200);
    let (status, body) = client.redeem(&code, flow.verifier()).await;
    assert_eq!((status, &body["error"]), (400, &json!("invalid_grant")));
    let at = format!("{}/mcp", stand.relay.url);
    let access = tokens["access_token"].as_str().expect("a token");
    let used = http().post(at).bearer_auth(access).json(&json!({})).send().await.expect("an answer");
    assert_eq!(used.status(), 401, "a code used twice was stolen: what it gave is revoked (RFC 6749 4.1.2)");
}

#[tokio::test]
async fn there_is_no_way_around_pkce() {
    let stand = Stand::start(WireKind::Feature).await;
    let client = client(&stand).await;
    for drop_or_plain in ["none", "plain", "no method", "short"] {
        let (_, page) = client
            .authorize_with(|query| match drop_or_plain {
                "none" => query.retain(|(name, _)| !name.starts_with("code_challenge")),
                "plain" => query
                    .iter_mut()
                    .filter(|(name, _)| *name == "code_challenge_method")
                    .for_each(|(_, v)| *v = "plain".into()),
                "no method" => query.retain(|(name, _)| *name != "code_challenge_method"),
                _ => query
                    .iter_mut()
                    .filter(|(name, _)| *name == "code_challenge")
                    .for_each(|(_, v)| *v = "short".into()),
            })
            .await;
        assert_eq!(told(&page).as_deref(), Some("invalid_request"), "{drop_or_plain}: {page:?}");
    }
    let (mut flow, page) = client.authorize().await;
    let page = flow.browser.log_in(&page, ACCOUNT, PASSWORD).await;
    let (status, body) = client.redeem(&flow.code(&page), &"x".repeat(43)).await;
    assert_eq!((status, &body["error"]), (400, &json!("invalid_grant")));
}

#[tokio::test]
async fn a_redirect_that_was_not_registered_is_never_followed() {
    let stand = Stand::start(WireKind::Feature).await;
    let client = client(&stand).await;
    for evil in [
        "https://evil.example/callback",
        "http://127.0.0.1:7/callback/more",
        "http://127.0.0.1:7/callback?x=1",
        "javascript:alert(1)",
    ] {
        let (_, page) = client
            .authorize_with(|query| {
                query.iter_mut().filter(|(name, _)| *name == "redirect_uri").for_each(|(_, v)| *v = evil.into())
            })
            .await;
        assert_eq!((page.status, page.location), (400, None), "{evil}");
        assert!(!page.html.contains("<form"), "{evil}");
    }
    let (mut flow, page) = client.authorize().await;
    let page = flow.browser.log_in(&page, ACCOUNT, PASSWORD).await;
    let code = flow.code(&page);
    let form = [
        ("grant_type", "authorization_code"),
        ("code", &code),
        ("code_verifier", flow.verifier()),
        ("redirect_uri", "https://evil.example/callback"),
    ];
    assert_eq!(client.token(&form).await.0, 400);
}

#[tokio::test]
async fn another_browser_cannot_go_on_with_a_request_it_did_not_begin() {
    let stand = Stand::start(WireKind::Feature).await;
    let client = client(&stand).await;
    let (mut flow, page) = client.authorize().await;
    let signed_in = flow.browser.sign_in(&page, ACCOUNT, PASSWORD).await;
    let consent = signed_in.location.expect("a redirect");
    let (mut other, stolen) = Browser::open(consent.as_str()).await;
    assert_eq!(stolen.status, 410, "{stolen:?}");
    let forged = other.submit(&page, &[("action", "allow")]).await;
    assert_eq!((forged.status, forged.location), (410, None));
    let mine = flow.browser.allow().await;
    assert!(mine.location.expect("a redirect").as_str().starts_with(REDIRECT));
}

#[tokio::test]
async fn passwords_cannot_be_guessed_and_a_block_stops_no_local_approval() {
    let stand = Stand::start(WireKind::Feature).await;
    let client = client(&stand).await;
    let (mut flow, page) = client.authorize().await;
    let mut statuses = Vec::new();
    for n in 0..12 {
        statuses.push(flow.browser.sign_in(&page, ACCOUNT, &format!("wrong {n}")).await.status);
    }
    assert_eq!(statuses[0], 401);
    assert_eq!(statuses[11], 429, "{statuses:?}");
    assert_eq!(flow.browser.sign_in(&page, ACCOUNT, PASSWORD).await.status, 429, "the right one too");
    let code = flow.browser.ask_locally(&page, ACCOUNT).await;
    stand.relay.home.ok(&["approve", &code]).await;
    let page = flow.browser.allow().await;
    let (status, _) = client.redeem(&flow.code(&page), flow.verifier()).await;
    assert_eq!(status, 200);
}

#[tokio::test]
async fn approval_codes_cannot_be_guessed() {
    let stand = Stand::start(WireKind::Feature).await;
    let client = client(&stand).await;
    let (mut flow, page) = client.authorize().await;
    let code = flow.browser.ask_locally(&page, ACCOUNT).await;
    for wrong in ["AAAA-AAAA", "BBBB-BBBB", "CCCC-CCCC"] {
        assert!(!stand.relay.home.run(&["approve", wrong]).await.status.success());
    }
    assert!(!stand.relay.home.run(&["approve", &code]).await.status.success(), "three wrong ones cancelled it");
    assert_eq!(flow.browser.reload().await.status, 410);
}

#[tokio::test]
async fn enrolment_codes_cannot_be_guessed_and_work_once() {
    let stand = Stand::start(WireKind::Feature).await;
    let used = stand.relay.code().await;
    let enroll = |code: String, id: &'static str| {
        let body = json!({"code": code, "enrolment": id, "name": "x"});
        let at = format!("{}/api/enroll", stand.relay.url);
        async move { http().post(at).json(&body).send().await.expect("an answer").status().as_u16() }
    };
    assert_eq!(enroll(used.clone(), "0123456789abcdef").await, 200);
    assert_eq!(enroll(used.clone(), "0123456789abcdef").await, 200, "the same exchange, after a lost answer");
    assert!((400..500).contains(&enroll(used, "fedcba9876543210").await), "another exchange");
    let mut statuses = HashSet::new();
    for n in 0..6 {
        statuses
            .insert(enroll(format!("{:A>20}", "BCDEFG".chars().nth(n).expect("a letter")), "0123456789abcdef").await);
    }
    assert!(statuses.contains(&429), "{statuses:?}");
    let good = stand.relay.code().await;
    assert_eq!(enroll(good, "another-enrolment-id").await, 429, "the source is blocked, right or wrong");
}

#[tokio::test]
async fn a_flood_of_registrations_is_bounded_and_known_clients_go_on() {
    let stand = Stand::start(WireKind::Feature).await;
    let client = client(&stand).await;
    let at = client.endpoint("registration_endpoint");
    let mut refused = 0;
    for n in 0..80 {
        let body = json!({"client_name": format!("flood {n}"), "redirect_uris": [REDIRECT]});
        let status = http().post(at).json(&body).send().await.expect("an answer").status().as_u16();
        refused += usize::from(status == 429 || status == 503);
    }
    assert!(refused > 0, "80 registrations of one source");
    client.log_in(ACCOUNT, PASSWORD).await;
}

#[tokio::test]
async fn a_refresh_token_rotates_and_one_that_is_two_generations_old_kills_the_family() {
    let stand = Stand::start(WireKind::Feature).await;
    let client = client(&stand).await;
    let first = client.log_in(ACCOUNT, PASSWORD).await;
    let refresh = |tokens: &Value| tokens["refresh_token"].as_str().expect("a token").to_owned();
    let (status, second) = client.refresh(&refresh(&first)).await;
    assert_eq!(status, 200);
    let (status, same) = client.refresh(&refresh(&first)).await;
    assert_eq!((status, refresh(&same)), (200, refresh(&second)), "the answer was lost: the same pair again");
    let (status, third) = client.refresh(&refresh(&second)).await;
    assert_eq!(status, 200);
    let (status, body) = client.refresh(&refresh(&first)).await;
    assert_eq!((status, &body["error"]), (400, &json!("invalid_grant")));
    let (status, _) = client.refresh(&refresh(&third)).await;
    assert_eq!(status, 400, "reuse revoked the whole family");
}

#[tokio::test]
async fn tokens_of_another_audience_are_not_given() {
    let stand = Stand::start(WireKind::Feature).await;
    let client = client(&stand).await;
    let (_, page) = client
        .authorize_with(|query| {
            query
                .iter_mut()
                .filter(|(name, _)| *name == "resource")
                .for_each(|(_, v)| *v = "https://evil.example/mcp".into())
        })
        .await;
    assert_eq!(told(&page).as_deref(), Some("invalid_target"), "{page:?}");
}
