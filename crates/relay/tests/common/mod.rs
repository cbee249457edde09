//! A relay on a free port with a clock that the test moves, and an HTTP client that can misbehave.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "each test binary uses a part; panics are findings"
)]

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use holdfast_core::policy::Role;
use holdfast_relay::people::Enrolled;
use holdfast_relay::{ManualClock, NewAccount, RelayHandle, RelayOptions, TokenRequest, start};
use holdfast_testkit::port::Port;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

pub const PASSWORD: &str = "correct horse battery";
pub const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
pub const REDIRECT: &str = "https://client.example/cb";

pub struct Relay {
    pub handle: RelayHandle,
    pub clock: Arc<ManualClock>,
    pub dir: tempfile::TempDir,
    /// Nobody else's, so that it listens there again after a restart.
    pub port: Port,
}

/// An answer, read to its end.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// The stable code of an error.
    pub fn code(&self) -> String {
        let json = self.json();
        let code = json.get("code").or(json.get("error")).and_then(Value::as_str);
        code.unwrap_or_default().to_owned()
    }

    /// A parameter of the address the browser is sent to.
    pub fn sent_to(&self, name: &str) -> Option<String> {
        let location = url::Url::parse(self.header("location")?).unwrap();
        location.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
    }
}

impl Relay {
    pub async fn start() -> Relay {
        Relay::with(|_| ()).await
    }

    pub async fn with(change: impl FnOnce(&mut RelayOptions)) -> Relay {
        let dir = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::default());
        let port = Port::reserve();
        let mut options = RelayOptions::loopback(port.number(), dir.path());
        options.clock = clock.clone();
        change(&mut options);
        let handle = start(options).await.unwrap();
        Relay { handle, clock, dir, port }
    }

    /// A relay with the owner `ada`, her password and one device.
    pub async fn with_ada() -> (Relay, Enrolled) {
        let relay = Relay::start().await;
        let device = relay.add("ada", Role::Owner).await;
        (relay, device)
    }

    pub async fn add(&self, name: &str, role: Role) -> Enrolled {
        let new = NewAccount { name: name.into(), role, password: Some(PASSWORD.into()) };
        let account = self.handle.admin.create_account(new).await.unwrap();
        self.handle.admin.enrol_local(&account.id, &format!("{name}'s laptop")).await.unwrap()
    }

    pub async fn token(&self, account: &str) -> String {
        let request = TokenRequest { name: "test".into(), account: Some(account.into()), ..TokenRequest::default() };
        self.handle.admin.create_token(request).await.unwrap().token
    }

    pub fn addr(&self) -> SocketAddr {
        self.handle.addr
    }

    pub fn origin(&self) -> String {
        format!("http://{}", self.addr())
    }

    pub async fn get(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.send("GET", path, headers, "").await
    }

    pub async fn form(&self, path: &str, fields: &[(&str, &str)], headers: &[(&str, &str)]) -> Answer {
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let mut all = vec![("content-type", "application/x-www-form-urlencoded")];
        all.extend(headers);
        self.send("POST", path, &all, &body).await
    }

    pub async fn post(&self, path: &str, body: &Value, headers: &[(&str, &str)]) -> Answer {
        let mut all = vec![("content-type", "application/json")];
        all.extend(headers);
        self.send("POST", path, &all, &body.to_string()).await
    }

    /// One request on a connection of its own. A `host` among the headers replaces ours.
    pub async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut request = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            write!(request, "host: {}\r\n", self.addr()).unwrap();
        }
        for (name, value) in headers {
            write!(request, "{name}: {value}\r\n").unwrap();
        }
        if method != "GET" || !body.is_empty() {
            write!(request, "content-length: {}\r\n", body.len()).unwrap();
        }
        write!(request, "\r\n{body}").unwrap();
        raw(self.addr(), request.as_bytes()).await.expect("an answer")
    }

    /// Registers a client that uses refresh tokens; returns its id.
    pub async fn register(&self) -> String {
        let body = serde_json::json!({
            "redirect_uris": [REDIRECT], "client_name": "Test client",
            "grant_types": ["authorization_code", "refresh_token"],
        });
        let answer = self.post("/oauth/register", &body, &[]).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()["client_id"].as_str().unwrap().to_owned()
    }

    /// The authorization request of a client, with changes: a value replaces or adds, `None` leaves out.
    pub fn authorize_path(&self, client: &str, changes: &[(&str, Option<&str>)]) -> String {
        let resource = format!("{}/mcp", self.origin());
        let challenge = challenge(VERIFIER);
        let mut fields: Vec<(&str, &str)> = vec![
            ("response_type", "code"),
            ("client_id", client),
            ("redirect_uri", REDIRECT),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("state", "st&te"),
            ("scope", "mcp"),
            ("resource", &resource),
        ];
        for (name, value) in changes {
            fields.retain(|(key, _)| key != name);
            fields.extend(value.map(|value| (*name, value)));
        }
        let query = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        format!("/oauth/authorize?{query}")
    }

    /// Opens the page; returns request id and cookie.
    pub async fn open(&self, path: &str) -> (String, String) {
        let page = self.get(path, &[]).await;
        assert_eq!(page.status, 200, "{page:?}");
        let cookie = page.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
        (field(&page.body, "request"), cookie)
    }

    /// Does one step on the page.
    pub async fn step(&self, id: &str, cookie: &str, fields: &[(&str, &str)]) -> Answer {
        let mut all = vec![("request", id)];
        all.extend(fields);
        self.form("/oauth/authorize", &all, &[("cookie", cookie), ("origin", &self.origin())]).await
    }

    /// Signs `account` in by password and allows; returns the redirect.
    pub async fn consent(&self, path: &str, account: &str) -> Answer {
        let (id, cookie) = self.open(path).await;
        let signed =
            self.step(&id, &cookie, &[("action", "password"), ("account", account), ("password", PASSWORD)]).await;
        assert_eq!(signed.status, 303, "{signed:?}");
        self.step(&id, &cookie, &[("action", "allow")]).await
    }

    /// A code for a client, with `ada`'s consent.
    pub async fn code(&self, client: &str) -> String {
        self.consent(&self.authorize_path(client, &[]), "ada").await.sent_to("code").unwrap()
    }

    /// Trades a code, with changes as in [`Relay::authorize_path`].
    pub async fn trade(&self, client: &str, code: &str, changes: &[(&str, Option<&str>)]) -> Answer {
        let mut fields = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("client_id", client),
            ("redirect_uri", REDIRECT),
            ("code_verifier", VERIFIER),
        ];
        for (name, value) in changes {
            fields.retain(|(key, _)| key != name);
            fields.extend(value.map(|value| (*name, value)));
        }
        self.form("/oauth/token", &fields, &[]).await
    }

    /// A whole flow; returns client id and the token answer.
    pub async fn connect(&self) -> (String, Value) {
        let client = self.register().await;
        let code = self.code(&client).await;
        let answer = self.trade(&client, &code, &[]).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        (client, answer.json())
    }

    pub async fn refresh(&self, client: &str, token: &str) -> Answer {
        let fields = [("grant_type", "refresh_token"), ("refresh_token", token), ("client_id", client)];
        self.form("/oauth/token", &fields, &[]).await
    }

    /// Whether a bearer token is accepted at a path: the status of a harmless request.
    pub async fn mcp(&self, path: &str, bearer: &str) -> u16 {
        let body = serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
        let auth = format!("Bearer {bearer}");
        let headers = [("authorization", auth.as_str()), ("accept", "application/json, text/event-stream")];
        self.post(path, &body, &headers).await.status
    }

    pub fn advance(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    /// Stops it and starts another on the same folder and port.
    pub async fn restart(self) -> Relay {
        let Relay { handle, clock, dir, port } = self;
        handle.shutdown().await;
        let mut options = RelayOptions::loopback(port.number(), dir.path());
        options.clock = clock.clone();
        Relay { handle: start(options).await.unwrap(), clock, dir, port }
    }
}

pub fn challenge(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()))
}

/// The value of a hidden field.
pub fn field(page: &str, name: &str) -> String {
    let from = page.split(&format!("name=\"{name}\" value=\"")).nth(1).unwrap_or_else(|| panic!("no {name} in {page}"));
    from.split('"').next().unwrap().to_owned()
}

/// The code a page asks to type.
pub fn shown_code(page: &str) -> String {
    let from = page.split("aria-label=\"approval code\">").nth(1).unwrap_or_else(|| panic!("no code in {page}"));
    from.split('<').next().unwrap().to_owned()
}

/// Sends bytes and reads the answer to its end; `None` if the peer closed without one.
pub async fn raw(addr: SocketAddr, bytes: &[u8]) -> Option<Answer> {
    let mut stream = TcpStream::connect(addr).await.unwrap();
    // The peer may refuse before it has read everything.
    let _ = stream.write_all(bytes).await;
    read_answer(&mut stream).await
}

pub async fn read_answer(stream: &mut TcpStream) -> Option<Answer> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 8192];
    while let Ok(read) = stream.read(&mut buffer).await {
        if read == 0 {
            break;
        }
        bytes.extend_from_slice(&buffer[..read]);
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n")?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let headers: Vec<(String, String)> =
        lines.filter_map(|line| line.split_once(": ")).map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
    let body = match headers.iter().any(|(k, v)| k == "transfer-encoding" && v == "chunked") {
        true => unchunk(body),
        false => body.to_owned(),
    };
    Some(Answer { status, headers, body })
}

fn unchunk(mut body: &str) -> String {
    let mut out = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap_or(0);
        if size == 0 {
            break;
        }
        out.push_str(&rest[..size]);
        body = rest[size..].trim_start_matches("\r\n");
    }
    out
}
