//! Frames of the worker's socket, `/worker/ws`: JSON text, one object each, told apart by `type`.
//!
//! The vocabulary is the resumable worker protocol's; what Holdfast adds is `operation_rejected`, `operation_state`,
//! `exec_gap` and the fields that say so. Unknown fields are ignored, unknown types refused.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::WireError;
use crate::id::{LedgerId, OperationId, RecoveryId, RunId, RuntimeId};
use crate::limits;
use crate::operation::{Failure, Operation, Outcome, State, Stream, Streams, bytes_text};
use crate::status::UnixMs;

/// Path of the worker's socket.
pub const WORKER_PATH: &str = "/worker/ws";

/// Version of this protocol, `resumableProtocol` in hello.
pub const WORKER_PROTOCOL: u32 = 1;

/// Close code of a worker whose ledger is not the one that is connected and alive: a copied data folder or credential.
pub const CLOSE_IN_USE: (u16, &str) = (1013, "device_in_use");
/// Close code of a base worker's identity conflict.
pub const CLOSE_CONFLICT: (u16, &str) = (1008, "Operation identity conflict");
/// Close code of a socket that a newer one of the same ledger replaced.
pub const CLOSE_REPLACED: (u16, &str) = (1001, "moved to a newer connection");
/// Close code of a socket that broke a rule of the protocol.
pub const CLOSE_PROTOCOL: (u16, &str) = (1002, "protocol error");
/// Close code when a step of recovery brought nothing for its time.
pub const CLOSE_RECOVERY: (u16, &str) = (1012, "Communication recovery");

/// Where output of a run is wanted from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OutputOffset {
    /// Whose.
    pub run_id: RunId,
    /// Which stream.
    pub stream: Stream,
    /// Bytes the relay has committed.
    pub next_offset: u64,
}

/// What the relay says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum ControlFrame {
    /// Answers `hello`: what the relay waits for.
    RecoveryRequest {
        /// This recovery.
        recovery_id: RecoveryId,
        /// Operations sent before whose outcome is not committed.
        requests: Vec<OperationId>,
        /// What is committed of their output.
        output_offsets: Vec<OutputOffset>,
    },
    /// Everything was replayed: live.
    RecoveryReady {
        /// The recovery that it ends.
        recovery_id: RecoveryId,
        /// The lease, in milliseconds.
        lease_ms: u64,
    },
    /// Renews the lease.
    WorkerExecutionLease {
        /// From now, in milliseconds.
        lease_ms: u64,
    },
    /// Output is committed.
    ExecOutputAck {
        /// Whose.
        run_id: RunId,
        /// Which stream.
        stream: Stream,
        /// Up to here.
        next_offset: u64,
    },
    /// The end of a run is committed.
    ExecTerminalAck {
        /// Whose.
        run_id: RunId,
    },
    /// The result of an operation is committed.
    OperationResultAck {
        /// Whose.
        request_id: OperationId,
    },
    /// Cancels an operation, known or not: an unknown one never starts.
    Cancel {
        /// Which.
        request_id: OperationId,
        /// Its run, if it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run_id: Option<RunId>,
    },
    /// Cancels what a session has and will have.
    CancelSession {
        /// Which.
        session_id: String,
        /// Names this cancellation.
        cancellation_id: String,
    },
    /// An operation; its own type stands in `type`.
    #[serde(untagged)]
    Operation(Operation),
}

/// The machine a worker runs on, for people.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HostInfo {
    /// Its name.
    pub hostname: String,
    /// `linux`, `macos`, `windows`.
    #[serde(default)]
    pub platform: String,
    /// The workspace.
    #[serde(default)]
    pub root: String,
    /// Of the worker.
    #[serde(default)]
    pub version: String,
}

/// How an operation stands at the worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Which.
    pub request_id: OperationId,
    /// How it stands.
    pub state: State,
    /// Its run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// Output written so far, per stream.
    #[serde(default, skip_serializing_if = "Streams::is_empty")]
    pub written: Streams,
    /// Since when its program waits for room in the spool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_stalled: Option<UnixMs>,
    /// In a `recovery_state`, of one that the relay did not ask for and whose end it has not acknowledged: what it is, in
    /// outline. A relay that has lost it takes it back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<Box<Operation>>,
}

/// What the worker says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum WorkerFrame {
    /// The first frame.
    Hello {
        /// Version of this protocol: 1.
        resumable_protocol: u32,
        /// This process life.
        runtime_id: RuntimeId,
        /// This ledger.
        ledger_id: LedgerId,
        /// Whether the worker may start what is sent; always `true` here.
        startup_ready: bool,
        /// The machine.
        host_info: HostInfo,
    },
    /// What the worker has of what the relay asked for, and what else has not ended there.
    RecoveryState {
        /// The recovery.
        recovery_id: RecoveryId,
        /// This process life.
        runtime_id: RuntimeId,
        /// This ledger.
        ledger_id: LedgerId,
        /// At most [`limits::OPERATIONS_HELD_MAX`] twice. One that was asked for and is not here was never received.
        operations: Vec<Report>,
    },
    /// Everything that was asked for has been sent.
    RecoveryComplete {
        /// The recovery.
        recovery_id: RecoveryId,
    },
    /// It stands in the ledger.
    OperationReceived {
        /// Which.
        request_id: OperationId,
    },
    /// It does not stand in the ledger and will not: its key is free again.
    OperationRejected {
        /// Which.
        request_id: OperationId,
        /// Why: `conflict`, `storage_full`, `limit_exceeded`, `policy_denied`, `invalid_request`.
        #[serde(flatten)]
        failure: Failure,
    },
    /// News of a living operation; lossy, the latest counts.
    OperationState(Report),
    /// The result of an operation that is no run; sent until `operation_result_ack`.
    OperationCompleted {
        /// Which.
        request_id: OperationId,
        /// Its end.
        outcome: Outcome,
    },
    /// Output of a run.
    ExecOutput {
        /// Whose.
        run_id: RunId,
        /// Which stream.
        stream: Stream,
        /// Where it begins.
        offset: u64,
        /// The bytes.
        #[serde(with = "bytes_text")]
        data: Bytes,
    },
    /// Output that was given up, because the operation asked for `drop_middle`.
    ExecGap {
        /// Whose.
        run_id: RunId,
        /// Which stream.
        stream: Stream,
        /// Where the gap begins.
        offset: u64,
        /// Where output goes on.
        next_offset: u64,
    },
    /// A run ended by itself or was cancelled; sent until `exec_terminal_ack`.
    ExecExit {
        /// The operation.
        request_id: OperationId,
        /// Its run.
        run_id: RunId,
        /// Its end.
        outcome: Outcome,
        /// All of its output, in bytes per stream.
        written: Streams,
    },
    /// A run failed, or nobody knows; sent until `exec_terminal_ack`.
    ExecError {
        /// The operation.
        request_id: OperationId,
        /// Its run.
        run_id: RunId,
        /// Its end.
        outcome: Outcome,
        /// All of its output, in bytes per stream.
        written: Streams,
    },
    /// Answers `cancel`.
    CancelResult {
        /// Which.
        request_id: OperationId,
        /// How it stands now.
        state: State,
    },
    /// Answers `cancel_session`: it stands in the ledger and what ran is being ended.
    CancelSessionAck {
        /// The cancellation.
        cancellation_id: String,
    },
}

fn encode<T: Serialize>(frame: &T) -> String {
    // Nothing in a frame can fail to serialise: keys are texts, numbers are finite.
    serde_json::to_string(frame).unwrap_or_default()
}

fn decode<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, WireError> {
    if text.len() > limits::OPERATION_FRAME_MAX {
        return Err(WireError::TooLarge);
    }
    serde_json::from_str(text).map_err(|_| WireError::Malformed("frame of the worker's socket"))
}

impl ControlFrame {
    /// The frame as text.
    pub fn encode(&self) -> String {
        encode(self)
    }

    /// Reads a frame; the errors carry none of its content.
    pub fn decode(text: &str) -> Result<ControlFrame, WireError> {
        decode(text)
    }

    /// The request id of a frame that could not be read: of an operation this build does not understand.
    pub fn request_id(text: &str) -> Option<OperationId> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Named {
            request_id: OperationId,
        }
        decode::<Named>(text).ok().map(|named| named.request_id)
    }
}

impl WorkerFrame {
    /// The frame as text.
    pub fn encode(&self) -> String {
        encode(self)
    }

    /// Reads a frame; the errors carry none of its content.
    pub fn decode(text: &str) -> Result<WorkerFrame, WireError> {
        decode(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Role;

    #[test]
    fn an_operation_reads_back_as_it_was_written() {
        let operation = ControlFrame::Operation(Operation {
            request_id: OperationId::mint([1; 16]),
            run_id: Some(RunId::mint([2; 16])),
            session_id: Some("s".into()),
            role: Role::Owner,
            client: Some("c".into()),
            after: None,
            request: serde_json::from_str(r#"{"type":"exec","command":{"argv":["true"]},"timeoutMs":5}"#).unwrap(),
        });
        assert_eq!(ControlFrame::decode(&operation.encode()).unwrap(), operation);
        let ready = ControlFrame::RecoveryReady { recovery_id: RecoveryId::mint([3; 16]), lease_ms: 120_000 };
        assert_eq!(ControlFrame::decode(&ready.encode()).unwrap(), ready);
        assert!(ready.encode().contains(r#""type":"recovery_ready""#), "{}", ready.encode());
        assert!(ControlFrame::decode(r#"{"type":"format_disk","requestId":"op_aaaaaaaaaaaaaaaaaaaaaa"}"#).is_err());
    }

    #[test]
    fn input_names_the_run_it_is_for() {
        let text = r#"{"requestId":"op_aaaaaaaaaaaaaaaaaaaaaa","runId":"run_aaaaaaaaaaaaaaaaaaaaaa","role":"operator","type":"exec_stdin","data":"AA==","close":false}"#;
        let frame = ControlFrame::decode(text).unwrap();
        let ControlFrame::Operation(operation) = &frame else { panic!("{frame:?}") };
        assert_eq!(operation.check(), Ok(()));
        assert_eq!(frame.encode(), text);
    }

    #[test]
    fn output_survives_whatever_its_bytes_are() {
        let frame = WorkerFrame::ExecOutput {
            run_id: RunId::mint([2; 16]),
            stream: Stream::Stderr,
            offset: 7,
            data: Bytes::from_static(b"\xff\x00\xe2\x89"),
        };
        assert_eq!(WorkerFrame::decode(&frame.encode()).unwrap(), frame);
        assert!(frame.encode().contains(r#""runId":"run_"#) && frame.encode().contains(r#""data":"/wDiiQ==""#));
    }
}
