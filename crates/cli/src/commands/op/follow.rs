//! Watching an operation: its output where it belongs, to its end.

use std::io::Write as _;
use std::process::ExitCode;

use holdfast_core::operation::{Outcome, Stream};
use holdfast_host::api::client::{Follower, OperationView, Piece};

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
    let watched = watch(&follower, &progress, stream, offset).await?;
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
        [one] => copy(follower, progress, one, offset).await?,
        [one, other, ..] => {
            let both = (copy(follower, progress, one, offset), copy(follower, progress, other, offset));
            let (one, other) = tokio::try_join!(both.0, both.1)?;
            one + other
        }
    };
    // Whatever has no output of its own ends too.
    Ok(Watched { view: follower.end(|why| progress.say(waits(why))).await?, missing })
}

/// Returns how many bytes were not kept.
async fn copy(follower: &Follower, progress: &Progress, stream: Stream, mut at: u64) -> Result<u64, Failure> {
    let mut missing = 0;
    loop {
        match follower.next(stream, at, |why| progress.say(waits(why))).await? {
            Piece::Bytes { bytes, next, end } => {
                progress.around(&bytes, || write(stream, &bytes))?;
                at = next;
                if end {
                    return Ok(missing);
                }
                progress.say(format!("{} bytes of {}", at, stream.as_str()));
            }
            Piece::Gone(next) => {
                progress.around(b"\n", || tell_gap(stream, next - at));
                missing += next - at;
                at = next;
            }
        }
    }
}

fn waits(why: &str) -> String {
    format!("waiting, the operation goes on: {}", print::shown(why))
}

/// Standard error where it belongs, everything else to stdout. A reader that left ends the copy.
pub fn write(stream: Stream, bytes: &[u8]) -> Result<(), Failure> {
    let written = match stream {
        Stream::Stderr => std::io::stderr().lock().write_all(bytes),
        Stream::Stdout | Stream::Pty => {
            let mut out = std::io::stdout().lock();
            out.write_all(bytes).and_then(|()| out.flush())
        }
    };
    Ok(written?)
}

/// Says how much of a stream was not kept.
pub fn tell_gap(stream: Stream, bytes: u64) {
    eprintln!("holdfast: {bytes} bytes of {} were not kept", stream.as_str());
}

/// The exit code of an operation's end, after a word about it if it is no program's own. Output with a hole in it is no success.
pub fn end(folders: &Folders, watched: &Watched) -> Result<ExitCode, Failure> {
    let view = &watched.view;
    if folders.json {
        eprintln!("{}", serde_json::to_string(view).map_err(|e| Failure::plain(e.to_string()))?);
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
                super::lines(view).iter().for_each(|line| eprintln!("holdfast: {line}"));
            }
            Ok(ExitCode::from(NO_EXIT_CODE))
        }
    }
}
