//! JSON-RPC, one message a line.

use bytes::{Bytes, BytesMut};
use futures_util::Stream;
use holdfast_host::api;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, Stdout};
use tokio::sync::Mutex;

/// What stands on a line.
#[derive(Debug)]
pub enum Line {
    /// It wants an answer.
    Request(Request),
    /// It wants none; its method.
    Notification(String),
    /// Nothing, or an answer, for which nobody here waits.
    Nothing,
}

/// A request that wants an answer.
#[derive(Debug)]
pub struct Request {
    pub id: Value,
    pub method: String,
    pub params: Value,
}

/// Why a request is not answered.
#[derive(Debug)]
pub struct Refusal {
    pub code: i64,
    pub message: String,
}

impl Line {
    pub fn read(line: &str) -> Result<Line, Refusal> {
        if line.trim().is_empty() {
            return Ok(Line::Nothing);
        }
        let mut message: Value = serde_json::from_str(line)
            .map_err(|_| Refusal { code: -32700, message: "this line is no JSON".to_owned() })?;
        let invalid = || Refusal { code: -32600, message: "this is no JSON-RPC request".to_owned() };
        let object = message.as_object_mut().ok_or_else(invalid)?;
        let (id, method) = (object.remove("id"), object.remove("method"));
        let params = object.remove("params").unwrap_or_default();
        match (id, method) {
            (Some(id @ (Value::String(_) | Value::Number(_))), Some(Value::String(method))) => {
                Ok(Line::Request(Request { id, method, params }))
            }
            (None, Some(Value::String(method))) => Ok(Line::Notification(method)),
            (Some(_), None) => Ok(Line::Nothing),
            _ => Err(invalid()),
        }
    }
}

/// What the agent writes, line by line.
pub fn lines() -> impl Stream<Item = String> {
    let bytes = futures_util::stream::unfold(tokio::io::stdin(), |mut stdin| async move {
        let mut block = BytesMut::with_capacity(64 << 10);
        match stdin.read_buf(&mut block).await {
            Ok(1..) => Some((Ok::<Bytes, std::io::Error>(block.freeze()), stdin)),
            _ => None,
        }
    });
    api::lines(bytes)
}

/// The agent's end.
pub struct Agent(Mutex<Stdout>);

impl Default for Agent {
    fn default() -> Agent {
        Agent(Mutex::new(tokio::io::stdout()))
    }
}

impl Agent {
    /// Answers a request. An agent that does not read any more has gone.
    pub async fn answer(&self, id: &Value, answer: Result<Value, Refusal>) {
        let message = match answer {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err(Refusal { code, message }) => {
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
            }
        };
        let _ = self.write(&message).await;
    }

    /// Tells the agent something; when this returns, the agent's pipe has it.
    pub async fn notify(&self, method: &str, params: Value) -> std::io::Result<()> {
        self.write(&json!({"jsonrpc": "2.0", "method": method, "params": params})).await
    }

    async fn write(&self, message: &Value) -> std::io::Result<()> {
        let mut line = message.to_string();
        line.push('\n');
        let mut stdout = self.0.lock().await;
        stdout.write_all(line.as_bytes()).await?;
        stdout.flush().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_told_from_notifications_answers_and_nonsense() {
        let read = |line: &str| Line::read(line).unwrap();
        let Line::Request(request) = read(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#) else { panic!() };
        assert_eq!((request.id, request.method.as_str(), request.params), (json!(1), "ping", Value::Null));
        assert!(matches!(read(r#"{"jsonrpc":"2.0","method":"x"}"#), Line::Notification(method) if method == "x"));
        for silent in ["", "  ", r#"{"jsonrpc":"2.0","id":1,"result":{}}"#] {
            assert!(matches!(read(silent), Line::Nothing), "{silent}");
        }
        for (bad, code) in [("{", -32700), ("[]", -32600), (r#"{"id":null,"method":"x"}"#, -32600), ("{}", -32600)] {
            assert_eq!(Line::read(bad).unwrap_err().code, code, "{bad}");
        }
    }
}
