//! The real binary as a running process: ready line, signals, logs, and a sure end.

use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub use nix::sys::signal::Signal;
use nix::sys::signal::kill;
use nix::unistd::Pid;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::Child;
use tokio::sync::mpsc;

use crate::home::Home;

const READY_TIMEOUT: Duration = Duration::from_secs(120);
const STOP_TIMEOUT: Duration = Duration::from_secs(120);

/// A running `holdfast serve` or `holdfast relay`. Killed and reaped when dropped; its log is printed when a test fails.
pub struct Process {
    name: String,
    child: Child,
    pid: Pid,
    ready: Value,
    lines: mpsc::UnboundedReceiver<Value>,
    log: Log,
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn push(&self, line: String) {
        self.0.lock().expect("no panic while held").push(line);
    }

    fn text(&self) -> String {
        self.0.lock().expect("no panic while held").join("\n")
    }

    fn follow(&self, from: impl AsyncRead + Unpin + Send + 'static, json: Option<mpsc::UnboundedSender<Value>>) {
        let log = self.clone();
        tokio::spawn(async move {
            let mut lines = BufReader::new(from).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                if let (Some(json), Ok(value)) = (&json, serde_json::from_str(&line)) {
                    let _ = json.send(value);
                }
                log.push(line);
            }
        });
    }
}

impl Home {
    /// Starts a long-running command with `--json` and waits for its ready line.
    ///
    /// # Panics
    /// If it ends or stays silent for two minutes instead, with its output.
    pub async fn start(&self, args: &[&str]) -> Process {
        let mut args = args.to_vec();
        args.push("--json");
        let mut command = self.command(&args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary starts");
        let pid = Pid::from_raw(i32::try_from(child.id().expect("just started")).expect("a pid"));
        let log = Log::default();
        let (json, lines) = mpsc::unbounded_channel();
        log.follow(child.stdout.take().expect("piped"), Some(json));
        log.follow(child.stderr.take().expect("piped"), None);
        let mut process = Process { name: args.join(" "), child, pid, ready: Value::Null, lines, log };
        process.ready = process.line("ready", READY_TIMEOUT).await;
        process
    }
}

impl Process {
    /// The ready line.
    pub fn ready(&self) -> &Value {
        &self.ready
    }

    /// A text field of the ready line.
    ///
    /// # Panics
    /// If it is not there.
    pub fn ready_text(&self, field: &str) -> &str {
        self.ready[field].as_str().unwrap_or_else(|| panic!("the ready line has no {field}: {}", self.ready))
    }

    /// The process id.
    pub fn pid(&self) -> i32 {
        self.pid.as_raw()
    }

    /// Everything it printed so far.
    pub fn log(&self) -> String {
        self.log.text()
    }

    /// Waits for the next JSON line on stdout with this `event`.
    ///
    /// # Panics
    /// After `timeout`, or when the process ends first.
    pub async fn line(&mut self, event: &str, timeout: Duration) -> Value {
        let found = tokio::time::timeout(timeout, async {
            while let Some(line) = self.lines.recv().await {
                if line["event"] == event {
                    return Some(line);
                }
            }
            None
        });
        match found.await {
            Ok(Some(line)) => line,
            Ok(None) => panic!("`holdfast {}` ended before its {event} line:\n{}", self.name, self.log()),
            Err(_) => panic!("`holdfast {}` printed no {event} line within {timeout:?}:\n{}", self.name, self.log()),
        }
    }

    /// Sends a signal to this process alone.
    pub fn signal(&self, signal: Signal) {
        // Reaped already: nothing to signal, and the id may belong to somebody else.
        if self.child.id().is_some() {
            let _ = kill(self.pid, signal);
        }
    }

    /// kill -9, then reaps.
    pub async fn kill_9(&mut self) {
        self.signal(Signal::SIGKILL);
        let _ = self.child.wait().await;
    }

    /// Stops it (SIGSTOP): the process is frozen as in a suspend.
    pub fn freeze(&self) {
        self.signal(Signal::SIGSTOP);
    }

    /// Lets it go on (SIGCONT).
    pub fn thaw(&self) {
        self.signal(Signal::SIGCONT);
    }

    /// Asks it to stop (SIGTERM) and waits for its end.
    ///
    /// # Panics
    /// If it does not end within two minutes.
    pub async fn stop(&mut self) -> ExitStatus {
        self.signal(Signal::SIGTERM);
        self.ended().await
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// If it does not end within two minutes.
    pub async fn ended(&mut self) -> ExitStatus {
        match tokio::time::timeout(STOP_TIMEOUT, self.child.wait()).await {
            Ok(status) => status.expect("its status"),
            Err(_) => panic!("`holdfast {}` did not end within {STOP_TIMEOUT:?}:\n{}", self.name, self.log()),
        }
    }
}

/// Sends a signal to a process of this test.
///
/// # Panics
/// If there is no such process.
pub fn send(pid: i32, signal: Signal) {
    assert!(try_send(pid, signal), "process {pid} does not run");
}

/// Sends a signal to a process of this test that may have ended. `false` if it has.
pub fn try_send(pid: i32, signal: Signal) -> bool {
    kill(Pid::from_raw(pid), signal).is_ok()
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
        // Dropped outside async code too, so the reaping is a short blocking loop.
        for _ in 0..400 {
            match self.child.try_wait() {
                Ok(None) => std::thread::sleep(Duration::from_millis(5)),
                _ => break,
            }
        }
        if std::thread::panicking() {
            eprintln!("---- holdfast {} ----\n{}\n----", self.name, self.log());
        }
    }
}
