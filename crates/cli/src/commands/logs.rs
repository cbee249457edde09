//! `logs`: the log files, as they are or for people.

use holdfast_core::limits;
use serde_json::Value;

use crate::args::{Folders, Level};
use crate::failure::Failure;
use crate::print;

pub async fn logs(folders: &Folders, lines: usize, follow: bool, level: Level) -> Result<(), Failure> {
    let dir = folders.dirs()?.logs();
    let (known, mut follower) = holdfast_host::logs::follow(&dir, lines, level.into())?;
    if known.is_empty() && !follow && !dir.exists() {
        return Err(Failure::plain(format!("{} does not exist: nothing ran on this data folder yet", dir.display())));
    }
    for line in known {
        show(folders, &line);
    }
    if !follow {
        return Ok(());
    }
    loop {
        tokio::time::sleep(limits::SHELL_TURN_MAX).await;
        for line in follower.more()? {
            show(folders, &line);
        }
    }
}

fn show(folders: &Folders, line: &str) {
    let Ok(entry) = serde_json::from_str::<Value>(line) else { return };
    if folders.json {
        return print::line(line);
    }
    let text = |key: &str| entry[key].as_str().unwrap_or_default();
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
