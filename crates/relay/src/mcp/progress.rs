//! Progress of a call as a JSON-RPC notification.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::devices::CallProgress;

/// The notification for a client that sent this token.
pub(super) fn notification(token: &RawValue, progress: &CallProgress) -> Vec<u8> {
    #[derive(Serialize)]
    struct Out<'a> {
        jsonrpc: &'static str,
        method: &'static str,
        params: Params<'a>,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Params<'a> {
        progress_token: &'a RawValue,
        progress: f64,
        #[serde(skip_serializing_if = "Option::is_none")]
        total: Option<f64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<&'a str>,
    }
    let params = Params {
        progress_token: token,
        progress: progress.progress,
        total: progress.total,
        message: progress.message.as_deref(),
    };
    // Nothing here can fail to serialise.
    serde_json::to_vec(&Out { jsonrpc: "2.0", method: "notifications/progress", params }).unwrap_or_default()
}
