//! What is printed: rows of figures, and each goal of the project beside what was measured.

use std::fmt::Display;
use std::time::Duration;

/// The middle one, by value; zero of none.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// The value below which this share lies.
pub fn quantile(mut values: Vec<f64>, share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(((values.len().max(1) - 1) as f64 * share).round() as usize).copied().unwrap_or_default()
}

/// Microseconds.
pub fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// Mebibytes.
pub fn mib(bytes: u64) -> f64 {
    bytes as f64 / (1 << 20) as f64
}

/// Which way a goal points.
#[derive(Debug, Clone, Copy)]
pub enum Wanted {
    /// At most this.
    AtMost(f64),
    /// At least this.
    AtLeast(f64),
}

/// The second half of the table.
#[derive(Debug, Default)]
pub struct Goals(Vec<(String, Wanted, f64, &'static str)>);

impl Goals {
    /// Adds one goal and what was measured.
    pub fn add(&mut self, name: impl Display, wanted: Wanted, measured: f64, unit: &'static str) {
        self.0.push((name.to_string(), wanted, measured, unit));
    }

    /// Prints them all; returns how many are not met.
    pub fn print(&self) -> usize {
        println!("\n{:<64} {:>14} {:>14}", "goal", "wanted", "measured");
        let mut missed = 0;
        for (name, wanted, measured, unit) in &self.0 {
            let (sign, bound, met) = match *wanted {
                Wanted::AtMost(bound) => ("≤", bound, *measured <= bound),
                Wanted::AtLeast(bound) => ("≥", bound, *measured >= bound),
            };
            missed += usize::from(!met);
            let verdict = if met { "met" } else { "NOT MET" };
            println!(
                "{name:<64} {:>14} {:>14} {verdict}",
                format!("{sign} {}{unit}", short(bound)),
                format!("{}{unit}", short(*measured))
            );
        }
        println!("\n{} goals, {missed} not met", self.0.len());
        missed
    }
}

/// Three figures are enough.
pub fn short(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}
