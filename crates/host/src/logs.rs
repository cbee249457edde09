//! Log files: JSON lines, private, rolled by size, without secrets.
//!
//! `rmcp` never logs below `warn`: its debug lines hold the arguments of calls.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, IsTerminal as _, Read as _, Write};
use std::path::{Path, PathBuf};

use holdfast_core::limits;
use serde::Deserialize;
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

/// The newest `lines` lines of a folder's log that are `least` or worse, oldest first; at most [`limits::LOG_TAIL_MAX`].
pub fn tail(dir: &Path, lines: usize, least: LogLevel) -> io::Result<Vec<String>> {
    Ok(follow(dir, lines, least)?.0)
}

/// The same, and what reads the lines that come after them.
pub fn follow(dir: &Path, lines: usize, least: LogLevel) -> io::Result<(Vec<String>, Follower)> {
    let wanted = lines.min(limits::LOG_TAIL_MAX);
    let mut follower = Follower { dir: dir.to_path_buf(), file: None, rest: Vec::new(), least };
    let mut newest_first = vec![follower.more()?];
    for index in 1..limits::LOG_FILES {
        if newest_first.iter().map(Vec::len).sum::<usize>() >= wanted {
            break;
        }
        let file = match File::open(path(dir, index)) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => break,
            other => other?,
        };
        newest_first.push(BufReader::new(file).lines().map_while(Result::ok).filter(|l| shows(l, least)).collect());
    }
    let mut all: Vec<String> = newest_first.into_iter().rev().flatten().collect();
    Ok((all.split_off(all.len().saturating_sub(wanted)), follower))
}

/// Reads what is added to a log, over the rolling of its files.
#[derive(Debug)]
pub struct Follower {
    dir: PathBuf,
    file: Option<File>,
    /// The beginning of a line that is not complete yet.
    rest: Vec<u8>,
    least: LogLevel,
}

impl Follower {
    /// The lines that were added since the last look.
    pub fn more(&mut self) -> io::Result<Vec<String>> {
        let mut lines = Vec::new();
        loop {
            let file = match &mut self.file {
                Some(file) => file,
                None => match File::open(current(&self.dir)) {
                    Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(lines),
                    opened => self.file.insert(opened?),
                },
            };
            // Looked at before reading: a file that was rolled gets no more lines.
            let rolled = is_rolled(file, &current(&self.dir))?;
            file.take(2 * limits::LOG_FILE_MAX as u64).read_to_end(&mut self.rest)?;
            let complete = self.rest.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
            let text = String::from_utf8_lossy(&self.rest[..complete]).into_owned();
            self.rest.drain(..complete);
            lines.extend(text.lines().filter(|line| shows(line, self.least)).map(str::to_owned));
            if !rolled {
                return Ok(lines);
            }
            self.file = None;
            self.rest.clear();
        }
    }
}

/// Whether another file stands at the path by now.
fn is_rolled(file: &File, path: &Path) -> io::Result<bool> {
    let now = match fs::metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
        now => now?,
    };
    let open = file.metadata()?;
    #[cfg(unix)]
    return Ok(std::os::unix::fs::MetadataExt::ino(&now) != std::os::unix::fs::MetadataExt::ino(&open));
    #[cfg(not(unix))]
    Ok(now.len() < open.len())
}

fn shows(line: &str, least: LogLevel) -> bool {
    #[derive(Deserialize)]
    struct Line<'a> {
        level: &'a str,
    }
    let level = match serde_json::from_str::<Line<'_>>(line) {
        Ok(Line { level: "ERROR" }) => LogLevel::Error,
        Ok(Line { level: "WARN" }) => LogLevel::Warn,
        Ok(Line { level: "INFO" }) => LogLevel::Info,
        _ => LogLevel::Debug,
    };
    level <= least
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
        let all = LogLevel::Debug;
        assert_eq!(tail(dir.path(), 3, all).unwrap(), ["b", "c", "d"]);
        assert_eq!(tail(dir.path(), 1, all).unwrap(), ["d"]);
        assert_eq!(tail(&dir.path().join("none"), 9, all).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_follower_gets_each_line_once_over_the_rolling_of_files() {
        let dir = tempfile::tempdir().unwrap();
        let (known, mut follower) = follow(dir.path(), 9, LogLevel::Debug).unwrap();
        assert_eq!(known, Vec::<String>::new());
        let mut log = Rolling::open(dir.path()).unwrap();
        log.write_all(b"a\nb\nc").unwrap();
        assert_eq!(follower.more().unwrap(), ["a", "b"]);
        log.write_all(b"c\n").unwrap();
        log.roll().unwrap();
        log.write_all(b"d\n").unwrap();
        assert_eq!(follower.more().unwrap(), ["cc", "d"]);
        assert_eq!(follower.more().unwrap(), Vec::<String>::new());
        let (known, mut second) = follow(dir.path(), 2, LogLevel::Debug).unwrap();
        log.write_all(b"e\n").unwrap();
        assert_eq!((known, second.more().unwrap()), (vec!["cc".into(), "d".into()], vec!["e".into()]));
    }

    #[test]
    fn a_level_shows_itself_and_what_is_worse() {
        let dir = tempfile::tempdir().unwrap();
        let lines = ["ERROR", "WARN", "INFO", "DEBUG"].map(|level| format!("{{\"level\":\"{level}\"}}\n"));
        fs::write(current(dir.path()), lines.concat()).unwrap();
        for (least, shown) in [(LogLevel::Error, 1), (LogLevel::Warn, 2), (LogLevel::Info, 3), (LogLevel::Debug, 4)] {
            assert_eq!(tail(dir.path(), 9, least).unwrap().len(), shown);
        }
        assert_eq!(tail(dir.path(), 1, LogLevel::Warn).unwrap(), ["{\"level\":\"WARN\"}"]);
    }

    #[test]
    fn other_crates_never_log_below_warn() {
        let debug = targets(LogLevel::Debug);
        assert!(!debug.would_enable("hyper::server", &tracing::Level::INFO));
        assert!(debug.would_enable("hyper", &tracing::Level::WARN));
        assert!(debug.would_enable("holdfast_host::link", &tracing::Level::DEBUG));
    }
}
