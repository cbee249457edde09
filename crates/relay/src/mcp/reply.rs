//! Answers as bytes: JSON-RPC results and errors, and the HTTP responses that carry them.

use std::borrow::Cow;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use holdfast_core::code::Code;
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;

use super::envelope::RpcId;

/// A JSON-RPC error: the protocol's number, and in `data.code` our stable code.
#[derive(Debug, Clone)]
pub(super) struct RpcError {
    pub code: i32,
    pub stable: Code,
    pub message: Cow<'static, str>,
    /// Members of `data` beside `code`.
    pub data: serde_json::Map<String, serde_json::Value>,
    /// The HTTP status; inside a 2025-11-25 session and for 2026-07-28 alike, errors of one valid request are 200.
    pub status: StatusCode,
}

macro_rules! rpc_errors {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $stable:ident, $status:ident;)+) => {
        impl RpcError {
            $($(#[$doc])* pub fn $name(message: impl Into<Cow<'static, str>>) -> Self {
                RpcError {
                    code: $number,
                    stable: Code::$stable,
                    message: message.into(),
                    data: serde_json::Map::new(),
                    status: StatusCode::$status,
                }
            })+
        }
    };
}

rpc_errors! {
    /// The body is not JSON.
    parse = -32700, InvalidRequest, BAD_REQUEST;
    /// JSON, but no valid message.
    invalid_request = -32600, InvalidRequest, BAD_REQUEST;
    /// A valid request with senseless parameters.
    invalid_params = -32602, InvalidRequest, OK;
    /// A header contradicts the body (2026-07-28).
    header_mismatch = -32020, InvalidRequest, BAD_REQUEST;
    /// The request needs an extension that it does not declare.
    missing_capability = -32021, InvalidRequest, BAD_REQUEST;
    /// A revision this server does not speak.
    unsupported_version = -32022, InvalidRequest, BAD_REQUEST;
    /// No such session, or not the caller's.
    no_session = -32001, NotFound, NOT_FOUND;
    /// The event stream cannot be resumed.
    no_stream = -32001, NotFound, BAD_REQUEST;
    /// The same id is in flight with other content.
    conflict = -32600, Conflict, OK;
    /// A bound was reached.
    busy = -32000, Busy, SERVICE_UNAVAILABLE;
    /// The body is too long.
    too_large = -32600, LimitExceeded, PAYLOAD_TOO_LARGE;
    /// A defect of ours.
    internal = -32603, InternalError, OK;
}

impl RpcError {
    /// The same error as a malformed request (HTTP 400).
    pub fn malformed(mut self) -> Self {
        self.status = StatusCode::BAD_REQUEST;
        self
    }

    /// Adds a member of `data`.
    pub fn with(mut self, key: &str, value: impl Into<serde_json::Value>) -> Self {
        self.data.insert(key.into(), value.into());
        self
    }

    /// The whole JSON-RPC message.
    pub fn to_body(&self, id: Option<&RpcId>) -> Vec<u8> {
        #[derive(Serialize)]
        struct Out<'a> {
            jsonrpc: &'static str,
            id: Option<&'a RpcId>,
            error: OutError<'a>,
        }
        #[derive(Serialize)]
        struct OutError<'a> {
            code: i32,
            message: &'a str,
            data: OutData<'a>,
        }
        #[derive(Serialize)]
        struct OutData<'a> {
            code: Code,
            #[serde(flatten)]
            more: &'a serde_json::Map<String, serde_json::Value>,
        }
        let data = OutData { code: self.stable, more: &self.data };
        let error = OutError { code: self.code, message: &self.message, data };
        // Only a failing Serialize or a map with keys that are no strings can fail here; there is neither.
        serde_json::to_vec(&Out { jsonrpc: "2.0", id, error }).unwrap_or_default()
    }

    /// The HTTP response.
    pub fn respond(&self, id: Option<&RpcId>) -> Response {
        json(self.status, self.to_body(id).into())
    }
}

/// A JSON document as an HTTP response.
pub(super) fn json(status: StatusCode, body: Bytes) -> Response {
    with_type(status, Body::from(body), "application/json")
}

/// An event stream: sent at once, cached by nobody, buffered by no proxy.
pub(super) fn event_stream(body: Body) -> Response {
    let mut response = with_type(StatusCode::OK, body, "text/event-stream");
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// Nothing to answer.
pub(super) fn accepted() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

pub(super) fn with_type(status: StatusCode, body: Body, content_type: &'static str) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// One server-sent event. `data` is JSON, so a line break in it is insignificant and becomes a space.
pub(super) fn event(id: Option<&str>, data: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(data.len() + 48);
    if let Some(id) = id {
        out.extend_from_slice(b"id: ");
        out.extend_from_slice(id.as_bytes());
        out.push(b'\n');
    }
    out.extend_from_slice(b"data: ");
    let start = out.len();
    out.extend_from_slice(data);
    for byte in &mut out[start..] {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    out.extend_from_slice(b"\n\n");
    out.into()
}

/// The comment that keeps a silent stream alive.
pub(super) const COMMENT: Bytes = Bytes::from_static(b":\n\n");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_carries_the_protocols_number_and_our_code() {
        let error = RpcError::unsupported_version("no such revision").with("requested", "1999-01-01");
        assert_eq!(
            String::from_utf8(error.to_body(Some(&RpcId::Number(3)))).unwrap(),
            r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32022,"message":"no such revision","data":{"code":"invalid_request","requested":"1999-01-01"}}}"#
        );
        assert!(String::from_utf8(error.to_body(None)).unwrap().starts_with(r#"{"jsonrpc":"2.0","id":null,"#));
    }

    #[test]
    fn an_event_is_one_line_of_data_whatever_white_space_the_json_has() {
        assert_eq!(event(Some("e-1/0"), b"{\r\n \"a\":1}"), "id: e-1/0\ndata: {   \"a\":1}\n\n");
        assert_eq!(event(None, b"1"), "data: 1\n\n");
    }
}
