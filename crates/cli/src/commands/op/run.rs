//! `op run`.

use std::process::ExitCode;

use holdfast_core::operation::{Command, Request};
use holdfast_host::api::client::Follower;
use serde_json::json;

use super::args::Run;
use super::progress::Progress;
use super::{follow, holder, rand_key, send_stdin};
use crate::args::Folders;
use crate::failure::Failure;
use crate::print;

/// What a program ends with that was told to stop by Ctrl-C.
const INTERRUPTED: u8 = 130;

pub async fn run(folders: &Folders, args: Run) -> Result<ExitCode, Failure> {
    let command = if args.shell { Command::Shell(args.argv.join(" ")) } else { Command::Argv(args.argv) };
    let request = Request::Exec {
        command,
        cwd: args.cwd,
        env: args.env.into_iter().collect(),
        stdin: args.stdin,
        timeout_ms: args.timeout.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        on_lease_expiry: args.on_lease_expiry.into(),
        on_full: args.on_full.into(),
    };
    let session = format!("{:016x}", rand_key());
    // With a key of its own, an answer that was lost is asked for again, never a second run.
    let key = args.key.unwrap_or_else(|| format!("cli-{session}"));
    let started = holder(folders).await?.operation_start(&request, args.session.as_deref(), Some(&key), None).await?;
    let id = started.id.to_string();
    if args.detach {
        match folders.json {
            true => print::json(&started)?,
            false => print::line(&id),
        }
        return Ok(ExitCode::SUCCESS);
    }
    let follower = Follower::new(folders.dirs()?, id.as_str());
    let progress = Progress::new(&id);
    let input = async {
        if args.stdin {
            send_stdin(&follower, &session, false, true).await?;
        }
        std::future::pending::<Result<(), Failure>>().await
    };
    let ended = tokio::select! {
        ended = follow::watch(&follower, &progress, None, 0) => ended?,
        Err(error) = input => return Err(error),
        _ = tokio::signal::ctrl_c() => {
            progress.end();
            match folders.json {
                true => print::json(&json!({"operation": id, "left": true}))?,
                false => eprintln!("\nholdfast: {id} goes on; `holdfast op read -f {id}` watches it, `holdfast op cancel {id}` ends it"),
            }
            return Ok(ExitCode::from(INTERRUPTED));
        }
    };
    progress.end();
    follow::end(folders, &ended)
}
