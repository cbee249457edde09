//! view_image.

use std::io::Read as _;

use base64::Engine as _;
use holdfast_core::code::{Code, ToolError};
use holdfast_core::limits;
use serde::Deserialize;
use serde_json::{Value, json};

use super::workspace::Access;
use crate::exec::call::{Call, invalid, io_error};
use crate::exec::env::Env;

/// An image as MCP content: `$mcp.content` is taken over by the relay as it is.
pub(in crate::exec) fn view_image(env: &Env, call: &Call) -> Result<Value, ToolError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Arguments {
        path: String,
    }
    let Arguments { path } = call.arguments()?;
    let spot = env.files.find(&path, &call.policy, Access::Read)?;
    let mut bytes = Vec::new();
    let file = env.files.file(&spot)?;
    file.take(limits::FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(|e| io_error("file", &e))?;
    if bytes.len() > limits::FILE_BYTES_MAX {
        return Err(ToolError::new(
            Code::LimitExceeded,
            format!("the image is larger than {} bytes", limits::FILE_BYTES_MAX),
        ));
    }
    let mime = infer::get(&bytes).map(|kind| kind.mime_type());
    let Some(mime @ ("image/png" | "image/jpeg" | "image/gif" | "image/webp")) = mime else {
        return Err(invalid("not a PNG, JPEG, GIF or WebP image"));
    };
    let data = base64::engine::general_purpose::STANDARD.encode(&bytes);
    Ok(json!({"$mcp": {
        "content": [{"type": "image", "data": data, "mimeType": mime}],
        "structuredContent": {"path": spot.shown, "mime_type": mime, "size_bytes": bytes.len()},
    }}))
}
