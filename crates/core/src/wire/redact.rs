//! Frames that carry what a tool was asked or said print their ids only, so that no log can show more.

use std::fmt::{Debug, Formatter, Result};

use super::{ToolCall, ToolProgress, ToolResult, ToolResultChunk};

impl Debug for ToolCall {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("ToolCall").field("id", &self.id).field("tool", &self.tool).finish_non_exhaustive()
    }
}

impl Debug for ToolResult {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("ToolResult")
            .field("id", &self.id)
            .field("error", &self.outcome.as_ref().err())
            .finish_non_exhaustive()
    }
}

impl Debug for ToolProgress {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("ToolProgress").field("id", &self.id).field("progress", &self.progress).finish_non_exhaustive()
    }
}

impl Debug for ToolResultChunk {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let bytes = (self.offset, self.total);
        f.debug_struct("ToolResultChunk").field("id", &self.id).field("bytes", &bytes).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use crate::wire::{DaemonFrame, RelayFrame};

    /// **Proves** that no frame prints what a tool was asked or said.
    #[test]
    fn frames_print_no_words_of_a_tool() {
        let call = concat!(
            r#"{"type":"tool_call","id":"call_1234567890","tool":"exec","arguments":{"cmd":"secret"},"timeout_ms":5000,"#,
            r#""authorization":{"account_id":"acct_00000000000000000001","account_version":1,"role":"owner"}}"#,
        );
        let frame = RelayFrame::decode(call).expect("valid");
        assert!(format!("{frame:?}").contains("call_1234567890"));
        assert!(!format!("{frame:?}").contains("secret"));
        for said in [
            r#"{"type":"tool_result","id":"call_1234567890","ok":true,"result":{"text":"secret"}}"#,
            r#"{"type":"tool_progress","id":"call_1234567890","progress":1,"message":"secret"}"#,
            r#"{"type":"tool_result_chunk","id":"call_1234567890","offset":0,"total":6,"sha256":"00","data":"secret"}"#,
        ] {
            let frame = DaemonFrame::decode(said).expect("valid");
            assert!(format!("{frame:?}").contains("call_1234567890"), "{frame:?}");
            assert!(!format!("{frame:?}").contains("secret"), "{frame:?}");
        }
    }
}
