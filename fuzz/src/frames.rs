//! The link's frames, and results put together from chunks.

use holdfast_core::operation::Digest;
use holdfast_core::switchboard::Intake;
use holdfast_core::wire::worker::{ControlFrame, WorkerFrame};
use holdfast_core::wire::{DaemonFrame, RelayFrame};

/// What was understood can be written, and is understood again as the same.
pub fn relay_frame(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(read) = RelayFrame::decode(text) {
        let written = read.frame.encode(read.n);
        let again = RelayFrame::decode(&written).expect("what we write we can read");
        assert_eq!((again.n, again.frame.encode(again.n)), (read.n, written));
    }
}

/// As [`relay_frame`], the other way.
pub fn daemon_frame(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(read) = DaemonFrame::decode(text) {
        let written = read.frame.encode(read.n);
        let again = DaemonFrame::decode(&written).expect("what we write we can read");
        assert_eq!((again.n, again.frame.encode(again.n)), (read.n, written));
    }
}

/// The worker's socket, what the worker says: what was understood can be written and read again.
pub fn worker_frame(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(read) = WorkerFrame::decode(text) {
        let again = WorkerFrame::decode(&read.encode()).expect("what we write we can read");
        assert_eq!(std::mem::discriminant(&again), std::mem::discriminant(&read));
    }
}

/// As [`worker_frame`], the other way. What cannot be read may still name the operation it is about.
pub fn control_frame(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match ControlFrame::decode(text) {
        Ok(read) => {
            let again = ControlFrame::decode(&read.encode()).expect("what we write we can read");
            assert_eq!(std::mem::discriminant(&again), std::mem::discriminant(&read));
            if let (ControlFrame::Operation(first), ControlFrame::Operation(second)) = (&read, &again) {
                assert_eq!(Digest::of(first), Digest::of(second), "its identity survives the way");
            }
        }
        Err(_) => drop(ControlFrame::request_id(text)),
    }
}

/// Lines are frames of one socket. A result comes out whole or not at all.
pub fn chunks(bytes: &[u8]) {
    let mut intake = Intake::default();
    for line in bytes.split(|byte| *byte == b'\n') {
        let arrival = intake.read_binary(line);
        if let Some(Ok(result)) = arrival.whole {
            let text = DaemonFrame::ToolResult(result).encode(None);
            assert!(DaemonFrame::decode(&text).is_ok());
        }
    }
}
