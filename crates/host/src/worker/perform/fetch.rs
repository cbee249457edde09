//! Reading from servers: each host is resolved once, checked, and connected to at exactly the addresses that were checked.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use holdfast_core::code::Code;
use holdfast_core::limits;
use holdfast_core::operation::Failure;
use holdfast_core::wire::TOKEN_HEADER;
use parking_lot::Mutex;
use reqwest::{Client, Response, StatusCode, header};
use secrecy::{ExposeSecret as _, SecretString};
use url::{Host, Url};

use super::address::{self, Source};
use super::again::Broken;
use crate::config::SyncConfig;
use crate::exec::awake;
use crate::http_client;

/// Finds the addresses of a host.
pub(super) type Lookup = Arc<dyn Fn(String, u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> + Send + Sync>;

/// What the network is taken for; another one only in tests.
#[derive(Clone)]
pub(super) struct Network {
    pub(super) lookup: Lookup,
    pub(super) public: fn(IpAddr) -> bool,
    /// Certificate authorities that count for listed hosts, in PEM, beside the system's.
    pub(super) authorities: Option<Vec<u8>>,
}

impl Network {
    /// The system's.
    pub(super) fn system() -> Network {
        let lookup =
            |host: String, port| async move { Ok(tokio::net::lookup_host((host, port)).await?.collect()) }.boxed();
        Network { lookup: Arc::new(lookup), public: address::is_public, authorities: None }
    }
}

/// Reads for one operation.
pub(super) struct Fetch {
    relay: Url,
    token: SecretString,
    listed: SyncConfig,
    network: Network,
    to_relay: Client,
    /// Connections to listed hosts, by host and port; each knows only the addresses that were checked.
    others: Mutex<HashMap<(String, u16), Client>>,
}

/// An answer with a body, and where it finally came from.
pub(super) struct Answer {
    pub(super) response: Response,
    pub(super) url: Url,
}

impl Fetch {
    /// Reads from `relay` with the device's credential and from listed hosts without. Blocks for a moment when there is a
    /// `ca_file`.
    pub(super) fn new(
        relay: Url,
        token: SecretString,
        ca_file: Option<&Path>,
        listed: SyncConfig,
        network: Network,
    ) -> Result<Fetch, Failure> {
        let builder = http_client::builder(ca_file).map_err(|e| Failure::new(Code::Unavailable, e.to_string()))?;
        let local = http_client::is_this_machine(&relay);
        let builder = if local { builder.no_proxy() } else { builder };
        let to_relay = builder.build().map_err(|_| Failure::new(Code::Unavailable, "TLS cannot be set up"))?;
        Ok(Fetch { relay, token, listed, network, to_relay, others: Mutex::default() })
    }

    /// Asks for what is at `url`, from byte `from` on. Redirects are followed, each checked as the first address was; the
    /// credential goes to the relay only, and not any more once a redirect left it.
    pub(super) async fn open(&self, url: &Url, from: u64) -> Result<Answer, Broken> {
        let mut url = url.clone();
        let mut at_relay = true;
        for _ in 0..=limits::SYNC_REDIRECTS {
            let source = address::source(&url, &self.relay, &self.listed)?;
            at_relay &= source == Source::Relay;
            let client = match source {
                Source::Relay => self.to_relay.clone(),
                Source::Listed => self.pinned(&url).await?,
            };
            let mut request = client.get(url.clone());
            if at_relay {
                request = request.header(TOKEN_HEADER, self.token.expose_secret());
            }
            if from > 0 {
                request = request.header(header::RANGE, format!("bytes={from}-"));
            }
            let response = match in_time(request.send()).await {
                Ok(response) => response,
                Err(broken) => {
                    self.forget(&url);
                    return Err(broken);
                }
            };
            let Some(next) = redirected(&response, &url)? else {
                return answered(response.status()).map(|()| Answer { response, url });
            };
            url = next;
        }
        Err(Failure::new(Code::NetworkError, "the server redirects without end").into())
    }

    /// A client that connects to the host's addresses as they were checked, whatever its name says later.
    async fn pinned(&self, url: &Url) -> Result<Client, Broken> {
        let key = place(url);
        if let Some(client) = self.others.lock().get(&key) {
            return Ok(client.clone());
        }
        let (host, port) = &key;
        let addresses = match url.host() {
            Some(Host::Ipv4(ip)) => vec![SocketAddr::from((ip, *port))],
            Some(Host::Ipv6(ip)) => vec![SocketAddr::from((ip, *port))],
            _ => {
                let found = tokio::select! {
                    found = (self.network.lookup)(host.clone(), *port) => found.unwrap_or_default(),
                    () = awake::pass(limits::SYNC_TRY) => Vec::new(),
                };
                if found.is_empty() {
                    return Err(Broken::network("the host's name was not found"));
                }
                found
            }
        };
        address::all_public(&addresses, self.network.public)?;
        let client =
            self.client(host, &addresses).map_err(|_| Failure::new(Code::Unavailable, "TLS cannot be set up"))?;
        self.others.lock().insert(key, client.clone());
        Ok(client)
    }

    fn client(&self, host: &str, addresses: &[SocketAddr]) -> reqwest::Result<Client> {
        let mut builder = http_client::bare()
            // A proxy would look the name up anew.
            .no_proxy()
            .https_only(true)
            .resolve_to_addrs(host, addresses);
        if let Some(pem) = &self.network.authorities {
            builder = builder.tls_certs_merge(reqwest::Certificate::from_pem_bundle(pem)?);
        }
        builder.build()
    }

    /// What failed may have moved: the next try looks the host up and checks it again.
    pub(super) fn forget(&self, url: &Url) {
        self.others.lock().remove(&place(url));
    }
}

fn place(url: &Url) -> (String, u16) {
    (url.host_str().unwrap_or_default().to_owned(), url.port_or_known_default().unwrap_or_default())
}

/// Where a redirect leads; nothing if it is none.
fn redirected(response: &Response, from: &Url) -> Result<Option<Url>, Failure> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let to = response.headers().get(header::LOCATION).and_then(|to| to.to_str().ok());
    let to = to.filter(|to| to.len() <= limits::SYNC_URL_MAX).and_then(|to| from.join(to).ok());
    to.map(Some).ok_or_else(|| Failure::new(Code::NetworkError, "the server redirects to nowhere"))
}

/// What an answer's status means.
fn answered(status: StatusCode) -> Result<(), Broken> {
    let code = match status {
        // A range that is not there is for the reader to mend.
        StatusCode::RANGE_NOT_SATISFIABLE => return Ok(()),
        _ if status.is_success() => return Ok(()),
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => {
            return Err(Broken::network(format!("the server answered {}", status.as_u16())));
        }
        _ if status.is_server_error() => {
            return Err(Broken::network(format!("the server answered {}", status.as_u16())));
        }
        StatusCode::NOT_FOUND | StatusCode::GONE => Code::NotFound,
        StatusCode::UNAUTHORIZED => Code::AuthenticationFailed,
        StatusCode::FORBIDDEN => Code::AuthorizationDenied,
        _ => Code::NetworkError,
    };
    Err(Failure::new(code, format!("the server answered {}", status.as_u16())).into())
}

/// Waits for a server's next word, for as long as one try may bring nothing.
pub(super) async fn in_time<T>(word: impl Future<Output = reqwest::Result<T>>) -> Result<T, Broken> {
    tokio::select! {
        word = word => word.map_err(|error| Broken::network(http_client::root_cause(&error.without_url()))),
        () = awake::pass(limits::SYNC_TRY) => Err(Broken::network("the server was silent")),
    }
}
