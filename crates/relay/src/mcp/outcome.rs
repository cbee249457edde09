//! The end of a call as a tool result, laid out as the base version does it: raw payloads are spliced in, never rebuilt.

use holdfast_core::code::ToolError;
use holdfast_core::limits;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Era;
use super::envelope::{RpcId, is_object, present};

/// How a call ended.
pub(super) type Outcome = Result<Box<RawValue>, ToolError>;

/// Writes the whole JSON-RPC answer.
pub(super) fn answer(id: &RpcId, outcome: &Outcome, era: Era) -> Vec<u8> {
    let size = outcome.as_ref().map_or(0, |raw| raw.get().len());
    let mut out = Vec::with_capacity(size * 2 + 512);
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    write_json(&mut out, id);
    out.extend_from_slice(br#","result":"#);
    write_result(&mut out, outcome, era);
    out.push(b'}');
    out
}

/// The result alone. `None` only if it were no JSON, which no outcome is.
pub(super) fn result(outcome: &Outcome, era: Era) -> Option<Box<RawValue>> {
    let mut out = Vec::new();
    write_result(&mut out, outcome, era);
    RawValue::from_string(String::from_utf8(out).ok()?).ok()
}

/// Writes a whole JSON-RPC answer with any result.
pub(super) fn message(id: &RpcId, result: &impl Serialize) -> Vec<u8> {
    let mut out = br#"{"jsonrpc":"2.0","id":"#.to_vec();
    write_json(&mut out, id);
    out.extend_from_slice(br#","result":"#);
    write_json(&mut out, result);
    out.push(b'}');
    out
}

fn write_result(out: &mut Vec<u8>, outcome: &Outcome, era: Era) {
    out.push(b'{');
    if era == Era::Stateless {
        out.extend_from_slice(br#""resultType":"complete","#);
    }
    match outcome {
        Ok(raw) => write_success(out, raw),
        Err(error) => write_failure(out, error),
    }
    out.push(b'}');
}

fn write_json(out: &mut Vec<u8>, value: &impl Serialize) {
    // Writing to a Vec cannot fail, and the values written here always serialise.
    let _ = serde_json::to_writer(out, value);
}

/// What a tool sends to fill content by itself: `{"$mcp": {content, isError?, structuredContent?}}`.
#[derive(Deserialize)]
struct Wrapped<'a> {
    #[serde(rename = "$mcp", borrow)]
    mcp: Mcp<'a>,
}

#[derive(Deserialize)]
struct Mcp<'a> {
    #[serde(borrow)]
    content: &'a RawValue,
    #[serde(default, rename = "isError")]
    is_error: Option<bool>,
    #[serde(default, borrow, rename = "structuredContent", deserialize_with = "present")]
    structured: Option<&'a RawValue>,
}

fn wrapped(raw: &RawValue) -> Option<Mcp<'_>> {
    // A search for the literal key is far cheaper than reading every object.
    if !is_object(raw) || !raw.get().contains("\"$mcp\"") {
        return None;
    }
    let mcp = serde_json::from_str::<Wrapped<'_>>(raw.get()).ok()?.mcp;
    mcp.content.get().starts_with('[').then_some(mcp)
}

fn write_success(out: &mut Vec<u8>, raw: &RawValue) {
    if let Some(mcp) = wrapped(raw) {
        out.extend_from_slice(br#""content":"#);
        out.extend_from_slice(mcp.content.get().as_bytes());
        if let Some(structured) = mcp.structured.filter(|raw| is_object(raw)) {
            out.extend_from_slice(br#","structuredContent":"#);
            out.extend_from_slice(structured.get().as_bytes());
        }
        out.extend_from_slice(br#","isError":"#);
        write_json(out, &mcp.is_error.unwrap_or(false));
        return;
    }
    let text = raw.get();
    out.extend_from_slice(br#""content":[{"type":"text","text":"#);
    if text.starts_with('"') {
        out.extend_from_slice(text.as_bytes());
    } else if is_object(raw) && text.len() > limits::STRUCTURED_TEXT_MAX {
        write_json(out, &format!("A structured result of {} bytes; see structuredContent.", text.len()));
    } else {
        write_pretty_as_text(out, text);
    }
    out.extend_from_slice(b"}]");
    if is_object(raw) {
        out.extend_from_slice(br#","structuredContent":"#);
        out.extend_from_slice(text.as_bytes());
    }
    out.extend_from_slice(br#","isError":false"#);
}

fn write_failure(out: &mut Vec<u8>, error: &ToolError) {
    #[derive(Serialize)]
    struct Structured<'a> {
        error: &'a ToolError,
    }
    let structured = serde_json::to_string(&Structured { error }).unwrap_or_default();
    out.extend_from_slice(br#""content":[{"type":"text","text":"#);
    write_json(out, &structured);
    out.extend_from_slice(br#"}],"structuredContent":"#);
    out.extend_from_slice(structured.as_bytes());
    out.extend_from_slice(br#","isError":true"#);
}

/// Writes valid JSON, indented by two spaces, as the content of a JSON text. Works on tokens, so that numbers and
/// escapes stay as they were.
fn write_pretty_as_text(out: &mut Vec<u8>, json: &str) {
    fn break_line(out: &mut Vec<u8>, depth: usize) {
        out.extend_from_slice(b"\\n");
        out.resize(out.len() + depth * 2, b' ');
    }
    out.push(b'"');
    let mut depth = 0usize;
    let mut in_text = false;
    let mut escaped = false;
    let mut just_opened = false;
    for &byte in json.as_bytes() {
        if in_text {
            match byte {
                b'\\' => out.extend_from_slice(b"\\\\"),
                b'"' => out.extend_from_slice(b"\\\""),
                // The frame's JSON has no raw control characters inside a text.
                _ => out.push(byte),
            }
            in_text = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
            continue;
        }
        if byte.is_ascii_whitespace() {
            continue;
        }
        let closes = matches!(byte, b'}' | b']');
        if closes {
            depth = depth.saturating_sub(1);
        }
        if just_opened != closes && (just_opened || closes) {
            break_line(out, depth);
        }
        just_opened = matches!(byte, b'{' | b'[');
        match byte {
            b'"' => {
                out.extend_from_slice(b"\\\"");
                in_text = true;
            }
            b':' => out.extend_from_slice(b": "),
            b',' => {
                out.push(b',');
                break_line(out, depth);
            }
            _ => out.push(byte),
        }
        if just_opened {
            depth += 1;
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_core::code::Code;
    use serde_json::{Value, json};

    fn done(raw: &str) -> String {
        let outcome = Ok(RawValue::from_string(raw.into()).unwrap());
        let text = String::from_utf8(answer(&RpcId::Number(1), &outcome, Era::Sessions)).unwrap();
        let prefix = r#"{"jsonrpc":"2.0","id":1,"result":"#;
        text.strip_prefix(prefix).and_then(|rest| rest.strip_suffix('}')).unwrap().to_owned()
    }

    #[test]
    fn a_text_becomes_one_text_item_byte_for_byte() {
        assert_eq!(done(r#""h\u00e9 \/ 1""#), r#"{"content":[{"type":"text","text":"h\u00e9 \/ 1"}],"isError":false}"#);
    }

    #[test]
    fn a_structured_value_is_passed_on_byte_for_byte_beside_its_pretty_text() {
        let raw = r#"{"z":1.10,"a":[1e2, {}],"big":18446744073709551617,"s":"q\"\\ é","e":[]}"#;
        let result = done(raw);
        assert!(result.contains(&format!(r#""structuredContent":{raw},"#)));
        let text = serde_json::from_str::<Value>(&result).unwrap()["content"][0]["text"].as_str().unwrap().to_owned();
        assert_eq!(
            text,
            "{\n  \"z\": 1.10,\n  \"a\": [\n    1e2,\n    {}\n  ],\n  \"big\": 18446744073709551617,\n  \"s\": \"q\\\"\\\\ é\",\n  \"e\": []\n}"
        );
    }

    #[test]
    fn the_pretty_text_is_what_serde_would_have_written() {
        for value in [
            json!({"a": {"b": [[], {}, [1, 2], null, true, "x\ny\\\"", {"c": []}]}, "d": ""}),
            json!([1, [2, [3]]]),
            json!(17),
            json!(null),
        ] {
            let result = done(&value.to_string());
            let text = serde_json::from_str::<Value>(&result).unwrap()["content"][0]["text"].clone();
            assert_eq!(text, json!(serde_json::to_string_pretty(&value).unwrap()));
        }
    }

    #[test]
    fn only_an_object_is_structured_content() {
        assert_eq!(done("[1]"), r#"{"content":[{"type":"text","text":"[\n  1\n]"}],"isError":false}"#);
        assert_eq!(done("null"), r#"{"content":[{"type":"text","text":"null"}],"isError":false}"#);
    }

    #[test]
    fn a_tool_may_fill_the_content_by_itself() {
        let raw = r#"{"$mcp":{"content":[{"type":"weird","x":1}],"isError":true,"structuredContent":{"n":1e2}}}"#;
        assert_eq!(done(raw), r#"{"content":[{"type":"weird","x":1}],"structuredContent":{"n":1e2},"isError":true}"#);
        let without_array = r#"{"$mcp":{"content":"no"}}"#;
        assert!(done(without_array).contains(&format!(r#""structuredContent":{without_array}"#)));
    }

    #[test]
    fn a_large_structured_result_is_not_repeated_as_text() {
        let raw = format!(r#"{{"a":"{}"}}"#, "x".repeat(limits::STRUCTURED_TEXT_MAX));
        let result = done(&raw);
        assert!(result.len() < raw.len() + 300);
        assert!(result.contains(&format!("A structured result of {} bytes", raw.len())));
    }

    #[test]
    fn a_failure_is_a_result_whose_text_is_its_structured_error() {
        let error = ToolError::nothing_done(Code::Unavailable, "the device is away").with_details(&json!({"n": 1}));
        let body = answer(&RpcId::Text("a".into()), &Err(error), Era::Stateless);
        let value: Value = serde_json::from_slice(&body).unwrap();
        let structured = json!({"error": {"code": "unavailable", "message": "the device is away", "retryable": true,
            "details": {"n": 1}}});
        assert_eq!(value["result"]["resultType"], "complete");
        assert_eq!(value["result"]["isError"], true);
        assert_eq!(value["result"]["structuredContent"], structured);
        let text = value["result"]["content"][0]["text"].as_str().unwrap();
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), structured);
    }
}
