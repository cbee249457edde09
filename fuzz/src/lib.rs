//! Every decoder of bytes that a stranger can send, as a function of bytes.
//!
//! Under `cargo fuzz` each is a target; in `tests/fuzz_smoke` the same functions get the seeds and random bytes for a moment.
//! A target panics when its input is handled wrongly, not when it is refused.

#![allow(clippy::expect_used, reason = "a panic is how a test fails")]

mod config;
mod daemon;
mod frames;
mod http;
mod patch;
mod switchboard;

/// A target: its name, and what it does with bytes.
pub type Target = (&'static str, fn(&[u8]));

/// All targets. `fuzz_targets/` has one file for each.
pub const ALL: &[Target] = &[
    ("chunks", frames::chunks),
    ("config", config::config),
    ("control_frame", frames::control_frame),
    ("credentials", http::credentials),
    ("daemon_frame", frames::daemon_frame),
    ("daemon_machine", daemon::daemon_machine),
    ("mcp_envelope", http::mcp_envelope),
    ("oauth_authorize", http::oauth_authorize),
    ("oauth_token", http::oauth_token),
    ("patch", patch::patch),
    ("relay_frame", frames::relay_frame),
    ("switchboard_machine", switchboard::switchboard_machine),
    ("worker_frame", frames::worker_frame),
];

/// Runs the target of this name.
pub fn run(name: &str, bytes: &[u8]) {
    if let Some((_, target)) = ALL.iter().find(|(known, _)| *known == name) {
        target(bytes);
    }
}
