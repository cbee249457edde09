//! Logging in.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use holdfast_core::limits;
use holdfast_core::seat::Failed;
use serde::Deserialize;
use twilight_gateway::queue::InMemoryQueue;

use super::gateway::{Gateway, dialled};
use super::outcome::Refused;
use super::rest::Call;
use super::words::User;
use super::{Bot, Discord};

#[derive(Deserialize)]
struct Way {
    url: String,
    session_start_limit: Logins,
}

/// How often the bot may still log in.
#[derive(Deserialize)]
struct Logins {
    total: u32,
    remaining: u32,
    /// In milliseconds.
    reset_after: u64,
    max_concurrency: u16,
}

impl Discord {
    pub(super) async fn me(&self) -> Result<Bot, Failed> {
        let call = Call::get("users/@me", "users/@me");
        let me: User = self.rest.read(call, limits::CHANNEL_REQUEST).await.map_err(Refused::failed)?;
        let id = me.id.as_str().to_owned();
        if id != self.bot {
            return Err(Failed::ForGood(format!("the token belongs to bot {id}, not to bot {}", self.bot)));
        }
        Ok(Bot { id, name: me.username })
    }

    /// Connects, and waits until the bot can hear.
    pub(super) async fn open(&self) -> Result<(), Failed> {
        *self.open.lock() = None;
        let failures = self.failures.load(Relaxed);
        let wait = limits::DISCORD_CONNECT.saturating_mul(failures + 1).min(limits::DISCORD_CONNECT_MAX);
        let opened = tokio::time::timeout(wait, self.log_in()).await.unwrap_or_else(|_| {
            Err(Failed::ForNow { reason: "Discord did not let the bot in in time".into(), after: None })
        });
        self.failures.store(if opened.is_ok() { 0 } else { failures.saturating_add(1) }, Relaxed);
        *self.open.lock() = Some(opened?);
        Ok(())
    }

    async fn log_in(&self) -> Result<Gateway, Failed> {
        self.me().await?;
        let call = Call::get("gateway/bot", "gateway/bot");
        let way: Way = self.rest.read(call, limits::CHANNEL_REQUEST).await.map_err(Refused::failed)?;
        let Logins { total, remaining, reset_after, max_concurrency } = way.session_start_limit;
        let reset_after = Duration::from_millis(reset_after);
        if remaining == 0 {
            let reason = "the bot logged in too often today, and Discord lets it wait".into();
            return Err(Failed::ForNow { reason, after: Some(reset_after) });
        }
        let logins = self.logins.get_or_init(InMemoryQueue::default);
        logins.update(max_concurrency.max(1), remaining.min(total), reset_after, total);
        let address = dialled(self.gateway_url.as_deref().unwrap_or(&way.url))?;
        let mut gateway = Gateway::new(&self.token, address, logins.clone());
        loop {
            let dispatch = gateway.next().await?;
            if dispatch.name == "READY" {
                gateway.keep(dispatch);
                return Ok(gateway);
            }
        }
    }
}
