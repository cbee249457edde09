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

/// Writes one line to stderr, for a process that lives on: one that is gone is no failure of ours, nor the end of the process.
pub fn note(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
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
            seconds.as_u64().map(|seconds| moment(seconds * 1000)).unwrap_or_default()
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

/// A moment in local time: of today the time alone, else with its day.
pub fn moment(unix_ms: u64) -> String {
    let ms = i64::try_from(unix_ms).unwrap_or_default();
    let time = jiff::Timestamp::from_millisecond(ms).unwrap_or_default().to_zoned(jiff::tz::TimeZone::system());
    shown_at(&time, &jiff::Zoned::now())
}

fn shown_at(time: &jiff::Zoned, now: &jiff::Zoned) -> String {
    let format = if time.date() == now.date() { "%H:%M:%S" } else { "%Y-%m-%d %H:%M" };
    time.strftime(format).to_string()
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;
    use jiff::tz::TimeZone;

    use super::*;

    #[test]
    fn a_moment_of_another_day_says_which_day() {
        let at = |day: i8, hour: i8| date(2026, 11, day).at(hour, 5, 9, 0).to_zoned(TimeZone::UTC).unwrap();
        assert_eq!(shown_at(&at(30, 8), &at(30, 23)), "08:05:09");
        assert_eq!(shown_at(&at(24, 8), &at(30, 8)), "2026-11-24 08:05");
    }
}
