//! What a program sees of this machine.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use holdfast_core::code::ToolError;
use holdfast_core::limits;
use holdfast_core::policy::Policy;
use tokio::process::Command;

use crate::exec::call::invalid;
use crate::exec::env::Env;
use crate::exec::files::Access;

/// Variables a minimal environment keeps: where programs are, and how text and time look.
const KEPT: &[&str] = &["PATH", "LANG", "LANGUAGE", "TZ", "TERM", "USER", "LOGNAME", "SHELL"];

/// What Windows programs cannot start without.
#[cfg(windows)]
const KEPT_WINDOWS: &[&str] = &[
    "SystemRoot",
    "SystemDrive",
    "windir",
    "ComSpec",
    "PATHEXT",
    "NUMBER_OF_PROCESSORS",
    "PROCESSOR_ARCHITECTURE",
    "OS",
];

/// A program as tools and durable runs start it: checked, with its folder and its whole environment.
pub(in crate::exec) struct Program {
    pub(in crate::exec) argv: Vec<String>,
    pub(in crate::exec) cwd: PathBuf,
    pub(in crate::exec) environment: Vec<(OsString, OsString)>,
    /// The last item is a line that its shell reads by its own rules.
    #[cfg(windows)]
    line: bool,
}

impl Program {
    /// As a call starts it.
    pub(in crate::exec) fn command(self) -> Command {
        let mut command = Command::new(&self.argv[0]);
        let arguments = &self.argv[1..];
        #[cfg(windows)]
        let arguments = match arguments.split_last() {
            Some((line, before)) if self.line => {
                // Quoting as for other programs would change it.
                command.raw_arg(before.join(" ")).raw_arg(format!("\"{line}\""));
                &[]
            }
            _ => arguments,
        };
        command.args(arguments).current_dir(self.cwd).env_clear().envs(self.environment);
        command
    }
}

/// A program of an argument vector.
pub(in crate::exec) fn direct(env: &Env, policy: &Policy, argv: &[String], cwd: &str) -> Result<Program, ToolError> {
    let bytes: usize = argv.iter().map(String::len).sum();
    if argv.is_empty() || argv.len() > limits::ARGV_MAX || bytes > limits::ARGV_BYTES_MAX {
        return Err(invalid(format!(
            "argv must have 1 to {} items of {} bytes in all",
            limits::ARGV_MAX,
            limits::ARGV_BYTES_MAX
        )));
    }
    if argv[0].is_empty() || argv.iter().any(|item| item.contains('\0')) {
        return Err(invalid("argv must name a program and hold no NUL"));
    }
    placed(env, policy, argv.to_vec(), cwd)
}

/// A command line for the system's shell.
pub(in crate::exec) fn shell(env: &Env, policy: &Policy, line: &str, cwd: &str) -> Result<Program, ToolError> {
    if line.is_empty() || line.len() > limits::COMMAND_MAX || line.contains('\0') {
        return Err(invalid(format!("command must have 1 to {} bytes and no NUL", limits::COMMAND_MAX)));
    }
    #[cfg(unix)]
    return placed(env, policy, vec!["/bin/sh".into(), "-c".into(), line.into()], cwd);
    #[cfg(windows)]
    {
        let argv = ["cmd.exe", "/D", "/S", "/C", line].map(str::to_owned).to_vec();
        placed(env, policy, argv, cwd).map(|program| Program { line: true, ..program })
    }
}

fn placed(env: &Env, policy: &Policy, argv: Vec<String>, cwd: &str) -> Result<Program, ToolError> {
    let spot = env.files.find(cwd, policy, Access::Read)?;
    if !spot.real.is_dir() {
        return Err(invalid("cwd is not a folder"));
    }
    let environment = match policy.minimal_env {
        true => minimal(&env.home),
        false => own_environment().collect(),
    };
    Ok(Program {
        argv,
        cwd: spot.real,
        environment,
        #[cfg(windows)]
        line: false,
    })
}

/// This process's own environment without what is Holdfast's, which can hold credentials.
pub(crate) fn own_environment() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os().filter(|(name, _)| !name.as_encoded_bytes().starts_with(b"HOLDFAST_"))
}

fn minimal(home: &Path) -> Vec<(OsString, OsString)> {
    let mut all: Vec<(OsString, OsString)> = std::env::vars_os()
        .filter(|(name, _)| {
            let name = name.to_string_lossy();
            #[cfg(windows)]
            if KEPT_WINDOWS.iter().any(|kept| name.eq_ignore_ascii_case(kept)) {
                return true;
            }
            KEPT.contains(&&*name) || name.starts_with("LC_")
        })
        .collect();
    let tmp = home.join("tmp");
    let own = [
        ("HOME", home.to_path_buf()),
        ("TMPDIR", tmp.clone()),
        ("XDG_CACHE_HOME", home.join(".cache")),
        #[cfg(windows)]
        ("USERPROFILE", home.to_path_buf()),
        #[cfg(windows)]
        ("TEMP", tmp.clone()),
        #[cfg(windows)]
        ("TMP", tmp),
    ];
    all.extend(own.map(|(name, path)| (name.into(), path.into_os_string())));
    all
}
