//! Attacks on the HTTP surface: hosts, origins, heads and bodies, TLS, and where it listens.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "panics are findings")]

mod common;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use common::{Relay, raw, read_answer};
use holdfast_relay::store::StoreError;
use holdfast_relay::{Exposure, RelayOptions, StartError, TokenRequest, start};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

#[tokio::test]
async fn it_lives_and_says_what_it_is() {
    let relay = Relay::start().await;
    let health = relay.get("/healthz", &[]).await;
    assert_eq!((health.status, health.json()["ok"].clone()), (200, json!(true)));
    assert_eq!(health.header("x-content-type-options"), Some("nosniff"));
    assert!(health.header("x-request-id").is_some());
    assert_eq!(relay.get("/", &[]).await.json()["mcp"], format!("{}/mcp", relay.origin()));
    let missing = relay.get("/nothing", &[]).await;
    assert_eq!((missing.status, missing.code().as_str()), (404, "not_found"));
    let metrics = relay.get("/metrics", &[]).await.body;
    assert!(metrics.contains("\nholdfast_calls_pending 0") && metrics.ends_with("# EOF\n"), "{metrics}");
    assert!(metrics.contains("holdfast_http_answers_client_error_total 1\n"), "{metrics}");
}

#[tokio::test]
async fn a_foreign_host_is_refused_everywhere_but_where_a_secret_is_carried() {
    let relay = Relay::start().await;
    let port = relay.addr().port();
    let paths = [
        "/",
        "/healthz",
        "/metrics",
        "/mcp",
        "/oauth/authorize",
        "/.well-known/oauth-authorization-server",
        "/api/accounts",
    ];
    for host in
        ["evil.example", "127.0.0.1", "127.0.0.1:1", &format!("evil.localhost:{port}"), &format!("0.0.0.0:{port}"), ""]
    {
        for path in paths {
            let answer = relay.get(path, &[("host", host)]).await;
            assert_eq!((answer.status, answer.code().as_str()), (403, "host_not_allowed"), "{host} {path}");
        }
    }
    for host in [format!("127.0.0.1:{port}"), format!("LOCALHOST:{port}"), format!("[::1]:{port}")] {
        assert_eq!(relay.get("/healthz", &[("host", &host)]).await.status, 200, "{host}");
    }
    let any = relay.post("/api/enroll", &json!({}), &[("host", "relay.example")]).await;
    assert_eq!(any.code(), "invalid_request");
    let two = relay.get("/healthz", &[("host", &relay.addr().to_string()), ("host", "evil.example")]).await;
    assert_eq!(two.status, 400);
    let absolute =
        format!("GET http://evil.example/healthz HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", relay.addr());
    assert_eq!(raw(relay.addr(), absolute.as_bytes()).await.unwrap().status, 403);
}

#[tokio::test]
async fn a_foreign_origin_is_refused_and_an_allowed_one_may_read() {
    let relay = Relay::with(|options| options.allowed_origins = vec!["https://inspector.example".into()]).await;
    for origin in [
        "https://evil.example",
        "null",
        "",
        "http://127.0.0.1",
        "https://inspector.example.evil.example",
        "HTTPS://inspector.example",
    ] {
        for path in ["/mcp", "/healthz", "/oauth/token"] {
            let answer = relay.get(path, &[("origin", origin)]).await;
            assert_eq!((answer.status, answer.code().as_str()), (403, "origin_not_allowed"), "{origin} {path}");
        }
    }
    let own = relay.get("/healthz", &[("origin", &relay.origin())]).await;
    assert_eq!(own.status, 200);
    let allowed = relay.get("/healthz", &[("origin", "https://inspector.example")]).await;
    assert_eq!(allowed.header("access-control-allow-origin"), Some("https://inspector.example"));
    let preflight = relay
        .send(
            "OPTIONS",
            "/mcp",
            &[("origin", "https://inspector.example"), ("access-control-request-method", "POST")],
            "",
        )
        .await;
    assert_eq!((preflight.status, preflight.header("access-control-max-age")), (204, Some("600")));
    let foreign = relay.send("OPTIONS", "/mcp", &[("origin", "https://evil.example")], "").await;
    assert_eq!(foreign.status, 403);
    let two = relay.get("/healthz", &[("origin", &relay.origin()), ("origin", "https://evil.example")]).await;
    assert_eq!(two.status, 400);
    for path in ["/daemon/ws", "/api/enroll", "/api/drill"] {
        let answer = relay.get(path, &[("origin", &relay.origin())]).await;
        assert_eq!((answer.status, answer.code().as_str()), (403, "origin_not_allowed"), "{path}");
    }
}

#[tokio::test]
async fn a_head_that_does_not_end_is_cut_off() {
    let relay = Relay::with(|options| options.header_timeout = Duration::from_millis(200)).await;
    for start in ["", "GET /healthz HTTP/1.1\r\nhost: x\r\nx-slow: "] {
        let mut stream = TcpStream::connect(relay.addr()).await.unwrap();
        stream.write_all(start.as_bytes()).await.unwrap();
        let mut rest = Vec::new();
        let closed = tokio::time::timeout(Duration::from_secs(120), stream.read_to_end(&mut rest)).await;
        assert!(closed.is_ok(), "{start:?} is still open");
    }
}

#[tokio::test]
async fn heads_and_bodies_beyond_their_limits_are_refused() {
    let relay = Relay::start().await;
    let many: Vec<(String, String)> = (0..80).map(|n| (format!("x-{n}"), "v".into())).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    assert_eq!(relay.get("/healthz", &many).await.status, 431);
    let long = "v".repeat(300_000);
    assert_eq!(relay.get("/healthz", &[("x-long", &long)]).await.status, 431);
    let body = "x".repeat(70_000);
    for (path, kind) in [("/oauth/token", "application/x-www-form-urlencoded"), ("/api/enroll", "application/json")] {
        let answer = relay.send("POST", path, &[("content-type", kind)], &body).await;
        assert_eq!((answer.status, answer.code().as_str()), (413, "request_body_too_large"), "{path}");
    }
    // Without a length the size shows only while reading.
    let mut chunked = format!(
        "POST /api/enroll HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n",
        relay.addr()
    );
    for _ in 0..10 {
        chunked.push_str(&format!("2710\r\n{}\r\n", "x".repeat(10_000)));
    }
    chunked.push_str("0\r\n\r\n");
    let answer = raw(relay.addr(), chunked.as_bytes()).await.unwrap();
    assert_eq!((answer.status, answer.code().as_str()), (413, "request_body_too_large"));
}

#[tokio::test]
async fn bytes_that_are_not_http_and_wrong_methods_get_an_error() {
    let relay = Relay::with(|options| options.header_timeout = Duration::from_millis(200)).await;
    for junk in [
        "\r\n\r\n\r\n",
        "GET\r\n\r\n",
        "\u{16}\u{3}\u{1}\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        if let Some(answer) = raw(relay.addr(), junk.as_bytes()).await {
            assert!((400..506).contains(&answer.status), "{junk:?} {answer:?}");
        }
    }
    let relay = Relay::start().await;
    for (method, path) in
        [("DELETE", "/oauth/token"), ("GET", "/oauth/register"), ("PUT", "/healthz"), ("GET", "/api/enroll")]
    {
        let answer = relay.send(method, path, &[], "").await;
        assert_eq!((answer.status, answer.code().as_str()), (405, "method_not_allowed"), "{method} {path}");
        assert!(answer.header("allow").is_some());
    }
}

#[tokio::test]
async fn one_connection_serves_request_after_request() {
    let relay = Relay::start().await;
    let mut stream = TcpStream::connect(relay.addr()).await.unwrap();
    assert!(stream.nodelay().is_ok());
    let request = format!("GET /healthz HTTP/1.1\r\nhost: {}\r\n\r\n", relay.addr());
    let last = format!("GET /healthz HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", relay.addr());
    stream.write_all(format!("{request}{request}{last}").as_bytes()).await.unwrap();
    let answer = read_answer(&mut stream).await.unwrap();
    assert_eq!(answer.body.matches("HTTP/1.1 200 OK").count(), 2);
}

async fn refused(change: impl FnOnce(&mut RelayOptions)) -> StartError {
    let dir = tempfile::tempdir().unwrap();
    let mut options = RelayOptions::loopback(0, dir.path());
    change(&mut options);
    match start(options).await {
        Ok(handle) => panic!("it listens on {}", handle.addr),
        Err(error) => error,
    }
}

#[tokio::test]
async fn it_does_not_listen_in_the_clear_beyond_this_machine() {
    let everywhere = SocketAddr::from(([0, 0, 0, 0], 0));
    let error = refused(|options| options.listen = everywhere).await;
    assert!(matches!(error, StartError::NeedsTls(_)), "{error}");
    let error = refused(|options| {
        options.listen = everywhere;
        options.exposure = Exposure::BehindProxy(vec!["10.0.0.0/8".parse().unwrap()]);
    });
    assert!(matches!(error.await, StartError::NeedsPublicUrl));
    for bad in
        ["ftp://relay.example", "https://relay.example/path", "https://user@relay.example", "https://relay.example/?x"]
    {
        let error = refused(|options| options.public_url = Some(bad.parse().unwrap())).await;
        assert!(matches!(error, StartError::BadPublicUrl), "{bad}");
    }
    let taken = Relay::start().await;
    let error = refused(|options| options.listen = taken.addr()).await;
    assert!(matches!(error, StartError::Bind { .. }), "{error}");
}

#[tokio::test]
async fn a_public_url_fixes_issuer_and_resource_whatever_the_host_says() {
    let relay = Relay::with(|options| options.public_url = Some("https://relay.example".parse().unwrap())).await;
    let port = relay.addr().port();
    for host in ["relay.example".to_owned(), "relay.example:443".into(), format!("127.0.0.1:{port}")] {
        let server = relay.get("/.well-known/oauth-authorization-server", &[("host", &host)]).await;
        assert_eq!(server.json()["issuer"], "https://relay.example", "{host}");
        assert!(server.header("strict-transport-security").is_some());
    }
    assert_eq!(relay.get("/healthz", &[("host", "relay.example:80")]).await.status, 403);
    let challenge = relay.post("/mcp", &json!({}), &[("host", "relay.example")]).await;
    assert_eq!(challenge.status, 401);
    let expected = "resource_metadata=\"https://relay.example/.well-known/oauth-protected-resource/mcp\"";
    assert!(challenge.header("www-authenticate").unwrap().contains(expected));
}

#[tokio::test]
async fn behind_a_proxy_failures_count_by_the_address_it_forwards() {
    let relay =
        Relay::with(|options| options.exposure = Exposure::BehindProxy(vec!["127.0.0.1/32".parse().unwrap()])).await;
    let wrong = json!({"code": "AAAAAAAAAAAAAAAAAAAA", "enrolment": "0123456789abcdef", "name": "x"});
    for _ in 0..5 {
        assert_eq!(
            relay.post("/api/enroll", &wrong, &[("x-forwarded-for", "6.6.6.6, 198.51.100.7")]).await.status,
            403
        );
    }
    assert_eq!(relay.post("/api/enroll", &wrong, &[("x-forwarded-for", "1.1.1.1, 198.51.100.7")]).await.status, 429);
    assert_eq!(relay.post("/api/enroll", &wrong, &[("x-forwarded-for", "198.51.100.8")]).await.status, 403);
}

#[tokio::test]
async fn a_forwarded_address_from_anybody_else_is_not_believed() {
    let relay = Relay::start().await;
    let wrong = json!({"code": "AAAAAAAAAAAAAAAAAAAA", "enrolment": "0123456789abcdef", "name": "x"});
    for n in 0..5 {
        let address = format!("198.51.100.{n}");
        assert_eq!(relay.post("/api/enroll", &wrong, &[("x-forwarded-for", &address)]).await.status, 403);
    }
    assert_eq!(relay.post("/api/enroll", &wrong, &[("x-forwarded-for", "198.51.100.9")]).await.status, 429);
}

#[tokio::test]
async fn a_stopped_relay_lets_go_of_port_and_store() {
    let (relay, device) = Relay::with_ada().await;
    let token = relay.token("ada").await;
    let idle = TcpStream::connect(relay.addr()).await.unwrap();
    let relay = relay.restart().await;
    assert!(relay.handle.state().auth.device(&device.token).is_ok());
    assert_ne!(relay.mcp("/mcp", &token).await, 401);
    drop(idle);
}

#[tokio::test]
async fn with_a_certificate_it_speaks_tls_both_http_versions_and_nothing_in_the_clear() {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (cert, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let relay = Relay::with(|options| options.exposure = Exposure::Tls { cert, key }).await;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    for (alpn, spoken) in [(&b"http/1.1"[..], "http/1.1"), (b"h2", "h2")] {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config =
            rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let mut config = config.with_root_certificates(roots.clone()).with_no_client_auth();
        config.alpn_protocols = vec![alpn.to_vec()];
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
        let stream = TcpStream::connect(relay.addr()).await.unwrap();
        let mut stream = connector.connect("localhost".try_into().unwrap(), stream).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(spoken.as_bytes()));
        if spoken == "http/1.1" {
            let host = format!("localhost:{}", relay.addr().port());
            let request = format!(
                "GET /.well-known/oauth-authorization-server HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n"
            );
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            assert!(
                answer.starts_with("HTTP/1.1 200 OK") && answer.contains(&format!("\"issuer\":\"https://{host}\"")),
                "{answer}"
            );
        }
    }
    let clear = raw(relay.addr(), b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    assert!(clear.is_none(), "{clear:?}");
}

#[tokio::test]
async fn a_full_disk_is_told_and_the_relay_recovers_by_itself() {
    let (relay, _) = Relay::with_ada().await;
    let client = relay.register().await;
    let code = relay.code(&client).await;
    let pages = async |pages: i64| {
        let work =
            move |db: &rusqlite::Connection| Ok::<_, StoreError>(db.pragma_update(None, "max_page_count", pages)?);
        relay.handle.state().store.write(work).await.unwrap();
    };
    pages(1).await;
    let mut refused = None;
    for _ in 0..300 {
        let order = TokenRequest { name: "x".repeat(64), ..TokenRequest::default() };
        if let Err(error) = relay.handle.admin.create_token(order).await {
            refused = Some(error.code);
            break;
        }
    }
    assert_eq!(refused, Some("storage_full"));
    let body = json!({"redirect_uris": (0..5).map(|n| format!("https://client.example/{n}{}", "x".repeat(900))).collect::<Vec<_>>()});
    let mut answer = relay.post("/oauth/register", &body, &[]).await;
    while answer.status == 201 {
        answer = relay.post("/oauth/register", &body, &[]).await;
    }
    assert_eq!((answer.status, answer.code().as_str()), (507, "storage_full"));
    assert_eq!(relay.get("/healthz", &[]).await.status, 200);
    pages(1_000_000).await;
    assert_eq!(relay.trade(&client, &code, &[]).await.status, 200, "the code was not used up");
}
