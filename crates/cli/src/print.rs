//! Output for people and for scripts.

use std::io::Write as _;

use serde::Serialize;
use serde_json::Value;

use crate::failure::Failure;

/// Writes one line to stdout. A reader that left is no failure of ours.
pub fn line(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// Writes one JSON document on one line.
pub fn json(value: &impl Serialize) -> Result<(), Failure> {
    line(&serde_json::to_string(value).map_err(|e| Failure::plain(e.to_string()))?);
    Ok(())
}

/// Writes rows of a list under headings. `columns` pairs a heading with the field to show.
pub fn table(rows: &Value, columns: &[(&str, &str)]) {
    let rows = rows.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut cells: Vec<Vec<String>> = vec![columns.iter().map(|(heading, _)| (*heading).to_owned()).collect()];
    cells.extend(rows.iter().map(|row| columns.iter().map(|(_, field)| cell(field, &row[*field])).collect()));
    let width = |column: usize| cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    for row in &cells {
        let padded = row.iter().zip(&widths).map(|(text, width)| format!("{text:width$}"));
        line(padded.collect::<Vec<_>>().join("  ").trim_end());
    }
}

fn cell(field: &str, value: &Value) -> String {
    match (field, value) {
        ("created" | "expires" | "in_use" | "revoked", Value::Number(seconds)) => {
            seconds.as_i64().map(day).unwrap_or_default()
        }
        (_, Value::String(text)) => shown(text),
        (_, Value::Null) => "-".into(),
        (_, Value::Bool(yes)) => if *yes { "yes" } else { "-" }.into(),
        (_, other) => other.to_string(),
    }
}

/// A text of somebody else, without what could steer a terminal.
pub fn shown(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// A number with its noun.
pub fn count(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

fn day(seconds: i64) -> String {
    jiff::Timestamp::from_second(seconds).map(|t| t.strftime("%Y-%m-%d %H:%M").to_string()).unwrap_or_default()
}

/// A moment of today or of another day, in local time.
pub fn moment(unix_ms: u64) -> String {
    let ms = i64::try_from(unix_ms).unwrap_or_default();
    let time = jiff::Timestamp::from_millisecond(ms).unwrap_or_default().to_zoned(jiff::tz::TimeZone::system());
    time.strftime("%H:%M:%S").to_string()
}
