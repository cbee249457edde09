//! `read_result` and `cancel_result` for the handles of calls that the relay keeps. A device's handles go to the device.

use std::sync::Arc;
use std::time::Duration;

use holdfast_core::code::{Code, ToolError};
use holdfast_core::id::KeptId;
use holdfast_core::limits;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::outcome::Outcome;
use super::{Mcp, session};
use crate::Principal;
use crate::store::StoreError;

/// What is asked about a kept call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Asked {
    /// A page of its result.
    Read { handle: KeptId, offset: usize, max: usize, wait: Duration },
    /// To stop it.
    Cancel { handle: KeptId },
}

/// Reads arguments that fit their schema. `None`: not a tool of this module, or a handle that is not the relay's.
pub(super) fn asked(tool: &str, arguments: &Value) -> Option<Asked> {
    let number = |name: &str| arguments[name].as_u64().and_then(|n| usize::try_from(n).ok());
    let handle = KeptId::parse(arguments["handle"].as_str()?).ok()?;
    match tool {
        "read_result" => Some(Asked::Read {
            handle,
            offset: number("offset").unwrap_or(0),
            max: number("max_bytes").unwrap_or(limits::PROC_READ_DEFAULT),
            wait: Duration::from_millis(arguments["wait_ms"].as_u64().unwrap_or(0)),
        }),
        "cancel_result" => Some(Asked::Cancel { handle }),
        _ => None,
    }
}

/// The outcome of the call about the call. One that failed answers its reader with its own failure.
pub(super) async fn answer(mcp: &Mcp, principal: &Arc<Principal>, asked: Asked) -> Outcome {
    let room = mcp.state.devices.room(&principal.device);
    let caller = session::caller(principal);
    match asked {
        Asked::Cancel { handle } => {
            let stopped = room.cancel_kept(&caller, &handle).await.map_err(unreadable)?.ok_or_else(unknown)?;
            write(&json!({"handle": handle, "cancelled": stopped}))
        }
        Asked::Read { handle, offset, max, wait } => {
            let kept = room.kept(&caller, &handle, wait).await.map_err(unreadable)?.ok_or_else(unknown)?;
            match kept.end {
                None => write(&json!({
                    "handle": handle, "offset": offset, "next_offset": offset, "done": false, "text": "",
                    "status": Code::InProgress,
                })),
                Some((_, outcome)) => {
                    let result = outcome?;
                    let (offset, text) = page(result.get(), offset, max);
                    let next = offset + text.len();
                    write(&json!({
                        "handle": handle, "offset": offset, "next_offset": next, "total_bytes": result.get().len(),
                        "done": next == result.get().len(), "text": text,
                    }))
                }
            }
        }
    }
}

/// At most `max` bytes from `offset`, in whole characters, but never nothing of something.
fn page(text: &str, offset: usize, max: usize) -> (usize, &str) {
    let boundary = |mut at: usize| {
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let from = boundary(offset.min(text.len()));
    let first = text[from..].chars().next().map_or(0, char::len_utf8);
    let to = boundary(from.saturating_add(max).min(text.len())).max(from + first);
    (from, &text[from..to])
}

fn write(value: &Value) -> Outcome {
    to_raw_value(value).map_err(|_| ToolError::new(Code::InternalError, "the answer could not be written"))
}

fn unknown() -> ToolError {
    ToolError::new(Code::NotFound, "no such result, or it is no longer kept")
}

fn unreadable(error: StoreError) -> ToolError {
    tracing::warn!(%error, "a kept call could not be read");
    ToolError::nothing_done(Code::Unavailable, "the relay cannot read what it keeps; try again")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_whole_characters_and_always_goes_on() {
        assert_eq!(page("aéb", 0, 2), (0, "a"));
        assert_eq!(page("aéb", 1, 1), (1, "é"));
        assert_eq!(page("aéb", 2, 9), (1, "éb"), "an offset inside a character");
        assert_eq!(page("aéb", 4, 9), (4, ""));
        assert_eq!(page("aéb", 99, usize::MAX), (4, ""));
        assert_eq!(page("", 0, 1), (0, ""));
    }

    #[test]
    fn a_devices_handle_is_not_the_relays() {
        let kept = KeptId::mint([1; 18]);
        let asked = |tool, handle: &str| asked(tool, &json!({"handle": handle, "wait_ms": 7}));
        let wait = Duration::from_millis(7);
        let read = Asked::Read { handle: kept.clone(), offset: 0, max: limits::PROC_READ_DEFAULT, wait };
        assert_eq!(asked("read_result", kept.as_str()), Some(read));
        assert_eq!(asked("cancel_result", kept.as_str()), Some(Asked::Cancel { handle: kept.clone() }));
        assert_eq!(asked("read_result", "res_aaaaaaaaaaaaaaaaaaaa"), None);
        assert_eq!(asked("read_file", kept.as_str()), None);
    }
}
