//! One socket's frames, decoded and put together — outside the switchboard's lock.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use crate::id::CallId;
use crate::limits;
use crate::wire::{DaemonFrame, Numbered, ToolResult, ToolResultChunk, WireError};

/// A decoded frame and, if it was the last chunk of a result, the whole result.
pub struct Arrival {
    /// The frame; a chunk's `data` has been taken out.
    pub frame: Result<Numbered<DaemonFrame>, WireError>,
    /// What the chunk completed.
    pub whole: Option<Result<ToolResult, ChunkError>>,
}

/// What is wrong with a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ChunkError {
    /// Not base64, not the next offset, other totals than before, or too long.
    #[error("a chunk out of place")]
    OutOfPlace,
    /// All bytes are there and their digest is another.
    #[error("the digest does not match")]
    Digest,
}

/// Decodes the frames of one socket and holds its unfinished transfers, oldest first: at most
/// [`limits::CHUNK_TRANSFERS_MAX`], each at most [`limits::FRAME_MAX`] bytes. One more makes the oldest go: most likely its
/// call was cancelled in the middle, and its rest never comes. Dropped with the socket, so that a
/// transfer cut in the middle starts again.
#[derive(Default)]
pub struct Intake(Vec<Transfer>);

struct Transfer {
    id: CallId,
    total: usize,
    sha256: String,
    hash: Sha256,
    text: Vec<u8>,
}

impl fmt::Debug for Intake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Intake").field("transfers", &self.0.len()).finish()
    }
}

impl Intake {
    /// Reads one text frame.
    pub fn read(&mut self, text: &str) -> Arrival {
        let mut frame = DaemonFrame::decode(text);
        let whole = match &mut frame {
            Ok(Numbered { frame: DaemonFrame::ToolResultChunk(chunk), .. }) => {
                let data = std::mem::take(&mut chunk.data);
                let whole = self.take(chunk, &data).transpose();
                if matches!(whole, Some(Err(_))) {
                    self.0.retain(|transfer| transfer.id != chunk.id);
                }
                whole
            }
            _ => None,
        };
        Arrival { frame, whole }
    }

    /// Reads one binary frame, which must be UTF-8.
    pub fn read_binary(&mut self, bytes: &[u8]) -> Arrival {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.read(text),
            Err(_) => WireError::InvalidUtf8.into(),
        }
    }

    fn take(&mut self, chunk: &ToolResultChunk, data: &str) -> Result<Option<ToolResult>, ChunkError> {
        let total = usize::try_from(chunk.total).ok().filter(|total| (1..=limits::FRAME_MAX).contains(total));
        let total = total.ok_or(ChunkError::OutOfPlace)?;
        let at = match self.0.iter().position(|transfer| transfer.id == chunk.id) {
            // Offset 0 again: the daemon began anew, its earlier pieces count no more.
            Some(at) if chunk.offset == 0 => {
                self.0[at] = Transfer::new(chunk, total);
                at
            }
            Some(at) => at,
            None => {
                if self.0.len() == limits::CHUNK_TRANSFERS_MAX {
                    self.0.remove(0);
                }
                self.0.push(Transfer::new(chunk, total));
                self.0.len() - 1
            }
        };
        let transfer = &mut self.0[at];
        let begun = transfer.text.len();
        if chunk.offset != begun as u64 || total != transfer.total || chunk.sha256 != transfer.sha256 {
            return Err(ChunkError::OutOfPlace);
        }
        STANDARD.decode_vec(data, &mut transfer.text).map_err(|_| ChunkError::OutOfPlace)?;
        if transfer.text.len() == begun || transfer.text.len() > total {
            return Err(ChunkError::OutOfPlace);
        }
        transfer.hash.update(&transfer.text[begun..]);
        if transfer.text.len() < total {
            return Ok(None);
        }
        self.0.remove(at).finish().map(Some)
    }
}

impl Transfer {
    fn new(chunk: &ToolResultChunk, total: usize) -> Self {
        Transfer {
            id: chunk.id.clone(),
            total,
            sha256: chunk.sha256.clone(),
            hash: Sha256::new(),
            // Grows with what really came, so that a claimed total costs nothing.
            text: Vec::new(),
        }
    }

    fn finish(self) -> Result<ToolResult, ChunkError> {
        if data_encoding::HEXLOWER.encode(&self.hash.finalize()) != self.sha256 {
            return Err(ChunkError::Digest);
        }
        let text = String::from_utf8(self.text).map_err(|_| ChunkError::OutOfPlace)?;
        ToolResult::decode(&text).ok().filter(|result| result.id == self.id).ok_or(ChunkError::OutOfPlace)
    }
}

impl From<WireError> for Arrival {
    fn from(error: WireError) -> Self {
        Arrival { frame: Err(error), whole: None }
    }
}

impl From<DaemonFrame> for Arrival {
    /// A frame without a number.
    fn from(frame: DaemonFrame) -> Self {
        Arrival { frame: Ok(Numbered { n: None, frame }), whole: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(id: &CallId, whole: &str, size: usize) -> Vec<ToolResultChunk> {
        let sha256 = data_encoding::HEXLOWER.encode(&Sha256::digest(whole.as_bytes()));
        let piece = |(i, bytes): (usize, &[u8])| ToolResultChunk {
            id: id.clone(),
            offset: (i * size) as u64,
            total: whole.len() as u64,
            sha256: sha256.clone(),
            data: STANDARD.encode(bytes),
        };
        whole.as_bytes().chunks(size).enumerate().map(piece).collect()
    }

    fn feed(intake: &mut Intake, chunk: ToolResultChunk) -> Option<Result<ToolResult, ChunkError>> {
        intake.read(&DaemonFrame::ToolResultChunk(chunk).encode(None)).whole
    }

    fn result(id: &CallId, raw: &str) -> String {
        format!(r#"{{"type":"tool_result","id":"{id}","ok":true,"result":{raw}}}"#)
    }

    #[test]
    fn chunks_of_two_results_mixed_give_both_byte_identical() {
        let (a, b) = (CallId::mint([1; 32]), CallId::mint([2; 32]));
        let (raw_a, raw_b) = (format!("\"{}\"", "é".repeat(500)), format!("[{}1.10]", "1e2,".repeat(300)));
        let mut intake = Intake::default();
        let (pa, pb) = (pieces(&a, &result(&a, &raw_a), 100), pieces(&b, &result(&b, &raw_b), 90));
        let mut done = Vec::new();
        for i in 0..pa.len().max(pb.len()) {
            for chunk in [pa.get(i), pb.get(i)].into_iter().flatten() {
                done.extend(feed(&mut intake, chunk.clone()));
            }
        }
        let mut raws: Vec<_> =
            done.into_iter().map(|r| r.expect("whole").outcome.expect("ok").get().to_owned()).collect();
        raws.sort();
        assert_eq!(raws, [raw_a, raw_b]);
        assert!(intake.0.is_empty());
    }

    #[test]
    fn a_wrong_digest_offset_total_or_payload_is_an_error_and_forgets_the_transfer() {
        let id = CallId::mint([1; 32]);
        let good = pieces(&id, &result(&id, "\"abcdefghijklmnopqrstuvwxyz\""), 40);
        type Case = (fn(&mut ToolResultChunk), ChunkError);
        let cases: [Case; 6] = [
            (
                |c| c.data = STANDARD.encode(vec![b'x'; STANDARD.decode(&c.data).expect("base64").len()]),
                ChunkError::Digest,
            ),
            (|c| c.offset += 1, ChunkError::OutOfPlace),
            (|c| c.total += 1, ChunkError::OutOfPlace),
            (|c| c.sha256 = "00".into(), ChunkError::OutOfPlace),
            (|c| c.data = "*".into(), ChunkError::OutOfPlace),
            (|c| c.data = String::new(), ChunkError::OutOfPlace),
        ];
        for (spoil, want) in cases {
            let mut intake = Intake::default();
            let mut chunks = good.clone();
            spoil(chunks.last_mut().expect("one"));
            let mut ends: Vec<_> = chunks.into_iter().filter_map(|c| feed(&mut intake, c)).collect();
            assert_eq!(ends.pop().expect("an error").map(|_| ()), Err(want));
            assert!(intake.0.is_empty());
        }
    }

    #[test]
    fn a_transfer_that_begins_anew_counts_from_its_new_beginning() {
        let id = CallId::mint([1; 32]);
        let chunks = pieces(&id, &result(&id, "\"abcdefghijklmnopqrstuvwxyz\""), 40);
        let mut intake = Intake::default();
        assert!(feed(&mut intake, chunks[0].clone()).is_none());
        let whole: Vec<_> = chunks.into_iter().filter_map(|c| feed(&mut intake, c)).collect();
        assert!(matches!(whole.as_slice(), [Ok(_)]));
    }

    #[test]
    fn transfers_at_once_are_bounded_and_one_that_was_given_up_makes_room() {
        let mut intake = Intake::default();
        let all = |i: u8| {
            let id = CallId::mint([i; 32]);
            pieces(&id, &result(&id, "\"abcdefghijklmnopqrstuvwxyz\""), 40)
        };
        for i in 0..limits::CHUNK_TRANSFERS_MAX {
            assert!(feed(&mut intake, all(i as u8).swap_remove(0)).is_none());
        }
        let whole: Vec<_> = all(99).into_iter().filter_map(|c| feed(&mut intake, c)).collect();
        assert!(matches!(whole.as_slice(), [Ok(_)]));
        assert_eq!(intake.0.len(), limits::CHUNK_TRANSFERS_MAX - 1);
        assert!(matches!(feed(&mut intake, all(0).swap_remove(1)), Some(Err(ChunkError::OutOfPlace))));
    }
}
