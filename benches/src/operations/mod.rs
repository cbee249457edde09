//! Durable operations: how fast they are admitted, how fast their output travels, what remembering many of them costs.

mod admission;
mod api;
mod nats;
mod output;
mod runner;
mod stored;

pub use admission::run as admission;
pub use api::Serve;
pub use output::{run as output, sink};
pub use runner::memory as runner_memory;
pub use stored::run as stored;
