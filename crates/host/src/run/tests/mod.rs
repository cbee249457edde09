//! Runners as they are: real processes.

mod ends;
mod others;
mod output;

use std::path::{Path, PathBuf};
use std::time::Duration;

use holdfast_core::id::{OperationId, RunId};
use holdfast_core::limits;
use holdfast_core::operation::{OnFull, Stream};
use holdfast_core::run::{Ask, End, Program, Spec, Tell, VERSION};

use nix::sys::signal::Signal;

use super::{Attached, Found, Starter, attach, folder, look, prepare, socket};
use crate::spool::{Read, Reader};

/// Far longer than anything here takes.
const LONG: Duration = Duration::from_secs(120);

/// A folder of runs.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Home {
        Home(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Prepares a run with what a test wants otherwise.
    fn run(&self, program: Program, change: impl FnOnce(&mut Spec)) -> PathBuf {
        let run = RunId::mint(rand::random());
        let folder = folder(self.path(), &run, 1);
        let mut spec = Spec {
            version: VERSION,
            operation: id(0),
            run,
            attempt: 1,
            program,
            cwd: self.path().to_str().unwrap().into(),
            env: vec![("PATH".into(), std::env::var("PATH").unwrap())],
            timeout: None,
            on_full: OnFull::Wait,
            quota: limits::SPOOL_RUN_MAX,
            lease: None,
            socket: socket(&folder).unwrap().to_str().unwrap().into(),
        };
        change(&mut spec);
        prepare(&folder, &spec).unwrap();
        folder
    }

    /// Starts a line of the shell.
    async fn sh(&self, line: &str, change: impl FnOnce(&mut Spec)) -> PathBuf {
        let folder = self.run(sh(line), change);
        starter().start(&folder).await.unwrap();
        folder
    }
}

/// A test that failed leaves no runner.
impl Drop for Home {
    fn drop(&mut self) {
        for folder in std::fs::read_dir(self.path()).unwrap().flatten() {
            if let Ok(Found::Lives(identity)) = look(&folder.path()) {
                kill(identity.pid, Signal::SIGTERM);
            }
        }
    }
}

fn sh(line: &str) -> Program {
    Program::Pipes { argv: vec!["sh".into(), "-c".into(), line.into()], stdin: true }
}

fn id(n: u8) -> OperationId {
    OperationId::mint([n; 16])
}

/// Starts runners of this test binary.
fn starter() -> Starter {
    let binary = std::env::current_exe().unwrap();
    let words = ["run::tests::the_runner_itself", "--exact", "--nocapture", "--test-threads=1"];
    Starter::of(std::iter::once(binary.into()).chain(words.map(Into::into)).collect())
}

/// What the test binary is when a test starts a runner; otherwise nothing.
#[test]
fn the_runner_itself() {
    let folder = std::env::args().next_back().map(PathBuf::from).filter(|path| path.join("meta").exists());
    if let Some(folder) = folder {
        // The harness has begun a line.
        println!();
        super::main(&folder);
        // Nobody reads what a test binary says in the end.
        std::process::exit(0);
    }
}

/// Waits until the runner of a folder is gone, and says how the program ended.
async fn ended(folder: &Path) -> End {
    let end = async {
        loop {
            match look(folder).unwrap() {
                Found::Gone { end, .. } => return end.expect("an end"),
                Found::Lives(_) => match attach(folder).await {
                    Ok(mut attached) => while attached.next().await.is_some() {},
                    Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
                },
                other => panic!("{other:?}"),
            }
        }
    };
    tokio::time::timeout(LONG, end).await.unwrap()
}

/// All bytes of a stream from an offset on; the gaps too.
fn all(folder: &Path, stream: Stream, from: u64) -> (Vec<u8>, Vec<(u64, u64)>) {
    let mut reader = Reader::new(folder.to_path_buf());
    let (mut bytes, mut gaps, mut at) = (Vec::new(), Vec::new(), from);
    loop {
        match reader.read(stream, at, limits::WORKER_OUTPUT_PIECE).unwrap() {
            Read::Bytes(more) => {
                at += more.len() as u64;
                bytes.extend_from_slice(&more);
            }
            Read::Gap { next } => {
                gaps.push((at, next));
                at = next;
            }
            Read::End => return (bytes, gaps),
        }
    }
}

fn text(folder: &Path, stream: Stream) -> String {
    String::from_utf8(all(folder, stream, 0).0).unwrap()
}

/// Waits until the runner tells something.
async fn told(attached: &mut Attached, wanted: impl Fn(&Tell) -> bool) -> Tell {
    let told = async {
        loop {
            let tell = attached.next().await.expect("the runner lives");
            if wanted(&tell) {
                return tell;
            }
        }
    };
    tokio::time::timeout(LONG, told).await.unwrap()
}

/// Waits until a stream has as many bytes.
async fn grown(folder: &Path, attached: &mut Attached, stream: Stream, bytes: u64) {
    while crate::spool::written(folder).unwrap().get(&stream).is_none_or(|written| *written < bytes) {
        told(attached, |tell| matches!(tell, Tell::Grew { .. })).await;
    }
}

async fn give(attached: &mut Attached, n: u8, data: &'static [u8], close: bool) -> Option<String> {
    let ask = Ask::Input { id: id(n), data: bytes::Bytes::from_static(data), close };
    attached.asker().ask(&ask).await.unwrap();
    let done = told(attached, |tell| matches!(tell, Tell::Done { id: done, .. } if *done == id(n))).await;
    let Tell::Done { error, .. } = done else { unreachable!() };
    error
}

fn kill(pid: u32, signal: Signal) {
    let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid.cast_signed()), signal);
}
