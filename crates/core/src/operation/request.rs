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
    /// Of input: the one before it for the same run, if that was sent and its end is not known. Where that was not taken this
    /// is not taken either, or a program would read what was written with a hole in it. No part of the identity, and not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<OperationId>,
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
        brief(&text)
    }

    /// Of the same kind, with no more in it than its summary says: for those that keep an operation and never do it.
    pub fn outline(&self) -> Request {
        let shell = |_: &Command| Command::Shell(self.summary());
        match self {
            Request::Exec { command, stdin, timeout_ms, on_lease_expiry, on_full, .. } => Request::Exec {
                command: shell(command),
                cwd: None,
                env: BTreeMap::new(),
                stdin: *stdin,
                timeout_ms: *timeout_ms,
                on_lease_expiry: *on_lease_expiry,
                on_full: *on_full,
            },
            Request::PtyOpen { command, cols, rows, .. } => Request::PtyOpen {
                command: command.as_ref().map(shell),
                cwd: None,
                env: BTreeMap::new(),
                cols: *cols,
                rows: *rows,
            },
            Request::ExecStdin { close, .. } => Request::ExecStdin { data: Bytes::new(), close: *close },
            Request::PtyInput { .. } => Request::PtyInput { data: Bytes::new() },
            Request::FileSync { target, .. } => {
                Request::FileSync { target: brief(target), manifest_url: None, files: Vec::new() }
            }
            Request::SyncWorkspace { .. } => {
                let path = self.summary();
                Request::SyncWorkspace {
                    projects: vec![Project { path, remote: origin(), branch: None, commit: None }],
                }
            }
            Request::CreateProjectBranch { path, branch, .. } => {
                Request::CreateProjectBranch { path: brief(path), branch: brief(branch), from: None }
            }
            Request::WorkspaceConfig { .. } => Request::WorkspaceConfig { config: Value::Null },
            Request::PtyResize { .. } | Request::PtyClose {} | Request::PortForwardConnect { .. } => self.clone(),
        }
    }
}

fn brief(text: &str) -> String {
    crate::line::one_line(&crate::redact::redact(text), limits::OPERATION_SUMMARY_MAX)
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
    fn an_outline_says_what_the_summary_says_and_nothing_else() {
        for text in [
            r#"{"type":"exec","command":{"argv":["make","all"]},"cwd":"a","env":{"TOKEN":"secret"},"stdin":true}"#,
            r#"{"type":"pty_open","command":{"shell":"top"},"env":{"TOKEN":"secret"},"cols":80,"rows":24}"#,
            r#"{"type":"pty_open","cols":80,"rows":24}"#,
            r#"{"type":"pty_resize","cols":80,"rows":24}"#,
            r#"{"type":"file_sync","target":"in","manifestUrl":"https://a.test/secret"}"#,
            r#"{"type":"sync_workspace","projects":[{"path":"a"},{"path":"b","commit":"secret"}]}"#,
            r#"{"type":"create_project_branch","path":"a","branch":"b","from":"secret"}"#,
            r#"{"type":"workspace_config","config":{"secret":1}}"#,
            r#"{"type":"port_forward_connect","port":80}"#,
        ] {
            let request: Request = serde_json::from_str(text).unwrap();
            let outline = request.outline();
            assert_eq!((outline.kind(), outline.summary()), (request.kind(), request.summary()));
            assert_eq!(outline.outline(), outline);
            assert!(!serde_json::to_string(&outline).unwrap().contains("secret"));
        }
        let input: Request = serde_json::from_str(r#"{"type":"exec_stdin","data":"AP9h","close":true}"#).unwrap();
        assert_eq!(input.outline(), Request::ExecStdin { data: Bytes::new(), close: true });
    }

    #[test]
    fn what_is_asked_is_not_printed() {
        let text = r#"{"type":"exec","command":{"argv":["login","secret"]},"env":{"TOKEN":"secret"}}"#;
        let read: Request = serde_json::from_str(text).unwrap();
        assert_eq!(format!("{read:?}"), "Request(exec)");
    }
}
