//! Long answers, line by line.

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use holdfast_core::limits;

/// Lines of a body, each at most [`limits::FRAME_MAX`]; a last one without an end counts too. Ends where the body breaks.
pub fn lines<E>(bytes: impl Stream<Item = Result<Bytes, E>>) -> impl Stream<Item = String> {
    futures_util::stream::unfold((Box::pin(bytes), Vec::new(), false), |(mut bytes, mut rest, mut ended)| async move {
        loop {
            if let Some(end) = rest.iter().position(|b| *b == b'\n') {
                let line: Vec<u8> = rest.drain(..=end).collect();
                return Some((String::from_utf8_lossy(&line).trim_end().to_owned(), (bytes, rest, ended)));
            }
            if ended {
                return None;
            }
            match bytes.next().await {
                Some(Ok(more)) if rest.len() + more.len() <= limits::FRAME_MAX => rest.extend_from_slice(&more),
                _ => {
                    ended = true;
                    if !rest.is_empty() {
                        rest.push(b'\n');
                    }
                }
            }
        }
    })
}
