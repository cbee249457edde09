//! Telegram's Bot API by long polling. The address of every request holds the token, so no address ever leaves this file.

use std::fmt;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use holdfast_core::limits;
use holdfast_core::seat::Failed;
use reqwest::Client;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Value, json};
use url::Url;

use super::{BadChannel, Bot, ChannelBackend};
use crate::http_client;

const API: &str = "https://api.telegram.org";

/// A bot at Telegram.
pub struct Telegram {
    client: Client,
    base: String,
    token: SecretString,
    bot: String,
}

impl fmt::Debug for Telegram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Telegram").field("bot", &self.bot).finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
struct Answer<T> {
    ok: bool,
    result: Option<T>,
    error_code: Option<u16>,
    description: Option<String>,
    parameters: Option<Parameters>,
}

#[derive(Deserialize)]
struct Parameters {
    retry_after: Option<u64>,
}

#[derive(Deserialize)]
struct Me {
    id: u64,
    username: Option<String>,
}

impl Telegram {
    /// A bot by its token; its id stands before the colon.
    pub fn new(token: SecretString, base_url: Option<&Url>) -> Result<Telegram, BadChannel> {
        let bot = bot_of(token.expose_secret()).ok_or(BadChannel::Token)?.to_owned();
        let base = match base_url {
            None => API.into(),
            Some(url) => {
                let good = http_client::may_carry_secrets(url)
                    && (url.username(), url.password(), url.query(), url.fragment()) == ("", None, None, None);
                if !good {
                    return Err(BadChannel::Address);
                }
                url.as_str().trim_end_matches('/').to_owned()
            }
        };
        let client = http_client::make(None).map_err(|_| BadChannel::Tls)?;
        Ok(Telegram { client, base, token, bot })
    }

    /// The bot's id.
    pub fn bot(&self) -> &str {
        &self.bot
    }

    async fn call<T: DeserializeOwned>(&self, method: &str, body: Value, wait: Duration) -> Result<T, Failed> {
        let address = format!("{}/bot{}/{method}", self.base, self.token.expose_secret());
        let request = self.client.post(address).json(&body).timeout(wait + limits::CHANNEL_REQUEST);
        let mut response = request.send().await.map_err(unreachable)?;
        let status = response.status();
        let mut text = Vec::new();
        while let Some(more) = response.chunk().await.map_err(unreachable)? {
            if text.len() + more.len() > limits::CHANNEL_BODY_MAX {
                return Err(for_now("Telegram's answer is larger than one can be".into()));
            }
            text.extend_from_slice(&more);
        }
        let answer: Answer<T> = serde_json::from_slice(&text)
            .map_err(|_| for_now(format!("what answers there ({status}) is not Telegram's Bot API")))?;
        match answer {
            Answer { ok: true, result: Some(result), .. } => Ok(result),
            refused => Err(refusal(
                refused.error_code.unwrap_or(status.as_u16()),
                refused.description.as_deref().unwrap_or_default(),
                refused.parameters.and_then(|p| p.retry_after),
            )),
        }
    }

    async fn poll(&self, wait: Duration) -> Result<usize, Failed> {
        // No offset: what nobody handled yet stays with Telegram.
        let body = json!({"limit": 1, "timeout": wait.as_secs()});
        Ok(self.call::<Vec<IgnoredAny>>("getUpdates", body, wait).await?.len())
    }

    async fn me(&self) -> Result<Bot, Failed> {
        let me: Me = self.call("getMe", json!({}), Duration::ZERO).await?;
        let id = me.id.to_string();
        if id != self.bot {
            return Err(Failed::ForGood(format!("the token belongs to bot {id}, not to bot {}", self.bot)));
        }
        Ok(Bot { name: me.username.map_or_else(|| id.clone(), |name| format!("@{name}")), id })
    }
}

impl ChannelBackend for Telegram {
    fn prove(&self) -> BoxFuture<'_, Result<Bot, Failed>> {
        self.me().boxed()
    }

    fn connect(&self) -> BoxFuture<'_, Result<(), Failed>> {
        async {
            self.me().await?;
            self.poll(Duration::ZERO).await?;
            Ok(())
        }
        .boxed()
    }

    fn listen(&self) -> BoxFuture<'_, Failed> {
        async {
            loop {
                match self.poll(limits::CHANNEL_POLL).await {
                    Ok(0) => {}
                    // A message waits, so a poll returns at once.
                    Ok(_) => tokio::time::sleep(limits::CHANNEL_POLL).await,
                    Err(why) => return why,
                }
            }
        }
        .boxed()
    }
}

/// The bot's id in a token such as `123456:ABC-DEF`.
fn bot_of(token: &str) -> Option<&str> {
    let (id, secret) = token.split_once(':')?;
    let good = (1..=20).contains(&id.len())
        && id.bytes().all(|b| b.is_ascii_digit())
        && (8..=256).contains(&secret.len())
        && secret.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    good.then_some(id)
}

fn for_now(reason: String) -> Failed {
    Failed::ForNow { reason, after: None }
}

fn unreachable(error: reqwest::Error) -> Failed {
    let timed_out = error.is_timeout();
    let cause = http_client::root_cause(&error.without_url());
    for_now(if timed_out {
        "Telegram did not answer in time".into()
    } else {
        format!("Telegram cannot be reached: {cause}")
    })
}

fn refusal(code: u16, description: &str, retry_after: Option<u64>) -> Failed {
    let said: String = description.chars().filter(|c| !c.is_control()).take(200).collect();
    match code {
        401 | 403 | 404 => Failed::ForGood(format!("Telegram does not accept the bot's token ({code})")),
        409 => Failed::UsedElsewhere(format!("the bot is used elsewhere: {said}")),
        _ => Failed::ForNow {
            reason: format!("Telegram answered {code}: {said}"),
            after: retry_after.map(Duration::from_secs),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "123456:ABC-DEF1234ghIkl-zyx57W2v1u123ew11";

    fn telegram(base: &str) -> Result<Telegram, BadChannel> {
        // The second caller of a process finds the first one's provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Telegram::new(TOKEN.into(), Some(&base.parse().unwrap()))
    }

    #[test]
    fn a_token_names_its_bot_and_anything_else_is_none() {
        assert_eq!(bot_of(TOKEN), Some("123456"));
        for bad in ["", "123456", "123456:", "x:ABCDEFGHIJ", "1:short", "1:ABC/../getMe?", "123456789012345678"] {
            assert_eq!(bot_of(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_token_goes_over_http_only_to_this_machine() {
        for good in ["https://telegram.example", "http://127.0.0.1:8081", "http://localhost/", "http://[::1]:1"] {
            assert!(telegram(good).is_ok(), "{good}");
        }
        for bad in [
            "http://telegram.example",
            "ftp://localhost",
            "https://user:pass@telegram.example",
            "https://telegram.example/?a=b",
            "https://telegram.example/#a",
        ] {
            assert_eq!(telegram(bad).unwrap_err(), BadChannel::Address, "{bad}");
        }
    }

    #[test]
    fn refusals_are_told_apart_by_their_code() {
        assert!(matches!(refusal(401, "Unauthorized", None), Failed::ForGood(_)));
        assert_eq!(
            refusal(409, "Conflict: terminated\nby other", None),
            Failed::UsedElsewhere("the bot is used elsewhere: Conflict: terminatedby other".into())
        );
        let Failed::ForNow { after, .. } = refusal(429, "Too Many Requests", Some(7)) else { panic!() };
        assert_eq!(after, Some(Duration::from_secs(7)));
    }

    #[tokio::test]
    async fn no_error_and_no_debug_output_names_the_token() {
        // Nothing listens there: every kind of error would like to name the address.
        let bot = telegram("http://127.0.0.1:9").unwrap();
        let why = bot.connect().await.unwrap_err();
        for text in [format!("{why:?}"), format!("{bot:?}")] {
            assert!(!text.contains("ABC-DEF") && !text.contains("getMe"), "{text}");
        }
    }
}
