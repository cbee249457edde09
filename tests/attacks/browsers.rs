//! A web page in the browser of whoever runs Holdfast.

use std::os::unix::fs::PermissionsExt as _;

use holdfast_testkit::mcp::http;
use holdfast_testkit::stand::{Stand, WireKind};
use serde_json::{Value, json};

#[tokio::test]
async fn a_foreign_origin_or_host_is_refused_everywhere_but_where_a_secret_of_its_own_is_needed() {
    let stand = Stand::start(WireKind::Feature).await;
    for path in [
        "/mcp",
        "/healthz",
        "/metrics",
        "/oauth/token",
        "/oauth/register",
        "/oauth/authorize",
        "/.well-known/oauth-authorization-server",
    ] {
        let at = format!("{}{path}", stand.relay.url);
        for (name, value) in [
            ("origin", "https://evil.example"),
            ("origin", "null"),
            ("origin", "http://127.0.0.1.evil.example"),
            ("host", "evil.example"),
            ("host", "127.0.0.1.evil.example:8787"),
        ] {
            for request in [http().post(&at), http().get(&at)] {
                let status =
                    request.header(name, value).bearer_auth(&stand.token).send().await.expect("an answer").status();
                assert_eq!(status, 403, "{path} with {name}: {value}");
            }
        }
    }
    for path in ["/daemon/ws", "/api/enroll", "/api/drill"] {
        let at = format!("{}{path}", stand.relay.url);
        let upgrade = http()
            .request(if path == "/daemon/ws" { reqwest::Method::GET } else { reqwest::Method::POST }, &at)
            .header("origin", &stand.relay.url)
            .header("connection", "upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", "AAAAAAAAAAAAAAAAAAAAAA==");
        assert_eq!(upgrade.send().await.expect("an answer").status(), 403, "{path} with an Origin, even its own");
    }
}

#[tokio::test]
async fn the_local_api_wants_its_token_and_no_browser_and_its_file_is_private() {
    let stand = Stand::start(WireKind::Feature).await;
    let file = stand.home.data().join("api.json");
    assert_eq!(std::fs::metadata(&file).expect("api.json").permissions().mode() & 0o777, 0o600);
    let named: Value = serde_json::from_str(&std::fs::read_to_string(&file).expect("text")).expect("JSON");
    let token = named["token"].as_str().expect("a token");
    let api = stand.device.ready_text("api").trim_end_matches('/').to_owned();
    let status =
        |request: reqwest::RequestBuilder| async move { request.send().await.expect("an answer").status().as_u16() };
    let at = format!("{api}/api/status");
    assert_eq!(status(http().get(&at)).await, 401);
    assert_eq!(status(http().get(&at).bearer_auth("wrong")).await, 401);
    assert_eq!(status(http().get(&at).bearer_auth(token).header("origin", "https://evil.example")).await, 403);
    assert_eq!(status(http().get(&at).bearer_auth(token).header("host", "evil.example")).await, 403);
    assert_eq!(status(http().get(&at).bearer_auth(token)).await, 200);
    assert_eq!(status(http().get(format!("{at}?token={token}"))).await, 401, "never in a URL");
}

#[tokio::test]
async fn a_compressed_body_is_not_unpacked() {
    let stand = Stand::start(WireKind::Feature).await;
    // An empty gzip stream; what counts is that the announced encoding is refused or read as it stands.
    let bomb = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let sent = http()
        .post(stand.relay.mcp())
        .bearer_auth(&stand.token)
        .header("content-type", "application/json")
        .header("content-encoding", "gzip")
        .body(bomb.to_vec());
    let status = sent.send().await.expect("an answer").status().as_u16();
    assert!((400..500).contains(&status), "{status}");
    assert_eq!(stand.modern().call("list_dir", json!({})).send().await.expect("an answer").code(), None);
}
