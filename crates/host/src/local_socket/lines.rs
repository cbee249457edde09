//! One JSON object per line.

use std::io;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};

/// Reads lines of bounded length.
#[derive(Debug)]
pub(crate) struct Lines<S> {
    stream: BufReader<S>,
    /// What came of a line whose end has not come yet: a wait that was given up loses nothing.
    begun: Vec<u8>,
    max: usize,
}

impl<S: AsyncRead + Unpin> Lines<S> {
    /// Lines of at most `max` bytes, with their end.
    pub(crate) fn new(stream: S, max: usize) -> Self {
        Lines { stream: BufReader::new(stream), begun: Vec::new(), max }
    }

    /// The next line; `None` when the stream ended between two. Fails where it breaks, and at a line that is too long or no
    /// such object. Waiting may be given up and taken up again.
    pub(crate) async fn next<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let left = self.max.saturating_sub(self.begun.len()) as u64;
        (&mut self.stream).take(left).read_until(b'\n', &mut self.begun).await?;
        match self.begun.last() {
            None => Ok(None),
            Some(b'\n') => {
                let read = serde_json::from_slice(&self.begun);
                self.begun.clear();
                Ok(Some(read?))
            }
            Some(_) => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// Writes one line, to its end.
pub(crate) async fn write_line(to: &mut (impl AsyncWrite + Unpin), what: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    to.write_all(&line).await?;
    to.flush().await
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    #[tokio::test]
    async fn a_wait_that_was_given_up_in_the_middle_of_a_line_loses_nothing() {
        let (mut to, from) = tokio::io::duplex(64);
        let mut lines = Lines::new(from, 8);
        to.write_all(b"[1").await.unwrap();
        assert!(lines.next::<Vec<u8>>().now_or_never().is_none());
        to.write_all(b",2]\n").await.unwrap();
        assert_eq!(lines.next::<Vec<u8>>().await.unwrap(), Some(vec![1, 2]));
        to.write_all(b"[1,2,3]\n").await.unwrap();
        assert_eq!(lines.next::<Vec<u8>>().await.unwrap(), Some(vec![1, 2, 3]));
        to.write_all(b"[1,2,33]\n").await.unwrap();
        assert!(lines.next::<Vec<u8>>().await.is_err());
        drop(to);
    }

    #[tokio::test]
    async fn an_end_between_lines_is_one_and_within_a_line_is_a_break() {
        let mut lines = Lines::new(&b"[]\n"[..], 8);
        assert_eq!(lines.next::<Vec<u8>>().await.unwrap(), Some(vec![]));
        assert_eq!(lines.next::<Vec<u8>>().await.unwrap(), None);
        assert!(Lines::new(&b"[]"[..], 8).next::<Vec<u8>>().await.is_err());
    }
}
