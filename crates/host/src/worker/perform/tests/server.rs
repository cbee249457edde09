//! A server that does with each request what a script says.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// What is done with one request.
pub(super) enum Play {
    /// These bytes, and the connection is closed.
    Say(String),
    /// These bytes, and then nothing any more.
    Stall(String),
}

/// A whole answer.
pub(super) fn ok(body: &str) -> Play {
    Play::Say(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len()))
}

/// An answer without a body.
pub(super) fn status(line: &str) -> Play {
    Play::Say(format!("HTTP/1.1 {line}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"))
}

pub(super) fn redirect(to: &str) -> Play {
    status(&format!("302 Found\r\nLocation: {to}"))
}

/// A request as it was seen: head in lower case.
type Seen = Arc<Mutex<Vec<String>>>;
/// From a path and how often it was asked for before, to what is done.
type Script = dyn Fn(&str, usize) -> Play + Send + Sync;

pub(super) struct Server {
    pub(super) address: SocketAddr,
    seen: Seen,
}

impl Server {
    pub(super) async fn new(script: impl Fn(&str, usize) -> Play + Send + Sync + 'static) -> Server {
        Server::over(None, script).await
    }

    /// The same over TLS, if there is an acceptor.
    pub(super) async fn over(
        tls: Option<TlsAcceptor>,
        script: impl Fn(&str, usize) -> Play + Send + Sync + 'static,
    ) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, seen, script): (_, Seen, Arc<Script>) =
            (listener.local_addr().unwrap(), Seen::default(), Arc::new(script));
        let counts = Arc::new(Mutex::new(HashMap::<String, usize>::new()));
        tokio::spawn({
            let seen = Arc::clone(&seen);
            async move {
                while let Ok((stream, _)) = listener.accept().await {
                    let (seen, script, counts, tls) =
                        (Arc::clone(&seen), Arc::clone(&script), Arc::clone(&counts), tls.clone());
                    tokio::spawn(async move {
                        match tls {
                            None => serve(stream, &seen, &*script, &counts).await,
                            Some(tls) => {
                                if let Ok(stream) = tls.accept(stream).await {
                                    serve(stream, &seen, &*script, &counts).await;
                                }
                            }
                        }
                    });
                }
            }
        });
        Server { address, seen }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The requests so far.
    pub(super) fn seen(&self) -> Vec<String> {
        self.seen.lock().clone()
    }

    /// A header of a request, by number.
    pub(super) fn header(&self, request: usize, name: &str) -> Option<String> {
        let head = self.seen.lock()[request].clone();
        head.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")).map(str::to_owned))
    }
}

async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    seen: &Seen,
    script: &Script,
    counts: &Mutex<HashMap<String, usize>>,
) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    let head = String::from_utf8(head).unwrap();
    let path = head.split(' ').nth(1).unwrap().to_owned();
    seen.lock().push(head.to_lowercase());
    let before = {
        let mut counts = counts.lock();
        let count = counts.entry(path.clone()).or_default();
        *count += 1;
        *count - 1
    };
    let (text, stalls) = match script(&path, before) {
        Play::Say(text) => (text, false),
        Play::Stall(text) => (text, true),
    };
    let _ = stream.write_all(text.as_bytes()).await;
    let _ = stream.flush().await;
    if stalls {
        std::future::pending::<()>().await;
    }
    let _ = stream.shutdown().await;
}
