//! The sessions of 2025-11-25 clients: who may use one, which calls it has in flight, which answers it keeps.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use holdfast_core::limits;
use parking_lot::{Mutex, RwLock};
use rand::RngCore as _;
use tokio::sync::watch;

use super::envelope::RpcId;
use super::lasting::Patience;
use super::reply::RpcError;
use super::stream::{Request, Stop, Stream, parse_event_id};
use crate::{GrantId, Principal};

/// All sessions of this process life. Times are boot times.
#[derive(Debug)]
pub(super) struct Sessions {
    /// Random, once per process: event ids of an earlier life name nothing.
    epoch: Arc<str>,
    by_id: RwLock<HashMap<Arc<str>, Arc<Session>>>,
    kept: Arc<AtomicUsize>,
}

/// One session.
#[derive(Debug)]
pub(super) struct Session {
    pub id: Arc<str>,
    /// Account and client: what the cap counts.
    pub caller: Arc<str>,
    /// The revision agreed in `initialize`.
    pub revision: &'static str,
    /// How its client waits for a call.
    pub patience: Patience,
    owner: Arc<Principal>,
    epoch: Arc<str>,
    used: AtomicU64,
    calls: Mutex<Calls>,
    /// Bytes of the answers kept, here and in all sessions.
    kept: AtomicUsize,
    kept_in_all: Arc<AtomicUsize>,
    /// The standalone stream that is current; a newer one ends the older. Gone: the session is over.
    listener: watch::Sender<Listener>,
}

/// Which standalone stream is current.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Listener {
    Number(u64),
    Over,
}

#[derive(Debug, Default)]
struct Calls {
    last: u64,
    in_flight: HashMap<RpcId, Arc<Stream>>,
    /// In flight and kept, by number.
    streams: BTreeMap<u64, Arc<Stream>>,
    /// Answered, oldest first, with their cost.
    answered: VecDeque<(Arc<Stream>, usize)>,
    over: bool,
}

/// What a request for a call found.
pub(super) enum Started {
    /// Nobody has this id in flight: run it.
    New(Arc<Stream>),
    /// The same request is in flight: wait for its answer.
    Joined(Arc<Stream>),
}

fn random<const N: usize>() -> String {
    let mut bytes = [0; N];
    rand::rng().fill_bytes(&mut bytes);
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Account and client, as one opaque text.
pub(super) fn caller(principal: &Principal) -> Arc<str> {
    format!("{} {}", principal.account, principal.client).into()
}

impl Default for Sessions {
    fn default() -> Self {
        Sessions { epoch: random::<6>().into(), by_id: RwLock::default(), kept: Arc::default() }
    }
}

impl Sessions {
    /// Opens a session. At a cap, the least recently used session without a call in flight makes room.
    pub fn open(
        &self,
        owner: &Arc<Principal>,
        revision: &'static str,
        patience: Patience,
        now: Duration,
    ) -> Result<Arc<Session>, RpcError> {
        let caller = caller(owner);
        let mut by_id = self.by_id.write();
        let own = by_id.values().filter(|session| session.caller == caller).count();
        let mine = |session: &Session| session.caller == caller;
        if own >= limits::SESSIONS_PER_PRINCIPAL {
            make_room(&mut by_id, mine)?;
        } else if by_id.len() >= limits::SESSIONS_MAX {
            make_room(&mut by_id, |_| true)?;
        }
        let session = Arc::new(Session {
            id: format!("hf_{}", random::<24>()).into(),
            caller,
            revision,
            patience,
            owner: Arc::clone(owner),
            epoch: Arc::clone(&self.epoch),
            used: AtomicU64::new(millis(now)),
            calls: Mutex::default(),
            kept: AtomicUsize::new(0),
            kept_in_all: Arc::clone(&self.kept),
            listener: watch::Sender::new(Listener::Number(0)),
        });
        by_id.insert(Arc::clone(&session.id), Arc::clone(&session));
        Ok(session)
    }

    /// The session of a request. One that belongs to another grant or device does not exist.
    pub fn find(&self, id: &str, principal: &Principal, now: Duration) -> Result<Arc<Session>, RpcError> {
        let session = self.by_id.read().get(id).cloned();
        let session = session.filter(|s| s.owner.grant == principal.grant && s.owner.device == principal.device);
        let session = session.ok_or_else(|| RpcError::no_session("MCP session not found"))?;
        session.used.store(millis(now), Ordering::Relaxed);
        Ok(session)
    }

    /// Ends a session: its calls are left, its streams end.
    pub fn end(&self, session: &Session) {
        self.by_id.write().remove(&session.id);
        session.end();
    }

    /// Ends the sessions of every grant that does not stand any more.
    pub fn end_revoked(&self, is_live: impl Fn(&GrantId) -> bool) {
        self.end_where(|session| !is_live(&session.owner.grant));
    }

    fn end_where(&self, over: impl Fn(&Session) -> bool) {
        let mut ended = Vec::new();
        self.by_id.write().retain(|_, session| {
            let over = over(session);
            if over {
                ended.push(Arc::clone(session));
            }
            !over
        });
        for session in ended {
            session.end();
        }
    }

    /// Forgets answers past their time and ends sessions idle for too long; never one with a call in flight or a listener.
    pub fn sweep(&self, now: Duration) {
        let sessions: Vec<_> = self.by_id.read().values().cloned().collect();
        for session in &sessions {
            session.calls.lock().forget_expired(session, now);
        }
        self.end_where(|session| {
            let idle = now.saturating_sub(Duration::from_millis(session.used.load(Ordering::Relaxed)));
            idle >= limits::SESSION_IDLE && !session.is_busy() && session.listener.receiver_count() == 0
        });
    }

    /// Brings all kept answers under their common bound; who keeps most gives first.
    pub fn relieve(&self) {
        while self.kept.load(Ordering::Relaxed) > limits::RESUME_TOTAL_BYTES {
            let by_id = self.by_id.read();
            let Some(fattest) = by_id.values().max_by_key(|session| session.kept.load(Ordering::Relaxed)) else {
                return;
            };
            if !fattest.calls.lock().forget_oldest(fattest) {
                return;
            }
        }
    }

    /// Sessions open, and answers kept in bytes.
    pub fn counts(&self) -> (usize, usize) {
        (self.by_id.read().len(), self.kept.load(Ordering::Relaxed))
    }
}

fn make_room(by_id: &mut HashMap<Arc<str>, Arc<Session>>, may: impl Fn(&Session) -> bool) -> Result<(), RpcError> {
    let idle = by_id.values().filter(|session| may(session) && !session.is_busy());
    let oldest = idle.min_by_key(|session| session.used.load(Ordering::Relaxed)).map(|session| Arc::clone(&session.id));
    let session = oldest.and_then(|id| by_id.remove(&id));
    let session = session.ok_or_else(|| RpcError::busy("too many MCP sessions, and all have calls in flight"))?;
    session.end();
    Ok(())
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Session {
    /// Begins the call of a request, or joins the one that is the same.
    pub fn start(&self, id: &RpcId, request: Request) -> Result<Started, RpcError> {
        let mut calls = self.calls.lock();
        if calls.over {
            return Err(RpcError::no_session("MCP session not found"));
        }
        if let Some(stream) = calls.in_flight.get(id) {
            return match stream.request == request {
                true => Ok(Started::Joined(Arc::clone(stream))),
                false => Err(RpcError::conflict("this request id is in flight in this session with other content")),
            };
        }
        if calls.in_flight.len() >= limits::SESSION_CALLS_MAX {
            return Err(RpcError::busy("too many calls in flight in this session"));
        }
        calls.last += 1;
        let stream = Stream::new(Arc::clone(&self.epoch), calls.last, request);
        calls.in_flight.insert(id.clone(), Arc::clone(&stream));
        calls.streams.insert(stream.number, Arc::clone(&stream));
        Ok(Started::New(stream))
    }

    /// Keeps the final answer of a call. `false`: the call was given up, nobody may have it.
    pub fn answer(&self, id: &RpcId, stream: &Arc<Stream>, data: &[u8], now: Duration) -> bool {
        let mut calls = self.calls.lock();
        // A cancelled call's id may be in use again already.
        if calls.in_flight.get(id).is_some_and(|current| Arc::ptr_eq(current, stream)) {
            calls.in_flight.remove(id);
        }
        let Some(cost) = stream.answer(data, now) else {
            calls.streams.remove(&stream.number);
            return false;
        };
        self.used.fetch_max(millis(now), Ordering::Relaxed);
        calls.answered.push_back((Arc::clone(stream), cost));
        self.kept.fetch_add(cost, Ordering::Relaxed);
        self.kept_in_all.fetch_add(cost, Ordering::Relaxed);
        calls.forget_expired(self, now);
        while self.kept.load(Ordering::Relaxed) > limits::RESUME_SESSION_BYTES && calls.answered.len() > 1 {
            calls.forget_oldest(self);
        }
        true
    }

    /// The client does not want this call any more; unknown and finished ids are no error.
    pub fn cancel(&self, id: &RpcId) {
        let mut calls = self.calls.lock();
        if let Some(stream) = calls.in_flight.remove(id) {
            calls.streams.remove(&stream.number);
            stream.close(Stop::Cancel);
        }
    }

    /// The stream an event id belongs to, and the event the client saw last.
    pub fn resume(&self, event_id: &str, now: Duration) -> Result<(Arc<Stream>, u64), RpcError> {
        let gone = || RpcError::no_stream("this event stream cannot be resumed: it is unknown, or its time is over");
        let (epoch, number, seen) = parse_event_id(event_id).ok_or_else(gone)?;
        if *epoch != *self.epoch {
            return Err(gone());
        }
        let mut calls = self.calls.lock();
        calls.forget_expired(self, now);
        let stream = calls.streams.get(&number).filter(|stream| stream.wrote(seen)).cloned().ok_or_else(gone)?;
        Ok((stream, seen))
    }

    /// Opens the standalone stream; an earlier one ends.
    pub fn listen(&self) -> (watch::Receiver<Listener>, Listener) {
        let mut current = Listener::Over;
        self.listener.send_modify(|listener| {
            if let Listener::Number(number) = listener {
                *number += 1;
            }
            current = *listener;
        });
        (self.listener.subscribe(), current)
    }

    fn is_busy(&self) -> bool {
        !self.calls.lock().in_flight.is_empty()
    }

    fn end(&self) {
        let mut calls = self.calls.lock();
        calls.over = true;
        for (_, stream) in calls.in_flight.drain() {
            stream.close(Stop::Leave);
        }
        while calls.forget_oldest(self) {}
        calls.streams.clear();
        drop(calls);
        self.listener.send_replace(Listener::Over);
    }
}

impl Calls {
    fn forget_oldest(&mut self, session: &Session) -> bool {
        let Some((stream, cost)) = self.answered.pop_front() else { return false };
        self.streams.remove(&stream.number);
        session.kept.fetch_sub(cost, Ordering::Relaxed);
        session.kept_in_all.fetch_sub(cost, Ordering::Relaxed);
        true
    }

    fn forget_expired(&mut self, session: &Session, now: Duration) {
        let expired = |stream: &Stream| stream.answered_at().is_some_and(|at| at + limits::RESUME_KEPT <= now);
        while self.answered.front().is_some_and(|(stream, _)| expired(stream)) {
            self.forget_oldest(session);
        }
    }
}

#[cfg(test)]
mod tests;
