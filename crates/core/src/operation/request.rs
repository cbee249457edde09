//! What an operation asks. Field names are the wire's.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::bytes_text;
use crate::id::{OperationId, RunId};
use crate::limits;
use crate::policy::Role;

/// What to run: an argument vector, or a line for the system's shell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// A program and its arguments.
    Argv(Vec<String>),
    /// A command line.
    Shell(String),
}

/// What happens to a run whose lease expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum OnLeaseExpiry {
    /// It goes on; its end counts.
    #[default]
    Continue,
    /// It must not run unsupervised: its runner kills it, and what it says afterwards is evidence.
    Stop,
}

/// What happens to output that finds its spool full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFull {
    /// The program waits; nothing is lost.
    #[default]
    Wait,
    /// The middle is given up, counted.
    DropMiddle,
}

/// A file to fetch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct File {
    /// Where it goes, relative to the target folder.
    pub filename: String,
    /// SHA-256 of its bytes, hexadecimal.
    pub sha256: String,
    /// Its size in bytes.
    pub size: u64,
    /// Where it is.
    pub url: String,
}

/// A git project of the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Project {
    /// Its folder, relative to the workspace.
    pub path: String,
    /// The remote's name.
    #[serde(default = "origin")]
    pub remote: String,
    /// The branch; absent means the one that is checked out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// With it, what changed is committed under this message and pushed; without, the branch is fast-forwarded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

fn origin() -> String {
    "origin".into()
}

/// One request. Sizes and counts are bounded by [`Request::check`].
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Request {
    /// Runs a program.
    Exec {
        /// What to run.
        command: Command,
        /// Its folder, relative to the workspace.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cwd: Option<String>,
        /// Variables on top of the device's own rules.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        env: BTreeMap<String, String>,
        /// Whether its input stays open for `exec_stdin`.
        #[serde(default)]
        stdin: bool,
        /// Milliseconds of awake time after which it is killed; absent means never.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<u64>,
        /// When the lease expires.
        #[serde(default)]
        on_lease_expiry: OnLeaseExpiry,
        /// When its output finds no room.
        #[serde(default)]
        on_full: OnFull,
    },
    /// Opens a terminal: a run with one stream, `pty`.
    PtyOpen {
        /// What to run; absent means the user's shell.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        command: Option<Command>,
        /// Its folder, relative to the workspace.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cwd: Option<String>,
        /// Variables on top of the device's own rules.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        env: BTreeMap<String, String>,
        /// Columns.
        cols: u16,
        /// Rows.
        rows: u16,
    },
    /// Gives input to a program.
    ExecStdin {
        /// The bytes.
        #[serde(default, with = "bytes_text", skip_serializing_if = "Bytes::is_empty")]
        data: Bytes,
        /// Whether that was all.
        #[serde(default)]
        close: bool,
    },
    /// Gives input to a terminal.
    PtyInput {
        /// The bytes.
        #[serde(with = "bytes_text")]
        data: Bytes,
    },
    /// Changes a terminal's size.
    PtyResize {
        /// Columns.
        cols: u16,
        /// Rows.
        rows: u16,
    },
    /// Closes a terminal: what runs in it hears a hang-up.
    PtyClose {},
    /// Fetches files, from the relay or from hosts the configuration allows.
    FileSync {
        /// The folder they go to, relative to the workspace.
        target: String,
        /// Where the list of files is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        manifest_url: Option<String>,
        /// The list itself.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<File>,
    },
    /// Brings git projects up to date, or commits and pushes them.
    SyncWorkspace {
        /// Which.
        projects: Vec<Project>,
    },
    /// Makes a branch in a project and checks it out.
    CreateProjectBranch {
        /// The project's folder, relative to the workspace.
        path: String,
        /// The new branch.
        branch: String,
        /// What it starts from; absent means what is checked out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<String>,
    },
    /// Says what the worker works for; the same digest again changes nothing.
    WorkspaceConfig {
        /// What is configured: a small object.
        config: Value,
    },
    /// Opens a connection to a port of this machine; its bytes travel as input and as stream `stdout` of the run.
    PortForwardConnect {
        /// The port on 127.0.0.1.
        port: u16,
    },
}

/// An operation as it travels and is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Operation {
    /// Its identity.
    pub request_id: OperationId,
    /// Of an operation that starts a run: what the run is called. Of input: whose it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The session it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The role of the account that asks: it caps what the device's policy allows, as with a tool call. No part of the
    /// identity.
    #[serde(default = "least_role")]
    pub role: Role,
    /// The client that asks, as the relay vouches for it. No part of the identity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// What it asks.
    #[serde(flatten)]
    pub request: Request,
}

/// Of an operation that does not say: the weakest that may ask for one.
fn least_role() -> Role {
    Role::Operator
}

impl Operation {
    /// Its kind.
    pub const fn kind(&self) -> Kind {
        self.request.kind()
    }

    /// Checks sizes, counts, and that it names a run exactly where it must.
    pub fn check(&self) -> Result<(), BadRequest> {
        if self.run_id.is_some() != (self.kind().is_run() || self.kind().is_input()) {
            return Err(BadRequest("runId names the run that is started, or that input is for"));
        }
        if self.session_id.as_ref().is_some_and(|id| id.is_empty() || id.len() > limits::OPERATION_SESSION_MAX) {
            return Err(BadRequest("sessionId has 1 to 128 bytes"));
        }
        if self.client.as_ref().is_some_and(|id| id.len() > limits::OPERATION_CLIENT_MAX) {
            return Err(BadRequest("client has at most 2 048 bytes"));
        }
        self.request.check()
    }
}

/// Arguments, environment, input and addresses can hold secrets.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Request({})", self.kind().as_str())
    }
}

/// The kind of a request, as lists show it and stores keep it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Kind {
    Exec,
    PtyOpen,
    ExecStdin,
    PtyInput,
    PtyResize,
    PtyClose,
    FileSync,
    SyncWorkspace,
    CreateProjectBranch,
    WorkspaceConfig,
    PortForwardConnect,
}

impl Kind {
    /// Whether it starts a run, with output, input and an exit of its own.
    pub const fn is_run(self) -> bool {
        matches!(self, Kind::Exec | Kind::PtyOpen | Kind::PortForwardConnect)
    }

    /// Whether doing it again after a crash in the middle comes to the same.
    pub const fn is_repeatable(self) -> bool {
        matches!(self, Kind::PtyResize | Kind::PtyClose | Kind::FileSync | Kind::WorkspaceConfig)
    }

    /// Whether it is for a run that exists. The runner recognises a repetition by its request id.
    pub const fn is_input(self) -> bool {
        matches!(self, Kind::ExecStdin | Kind::PtyInput | Kind::PtyResize | Kind::PtyClose)
    }

    /// Its name in stores and on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::Exec => "exec",
            Kind::PtyOpen => "pty_open",
            Kind::ExecStdin => "exec_stdin",
            Kind::PtyInput => "pty_input",
            Kind::PtyResize => "pty_resize",
            Kind::PtyClose => "pty_close",
            Kind::FileSync => "file_sync",
            Kind::SyncWorkspace => "sync_workspace",
            Kind::CreateProjectBranch => "create_project_branch",
            Kind::WorkspaceConfig => "workspace_config",
            Kind::PortForwardConnect => "port_forward_connect",
        }
    }
}

/// Why a request cannot be admitted by anybody: a sentence without any of its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadRequest(pub &'static str);

impl Request {
    /// Its kind.
    pub const fn kind(&self) -> Kind {
        match self {
            Request::Exec { .. } => Kind::Exec,
            Request::PtyOpen { .. } => Kind::PtyOpen,
            Request::ExecStdin { .. } => Kind::ExecStdin,
            Request::PtyInput { .. } => Kind::PtyInput,
            Request::PtyResize { .. } => Kind::PtyResize,
            Request::PtyClose { .. } => Kind::PtyClose,
            Request::FileSync { .. } => Kind::FileSync,
            Request::SyncWorkspace { .. } => Kind::SyncWorkspace,
            Request::CreateProjectBranch { .. } => Kind::CreateProjectBranch,
            Request::WorkspaceConfig { .. } => Kind::WorkspaceConfig,
            Request::PortForwardConnect { .. } => Kind::PortForwardConnect,
        }
    }

    /// When the lease expires.
    pub const fn on_lease_expiry(&self) -> OnLeaseExpiry {
        match self {
            Request::Exec { on_lease_expiry, .. } => *on_lease_expiry,
            _ => OnLeaseExpiry::Continue,
        }
    }

    /// Checks sizes and counts, whoever sent it.
    pub fn check(&self) -> Result<(), BadRequest> {
        let fail = |why| Err(BadRequest(why));
        match self {
            Request::Exec { command, cwd, env, .. } => program(Some(command), cwd.as_deref(), env),
            Request::PtyOpen { command, cwd, env, cols, rows } => {
                screen(*cols, *rows)?;
                program(command.as_ref(), cwd.as_deref(), env)
            }
            Request::PtyResize { cols, rows } => screen(*cols, *rows),
            Request::ExecStdin { data, .. } | Request::PtyInput { data } => {
                match data.len() > limits::OPERATION_INPUT_MAX {
                    true => fail("one piece of input is at most 256 KiB"),
                    false => Ok(()),
                }
            }
            Request::PtyClose {} => Ok(()),
            Request::FileSync { target, manifest_url, files } => {
                path(target)?;
                if manifest_url.is_some() != files.is_empty() {
                    return fail("file_sync takes either manifestUrl or files");
                }
                if files.len() > limits::SYNC_FILES_MAX {
                    return fail("file_sync takes at most 1 024 files");
                }
                manifest_url.iter().try_for_each(|url| address(url))?;
                for file in files {
                    path(&file.filename)?;
                    address(&file.url)?;
                    if file.sha256.len() != 64 || !file.sha256.bytes().all(|b| b.is_ascii_hexdigit()) {
                        return fail("sha256 is 64 hexadecimal digits");
                    }
                    if file.size > limits::SYNC_FILE_MAX {
                        return fail("a file is at most 4 GiB");
                    }
                }
                Ok(())
            }
            Request::SyncWorkspace { projects } => {
                if projects.is_empty() || projects.len() > limits::SYNC_PROJECTS_MAX {
                    return fail("sync_workspace takes 1 to 64 projects");
                }
                projects.iter().try_for_each(|project| {
                    path(&project.path)?;
                    name(&project.remote)?;
                    project.branch.iter().try_for_each(|branch| name(branch))?;
                    match project.commit.as_ref().is_some_and(|text| text.is_empty() || text.len() > 16 * 1024) {
                        true => fail("a commit message has 1 to 16 384 bytes"),
                        false => Ok(()),
                    }
                })
            }
            Request::CreateProjectBranch { path: project, branch, from } => {
                path(project)?;
                name(branch)?;
                from.iter().try_for_each(|from| name(from))
            }
            Request::WorkspaceConfig { config } => {
                match config.is_object() && config.to_string().len() <= limits::WORKSPACE_CONFIG_MAX {
                    true => Ok(()),
                    false => fail("config is an object of at most 64 KiB"),
                }
            }
            Request::PortForwardConnect { port } => match port {
                0 => fail("port is 1 to 65 535"),
                _ => Ok(()),
            },
        }
    }
}

fn program(command: Option<&Command>, cwd: Option<&str>, env: &BTreeMap<String, String>) -> Result<(), BadRequest> {
    match command {
        Some(Command::Argv(argv)) => {
            let bytes: usize = argv.iter().map(String::len).sum();
            let named = argv.first().is_some_and(|program| !program.is_empty());
            if !named || argv.len() > limits::ARGV_MAX || bytes > limits::ARGV_BYTES_MAX {
                return Err(BadRequest("argv names a program and is within its bounds"));
            }
            if argv.iter().any(|item| item.contains('\0')) {
                return Err(BadRequest("argv holds no NUL"));
            }
        }
        Some(Command::Shell(line)) if line.is_empty() || line.len() > limits::COMMAND_MAX || line.contains('\0') => {
            return Err(BadRequest("a command line is not empty, within its bound, and holds no NUL"));
        }
        _ => {}
    }
    cwd.map_or(Ok(()), path)?;
    let bytes: usize = env.iter().map(|(name, value)| name.len() + value.len()).sum();
    let named = env.keys().all(|name| !name.is_empty() && !name.contains(['=', '\0']));
    if env.len() > limits::OPERATION_ENV_MAX || bytes > limits::ARGV_BYTES_MAX || !named {
        return Err(BadRequest("env holds at most 256 well-formed variables"));
    }
    match env.values().any(|value| value.contains('\0')) {
        true => Err(BadRequest("env holds no NUL")),
        false => Ok(()),
    }
}

fn screen(cols: u16, rows: u16) -> Result<(), BadRequest> {
    match (1..=1000).contains(&cols) && (1..=1000).contains(&rows) {
        true => Ok(()),
        false => Err(BadRequest("a terminal has 1 to 1 000 columns and rows")),
    }
}

fn path(text: &str) -> Result<(), BadRequest> {
    match text.len() > limits::PATH_MAX || text.contains('\0') {
        true => Err(BadRequest("a path is within its bound and holds no NUL")),
        false => Ok(()),
    }
}

fn address(text: &str) -> Result<(), BadRequest> {
    match text.is_empty() || text.len() > limits::SYNC_URL_MAX || text.chars().any(char::is_control) {
        true => Err(BadRequest("a URL has 1 to 4 096 characters")),
        false => Ok(()),
    }
}

/// A remote, branch or revision: never an option, never more than one word.
fn name(text: &str) -> Result<(), BadRequest> {
    let plain = |c: char| c.is_alphanumeric() || "-_./@".contains(c);
    match text.is_empty() || text.len() > 255 || text.starts_with(['-', '.', '/']) || !text.chars().all(plain) {
        true => Err(BadRequest("a name in git is letters, digits and - _ . / @, and does not start with - . /")),
        false => Ok(()),
    }
}

impl Request {
    /// What it is, in a few words for a list, without environment or input. At most [`limits::OPERATION_SUMMARY_MAX`] characters, cleaned and redacted.
    pub fn summary(&self) -> String {
        let text = match self {
            Request::Exec { command, .. } | Request::PtyOpen { command: Some(command), .. } => match command {
                Command::Argv(argv) => argv.join(" "),
                Command::Shell(line) => line.clone(),
            },
            Request::PtyOpen { command: None, .. } => "a shell".into(),
            Request::FileSync { target, files, .. } if !files.is_empty() => {
                format!("{} files to {target}", files.len())
            }
            Request::FileSync { target, .. } => format!("files to {target}"),
            Request::SyncWorkspace { projects } => {
                projects.iter().map(|project| project.path.as_str()).collect::<Vec<_>>().join(", ")
            }
            Request::CreateProjectBranch { path, branch, .. } => format!("{branch} in {path}"),
            Request::PortForwardConnect { port } => format!("port {port}"),
            Request::ExecStdin { data, .. } | Request::PtyInput { data } => format!("{} bytes", data.len()),
            Request::PtyResize { cols, rows } => format!("{cols} × {rows}"),
            Request::PtyClose {} | Request::WorkspaceConfig { .. } => String::new(),
        };
        crate::line::one_line(&crate::redact::redact(&text), limits::OPERATION_SUMMARY_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_reads_back_as_it_was_written() {
        let text = r#"{"type":"exec_stdin","data":"AP9h","close":true}"#;
        let read: Request = serde_json::from_str(text).unwrap();
        assert_eq!(read, Request::ExecStdin { data: Bytes::from_static(b"\0\xffa"), close: true });
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
    }

    #[test]
    fn what_is_asked_is_not_printed() {
        let text = r#"{"type":"exec","command":{"argv":["login","secret"]},"env":{"TOKEN":"secret"}}"#;
        let read: Request = serde_json::from_str(text).unwrap();
        assert_eq!(format!("{read:?}"), "Request(exec)");
    }
}
