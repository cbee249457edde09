//! A frame by the role of the socket it came on.

use super::intake::Arrival;
use super::socket::Role;
use super::{Loss, SocketId, Switchboard};
use crate::limits;
use crate::time::Now;
use crate::wire::close::{self, Close};
use crate::wire::{DaemonFrame, Feature, Heartbeat, Numbered, Pong, RelayFrame, WireError};

impl Switchboard {
    pub(super) fn arrived(&mut self, now: Now, id: SocketId, arrival: Arrival) {
        let Arrival { frame, whole } = arrival;
        // A late frame of a socket that is gone touches nothing.
        let Some(socket) = self.socket(id) else { return };
        socket.heard = now.boot;
        let Numbered { n, frame } = match frame {
            Ok(numbered) => numbered,
            Err(error) => {
                let close = refusal(&socket.role, error);
                return self.close(now, id, close, Loss::Protocol);
            }
        };
        if socket.has(Feature::Seq) {
            let expected = socket.read + 1;
            // A heartbeat may carry the number of the frame before it instead of one of its own.
            let repeats = matches!(frame, DaemonFrame::Heartbeat(_)) && n == Some(socket.read);
            if n != Some(expected) && !repeats {
                return self.close(now, id, close::FRAME_GAP, Loss::Gap);
            }
            socket.read = if repeats { socket.read } else { expected };
        }
        match socket.role {
            Role::Candidate => match frame {
                DaemonFrame::Hello(hello) => self.hello(now, id, n, hello),
                _ => self.close(now, id, close::HELLO_REQUIRED, Loss::Protocol),
            },
            Role::Challenging { .. } => match frame {
                // Its own timer may run before we answered.
                DaemonFrame::Heartbeat(_) => {}
                DaemonFrame::Hello(_) => self.close(now, id, close::DUPLICATE_HELLO, Loss::Protocol),
                _ => self.close(now, id, close::HELLO_REQUIRED, Loss::Protocol),
            },
            Role::Probing { ref probe } => match frame {
                DaemonFrame::RelayProbeResult(result) if result.id == *probe => self.proven(now, id),
                DaemonFrame::Heartbeat(beat) | DaemonFrame::Ping(beat) => self.pong(now, id, beat),
                DaemonFrame::Hello(_) => self.close(now, id, close::DUPLICATE_HELLO, Loss::Protocol),
                _ => self.close(now, id, close::BAD_PROBE, Loss::Protocol),
            },
            Role::Resuming { .. } => match frame {
                DaemonFrame::ResumeReport(report) => self.reported(now, id, report),
                DaemonFrame::Heartbeat(beat) | DaemonFrame::Ping(beat) => self.pong(now, id, beat),
                DaemonFrame::Suspending(_) if self.agreed(id, Feature::Suspend) => self.suspending(now, id),
                DaemonFrame::Hello(_) => self.close(now, id, close::DUPLICATE_HELLO, Loss::Protocol),
                _ => self.close(now, id, close::UNKNOWN_TYPE, Loss::Protocol),
            },
            Role::Ready { .. } => {
                self.awake_again(now, &frame);
                match frame {
                    DaemonFrame::ToolResult(result) => self.result(now, id, result),
                    DaemonFrame::Heartbeat(beat) | DaemonFrame::Ping(beat) => self.pong(now, id, beat),
                    DaemonFrame::ToolProgress(progress) if self.agreed(id, Feature::Progress) => {
                        self.progress(progress)
                    }
                    DaemonFrame::ToolResultChunk(chunk) if self.agreed(id, Feature::Chunk) => {
                        self.chunk(now, id, &chunk.id, whole);
                    }
                    DaemonFrame::Suspending(_) if self.agreed(id, Feature::Suspend) => self.suspending(now, id),
                    DaemonFrame::Hello(_) => self.close(now, id, close::DUPLICATE_HELLO, Loss::Protocol),
                    _ => self.close(now, id, close::UNKNOWN_TYPE, Loss::Protocol),
                }
            }
        }
    }

    fn agreed(&mut self, id: SocketId, feature: Feature) -> bool {
        self.socket(id).is_some_and(|socket| socket.has(feature))
    }

    fn pong(&mut self, now: Now, id: SocketId, beat: Heartbeat) {
        let ts = beat.ts.unwrap_or_else(|| u64::try_from(now.boot.as_millis()).unwrap_or(u64::MAX).into());
        let lately = self.in_use_at.is_some_and(|at| now.boot < at + limits::IN_USE_TOLD);
        let in_use = lately && self.socket(id).is_some_and(|socket| socket.is_ready() && socket.has(Feature::Live));
        self.transmit(id, &RelayFrame::Pong(Pong { ts: Some(ts), in_use }));
    }
}

/// The close for a frame that was not understood.
fn refusal(role: &Role, error: WireError) -> Close {
    match error {
        WireError::TooLarge => close::TOO_LARGE,
        WireError::InvalidUtf8 => close::INVALID_UTF8,
        WireError::InvalidJson => close::INVALID_JSON,
        WireError::NotAnObject => close::NOT_AN_OBJECT,
        WireError::Malformed("hello") if matches!(role, Role::Candidate) => close::INSTANCE_REQUIRED,
        WireError::Malformed("hello") => close::DUPLICATE_HELLO,
        WireError::UnknownType | WireError::Malformed(_) => match role {
            Role::Candidate | Role::Challenging { .. } => close::HELLO_REQUIRED,
            Role::Probing { .. } => close::BAD_PROBE,
            Role::Resuming { .. } => close::BAD_REPORT,
            Role::Ready { .. } => close::UNKNOWN_TYPE,
        },
    }
}
