//! `channel`: the bot at a chat service, and which agents speak through it.

pub mod args;
mod ask;
mod bind;
mod mcp;
mod pair;
mod setup;
mod show;

use std::process::ExitCode;

use holdfast_core::command::Command as Ask;
use holdfast_core::status::StatusSnapshot;
use holdfast_host::config::{self, ChannelConfig};
use holdfast_host::doctor::Report;
use holdfast_host::engines::CommandError;
use serde_json::{Value, json};

use self::args::Channel;
use super::told;
use crate::args::Folders;
use crate::ask::{ask, running};
use crate::failure::{Exit, Failure};
use crate::print;

pub async fn channel(folders: &Folders, command: Channel) -> Result<ExitCode, Failure> {
    let dirs = folders.dirs()?;
    match command {
        Channel::Setup(args) => return setup::setup(folders, args).await,
        Channel::Show => show::show(folders).await?,
        Channel::Bind(args) => bind::bind(folders, args).await?,
        Channel::Unbind { name } => {
            let answer = ask(&dirs, Ask::ChannelUnbind { name: name.clone() }).await?;
            told(folders, &answer, &format!("removed binding {name}"))?;
        }
        Channel::Pair { code } => pair::pair(folders, code).await?,
        Channel::People { dismiss: Some(person), admit: _ } => {
            let answer = ask(&dirs, Ask::ChannelDismiss { person: person.clone() }).await?;
            told(folders, &answer, &format!("removed {person}"))?;
        }
        Channel::People { dismiss: None, admit: Some(person) } => {
            let answer = ask(&dirs, Ask::ChannelAdmit { person: person.clone() }).await?;
            told(folders, &answer, &format!("{person} may talk to the agents"))?;
        }
        Channel::People { dismiss: None, admit: None } => show::people(folders).await?,
        Channel::Retry { name, unknown } => {
            let channel = match name {
                Some(name) => Some(bound(folders, &name)?.channel),
                None => None,
            };
            let answer = ask(&dirs, Ask::ChannelRetry { channel, unknown }).await?;
            told(folders, &answer, "retrying the refused messages")?;
        }
        Channel::Test { name } => test(folders, &name).await?,
        Channel::Check { channel } => return check(folders, channel).await,
        Channel::Candidates { project } => show::candidates(folders, project).await?,
        Channel::Mcp { binding } => mcp::mcp(folders, binding).await?,
        Channel::Ask { binding } => ask::ask(folders, binding).await?,
        Channel::Remove => {
            let answer = ask(&dirs, Ask::ChannelRemove {}).await?;
            told(folders, &answer, "the bot and its token are forgotten")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Posts a test message and says how the service named it.
async fn test(folders: &Folders, binding: &str) -> Result<(), Failure> {
    bound(folders, binding)?;
    let answer = ask(&folders.dirs()?, Ask::ChannelTest { binding: binding.into() }).await?;
    let message = print::shown(answer["message"].as_str().unwrap_or_default());
    told(folders, &answer, &format!("the test message is there (message {message})"))
}

async fn check(folders: &Folders, channel: Option<String>) -> Result<ExitCode, Failure> {
    if configured(folders)?.backend.is_none() {
        return Err(Failure::plain("no channel is set up; `holdfast channel setup` does that"));
    }
    let answer = ask(&folders.dirs()?, Ask::ChannelCheck { channel }).await?;
    let report = report(&answer)?;
    if folders.json {
        print::json(&answer)?;
    } else {
        print::line(report.checks_text().trim_end());
    }
    Ok(if report.ok { ExitCode::SUCCESS } else { Exit::Found.into() })
}

fn report(answer: &Value) -> Result<Report, Failure> {
    serde_json::from_value(answer.clone()).map_err(|_| not_understood())
}

fn not_understood() -> Failure {
    Failure::plain("the running Holdfast gave no answer that this version understands")
}

/// What the file says of the channel, once one is set up.
fn configured(folders: &Folders) -> Result<ChannelConfig, Failure> {
    let read = config::read(&folders.dirs()?.config_file()).map_err(|e| Failure::plain(e.to_string()))?;
    Ok(read.channel)
}

fn bound(folders: &Folders, name: &str) -> Result<config::BindingConfig, Failure> {
    let mut bindings = configured(folders)?.bindings;
    match bindings.iter().position(|binding| binding.name == name) {
        Some(at) => Ok(bindings.swap_remove(at)),
        None => {
            let why = format!("there is no binding `{name}`; `holdfast channel show` lists them");
            Err(CommandError::new("not_found", why).into())
        }
    }
}

/// How it is now, where something runs.
async fn snapshot(folders: &Folders) -> Result<Option<StatusSnapshot>, Failure> {
    match running(&folders.dirs()?).await? {
        Some(holder) => Ok(Some(holder.get("/api/status").await?)),
        None => Ok(None),
    }
}

fn bot_of(config: &ChannelConfig) -> Value {
    json!({"backend": config.backend, "bot": config.bot, "on_start": config.on_start, "base_url": config.base_url})
}
