//! Files that are made from the sources: the pages of `docs/` from tables in `holdfast-core` and types in `holdfast-host`.

mod codes;
mod settings;

use std::fmt::Write as _;
use std::time::Duration;

use holdfast_core::limits::{self, Value};

use crate::{read, root};

/// Compares a made file with what the sources say now; with `UPDATE=1` writes it.
pub fn check(made: &str, by: &str, want: &str) {
    let path = root().join(made);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, want).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }
    let have = if path.exists() { read(&path) } else { String::new() };
    assert!(have == want, "{made} is out of date: run `{by}`");
}

fn count(value: u64, unit: &str) -> String {
    const KIB: u64 = 1024;
    const MIB: u64 = KIB * KIB;
    const GIB: u64 = KIB * MIB;
    let bytes = unit.starts_with("bytes");
    let rest = unit.strip_prefix("bytes").unwrap_or_default();
    match value {
        _ if bytes && value >= GIB && value.is_multiple_of(GIB) => format!("{} GiB{rest}", value / GIB),
        _ if bytes && value >= MIB && value.is_multiple_of(MIB) => format!("{} MiB{rest}", value / MIB),
        _ if bytes && value >= KIB && value.is_multiple_of(KIB) => format!("{} KiB{rest}", grouped(value / KIB)),
        _ => format!("{} {unit}", grouped(value)),
    }
}

fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

fn time(value: Duration) -> String {
    let ms = value.as_millis() as u64;
    match ms {
        0 => format!("{} µs", value.as_micros()),
        _ if !ms.is_multiple_of(1000) => format!("{} ms", grouped(ms)),
        _ => match ms / 1000 {
            s if s >= 86_400 && s.is_multiple_of(86_400) => format!("{} d", s / 86_400),
            s if s >= 3_600 && s.is_multiple_of(3_600) => format!("{} h", s / 3_600),
            s if s >= 120 && s.is_multiple_of(60) => format!("{} min", s / 60),
            s => format!("{s} s"),
        },
    }
}

#[test]
fn the_page_of_limits_is_in_date() {
    let mut page = String::from(
        "# Limits\n\nEvery bound of Holdfast. Made by `make limits` from `crates/core/src/limits/`; change it there.\n",
    );
    let mut group = "";
    for limit in limits::all() {
        if limit.group != group {
            group = limit.group;
            let _ = write!(page, "\n## {group}\n\n| name | value | why |\n|---|---|---|\n");
        }
        let value = match limit.value {
            Value::Count(n) => count(n, limit.unit),
            Value::Time(t) => time(t),
        };
        let _ = writeln!(page, "| `{}` | {value} | {} |", limit.name, limit.why.replace('|', "\\|"));
    }
    check("docs/limits.md", "make limits", &page);
}
