//! What the bench runs as processes of its own, so that each has its own memory and CPU time.

pub mod daemon;
pub mod fleet;
pub mod floor;
pub mod follower;
pub mod relay;
pub mod stdio;

use std::io::Write as _;

use anyhow::Result;
use serde::Serialize;

/// Tells the bench that this role is up, or something it asked for: one JSON line.
pub fn say(line: &impl Serialize) -> Result<()> {
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, line)?;
    out.write_all(b"\n")?;
    Ok(out.flush()?)
}
