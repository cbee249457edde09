//! The stdio MCP server behind every peer: one tool, `echo`, no library.

use std::io::{BufRead as _, Write as _};

use anyhow::Result;
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(default)]
    method: String,
    #[serde(default, borrow)]
    params: Params<'a>,
}

#[derive(Default, Deserialize)]
struct Params<'a> {
    #[serde(default, borrow, rename = "protocolVersion")]
    version: Option<&'a RawValue>,
    #[serde(default, borrow)]
    arguments: Arguments<'a>,
}

#[derive(Default, Deserialize)]
struct Arguments<'a> {
    #[serde(default, borrow)]
    text: Option<&'a RawValue>,
}

/// Answers until stdin ends.
pub fn run() -> Result<()> {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let Ok(request) = serde_json::from_str::<Request<'_>>(&line) else { continue };
        let Some(id) = request.id else { continue };
        let result = match request.method.as_str() {
            "initialize" => format!(
                r#"{{"protocolVersion":{},"capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"echo","version":"1"}}}}"#,
                request.params.version.map_or(r#""2025-06-18""#, RawValue::get)
            ),
            "tools/list" => r#"{"tools":[{"name":"echo","description":"Says it again.","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}]}"#.into(),
            "tools/call" => format!(
                r#"{{"content":[{{"type":"text","text":{}}}]}}"#,
                request.params.arguments.text.map_or("\"\"", RawValue::get)
            ),
            "ping" => "{}".into(),
            _ => {
                writeln!(out, r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"no such method"}}}}"#)?;
                out.flush()?;
                continue;
            }
        };
        writeln!(out, r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)?;
        out.flush()?;
    }
    Ok(())
}
