//! Durable operations under the rules of tool calls: the device's policy, the account's role, the question to the person.

use std::collections::BTreeMap;
use std::path::PathBuf;

use holdfast_core::code::{Code, ToolError};
use holdfast_core::operation::{Command, Failure, Operation, Request};
use holdfast_core::run::Program;

use super::LocalExecutor;
use super::call::invalid;
use super::process::{self, direct, shell};

/// What a run starts: checked, with its folder and its whole environment.
pub(crate) struct Prepared {
    pub(crate) program: Program,
    pub(crate) cwd: PathBuf,
    pub(crate) env: Vec<(String, String)>,
}

/// No variable of ours comes from outside.
const OURS: &str = "HOLDFAST_";

impl LocalExecutor {
    /// Whether this device does an operation now. What would ask the person first, were it a call, is refused: it may wait
    /// for an hour and start when nobody is there to answer.
    pub(crate) fn judge(&self, operation: &Operation) -> Result<(), Failure> {
        let Operation { request, role, client, .. } = operation;
        self.admits(request.class(), *role).map_err(refused)?;
        if request.effect().is_some_and(|effect| self.env().asking.would_ask(effect, client.as_deref())) {
            let why = "this machine asks its person before it does this, and an operation may start when nobody is there; \
                       a tool call asks";
            return Err(Failure::new(Code::PolicyDenied, why));
        }
        Ok(())
    }

    /// What an operation's run starts, under the policy of this moment; in `folder` unless it names one, with `variables`
    /// below its own. Blocks.
    pub(crate) fn prepare(
        &self,
        operation: &Operation,
        folder: Option<&str>,
        variables: BTreeMap<String, String>,
    ) -> Result<Prepared, Failure> {
        let policy = self.admits(operation.request.class(), operation.role).map_err(refused)?;
        let env = self.env();
        let (command, cwd, set) = match &operation.request {
            Request::Exec { command, cwd, env, .. } => (Some(command), cwd, env),
            Request::PtyOpen { command, cwd, env, .. } => (command.as_ref(), cwd, env),
            Request::PortForwardConnect { port } => {
                let cwd = env.files.root().to_path_buf();
                return Ok(Prepared { program: Program::Port(*port), cwd, env: Vec::new() });
            }
            _ => return Err(Failure::new(Code::InvalidRequest, "this kind of operation starts no run")),
        };
        let cwd = cwd.as_deref().or(folder).unwrap_or(".");
        let process::Program { argv, cwd, environment, .. } = match command {
            Some(Command::Argv(argv)) => direct(env, &policy, argv, cwd)?,
            Some(Command::Shell(line)) => shell(env, &policy, line, cwd)?,
            None => direct(env, &policy, &[users_shell()], cwd)?,
        };
        if variables.keys().chain(set.keys()).any(|name| name.starts_with(OURS)) {
            return Err(invalid("env holds no variable that begins with HOLDFAST_").into());
        }
        // A variable that is no text can be kept for a tool's program, but not told to a runner.
        let mut env: Vec<(String, String)> = environment
            .into_iter()
            .filter_map(|(name, value)| name.into_string().ok().zip(value.into_string().ok()))
            .collect();
        let mut put = |name: &str, value: &str| {
            env.retain(|(known, _)| known != name);
            env.push((name.to_owned(), value.to_owned()));
        };
        let program = match operation.request {
            Request::PtyOpen { cols, rows, .. } => {
                put("TERM", "xterm-256color");
                Program::Pty { argv, cols, rows }
            }
            Request::Exec { stdin, .. } => Program::Pipes { argv, stdin },
            _ => return Err(ToolError::new(Code::InternalError, "no program").into()),
        };
        variables.iter().chain(set).for_each(|(name, value)| put(name, value));
        Ok(Prepared { program, cwd, env })
    }
}

/// What a tool call is told, said of an operation.
fn refused(error: ToolError) -> Failure {
    let who = if error.code == Code::PolicyDenied { "policy of this device" } else { "role of this account" };
    Failure::new(error.code, format!("the {who} does not allow this kind of operation"))
}

fn users_shell() -> String {
    #[cfg(unix)]
    return std::env::var("SHELL").ok().filter(|shell| shell.starts_with('/')).unwrap_or_else(|| "/bin/sh".into());
    #[cfg(windows)]
    std::env::var("ComSpec").unwrap_or_else(|_| "cmd.exe".into())
}
