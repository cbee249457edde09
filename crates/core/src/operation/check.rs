//! Sizes and counts of a request, whoever sent it.

use std::collections::BTreeMap;

use super::{Command, Operation, Request};
use crate::limits;

/// Why a request cannot be admitted by anybody: a sentence without any of its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadRequest(pub &'static str);

impl Operation {
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
        self.request.check()?;
        // What fits no frame is never received, and all that was admitted after it would wait behind it.
        let fits = self.request.size() <= limits::OPERATION_REQUEST_MAX;
        if fits { Ok(()) } else { Err(BadRequest("a request is at most 512 KiB as JSON")) }
    }
}

impl Request {
    /// Its size as JSON, in bytes.
    pub fn size(&self) -> usize {
        // What cannot be written fits nowhere.
        serde_json::to_vec(self).map_or(usize::MAX, |json| json.len())
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
