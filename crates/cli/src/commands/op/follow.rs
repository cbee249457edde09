//! Watching an operation: its output where it belongs, or as lines of JSON, to its end.

use std::io::Write as _;
use std::process::ExitCode;

use bytes::Bytes;
use holdfast_core::operation::{Outcome, Stream, bytes_text};
use holdfast_host::api::client::{Follower, OperationView, Piece};
use serde::Serialize;

use super::progress::Progress;
use crate::args::Folders;
use crate::failure::Failure;
use crate::print;

/// What `op run` ends with when the program has no exit code of its own.
pub const NO_EXIT_CODE: u8 = 125;

/// Copies output, from an offset, until the operation has ended.
pub async fn to_the_end(folders: &Folders, id: &str, stream: Option<Stream>, offset: u64) -> Result<ExitCode, Failure> {
    let follower = Follower::new(folders.dirs()?, id);
    let progress = Progress::new(id);
    let watched = watch(folders, &follower, &progress, stream, offset).await?;
    progress.end();
    end(folders, &watched)
}

/// What came of watching an operation.
pub struct Watched {
    /// How it ended.
    pub view: OperationView,
    /// Output that was not kept, in bytes.
    pub missing: u64,
}

/// The same; returns how it ended.
pub async fn watch(
    folders: &Folders,
    follower: &Follower,
    progress: &Progress,
    stream: Option<Stream>,
    offset: u64,
) -> Result<Watched, Failure> {
    let view = follower.view(|why| progress.say(waits(why))).await?;
    let wanted = |one: &Stream| stream.is_none_or(|asked| asked == *one);
    let wanted: Vec<Stream> = view.streams().iter().copied().filter(wanted).collect();
    let missing = match wanted[..] {
        [] => 0,
        [one] => copy(folders, follower, progress, one, offset).await?,
        [one, other, ..] => {
            let both =
                (copy(folders, follower, progress, one, offset), copy(folders, follower, progress, other, offset));
            let (one, other) = tokio::try_join!(both.0, both.1)?;
            one + other
        }
    };
    // Whatever has no output of its own ends too.
    Ok(Watched { view: follower.end(|why| progress.say(waits(why))).await?, missing })
}

/// Returns how many bytes were not kept.
async fn copy(
    folders: &Folders,
    follower: &Follower,
    progress: &Progress,
    stream: Stream,
    mut at: u64,
) -> Result<u64, Failure> {
    let mut missing = 0;
    loop {
        match follower.next(stream, at, |why| progress.say(waits(why))).await? {
            Piece::Bytes { bytes, next, end } => {
                progress.around(&bytes, || show(folders, stream, at, &bytes))?;
                at = next;
                if end {
                    return Ok(missing);
                }
                progress.say(format!("{} bytes of {}", at, stream.as_str()));
            }
            Piece::Gone(next) => {
                progress.around(b"\n", || tell_gap(folders, stream, at, next))?;
                missing += next - at;
                at = next;
            }
        }
    }
}

fn waits(why: &str) -> String {
    format!("waiting, the operation goes on: {}", print::shown(why))
}

/// A line of `--json`.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event<'a> {
    /// It stands at the relay.
    Started { operation: &'a OperationView },
    /// Output, as base64.
    Output {
        stream: Stream,
        /// In bytes from the stream's beginning.
        offset: u64,
        #[serde(with = "bytes_text")]
        data: Bytes,
    },
    /// Bytes that were not kept.
    Gap { stream: Stream, offset: u64, next: u64 },
    /// It goes on; this command does not.
    Left { operation: &'a str },
    /// The end, and how many bytes of its output were not kept.
    End { operation: &'a OperationView, missing: u64 },
}

/// Output: standard error where it belongs, everything else to stdout, or a line of JSON. A reader that left ends the copy.
pub fn show(folders: &Folders, stream: Stream, offset: u64, bytes: &[u8]) -> Result<(), Failure> {
    if folders.json && bytes.is_empty() {
        return Ok(());
    }
    if folders.json {
        return print::json(&Event::Output { stream, offset, data: Bytes::copy_from_slice(bytes) });
    }
    let written = match stream {
        Stream::Stderr => std::io::stderr().lock().write_all(bytes),
        Stream::Stdout | Stream::Pty => {
            let mut out = std::io::stdout().lock();
            out.write_all(bytes).and_then(|()| out.flush())
        }
    };
    Ok(written?)
}

/// Says what of a stream was not kept.
pub fn tell_gap(folders: &Folders, stream: Stream, offset: u64, next: u64) -> Result<(), Failure> {
    match folders.json {
        true => print::json(&Event::Gap { stream, offset, next })?,
        false => print::note(&format!("holdfast: {} bytes of {} were not kept", next - offset, stream.as_str())),
    }
    Ok(())
}

/// The exit code of an operation's end, after a word about it if it is no program's own. Output with a hole in it is no success.
pub fn end(folders: &Folders, watched: &Watched) -> Result<ExitCode, Failure> {
    let view = &watched.view;
    if folders.json {
        print::json(&Event::End { operation: view, missing: watched.missing })?;
    }
    let exit = match &view.outcome {
        Some(Outcome::Completed { exit, .. }) => exit.as_ref(),
        _ => None,
    };
    match exit.map(|exit| (exit.code, exit.signal)) {
        Some(_) if watched.missing > 0 => Ok(ExitCode::from(NO_EXIT_CODE)),
        Some((Some(code), _)) => Ok(ExitCode::from(u8::try_from(code & 0xff).unwrap_or(NO_EXIT_CODE))),
        // As a shell says it.
        Some((None, Some(signal))) => Ok(ExitCode::from(u8::try_from(128 + signal).unwrap_or(NO_EXIT_CODE))),
        _ if matches!(view.outcome, Some(Outcome::Completed { .. })) => Ok(ExitCode::SUCCESS),
        _ => {
            if !folders.json {
                super::lines(view).iter().for_each(|line| print::note(&format!("holdfast: {line}")));
            }
            Ok(ExitCode::from(NO_EXIT_CODE))
        }
    }
}
