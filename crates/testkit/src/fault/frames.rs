//! Splits one direction's bytes into WebSocket frames. Anything that is no WebSocket passes as it comes.

use bytes::{Bytes, BytesMut};

/// A piece of a direction's bytes, in order.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece {
    /// Bytes that are no data frame: HTTP, a control frame, a fragment.
    Other(Bytes),
    /// One whole text or binary frame.
    Data {
        /// The frame as it came.
        frame: Bytes,
        /// Its payload, unmasked.
        payload: Vec<u8>,
        /// The `type` of its JSON; a worker's `hello` goes by the name `worker_hello`.
        kind: Option<String>,
    },
}

#[derive(Debug, Default)]
enum State {
    /// Before the blank line that ends the HTTP head.
    #[default]
    Head,
    /// After an upgrade.
    Frames,
    /// Not a WebSocket.
    Raw,
}

/// The splitter of one direction.
#[derive(Debug, Default)]
pub struct Splitter {
    state: State,
    held: BytesMut,
}

impl Splitter {
    /// Takes bytes in.
    pub fn push(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
    }

    /// The next piece, if one is whole.
    pub fn next_piece(&mut self) -> Option<Piece> {
        if self.held.is_empty() {
            return None;
        }
        match self.state {
            State::Raw => Some(Piece::Other(self.held.split().freeze())),
            State::Head => {
                let starts_like_http = self.held[0].is_ascii_uppercase();
                let end = self.held.windows(4).position(|w| w == b"\r\n\r\n").map(|at| at + 4);
                match end {
                    None if starts_like_http => None,
                    None => {
                        self.state = State::Raw;
                        self.next_piece()
                    }
                    Some(end) => {
                        let head = self.held.split_to(end).freeze();
                        let upgrades =
                            String::from_utf8_lossy(&head).to_ascii_lowercase().contains("upgrade: websocket");
                        self.state = if upgrades { State::Frames } else { State::Raw };
                        Some(Piece::Other(head))
                    }
                }
            }
            State::Frames => self.frame(),
        }
    }

    fn frame(&mut self) -> Option<Piece> {
        let held = &self.held[..];
        let (&first, &second) = (held.first()?, held.get(1)?);
        let (length, mut head) = match second & 0x7f {
            126 => (u64::from(u16::from_be_bytes(held.get(2..4)?.try_into().ok()?)), 4),
            127 => (u64::from_be_bytes(held.get(2..10)?.try_into().ok()?), 10),
            short => (u64::from(short), 2),
        };
        let mask: Option<[u8; 4]> = match second & 0x80 {
            0 => None,
            _ => Some(held.get(head..head + 4)?.try_into().ok()?),
        };
        head += if mask.is_some() { 4 } else { 0 };
        let end = head + usize::try_from(length).ok()?;
        if held.len() < end {
            return None;
        }
        let frame = self.held.split_to(end).freeze();
        let (final_fragment, opcode) = (first & 0x80 != 0, first & 0x0f);
        if !final_fragment || !matches!(opcode, 1 | 2) {
            return Some(Piece::Other(frame));
        }
        let mut payload = frame[head..].to_vec();
        if let Some(mask) = mask {
            payload.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
        }
        let kind = kind_of(&payload);
        Some(Piece::Data { frame, payload, kind })
    }
}

fn kind_of(payload: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Head {
        #[serde(rename = "type")]
        kind: String,
        #[serde(rename = "resumableProtocol")]
        worker: Option<u32>,
    }
    let Head { kind, worker } = serde_json::from_slice(payload).ok()?;
    Some(if worker.is_some() { format!("worker_{kind}") } else { kind })
}
