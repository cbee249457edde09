//! Redirect addresses: which may be registered, and which of a request is a registered one.

use url::{Host, Url};

use holdfast_core::limits;

/// Private-use schemes without a dot that known clients use. RFC 8252 wants reversed domain names, which are accepted by their dot.
const KNOWN_SCHEMES: [&str; 6] = ["cursor", "vscode", "vscode-insiders", "windsurf", "claude", "zed"];

/// Whether a client may register this address: https, http to this machine, or an app's own scheme.
pub(super) fn may_register(text: &str) -> bool {
    let Some(url) = read(text) else { return false };
    match url.scheme() {
        "https" => url.host().is_some(),
        "http" => is_loopback(&url),
        scheme => scheme.contains('.') || KNOWN_SCHEMES.contains(&scheme),
    }
}

fn read(text: &str) -> Option<Url> {
    if text.len() > limits::URI_MAX || !text.bytes().all(|b| b.is_ascii_graphic()) {
        return None;
    }
    let url = Url::parse(text).ok()?;
    let clean = url.fragment().is_none() && url.username().is_empty() && url.password().is_none();
    clean.then_some(url)
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

/// Whether a request's address is the registered one: the same text, or on this machine the same but for the port (RFC 8252 §7.3).
pub(super) fn matches(registered: &str, asked: &str) -> bool {
    if registered == asked {
        return true;
    }
    let (Some(mut a), Some(mut b)) = (read(registered), read(asked)) else { return false };
    if a.scheme() != "http" || b.scheme() != "http" || !is_loopback(&a) || !is_loopback(&b) {
        return false;
    }
    a.set_port(None).is_ok() && b.set_port(None).is_ok() && a == b
}

/// What a person is told of where the browser goes: the host, or the scheme of an app.
pub(super) fn host(uri: &str) -> String {
    match Url::parse(uri) {
        Ok(url) => match (url.host_str(), url.port()) {
            (Some(host), Some(port)) if matches!(url.scheme(), "http" | "https") => format!("{host}:{port}"),
            (Some(host), None) if matches!(url.scheme(), "http" | "https") => host.to_owned(),
            _ => format!("{}: (an app on this computer)", url.scheme()),
        },
        Err(_) => String::new(),
    }
}

/// What the page's policy must allow as the target after a form: the origin, or the scheme of an app.
pub(super) fn form_action(uri: &str) -> String {
    match Url::parse(uri) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => url.origin().ascii_serialization(),
        Ok(url) => format!("{}:", url.scheme()),
        Err(_) => String::new(),
    }
}

/// The address with the answer's parameters appended.
pub(super) fn with(uri: &str, parameters: &[(&str, &str)]) -> String {
    match Url::parse(uri) {
        Ok(mut url) => {
            url.query_pairs_mut().extend_pairs(parameters);
            url.into()
        }
        Err(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_that_cannot_leak_the_code_are_registered() {
        for good in [
            "https://claude.ai/api/mcp/auth_callback",
            "http://127.0.0.1:33418/callback",
            "http://localhost/cb",
            "http://[::1]:5/x",
            "com.example.app:/oauth",
            "cursor://anysphere.cursor-retrieval/oauth/callback",
        ] {
            assert!(may_register(good), "{good}");
        }
        for bad in [
            "http://example.com/cb",
            "http://localhost.evil.example/cb",
            "http://127.0.0.1@evil.example/cb",
            "https://user@example.com/",
            "https://example.com/#x",
            "javascript:alert(1)",
            "data:text/html,x",
            "file:///etc/passwd",
            "/cb",
            "",
            "https://ex ample.com",
            "https://example.com/\u{e9}",
        ] {
            assert!(!may_register(bad), "{bad}");
        }
        assert!(!may_register(&format!("https://example.com/{}", "a".repeat(1024))));
    }

    #[test]
    fn a_request_must_use_the_registered_address_but_for_the_port_on_this_machine() {
        assert!(matches("http://127.0.0.1:1/cb", "http://127.0.0.1:2/cb"));
        assert!(matches("http://127.0.0.1/cb", "http://127.0.0.1:2/cb"));
        for (registered, asked) in [
            ("http://127.0.0.1:1/cb", "http://localhost:1/cb"),
            ("http://127.0.0.1:1/cb", "http://127.0.0.1:1/cb2"),
            ("http://127.0.0.1:1/cb", "http://127.0.0.1:1/cb?x=1"),
            ("http://127.0.0.1:1/cb", "https://127.0.0.1:1/cb"),
            ("https://a.example/cb", "https://a.example:8443/cb"),
            ("https://a.example/cb", "https://a.example/cb/"),
            ("https://a.example/cb", "https://a.example.evil/cb"),
            ("https://a.example/cb", "https://a.example/cb#x"),
        ] {
            assert!(!matches(registered, asked), "{registered} {asked}");
        }
    }

    #[test]
    fn parameters_are_appended_escaped() {
        assert_eq!(with("https://a.example/cb?x=1", &[("state", "a&b=c")]), "https://a.example/cb?x=1&state=a%26b%3Dc");
    }
}
