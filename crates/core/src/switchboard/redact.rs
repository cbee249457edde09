//! What may be printed of a switchboard's values: never arguments, results or frames.

use std::fmt::{Debug, Formatter, Result};

use super::{Input, OpenCall, Outcome, Output, StoreAnswer, StoreRequest, Switchboard};

impl Debug for OpenCall {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("OpenCall").field("tool", &self.tool).field("budget", &self.budget).finish_non_exhaustive()
    }
}

impl Debug for Input {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Input::Connected { socket } => write!(f, "Connected({})", socket.0),
            Input::Arrived { socket, arrival } => {
                write!(f, "Arrived({}, {})", socket.0, if arrival.frame.is_ok() { "frame" } else { "malformed" })
            }
            Input::Ponged { socket, .. } => write!(f, "Ponged({})", socket.0),
            Input::Heard { socket, at, .. } => write!(f, "Heard({}, {at:?})", socket.0),
            Input::Closed { socket, word } => write!(f, "Closed({}, {word:?})", socket.0),
            Input::Open { waiter, call } => write!(f, "Open({}, {call:?})", waiter.0),
            Input::Attend { waiter, call } => write!(f, "Attend({}, {call})", waiter.0),
            Input::Leave { waiter, call } => write!(f, "Leave({}, {call})", waiter.0),
            Input::Cancel { call } => write!(f, "Cancel({call})"),
            Input::Commit { call } => write!(f, "Commit({call})"),
            Input::Stored { call, answer } => write!(f, "Stored({call}, {answer:?})"),
            Input::Restore { calls } => write!(f, "Restore({} calls)", calls.len()),
            Input::Stop => f.write_str("Stop"),
            Input::Revoke => f.write_str("Revoke"),
        }
    }
}

impl Debug for StoreAnswer {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            StoreAnswer::Committed => f.write_str("Committed"),
            StoreAnswer::Known(outcome) => write!(f, "Known({})", end(outcome)),
            StoreAnswer::Unfinished => f.write_str("Unfinished"),
            StoreAnswer::Conflict => f.write_str("Conflict"),
            StoreAnswer::Refused => f.write_str("Refused"),
            StoreAnswer::Bound => f.write_str("Bound"),
            StoreAnswer::Kept => f.write_str("Kept"),
            StoreAnswer::NotKept => f.write_str("NotKept"),
        }
    }
}

impl Debug for Output {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Output::Transmit { socket, text } => write!(f, "Transmit({}, {} bytes)", socket.0, text.len()),
            Output::Ping { socket, .. } => write!(f, "Ping({})", socket.0),
            Output::Close { socket, close } => write!(f, "Close({}, {close:?})", socket.0),
            Output::Admitted { waiter, call } => write!(f, "Admitted({}, {call})", waiter.0),
            Output::Progress { waiter, progress, .. } => write!(f, "Progress({}, {progress})", waiter.0),
            Output::Kept { waiter, .. } => write!(f, "Kept({})", waiter.0),
            Output::End { waiter, outcome } => write!(f, "End({}, {})", waiter.0, end(outcome)),
            Output::Store(request) => write!(f, "Store({request:?})"),
            Output::Catalogue(catalogue) => write!(f, "Catalogue({} tools)", catalogue.tools.len()),
            Output::Note(note) => write!(f, "{note:?}"),
            Output::Stopped => f.write_str("Stopped"),
        }
    }
}

impl Debug for StoreRequest {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let (what, call) = match self {
            StoreRequest::Reserve { call, .. } => ("Reserve", call),
            StoreRequest::Keep { call, .. } => ("Keep", call),
            StoreRequest::Assign { call, .. } => ("Assign", call),
            StoreRequest::Finish { call, .. } => ("Finish", call),
            StoreRequest::Forget { call } => ("Forget", call),
            StoreRequest::Hold { call, .. } => ("Hold", call),
        };
        write!(f, "{what}({call})")
    }
}

impl Debug for Switchboard {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let sockets: Vec<_> = self.sockets.iter().map(|socket| socket.id.0).collect();
        f.debug_struct("Switchboard")
            .field("sockets", &sockets)
            .field("calls", &self.calls.len())
            .finish_non_exhaustive()
    }
}

fn end(outcome: &Outcome) -> &'static str {
    outcome.as_ref().map_or_else(|error| error.code.as_str(), |_| "done")
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;
    use crate::switchboard::{SocketId, WaiterId};

    #[test]
    fn neither_frames_nor_results_are_printed() {
        let raw = RawValue::from_string("\"secret\"".into()).expect("json");
        let end = Output::End { waiter: WaiterId(1), outcome: Ok(raw.clone()) };
        let frame = Output::Transmit { socket: SocketId(1), text: "secret".into() };
        let known = StoreAnswer::Known(Ok(raw));
        assert_eq!(format!("{end:?} {frame:?} {known:?}"), "End(1, done) Transmit(1, 6 bytes) Known(done)");
    }
}
