//! Whether the bot can hear and speak.

use std::sync::Arc;

use holdfast_core::chat::{ChannelId, SendError};
use holdfast_core::seat::Failed;

use super::{Check, Report, delivery};
use crate::channel::{self, ChannelBackend};
use crate::config::Config;
use crate::paths::Dirs;
use crate::secrets::Secrets;
use crate::transcript::Homes;

/// Looks at the channel alone; `also` is a channel that no binding has yet.
pub async fn examine_channel(dirs: &Dirs, config: &Config, also: Option<&str>) -> Report {
    Report::of(checks(dirs, config, also).await)
}

/// The bot, what it hears, and where it may speak.
pub(super) async fn checks(dirs: &Dirs, config: &Config, also: Option<&str>) -> Vec<Check> {
    let Some(service) = config.channel.backend else {
        return vec![Check::skipped("channel", "no channel is set up")];
    };
    let invite = channel::invite(service, config.channel.bot.as_deref().unwrap_or_default());
    let backend = match backend(dirs, config).await {
        Ok(backend) => backend,
        Err(why) => return vec![Check::failed("bot", why).advise("`holdfast channel setup` mends that")],
    };
    let mut found = vec![match backend.prove().await {
        Ok(bot) => Check::ok("bot", format!("the token belongs to {}", bot.name)),
        Err(why) => return vec![failed("bot", why)],
    }];
    found.push(match backend.hears().await {
        Ok(()) => Check::ok("message text", "the service gives the bot what people write"),
        Err(why) => failed("message text", why),
    });
    for binding in &config.channel.bindings {
        found.push(place(&*backend, &invite, &format!("channel {}", binding.name), &binding.channel).await);
        found.push(delivery::transcript(binding, Homes::here()).await);
        found.extend(delivery::delivers(binding, &["tmux".to_owned()]).await);
    }
    if let Some(channel) = also {
        found.push(place(&*backend, &invite, "channel", channel).await);
    } else if config.channel.bindings.is_empty() {
        let bind = "`holdfast channel bind NAME --channel ID --project DIR` gives one its own";
        let advice = invite.map_or(bind.to_owned(), |invite| format!("invite the bot with {invite} ; then {bind}"));
        found.push(Check::warning("bindings", "no agent has a channel").advise(advice));
    }
    found.push(match config.channel.people.len() {
        0 => Check::warning("people", "nobody may talk to the agents").advise("`holdfast channel pair` lets people in"),
        1 => Check::ok("people", "1 person may talk to the agents"),
        people => Check::ok("people", format!("{people} people may talk to the agents")),
    });
    found
}

/// The bot that is set up, with its token.
async fn backend(dirs: &Dirs, config: &Config) -> Result<Arc<dyn ChannelBackend>, String> {
    let set = &config.channel;
    let (Some(service), Some(bot)) = (set.backend, set.bot.as_deref()) else {
        return Err("channel.bot is missing".into());
    };
    let (data, store) = (dirs.data.clone(), config.secrets.store);
    let secrets = tokio::task::spawn_blocking(move || Secrets::open(&data, store)).await;
    let secrets = secrets.map_err(|_| "interrupted")?.map_err(|e| e.to_string())?;
    let token = secrets.find(&channel::secret_name(service, bot)).await.map_err(|e| e.to_string())?;
    let token = token.ok_or_else(|| format!("no token of bot {bot} is kept here"))?;
    let backend = channel::backend(service, token, set.base_url.as_ref(), set.gateway_url.as_ref());
    Ok(backend.map_err(|e| e.to_string())?.1)
}

fn failed(name: &str, why: Failed) -> Check {
    match why {
        Failed::ForGood(reason) => Check::failed(name, reason),
        Failed::ForNow { reason, .. } | Failed::UsedElsewhere(reason) => {
            Check::failed(name, reason).advise("it may pass by itself: try again")
        }
    }
}

async fn place(backend: &dyn ChannelBackend, invite: &Option<String>, name: &str, channel: &str) -> Check {
    let how = invite.as_ref().map(|invite| format!(": {invite}")).unwrap_or_default();
    let Ok(channel) = ChannelId::parse(channel) else { return Check::failed(name, "this is no id of a channel") };
    match backend.examine(&channel).await {
        Ok(place) if place.lacks.is_empty() => Check::ok(name, format!("{}: the bot may read and write", place.name)),
        Ok(place) => Check::failed(name, format!("{}: the bot lacks {}", place.name, place.lacks.join(", ")))
            .advise(format!("give its role these permissions in the channel, or invite it anew{how}")),
        Err(SendError::Permanent { text, .. }) => {
            Check::failed(name, text).advise(format!("is that the channel's id, and was the bot invited there{how}"))
        }
        Err(SendError::Limited { .. }) => Check::failed(name, "the service wants fewer requests").advise("try again"),
        Err(SendError::Unknown(why) | SendError::Lost(why) | SendError::Later(why)) => {
            Check::failed(name, why).advise("it may pass by itself: try again")
        }
    }
}
