//! systemd's logind: a signal, and a lock that delays sleep while it is held.

use futures_util::StreamExt as _;
use tokio::sync::mpsc;
use zbus::zvariant::OwnedFd;

use super::{Delay, Sleep};

#[zbus::proxy(
    interface = "org.freedesktop.login1.Manager",
    default_service = "org.freedesktop.login1",
    default_path = "/org/freedesktop/login1"
)]
trait Manager {
    fn inhibit(&self, what: &str, who: &str, why: &str, mode: &str) -> zbus::Result<OwnedFd>;

    #[zbus(signal)]
    fn prepare_for_sleep(&self, start: bool) -> zbus::Result<()>;
}

pub(super) async fn watch(events: mpsc::UnboundedSender<Sleep>, delay: Delay) {
    tokio::select! {
        () = events.closed() => {}
        ended = listen(&events, &delay) => {
            if let Err(error) = ended {
                tracing::debug!(%error, "sleep will not be announced");
            }
        }
    }
    // Whoever asks to sleep without us is not delayed.
}

async fn listen(events: &mpsc::UnboundedSender<Sleep>, delay: &Delay) -> zbus::Result<()> {
    let bus = zbus::Connection::system().await?;
    let manager = ManagerProxy::new(&bus).await?;
    let mut signals = manager.receive_prepare_for_sleep().await?;
    let mut lock = Some(delay_lock(&manager).await?);
    loop {
        tokio::select! {
            signal = signals.next() => {
                let Some(signal) = signal else { return Ok(()) };
                // Whoever listens outlives this task, except when it ends: then `closed` ends this one too.
                if signal.args()?.start {
                    let _ = events.send(Sleep::Announced);
                } else {
                    let _ = events.send(Sleep::Over);
                    lock = Some(delay_lock(&manager).await?);
                }
            }
            () = delay.0.notified() => drop(lock.take()),
        }
    }
}

/// Sleep waits (at most 5 s) while this is held.
async fn delay_lock(manager: &ManagerProxy<'_>) -> zbus::Result<OwnedFd> {
    manager.inhibit("sleep", "Holdfast", "telling the relay that calls must be held", "delay").await
}
