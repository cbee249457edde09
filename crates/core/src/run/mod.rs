//! A run: the process of an operation, owned by a *runner* that outlives the worker.
//!
//! Worker and runner share a folder per run: `meta` ([`Spec`], written by the worker), `claim` ([`Claim`]), the streams'
//! segments, and `exit` ([`End`]). While the runner lives, worker and runner also talk over a local socket, one JSON
//! object per line: [`Ask`] and [`Tell`].

mod budget;
mod files;
mod inputs;
mod io;
mod machine;
mod room;
mod segment;
mod talk;
#[cfg(test)]
mod tests;

pub use budget::Budget;
pub use files::{Claim, End, Identity, Leader, Lease, Program, Spec};
pub use io::{RunnerInput, RunnerOutput, Signal};
pub use machine::Runner;
pub use room::Room;
pub use segment::{Segment, inside};
pub use talk::{Ask, Tell, VERSION, VERSIONS};
