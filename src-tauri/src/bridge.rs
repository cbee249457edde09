//! What the status window may ask: the loopback API's endpoints in process, their streams, and the clipboard.
//!
//! `request(method, path, body?) -> {status, body}`. `stream(path, body?, channel) -> id`: `{line}` for each line of the answer,
//! then `{end}`, which is null after a whole answer and `{status, body}` for one that is no success; `unstream(id)` ends it.

use holdfast_host::bridge::{Answer, Bridge, NotAsked, Piece};
use serde_json::Value;
use tauri::ipc::Channel;
use tauri::{AppHandle, Builder, Runtime, State};
use tauri_plugin_clipboard_manager::ClipboardExt as _;

/// Lets the window's page ask. What it may ask stands in `capabilities/`.
pub fn commands<R: Runtime>(builder: Builder<R>) -> Builder<R> {
    builder.invoke_handler(tauri::generate_handler![request, stream, unstream, copy])
}

type Asked<'a> = State<'a, Bridge>;

#[tauri::command]
async fn request(bridge: Asked<'_>, method: &str, path: &str, body: Option<Value>) -> Result<Answer, NotAsked> {
    bridge.request(method, path, body).await
}

#[tauri::command]
async fn stream(bridge: Asked<'_>, path: &str, body: Option<Value>, channel: Channel<Piece>) -> Result<u32, NotAsked> {
    let id = channel.id();
    bridge.stream(id, path, body, move |piece| channel.send(piece).is_ok()).await?;
    Ok(id)
}

#[tauri::command]
fn unstream(bridge: Asked<'_>, id: u32) {
    bridge.unstream(id);
}

#[tauri::command]
fn copy<R: Runtime>(app: AppHandle<R>, text: String) -> Result<(), String> {
    app.clipboard().write_text(text).map_err(|e| e.to_string())
}
