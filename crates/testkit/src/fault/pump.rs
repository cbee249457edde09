//! One direction of one connection.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::frames::{Piece, Splitter};
use super::{Control, Direction, Path};

/// Largest write when nothing asks for less, in bytes.
const WRITE_MAX: usize = 64 * 1024;
/// A slowed direction writes this often.
const SLOW_TICK: Duration = Duration::from_millis(50);

/// Waits until this connection may carry bytes.
pub async fn passable(number: u64, control: &Control) {
    let mut faults = control.faults.subscribe();
    // The sender lives as long as the proxy; without it there is nothing to wait for.
    let _ = faults.wait_for(|faults| faults.path != Path::BlackHole && number >= faults.stranded_before).await;
}

/// Carries bytes until the reader ends (`Ok`, the end is passed on) or the direction breaks (`Err`).
pub async fn pump(
    number: u64,
    direction: Direction,
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    control: &Control,
) -> io::Result<()> {
    let mut splitter = Splitter::default();
    let mut buffer = vec![0; WRITE_MAX];
    let (mut frames_here, mut written) = (0, 0);
    loop {
        passable(number, control).await;
        let read = from.read(&mut buffer).await?;
        if read == 0 {
            passable(number, control).await;
            return to.shutdown().await;
        }
        splitter.push(&buffer[..read]);
        while let Some(piece) = splitter.next_piece() {
            let (bytes, kind) = match piece {
                Piece::Other(bytes) => (bytes, None),
                Piece::Data { frame, payload, kind } => {
                    frames_here += 1;
                    let mut frames_in_all = 0;
                    control.count(direction, |seen| {
                        seen.frames += 1;
                        frames_in_all = seen.frames;
                    });
                    if control.swallows(direction, frames_here, frames_in_all, kind.as_deref()) {
                        control.count(direction, |seen| seen.swallowed += 1);
                        continue;
                    }
                    if let Some(kind) = &kind {
                        control.capture(kind, payload);
                    }
                    (frame, kind)
                }
            };
            write(number, direction, &bytes, &mut written, &mut to, control).await?;
            if let Some(kind) = kind {
                control.count(direction, |seen| *seen.kinds.entry(kind).or_default() += 1);
            }
        }
    }
}

/// Writes one piece as slowly and in as small parts as the flow demands.
async fn write(
    number: u64,
    direction: Direction,
    mut bytes: &[u8],
    written: &mut u64,
    to: &mut (impl AsyncWrite + Unpin),
    control: &Control,
) -> io::Result<()> {
    while !bytes.is_empty() {
        passable(number, control).await;
        let flow = control.flow(direction);
        let left = flow.truncate_after.map_or(u64::MAX, |end| end.saturating_sub(*written));
        if left == 0 {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        let per_tick = flow.rate.map(|rate| (rate as usize / 20).max(1));
        let size = [flow.slice, per_tick].into_iter().flatten().fold(WRITE_MAX, usize::min);
        let size = size.min(bytes.len()).min(usize::try_from(left).unwrap_or(usize::MAX));
        to.write_all(&bytes[..size]).await?;
        to.flush().await?;
        bytes = &bytes[size..];
        *written += size as u64;
        control.count(direction, |seen| seen.bytes += size as u64);
        if per_tick.is_some() {
            tokio::time::sleep(SLOW_TICK).await;
        }
    }
    Ok(())
}
