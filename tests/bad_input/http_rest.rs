//! OAuth, enrolment and the rest of the HTTP surface.

use holdfast_testkit::mcp::http;
use holdfast_testkit::oauth::{OAuthClient, REDIRECT};
use holdfast_testkit::stand::{ACCOUNT, PASSWORD, RelayStand, Stand, WireKind};
use serde_json::{Value, json};

/// Status and stable code of an answer.
async fn answered(request: reqwest::RequestBuilder) -> (u16, String) {
    let response = request.send().await.expect("an answer");
    let status = response.status().as_u16();
    let text = response.text().await.expect("text");
    let body: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("errors are JSON ({e}): {status} {text}"));
    let code = body["error"].as_str().or(body["code"].as_str()).unwrap_or_else(|| panic!("no code: {status} {text}"));
    (status, code.to_owned())
}

#[tokio::test]
async fn bad_registrations_are_refused_and_a_good_one_is_taken() {
    let relay = RelayStand::start(WireKind::Feature).await;
    let at = format!("{}/oauth/register", relay.url);
    for (name, body) in [
        ("no redirect", json!({"client_name": "x"})),
        ("an empty list", json!({"redirect_uris": []})),
        ("six redirects", json!({"redirect_uris": vec!["https://a.example/cb"; 6]})),
        ("plain http elsewhere", json!({"redirect_uris": ["http://a.example/cb"]})),
        ("javascript", json!({"redirect_uris": ["javascript:alert(1)"]})),
        ("a fragment", json!({"redirect_uris": ["https://a.example/#x"]})),
        ("userinfo", json!({"redirect_uris": ["https://u@a.example/"]})),
        ("redirects that are text", json!({"redirect_uris": "https://a.example/"})),
    ] {
        let (status, code) = answered(http().post(&at).json(&body)).await;
        assert_eq!(status, 400, "{name}");
        assert!(["invalid_client_metadata", "invalid_redirect_uri"].contains(&&*code), "{name}: {code}");
    }
    let (status, _) = answered(http().post(&at).header("content-type", "application/json").body("{")).await;
    assert_eq!(status, 400);
    let long = json!({"client_name": "x".repeat(100_000), "redirect_uris": [REDIRECT]});
    let (status, _) = answered(http().post(&at).json(&long)).await;
    assert_eq!(status, 413);
    OAuthClient::register(&relay.mcp()).await;
}

#[tokio::test]
async fn bad_token_requests_are_refused_and_burn_nothing() {
    let stand = Stand::start(WireKind::Feature).await;
    let client = OAuthClient::register(&stand.relay.mcp()).await;
    let (mut flow, page) = client.authorize().await;
    let page = flow.browser.log_in(&page, ACCOUNT, PASSWORD).await;
    let code = flow.code(&page);
    let at = client.endpoint("token_endpoint");
    let verifier = "v".repeat(43);
    let base = [
        ("grant_type", "authorization_code"),
        ("code", &*code),
        ("redirect_uri", REDIRECT),
        ("client_id", client.client_id()),
    ];
    let form = |more: &[(&str, &str)]| http().post(at).form(&[&base[..], more].concat());
    for (name, request, want) in [
        ("no verifier", form(&[]), (400, "invalid_request")),
        ("a short verifier", form(&[("code_verifier", "short")]), (400, "invalid_grant")),
        ("a wrong verifier", form(&[("code_verifier", &verifier)]), (400, "invalid_grant")),
        ("a parameter twice", form(&[("code_verifier", flow.verifier()), ("code", &code)]), (400, "invalid_request")),
        ("no grant type", http().post(at).form(&[("code", &*code)]), (400, "invalid_request")),
        (
            "another grant type",
            http().post(at).form(&[("grant_type", "password"), ("client_id", client.client_id())]),
            (400, "unsupported_grant_type"),
        ),
        ("JSON", http().post(at).json(&json!({"grant_type": "authorization_code"})), (400, "invalid_request")),
        (
            "another resource",
            form(&[("code_verifier", flow.verifier()), ("resource", "https://evil.example/mcp")]),
            (400, "invalid_target"),
        ),
    ] {
        let (status, code) = answered(request).await;
        assert_eq!((status, &*code), want, "{name}");
    }
    let (status, tokens) = client.redeem(&code, flow.verifier()).await;
    assert_eq!(status, 200, "no wrong try burned the code: {tokens}");
}

#[tokio::test]
async fn bad_enrolments_are_refused_and_a_good_one_is_taken() {
    let relay = RelayStand::start(WireKind::Feature).await;
    let at = format!("{}/api/enroll", relay.url);
    for body in [
        json!({}),
        json!({"code": 7, "enrolment": "0123456789abcdef", "name": "x"}),
        json!({"code": "ABCD", "enrolment": "short", "name": "x"}),
        json!({"code": "ABCD", "enrolment": "0123456789abcdef", "name": ""}),
        json!({"code": "ABCD", "enrolment": "0123456789abcdef", "name": "x", "shiny": 1}),
        json!({"code": "ABCD", "enrolment": "0123456789abcdef", "name": "x\u{202e}\u{1b}[31m"}),
    ] {
        let (status, _) = answered(http().post(&at).json(&body)).await;
        assert!((400..500).contains(&status), "{status} for {body}");
    }
    let home = holdfast_testkit::home::Home::new();
    home.ok(&["enroll", &relay.url, &relay.code().await]).await;
}

#[tokio::test]
async fn unknown_paths_and_methods_are_json_errors() {
    let relay = RelayStand::start(WireKind::Feature).await;
    for path in ["/nope", "/api/nope", "/oauth/nope", "/.well-known/nope", "/mcp/a/b", "/..%2f..%2fetc/passwd"] {
        let (status, code) = answered(http().get(format!("{}{path}", relay.url))).await;
        assert!(matches!((status, &*code), (404, "not_found") | (401, _)), "{path}: {status} {code}");
    }
    for path in ["/oauth/token", "/oauth/register", "/api/enroll"] {
        let (status, code) = answered(http().get(format!("{}{path}", relay.url))).await;
        assert_eq!((status, &*code), (405, "method_not_allowed"), "{path}");
    }
    let health = http().get(format!("{}/healthz", relay.url)).send().await.expect("an answer");
    assert_eq!(health.status(), 200);
}
