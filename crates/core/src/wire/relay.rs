//! Relay → daemon.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Features, LinkRange, Numbered, WireError, body, head, write};
use crate::id::{AccountId, CallId, ProbeId};
use crate::limits;
use crate::line::one_line;
use crate::policy::Role;

/// A frame from the relay.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum RelayFrame {
    /// Right after accept, before anything else.
    Welcome(Welcome),
    /// hello accepted.
    HelloAck(HelloAck),
    /// Right after `hello_ack`.
    RelayProbe(RelayProbe),
    /// After a correct probe result, even when empty.
    ResumeCalls(ResumeCalls),
    /// After `resume_calls` (with `report`: after the report).
    ReadyAck(ReadyAck),
    /// A call to run.
    ToolCall(ToolCall),
    /// Nobody waits for this call any more.
    CancelCall(CancelCall),
    /// Answer to a heartbeat.
    Pong(Pong),
    /// Before most failures the relay starts.
    Error(ErrorFrame),
    /// Feature `ack`: the result was committed, or nobody waits.
    ToolResultAck(ToolResultAck),
    /// Feature `suspend`: calls are held.
    SuspendingAck(SuspendingAck),
}

/// `welcome`. Version fields beside `server` and `version` are ours; a base peer ignores them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Welcome {
    /// Name of the relay's software.
    pub server: String,
    /// Its version, for people (a base daemon demands equality).
    pub version: String,
    /// Link versions spoken; absent on the base wire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkRange>,
    /// Features offered; absent on the base wire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features: Option<Features>,
}

/// `hello_ack`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HelloAck {
    /// As in `welcome`.
    pub server: String,
    /// As in `welcome`.
    pub version: String,
    /// As in `welcome`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkRange>,
    /// Feature `grace`: how long the relay keeps detached calls, in ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_ms: Option<u64>,
}

/// `relay_probe`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RelayProbe {
    /// To be echoed.
    pub id: ProbeId,
}

/// `resume_calls`: every call sent to this instance whose result is not committed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ResumeCalls {
    /// In order of sending; unique, bounded.
    pub ids: Vec<CallId>,
}

/// `ready_ack`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReadyAck {
    /// As in `welcome`.
    pub server: String,
    /// As in `welcome`.
    pub version: String,
    /// As in `welcome`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkRange>,
}

/// Who asks, as the relay vouches for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Authorization {
    /// The account.
    pub account_id: AccountId,
    /// Grows with every change of the account; ≥ 1.
    pub account_version: u64,
    /// Its role.
    pub role: Role,
    /// Ours: which client of that account; process sessions and kept results belong to both together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Ours: what that client calls itself. For people to read; decides nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_name: Option<String>,
}

impl Authorization {
    /// Who asks, in a word for people: on one line, at most [`limits::WORD_MAX`] characters.
    pub fn asker(&self) -> Option<Arc<str>> {
        let name = self.client_name.as_deref().or(self.client.as_deref())?;
        Some(one_line(name, limits::WORD_MAX).into())
    }
}

/// `tool_call`.
#[derive(Clone, Serialize, Deserialize)]
pub struct ToolCall {
    /// Never used twice.
    pub id: CallId,
    /// The tool.
    pub tool: String,
    /// An object, untouched.
    pub arguments: Box<RawValue>,
    /// Execution budget in ms, 1 000 to 610 000.
    pub timeout_ms: u64,
    /// Who asks.
    pub authorization: Authorization,
    /// Ours (feature `progress`): somebody listens to progress.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub progress: bool,
}

impl ToolCall {
    /// Writes the frame of a call that is kept.
    pub fn encode(&self, n: Option<u64>) -> String {
        #[derive(Serialize)]
        #[serde(tag = "type", rename_all = "snake_case")]
        enum Kept<'a> {
            ToolCall(&'a ToolCall),
        }
        write(&Kept::ToolCall(self), n)
    }
}

/// `cancel_call`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CancelCall {
    /// The call.
    pub id: CallId,
}

/// `pong`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Pong {
    /// Echo of the heartbeat's.
    #[serde(default)]
    pub ts: Option<serde_json::Number>,
    /// Ours: another instance came with this device's credential lately and was refused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_use: bool,
}

/// `error`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ErrorFrame {
    /// A code.
    pub error: String,
}

/// `tool_result_ack`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ToolResultAck {
    /// The call.
    pub id: CallId,
    /// Whether a waiting call had this id.
    pub matched: bool,
}

/// `suspending_ack`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SuspendingAck {
    /// How long the calls are held, in ms.
    pub hold_ms: u64,
}

impl RelayFrame {
    /// Reads one frame.
    pub fn decode(text: &str) -> Result<Numbered<RelayFrame>, WireError> {
        let head = head(text)?;
        let frame = match &*head.kind {
            "welcome" => RelayFrame::Welcome(body(text, "welcome")?),
            "hello_ack" => RelayFrame::HelloAck(body(text, "hello_ack")?),
            "relay_probe" => RelayFrame::RelayProbe(body(text, "relay_probe")?),
            "resume_calls" => RelayFrame::ResumeCalls(body(text, "resume_calls")?),
            "ready_ack" => RelayFrame::ReadyAck(body(text, "ready_ack")?),
            "tool_call" => RelayFrame::ToolCall(body(text, "tool_call")?),
            "cancel_call" => RelayFrame::CancelCall(body(text, "cancel_call")?),
            "pong" => RelayFrame::Pong(body(text, "pong")?),
            "error" => RelayFrame::Error(body(text, "error")?),
            "tool_result_ack" => RelayFrame::ToolResultAck(body(text, "tool_result_ack")?),
            "suspending_ack" => RelayFrame::SuspendingAck(body(text, "suspending_ack")?),
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

    #[test]
    fn people_read_the_name_of_who_asks_on_one_line_else_the_id_else_nothing() {
        let asks = |client: Option<&str>, name: Option<&str>| Authorization {
            account_id: AccountId::mint([1; 18]),
            account_version: 1,
            role: Role::Owner,
            client: client.map(str::to_owned),
            client_name: name.map(str::to_owned),
        };
        assert_eq!(asks(Some("client_1"), Some("Chat\u{202e}\nGPT")).asker().as_deref(), Some("Chat  GPT"));
        assert_eq!(asks(Some("client_1"), None).asker().as_deref(), Some("client_1"));
        assert_eq!(asks(None, None).asker(), None);
        let long = asks(None, Some(&"x".repeat(limits::WORD_MAX + 1))).asker().unwrap();
        assert_eq!(long.chars().count(), limits::WORD_MAX);
    }
}
