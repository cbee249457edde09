//! `channel setup`: from a token to a message in the channel, with each step proven at the service.

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use holdfast_core::command::Command as Ask;
use serde_json::json;

use super::args::Setup;
use super::{bind, configured, report, test};
use crate::args::Folders;
use crate::ask::{ask, secret_line};
use crate::commands::told;
use crate::failure::{Exit, Failure};
use crate::print;

pub async fn setup(folders: &Folders, args: Setup) -> Result<ExitCode, Failure> {
    let asks = std::io::stdin().is_terminal() && !folders.json;
    let dirs = folders.dirs()?;
    if asks {
        print::line(
            "A Discord bot: https://discord.com/developers/applications → Bot → Reset Token; switch on \"Message Content Intent\".",
        );
        print::line("A Telegram bot: write /newbot to @BotFather.");
    }
    let token = secret_line("token")?;
    let (base_url, gateway_url) = (args.base_url.map(String::from), args.gateway_url.map(String::from));
    let answer = ask(&dirs, Ask::ChannelSetup { backend: args.backend, token, base_url, gateway_url }).await?;
    let text = |key: &str| print::shown(answer[key].as_str().unwrap_or_default());
    told(
        folders,
        &answer,
        &format!("the token belongs to {} (bot {} at {})", text("name"), text("bot"), text("backend")),
    )?;
    if asks && let Some(invite) = answer["invite"].as_str() {
        print::line(&format!("Invite it to your server, if it is not there: {invite}"));
    }
    let mut first = match (args.channel, args.project) {
        (Some(channel), Some(project)) => {
            let name = args.name.unwrap_or_else(|| "main".into());
            Some((name, channel, bind::absolute(&project)?))
        }
        _ => None,
    };
    if first.is_none() && asks && configured(folders)?.bindings.is_empty() {
        let channel = question("Channel id (leave empty to do this later)", "").await?;
        if !channel.is_empty() {
            let here = std::env::current_dir()?;
            let project = question("The folder the agent works in", &here.display().to_string()).await?;
            let name = question("Name of this binding", "main").await?;
            first = Some((name, channel, bind::absolute(project.as_ref())?));
        }
    }
    let bound = first.as_ref().map(|(name, ..)| name.clone());
    if let Some((name, channel, project)) = first {
        let set = BTreeMap::from([("channel".to_owned(), json!(channel)), ("project".to_owned(), project)]);
        ask(&dirs, Ask::ChannelBind { name, set }).await?;
    }
    if folders.json && bound.is_none() {
        return Ok(ExitCode::SUCCESS);
    }
    let answer = ask(&dirs, Ask::ChannelCheck { channel: None }).await?;
    let found = report(&answer)?;
    told(folders, &answer, found.checks_text().trim_end())?;
    let ended = if found.ok { ExitCode::SUCCESS } else { Exit::Found.into() };
    let Some(name) = bound else {
        return Ok(ended);
    };
    if args.test || asks && found.ok && question("Post a test message there?", "yes").await?.starts_with('y') {
        test(folders, &name).await?;
    }
    Ok(ended)
}

/// Asks at the terminal; an empty line is what stands in brackets.
pub async fn question(text: &str, otherwise: &str) -> Result<String, Failure> {
    let prompt = if otherwise.is_empty() { format!("{text}: ") } else { format!("{text} [{otherwise}]: ") };
    let line = tokio::task::spawn_blocking(move || {
        let mut out = std::io::stdout().lock();
        write!(out, "{prompt}").and_then(|()| out.flush())?;
        drop(out);
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map(|_| line)
    });
    let line = line.await.map_err(|_| Failure::plain("interrupted"))??;
    Ok(match line.trim() {
        "" => otherwise.to_owned(),
        line => line.to_owned(),
    })
}
