//! What every request handler reaches.

use std::net::SocketAddr;
use std::sync::Arc;

use holdfast_core::switchboard::Identity;
use ipnet::IpNet;
use url::Url;

use crate::auth::Auth;
use crate::clock::Clock;
use crate::devices::Devices;
use crate::operations::Operations;
use crate::principal::ResourcePath;
use crate::relay::{Exposure, RelayOptions};
use crate::store::Store;

/// Everything the handlers share.
#[derive(Debug)]
pub struct AppState {
    /// Durable facts.
    pub store: Store,
    /// Bearer tokens and device credentials, in memory.
    pub auth: Auth,
    /// The connected and remembered devices.
    pub devices: Arc<Devices>,
    /// Durable operations.
    pub operations: Operations,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Where this relay is to be found.
    pub site: Site,
    /// What it presents itself as.
    pub identity: Identity,
    /// Largest request body, in bytes.
    pub body_max: usize,
    /// How long a client without tasks waits for a call before it gets a handle; zero: until the end.
    pub patience: std::time::Duration,
    /// Tools beside the core catalogue.
    pub extra_tools: Vec<crate::mcp::ExtraTool>,
    /// Cancelled when the relay begins to stop; open listeners end then.
    pub stop: tokio_util::sync::CancellationToken,
    pub(crate) people: crate::people::People,
    pub(crate) oauth: crate::oauth::OAuth,
    pub(crate) enrolment: crate::enroll::Enrolment,
    pub(crate) counters: crate::http::metrics::Counters,
}

/// The origins under which this relay answers.
#[derive(Debug, Clone)]
pub struct Site {
    /// What it names itself by. The first is the one to use where no request tells; the others are aliases of a loopback relay.
    origins: Vec<Arc<str>>,
    /// Hosts it answers to besides: loopback names, which no foreign page can take over.
    loopback: Vec<Arc<str>>,
    /// Clients are on this computer, as far as we know.
    local: bool,
    allowed_origins: Vec<String>,
    proxies: Option<Vec<IpNet>>,
}

impl Site {
    /// The public URL's origin if there is one; else the bound address, which on loopback also goes by 127.0.0.1,
    /// localhost and [::1] on its port.
    pub(crate) fn new(options: &RelayOptions, addr: SocketAddr) -> Site {
        let scheme = if options.exposure.is_tls() { "https" } else { "http" };
        let origin = |host: &str| match Url::parse(&format!("{scheme}://{host}:{}", addr.port())) {
            Ok(url) => Arc::from(url.origin().ascii_serialization()),
            Err(_) => Arc::from(""),
        };
        let mut loopback = vec![origin("127.0.0.1"), origin("localhost"), origin("[::1]")];
        if addr.is_ipv6() {
            loopback.swap(0, 2);
        }
        let origins = match &options.public_url {
            Some(url) => vec![url.origin().ascii_serialization().into()],
            None if addr.ip().is_loopback() => std::mem::take(&mut loopback),
            None => vec![origin(SocketAddr::new(addr.ip(), 0).to_string().trim_end_matches(":0"))],
        };
        let proxies = match &options.exposure {
            Exposure::BehindProxy(proxies) => Some(proxies.clone()),
            _ => None,
        };
        let local = options.exposure == Exposure::Loopback && options.public_url.is_none();
        Site { origins, loopback, local, allowed_origins: options.allowed_origins.clone(), proxies }
    }

    /// Whether a request with this Host is meant for us.
    pub(crate) fn knows_host(&self, host: &str) -> bool {
        self.origins.iter().chain(&self.loopback).any(|origin| is_host_of(host, origin))
    }

    /// The origin to name ourselves by in the answer to a request with this Host.
    pub fn origin_for(&self, host: &str) -> Arc<str> {
        let named = self.origins.iter().find(|origin| is_host_of(host, origin)).or(self.origins.first());
        named.map_or_else(|| Arc::from(""), Arc::clone)
    }

    /// Whether a browser page of this origin may talk to us: our own pages, and those the configuration names.
    pub fn allows_origin(&self, origin: &str) -> bool {
        self.is_own_origin(origin) || self.allowed_origins.iter().any(|allowed| allowed == origin)
    }

    /// Whether this is one of our own origins.
    pub fn is_own_origin(&self, origin: &str) -> bool {
        self.origins.iter().chain(&self.loopback).any(|own| **own == *origin)
    }

    /// The origin we name ourselves by where no request tells one; no slash at its end.
    pub fn origin(&self) -> &str {
        self.origins.first().map_or("", |origin| origin)
    }

    /// The URL of the MCP endpoint.
    pub fn mcp_url(&self) -> String {
        format!("{}/mcp", self.origin())
    }

    /// Whether this relay is only for this computer: there may be told what a stranger must not know, such as the only account's name.
    pub(crate) fn is_local(&self) -> bool {
        self.local
    }

    /// Whether clients reach us by TLS; decides the cookie's `Secure`.
    pub fn is_https(&self) -> bool {
        self.origin().starts_with("https:")
    }

    /// Reads an OAuth `resource`: one of the origins we name ourselves by with an MCP path, nothing else.
    pub fn resource(&self, text: &str) -> Option<ResourcePath> {
        let url = Url::parse(text).ok()?;
        let plain = url.query().is_none() && url.fragment().is_none();
        let bare = url.username().is_empty() && url.password().is_none();
        let own = self.origins.iter().any(|own| **own == *url.origin().ascii_serialization());
        if plain && bare && own { ResourcePath::parse(url.path()) } else { None }
    }

    /// The proxies whose word on the source is believed; `None` when not behind one.
    pub(crate) fn proxies(&self) -> Option<&[IpNet]> {
        self.proxies.as_deref()
    }
}

/// Whether a Host header names this origin; the scheme's own port may be left out or written.
fn is_host_of(host: &str, origin: &str) -> bool {
    let http = origin.strip_prefix("http://").map(|authority| (authority, ":80"));
    let named = http.or_else(|| origin.strip_prefix("https://").map(|authority| (authority, ":443")));
    let Some((authority, own_port)) = named else { return false };
    let bare = host.strip_suffix(own_port).unwrap_or(host);
    authority.eq_ignore_ascii_case(host) || authority.eq_ignore_ascii_case(bare)
}
