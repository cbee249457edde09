//! `op run`.

use std::process::ExitCode;

use holdfast_core::operation::{Command, Request};
use holdfast_host::api::client::Follower;

use super::args::Run;
use super::follow::Event;
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
    // Whoever starts nothing here is told at once; from then on it is waited for.
    holder(folders).await?;
    let away = |why: &str| eprintln!("holdfast: {}", print::shown(why));
    let session_name = args.session.as_deref();
    let (follower, started) = Follower::start(folders.dirs()?, &request, session_name, &key, away).await?;
    let id = started.id.to_string();
    if args.detach {
        match folders.json {
            true => print::json(&started)?,
            false => print::line(&id),
        }
        return Ok(ExitCode::SUCCESS);
    }
    if folders.json {
        print::json(&Event::Started { operation: &started })?;
    }
    let progress = Progress::new(&id);
    let input = async {
        if args.stdin
            && let Err(error) = send_stdin(&follower, &session, false, true).await
        {
            // Its end says more than that it takes no more input.
            progress.around(b"\n", || error.tell(folders.json));
        }
        std::future::pending::<()>().await
    };
    let ended = tokio::select! {
        ended = follow::watch(folders, &follower, &progress, None, 0) => ended?,
        () = input => return Ok(ExitCode::FAILURE),
        _ = tokio::signal::ctrl_c() => {
            progress.end();
            match folders.json {
                true => print::json(&Event::Left { operation: &id })?,
                false => eprintln!("\nholdfast: {id} goes on; `holdfast op read -f {id}` watches it, `holdfast op cancel {id}` ends it"),
            }
            return Ok(ExitCode::from(INTERRUPTED));
        }
    };
    progress.end();
    follow::end(folders, &ended)
}
