//! Requests to a chat service. What fails names neither an address nor a header: either may hold the token.

use std::fmt;
use std::time::Duration;

use holdfast_core::limits;
use holdfast_relay::{Clock as _, SystemClock};
use http::{HeaderMap, StatusCode};
use parking_lot::Mutex;
use reqwest::{Client, RequestBuilder, Response};
use tokio::io::AsyncWriteExt as _;
use tokio_util::sync::CancellationToken;

use super::BadChannel;
use crate::http_client;

/// A client that can be made anew.
pub(super) struct Http {
    /// As people call it.
    service: &'static str,
    /// The service is on this machine: the token must not go to a proxy elsewhere, in the clear.
    local: bool,
    open: Mutex<Open>,
    calendar: Calendar,
}

#[derive(Clone)]
struct Open {
    client: Client,
    ended: CancellationToken,
}

/// A whole answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

/// There is no answer; in plain words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Lost {
    /// The request certainly never left.
    NotSent(String),
    /// It may have been carried out.
    Unanswered(String),
}

impl Lost {
    pub(super) fn reason(self) -> String {
        match self {
            Lost::NotSent(reason) | Lost::Unanswered(reason) => reason,
        }
    }
}

/// The service's calendar, as its last answer told it; it goes on with the time since this machine began, so that neither a
/// wrong clock here nor one that is set counts.
#[derive(Debug, Default)]
pub(super) struct Calendar {
    clock: SystemClock,
    /// What it showed, and the boot time then.
    told: Mutex<Option<(u64, Duration)>>,
}

impl Calendar {
    /// An answer came.
    pub(super) fn hear(&self, headers: &HeaderMap) {
        if let Some(shown) = date(headers) {
            *self.told.lock() = Some((shown, self.boot()));
        }
    }

    /// In milliseconds since 1970, to a second or two. None: the service did not tell it.
    pub(super) fn now(&self) -> Option<u64> {
        let (shown, at) = (*self.told.lock())?;
        let since = self.boot().saturating_sub(at);
        Some(shown.saturating_add(u64::try_from(since.as_millis()).unwrap_or(u64::MAX)))
    }

    /// Time since the machine began, its sleep as well.
    pub(super) fn boot(&self) -> Duration {
        self.clock.now().boot
    }
}

/// When an answer was made, in milliseconds since 1970.
fn date(headers: &HeaderMap) -> Option<u64> {
    let text = headers.get(http::header::DATE)?.to_str().ok()?;
    u64::try_from(jiff::fmt::rfc2822::parse(text).ok()?.timestamp().as_millisecond()).ok()
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").field("service", &self.service).finish_non_exhaustive()
    }
}

impl Http {
    /// For a service whose address this is.
    pub(super) fn new(service: &'static str, base: &str) -> Result<Http, BadChannel> {
        let local = base.parse().is_ok_and(|url| http_client::is_this_machine(&url));
        let client = client(local).map_err(|_| BadChannel::Tls)?;
        let open = Mutex::new(Open { client, ended: CancellationToken::new() });
        Ok(Http { service, local, open, calendar: Calendar::default() })
    }

    /// Sends a request and reads its answer, of at most [`limits::CHANNEL_BODY_MAX`].
    pub(super) async fn ask(
        &self,
        request: impl FnOnce(&Client) -> RequestBuilder,
        wait: Duration,
    ) -> Result<Answer, Lost> {
        let open = self.open.lock().clone();
        let answer = async {
            let mut response = request(&open.client).timeout(wait).send().await.map_err(|e| self.lost(e))?;
            let (status, headers) = (response.status(), std::mem::take(response.headers_mut()));
            self.calendar.hear(&headers);
            let mut body = Vec::new();
            while let Some(more) = response.chunk().await.map_err(|e| self.lost(e))? {
                if body.len() + more.len() > limits::CHANNEL_BODY_MAX {
                    return Err(Lost::Unanswered(format!("{}'s answer is larger than one can be", self.service)));
                }
                body.extend_from_slice(&more);
            }
            Ok(Answer { status, headers, body })
        };
        tokio::select! {
            answer = answer => answer,
            () = open.ended.cancelled() => Err(Lost::Unanswered("the connection hung and was given up".into())),
        }
    }

    /// Streams the answer of a request into a file; at most [`limits::ATTACHMENT_MAX`] bytes, and not none.
    ///
    /// # Errors
    /// In plain words; or the status, if the service refuses.
    pub(super) async fn fetch(
        &self,
        request: impl FnOnce(&Client) -> RequestBuilder,
        into: &mut tokio::fs::File,
    ) -> Result<u64, NotFetched> {
        let open = self.open.lock().clone();
        let fetched = async {
            let sent = request(&open.client).timeout(limits::INBOX_ATTACHMENT_WAIT).send().await;
            let response = sent.map_err(|e| NotFetched::Because(self.lost(e).reason()))?;
            match response.status() {
                StatusCode::OK => self.pour(response, into).await.map_err(NotFetched::Because),
                refused => Err(NotFetched::Refused(refused)),
            }
        };
        tokio::select! {
            fetched = fetched => fetched,
            () = open.ended.cancelled() => Err(NotFetched::Because("the connection hung and was given up".into())),
        }
    }

    async fn pour(&self, mut response: Response, into: &mut tokio::fs::File) -> Result<u64, String> {
        let too_large = || format!("the file is larger than {} MiB", limits::ATTACHMENT_MAX >> 20);
        if response.content_length().is_some_and(|length| length > limits::ATTACHMENT_MAX) {
            return Err(too_large());
        }
        let mut written = 0;
        while let Some(more) = response.chunk().await.map_err(|e| self.lost(e).reason())? {
            written += more.len() as u64;
            if written > limits::ATTACHMENT_MAX {
                return Err(too_large());
            }
            into.write_all(&more).await.map_err(|e| format!("the file cannot be written: {e}"))?;
        }
        into.flush().await.map_err(|e| format!("the file cannot be written: {e}"))?;
        if written == 0 { Err("the file is empty".into()) } else { Ok(written) }
    }

    /// The service's.
    pub(super) fn calendar(&self) -> &Calendar {
        &self.calendar
    }

    /// Ends what is under way and begins with new connections.
    pub(super) fn reset(&self) {
        let mut open = self.open.lock();
        if let Ok(client) = client(self.local) {
            open.client = client;
        }
        std::mem::take(&mut open.ended).cancel();
    }

    fn lost(&self, error: reqwest::Error) -> Lost {
        let (connecting, timed_out) = (error.is_connect() || error.is_builder(), error.is_timeout());
        let cause = http_client::root_cause(&error.without_url());
        let reason = match timed_out {
            true => format!("{} did not answer in time", self.service),
            false => format!("{} cannot be reached: {cause}", self.service),
        };
        if connecting { Lost::NotSent(reason) } else { Lost::Unanswered(reason) }
    }
}

fn client(local: bool) -> reqwest::Result<Client> {
    let bare = http_client::bare();
    if local { bare.no_proxy() } else { bare }.build()
}

/// Why a file was not fetched.
#[derive(Debug)]
pub(super) enum NotFetched {
    Refused(StatusCode),
    Because(String),
}
