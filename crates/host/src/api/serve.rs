//! Accepting connections, at most [`limits::API_CONNECTIONS`] at once; one that shows no token does not last.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::{Extension, Router};
use holdfast_core::limits;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Whether a request of this connection showed a token.
#[derive(Clone, Default)]
pub(super) struct Known(Arc<AtomicBool>);

impl Known {
    pub(super) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Comes when the time is up of a connection that is still a stranger's.
    async fn stranger(&self) {
        tokio::time::sleep(limits::API_STRANGER).await;
        if self.0.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    }
}

pub(super) async fn serve(listener: TcpListener, router: Router, stop: CancellationToken, tasks: TaskTracker) {
    let places = Arc::new(Semaphore::new(limits::API_CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let stream = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(e) => {
                    tracing::warn!("local API: {e}");
                    tokio::time::sleep(limits::SHELL_TURN_MAX).await;
                    continue;
                }
            },
        };
        let (known, stop) = (Known::default(), stop.clone());
        let service = TowerToHyperService::new(router.clone().layer(Extension(known.clone())));
        tasks.spawn(async move {
            let _place = place;
            let mut connection = std::pin::pin!(
                http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(limits::API_HEADER_TIMEOUT)
                    .serve_connection(TokioIo::new(stream), service)
            );
            tokio::select! {
                // How a client's connection ends is the client's business.
                _ = connection.as_mut() => return,
                () = known.stranger() => return,
                () = stop.cancelled() => connection.as_mut().graceful_shutdown(),
            }
            drop(tokio::time::timeout(limits::SHELL_TURN_MAX, connection).await);
        });
    }
}
