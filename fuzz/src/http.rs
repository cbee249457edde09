//! What a stranger can send to the relay, through the relay's own listener: whatever stands in it, the answer is an answer.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::LazyLock;
use std::time::Duration;

use holdfast_core::policy::Role;
use holdfast_relay::{NewAccount, RelayOptions, TokenRequest};

struct Relay {
    address: SocketAddr,
    bearer: String,
    _runtime: tokio::runtime::Runtime,
    _folder: tempfile::TempDir,
}

/// One relay for all inputs of the process.
static RELAY: LazyLock<Relay> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let (address, bearer) = runtime.block_on(async {
        let relay = holdfast_relay::start(RelayOptions::loopback(0, folder.path())).await.expect("a relay");
        let account = NewAccount { name: "owner".into(), role: Role::Owner, password: None };
        let account = relay.admin.create_account(account).await.expect("an account");
        relay.admin.enrol_local(&account.id, "device").await.expect("a device");
        let token = TokenRequest { name: "fuzz".into(), ..TokenRequest::default() };
        let bearer = relay.admin.create_token(token).await.expect("a token").token;
        let address = relay.addr;
        // It lives as long as the process.
        std::mem::forget(relay);
        (address, bearer)
    });
    Relay { address, bearer, _runtime: runtime, _folder: folder }
});

/// Sends one request on a connection of its own and checks that an HTTP answer comes that is no defect.
fn exchange(head: &str, body: &[u8]) {
    let relay = &*RELAY;
    let mut stream = TcpStream::connect(relay.address).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_millis(500))).expect("a timeout");
    let head = format!("{head}Host: {}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", relay.address, body.len());
    // The relay may answer and close before it has read everything.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
    let mut answer = Vec::new();
    let mut piece = [0; 4096];
    // Streams that stay open have said what is checked here with their first bytes.
    while answer.len() < 16 {
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => break,
            Ok(n) => answer.extend_from_slice(&piece[..n]),
        }
    }
    assert!(answer.starts_with(b"HTTP/1.1 "), "no answer: {}", answer.escape_ascii());
    assert!(!answer.starts_with(b"HTTP/1.1 500"), "a defect of ours");
}

/// A body of `POST /mcp` from an authorised client. A first line `@2025-11-25` speaks as that revision.
pub fn mcp_envelope(bytes: &[u8]) {
    let (revision, body) = match bytes.strip_prefix(b"@2025-11-25\n") {
        Some(body) => ("2025-11-25", body),
        None => ("2026-07-28", bytes),
    };
    let head = format!(
        "POST /mcp HTTP/1.1\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: {revision}\r\n",
        RELAY.bearer
    );
    exchange(&head, body);
}

/// The query of `/oauth/authorize`.
pub fn oauth_authorize(bytes: &[u8]) {
    let query: String = bytes.iter().filter(|b| b.is_ascii_graphic() && **b != b'#').map(|b| char::from(*b)).collect();
    exchange(&format!("GET /oauth/authorize?{query} HTTP/1.1\r\n"), b"");
}

/// The form of `/oauth/token`; the same bytes are a revocation too.
pub fn oauth_token(bytes: &[u8]) {
    for path in ["/oauth/token", "/oauth/revoke"] {
        exchange(&format!("POST {path} HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\n"), bytes);
    }
}

/// What stands in `Authorization` and in the link's header, and the body of an enrolment.
pub fn credentials(bytes: &[u8]) {
    let value: String = bytes.iter().filter(|b| (0x20..0x7f).contains(*b)).map(|b| char::from(*b)).collect();
    let value = value.get(..4096).unwrap_or(&value);
    exchange(&format!("GET /mcp HTTP/1.1\r\nAuthorization: {value}\r\n"), b"");
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    exchange(&format!("GET /daemon/ws HTTP/1.1\r\nX-Bridge-Token: {value}\r\n{upgrade}"), b"");
    exchange("POST /api/enroll HTTP/1.1\r\nContent-Type: application/json\r\n", bytes);
}
