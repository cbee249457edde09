//! The threads a Holdfast process runs on.

use tokio::runtime::{Builder, Runtime};

/// A runtime with a worker for every second processor. A call passes through two processes and a client, and the kernel's
/// half of the work wants processors too; on two of them two workers mostly wake each other. Whatever blocks is given to
/// blocking threads.
pub fn build() -> std::io::Result<Runtime> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    Builder::new_multi_thread().worker_threads((processors / 2).max(1)).enable_all().build()
}
