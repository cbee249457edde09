//! `op`: durable operations of this machine.

pub mod args;
mod follow;
mod progress;
mod run;

use std::collections::VecDeque;
use std::io::Read as _;
use std::process::ExitCode;

use bytes::Bytes;
use holdfast_core::command::Command as Ask;
use holdfast_core::limits;
use holdfast_core::operation::{Kind, Outcome, Request, State, Stream};
use holdfast_host::api::client::{Follower, Holder, OperationView, Piece};
use serde_json::json;

use self::args::Op;
use self::follow::show;
use crate::args::Folders;
use crate::ask::{ask, running};
use crate::failure::Failure;
use crate::print;

/// Of one piece of input; the local API takes no more at once.
const PIECE: usize = 32 * 1024;

/// Pieces on their way at once: fewer than a runner lets wait, so that a program that does not read makes this command wait.
const ON_THE_WAY: usize = limits::RUNNER_INPUT_WAITING / 2;

pub async fn op(folders: &Folders, op: Op) -> Result<ExitCode, Failure> {
    let named = match &op {
        Op::Show { operation } | Op::Read { operation, .. } | Op::Input { operation, .. } => Some(operation.clone()),
        Op::Cancel { operation, .. } => operation.clone(),
        Op::Run(_) | Op::List { .. } => None,
    };
    let done = on(folders, op).await;
    done.map_err(|failure| match named {
        Some(id) => failure.named("not_found", || {
            format!("there is no operation {} here; `holdfast op list` shows the newest", print::shown(&id))
        }),
        None => failure,
    })
}

async fn on(folders: &Folders, op: Op) -> Result<ExitCode, Failure> {
    match op {
        Op::Run(args) => return run::run(folders, args).await,
        Op::Show { operation } => {
            let view = holder(folders).await?.operation(&operation).await?;
            if folders.json {
                print::json(&view)?;
            } else {
                for line in lines(&view) {
                    print::line(&line);
                }
            }
        }
        Op::Read { operation, stream, offset, follow: true } => {
            return follow::to_the_end(folders, &operation, stream, offset).await;
        }
        Op::Read { operation, stream, offset, follow: false } => read(folders, &operation, stream, offset).await?,
        Op::Input { operation, close } => input(folders, &operation, close).await?,
        Op::List { living } => {
            let operations = holder(folders).await?.operations(living).await?;
            if folders.json {
                print::json(&operations)?;
            } else {
                let row = |o: &OperationView| {
                    json!({"id": o.id, "state": shown_state(o), "kind": o.kind, "summary": o.summary,
                           "created": o.created / 1000})
                };
                let columns =
                    [("ID", "id"), ("STATE", "state"), ("KIND", "kind"), ("SINCE", "created"), ("WHAT", "summary")];
                print::table(&operations.iter().map(row).collect(), &columns);
            }
        }
        Op::Cancel { session: Some(session), operation: _ } => {
            holder(folders).await?.operation_cancel_session(&session).await?;
            super::told(folders, &json!({"session": session}), &format!("{session} is cancelled"))?;
        }
        Op::Cancel { session: None, operation } => {
            let operation = operation.unwrap_or_default();
            // The relay first, because it may not have sent it yet; then this machine, which the relay may not reach.
            let there = holder(folders).await?.operation_cancel(&operation).await;
            let here = ask(&folders.dirs()?, Ask::OperationCancel { operation: operation.clone() }).await;
            match (there, here) {
                (Ok(view), _) => super::told(folders, &json!(view), &format!("{operation}: {}", shown_state(&view)))?,
                (Err(_), Ok(answer)) => {
                    super::told(folders, &answer, &format!("{operation} is cancelled on this machine"))?
                }
                (Err(error), Err(_)) => return Err(error.into()),
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn holder(folders: &Folders) -> Result<Holder, Failure> {
    running(&folders.dirs()?).await?.ok_or_else(Failure::not_running)
}

/// What is there now.
async fn read(folders: &Folders, id: &str, stream: Option<Stream>, offset: u64) -> Result<(), Failure> {
    let holder = holder(folders).await?;
    let view = holder.operation(id).await?;
    for one in view.streams().iter().copied().filter(|one| stream.is_none_or(|asked| asked == *one)) {
        let there = view.received.get(&one).copied().unwrap_or(0);
        let mut at = offset;
        while at < there {
            match holder.operation_output(id, one, at).await? {
                Piece::Bytes { bytes, next, .. } if next > at => {
                    show(folders, one, at, &bytes)?;
                    at = next;
                }
                Piece::Bytes { .. } => break,
                Piece::Gone(next) => {
                    follow::tell_gap(folders, one, at, next)?;
                    at = next;
                }
            }
        }
    }
    Ok(())
}

async fn input(folders: &Folders, id: &str, close: bool) -> Result<(), Failure> {
    let pty = holder(folders).await?.operation(id).await?.kind == Kind::PtyOpen;
    let follower = Follower::new(folders.dirs()?, id);
    let session = format!("{:016x}", rand_key());
    send_stdin(&follower, &session, pty, close).await
}

/// Passes stdin on to its end. Each piece has a key of its own, so that a piece whose answer was lost is not given twice.
async fn send_stdin(follower: &Follower, session: &str, pty: bool, close: bool) -> Result<(), Failure> {
    let mut on_the_way = VecDeque::new();
    for count in 0u64.. {
        let data = tokio::task::spawn_blocking(|| {
            let mut piece = vec![0; PIECE];
            let read = std::io::stdin().lock().read(&mut piece)?;
            piece.truncate(read);
            Ok::<_, std::io::Error>(Bytes::from(piece))
        });
        let data = data.await.map_err(|_| Failure::plain("interrupted"))??;
        let ended = data.is_empty();
        let request = match pty {
            true if ended => break,
            true => Request::PtyInput { data },
            false if ended && !close => break,
            false => Request::ExecStdin { data, close: ended },
        };
        on_the_way.push_back(follower.input(&request, &format!("cli-{session}-{count}"), |_| {}).await?);
        if on_the_way.len() == ON_THE_WAY
            && let Some(first) = on_the_way.pop_front()
        {
            taken(&first).await?;
        }
        if ended {
            break;
        }
    }
    for piece in on_the_way {
        taken(&piece).await?;
    }
    Ok(())
}

/// Waits until a piece was given to the program.
async fn taken(piece: &Follower) -> Result<(), Failure> {
    let view = piece.end(|_| {}).await?;
    match view.state {
        State::Completed => Ok(()),
        _ => Err(Failure::plain(format!("the program did not take its input: {}", shown_state(&view)))),
    }
}

/// Names this run of the command, so that no other's keys are its own.
pub fn rand_key() -> u64 {
    use std::hash::{BuildHasher as _, Hasher as _};
    // The standard library's hash seeds are random; a name needs no more.
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}

fn shown_state(view: &OperationView) -> String {
    let state = view.state.as_str();
    match &view.outcome {
        Some(Outcome::Completed { exit: Some(exit), .. }) => match (exit.code, exit.signal) {
            (Some(code), _) => format!("{state} ({code})"),
            (None, Some(signal)) => format!("{state} (signal {signal})"),
            _ => state.into(),
        },
        Some(Outcome::Failed { error, .. }) => format!("{state} ({})", error.code.as_str()),
        None if view.ending => "ended, its output is on its way".into(),
        None if view.cancelled => format!("{state}, being cancelled"),
        None if view.output_stalled.is_some() => format!("{state}, waits for room"),
        _ => state.into(),
    }
}

fn lines(view: &OperationView) -> Vec<String> {
    let mut lines = vec![
        format!("{}  {}", view.id, shown_state(view)),
        format!("  {}: {}", view.kind.as_str(), print::shown(&view.summary)),
        format!("  since {}", print::moment(view.created)),
    ];
    for (stream, received) in &view.received {
        let written = view.written.get(stream).copied().unwrap_or(*received).max(*received);
        let behind = written - received;
        let rest = if behind > 0 { format!(", {behind} more not yet at the relay") } else { String::new() };
        let lost = match view.missing.get(stream) {
            Some(lost) => format!(", {lost} of them given up or lost on the device"),
            None => String::new(),
        };
        lines.push(format!("  {}: {received} bytes{rest}{lost}", stream.as_str()));
    }
    match &view.outcome {
        Some(Outcome::Failed { error, .. }) => lines.push(format!("  {}", print::shown(&error.message))),
        Some(unknown @ Outcome::Unknown { reason, .. }) => {
            lines.push(format!("  {}", print::shown(reason)));
            lines.extend(unknown.known().map(|known| format!("  {}", print::shown(&known))));
        }
        _ => {}
    }
    lines
}
