//! Discord's REST API within its limits: those of each route, the one for all, and the one for refusals, of which too many
//! have the address banned.

use std::fmt;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use holdfast_core::limits;
use http::StatusCode;
use http::header::{AUTHORIZATION, HeaderMap, HeaderValue, USER_AGENT};
use parking_lot::Mutex;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::oneshot;
use twilight_http_ratelimiting::{Endpoint, Method, Permit, RateLimitHeaders, RateLimiter};

use super::outcome::Refused;
use crate::channel::BadChannel;
use crate::channel::http::{Answer, Http, Lost, NotFetched};
use crate::status_hub::unix_ms;

/// Discord lets nobody in without a name of this form, with a page and a version. The project has no page of its own.
const AGENT: &str = concat!("DiscordBot (https://holdfast.invalid, ", env!("CARGO_PKG_VERSION"), ")");

/// The API, for one bot.
pub(super) struct Rest {
    http: Http,
    base: String,
    authorization: HeaderValue,
    /// Made when it is first needed: it has a task.
    limiter: OnceLock<RateLimiter>,
    paused: Mutex<Paused>,
    refusals: Mutex<Refusals>,
}

/// Until when what is not asked.
#[derive(Clone, Copy, Default)]
struct Paused {
    /// What counts against the limit of the bot.
    bot: Option<Instant>,
    /// Anything: it is the address that is not welcome.
    address: Option<Instant>,
}

/// Refusals since a moment.
struct Refusals {
    since: Instant,
    count: u32,
}

/// A request.
#[derive(Clone)]
pub(super) struct Call {
    pub method: Method,
    /// Its path as far as limits tell them apart: ids below the first are `:id`. Without a slash before it.
    pub route: String,
    /// Its path, with its query.
    pub path: String,
    pub body: Option<Value>,
    /// It goes without the bot's token and outside of all limits: its path has a token of its own.
    pub bare: bool,
}

impl Call {
    pub(super) fn get(route: impl Into<String>, path: impl Into<String>) -> Call {
        Call { method: Method::Get, route: route.into(), path: path.into(), body: None, bare: false }
    }

    pub(super) fn with(method: Method, route: impl Into<String>, path: impl Into<String>, body: Value) -> Call {
        Call { method, body: Some(body), ..Call::get(route, path) }
    }
}

/// Anything else that refuses has no message.
#[derive(Deserialize)]
struct Refusal {
    message: String,
    #[serde(default)]
    code: u64,
    retry_after: Option<f64>,
    #[serde(default)]
    global: bool,
}

impl fmt::Debug for Rest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rest").field("base", &self.base).finish_non_exhaustive()
    }
}

impl Rest {
    pub(super) fn new(base: String, token: &SecretString) -> Result<Rest, BadChannel> {
        let mut authorization = HeaderValue::from_str(&format!("Bot {}", token.expose_secret()))
            .map_err(|_| BadChannel::Token(super::token::NO_TOKEN))?;
        authorization.set_sensitive(true);
        Ok(Rest {
            http: Http::new("Discord", &base)?,
            base,
            authorization,
            limiter: OnceLock::new(),
            paused: Mutex::default(),
            refusals: Mutex::new(Refusals { since: Instant::now(), count: 0 }),
        })
    }

    /// Asks, and reads what is answered.
    pub(super) async fn read<T: DeserializeOwned>(&self, call: Call, wait: Duration) -> Result<T, Refused> {
        let answer = self.ask(call, wait).await?;
        let status = answer.status.as_u16();
        serde_json::from_slice(&answer.body).map_err(|_| Refused::Strange(status))
    }

    /// Asks; what is answered beyond yes does not matter.
    pub(super) async fn ask(&self, call: Call, wait: Duration) -> Result<Answer, Refused> {
        if let Some(after) = self.pause(call.bare) {
            return Err(Refused::Limited(after));
        }
        let permit = self.permit(&call).await?;
        let address = format!("{}/{}", self.base, call.path);
        let answer = self.http.ask(
            |client| {
                let mut request = match call.method {
                    Method::Delete => client.delete(address),
                    Method::Patch => client.patch(address),
                    Method::Post => client.post(address),
                    Method::Put => client.put(address),
                    _ => client.get(address),
                };
                request = request.header(USER_AGENT, AGENT);
                if !call.bare {
                    request = request.header(AUTHORIZATION, self.authorization.clone());
                }
                match &call.body {
                    Some(body) => request.json(body),
                    None => request,
                }
            },
            wait,
        );
        let answer = answer.await.map_err(Refused::Lost)?;
        if let Some(permit) = permit {
            permit.complete(limits_of(&answer.headers));
        }
        if answer.status.is_success() { Ok(answer) } else { Err(self.refused(&answer)) }
    }

    /// Streams a file whose address Discord named. It goes without the token, and only to Discord.
    pub(super) async fn fetch(&self, address: &str, into: &mut tokio::fs::File) -> Result<u64, String> {
        let url = address.parse().map_err(|_| "Discord names no address of this file")?;
        if !self.is_files(&url) {
            return Err("this file is not at Discord".into());
        }
        self.http.fetch(|client| client.get(url).header(USER_AGENT, AGENT), into).await.map_err(|why| match why {
            NotFetched::Refused(status) => {
                format!("Discord does not give this file ({status})")
            }
            NotFetched::Because(reason) => reason,
        })
    }

    fn is_files(&self, url: &url::Url) -> bool {
        let own = self.base.parse::<url::Url>().is_ok_and(|base| base.origin() == url.origin());
        let cdn = matches!(url.host_str(), Some("cdn.discordapp.com" | "media.discordapp.net"));
        own || cdn && url.scheme() == "https" && url.port().is_none()
    }

    /// Discord's calendar, in milliseconds since 1970; this machine's, until Discord told it.
    pub(super) fn unix_ms(&self) -> u64 {
        self.http.calendar().now().unwrap_or_else(unix_ms)
    }

    pub(super) fn reset(&self) {
        self.http.reset();
    }

    /// How long it may not be asked yet. Answers to interactions do not count against the bot's limit.
    fn pause(&self, bare: bool) -> Option<Duration> {
        let Paused { bot, address } = *self.paused.lock();
        let until = address.max(bot.filter(|_| !bare))?;
        until.checked_duration_since(Instant::now())
    }

    fn pause_for(&self, after: Duration, of: impl FnOnce(&mut Paused) -> &mut Option<Instant>) {
        let until = Instant::now() + after.min(limits::CHANNEL_AFTER_MAX);
        let mut paused = self.paused.lock();
        let before = of(&mut paused);
        *before = (*before).max(Some(until));
    }

    /// Waits for its turn on its route. Answers to interactions have no limit, and a person waits for them.
    async fn permit(&self, call: &Call) -> Result<Option<Permit>, Refused> {
        if call.bare {
            return Ok(None);
        }
        let limiter = self.limiter.get_or_init(RateLimiter::default);
        let endpoint = Endpoint { method: call.method, path: call.route.clone() };
        let (told, known) = oneshot::channel();
        let permit = limiter.acquire_if(endpoint, move |bucket| {
            let left =
                bucket.filter(|b| b.remaining == 0).map(|b| b.reset_at.saturating_duration_since(Instant::now()));
            let too_long = left.filter(|left| *left > limits::DISCORD_PERMIT);
            too_long.is_none_or(|left| told.send(left).is_err())
        });
        match tokio::time::timeout(limits::CHANNEL_SEND, permit).await {
            Ok(Some(permit)) => Ok(Some(permit)),
            Ok(None) => Err(Refused::Limited(known.await.unwrap_or(limits::DISCORD_PERMIT))),
            Err(_) => Err(Refused::Lost(Lost::NotSent("requests before it have not been answered yet".into()))),
        }
    }

    fn refused(&self, answer: &Answer) -> Refused {
        let status = answer.status.as_u16();
        let header = |name: &str| answer.headers.get(name).and_then(|value| value.to_str().ok());
        if matches!(answer.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
            || status == 429 && header(RateLimitHeaders::SCOPE) != Some("shared")
        {
            self.count_refusal();
        }
        let refusal = serde_json::from_slice::<Refusal>(&answer.body);
        if status == 429 {
            let header = header("retry-after").and_then(|after| after.parse().ok());
            let body = refusal.as_ref().ok();
            let seconds = body.and_then(|r| r.retry_after).or(header).unwrap_or(1.0);
            let after = Duration::try_from_secs_f64(seconds).unwrap_or(limits::CHANNEL_AFTER_MAX);
            // Without Discord's own body, something before it refuses the whole address.
            match body {
                None => self.pause_for(after, |paused| &mut paused.address),
                Some(Refusal { global: true, .. }) => self.pause_for(after, |paused| &mut paused.bot),
                Some(_) => {}
            }
            return Refused::Limited(after);
        }
        match refusal {
            Ok(Refusal { message, code, .. }) => {
                Refused::Said { status, code, said: message.chars().filter(|c| !c.is_control()).take(200).collect() }
            }
            Err(_) => Refused::Strange(status),
        }
    }

    fn count_refusal(&self) {
        let now = Instant::now();
        let mut refusals = self.refusals.lock();
        if now.duration_since(refusals.since) > limits::DISCORD_REFUSED_WINDOW {
            *refusals = Refusals { since: now, count: 0 };
        }
        refusals.count += 1;
        if refusals.count >= limits::DISCORD_REFUSED {
            tracing::warn!(
                "Discord refused too often; nothing is asked for a while, so that it does not ban this address"
            );
            let left = (refusals.since + limits::DISCORD_REFUSED_WINDOW).duration_since(now);
            self.pause_for(left, |paused| &mut paused.address);
        }
    }
}

/// What an answer says about the limit of its route.
fn limits_of(headers: &HeaderMap) -> Option<RateLimitHeaders> {
    let text = |name: &str| headers.get(name)?.to_str().ok();
    let after = text(RateLimitHeaders::RESET_AFTER)?.parse().ok()?;
    Some(RateLimitHeaders {
        bucket: text(RateLimitHeaders::BUCKET)?.as_bytes().to_vec(),
        limit: text(RateLimitHeaders::LIMIT)?.parse().ok()?,
        remaining: text(RateLimitHeaders::REMAINING)?.parse().ok()?,
        reset_at: Instant::now() + Duration::try_from_secs_f64(after).ok()?.min(limits::CHANNEL_AFTER_MAX),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn after_very_many_refusals_nothing_is_asked_for_a_while() {
        // The second caller of a process finds the first one's provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // Nothing listens there.
        let rest = Rest::new("http://127.0.0.1:9".into(), &"token".into()).unwrap();
        let refusal = |status: StatusCode| Answer { status, headers: HeaderMap::new(), body: b"{}".to_vec() };
        for _ in 1..limits::DISCORD_REFUSED {
            rest.refused(&refusal(StatusCode::FORBIDDEN));
            rest.refused(&refusal(StatusCode::NOT_FOUND));
        }
        let asked = rest.ask(Call::get("x", "x"), limits::CHANNEL_REQUEST).await;
        assert!(matches!(asked, Err(Refused::Lost(_))), "{asked:?}");
        rest.refused(&refusal(StatusCode::UNAUTHORIZED));
        let Err(Refused::Limited(after)) = rest.ask(Call::get("x", "x"), limits::CHANNEL_REQUEST).await else {
            panic!()
        };
        assert!(after > limits::DISCORD_REFUSED_WINDOW / 2, "{after:?}");
    }
}
