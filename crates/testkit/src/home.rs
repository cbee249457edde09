//! A temporary home for one run of the product: its own HOME, XDG folders, data, config and workspace.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// How long a command that should end by itself may take.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(120);

/// A temporary home. Removed when dropped.
pub struct Home {
    root: TempDir,
    state: PathBuf,
    more: Vec<(String, String)>,
}

impl Home {
    /// Makes the folders.
    ///
    /// # Panics
    /// If the temporary folder cannot be written.
    #[expect(clippy::new_without_default, reason = "it makes folders; a default should not")]
    pub fn new() -> Home {
        let root = tempfile::tempdir().expect("a temporary folder");
        let home = Home { state: root.path().join("xdg-state"), root, more: Vec::new() };
        for folder in [home.data(), home.config(), home.workspace(), home.root.path().join("run")] {
            std::fs::create_dir_all(folder).expect("a folder in it");
        }
        home
    }

    /// Another home of the same person: the state folder, where the seats of bots are, is the other's.
    pub fn beside(other: &Home) -> Home {
        Home { state: other.state.clone(), ..Home::new() }
    }

    /// A further variable in the environment of everything that is started here.
    pub fn set(&mut self, name: &str, value: &str) {
        self.more.push((name.into(), value.into()));
    }

    /// Where the seats of bots are.
    pub fn seats(&self) -> PathBuf {
        self.state.join("holdfast/seats")
    }

    /// The data folder.
    pub fn data(&self) -> PathBuf {
        self.root.path().join("data")
    }

    /// The config folder.
    pub fn config(&self) -> PathBuf {
        self.root.path().join("config")
    }

    /// The workspace that tools see.
    pub fn workspace(&self) -> PathBuf {
        self.root.path().join("workspace")
    }

    /// Writes `config.toml`.
    ///
    /// # Panics
    /// If the file cannot be written.
    pub fn write_config(&self, toml: &str) {
        std::fs::write(self.config().join("config.toml"), toml).expect("config.toml");
    }

    /// The folder for sockets and other things of one session.
    pub fn runtime(&self) -> PathBuf {
        self.root.path().join("run")
    }

    /// The real `holdfast` binary with this home's environment and nothing else of ours, in the workspace.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = self.program(&binary(), args);
        command.current_dir(self.workspace());
        command
    }

    /// The same for another program.
    pub fn program(&self, program: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(args).env_clear().current_dir(self.root.path());
        for name in ["PATH", "LLVM_PROFILE_FILE", "HOLDFAST_LOG"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        let at = |name: &str| self.root.path().join(name);
        command
            .env("HOME", self.root.path())
            .env("XDG_CONFIG_HOME", at("xdg-config"))
            .env("XDG_DATA_HOME", at("xdg-data"))
            .env("XDG_STATE_HOME", &self.state)
            .env("XDG_CACHE_HOME", at("xdg-cache"))
            .env("XDG_RUNTIME_DIR", self.runtime())
            .env("TMPDIR", std::env::temp_dir())
            .env("HOLDFAST_DATA_DIR", self.data())
            .env("HOLDFAST_CONFIG_DIR", self.config())
            .env("HOLDFAST_SECRETS", "file")
            .env("LANG", "C.UTF-8")
            .env("RUST_BACKTRACE", "1")
            .envs(self.more.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    /// Runs a command to its end, with this text on stdin.
    ///
    /// # Panics
    /// If it cannot be started or does not end within two minutes.
    pub async fn run_with(&self, args: &[&str], stdin: &str) -> Output {
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary starts");
        let mut input = child.stdin.take().expect("piped");
        // A command that reads no stdin may close it first.
        let _ = input.write_all(stdin.as_bytes()).await;
        drop(input);
        match tokio::time::timeout(COMMAND_TIMEOUT, child.wait_with_output()).await {
            Ok(output) => output.expect("its output"),
            Err(_) => panic!("holdfast {args:?} did not end within {COMMAND_TIMEOUT:?}"),
        }
    }

    /// Runs a command to its end.
    pub async fn run(&self, args: &[&str]) -> Output {
        self.run_with(args, "").await
    }

    /// Runs a command that must succeed; its stdout, trimmed.
    ///
    /// # Panics
    /// If it fails, with its stderr.
    pub async fn ok(&self, args: &[&str]) -> String {
        let output = self.run(args).await;
        let stdout = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        assert!(
            output.status.success(),
            "holdfast {args:?} failed with {}\n{stdout}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        stdout
    }

    /// Runs a command that must succeed and print one JSON document.
    ///
    /// # Panics
    /// If it fails or prints something else.
    pub async fn json(&self, args: &[&str]) -> Value {
        let text = self.ok(args).await;
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("holdfast {args:?} printed no JSON ({e}): {text}"))
    }
}

/// The `holdfast` binary beside the running test binary. Cargo does not build another package's binary for tests.
fn binary() -> PathBuf {
    let test = std::env::current_exe().expect("the test's own path");
    let profile = test.parent().and_then(|deps| deps.parent()).expect("target/<profile>/deps");
    let binary = profile.join(format!("holdfast{}", std::env::consts::EXE_SUFFIX));
    assert!(binary.exists(), "{} is not built; run `cargo build -p holdfast` first (make test does)", binary.display());
    binary
}
