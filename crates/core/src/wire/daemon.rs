//! Daemon → relay.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Features, LinkRange, Numbered, WireError, body, head, write};
use crate::code::ToolError;
use crate::id::{CallId, InstanceId, ProbeId};

/// A frame from the daemon.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum DaemonFrame {
    /// The first frame.
    Hello(Hello),
    /// Echo of the probe, after the executor proved that it works.
    RelayProbeResult(RelayProbeResult),
    /// The end of one call.
    ToolResult(ToolResult),
    /// Life.
    Heartbeat(Heartbeat),
    /// A synonym of heartbeat that the base relay accepts; never sent by us.
    Ping(Heartbeat),
    /// Feature `report`: what this instance knows of each resumed id.
    ResumeReport(ResumeReport),
    /// Feature `progress`.
    ToolProgress(ToolProgress),
    /// Feature `chunk`: a piece of a `tool_result`.
    ToolResultChunk(ToolResultChunk),
    /// Feature `suspend`: this machine is about to sleep.
    Suspending(Suspending),
}

/// `hello`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Hello {
    /// One process life.
    pub instance_id: InstanceId,
    /// Names of tools, without `server_info`. Not trusted: filtered by catalogue and policy.
    #[serde(default)]
    pub tools: Vec<String>,
    /// The device's policy. Not trusted: sanitised.
    #[serde(default)]
    pub policy: serde_json::Value,
    /// MCP revisions; `["2025-11-25"]` on the base wire.
    #[serde(default)]
    pub protocol_versions: Vec<String>,
    /// Ours: link versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkRange>,
    /// Ours: features of the intersection with `welcome`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features: Option<Features>,
    /// Ours: calls this daemon runs at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_calls: Option<u32>,
    /// Ours: version of the daemon's software, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// `relay_probe_result`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RelayProbeResult {
    /// The probe's.
    pub id: ProbeId,
}

/// `tool_result`: `ok: true` with `result`, or `ok: false` with `error`.
#[derive(Clone)]
pub struct ToolResult {
    /// The call.
    pub id: CallId,
    /// How it ended.
    pub outcome: Result<Box<RawValue>, ToolError>,
}

#[derive(Serialize)]
struct ToolResultOut<'a> {
    id: &'a CallId,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a ToolError>,
}

impl Serialize for ToolResult {
    fn serialize<S: serde::Serializer>(&self, ser: S) -> Result<S::Ok, S::Error> {
        ToolResultOut {
            id: &self.id,
            ok: self.outcome.is_ok(),
            result: self.outcome.as_ref().ok().map(|raw| &**raw),
            error: self.outcome.as_ref().err(),
        }
        .serialize(ser)
    }
}

impl<'de> Deserialize<'de> for ToolResult {
    fn deserialize<D: serde::Deserializer<'de>>(de: D) -> Result<Self, D::Error> {
        ToolResultIn::deserialize(de)?.check().ok_or_else(|| serde::de::Error::custom("ok and its payload disagree"))
    }
}

#[derive(Deserialize)]
struct ToolResultIn<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<std::borrow::Cow<'a, str>>,
    id: CallId,
    ok: bool,
    result: Option<Box<RawValue>>,
    error: Option<ToolError>,
}

impl ToolResultIn<'_> {
    fn check(self) -> Option<ToolResult> {
        let outcome = match (self.ok, self.result, self.error) {
            (true, Some(result), None) => Ok(result),
            // serde reads `"result": null` as absent; null is a result like any other.
            (true, None, None) => Ok(null()),
            (false, None, Some(error)) => Err(error),
            _ => return None,
        };
        Some(ToolResult { id: self.id, outcome })
    }
}

impl ToolResult {
    /// Reads a frame that can only be a `tool_result`, in one pass: what the chunks of a big result add up to.
    pub fn decode(text: &str) -> Result<ToolResult, WireError> {
        let read: ToolResultIn<'_> = body(text, "tool_result")?;
        let named = read.kind.as_deref() == Some("tool_result");
        read.check().filter(|_| named).ok_or(WireError::Malformed("tool_result"))
    }
}

fn null() -> Box<RawValue> {
    RawValue::NULL.to_owned()
}

/// `heartbeat`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Heartbeat {
    /// The sender's clock in ms; echoed by `pong`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ts: Option<serde_json::Number>,
}

/// `resume_report`: the four lists together name exactly the ids of `resume_calls`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ResumeReport {
    /// Running now.
    pub running: Vec<CallId>,
    /// Finished; the result follows after `ready_ack`.
    pub done: Vec<CallId>,
    /// Seen, and no result will come.
    pub lost: Vec<CallId>,
    /// Never seen by this instance.
    pub unknown: Vec<CallId>,
}

/// `tool_progress`.
#[derive(Clone, Serialize, Deserialize)]
pub struct ToolProgress {
    /// The call.
    pub id: CallId,
    /// Grows.
    pub progress: f64,
    /// The end of `progress`, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    /// A line for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// `tool_result_chunk`: a piece of the text of the call's `tool_result` frame.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResultChunk {
    /// The call.
    pub id: CallId,
    /// Byte offset of this piece.
    pub offset: u64,
    /// Bytes of the whole.
    pub total: u64,
    /// SHA-256 of the whole, hex.
    pub sha256: String,
    /// The piece, base64.
    pub data: String,
}

/// `suspending`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Suspending {}

impl DaemonFrame {
    /// Reads one frame.
    pub fn decode(text: &str) -> Result<Numbered<DaemonFrame>, WireError> {
        let head = head(text)?;
        let frame = match &*head.kind {
            "hello" => DaemonFrame::Hello(body(text, "hello")?),
            "relay_probe_result" => DaemonFrame::RelayProbeResult(body(text, "relay_probe_result")?),
            "tool_result" => DaemonFrame::ToolResult(body(text, "tool_result")?),
            "heartbeat" => DaemonFrame::Heartbeat(body(text, "heartbeat")?),
            "ping" => DaemonFrame::Ping(body(text, "ping")?),
            "resume_report" => DaemonFrame::ResumeReport(body(text, "resume_report")?),
            "tool_progress" => DaemonFrame::ToolProgress(body(text, "tool_progress")?),
            "tool_result_chunk" => DaemonFrame::ToolResultChunk(body(text, "tool_result_chunk")?),
            "suspending" => DaemonFrame::Suspending(body(text, "suspending")?),
            _ => return Err(WireError::UnknownType),
        };
        Ok(Numbered { n: head.n, frame })
    }

    /// Writes one frame.
    pub fn encode(&self, n: Option<u64>) -> String {
        write(self, n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::Code;
    use crate::limits;
    use crate::wire::{RelayFrame, ToolCall};

    #[test]
    fn a_result_crosses_byte_identical() {
        let raw = r#"{"big":123456789012345678901234567890,"z":1,"a":[1.10,1e2,"\u00e9"]}"#;
        let text = format!(r#"{{"type":"tool_result","id":"call_abcdefgh","ok":true,"result":{raw}}}"#);
        let read = DaemonFrame::decode(&text).expect("valid");
        let DaemonFrame::ToolResult(result) = &read.frame else { panic!("wrong type") };
        assert_eq!(result.outcome.as_ref().expect("ok").get(), raw);
        assert_eq!(read.frame.encode(None), text);
        assert_eq!(read.frame.encode(Some(7)), text.replacen('{', "{\"n\":7,", 1));
    }

    #[test]
    fn a_result_that_is_null_is_a_result_and_a_mixed_one_is_malformed() {
        let text = r#"{"type":"tool_result","id":"call_abcdefgh","ok":true,"result":null}"#;
        let DaemonFrame::ToolResult(result) = DaemonFrame::decode(text).expect("valid").frame else { panic!() };
        assert_eq!(result.outcome.expect("ok").get(), "null");
        let text = r#"{"type":"tool_result","id":"call_abcdefgh","ok":true,"error":{"code":"timeout","message":"x"}}"#;
        assert_eq!(DaemonFrame::decode(text).map(|_| ()), Err(WireError::Malformed("tool_result")));
        let text = r#"{"type":"tool_result","id":"call_abcdefgh","ok":false,"error":{"code":"odd","message":"x","retryable":true}}"#;
        let DaemonFrame::ToolResult(result) = DaemonFrame::decode(text).expect("valid").frame else { panic!() };
        let error = result.outcome.expect_err("failed");
        assert_eq!((error.code, error.retryable), (Code::ExecutionFailed, true));
    }

    #[test]
    fn a_big_numbered_frame_is_read_as_a_small_one() {
        for (size, kind) in
            [(10, "heartbeat"), (limits::FRAME_PEEK_ABOVE, "heartbeat"), (limits::FRAME_PEEK_ABOVE, "odd")]
        {
            let text = format!(r#"{{"n":7,"type":"{kind}","ts":3,"more":"{}"}}"#, "a".repeat(size));
            match DaemonFrame::decode(&text) {
                Ok(Numbered { n, frame: DaemonFrame::Heartbeat(beat) }) if kind == "heartbeat" => {
                    assert_eq!((n, beat.ts), (Some(7), Some(3.into())));
                }
                other => assert_eq!((other.map(|_| ()), kind), (Err(WireError::UnknownType), "odd")),
            }
            if kind == "heartbeat" {
                assert!(DaemonFrame::decode(&text[..text.len() - 1]).is_err(), "half a frame is none");
            }
        }
    }

    #[test]
    fn malformed_frames_say_what_is_wrong_and_nothing_more() {
        for (text, want) in [
            ("", WireError::InvalidJson),
            ("{", WireError::InvalidJson),
            ("[]", WireError::NotAnObject),
            (r#"["heartbeat",1]"#, WireError::NotAnObject),
            ("7", WireError::NotAnObject),
            ("{}", WireError::NotAnObject),
            (r#"{"type":7}"#, WireError::NotAnObject),
            (r#"{"type":"x"}"#, WireError::UnknownType),
            (r#"{"type":"hello"}"#, WireError::Malformed("hello")),
            (r#"{"type":"hello","instance_id":"daemon_short"}"#, WireError::Malformed("hello")),
            (
                r#"{"type":"tool_result","id":"call_abcdefgh","id":"call_abcdefgi","ok":true}"#,
                WireError::Malformed("tool_result"),
            ),
        ] {
            assert_eq!(DaemonFrame::decode(text).map(|_| ()), Err(want), "{text}");
        }
        let long = format!(r#"{{"type":"heartbeat","x":"{}"}}"#, "a".repeat(crate::limits::FRAME_MAX));
        assert_eq!(DaemonFrame::decode(&long).map(|_| ()), Err(WireError::TooLarge));
    }

    #[test]
    fn unknown_fields_are_ignored_on_both_sides() {
        let text = r#"{"type":"hello","instance_id":"daemon_0123456789abcdef","shiny":1}"#;
        assert!(DaemonFrame::decode(text).is_ok());
        let call = ToolCall {
            id: CallId::mint([1; 32]),
            tool: "echo".into(),
            arguments: RawValue::from_string(r#"{"z":1,"a":2}"#.into()).expect("raw"),
            timeout_ms: 1000,
            authorization: crate::wire::Authorization {
                account_id: crate::id::AccountId::mint([2; 18]),
                account_version: 1,
                role: crate::policy::Role::Owner,
                client: None,
                client_name: None,
            },
            progress: false,
        };
        let text = RelayFrame::ToolCall(call).encode(Some(3));
        let read = RelayFrame::decode(&text).expect("valid");
        assert_eq!(read.n, Some(3));
        let RelayFrame::ToolCall(call) = read.frame else { panic!() };
        assert_eq!(call.arguments.get(), r#"{"z":1,"a":2}"#);
    }
}
