//! The loopback API of a running process: who may ask it, and what it answers.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use holdfast_testkit::home::Home;
use holdfast_testkit::oauth::OAuthClient;
use holdfast_testkit::process::Process;
use holdfast_testkit::stand::{found, until};
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
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
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

/// A connection that sent this and waits.
fn waits(api: &Api, sent: &str) -> TcpStream {
    let mut stream = TcpStream::connect(&api.address).unwrap();
    stream.write_all(sent.as_bytes()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_and_half_sent_connections_without_a_token_keep_nobody_out_and_do_not_last() {
    let api = Api::start().await;
    let (host, own) = (api.host(), api.own_origin());
    let head = |request: &str| format!("{request} HTTP/1.1\r\n{host}\r\n");
    let session = format!("{}Origin: {own}\r\nContent-Length: 9\r\n\r\n", head("POST /api/session"));
    let command = format!("{}Content-Length: 9\r\n\r\n", head("POST /api/command"));
    let mut strangers = Vec::new();
    for sent in ["", "GET / HT", &head("GET /api/status"), &session, &command] {
        strangers.extend((0..40).map(|_| waits(&api, sent)));
    }
    let try_now = r#"{"command":"try_now"}"#;
    assert_eq!(api.raw("POST /api/command", &[api.host(), api.bearer()], try_now).0, 404);
    let began = std::time::Instant::now();
    for mut stream in strangers {
        let _ = stream.read_to_end(&mut Vec::new());
    }
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_finds_a_place_when_streams_have_taken_all_others() {
    let api = Api::start().await;
    let head = |path: &str| format!("GET {path} HTTP/1.1\r\n{}\r\n{}\r\n\r\n", api.host(), api.bearer());
    let mut streams: Vec<_> = (0..32).map(|_| waits(&api, &head("/api/status/stream"))).collect();
    for stream in &mut streams {
        stream.read_exact(&mut [0; 12]).unwrap();
    }
    let headers = [api.host(), api.bearer()];
    let (status, answer, _) = api.raw("GET /api/status", &headers, "");
    assert_eq!((status, answer["code"].as_str()), (503, Some("busy")));
    assert_eq!(api.raw("POST /api/command", &headers, r#"{"command":"try_now"}"#).0, 404);
    // Once they are known, their connections stay; a place is free as soon as a stream ends.
    drop(streams.pop());
    assert!(until(|| api.raw("GET /api/status", &headers, "").0 == 200).await);
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
async fn guesses_are_told_so_after_ten_and_do_not_lock_out_the_right_code() {
    let api = Api::start().await;
    let code = api.code().await;
    for n in 0..10 {
        assert_eq!(api.trade(&format!("{n:043}"), &api.own_origin()).0, 401);
    }
    let (status, answer) = api.trade(&format!("{:043}", 10), &api.own_origin());
    assert_eq!((status, answer["code"].as_str()), (429, Some("rate_limited")));
    assert_eq!(api.trade(&code, &api.own_origin()).0, 200);
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
    assert!(std::process::Command::new("mkfifo").arg(&seen).status().unwrap().success());
    std::fs::write(&browser, format!("#!/bin/sh\nprintf '%s\\n' \"$@\" > {}\n", seen.display())).unwrap();
    std::fs::set_permissions(&browser, std::fs::Permissions::from_mode(0o755)).unwrap();
    let output = api.home.command(&["open"]).env("BROWSER", &browser).output().await.unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "the window opens in the browser\n");
    // Opens when the browser does.
    let lines = tokio::task::spawn_blocking(move || std::fs::read_to_string(&seen).unwrap());
    let lines = tokio::time::timeout(Duration::from_secs(120), lines).await.expect("a browser").unwrap();
    assert!(lines.starts_with(&format!("http://{}/#", api.address)) && lines.lines().count() == 1, "{lines}");
    let nobody = Home::new();
    assert_eq!(nobody.run(&["open"]).await.status.code(), Some(3));
}

/// A stream of the API.
fn follow(api: &Api, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(&api.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\n{}\r\n{}\r\n\r\n", api.host(), api.bearer());
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

/// Reads a stream until it shows this.
fn read_until(stream: &mut TcpStream, wanted: &str) -> String {
    let (mut text, mut buffer) = (String::new(), [0; 4096]);
    while !text.contains(wanted) {
        let n = stream.read(&mut buffer).unwrap_or_else(|e| panic!("{wanted} did not come ({e}): {text}"));
        assert!(n > 0, "{wanted} did not come: {text}");
        text.push_str(&String::from_utf8_lossy(&buffer[..n]));
    }
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_is_followed_by_level_and_refuses_what_is_no_level() {
    let api = Api::start().await;
    let log = api.home.data().join("logs/holdfast.log");
    let add = move |line: &str| {
        let mut file = std::fs::OpenOptions::new().append(true).open(&log).unwrap();
        writeln!(file, "{line}").unwrap();
    };
    add(r#"{"level":"WARN","message":"before"}"#);
    add(r#"{"level":"INFO","message":"quiet"}"#);
    let mut followed = follow(&api, "/api/logs/stream?lines=50&level=warn");
    let mut text = read_until(&mut followed, "before");
    add(r#"{"level":"INFO","message":"quiet too"}"#);
    add(r#"{"level":"ERROR","message":"later"}"#);
    text.push_str(&read_until(&mut followed, "later"));
    assert!(text.contains("text/event-stream") && text.contains("before") && !text.contains("quiet"), "{text}");
    let (status, lines, _) = api.raw("GET /api/logs?lines=1&level=warn", &[api.host(), api.bearer()], "");
    assert_eq!((status, &lines), (200, &json!([r#"{"level":"ERROR","message":"later"}"#])));
    assert_eq!(api.raw("GET /api/logs?level=loud", &[api.host(), api.bearer()], "").0, 400);
}

/// The clients that wait, once there are this many.
async fn consents(api: &Api, many: usize) -> Value {
    found(&format!("{many} waiting"), async || {
        let consents = api.home.json(&["status", "--json"]).await["consents"].take();
        (consents.as_array().map(Vec::len) == Some(many)).then_some(consents)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_to_be_let_in_is_shown_until_it_is_let_in_or_refused() {
    let api = Api::start().await;
    api.home.ok(&["account", "add", "anna", "--role", "owner"]).await;
    let client = OAuthClient::register(api._serve.ready_text("mcp")).await;
    let now = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as u64;
    let before = now();
    let (mut flow, page) = client.authorize().await;
    let code = flow.browser.ask_locally(&page, "anna").await;
    let waiting = consents(&api, 1).await;
    assert_eq!((&waiting[0]["client"], &waiting[0]["account"]), (&json!("holdfast-testkit"), &json!("anna")));
    // It began at some time in between, as two clocks say.
    let began = waiting[0]["expires_at"].as_u64().unwrap() - 300_000;
    assert!((before - 1_000..=now() + 1_000).contains(&began), "{began} of {before}");
    assert!(!waiting.to_string().contains(&code) && !waiting.to_string().contains(&code.replace('-', "")));
    api.home.ok(&["approve", &code]).await;
    consents(&api, 0).await;

    let (mut flow, page) = client.authorize().await;
    flow.browser.ask_locally(&page, "anna").await;
    let waiting = consents(&api, 1).await;
    let deny = json!({"command": "deny", "consent": waiting[0]["id"]}).to_string();
    let (status, answer, _) = api.raw("POST /api/command", &[api.host(), api.bearer()], &deny);
    assert_eq!((status, answer), (200, json!({"denied": "holdfast-testkit"})));
    consents(&api, 0).await;
    assert_eq!(api.raw("POST /api/command", &[api.host(), api.bearer()], &deny).0, 404);
    let away = flow.browser.reload().await;
    let to = away.location.unwrap();
    assert!(away.status == 303 && to.as_str().contains("error=access_denied"), "{to}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_endpoint_answers_without_a_token() {
    let api = Api::start().await;
    for request in [
        "GET /api/status",
        "GET /api/status/stream",
        "GET /api/timeline",
        "GET /api/timeline/stream",
        "GET /api/calls",
        "GET /api/logs",
        "GET /api/logs/stream",
        "GET /api/config",
        "GET /api/doctor",
        "GET /api/support",
        "POST /api/command",
        "POST /api/drill",
        "POST /api/open",
        "PUT /api/session",
        "POST /api/session/",
        "GET /api",
        "GET /api/nothing",
    ] {
        let (status, answer, _) = api.raw(request, &[api.host()], "{}");
        assert_eq!((status, answer["code"].as_str()), (401, Some("authentication_failed")), "{request}");
    }
}
