//! HTTP requests to a relay: proxies from the environment, the system's certificate authorities and those of `ca_file`.

use std::path::Path;

use holdfast_core::limits;
use reqwest::{Certificate, Client, ClientBuilder};
use url::Url;

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The file of certificate authorities.
    #[error("ca_file: {0}")]
    CaFile(std::io::Error),
    /// TLS, or the certificates in the file.
    #[error("TLS: {0}")]
    Tls(#[from] reqwest::Error),
    /// The process is ending.
    #[error("interrupted")]
    Interrupted,
}

/// A client for requests to a relay. Follows no redirect: what is sent may hold a credential.
pub async fn to_relay(ca_file: Option<&Path>) -> Result<Client, ClientError> {
    let ca_file = ca_file.map(Path::to_path_buf);
    // Certificates are read from disk.
    let made = tokio::task::spawn_blocking(move || make(ca_file.as_deref())).await;
    made.map_err(|_| ClientError::Interrupted)?
}

/// The same at once; with a file it blocks for a moment.
pub fn make(ca_file: Option<&Path>) -> Result<Client, ClientError> {
    Ok(builder(ca_file)?.build()?)
}

/// The same before it is built.
pub fn builder(ca_file: Option<&Path>) -> Result<ClientBuilder, ClientError> {
    let Some(path) = ca_file else { return Ok(bare()) };
    let pem = std::fs::read(path).map_err(ClientError::CaFile)?;
    Ok(bare().tls_certs_merge(Certificate::from_pem_bundle(&pem)?))
}

/// What every client has: it follows no redirect, and a connection opens in time or not at all.
pub fn bare() -> ClientBuilder {
    Client::builder().redirect(reqwest::redirect::Policy::none()).connect_timeout(limits::DIAL_TIMEOUT)
}

/// Whether a secret may travel to an address: by https, or by http to this machine.
pub fn may_carry_secrets(url: &Url) -> bool {
    url.scheme() == "https" || url.scheme() == "http" && is_this_machine(url)
}

/// Whether an address names this machine.
pub fn is_this_machine(url: &Url) -> bool {
    url.host_str().is_some_and(|h| matches!(h, "localhost" | "127.0.0.1" | "[::1]"))
}

/// The innermost reason, which names what went wrong and no address.
pub fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
