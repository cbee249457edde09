//! From a relay's address to an open WebSocket: proxy, TLS, upgrade, and what a refusal means.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::net::IpAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use holdfast_core::daemon::{Compat, DialError, SignIn};
use holdfast_core::limits;
use holdfast_core::wire::TOKEN_HEADER;
use http::{HeaderValue, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Incoming;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName};
use secrecy::{ExposeSecret as _, SecretString};
use tokio_rustls::TlsConnector;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tower_service::Service;
use url::{Host, Url};

use super::socket::Socket;
use super::stream::{BoxStream, Meter, Metered};
use super::{LinkError, Proxies};

/// Which socket of which relay, as whom.
pub(crate) struct Destination<'a> {
    pub(crate) relay: &'a Url,
    pub(crate) path: &'static str,
    pub(crate) token: &'a SecretString,
    pub(crate) compat: Compat,
    pub(crate) ca_file: Option<&'a Path>,
    pub(crate) proxies: &'a Proxies,
}

/// How to reach the relay; made once, used for every attempt.
pub(crate) struct Route {
    target: Uri,
    path: &'static str,
    host: String,
    secure: bool,
    local: bool,
    token: HeaderValue,
    compat: Compat,
    proxy: Option<Intercept>,
    tls: Option<TlsConnector>,
}

impl Route {
    pub(crate) fn new(to: &Destination<'_>) -> Result<Route, LinkError> {
        let relay = to.relay;
        let secure = check_address(relay)?;
        let loopback = is_loopback(relay);
        let target: Uri = relay.join(to.path).ok().and_then(|url| url.as_str().parse().ok()).ok_or(BAD_ADDRESS)?;
        let mut token = HeaderValue::from_str(to.token.expose_secret()).map_err(|_| LinkError::Token)?;
        token.set_sensitive(true);
        // A relay on this machine is never asked of a proxy.
        let proxy = match to.proxies {
            _ if loopback => None,
            Proxies::Direct => None,
            Proxies::Environment => Matcher::from_env().intercept(&target),
            Proxies::Fixed(url) => {
                let matcher = Matcher::builder().all(url.as_str()).build();
                Some(matcher.intercept(&target).ok_or(LinkError::Proxy)?)
            }
        };
        if proxy
            .as_ref()
            .is_some_and(|proxy| !matches!(proxy.uri().scheme_str(), Some("http" | "https" | "socks5" | "socks5h")))
        {
            return Err(LinkError::Proxy);
        }
        let needs_tls = secure || proxy.as_ref().is_some_and(|proxy| proxy.uri().scheme_str() == Some("https"));
        let tls = if needs_tls { Some(tls_connector(to.ca_file)?) } else { None };
        let host = relay.host_str().ok_or(BAD_ADDRESS)?.to_owned();
        Ok(Route { target, path: to.path, host, secure, local: loopback, token, compat: to.compat, proxy, tls })
    }

    /// How the relay is reached, for people.
    pub(crate) fn name(&self) -> &'static str {
        if self.proxy.is_some() { "proxy" } else { "direct" }
    }

    /// Whether the relay is on this machine, where the network does not matter.
    pub(crate) fn is_local(&self) -> bool {
        self.local
    }

    /// One attempt. The caller bounds its time.
    pub(super) async fn open(&self) -> Result<Socket, DialError> {
        let meter = Arc::new(Meter::default());
        let stream = self.stream(&meter).await?;
        self.upgrade(stream, meter).await
    }

    async fn stream(&self, meter: &Arc<Meter>) -> Result<BoxStream, DialError> {
        let mut wire = Wire { tcp: tcp_connector(), meter: meter.clone(), tls: self.tls.clone() };
        // The tunnel's end is TCP to the relay; TLS to the relay itself comes on top of it.
        let raw = match &self.proxy {
            None => wire.tcp(self.target.clone()).await.map_err(failed)?,
            Some(proxy) => {
                let to = proxy.uri().clone();
                match to.scheme_str() {
                    Some("socks5" | "socks5h") => {
                        let local_dns = to.scheme_str() == Some("socks5");
                        let mut socks = SocksV5::new(to, wire).local_dns(local_dns);
                        if let Some((user, password)) = proxy.raw_auth() {
                            socks = socks.with_auth(user.to_owned(), password.to_owned());
                        }
                        socks.call(self.target_with_port()).await.map_err(|e| through_proxy(&e))?.into_inner()
                    }
                    _ => {
                        let mut tunnel = Tunnel::new(to, wire);
                        if let Some(auth) = proxy.basic_auth() {
                            tunnel = tunnel.with_auth(auth.clone());
                        }
                        tunnel.call(self.target_with_port()).await.map_err(|e| through_proxy(&e))?.into_inner()
                    }
                }
            }
        };
        match &self.tls {
            Some(tls) if self.secure => handshake(tls, &self.host, raw).await.map_err(failed),
            _ => Ok(raw),
        }
    }

    /// The target with its port spelled out, for proxies.
    fn target_with_port(&self) -> Uri {
        let port = self.target.port_u16().unwrap_or(if self.secure { 443 } else { 80 });
        let authority = format!("{}:{port}", self.host);
        let built =
            Uri::builder().scheme(if self.secure { "https" } else { "http" }).authority(authority).path_and_query("/");
        built.build().unwrap_or_else(|_| self.target.clone())
    }

    async fn upgrade(&self, stream: BoxStream, meter: Arc<Meter>) -> Result<Socket, DialError> {
        let key = generate_key();
        let authority = self.target.authority().map_or("", |authority| authority.as_str());
        let request = Request::get(self.path)
            .header(header::HOST, authority)
            .header(header::CONNECTION, "Upgrade")
            .header(header::UPGRADE, "websocket")
            .header(header::SEC_WEBSOCKET_VERSION, "13")
            .header(header::SEC_WEBSOCKET_KEY, &key)
            .header(TOKEN_HEADER, self.token.clone())
            .body(Empty::<Bytes>::new())
            .map_err(|_| transport("the upgrade request could not be built"))?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|e| failed(Box::new(e)))?;
        tokio::spawn(connection.with_upgrades());
        let response = sender.send_request(request).await.map_err(|e| failed(Box::new(e)))?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Err(self.refusal(response).await);
        }
        let accept = response.headers().get(header::SEC_WEBSOCKET_ACCEPT).map(HeaderValue::as_bytes);
        if accept != Some(derive_accept_key(key.as_bytes()).as_bytes()) {
            return Err(transport("the answer to the upgrade is not a WebSocket's"));
        }
        let upgraded = hyper::upgrade::on(response).await.map_err(|e| failed(Box::new(e)))?;
        let parts = upgraded
            .downcast::<TokioIo<BoxStream>>()
            .map_err(|_| transport("the connection was lost in the upgrade"))?;
        let stream = parts.io.into_inner();
        let ws = WebSocketStream::from_partially_read(stream, parts.read_buf.to_vec(), Role::Client, Some(ws_config()));
        Ok(Socket::new(ws.await, meter))
    }

    /// What an answer other than 101 means. Only two answers mean anything; the rest is somebody in between.
    async fn refusal(&self, response: Response<Incoming>) -> DialError {
        let status = response.status();
        if status != StatusCode::UNAUTHORIZED {
            let redirect = if status.is_redirection() { ", a redirect" } else { "" };
            return transport(format!("the relay's address answered with status {}{redirect}", status.as_u16()));
        }
        let body = Limited::new(response.into_body(), limits::UPGRADE_BODY_MAX).collect().await;
        let body = body.map(|body| body.to_bytes()).unwrap_or_default();
        if self.compat == Compat::Base && body.as_ref() == b"Unauthorized daemon" {
            return DialError::SignIn(SignIn::Unknown);
        }
        let code = serde_json::from_slice::<serde_json::Value>(&body).ok();
        match code.as_ref().and_then(|body| body.get("error")).and_then(serde_json::Value::as_str) {
            Some("device_revoked") => DialError::SignIn(SignIn::Revoked),
            Some("device_unknown") => DialError::SignIn(SignIn::Unknown),
            _ => transport("the relay's address answered with status 401"),
        }
    }
}

/// TCP, and TLS where the address of a proxy asks for it.
#[derive(Clone)]
struct Wire {
    tcp: HttpConnector,
    meter: Arc<Meter>,
    tls: Option<TlsConnector>,
}

type BoxError = Box<dyn StdError + Send + Sync>;

impl Wire {
    async fn tcp(&mut self, to: Uri) -> Result<BoxStream, BoxError> {
        let tcp = self.tcp.call(to).await?.into_inner();
        Ok(Box::new(Metered::new(tcp, self.meter.clone())))
    }
}

impl Service<Uri> for Wire {
    type Response = TokioIo<BoxStream>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let mut wire = self.clone();
        Box::pin(async move {
            let tcp = wire.tcp(to.clone()).await?;
            Ok(TokioIo::new(match &wire.tls {
                Some(tls) if to.scheme_str() == Some("https") => {
                    handshake(tls, to.host().unwrap_or_default(), tcp).await?
                }
                _ => tcp,
            }))
        })
    }
}

fn tcp_connector() -> HttpConnector {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_send_buffer_size(Some(limits::LINK_SEND_BUFFER));
    tcp
}

async fn handshake(tls: &TlsConnector, host: &str, stream: BoxStream) -> Result<BoxStream, BoxError> {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let name = ServerName::try_from(host.to_owned())?;
    Ok(Box::new(tls.connect(name, stream).await?))
}

fn tls_connector(ca_file: Option<&Path>) -> Result<TlsConnector, LinkError> {
    let mut extra = Vec::new();
    if let Some(file) = ca_file {
        let bad = |e: rustls_pki_types::pem::Error| LinkError::CaFile(e.to_string());
        for certificate in CertificateDer::pem_file_iter(file).map_err(bad)? {
            extra.push(certificate.map_err(bad)?);
        }
        if extra.is_empty() {
            return Err(LinkError::CaFile("holds no certificate".into()));
        }
    }
    let bad = |e: rustls::Error| LinkError::Tls(e.to_string());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = rustls_platform_verifier::Verifier::new_with_extra_roots(extra, provider.clone()).map_err(bad)?;
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(bad)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

const BAD_ADDRESS: LinkError = LinkError::Address("cannot be read");

/// Whether the relay is reached over TLS; refuses what must not be dialled.
pub(crate) fn check_address(relay: &Url) -> Result<bool, LinkError> {
    if !relay.username().is_empty() || relay.password().is_some() {
        return Err(LinkError::Address("must not hold a user or password"));
    }
    if relay.path() != "/" || relay.query().is_some() || relay.fragment().is_some() {
        return Err(LinkError::Address("must have no path, query or fragment"));
    }
    match relay.scheme() {
        "https" => Ok(true),
        "http" if is_loopback(relay) => Ok(false),
        "http" => Err(LinkError::Address("must be https, because it is not on this machine")),
        _ => Err(LinkError::Address("must be https")),
    }
}

fn is_loopback(relay: &Url) -> bool {
    match relay.host() {
        Some(Host::Ipv4(ip)) => IpAddr::V4(ip).is_loopback(),
        Some(Host::Ipv6(ip)) => IpAddr::V6(ip).is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

fn ws_config() -> WebSocketConfig {
    let mut config = WebSocketConfig::default();
    config.read_buffer_size = limits::LINK_WRITE_ROOM;
    config.write_buffer_size = limits::LINK_WRITE_ROOM;
    config.max_write_buffer_size = 2 * (limits::FRAME_MAX + limits::LINK_WRITE_ROOM);
    config.max_message_size = Some(limits::FRAME_MAX);
    config.max_frame_size = Some(limits::FRAME_MAX);
    config
}

fn transport(text: impl Into<Cow<'static, str>>) -> DialError {
    DialError::Transport(text.into())
}

/// A failed attempt in the words of its innermost cause.
fn failed(error: BoxError) -> DialError {
    let mut cause: &dyn StdError = error.as_ref();
    while let Some(source) = cause.source() {
        cause = source;
    }
    let text: String = cause.to_string().chars().filter(|c| !c.is_control()).take(limits::CLOSE_REASON_MAX).collect();
    transport(text)
}

/// A proxy's failure. Its own words may hold its address, so only their kind is told.
fn through_proxy(error: &dyn std::fmt::Display) -> DialError {
    let text = error.to_string();
    transport(if text.contains("authorization") { "the proxy wants a password" } else { "the proxy did not connect" })
}
