//! Times as people say them.

use std::time::Duration;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// `12 s`, `1 min 48 s`, `3 h`, `2 d 4 h`: at most two units, rounded down. The window says it the same way
/// (`locale/durations.json` holds both to it).
pub fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    let two = |big: u64, unit: &str, small: u64, rest: &str| match small {
        0 => format!("{big} {unit}"),
        _ => format!("{big} {unit} {small} {rest}"),
    };
    match seconds {
        0..MINUTE => format!("{seconds} s"),
        MINUTE..HOUR => two(seconds / MINUTE, "min", seconds % MINUTE, "s"),
        HOUR..DAY => two(seconds / HOUR, "h", seconds % HOUR / MINUTE, "min"),
        _ => two(seconds / DAY, "d", seconds % DAY / HOUR, "h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_said_as_the_window_says_them() {
        let cases: Vec<(u64, String)> =
            serde_json::from_str(include_str!("../../../../locale/durations.json")).unwrap();
        assert!(cases.len() > 10);
        for (ms, said) in cases {
            assert_eq!(duration(Duration::from_millis(ms)), said, "{ms} ms");
        }
    }
}
