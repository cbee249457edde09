//! Listening sockets: accept, TLS, HTTP, and a stop that lets answers finish.

use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use holdfast_core::limits;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service as _;

use super::socket;
use super::source::Peer;
use super::tls::Certificates;

/// Binds the address. A loopback IPv4 address also takes ::1 on the same port if it is free, because many clients try that first for
/// `localhost`.
pub(crate) async fn bind(address: SocketAddr) -> std::io::Result<Vec<TcpListener>> {
    let first = TcpListener::bind(address).await?;
    let port = first.local_addr()?.port();
    let mut listeners = vec![first];
    if address.ip().is_loopback()
        && address.is_ipv4()
        && let Ok(second) = TcpListener::bind((Ipv6Addr::LOCALHOST, port)).await
    {
        listeners.push(second);
    }
    Ok(listeners)
}

/// How connections are served.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) app: Router,
    pub(crate) tls: Option<Arc<Certificates>>,
    pub(crate) header_timeout: Duration,
    pub(crate) connections: Arc<Semaphore>,
    /// Stop taking new requests and let those in progress finish.
    pub(crate) stop: CancellationToken,
    /// Drop every connection.
    pub(crate) abort: CancellationToken,
    pub(crate) tasks: TaskTracker,
}

impl Server {
    /// Accepts until the server is stopped.
    pub(crate) async fn accept(self, listener: TcpListener) {
        loop {
            let next = async {
                let permit = self.connections.clone().acquire_owned().await;
                (permit, listener.accept().await)
            };
            match self.stop.run_until_cancelled(next).await {
                None | Some((Err(_), _)) => return,
                Some((Ok(permit), Ok((stream, peer)))) => {
                    let server = self.clone();
                    self.tasks.spawn(async move {
                        let abort = server.abort.clone();
                        // `None` means cut off, and there is nobody to tell.
                        let _ = abort.run_until_cancelled(server.connection(stream, peer)).await;
                        drop(permit);
                    });
                }
                Some((_, Err(error))) => {
                    // Out of file descriptors, mostly. Trying at once would only burn the processor.
                    tracing::warn!(%error, "accept");
                    tokio::time::sleep(limits::HTTP_ACCEPT_PAUSE).await;
                }
            }
        }
    }

    async fn connection(self, stream: TcpStream, peer: SocketAddr) {
        if socket::prepare(&stream).is_err() {
            return;
        }
        let Some(tls) = self.tls.clone() else { return self.http1(stream, peer).await };
        let handshake = tokio::time::timeout(limits::TLS_HANDSHAKE, tls.acceptor().accept(stream));
        if let Ok(Ok(stream)) = handshake.await {
            if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
                self.http2(stream, peer).await;
            } else {
                self.http1(stream, peer).await;
            }
        }
    }

    async fn http1(self, io: impl AsyncRead + AsyncWrite + Send + Unpin + 'static, peer: SocketAddr) {
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.header_timeout)
            .max_headers(limits::HTTP_HEADERS_MAX)
            .max_buf_size(limits::HTTP_HEAD_MAX)
            .serve_connection(TokioIo::new(io), service(self.app, peer))
            .with_upgrades();
        let mut connection = std::pin::pin!(connection);
        tokio::select! {
            // A connection that broke has nobody left to tell.
            outcome = connection.as_mut() => return drop(outcome),
            () = self.stop.cancelled() => connection.as_mut().graceful_shutdown(),
        }
        drop(connection.await);
    }

    async fn http2(self, io: impl AsyncRead + AsyncWrite + Send + Unpin + 'static, peer: SocketAddr) {
        let connection = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .keep_alive_interval(self.header_timeout)
            .keep_alive_timeout(self.header_timeout)
            .max_concurrent_streams(limits::HTTP_STREAMS_MAX)
            .max_header_list_size(u32::try_from(limits::HTTP_HEAD_MAX).unwrap_or(u32::MAX))
            .serve_connection(TokioIo::new(io), service(self.app, peer));
        let mut connection = std::pin::pin!(connection);
        tokio::select! {
            outcome = connection.as_mut() => return drop(outcome),
            () = self.stop.cancelled() => connection.as_mut().graceful_shutdown(),
        }
        drop(connection.await);
    }
}

fn service(
    app: Router,
    peer: SocketAddr,
) -> impl hyper::service::Service<
    hyper::Request<Incoming>,
    Response = axum::response::Response,
    Error = std::convert::Infallible,
    Future: Send,
> + Clone {
    hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(Peer(peer));
        app.clone().call(request)
    })
}
