//! Which revision a request speaks, and the header rules of each.

use base64::Engine as _;
use http::HeaderMap;
use serde_json::json;

use super::Era;
use super::envelope::{Meta, is_object, text};
use super::reply::RpcError;

/// The self-contained revision.
pub(super) const STATELESS: &str = "2026-07-28";
/// Revisions with `initialize`, newest first. All run over the same session path.
pub(super) const WITH_SESSIONS: [&str; 2] = ["2025-11-25", "2025-06-18"];

/// Every revision, for an error that lists them.
fn supported() -> serde_json::Value {
    json!([STATELESS, WITH_SESSIONS[0], WITH_SESSIONS[1]])
}

fn unsupported(requested: &str) -> RpcError {
    let requested: String = requested.chars().take(64).collect();
    RpcError::unsupported_version("this server does not speak that protocol version")
        .with("supported", supported())
        .with("requested", requested)
}

/// The one value of a header. Repeated or unreadable ones are refused: an intermediary might read the other value.
pub(super) fn single<'a>(headers: &'a HeaderMap, name: &'static str) -> Result<Option<&'a str>, RpcError> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    match (values.next(), value.to_str()) {
        (None, Ok(text)) => Ok(Some(text.trim())),
        (Some(_), _) => Err(RpcError::header_mismatch(format!("{name} stands more than once"))),
        (_, Err(_)) => Err(RpcError::header_mismatch(format!("{name} is not text"))),
    }
}

/// The revision named by the header, known or not.
pub(super) fn header(headers: &HeaderMap) -> Result<Option<&str>, RpcError> {
    single(headers, "mcp-protocol-version")
}

/// Which way a request (not `initialize`) goes. One that names its revision in `_meta` stands for itself.
pub(super) fn era(headers: &HeaderMap, meta: &Meta<'_>) -> Result<Era, RpcError> {
    match header(headers)? {
        _ if meta.protocol_version.is_some() => Ok(Era::Stateless),
        None => Ok(Era::Sessions),
        Some(STATELESS) => Ok(Era::Stateless),
        Some(version) if WITH_SESSIONS.contains(&version) => Ok(Era::Sessions),
        Some(version) => Err(unsupported(version)),
    }
}

/// What a self-contained request must say about itself (2026-07-28): headers that repeat the body, and its `_meta`.
/// `name` is what `Mcp-Name` repeats.
pub(super) fn check(headers: &HeaderMap, meta: &Meta<'_>, method: &str, name: Option<&str>) -> Result<(), RpcError> {
    let version = header(headers)?;
    repeats(headers, "mcp-method", method)?;
    if let Some(name) = name {
        repeats(headers, "mcp-name", name)?;
    }
    let stated = meta.protocol_version.and_then(text);
    match (version, &stated) {
        (_, None) => return Err(missing("io.modelcontextprotocol/protocolVersion")),
        (None, Some(_)) => return Err(RpcError::header_mismatch("MCP-Protocol-Version is missing")),
        (Some(header), Some(stated)) if header != stated => {
            return Err(RpcError::header_mismatch("MCP-Protocol-Version does not match _meta"));
        }
        (Some(header), Some(_)) if header != STATELESS && !WITH_SESSIONS.contains(&header) => {
            return Err(unsupported(header));
        }
        _ => {}
    }
    match meta.client_capabilities {
        Some(capabilities) if is_object(capabilities) => Ok(()),
        _ => Err(missing("io.modelcontextprotocol/clientCapabilities")),
    }
}

fn missing(key: &str) -> RpcError {
    RpcError::invalid_params(format!("params._meta lacks {key}, or it is malformed")).malformed()
}

/// A header that must say what the body says, plainly or as `=?base64?…?=`.
fn repeats(headers: &HeaderMap, name: &'static str, body: &str) -> Result<(), RpcError> {
    let value = single(headers, name)?.ok_or_else(|| RpcError::header_mismatch(format!("{name} is missing")))?;
    let encoded = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
    let same = match encoded {
        None => value == body,
        Some(encoded) => {
            base64::engine::general_purpose::STANDARD.decode(encoded).is_ok_and(|bytes| bytes == body.as_bytes())
        }
    };
    if same { Ok(()) } else { Err(RpcError::header_mismatch(format!("{name} does not match the body"))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::envelope;
    use serde_json::value::RawValue;

    const GOOD: &str = r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",
        "io.modelcontextprotocol/clientCapabilities":{}}}"#;

    fn run(params: &str, headers: &[(&'static str, &str)]) -> Result<Era, (i32, u16)> {
        let raw = RawValue::from_string(params.into()).unwrap();
        let (_, meta) = envelope::params(Some(&raw)).unwrap();
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        let fail = |error: RpcError| (error.code, error.status.as_u16());
        let era = era(&map, &meta).map_err(fail)?;
        if era == Era::Stateless {
            check(&map, &meta, "tools/call", Some("list_dir")).map_err(fail)?;
        }
        Ok(era)
    }

    #[test]
    fn a_request_goes_the_way_its_body_or_header_names() {
        assert_eq!(run("{}", &[]), Ok(Era::Sessions));
        assert_eq!(run("{}", &[("mcp-protocol-version", "2025-11-25")]), Ok(Era::Sessions));
        assert_eq!(run("{}", &[("mcp-protocol-version", "1999-01-01")]), Err((-32022, 400)));
        let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "list_dir")];
        assert_eq!(run(GOOD, &headers), Ok(Era::Stateless));
        let encoded = [headers[0], headers[1], ("mcp-name", "=?base64?bGlzdF9kaXI=?=")];
        assert_eq!(run(GOOD, &encoded), Ok(Era::Stateless));
    }

    #[test]
    fn a_header_that_contradicts_the_body_is_a_mismatch() {
        let version = ("mcp-protocol-version", "2026-07-28");
        let method = ("mcp-method", "tools/call");
        let name = ("mcp-name", "list_dir");
        for headers in [
            &[method, name][..],
            &[version, name],
            &[version, method],
            &[("mcp-protocol-version", "2025-11-25"), method, name],
            &[version, ("mcp-method", "tools/list"), name],
            &[version, method, ("mcp-name", "read_file")],
            &[version, method, ("mcp-name", "=?base64?%%%?=")],
            &[version, method, name, name],
            &[version, version, method, name],
        ] {
            assert_eq!(run(GOOD, headers), Err((-32020, 400)), "{headers:?}");
        }
    }

    #[test]
    fn a_self_contained_request_says_what_its_client_can_do_and_which_revision_it_speaks() {
        let headers =
            |version| [("mcp-protocol-version", version), ("mcp-method", "tools/call"), ("mcp-name", "list_dir")];
        let without = r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#;
        assert_eq!(run(without, &headers("2026-07-28")), Err((-32602, 400)));
        assert_eq!(run("{}", &headers("2026-07-28")), Err((-32602, 400)));
        let future = GOOD.replace("2026-07-28", "2099-01-01");
        assert_eq!(run(&future, &headers("2099-01-01")), Err((-32022, 400)));
    }
}
