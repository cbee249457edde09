//! The loopback API of a running process: who may ask it, and what it answers.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use holdfast_testkit::home::Home;
use holdfast_testkit::process::Process;
use serde_json::{Value, json};

struct Api {
    home: Home,
    _serve: Process,
    address: String,
    token: String,
}

impl Api {
    async fn start() -> Api {
        let home = Home::new();
        let serve = home.start(&["relay", "--listen", "127.0.0.1:0"]).await;
        let file: Value = serde_json::from_slice(&std::fs::read(home.data().join("api.json")).unwrap()).unwrap();
        let text = |key: &str| file[key].as_str().unwrap().to_owned();
        assert_eq!(serve.ready_text("api"), format!("http://{}", text("address")));
        assert_eq!(file["pid"], serve.pid());
        Api { address: text("address"), token: text("token"), home, _serve: serve }
    }

    /// Sends a request with exactly these header lines; status and body.
    fn raw(&self, request: &str, headers: &[String], body: &str) -> (u16, Value, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut text = format!("{request} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        for header in headers {
            text.push_str(header);
            text.push_str("\r\n");
        }
        text.push_str("\r\n");
        stream.write_all(text.as_bytes()).unwrap();
        // A refused body may be cut off by the server.
        let _ = stream.write_all(body.as_bytes());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or(0);
        (status, serde_json::from_str(body).unwrap_or_default(), head.to_lowercase())
    }

    fn host(&self) -> String {
        format!("Host: {}", self.address)
    }

    fn bearer(&self) -> String {
        format!("Authorization: Bearer {}", self.token)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_right_host_origin_and_token_get_in() {
    let api = Api::start().await;
    let (host, bearer) = (api.host(), api.bearer());
    let port = api.address.rsplit(':').next().unwrap().to_owned();
    let get = |headers: &[String]| {
        let (status, body, _) = api.raw("GET /api/status", headers, "");
        (status, body["code"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(get(&[host.clone(), bearer.clone()]).0, 200);
    assert_eq!(get(&[format!("Host: localhost:{port}"), bearer.clone()]).0, 200);
    let own = format!("Origin: http://{}", api.address);
    assert_eq!(get(&[host.clone(), bearer.clone(), own]).0, 200);

    for foreign in
        ["evil.example", &format!("evil.example:{port}"), "127.0.0.1", "127.0.0.1:1", "127.0.0.1.evil.example"]
    {
        assert_eq!(get(&[format!("Host: {foreign}"), bearer.clone()]), (403, "host_refused".into()), "{foreign}");
    }
    assert_eq!(get(&[host.clone(), host.clone(), bearer.clone()]).0 / 100, 4, "two hosts");
    for origin in ["http://evil.example", "null", "https://127.0.0.1", "http://127.0.0.1:1", "file://"] {
        let headers = [host.clone(), bearer.clone(), format!("Origin: {origin}")];
        assert_eq!(get(&headers), (403, "origin_refused".into()), "{origin}");
    }
    for wrong in [
        "Bearer",
        "Bearer x",
        "Basic x",
        &api.token,
        &format!("bearer {}", api.token),
        &format!("Bearer {}x", api.token),
    ] {
        let headers = [host.clone(), format!("Authorization: {wrong}")];
        assert_eq!(get(&headers), (401, "authentication_failed".into()));
    }
    assert_eq!(get(std::slice::from_ref(&host)), (401, "authentication_failed".into()));
    assert_eq!(get(&[host.clone(), bearer.clone(), bearer.clone()]).0, 401, "two tokens");
    let in_url = api.raw(&format!("GET /api/status?token={}", api.token), std::slice::from_ref(&host), "");
    assert_eq!(in_url.0, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_forbids_frames_scripts_and_caches() {
    let api = Api::start().await;
    for headers in [vec![api.host(), api.bearer()], vec![]] {
        let (_, _, head) = api.raw("GET /api/status", &headers, "");
        assert!(head.contains("content-security-policy: default-src 'none'; frame-ancestors 'none'"), "{head}");
        assert!(head.contains("x-content-type-options: nosniff") && head.contains("cache-control: no-store"), "{head}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_method_path_or_body_has_its_documented_answer() {
    let api = Api::start().await;
    let send = |request: &str, body: &str| {
        let (status, answer, _) = api.raw(request, &[api.host(), api.bearer()], body);
        (status, answer["code"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(send("GET /api/nothing", ""), (404, "not_found".into()));
    assert_eq!(send("GET /api/command", ""), (405, "invalid_request".into()));
    assert_eq!(send("POST /api/status", "{}"), (405, "invalid_request".into()));
    for bad in ["", "{", "[]", "{}", r#"{"command":"format_disk"}"#, r#"{"command":"quit","x":1}"#, "\u{0}"] {
        assert_eq!(send("POST /api/command", bad), (400, "invalid_request".into()), "{bad:?}");
    }
    assert_eq!(send("GET /api/logs?lines=-1", "").0, 400);
    let large = json!({"command": "approve", "code": "x".repeat(70_000)}).to_string();
    assert_eq!(send("POST /api/command", &large).0, 413);
    assert_eq!(send("POST /api/command", r#"{"command":"approve","code":"AAAABBBB"}"#).1, "approval_code_invalid");
    assert_eq!(send("POST /api/command", r#"{"command":"try_now"}"#), (404, "not_found".into()), "a relay has no link");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_file_that_names_the_api_is_private_and_goes_with_the_process() {
    let mut api = Api::start().await;
    let mode = |name: &str| std::fs::metadata(api.home.data().join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("."), mode("api.json"), mode("lock"), mode("logs/holdfast.log")), (0o700, 0o600, 0o600, 0o600));
    assert_eq!(api._serve.stop().await.code(), Some(0));
    assert!(!api.home.data().join("api.json").exists());
    let log = std::fs::read_to_string(api.home.data().join("logs/holdfast.log")).unwrap();
    assert!(!log.is_empty() && !log.contains(&api.token));
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_and_many_connections_leave_room_for_an_honest_one() {
    let api = Api::start().await;
    let idle: Vec<_> = (0..16).map(|_| TcpStream::connect(&api.address).unwrap()).collect();
    assert_eq!(api.raw("GET /api/status", &[api.host(), api.bearer()], "").0, 200);
    drop(idle);
}

impl Api {
    /// Trades a code as the page does; status and answer.
    fn trade(&self, code: &str, origin: &str) -> (u16, Value) {
        let headers = [self.host(), format!("Origin: {origin}"), "Content-Type: application/json".into()];
        let (status, answer, _) = self.raw("POST /api/session", &headers, &json!({"code": code}).to_string());
        (status, answer)
    }

    fn own_origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A code for the window, as `holdfast open` gets it.
    async fn code(&self) -> String {
        let url = self.home.ok(&["open", "--print"]).await;
        let code = url.strip_prefix(&format!("http://{}/#", self.address)).unwrap_or_else(|| panic!("{url}"));
        assert_eq!(code.len(), 43, "{code}");
        code.to_owned()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_window_opens_with_a_code_that_is_good_once_and_its_session_ends_with_the_process() {
    let mut api = Api::start().await;
    let code = api.code().await;
    let (status, answer) = api.trade(&code, &api.own_origin());
    let token = answer["token"].as_str().unwrap().to_owned();
    assert_eq!((status, token.len()), (200, 43));
    let bearer = format!("Authorization: Bearer {token}");
    assert_eq!(api.raw("GET /api/status", &[api.host(), bearer.clone()], "").0, 200);
    let (status, answer) = api.trade(&code, &api.own_origin());
    assert_eq!((status, answer["code"].as_str()), (401, Some("authentication_failed")));
    assert_eq!(api.raw("GET /api/status", &[api.host(), format!("Authorization: Bearer {code}")], "").0, 401);
    assert_eq!(api._serve.stop().await.code(), Some(0));
    let log = std::fs::read_to_string(api.home.data().join("logs/holdfast.log")).unwrap();
    assert!(!log.contains(&token) && !log.contains(&code) && !api._serve.log().contains(&token));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_from_elsewhere_cannot_trade_a_code_and_does_not_use_it_up() {
    let api = Api::start().await;
    let code = api.code().await;
    for origin in ["http://evil.example", "null", "http://127.0.0.1:1", &format!("https://{}", api.address)] {
        assert_eq!(api.trade(&code, origin).0, 403, "{origin}");
    }
    let body = json!({"code": code}).to_string();
    let rebound = [format!("Host: evil.example:{}", api.address.rsplit(':').next().unwrap())];
    assert_eq!(api.raw("POST /api/session", &rebound, &body).0, 403);
    assert_eq!(api.raw("POST /api/open", &[api.host()], "").0, 401, "a code is made for who has a token");
    assert_eq!(api.raw("GET /api/session", &[api.host()], "").0, 401);
    assert_eq!(api.trade(&code, &api.own_origin()).0, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn guessing_codes_ends_after_ten() {
    let api = Api::start().await;
    let code = api.code().await;
    for n in 0..10 {
        assert_eq!(api.trade(&format!("{n:043}"), &api.own_origin()).0, 401);
    }
    let (status, answer) = api.trade(&code, &api.own_origin());
    assert_eq!((status, answer["code"].as_str()), (429, Some("rate_limited")));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_windows_files_need_no_token_and_load_nothing_from_elsewhere() {
    let api = Api::start().await;
    // A build without ui/dist says how to get it, on the same address.
    let (status, _, head) = api.raw("GET /", &[api.host()], "");
    assert!(matches!(status, 200 | 404), "{head}");
    assert!(head.contains("content-type: text/html"), "{head}");
    assert!(head.contains("content-security-policy: default-src 'self'; connect-src 'self'"), "{head}");
    assert!(head.contains("frame-ancestors 'none'") && !head.contains("unsafe"), "{head}");
    assert!(head.contains("cross-origin-resource-policy: same-origin"), "{head}");
    assert_eq!(api.raw("GET /", &["Host: evil.example".into()], "").0, 403);
    assert_eq!(api.raw("POST /", &[api.host()], "").0, 405);
    for path in ["/../Cargo.toml", "/%2e%2e/api.json", "//api/status", "/%61pi/status", "/api.json", "/app.js/"] {
        assert_eq!(api.raw(&format!("GET {path}"), &[api.host()], "").0 / 100, 4, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_browser_is_handed_the_address_and_nothing_else() {
    let api = Api::start().await;
    let (browser, seen) = (api.home.workspace().join("browser"), api.home.workspace().join("seen"));
    std::fs::write(&browser, format!("#!/bin/sh\nprintf '%s\\n' \"$@\" > {0}.new && mv {0}.new {0}\n", seen.display()))
        .unwrap();
    std::fs::set_permissions(&browser, std::fs::Permissions::from_mode(0o755)).unwrap();
    let output = api.home.command(&["open"]).env("BROWSER", &browser).output().await.unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "the window opens in the browser\n");
    for _ in 0..400 {
        if seen.exists() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    let lines = std::fs::read_to_string(&seen).unwrap();
    assert!(lines.starts_with(&format!("http://{}/#", api.address)) && lines.lines().count() == 1, "{lines}");
    let nobody = Home::new();
    assert_eq!(nobody.run(&["open"]).await.status.code(), Some(3));
}
