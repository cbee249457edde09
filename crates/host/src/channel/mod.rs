//! Chat services: what the seat needs of one, and the ones there are.

mod telegram;

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use holdfast_core::seat::Failed;
use secrecy::SecretString;
use url::Url;

use crate::config::ChannelService;
pub use telegram::Telegram;

/// A bot at a chat service, as far as the seat needs it. What fails never names the token, nor an address that holds it.
pub trait ChannelBackend: fmt::Debug + Send + Sync {
    /// Asks the service whose token it is. Changes nothing there.
    fn prove(&self) -> BoxFuture<'_, Result<Bot, Failed>>;

    /// Connects: when it returns, the bot can speak and hear.
    fn connect(&self) -> BoxFuture<'_, Result<(), Failed>>;

    /// Stays connected until that ends by itself. Dropping it disconnects.
    fn listen(&self) -> BoxFuture<'_, Failed>;
}

/// A bot, as its service names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bot {
    /// Its id.
    pub id: String,
    /// What people call it.
    pub name: String,
}

/// A token or an address that cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadChannel {
    /// The token has not the shape of one.
    #[error("this is no token of a Telegram bot; @BotFather gives one such as 123456:ABC-DEF…")]
    Token,
    /// The address.
    #[error("base_url must be https://host[:port], or http:// to this machine")]
    Address,
    /// TLS cannot be set up.
    #[error("TLS cannot be set up")]
    Tls,
}

/// The bot of a token at a service. Speaks to nobody yet.
pub fn backend(
    service: ChannelService,
    token: SecretString,
    base_url: Option<&Url>,
) -> Result<(String, Arc<dyn ChannelBackend>), BadChannel> {
    match service {
        ChannelService::Telegram => {
            let telegram = Telegram::new(token, base_url)?;
            Ok((telegram.bot().to_owned(), Arc::new(telegram)))
        }
    }
}

/// Under which name a bot's token is kept among the secrets.
pub fn secret_name(service: ChannelService, bot: &str) -> String {
    format!("channel@{}:{bot}", service.as_str())
}
