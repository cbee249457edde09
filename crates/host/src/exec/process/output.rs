//! What is kept of a program's output.

use std::collections::VecDeque;
use std::sync::Arc;

use base64::Engine as _;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The first and the last bytes of a stream of any length.
#[derive(Default)]
pub(crate) struct HeadTail {
    half: usize,
    head: Vec<u8>,
    /// Up to twice `half`, so that it is moved seldom.
    tail: Vec<u8>,
    dropped: u64,
}

/// A stream as results show it.
pub(crate) struct Shown {
    pub(crate) text: String,
    /// The kept bytes, when they are no UTF-8.
    pub(crate) base64: Option<String>,
    pub(crate) truncated_bytes: u64,
}

impl HeadTail {
    pub(crate) fn keeping(bytes: usize) -> HeadTail {
        HeadTail { half: bytes / 2, ..HeadTail::default() }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let to_head = bytes.len().min(self.half - self.head.len());
        let (head, mut rest) = bytes.split_at(to_head);
        self.head.extend_from_slice(head);
        if rest.len() > self.half {
            self.dropped += (self.tail.len() + rest.len() - self.half) as u64;
            self.tail.clear();
            rest = &rest[rest.len() - self.half..];
        }
        self.tail.extend_from_slice(rest);
        if self.tail.len() > 2 * self.half {
            self.trim();
        }
    }

    fn trim(&mut self) {
        let over = self.tail.len().saturating_sub(self.half);
        self.tail.drain(..over);
        self.dropped += over as u64;
    }

    /// Bytes of the whole stream so far.
    pub(crate) fn total(&self) -> u64 {
        (self.head.len() + self.tail.len()) as u64 + self.dropped
    }

    /// Head and tail with a line between them that says what is missing; cut between characters.
    pub(crate) fn shown(&mut self) -> Shown {
        self.trim();
        if self.dropped == 0 {
            let whole = [&self.head[..], &self.tail[..]].concat();
            let (text, base64) = readable(whole);
            return Shown { text, base64, truncated_bytes: 0 };
        }
        let head = &self.head[..whole_characters(&self.head)];
        let tail = &self.tail[self.tail.iter().take(3).take_while(|b| (**b as i8) < -0x40).count()..];
        let truncated_bytes = self.dropped + (self.head.len() - head.len() + self.tail.len() - tail.len()) as u64;
        let both = |omitted: &[u8]| [head, omitted, tail].concat();
        let base64 = std::str::from_utf8(&both(b"")).is_err().then(|| encode(&both(b"")));
        let gap = format!("\n[... {truncated_bytes} bytes omitted ...]\n");
        let text = String::from_utf8_lossy(&both(gap.as_bytes())).into_owned();
        Shown { text, base64, truncated_bytes }
    }
}

/// The last bytes of a stream, addressed by their offset in it.
#[derive(Default)]
pub(in crate::exec) struct Ring {
    bytes: VecDeque<u8>,
    /// Offset of the first byte that is kept.
    start: u64,
    max: usize,
}

impl Ring {
    pub(in crate::exec) fn keeping(max: usize) -> Ring {
        Ring { max, ..Ring::default() }
    }

    pub(in crate::exec) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        let over = self.bytes.len().saturating_sub(self.max);
        self.bytes.drain(..over);
        self.start += over as u64;
    }

    /// Offset behind the last byte.
    pub(in crate::exec) fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    /// At most `max` bytes from `offset`, or from the first byte kept: where they start, and the bytes.
    pub(in crate::exec) fn from(&self, offset: u64, max: usize) -> (u64, Vec<u8>) {
        let at = offset.clamp(self.start, self.end());
        let bytes = self.bytes.range((at - self.start) as usize..).take(max).copied().collect();
        (at, bytes)
    }
}

/// Bytes as text, and as base64 too when they are no UTF-8.
pub(in crate::exec) fn readable(bytes: Vec<u8>) -> (String, Option<String>) {
    match String::from_utf8(bytes) {
        Ok(text) => (text, None),
        Err(e) => (String::from_utf8_lossy(e.as_bytes()).into_owned(), Some(encode(e.as_bytes()))),
    }
}

/// Length without an incomplete character at the end.
pub(in crate::exec) fn whole_characters(bytes: &[u8]) -> usize {
    let from = bytes.len().saturating_sub(3);
    match std::str::from_utf8(&bytes[from..]) {
        Err(e) if e.error_len().is_none() => from + e.valid_up_to(),
        Err(e) => {
            // The window may begin inside a character; what matters is whether one is cut off at its end.
            let rest = from + e.valid_up_to() + e.error_len().unwrap_or(0);
            match std::str::from_utf8(&bytes[rest..]) {
                Err(e) if e.error_len().is_none() => rest + e.valid_up_to(),
                _ => bytes.len(),
            }
        }
        Ok(_) => bytes.len(),
    }
}

fn encode(bytes: &[u8]) -> String {
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// Reads a stream to its end into something that keeps part of it.
pub(super) async fn pour<K>(mut from: impl AsyncRead + Unpin, into: Arc<Mutex<K>>, push: impl Fn(&mut K, &[u8])) {
    let mut block = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = from.read(&mut block).await {
        push(&mut into.lock(), &block[..read]);
    }
}
