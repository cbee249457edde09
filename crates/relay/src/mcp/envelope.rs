//! The JSON-RPC envelope of one request, read without touching what it carries.
//!
//! `params` stay raw: a body full of small values costs one scan, never a tree.

use std::borrow::Cow;

use holdfast_core::limits;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::reply::RpcError;

/// The id of a request. Equal ids of different JSON types are different ids.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
pub(super) enum RpcId {
    /// An integer.
    Number(i64),
    /// A text of at most [`limits::RPC_ID_MAX`] bytes.
    Text(Box<str>),
}

/// One message from a client.
#[derive(Debug)]
pub(super) enum Message<'a> {
    /// Wants an answer.
    Request { id: RpcId, method: Cow<'a, str>, params: Option<&'a RawValue> },
    /// Wants none.
    Notification { method: Cow<'a, str>, params: Option<&'a RawValue> },
    /// An answer to something the relay asked; it asks nothing, so nothing waits for it.
    Response,
}

#[derive(Deserialize)]
struct Raw<'a> {
    #[serde(default, borrow, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// A field that is there, `null` included: serde would read `null` as absent.
pub(super) fn present<'de, D: Deserializer<'de>>(de: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(de).map(Some)
}

/// A raw value that must be a JSON text.
pub(super) fn text(raw: &RawValue) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    serde_json::from_str::<Text<'_>>(raw.get()).ok().map(|text| text.0)
}

/// Whether a raw value is a JSON object.
pub(super) fn is_object(raw: &RawValue) -> bool {
    raw.get().starts_with('{')
}

/// Reads one message. Fields of the envelope may stand there only once.
pub(super) fn read(body: &[u8]) -> Result<Message<'_>, RpcError> {
    let text_body = std::str::from_utf8(body).map_err(|_| RpcError::parse("the body is not UTF-8"))?;
    match text_body.trim_start().as_bytes().first() {
        Some(b'{') => {}
        Some(b'[') => return Err(RpcError::invalid_request("batches are not part of this protocol")),
        None => return Err(RpcError::parse("the body is empty")),
        _ => return Err(not_an_object(text_body)),
    }
    let raw: Raw<'_> = serde_json::from_str(text_body).map_err(|error| match error.classify() {
        serde_json::error::Category::Data => RpcError::invalid_request("a field of the envelope is repeated"),
        _ => RpcError::parse("the body is not JSON"),
    })?;
    if raw.jsonrpc.and_then(text).as_deref() != Some("2.0") {
        return Err(RpcError::invalid_request("jsonrpc must be \"2.0\""));
    }
    let id = raw.id.map(rpc_id).transpose()?;
    let Some(method) = raw.method else {
        return match (id, raw.result.is_some() ^ raw.error.is_some()) {
            (Some(_), true) => Ok(Message::Response),
            _ => Err(RpcError::invalid_request("neither a request nor a response")),
        };
    };
    let method = text(method)
        .filter(|method| !method.trim().is_empty() && method.len() <= limits::RPC_METHOD_MAX)
        .ok_or_else(|| RpcError::invalid_request("method must be a text of at most 256 bytes"))?;
    if raw.params.is_some_and(|params| !is_object(params)) {
        return Err(RpcError::invalid_request("params must be an object"));
    }
    Ok(match id {
        Some(id) => Message::Request { id, method, params: raw.params },
        None => Message::Notification { method, params: raw.params },
    })
}

/// A scalar is JSON but no message; anything else is not JSON.
fn not_an_object(body: &str) -> RpcError {
    match serde_json::from_str::<serde::de::IgnoredAny>(body) {
        Ok(_) => RpcError::invalid_request("a message must be an object"),
        Err(_) => RpcError::parse("the body is not JSON"),
    }
}

/// Reads an id: an integer, or a text within [`limits::RPC_ID_MAX`].
pub(super) fn rpc_id(raw: &RawValue) -> Result<RpcId, RpcError> {
    if let Ok(number) = serde_json::from_str::<i64>(raw.get()) {
        return Ok(RpcId::Number(number));
    }
    match text(raw) {
        Some(id) if id.len() <= limits::RPC_ID_MAX => Ok(RpcId::Text(id.into())),
        Some(_) => Err(RpcError::invalid_request("id is too long")),
        None => Err(RpcError::invalid_request("id must be a text or an integer")),
    }
}

/// What the front itself needs of `params`.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Params<'a> {
    /// The tool of `tools/call`.
    #[serde(default, borrow, deserialize_with = "present")]
    pub name: Option<&'a RawValue>,
    /// Its arguments.
    #[serde(default, borrow, deserialize_with = "present")]
    pub arguments: Option<&'a RawValue>,
    /// The task of `tasks/get` and its like.
    #[serde(default, borrow, rename = "taskId", deserialize_with = "present")]
    pub task_id: Option<&'a RawValue>,
    /// What a session's client says of itself in `initialize`.
    #[serde(default, borrow, rename = "clientInfo", deserialize_with = "present")]
    pub client_info: Option<&'a RawValue>,
    /// The request that `notifications/cancelled` means.
    #[serde(default, borrow, rename = "requestId", deserialize_with = "present")]
    pub request_id: Option<&'a RawValue>,
    /// Read by [`params`]; see [`Meta`].
    #[serde(default, borrow, rename = "_meta", deserialize_with = "present")]
    pub meta: Option<&'a RawValue>,
}

/// What the front itself needs of `params._meta`.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Meta<'a> {
    /// Revision of a self-contained request.
    #[serde(default, borrow, rename = "io.modelcontextprotocol/protocolVersion", deserialize_with = "present")]
    pub protocol_version: Option<&'a RawValue>,
    /// What the client can do, in a self-contained request.
    #[serde(default, borrow, rename = "io.modelcontextprotocol/clientCapabilities", deserialize_with = "present")]
    pub client_capabilities: Option<&'a RawValue>,
    /// What the client says of itself, in a self-contained request.
    #[serde(default, borrow, rename = "io.modelcontextprotocol/clientInfo", deserialize_with = "present")]
    pub client_info: Option<&'a RawValue>,
    /// Asks for progress notifications.
    #[serde(default, borrow, rename = "progressToken", deserialize_with = "present")]
    pub progress_token: Option<&'a RawValue>,
    /// Makes a retry the same call.
    #[serde(default, borrow, rename = "holdfast/idempotency-key", deserialize_with = "present")]
    pub idempotency_key: Option<&'a RawValue>,
}

/// Reads `params` and its `_meta`; absent ones are empty.
pub(super) fn params(raw: Option<&RawValue>) -> Result<(Params<'_>, Meta<'_>), RpcError> {
    let Some(raw) = raw else { return Ok(Default::default()) };
    let params: Params<'_> =
        serde_json::from_str(raw.get()).map_err(|_| RpcError::invalid_params("a field of params is repeated"))?;
    let meta = match params.meta {
        None => Meta::default(),
        Some(meta) if is_object(meta) => serde_json::from_str(meta.get())
            .map_err(|_| RpcError::invalid_params("a field of params._meta is repeated"))?,
        Some(_) => return Err(RpcError::invalid_params("params._meta must be an object")),
    };
    Ok((params, meta))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(body: &str) -> (i32, String) {
        match read(body.as_bytes()) {
            Err(error) => (error.code, error.message.to_string()),
            Ok(message) => panic!("accepted: {message:?}"),
        }
    }

    #[test]
    fn a_request_a_notification_and_a_response_are_told_apart() {
        let body = br#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"x"}}"#;
        let Ok(Message::Request { id, method, params }) = read(body) else { panic!("not a request") };
        assert_eq!(id, RpcId::Text("a".into()));
        assert_eq!(method, "tools/call");
        assert_eq!(params.map(RawValue::get), Some(r#"{"name":"x"}"#));
        assert!(matches!(read(br#"{"jsonrpc":"2.0","method":"m"}"#), Ok(Message::Notification { .. })));
        assert!(matches!(read(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#), Ok(Message::Response)));
        assert!(matches!(read(br#"{"jsonrpc":"2.0","id":1,"error":{}}"#), Ok(Message::Response)));
    }

    #[test]
    fn what_is_not_json_is_a_parse_error_and_what_is_no_message_an_invalid_request() {
        for body in ["", "{", "nonsense", "{\"jsonrpc\":\"2.0\",}", "{} {}"] {
            assert_eq!(refused(body).0, -32700, "{body}");
        }
        assert_eq!(read(b"{\"jsonrpc\":\"2.0\",\"method\":\"\xff\"}").map(|_| ()).map_err(|e| e.code), Err(-32700));
        for body in [
            "[]",
            "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]",
            "17",
            "\"text\"",
            "null",
            "{}",
            r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
            r#"{"id":1,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":9223372036854775808,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"  "}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":7}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":null}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#,
        ] {
            assert_eq!(refused(body).0, -32600, "{body}");
        }
        let long = format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"ping"}}"#, "i".repeat(limits::RPC_ID_MAX + 1));
        assert_eq!(refused(&long), (-32600, "id is too long".into()));
    }

    #[test]
    fn a_number_and_the_same_text_are_different_ids() {
        let id = |raw: &str| rpc_id(&RawValue::from_string(raw.into()).unwrap()).unwrap();
        assert_ne!(id("1"), id("\"1\""));
        assert_eq!(id("\"\\u0031\""), id("\"1\""));
        assert_eq!(serde_json::to_string(&id("-7")).unwrap(), "-7");
    }

    #[test]
    fn a_repeated_field_of_params_is_refused() {
        let raw = RawValue::from_string(r#"{"name":"a","name":"b"}"#.into()).unwrap();
        assert_eq!(params(Some(&raw)).map(|_| ()).map_err(|e| e.code), Err(-32602));
        let raw = RawValue::from_string(r#"{"_meta":{"progressToken":1,"progressToken":2}}"#.into()).unwrap();
        assert_eq!(params(Some(&raw)).map(|_| ()).map_err(|e| e.code), Err(-32602));
    }
}
