//! The threads a Holdfast process runs on.

pub use holdfast_relay::{Clock, SystemClock};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;

/// A runtime with a worker for every second processor. A call passes through two processes and a client, and the kernel's
/// half of the work wants processors too; on two of them two workers mostly wake each other. Whatever blocks is given to
/// blocking threads.
pub fn build() -> std::io::Result<Runtime> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    Builder::new_multi_thread().worker_threads((processors / 2).max(1)).enable_all().build()
}

/// Lets this process have as many descriptors as the system allows it: each device and client connection takes one, and the
/// usual soft limit is 1 024. Where that cannot be had, the limit stays as it is.
pub fn raise_descriptor_limit() {
    #[cfg(unix)]
    {
        use nix::sys::resource::{Resource, getrlimit, setrlimit};
        let raised = getrlimit(Resource::RLIMIT_NOFILE)
            .and_then(|(_, hard)| setrlimit(Resource::RLIMIT_NOFILE, hard, hard).map(|()| hard));
        tracing::debug!(limit = raised.ok(), "descriptors");
    }
}

/// Every signal that asks this process to end, in the order they come. On the current runtime.
pub fn signals() -> std::io::Result<mpsc::Receiver<()>> {
    let (told, signals) = mpsc::channel(4);
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut hangup = signal(SignalKind::hangup())?;
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                    _ = hangup.recv() => {}
                }
                if told.send(()).await.is_err() {
                    return;
                }
            }
        });
    }
    #[cfg(not(unix))]
    tokio::spawn(async move { while tokio::signal::ctrl_c().await.is_ok() && told.send(()).await.is_ok() {} });
    Ok(signals)
}

#[cfg(all(test, unix))]
mod tests {
    use nix::sys::resource::{Resource, getrlimit};

    #[test]
    fn the_soft_limit_of_descriptors_becomes_the_hard_one() {
        super::raise_descriptor_limit();
        let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        assert_eq!(soft, hard);
    }
}
