//! Small MCP clients, one for each era, that show the wire as it is: status codes, raw texts, event ids.

mod answer;
mod modern;
mod session;
mod sse;

pub use answer::{Answer, Events, Lost};
pub use modern::{Modern, ModernRequest};
pub use session::Session;
pub use sse::{Event, SseReader};

/// An HTTP client that uses no proxy, follows no redirect and keeps connections for reuse.
///
/// # Panics
/// If TLS cannot be set up.
pub fn http() -> reqwest::Client {
    // The second caller of a process finds the first one's provider.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build().expect("an HTTP client")
}
