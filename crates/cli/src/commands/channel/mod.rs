//! `channel`: the bot at a chat service.

use holdfast_core::command::Command as Ask;
use holdfast_host::config;
use serde_json::json;

use super::told;
use crate::args::{Channel, Folders};
use crate::ask::{ask, secret_line};
use crate::failure::Failure;
use crate::print;

pub async fn channel(folders: &Folders, command: Channel) -> Result<(), Failure> {
    let dirs = folders.dirs()?;
    match command {
        Channel::Setup { backend, base_url } => {
            let token = secret_line("token")?;
            let answer = ask(&dirs, Ask::ChannelSetup { backend, token, base_url }).await?;
            let text = |key: &str| print::shown(answer[key].as_str().unwrap_or_default());
            let sentence = format!(
                "{} (bot {}) is set up; `holdfast seat show` tells who speaks for it",
                text("name"),
                text("bot")
            );
            told(folders, &answer, &sentence)
        }
        Channel::Show => {
            let set = config::read(&dirs.config_file()).map_err(|e| Failure::plain(e.to_string()))?.channel;
            let (Some(service), Some(bot)) = (set.backend, &set.bot) else {
                return Err(Failure::plain("no channel is set up; `holdfast channel setup` does that"));
            };
            let at = set.base_url.as_ref().map(|url| format!(" at {url}")).unwrap_or_default();
            let shown = json!({"backend": service, "bot": bot, "on_start": set.on_start, "base_url": set.base_url});
            let on_start = shown["on_start"].as_str().unwrap_or_default();
            let sentence = format!("{} bot {}{at}; on start: {on_start}", service.as_str(), print::shown(bot));
            told(folders, &shown, &sentence)
        }
        Channel::Remove => {
            let answer = ask(&dirs, Ask::ChannelRemove {}).await?;
            told(folders, &answer, "the bot and its token are forgotten")
        }
    }
}
