//! Log files: JSON lines, private, rolled by size, without secrets.
//!
//! `rmcp` never logs below `warn`: its debug lines hold the arguments of calls.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, IsTerminal as _, Write};
use std::path::{Path, PathBuf};

use holdfast_core::limits;
use tracing::level_filters::LevelFilter;
use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer as _, Registry, reload};

use crate::config::LogLevel;
use crate::files::{self, FileError};

/// The log of this process. Dropping it writes what still waits.
pub struct Logs {
    level: reload::Handle<Targets, Registry>,
    _writer: WorkerGuard,
}

impl std::fmt::Debug for Logs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Logs")
    }
}

impl Logs {
    /// Starts logging to a folder, and warnings to stderr. Once per process; a second call keeps the first log.
    pub fn start(dir: &Path, level: LogLevel) -> Result<Logs, FileError> {
        files::make_dir(dir)?;
        let file = Rolling::open(dir).map_err(FileError::io(dir))?;
        let (writer, guard) =
            NonBlockingBuilder::default().buffered_lines_limit(limits::LOG_QUEUE).lossy(true).finish(file);
        let (filter, handle) = reload::Layer::new(targets(level));
        let lines = tracing_subscriber::fmt::layer().json().flatten_event(true).with_writer(writer).with_filter(filter);
        let shown = tracing_subscriber::fmt::layer()
            .with_writer(io::stderr)
            .with_ansi(io::stderr().is_terminal())
            .with_target(false)
            .with_filter(LevelFilter::WARN);
        // A second start in one process (tests, an embedding shell) keeps what is there.
        let _ = tracing_subscriber::registry().with(lines).with(shown).try_init();
        Ok(Logs { level: handle, _writer: guard })
    }

    /// Changes the level of a running log.
    pub fn set_level(&self, level: LogLevel) {
        // The handle fails only when the log is gone.
        let _ = self.level.reload(targets(level));
    }
}

fn targets(level: LogLevel) -> Targets {
    let ours = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
    };
    let others = ours.min(LevelFilter::WARN);
    Targets::new()
        .with_default(others)
        .with_target("holdfast", ours)
        .with_target("holdfast_core", ours)
        .with_target("holdfast_host", ours)
        .with_target("holdfast_relay", ours)
}

/// The newest `lines` lines of a folder's log, oldest first; at most [`limits::LOG_TAIL_MAX`].
pub fn tail(dir: &Path, lines: usize) -> io::Result<Vec<String>> {
    let wanted = lines.min(limits::LOG_TAIL_MAX);
    let mut newest_first: Vec<Vec<String>> = Vec::new();
    let mut count = 0;
    for index in 0..limits::LOG_FILES {
        if count >= wanted {
            break;
        }
        let file = match File::open(path(dir, index)) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => break,
            other => other?,
        };
        let all = BufReader::new(file).lines().map_while(Result::ok).collect::<Vec<_>>();
        count += all.len();
        newest_first.push(all);
    }
    let mut all: Vec<String> = newest_first.into_iter().rev().flatten().collect();
    Ok(all.split_off(all.len().saturating_sub(wanted)))
}

/// The current log file of a folder.
pub fn current(dir: &Path) -> PathBuf {
    path(dir, 0)
}

fn path(dir: &Path, index: usize) -> PathBuf {
    match index {
        0 => dir.join("holdfast.log"),
        n => dir.join(format!("holdfast.{n}.log")),
    }
}

struct Rolling {
    dir: PathBuf,
    file: File,
    written: u64,
}

impl Rolling {
    fn open(dir: &Path) -> io::Result<Rolling> {
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(current(dir))?;
        let written = file.metadata()?.len();
        Ok(Rolling { dir: dir.to_path_buf(), file, written })
    }

    fn roll(&mut self) -> io::Result<()> {
        for index in (1..limits::LOG_FILES).rev() {
            match fs::rename(path(&self.dir, index - 1), path(&self.dir, index)) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
                _ => {}
            }
        }
        *self = Rolling::open(&self.dir)?;
        Ok(())
    }
}

impl Write for Rolling {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.written > 0 && self.written + line.len() as u64 > limits::LOG_FILE_MAX as u64 {
            self.roll()?;
        }
        let n = self.file.write(line)?;
        self.written += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_roll_by_size_and_the_oldest_goes() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = Rolling::open(dir.path()).unwrap();
        let line = vec![b'x'; limits::LOG_FILE_MAX / 2 + 1];
        for _ in 0..limits::LOG_FILES + 2 {
            log.write_all(&line).unwrap();
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), limits::LOG_FILES);
        assert_eq!(fs::metadata(current(dir.path())).unwrap().len(), line.len() as u64);
    }

    #[test]
    fn the_tail_reaches_over_files_and_keeps_the_order() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(path(dir.path(), 1), "a\nb\n").unwrap();
        fs::write(current(dir.path()), "c\nd\n").unwrap();
        assert_eq!(tail(dir.path(), 3).unwrap(), ["b", "c", "d"]);
        assert_eq!(tail(dir.path(), 1).unwrap(), ["d"]);
        assert_eq!(tail(&dir.path().join("none"), 9).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn other_crates_never_log_below_warn() {
        let debug = targets(LogLevel::Debug);
        assert!(!debug.would_enable("hyper::server", &tracing::Level::INFO));
        assert!(debug.would_enable("hyper", &tracing::Level::WARN));
        assert!(debug.would_enable("holdfast_host::link", &tracing::Level::DEBUG));
    }
}
