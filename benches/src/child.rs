//! Processes of the bench: its own roles and the peers. They die with the value that holds them.

use std::io::{BufRead as _, BufReader, Lines};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde::de::DeserializeOwned;

/// A running process, its own process group.
pub struct Running {
    child: Child,
    lines: Option<Lines<BufReader<ChildStdout>>>,
}

impl Running {
    /// Starts a program whose stdout is read with [`Running::hear`] if it is piped.
    pub fn start(command: &mut Command) -> Result<Running> {
        use std::os::unix::process::CommandExt as _;
        let mut child = command
            .stdin(Stdio::piped())
            .process_group(0)
            .spawn()
            .with_context(|| format!("starting {:?}", command.get_program()))?;
        let lines = child.stdout.take().map(|stdout| BufReader::new(stdout).lines());
        Ok(Running { child, lines })
    }

    /// Starts this binary in a role.
    pub fn role(arguments: &[&str]) -> Result<Running> {
        Running::start(Command::new(std::env::current_exe()?).args(arguments).stdout(Stdio::piped()))
    }

    /// The next line the role says.
    pub fn hear<T: DeserializeOwned>(&mut self) -> Result<T> {
        let line = self.lines.as_mut().and_then(Iterator::next).context("the process ended")??;
        serde_json::from_str(&line).with_context(|| format!("not understood: {line}"))
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until something listens.
    pub fn wait_for(&mut self, address: SocketAddr) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(30);
        while std::net::TcpStream::connect(address).is_err() {
            if let Some(status) = self.child.try_wait()? {
                bail!("it ended: {status}");
            }
            if Instant::now() > deadline {
                bail!("nothing listens on {address}");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let group = nix::unistd::Pid::from_raw(self.child.id().cast_signed());
        // It may have ended by itself.
        let _ = nix::sys::signal::killpg(group, nix::sys::signal::Signal::SIGKILL);
        let _ = self.child.wait();
    }
}
