//! The line that shows that something goes on, on a terminal.

use std::cell::Cell;
use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// One line at the bottom of stderr; it stays away while the output before it ends in the middle of a line.
pub struct Progress {
    bar: ProgressBar,
    shown: Cell<bool>,
}

impl Progress {
    /// Nothing is shown where stderr is no terminal.
    pub fn new(what: &str) -> Progress {
        let style = ProgressStyle::with_template("{spinner} {elapsed_precise} {msg}")
            .unwrap_or_else(|_| ProgressStyle::default_spinner());
        let bar = ProgressBar::new_spinner().with_style(style).with_message(what.to_owned());
        let shown = std::io::stderr().is_terminal();
        if !shown {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Progress { bar, shown: Cell::new(shown) }
    }

    /// What is shown from now on.
    pub fn say(&self, what: String) {
        self.bar.set_message(what);
    }

    /// Lets output pass.
    pub fn around<T>(&self, output: &[u8], write: impl FnOnce() -> T) -> T {
        let written = self.bar.suspend(write);
        let whole = output.ends_with(b"\n");
        if std::io::stderr().is_terminal() && whole != self.shown.replace(whole) {
            let target = if whole { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
            self.bar.set_draw_target(target);
        }
        written
    }

    /// Takes it away.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}
