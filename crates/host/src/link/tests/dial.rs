//! From an address to an open socket.

use super::*;

#[tokio::test]
async fn the_upgrade_carries_the_token_and_the_path_of_the_link() {
    let relay = Relay::new().await;
    let _rig = Rig::new(&relay.url(), |_| {});
    let request = relay.answer("HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n").await.to_lowercase();
    assert!(request.starts_with("get /daemon/ws http/1.1\r\n"), "{request}");
    for line in ["x-bridge-token: secret-of-at-least-16", "upgrade: websocket", "sec-websocket-version: 13"] {
        assert!(request.contains(line), "{line}");
    }
    assert!(!request.contains("origin:"));
}

#[tokio::test]
async fn only_our_own_codes_of_a_401_ask_for_a_new_sign_in() {
    let json = |body: &str| {
        let length = body.len();
        format!("HTTP/1.1 401 Unauthorized\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
    };
    for (compat, response, wanted) in [
        (Compat::Holdfast, json(r#"{"error":"device_revoked"}"#), Some("device_revoked")),
        (Compat::Holdfast, json(r#"{"error":"device_unknown"}"#), Some("device_unknown")),
        (Compat::Holdfast, json(r#"{"error":"login"}"#), None),
        (Compat::Holdfast, json("Unauthorized daemon"), None),
        (Compat::Base, json("Unauthorized daemon"), Some("device_unknown")),
    ] {
        let relay = Relay::new().await;
        let rig = Rig::new(&relay.url(), |o| o.compat = compat);
        relay.answer(&response).await;
        match wanted {
            Some(code) => {
                let seen = rig.state(LinkState::SignInNeeded).await;
                assert_eq!(seen.link.cause.as_deref(), Some(code));
            }
            None => {
                rig.cause("status 401").await;
                assert_eq!(rig.link.status().borrow().link.state, LinkState::Connecting);
            }
        }
    }
}

#[tokio::test]
async fn a_captive_portal_is_a_failed_attempt_and_nothing_more() {
    for (response, cause) in [
        ("HTTP/1.1 302 Found\r\nlocation: http://portal/\r\ncontent-length: 0\r\n\r\n", "status 302, a redirect"),
        ("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 13\r\n\r\n<html></html>", "status 200"),
        ("HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n", "status 403"),
        ("nonsense\r\n\r\n", "HTTP"),
        (
            "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: x\r\n\r\n",
            "not a WebSocket",
        ),
    ] {
        let relay = Relay::new().await;
        let rig = Rig::new(&relay.url(), |_| {});
        relay.answer(response).await;
        rig.cause(cause).await;
        let mut peer = relay.accept().await;
        peer.handshake(&[]).await;
        rig.state(LinkState::Healthy).await;
    }
}

#[tokio::test]
async fn a_relay_that_is_not_there_is_tried_until_it_is() {
    let port = holdfast_testkit::port::Port::reserve();
    let address = ("127.0.0.1", port.number());
    let rig = Rig::new(&format!("http://127.0.0.1:{}", port.number()), |_| {});
    rig.cause("refused").await;
    let relay = Relay { listener: TcpListener::bind(address).await.expect("the port"), base: false, tls: None };
    let _peer = relay.ready(&[]).await;
    rig.state(LinkState::Healthy).await;
}

#[tokio::test]
async fn a_proxy_is_asked_to_connect_and_its_password_is_never_told() {
    let proxy = Relay::new().await;
    let at = proxy.listener.local_addr().expect("an address");
    let rig = Rig::new("https://relay.example", |o| o.proxies = Proxies::Fixed(format!("http://me:hunter2@{at}")));
    let request = proxy.answer("HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n").await;
    assert!(request.starts_with("CONNECT relay.example:443 HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("Basic bWU6aHVudGVyMg=="), "{request}");
    rig.cause("the proxy wants a password").await;
    let seen = rig.link.status().borrow().clone();
    assert!(!format!("{seen:?}").contains("hunter2"));
}

#[tokio::test]
async fn a_socks_proxy_resolves_the_relays_name() {
    let proxy = Relay::new().await;
    let at = proxy.listener.local_addr().expect("an address");
    let rig = Rig::new("https://relay.example", |o| o.proxies = Proxies::Fixed(format!("socks5h://{at}")));
    let mut tcp = proxy.tcp().await;
    let mut greeting = [0; 3];
    tcp.read_exact(&mut greeting).await.expect("a greeting");
    assert_eq!(greeting, [5, 1, 0]);
    tcp.write_all(&[5, 0]).await.expect("written");
    let mut request = [0; 20];
    tcp.read_exact(&mut request).await.expect("a request");
    assert_eq!(&request[..5], &[5, 1, 0, 3, 13]);
    assert_eq!(&request[5..18], b"relay.example");
    assert_eq!(&request[18..], &443u16.to_be_bytes());
    drop(tcp);
    rig.cause("the proxy did not connect").await;
}

#[tokio::test]
async fn what_must_not_be_dialled_is_refused_at_once() {
    let data = tempfile::tempdir().expect("a folder");
    for (relay, part) in [
        ("http://relay.example", "must be https"),
        ("http://10.0.0.1", "must be https"),
        ("ftp://127.0.0.1", "must be https"),
        ("https://me:pw@relay.example", "user or password"),
        ("https://relay.example/x", "no path"),
        ("https://relay.example/?q", "no path"),
    ] {
        let made = spawn(options(relay, data.path()), Arc::new(Hands::default()), Arc::new(Ears::default()));
        let error = made.expect_err(relay).to_string();
        assert!(error.contains(part), "{relay}: {error}");
        assert!(!error.contains("pw"));
    }
    for relay in ["http://127.0.0.1:1", "http://[::1]:1", "http://localhost:1"] {
        let made = spawn(options(relay, data.path()), Arc::new(Hands::default()), Arc::new(Ears::default()));
        made.expect(relay).close();
    }
}

#[tokio::test]
async fn a_black_hole_is_given_up_and_dialled_again() {
    let relay = Relay::new().await;
    let rig = Rig::new(&relay.url(), |_| {});
    // Taken, and never answered.
    let silent = relay.tcp().await;
    rig.cause("no answer in time").await;
    let _peer = relay.ready(&[]).await;
    rig.state(LinkState::Healthy).await;
    drop(silent);
}

/// A certificate for `localhost` that only a `ca_file` can vouch for, and its acceptor.
fn certificate(folder: &std::path::Path, name: &str) -> (std::path::PathBuf, tokio_rustls::TlsAcceptor) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    let file = folder.join(name);
    std::fs::write(&file, made.cert.pem()).expect("written");
    let key = rustls_pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .expect("a configuration");
    (file, tokio_rustls::TlsAcceptor::from(Arc::new(config)))
}

#[tokio::test]
async fn a_relay_with_a_certificate_of_our_own_authority_is_reached_over_tls() {
    let folder = tempfile::tempdir().expect("a folder");
    let (ca_file, tls) = certificate(folder.path(), "ca.pem");
    let relay = Relay { tls: Some(tls), ..Relay::new().await };
    let port = relay.listener.local_addr().expect("an address").port();
    let mut rig = Rig::new(&format!("https://localhost:{port}"), |o| o.ca_file = Some(ca_file));
    let mut peer = relay.ready(&[]).await;
    peer.call(1).await;
    rig.started().await;
    rig.hands.finish(1, "1");
    assert_eq!(peer.result().await, (id(1), "1".into()));
}

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_is_a_failed_attempt_and_sends_no_token() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_, tls) = certificate(folder.path(), "relay.pem");
    let (other, _) = certificate(folder.path(), "other.pem");
    let relay = Relay { tls: Some(tls), ..Relay::new().await };
    let port = relay.listener.local_addr().expect("an address").port();
    let rig = Rig::new(&format!("https://localhost:{port}"), |o| o.ca_file = Some(other));
    let tcp = relay.tcp().await;
    assert!(soon(relay.tls.as_ref().expect("tls").accept(tcp)).await.is_err());
    rig.cause("certificate").await;
    assert_eq!(rig.link.status().borrow().link.state, LinkState::Connecting);
}

#[tokio::test]
async fn a_ca_file_that_holds_no_certificate_is_refused_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("empty.pem");
    std::fs::write(&file, "nothing").expect("written");
    let mut options = options("https://relay.example", folder.path());
    options.ca_file = Some(file);
    let made = spawn(options, Arc::new(Hands::default()), Arc::new(Ears::default()));
    assert!(matches!(made, Err(LinkError::CaFile(_))));
}
