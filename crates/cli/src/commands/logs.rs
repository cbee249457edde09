//! `logs`: the log files, as they are or for people.

use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom};

use holdfast_core::limits;
use holdfast_host::logs::{current, tail};
use serde_json::Value;

use crate::args::{Folders, Level};
use crate::failure::Failure;
use crate::print;

pub async fn logs(folders: &Folders, lines: usize, follow: bool, level: Level) -> Result<(), Failure> {
    let dir = folders.dirs()?.logs();
    let path = current(&dir);
    let mut seen = std::fs::metadata(&path).map(|m| m.len()).unwrap_or(0);
    for line in tail(&dir, lines)? {
        show(folders, &line, level);
    }
    if !follow {
        return Ok(());
    }
    loop {
        tokio::time::sleep(limits::SHELL_TURN_MAX).await;
        let length = std::fs::metadata(&path).map(|m| m.len()).unwrap_or(0);
        if length < seen {
            // Rolled: a new file begins.
            seen = 0;
        }
        if length == seen {
            continue;
        }
        let mut file = std::fs::File::open(&path)?;
        file.seek(SeekFrom::Start(seen))?;
        let mut reader = BufReader::new(file);
        let mut line = String::new();
        while reader.read_line(&mut line)? > 0 && line.ends_with('\n') {
            seen += line.len() as u64;
            show(folders, line.trim_end(), level);
            line.clear();
        }
    }
}

fn show(folders: &Folders, line: &str, level: Level) {
    let Ok(entry) = serde_json::from_str::<Value>(line) else { return };
    let text = |key: &str| entry[key].as_str().unwrap_or_default();
    let of_entry = match text("level") {
        "ERROR" => Level::Error,
        "WARN" => Level::Warn,
        "INFO" => Level::Info,
        _ => Level::Debug,
    };
    if of_entry > level {
        return;
    }
    if folders.json {
        return print::line(line);
    }
    let known = ["timestamp", "level", "message", "target"];
    let fields = entry.as_object().into_iter().flatten().filter(|(key, _)| !known.contains(&key.as_str()));
    let fields = fields.map(|(key, value)| format!(" {key}={value}")).collect::<String>();
    print::line(&format!(
        "{} {:5} {}{}",
        text("timestamp"),
        text("level"),
        print::shown(text("message")),
        print::shown(&fields)
    ));
}
