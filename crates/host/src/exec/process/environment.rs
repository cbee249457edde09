//! What a program sees of this machine.

use std::ffi::OsString;
use std::path::Path;

use holdfast_core::code::ToolError;
use holdfast_core::limits;
use tokio::process::Command;

use crate::exec::call::{Call, invalid};
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

/// A command of an argument vector, with its folder and environment.
pub(in crate::exec) fn command(env: &Env, call: &Call, argv: &[String], cwd: &str) -> Result<Command, ToolError> {
    let (program, arguments) = argv.split_first().ok_or_else(|| invalid("argv must name a program"))?;
    let bytes: usize = argv.iter().map(String::len).sum();
    if argv.len() > limits::ARGV_MAX || bytes > limits::ARGV_BYTES_MAX {
        return Err(invalid(format!(
            "argv must have 1 to {} items of {} bytes in all",
            limits::ARGV_MAX,
            limits::ARGV_BYTES_MAX
        )));
    }
    if program.is_empty() || argv.iter().any(|item| item.contains('\0')) {
        return Err(invalid("argv must name a program and hold no NUL"));
    }
    let mut command = Command::new(program);
    command.args(arguments);
    place(env, call, &mut command, cwd)?;
    Ok(command)
}

/// A command line for the system's shell.
pub(super) fn shell(env: &Env, call: &Call, line: &str) -> Result<Command, ToolError> {
    if line.is_empty() || line.len() > limits::COMMAND_MAX || line.contains('\0') {
        return Err(invalid(format!("command must have 1 to {} bytes and no NUL", limits::COMMAND_MAX)));
    }
    #[cfg(unix)]
    let mut command = {
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(line);
        command
    };
    #[cfg(windows)]
    let mut command = {
        let mut command = Command::new("cmd.exe");
        // cmd reads its line by its own rules; quoting as for other programs would change it.
        command.args(["/D", "/S", "/C"]).raw_arg(format!("\"{line}\""));
        command
    };
    place(env, call, &mut command, ".")?;
    Ok(command)
}

fn place(env: &Env, call: &Call, command: &mut Command, cwd: &str) -> Result<(), ToolError> {
    let spot = env.files.find(cwd, &call.policy, Access::Read)?;
    if !spot.real.is_dir() {
        return Err(invalid("cwd is not a folder"));
    }
    command.current_dir(&spot.real);
    if call.policy.minimal_env {
        command.env_clear().envs(minimal(&env.home));
    } else {
        // Ours can hold credentials.
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"HOLDFAST_")) {
            command.env_remove(name);
        }
    }
    Ok(())
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
