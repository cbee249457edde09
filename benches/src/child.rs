//! Processes of the bench: its own roles and the peers. They die with the value that holds them.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::Instant;

/// A running process, its own process group.
pub struct Running {
    child: Child,
    pid: u32,
    lines: Option<Lines<BufReader<ChildStdout>>>,
}

impl Running {
    /// Starts a program whose stdout is read with [`Running::hear`] if it is piped.
    pub fn start(command: &mut Command) -> Result<Running> {
        let mut child = command.stdin(Stdio::piped()).process_group(0).spawn().context("starting")?;
        let lines = child.stdout.take().map(|stdout| BufReader::new(stdout).lines());
        let pid = child.id().context("it ended at once")?;
        Ok(Running { child, pid, lines })
    }

    /// Starts this binary in a role.
    pub fn role(arguments: &[&str]) -> Result<Running> {
        Running::start(Command::new(std::env::current_exe()?).args(arguments).stdout(Stdio::piped()))
    }

    /// Gives it this on stdin, which ends there.
    pub async fn tell(&mut self, text: &str) -> Result<()> {
        let mut stdin = self.child.stdin.take().context("told twice")?;
        stdin.write_all(text.as_bytes()).await?;
        Ok(stdin.shutdown().await?)
    }

    /// The next line it says.
    pub async fn hear<T: DeserializeOwned>(&mut self) -> Result<T> {
        let line = self.line().await?;
        serde_json::from_str(&line).with_context(|| format!("not understood: {line}"))
    }

    /// The next line as it is.
    pub async fn line(&mut self) -> Result<String> {
        let lines = self.lines.as_mut().context("stdout is not piped")?;
        lines.next_line().await?.context("the process ended")
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Sends a signal to the whole group.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        Ok(killpg(Pid::from_raw(self.pid.cast_signed()), signal)?)
    }

    /// Asks it to end, and waits until it has.
    pub async fn stop(mut self) -> Result<()> {
        self.signal(Signal::SIGTERM)?;
        self.child.wait().await?;
        Ok(())
    }

    /// Waits until something listens.
    pub async fn wait_for(&mut self, address: SocketAddr) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(30);
        while tokio::net::TcpStream::connect(address).await.is_err() {
            if let Some(status) = self.child.try_wait()? {
                bail!("it ended: {status}");
            }
            if Instant::now() > deadline {
                bail!("nothing listens on {address}");
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.signal(Signal::SIGKILL);
    }
}
