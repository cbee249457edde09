//! One file per group of commands.

mod calls;
pub mod channel;
mod doctor;
mod drill;
mod enroll;
mod logs;
pub mod op;
mod open;
mod people;
mod reset;
mod seat;
mod serve;
mod status;

use std::process::ExitCode;

use clap::CommandFactory as _;
use holdfast_core::command::Command as Ask;
use serde_json::Value;

use crate::args::{Cli, Command, Folders, Policy, YesNo};
use crate::ask::{ask, secret_line};
use crate::failure::Failure;
use crate::print;
use crate::system_start::service;

/// Runs a command to its end.
pub async fn run(Cli { folders, command }: Cli) -> Result<ExitCode, Failure> {
    match command {
        Command::Serve(args) => serve::serve(&folders, args).await?,
        Command::Relay(args) => serve::relay(&folders, args).await?,
        Command::Enroll(args) => enroll::enroll(&folders, args).await?,
        Command::Account(command) => people::account(&folders, command).await?,
        Command::Device(command) => people::device(&folders, command).await?,
        Command::Token(command) => people::token(&folders, command).await?,
        Command::Client(command) => people::client(&folders, command).await?,
        Command::Approve { code } => {
            let code = match code {
                Some(code) => holdfast_core::command::Secret(code),
                None => secret_line("code")?,
            };
            let approved = ask(&folders.dirs()?, Ask::Approve { code }).await?;
            let text = |key: &str| print::shown(approved[key].as_str().unwrap_or_default());
            told(
                &folders,
                &approved,
                &format!(
                    "approved: go back to the browser page and choose Allow; {} ({}) then acts as {}",
                    text("client"),
                    text("redirect_host"),
                    text("account")
                ),
            )?;
        }
        Command::Answer { question, answer, remember } => {
            let allow = answer == YesNo::Yes;
            let answer = ask(&folders.dirs()?, Ask::Answer { question, allow, remember }).await?;
            told(&folders, &answer, if allow { "allowed" } else { "denied" })?;
        }
        Command::Policy(Policy::Set { profile }) => {
            let answer = ask(&folders.dirs()?, Ask::PolicySet { profile }).await?;
            told(&folders, &answer, &format!("policy set to {}", profile.as_str()))?;
        }
        Command::Channel(command) => return channel::channel(&folders, command).await,
        Command::Seat(command) => seat::seat(&folders, command).await?,
        Command::Status { watch } => return status::status(&folders, watch).await,
        Command::Op(command) => return op::op(&folders, command).await,
        Command::Calls => calls::calls(&folders).await?,
        Command::Logs { lines, follow, level } => logs::logs(&folders, lines, follow, level).await?,
        Command::Doctor { support: Some(file), .. } => doctor::support(&folders, &file).await?,
        Command::Doctor { public, support: None } => return doctor::doctor(&folders, public).await,
        Command::Open { print } => open::open(&folders, print).await?,
        Command::Drill { cut, force } => return drill::drill(&folders, cut, force).await,
        Command::Start { engine } => {
            let answer = ask(&folders.dirs()?, Ask::Start { engine }).await?;
            told(&folders, &answer, "started")?;
        }
        Command::Stop { engine } => {
            let answer = ask(&folders.dirs()?, Ask::Stop { engine }).await?;
            told(&folders, &answer, "stopped")?;
        }
        Command::Service(command) => service(&folders, command).await?,
        Command::Reset { all, yes } => reset::reset(&folders, all, yes).await?,
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "holdfast", &mut script);
            print::line(String::from_utf8_lossy(&script).trim_end());
        }
        Command::Man { folder } => {
            clap_mangen::generate_to(Cli::command(), &folder)
                .map_err(|e| Failure::plain(format!("{}: {e}", folder.display())))?;
        }
        Command::ConfigSchema => print::json(&holdfast_host::config::schema())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints what came of a command: the answer for scripts, a sentence for people.
fn told(folders: &Folders, answer: &Value, sentence: &str) -> Result<(), Failure> {
    if folders.json {
        return print::json(answer);
    }
    print::line(sentence);
    Ok(())
}
