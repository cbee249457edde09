//! `op run`.

use std::path::Path;
use std::process::ExitCode;

use holdfast_core::code::Code;
use holdfast_core::operation::{Command, Outcome, Request};
use holdfast_core::status::{AppStatus, StatusSnapshot};
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
    // Whoever starts nothing here is told at once; from then on it is waited for.
    let snapshot: StatusSnapshot = holder(folders).await?.get("/api/status").await?;
    let cwd = match args.cwd {
        Some(named) => named,
        None => folder_here(&std::env::current_dir()?, &snapshot.app)?,
    };
    let shell = args.shell;
    let command = if shell { Command::Shell(args.argv.join(" ")) } else { Command::Argv(args.argv) };
    let request = Request::Exec {
        command,
        cwd: Some(cwd),
        env: args.env.into_iter().collect(),
        stdin: args.stdin,
        timeout_ms: args.timeout.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        on_lease_expiry: args.on_lease_expiry.into(),
        on_full: args.on_full.into(),
    };
    let session = format!("{:016x}", rand_key());
    // With a key of its own, an answer that was lost is asked for again, never a second run.
    let key = args.key.unwrap_or_else(|| format!("cli-{session}"));
    let away = |why: &str| print::note(&format!("holdfast: {}", print::shown(why)));
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
                false => print::note(&format!(
                    "\nholdfast: {id} keeps running; watch it with `holdfast op read -f {id}`, end it with `holdfast op cancel {id}`"
                )),
            }
            return Ok(ExitCode::from(INTERRUPTED));
        }
    };
    progress.end();
    let exit = follow::end(folders, &ended)?;
    let denied = matches!(&ended.view.outcome, Some(Outcome::Failed { error, .. }) if error.code == Code::PolicyDenied);
    if denied && !folders.json {
        print::note(match shell {
            true => {
                "holdfast: `--shell` is for the policy `full`; under `agent` name the shell yourself: `op run -- sh -c '…'`"
            }
            false => {
                "holdfast: programs run under the policies `agent` and `full`; `holdfast policy set agent` sets one"
            }
        });
    }
    Ok(exit)
}

/// Where the caller stands, if a program may run there. In another folder than the caller's it would do its work on other files.
fn folder_here(here: &Path, app: &AppStatus) -> Result<String, Failure> {
    let workspace = app.workspace.as_deref().unwrap_or(".");
    let real = here.canonicalize().unwrap_or_else(|_| here.to_owned());
    let inside = Path::new(workspace).canonicalize().is_ok_and(|workspace| real.starts_with(workspace));
    match here.to_str() {
        Some(here) if inside || app.policy.as_deref() == Some("full") => Ok(here.to_owned()),
        _ => Err(Failure::plain(format!(
            "{} is outside the workspace {workspace}: run it from a folder in there, or name one with --cwd (`--cwd .` is the workspace)",
            here.display()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_runs_where_its_caller_stands_or_nowhere() {
        let folder = std::env::temp_dir().canonicalize().unwrap();
        let app = |policy: &str| AppStatus {
            workspace: folder.to_str().map(str::to_owned),
            policy: Some(policy.into()),
            ..AppStatus::default()
        };
        let inside = folder.join("project");
        assert_eq!(folder_here(&inside, &app("agent")).unwrap(), inside.to_str().unwrap());
        assert_eq!(folder_here(&folder, &app("agent")).unwrap(), folder.to_str().unwrap());
        let refused = folder_here(Path::new("/elsewhere"), &app("agent")).unwrap_err();
        assert!(refused.message().starts_with("/elsewhere is outside the workspace "), "{}", refused.message());
        assert_eq!(folder_here(Path::new("/elsewhere"), &app("full")).unwrap(), "/elsewhere");
    }
}
