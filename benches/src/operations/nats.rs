//! A message server that syncs before it answers, as a yardstick: nats-server with JetStream and `sync_interval: always`.
//!
//! Spoken to in its own text protocol: one connection per producer, one publish in flight, answered by the server's
//! acknowledgement, which says under which number the message is on disk.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::Command;

use crate::child::Running;

/// A running server with one stream, `admissions`.
pub struct Nats {
    _process: Running,
    address: SocketAddr,
}

/// One producer.
pub struct Producer {
    io: BufReader<TcpStream>,
    payload: Vec<u8>,
}

impl Nats {
    /// Starts it in an empty folder.
    pub async fn start(program: &Path, folder: &Path) -> Result<Nats> {
        // Freed again before the server takes it; its port 0 could not be read back.
        let address = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?;
        let store = folder.join("store");
        let settings = format!(
            "listen: \"{address}\"\njetstream {{ store_dir: \"{}\", sync_interval: always }}\n",
            store.display()
        );
        let file = folder.join("nats.conf");
        std::fs::write(&file, settings)?;
        let mut command = Command::new(program);
        command.arg("-c").arg(&file).stdout(Stdio::null()).stderr(Stdio::null());
        let mut process = Running::start(&mut command).context("nats-server")?;
        process.wait_for(address).await.context("nats-server")?;
        let nats = Nats { _process: process, address };
        let mut first = nats.producer(br#"{"name":"admissions","subjects":["admissions"],"storage":"file"}"#).await?;
        let made = first.ask("$JS.API.STREAM.CREATE.admissions").await?;
        ensure!(made.contains("stream_create_response") && !made.contains("error"), "no stream: {made}");
        Ok(nats)
    }

    /// A connection of its own that publishes `payload` again and again.
    pub async fn producer(&self, payload: &[u8]) -> Result<Producer> {
        let mut io = BufReader::new(TcpStream::connect(self.address).await?);
        io.get_ref().set_nodelay(true)?;
        let mut info = String::new();
        io.read_line(&mut info).await?;
        ensure!(info.starts_with("INFO "), "not a NATS server: {info}");
        io.write_all(b"CONNECT {\"verbose\":false,\"pedantic\":false}\r\nSUB answers 1\r\n").await?;
        Ok(Producer { io, payload: payload.to_vec() })
    }
}

impl Producer {
    /// Publishes once and waits until it is on disk.
    pub async fn publish(&mut self) -> Result<()> {
        let answer = self.ask("admissions").await?;
        ensure!(answer.contains("\"seq\""), "not stored: {answer}");
        Ok(())
    }

    async fn ask(&mut self, subject: &str) -> Result<String> {
        let mut message = format!("PUB {subject} answers {}\r\n", self.payload.len()).into_bytes();
        message.extend_from_slice(&self.payload);
        message.extend_from_slice(b"\r\n");
        self.io.write_all(&message).await?;
        loop {
            let mut line = String::new();
            ensure!(self.io.read_line(&mut line).await? > 0, "the server closed the connection");
            match line.trim_end().split(' ').collect::<Vec<_>>()[..] {
                ["PING"] => self.io.write_all(b"PONG\r\n").await?,
                ["MSG", .., length] => {
                    let mut body = vec![0; length.parse::<usize>()? + 2];
                    self.io.read_exact(&mut body).await?;
                    return Ok(String::from_utf8_lossy(&body).into_owned());
                }
                _ => ensure!(!line.starts_with("-ERR"), "{line}"),
            }
        }
    }
}
