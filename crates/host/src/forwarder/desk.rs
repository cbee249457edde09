//! Where the rest of the process meets whoever serves a bot's channels, if this process does.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use holdfast_core::chat::asks::{End, Verdict};
use holdfast_core::chat::{ChannelId, Incoming, MessageId};
use holdfast_core::limits;
use holdfast_core::status::ForwarderStatus;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot, watch};

use crate::asked::Asked;
use crate::channel::Examined;
use crate::deliver::{Grants, Offers};

/// What API, commands and engine use; it outlives every holder. Clones share it.
#[derive(Debug, Clone)]
pub struct Desk(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Takes requests while this process serves.
    place: watch::Sender<Option<mpsc::Sender<Request>>>,
    status: watch::Sender<Arc<ForwarderStatus>>,
    /// The transcripts that agents named while nobody served, by their bindings.
    named: Mutex<BTreeMap<Arc<str>, Arc<str>>>,
    offers: Offers,
    grants: Grants,
    /// Of agents and of their bindings.
    paths: Asked<PathBuf>,
}

/// Why something was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeskError {
    /// This process does not speak for the bot.
    #[error("this process does not hold the bot's seat")]
    NoSeat,
    /// There is no such binding, or message.
    #[error("{0}")]
    NotFound(String),
    /// What was given cannot be used; why.
    #[error("{0}")]
    Invalid(String),
    /// The code that was typed is nobody's, or pairing is not open.
    #[error("wrong code, or pairing has closed")]
    WrongCode,
    /// The channel refuses; why.
    #[error("the channel takes nothing: {0}")]
    Parked(String),
    /// It may go later; why.
    #[error("{0}")]
    Later(String),
}

impl DeskError {
    /// What programs match on.
    pub const fn code(&self) -> &'static str {
        match self {
            DeskError::NoSeat => "no_seat",
            DeskError::NotFound(_) => "not_found",
            DeskError::Invalid(_) => "invalid_request",
            DeskError::WrongCode => "wrong_code",
            DeskError::Parked(_) => "channel_parked",
            DeskError::Later(_) => "unavailable",
        }
    }
}

/// What an agent's hook asks people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Names it: the same again is the same prompt. 1 to [`limits::ASK_REQUEST_MAX`] bytes of letters, digits, `-` and `_`.
    pub request: String,
    /// The binding of the agent.
    pub binding: String,
    /// The tool that wants to run.
    pub tool: String,
    /// What it is for.
    pub description: String,
    /// What it will do.
    pub preview: String,
    /// [`holdfast_core::chat::asks::Ask::left_out`].
    pub left_out: usize,
}

/// Nobody can be asked: the terminal decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("nobody can be asked")]
pub struct CannotAsk;

/// How a question ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answered {
    /// Somebody clicked: what, and who.
    By(Verdict, String),
    /// Nobody did in time.
    Expired,
    /// It was withdrawn.
    Withdrawn,
}

fn answered(end: End) -> Result<Answered, CannotAsk> {
    match end {
        End::Answered(verdict, name) => Ok(Answered::By(verdict, name)),
        End::Expired => Ok(Answered::Expired),
        End::Withdrawn | End::Gone => Ok(Answered::Withdrawn),
        End::Unseen => Err(CannotAsk),
    }
}

pub(super) type Reply<T> = oneshot::Sender<Result<T, DeskError>>;

/// What is asked of whoever serves.
#[derive(Debug)]
pub(super) enum Request {
    Say { binding: String, text: String, reply_to: Option<MessageId>, key: String, reply: Reply<()> },
    Fetch { binding: String, limit: usize, reply: Reply<Vec<Incoming>> },
    Ask(Question, oneshot::Sender<Result<End, CannotAsk>>),
    Withdraw(String),
    PairOpen(Reply<Duration>),
    PairTyped(String, Reply<(String, String)>),
    Retry { channel: Option<ChannelId>, unknown: bool, reply: Reply<()> },
    Bind { binding: String, transcript: String, reply: Reply<()> },
    Test { binding: String, reply: Reply<MessageId> },
    Examine { channel: ChannelId, reply: Reply<Examined> },
}

impl Default for Desk {
    fn default() -> Desk {
        Desk(Arc::new(Inner {
            place: watch::Sender::new(None),
            status: watch::Sender::new(Arc::default()),
            named: Mutex::default(),
            offers: Offers::default(),
            grants: Grants::default(),
            paths: Asked::default(),
        }))
    }
}

impl Desk {
    /// What passes between agents and channels, and as it changes.
    pub fn view(&self) -> watch::Receiver<Arc<ForwarderStatus>> {
        self.0.status.subscribe()
    }

    /// Messages that wait for processes of agents; a holder's courier puts them there.
    pub fn offers(&self) -> &Offers {
        &self.0.offers
    }

    /// Tools that need no further question.
    pub fn grants(&self) -> &Grants {
        &self.0.grants
    }

    /// Where agents and their bindings are.
    pub(crate) fn paths(&self) -> &Asked<PathBuf> {
        &self.0.paths
    }

    /// Has the bot say something, of any length: where the message that it answers was written, be that a thread or a private
    /// conversation, as long as the binding's agent is heard there; otherwise in the binding's channel. Returns once it is in custody: it is posted even if
    /// this process dies. The same key again is not said again.
    ///
    /// # Errors
    /// [`DeskError::NoSeat`], [`DeskError::NotFound`], [`DeskError::Invalid`], [`DeskError::Parked`], [`DeskError::Later`].
    pub async fn say(
        &self,
        binding: &str,
        text: String,
        reply_to: Option<MessageId>,
        key: String,
    ) -> Result<(), DeskError> {
        self.ask_for(|reply| Request::Say { binding: binding.to_owned(), text, reply_to, key, reply }).await
    }

    /// The last messages that were taken for a binding's agent, oldest first; at most [`limits::FORWARDER_FETCHED`].
    ///
    /// # Errors
    /// [`DeskError::NoSeat`], [`DeskError::NotFound`].
    pub async fn fetch(&self, binding: &str, limit: usize) -> Result<Vec<Incoming>, DeskError> {
        self.ask_for(|reply| Request::Fetch { binding: binding.to_owned(), limit, reply }).await
    }

    /// Asks people, and waits for at most [`limits::ASK_LIFE`]. A hand-over in between is waited through for
    /// [`limits::ASK_PLACE`], if this process has the seat again by then.
    ///
    /// # Errors
    /// Nobody can be asked.
    pub async fn ask(&self, question: Question) -> Result<Answered, CannotAsk> {
        loop {
            let place = tokio::time::timeout(limits::ASK_PLACE, self.place()).await.map_err(|_| CannotAsk)?;
            let (reply, answer) = oneshot::channel();
            if place.send(Request::Ask(question.clone(), reply)).await.is_ok()
                && let Ok(answer) = answer.await
            {
                return answer.and_then(answered);
            }
            // Whoever served went; perhaps somebody serves here again. It must not be found before it is seen to be gone.
            place.closed().await;
        }
    }

    /// Nobody waits for that question any more: it was decided at the terminal, or its agent was stopped.
    pub async fn withdraw(&self, request: &str) {
        let place = self.0.place.borrow().clone();
        if let Some(place) = place {
            // Without a holder its prompt stands until it expires.
            let _ = place.send(Request::Withdraw(request.to_owned())).await;
        }
    }

    /// From now on people who write to the bot get a code; for how long.
    ///
    /// # Errors
    /// [`DeskError::NoSeat`].
    pub async fn pair_open(&self) -> Result<Duration, DeskError> {
        self.ask_for(Request::PairOpen).await
    }

    /// Admits whoever got this code, and says who that is: their id at the service, and their name.
    ///
    /// # Errors
    /// [`DeskError::NoSeat`], [`DeskError::WrongCode`].
    pub async fn pair_typed(&self, code: String) -> Result<(String, String), DeskError> {
        self.ask_for(|reply| Request::PairTyped(code, reply)).await
    }

    /// Tries again what a channel, or every one, refused; with `unknown` also what may be there already.
    ///
    /// # Errors
    /// [`DeskError::NoSeat`].
    pub async fn retry(&self, channel: Option<ChannelId>, unknown: bool) -> Result<(), DeskError> {
        self.ask_for(|reply| Request::Retry { channel, unknown, reply }).await
    }

    /// The agent of a binding writes this transcript from now on. Whoever serves keeps that; while nobody does here, it is
    /// remembered until somebody does, or this process ends.
    ///
    /// # Errors
    /// [`DeskError::NotFound`] without such a binding, [`DeskError::Invalid`] if the path is no absolute one, or another
    /// binding follows it.
    pub async fn bind(&self, binding: &str, transcript: &str) -> Result<(), DeskError> {
        let request = |reply| Request::Bind { binding: binding.to_owned(), transcript: transcript.to_owned(), reply };
        match self.ask_for(request).await {
            Err(DeskError::NoSeat) => {
                let mut named = self.0.named.lock();
                if named.len() < limits::BINDINGS || named.contains_key(binding) {
                    named.insert(binding.into(), transcript.into());
                }
                Ok(())
            }
            other => other,
        }
    }

    /// Posts a test message and waits until the service has it.
    ///
    /// # Errors
    /// [`DeskError::NoSeat`], [`DeskError::NotFound`], [`DeskError::Parked`], [`DeskError::Later`].
    pub async fn test(&self, binding: &str) -> Result<MessageId, DeskError> {
        let posted = self.ask_for(|reply| Request::Test { binding: binding.to_owned(), reply });
        let late = |_| DeskError::Later("the service has not answered yet; it is tried again".to_owned());
        tokio::time::timeout(limits::FORWARDER_TEST, posted).await.map_err(late)?
    }

    /// What the bot finds where a channel should be.
    ///
    /// # Errors
    /// [`DeskError::NoSeat`]; [`DeskError::Invalid`] and [`DeskError::NotFound`] where no channel can be or is;
    /// [`DeskError::Parked`] if the service does not let the bot in; [`DeskError::Later`].
    pub async fn examine(&self, channel: ChannelId) -> Result<Examined, DeskError> {
        let examined = self.ask_for(|reply| Request::Examine { channel, reply });
        let late = |_| DeskError::Later("the service has not answered yet".to_owned());
        tokio::time::timeout(limits::FORWARDER_TEST, examined).await.map_err(late)?
    }

    /// Waits until somebody serves here, at most [`limits::ASK_PLACE`].
    pub(crate) async fn opened(&self) {
        // Without anybody what is asked for says so itself.
        let _ = tokio::time::timeout(limits::ASK_PLACE, self.place()).await;
    }

    async fn ask_for<T>(&self, request: impl FnOnce(Reply<T>) -> Request) -> Result<T, DeskError> {
        let place = self.0.place.borrow().clone().ok_or(DeskError::NoSeat)?;
        let (reply, answer) = oneshot::channel();
        place.send(request(reply)).await.map_err(|_| DeskError::NoSeat)?;
        answer.await.map_err(|_| DeskError::NoSeat)?
    }

    async fn place(&self) -> mpsc::Sender<Request> {
        let mut place = self.0.place.subscribe();
        let open = |place: &Option<mpsc::Sender<Request>>| place.as_ref().is_some_and(|place| !place.is_closed());
        match place.wait_for(open).await.map(|place| place.clone()) {
            Ok(Some(place)) => place,
            // The desk itself holds the other end.
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }

    /// Somebody serves from now on: takes requests, and what was kept for it.
    pub(super) fn open(&self) -> (mpsc::Receiver<Request>, BTreeMap<Arc<str>, Arc<str>>) {
        let (place, requests) = mpsc::channel(limits::FORWARDER_REQUESTS);
        self.0.place.send_replace(Some(place));
        (requests, std::mem::take(&mut self.0.named.lock()))
    }

    /// Nobody serves any more.
    pub(super) fn close(&self) {
        self.0.place.send_replace(None);
    }

    /// What is shown from now on.
    pub(crate) fn show(&self, status: ForwarderStatus) {
        self.0.status.send_if_modified(|shown| {
            let differs = **shown != status;
            if differs {
                *shown = Arc::new(status);
            }
            differs
        });
    }
}
