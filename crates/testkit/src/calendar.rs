//! The calendar of a service, which need not agree with this machine's.

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;

/// In milliseconds since 1970, that many milliseconds ahead of this machine's.
pub(crate) fn unix_ms(ahead: i64) -> u64 {
    u64::try_from(Timestamp::now().as_millisecond() + ahead).unwrap_or_default()
}

/// The same as the head of an answer has it.
pub(crate) fn date(ahead: i64) -> String {
    let now = Timestamp::from_millisecond(Timestamp::now().as_millisecond() + ahead).unwrap_or_default();
    DateTimePrinter::new().timestamp_to_rfc9110_string(&now).unwrap_or_default()
}
