//! Doing a command: by the process that holds the data folder, else on the closed store.

use std::io::{IsTerminal as _, Read as _};

use holdfast_core::command::{Command, Secret};
use holdfast_core::limits;
use holdfast_host::api::client::{Holder, Owner, holder, owner};
use holdfast_host::engines;
use holdfast_host::paths::Dirs;
use serde_json::Value;

use crate::failure::Failure;

/// Does a command wherever it can be done.
pub async fn ask(dirs: &Dirs, command: Command) -> Result<Value, Failure> {
    match owner(dirs).await? {
        Owner::Holder(holder) => Ok(holder.command(&command).await?),
        Owner::Us(_lock) => Ok(engines::offline(dirs, command).await?),
    }
}

/// The running process, or nothing.
pub async fn running(dirs: &Dirs) -> Result<Option<Holder>, Failure> {
    Ok(holder(dirs).await?)
}

/// Something secret from stdin: its first line, without the line end.
pub fn secret_line(what: &str) -> Result<Secret, Failure> {
    let stdin = std::io::stdin();
    let mut text = String::new();
    if stdin.is_terminal() {
        text = rpassword::prompt_password(format!("{what}: "))?;
    } else {
        stdin.lock().take(limits::API_BODY_MAX as u64).read_to_string(&mut text)?;
    }
    match text.lines().next().map(str::trim_end) {
        Some(line) if !line.is_empty() => Ok(Secret(line.into())),
        _ if what == "code" => Err(Failure::usage("the code is missing: write it after the command, or to stdin")),
        _ => Err(Failure::usage(format!("the {what} is missing: its first line of stdin is read, and there is none"))),
    }
}
