//! Accepting connections, at most [`limits::API_REQUESTS`] at once.

use std::sync::Arc;

use axum::Router;
use holdfast_core::limits;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(super) async fn serve(listener: TcpListener, router: Router, stop: CancellationToken, tasks: TaskTracker) {
    let places = Arc::new(Semaphore::new(limits::API_REQUESTS));
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
        let (service, stop) = (TowerToHyperService::new(router.clone()), stop.clone());
        tasks.spawn(async move {
            let _place = place;
            let mut connection = std::pin::pin!(
                http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(limits::HTTP_HEADER_TIMEOUT)
                    .serve_connection(TokioIo::new(stream), service)
            );
            tokio::select! {
                // How a client's connection ends is the client's business.
                _ = connection.as_mut() => return,
                () = stop.cancelled() => connection.as_mut().graceful_shutdown(),
            }
            drop(tokio::time::timeout(limits::SHELL_TURN_MAX, connection).await);
        });
    }
}
