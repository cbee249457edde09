//! A desktop of its own for one test: X server, session bus, home, and the real tray application on it.
#![allow(dead_code, reason = "no suite uses all of it")]

pub mod bus;
pub mod driver;

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use holdfast_testkit::home::Home;
use holdfast_testkit::process::Signal;
pub use holdfast_testkit::stand::found as eventually;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// How long something that should be there soon may take; the machine may be busy.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// The tray application under test.
pub const APP: &str = env!("CARGO_BIN_EXE_holdfast-desktop");

/// A desktop with nothing on it.
pub struct Desktop {
    pub home: Home,
    display: String,
    bus: Option<String>,
    /// Ended in this order when dropped.
    servers: Vec<Child>,
}

impl Desktop {
    /// An X server and a session bus.
    pub async fn start() -> Desktop {
        let mut desktop = Desktop::without_bus().await;
        let mut daemon = desktop.program("dbus-daemon", &["--session", "--nofork", "--print-address=1"]);
        let (daemon, address) = announced(&mut daemon).await;
        desktop.servers.insert(0, daemon);
        desktop.bus = Some(address);
        desktop
    }

    /// An X server alone. The home's configuration is that of an embedded relay on a free port.
    pub async fn without_bus() -> Desktop {
        let home = Home::new();
        let root = home.workspace();
        home.write_config(&format!(
            "[relay]\nlisten = \"127.0.0.1:0\"\n[workspace]\nroot = {:?}\n",
            root.to_str().expect("UTF-8")
        ));
        // Without a reset when its last client leaves, during which it would refuse the next one.
        let options = ["-displayfd", "1", "-screen", "0", "1024x900x24", "-nolisten", "tcp", "-noreset"];
        let mut server = home.program(Path::new("Xvfb"), &options);
        let (server, number) = announced(&mut server).await;
        Desktop { home, display: format!(":{number}"), bus: None, servers: vec![server] }
    }

    /// A program on this desktop.
    pub fn program(&self, program: &str, args: &[&str]) -> Command {
        let mut command = self.home.program(Path::new(program), args);
        command
            .env("DISPLAY", &self.display)
            .env("GDK_BACKEND", "x11")
            .env("NO_AT_BRIDGE", "1")
            .env("GSETTINGS_BACKEND", "memory")
            .env("LIBGL_ALWAYS_SOFTWARE", "1")
            // An address that leads nowhere; without one, libraries start a bus of their own.
            .env("DBUS_SESSION_BUS_ADDRESS", self.bus.as_deref().unwrap_or("disabled:"));
        command
    }

    /// Starts the tray application.
    pub fn app(&self, args: &[&str]) -> App {
        self.app_with(self.program(APP, args))
    }

    /// The same from a command that was changed.
    pub fn app_with(&self, mut command: Command) -> App {
        command.stderr(Stdio::piped());
        let child = command.spawn().expect("the application starts");
        App { child }
    }

    /// Keeps a program until this desktop ends.
    pub fn keep(&mut self, mut command: Command) {
        self.servers.insert(0, command.spawn().expect("it starts"));
    }

    /// The session bus.
    pub fn address(&self) -> &str {
        self.bus.as_deref().expect("this desktop has a session bus")
    }

    /// What a program prints.
    pub async fn output(&self, program: &str, args: &[&str]) -> String {
        let output = self.program(program, args).output().await.expect("it runs");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Windows of this title that can be seen.
    pub async fn windows(&self) -> Vec<String> {
        let found = self.output("xdotool", &["search", "--onlyvisible", "--name", "^Holdfast$"]).await;
        found.lines().map(str::to_owned).collect()
    }

    /// Waits until a window can be seen; its X id and how long that took.
    pub async fn window(&self) -> (String, Duration) {
        let began = Instant::now();
        let id = eventually("a window", async || self.windows().await.pop()).await;
        (id, began.elapsed())
    }

    /// Waits until no window can be seen.
    pub async fn no_window(&self) {
        eventually("no window", async || self.windows().await.is_empty().then_some(())).await;
    }

    /// `holdfast status --json`.
    pub async fn status(&self) -> Value {
        self.home.json(&["status", "--json"]).await
    }

    /// Waits until the status satisfies this. Who begins or ends may not answer for a moment.
    pub async fn status_is(&self, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let look = async || {
            let told = self.home.run(&["status", "--json"]).await;
            let status = serde_json::from_slice(&told.stdout).ok().filter(|_| told.status.success());
            status.filter(|status| holds(status))
        };
        eventually(what, look).await
    }

    /// Waits until the link is proven.
    pub async fn reachable(&self) -> Value {
        self.status_is("a proven link", |status| status["relay"]["state"] == "healthy").await
    }
}

/// A running tray application. Killed when dropped.
pub struct App {
    child: Child,
}

impl App {
    /// Its process id.
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id().expect("it runs")).expect("a pid")
    }

    /// Whether it has not ended.
    pub fn runs(&mut self) -> bool {
        self.child.try_wait().expect("its status").is_none()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        holdfast_testkit::process::send(self.pid(), signal);
    }

    /// Waits for its end: its exit code and what it said on stderr.
    pub async fn ended(&mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        let mut stderr = self.child.stderr.take().expect("asked for once");
        let ending = async {
            let status = self.child.wait().await.expect("its status");
            // Whatever it started may still hold the pipe.
            drop(tokio::time::timeout(Duration::from_millis(200), stderr.read_to_string(&mut said)).await);
            status.code()
        };
        let code = tokio::time::timeout(PATIENCE, ending).await.expect("an end");
        (code, said)
    }
}

/// Starts a server that prints one line when it is ready.
async fn announced(command: &mut Command) -> (Child, String) {
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let program = format!("{:?}", command.as_std().get_program());
    let mut child = command.spawn().unwrap_or_else(|e| panic!("{program}: {e}; `make desktop-test` installs it"));
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
    stdout.read_line(&mut line).await.expect("its line");
    (child, line.trim().to_owned())
}

/// The web processes of an application.
pub fn web_processes(of: i32) -> Vec<i32> {
    let all = std::fs::read_dir("/proc").expect("/proc");
    let pids = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let is_one = |pid: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // "PID (NAME) STATE PARENT …"
        stat.contains("(WebKitWebProces") && stat.split_whitespace().nth(3) == Some(&of.to_string())
    };
    pids.filter(is_one).collect()
}
