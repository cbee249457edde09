//! One line of a transcript, whoever wrote it.

use std::fmt;
use std::ops::Range;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::{Entry, Part, claude, codex};
use crate::limits;

/// What a line is.
#[derive(Debug, Clone, PartialEq)]
pub enum Line {
    /// It says something.
    Entry(Entry),
    /// Nothing for us: blank, or of a kind that we do not know.
    Nothing,
    /// Not JSON, nested too deeply, or of more than [`limits::TRANSCRIPT_VALUES_MAX`] values.
    Unreadable,
}

/// Reads a line of a Claude Code transcript, a Codex rollout, or the generic format, which is a part of the first. `range`
/// is where it stands in its file. Bytes that are not UTF-8 count as U+FFFD.
pub fn read_line(bytes: &[u8], range: Range<u64>) -> Line {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_start_matches('\u{feff}').trim();
    if text.is_empty() {
        return Line::Nothing;
    }
    let Some(line) = value(text).ok().or_else(|| repaired(&mend(text))) else { return Line::Unreadable };
    let said = if line.get("payload").is_some() { codex::read(&line) } else { claude::read(&line) };
    if said.parts.is_empty() {
        return Line::Nothing;
    }
    let at = line.get("timestamp").and_then(Value::as_str).and_then(millis);
    Line::Entry(Entry { range, session: said.session, sidechain: said.sidechain, at, parts: said.parts })
}

/// What a format makes of a line.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub session: Option<String>,
    pub sidechain: bool,
    pub parts: Vec<Part>,
}

/// The text of a key, if there is one.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

/// The elements of an array; none if it is none.
pub(super) fn items(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    value.and_then(Value::as_array).into_iter().flatten()
}

fn value(text: &str) -> Result<Value, serde_json::Error> {
    let mut left = limits::TRANSCRIPT_VALUES_MAX;
    let mut from = serde_json::Deserializer::from_str(text);
    let value = Budget(&mut left).deserialize(&mut from)?;
    from.end()?;
    Ok(value)
}

/// A line that stands behind the beginning of one that was never finished, because its writer died or the file was cut.
fn repaired(text: &str) -> Option<Value> {
    let begins = text.match_indices("{\"").map(|(at, _)| at).take(limits::TRANSCRIPT_TORN_TRIES);
    [0].into_iter().chain(begins).find_map(|at| value(&text[at..]).ok())
}

/// A value of at most so many values, because a small text can become a large tree.
struct Budget<'a>(&'a mut usize);

impl<'de> DeserializeSeed<'de> for Budget<'_> {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        *self.0 = self.0.checked_sub(1).ok_or_else(|| D::Error::custom("too many values"))?;
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Budget<'_> {
    type Value = Value;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }
    fn visit_bool<E>(self, v: bool) -> Result<Value, E> {
        Ok(v.into())
    }
    fn visit_i64<E>(self, v: i64) -> Result<Value, E> {
        Ok(v.into())
    }
    fn visit_u64<E>(self, v: u64) -> Result<Value, E> {
        Ok(v.into())
    }
    fn visit_f64<E>(self, v: f64) -> Result<Value, E> {
        Ok(v.into())
    }
    fn visit_str<E>(self, v: &str) -> Result<Value, E> {
        Ok(v.into())
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(one) = seq.next_element_seed(Budget(self.0))? {
            all.push(one);
        }
        Ok(Value::Array(all))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some(key) = map.next_key()? {
            all.insert(key, map.next_value_seed(Budget(self.0))?);
        }
        Ok(Value::Object(all))
    }
}

/// The text with `\ufffd` for halves of characters: agents cut texts by UTF-16 units and write what is left.
fn mend(text: &str) -> String {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let length = match unit(at) {
            Some(0xd800..=0xdbff) if matches!(unit(at + 6), Some(0xdc00..=0xdfff)) => 12,
            Some(0xd800..=0xdfff) => {
                out.push_str("\\ufffd");
                at += 6;
                continue;
            }
            // An escaped backslash begins nothing.
            _ if c == '\\' => 1 + text[at + 1..].chars().next().map_or(0, char::len_utf8),
            _ => c.len_utf8(),
        };
        out.push_str(&text[at..at + length]);
        at += length;
    }
    out
}

/// Milliseconds since 1970 of a time as `2026-01-31T10:20:30.123Z`; with an offset in place of `Z` too.
pub(super) fn millis(text: &str) -> Option<u64> {
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let rest = text.get(19..)?;
    let digits = rest.strip_prefix('.').map_or(0, |f| f.find(|c: char| !c.is_ascii_digit()).unwrap_or(f.len()));
    let milli = if digits == 0 { 0 } else { format!("{:0<3}", &rest[1..=digits])[..3].parse::<i64>().ok()? };
    let zone = &rest[if digits == 0 { 0 } else { digits + 1 }..];
    let offset = match zone {
        "Z" | "z" | "" => 0,
        _ => {
            let minutes = zone.get(1..3)?.parse::<i64>().ok()? * 60 + zone.get(4..6)?.parse::<i64>().ok()?;
            if zone.starts_with('-') { -minutes } else { minutes }
        }
    };
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Days of a calendar that begins in March, so that a leap day is the last of its year.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = y * 365 + y / 4 - y / 100 + y / 400 + (m * 153 + 2) / 5 + day - 1 - 719_468;
    let seconds = days * 86_400 + hour * 3600 + (minute - offset) * 60 + second;
    u64::try_from(seconds * 1000 + milli).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(text: &str) -> Option<Entry> {
        match read_line(text.as_bytes(), 0..text.len() as u64) {
            Line::Entry(entry) => Some(entry),
            _ => None,
        }
    }

    #[test]
    fn times_are_read_to_the_millisecond() {
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2026-12-01T02:26:50.196Z", Some(1_796_092_010_196)),
            ("2024-02-29T23:59:59.9Z", Some(1_709_251_199_900)),
            ("2024-03-01T01:59:59.123456789+02:00", Some(1_709_251_199_123)),
            ("2024-03-01", None),
            ("2024-13-01T00:00:00Z", None),
            ("2024-03-0éT00:00:00Z", None),
            ("nonsense", None),
        ] {
            assert_eq!(millis(text), expected, "{text}");
        }
    }

    #[test]
    fn half_a_character_does_not_cost_the_line() {
        let line = r#"{"type":"assistant","message":{"content":"a\ud83d \\ud83d \ud83d\ude00 \udc00"}}"#;
        let said = "a\u{fffd} \\ud83d 😀 \u{fffd}";
        assert_eq!(entry(line).map(|e| e.parts), Some(vec![Part::Said(said.into())]));
        let mut bytes = br#"{"type":"assistant","message":{"content":"a?b"}}"#.to_vec();
        let at = bytes.iter().position(|b| *b == b'?').unwrap();
        bytes[at] = 0xff;
        let Line::Entry(entry) = read_line(&bytes, 0..1) else { panic!("an entry was expected") };
        assert_eq!(entry.parts, [Part::Said("a\u{fffd}b".into())]);
    }

    #[test]
    fn a_line_that_follows_a_torn_one_is_read() {
        let whole = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"b"}]}}"#;
        for torn in [1, 17, 30, 44, 50, whole.len() - 1] {
            let parts = entry(&format!("{}{whole}", &whole[..torn])).map(|e| e.parts);
            assert_eq!(parts, Some(vec![Part::Said("b".into())]), "{torn}");
            assert_eq!(entry(&whole[torn..]), None, "{torn}");
        }
    }

    #[test]
    fn what_is_no_json_or_too_much_of_it_is_unreadable_and_what_is_unknown_is_nothing() {
        let unreadable = |text: &str| read_line(text.as_bytes(), 0..1) == Line::Unreadable;
        assert!(unreadable("{\"type\":"));
        assert!(unreadable("{} {}"));
        assert!(unreadable(&"[".repeat(100_000)));
        assert!(unreadable(&format!("[{}0]", "0,".repeat(limits::TRANSCRIPT_VALUES_MAX))));
        for text in ["", "  \r", "17", "null", "{}", "[1]", r#"{"type":"weather","message":{}}"#, r#"{"payload":1}"#] {
            assert_eq!(read_line(text.as_bytes(), 0..1), Line::Nothing, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_some_line(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300)) {
            let _ = read_line(&bytes, 0..300);
            let _ = mend(&String::from_utf8_lossy(&bytes));
            let _ = millis(&String::from_utf8_lossy(&bytes));
        }
    }
}
