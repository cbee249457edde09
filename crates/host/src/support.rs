//! The support report: one text with what helps to find a fault, and nothing that opens a door.

use std::fmt::Write as _;
use std::path::Path;

use holdfast_core::limits;
use holdfast_core::redact::{HIDDEN, redact};
use holdfast_core::status::StatusSnapshot;

use crate::config::{self, Config, LogLevel};
use crate::doctor;
use crate::logs;
use crate::paths::Dirs;

/// The report. `running` is the status of the process that holds the data folder, if one does; `config` what is in force.
pub async fn text(dirs: &Dirs, running: Option<&StatusSnapshot>, config: Config) -> String {
    let mut text =
        format!("# Holdfast support report, {}\n\n## Doctor\n\n", jiff::Timestamp::now().strftime("%F %T UTC"));
    text.push_str(&doctor::examine(dirs, running).await.text());
    let (file, logs) = (dirs.config_file(), dirs.logs());
    let read = tokio::task::spawn_blocking(move || {
        let lines = logs::tail(&logs, limits::SUPPORT_LOG_LINES, LogLevel::Debug).unwrap_or_default();
        (config::view(&file, config), lines)
    });
    let Ok((view, lines)) = read.await else { return text };
    let _ = writeln!(text, "\n## Configuration\n\n{}: {}\n", view.path, view.error.as_deref().unwrap_or("valid"));
    text.push_str(&toml::to_string(&view.config).unwrap_or_default());
    if let Some(running) = running {
        let mut shown = running.clone();
        // What clients run is theirs.
        for question in &mut shown.questions {
            (question.summary, question.text) = (None, None);
        }
        let _ = writeln!(text, "\n## Status\n\n{}", serde_json::to_string_pretty(&shown).unwrap_or_default());
    }
    text.push_str("\n## Log\n\n");
    for line in lines {
        text.push_str(&line);
        text.push('\n');
    }
    let home = dirs::home_dir();
    text.lines().fold(String::with_capacity(text.len()), |mut out, line| {
        out.push_str(&redacted(line, home.as_deref()));
        out.push('\n');
        out
    })
}

/// A line without what looks like a secret, long words included, and with `~` for the home folder.
fn redacted(line: &str, home: Option<&Path>) -> String {
    let cut: String = line.chars().take(limits::SUPPORT_LINE_MAX).collect();
    let cut = match home.and_then(Path::to_str).filter(|home| home.len() > 1) {
        Some(home) => cut.replace(home, "~"),
        None => cut,
    };
    let of_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let mut hidden = String::with_capacity(cut.len());
    let mut word = String::new();
    for c in redact(&cut).chars().chain(['\n']) {
        if of_word(c) {
            word.push(c);
            continue;
        }
        hidden.push_str(if word.len() >= limits::SUPPORT_WORD { HIDDEN } else { &word });
        word.clear();
        hidden.push(c);
    }
    hidden.pop();
    hidden
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_loses_secrets_and_the_home_folder_and_nothing_else() {
        let home = Some(Path::new("/home/ada"));
        for (line, shown) in [
            ("the relay is away since 21:30", "the relay is away since 21:30"),
            ("/home/ada/code is the workspace", "~/code is the workspace"),
            ("url = \"https://ada:pw@relay.example/x\"", "url = \"https://[hidden]@relay.example/x\""),
            ("a://u:p@ss@h b://c@d", "a://[hidden]@h b://[hidden]@d"),
            ("http://127.0.0.1:8787/mcp?a=b@c", "http://127.0.0.1:8787/mcp?a=b@c"),
            ("Bearer abcdefghijklmnopqrstuvwxyz_0123456-789", "Bearer [hidden]"),
            ("call_aaaaaaaaaaaaaaaaaaaaaaaa ended", "call_aaaaaaaaaaaaaaaaaaaaaaaa ended"),
            ("bot 123456789:AAF-abcdefghijklmnopqrstuvwxyz01234x", "bot 123456789:[hidden]"),
            (
                r#"{"message":"refused: token=abc, password: 'x y'"}"#,
                r#"{"message":"refused: token=[hidden], password: '[hidden]'"}"#,
            ),
        ] {
            assert_eq!(redacted(line, home), shown);
        }
        assert_eq!(redacted(&"ä ".repeat(5000), None).chars().count(), limits::SUPPORT_LINE_MAX);
    }
}
