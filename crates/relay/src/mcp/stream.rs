//! The answer to one 2025-11-25 call: events kept until a minute after the end, read by whoever holds the session.
//!
//! The call's own task writes, so a reader that is stalled, gone or not back yet holds nothing up.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use holdfast_core::limits;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::reply::{COMMENT, event};

/// What a call asks: two equal ones are one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    pub tool: Arc<str>,
    /// Of the arguments, see [`super::arguments::digest`].
    pub digest: [u8; 32],
}

/// One answer.
#[derive(Debug)]
pub(super) struct Stream {
    /// Its number in the session; part of its event ids.
    pub number: u64,
    /// What was asked: the same under the same id joins, another is a conflict.
    pub request: Request,
    epoch: Arc<str>,
    state: Mutex<State>,
    changed: Notify,
    stop: Notify,
}

#[derive(Debug, Default)]
struct State {
    events: VecDeque<(u64, Bytes)>,
    /// Number of the last event written; 0 is the priming event.
    last: u64,
    end: Option<End>,
    stop: Option<Stop>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The final answer was written at this boot time.
    Answered(Duration),
    /// It will not be answered: cancelled, or the session is over.
    Closed,
}

/// Why a call is to end early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// The client cancelled it, for everybody who waits.
    Cancel,
    /// The session is over; others may wait on.
    Leave,
}

impl Stream {
    pub fn new(epoch: Arc<str>, number: u64, request: Request) -> Arc<Stream> {
        let (changed, stop) = (Notify::new(), Notify::new());
        Arc::new(Stream { number, request, epoch, state: Mutex::default(), changed, stop })
    }

    fn id(&self, event: u64) -> String {
        format!("{}-{}/{event}", self.epoch, self.number)
    }

    /// Writes a progress event. Only the newest [`limits::STREAM_PROGRESS_MAX`] wait for a reader.
    pub fn progress(&self, data: &[u8]) {
        let mut state = self.state.lock();
        if state.end.is_some() {
            return;
        }
        self.push(&mut state, data);
        if state.events.len() > limits::STREAM_PROGRESS_MAX {
            state.events.pop_front();
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// Writes the final answer, which stands from now on. Answers what it costs to keep; `None` if nobody may have it any more.
    pub fn answer(&self, data: &[u8], now: Duration) -> Option<usize> {
        let mut state = self.state.lock();
        if state.end.is_some() {
            return None;
        }
        self.push(&mut state, data);
        state.end = Some(End::Answered(now));
        let cost = limits::SSE_STREAM_COST + state.events.iter().map(|(_, event)| event.len()).sum::<usize>();
        drop(state);
        self.changed.notify_waiters();
        Some(cost)
    }

    fn push(&self, state: &mut State, data: &[u8]) {
        state.last += 1;
        let bytes = event(Some(&self.id(state.last)), data);
        state.events.push_back((state.last, bytes));
    }

    /// Ends the stream without an answer and tells the call's task why.
    pub fn close(&self, why: Stop) {
        let mut state = self.state.lock();
        if state.end.is_some() {
            return;
        }
        state.end = Some(End::Closed);
        state.stop = Some(why);
        drop(state);
        self.changed.notify_waiters();
        self.stop.notify_one();
    }

    /// Resolves when the call is to end early.
    pub async fn stopped(&self) -> Stop {
        loop {
            if let Some(why) = self.state.lock().stop {
                return why;
            }
            self.stop.notified().await;
        }
    }

    /// When the final answer was written (boot time).
    pub fn answered_at(&self) -> Option<Duration> {
        match self.state.lock().end {
            Some(End::Answered(at)) => Some(at),
            _ => None,
        }
    }

    /// Whether an event of this number was ever written, so that a client may have seen it.
    pub fn wrote(&self, event: u64) -> bool {
        event <= self.state.lock().last
    }

    /// The response to a client that has seen everything up to `seen`; `None`: the client is new and gets the priming event
    /// first, which tells it where to resume.
    pub fn body(self: &Arc<Self>, seen: Option<u64>, primed: bool) -> Body {
        let priming = (seen.is_none() && primed).then(|| {
            let retry = limits::SSE_RETRY.as_millis();
            Bytes::from(format!("id: {}\nretry: {retry}\ndata: \n\n", self.id(0)))
        });
        let reader = Reader { stream: Arc::clone(self), seen: seen.unwrap_or(0), priming };
        Body::from_stream(futures_util::stream::unfold(reader, |mut reader| async {
            reader.next().await.map(|bytes| (Ok::<_, Infallible>(bytes), reader))
        }))
    }
}

struct Reader {
    stream: Arc<Stream>,
    seen: u64,
    priming: Option<Bytes>,
}

impl Reader {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(priming) = self.priming.take() {
            return Some(priming);
        }
        loop {
            // Made before the look, so that no change falls between look and wait.
            let changed = self.stream.changed.notified();
            {
                let state = self.stream.state.lock();
                if let Some((number, bytes)) = state.events.iter().find(|(number, _)| *number > self.seen) {
                    self.seen = *number;
                    return Some(bytes.clone());
                }
                if state.end.is_some() {
                    return None;
                }
            }
            if tokio::time::timeout(limits::SSE_COMMENT, changed).await.is_err() {
                return Some(COMMENT);
            }
        }
    }
}

/// Where a client wants to go on: `<epoch>-<stream>/<event>`.
pub(super) fn parse_event_id(text: &str) -> Option<(&str, u64, u64)> {
    let (stream, event) = text.rsplit_once('/')?;
    let (epoch, stream) = stream.rsplit_once('-')?;
    Some((epoch, stream.parse().ok()?, event.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt as _;

    const T: Duration = Duration::from_secs(1);

    fn stream(number: u64) -> Arc<Stream> {
        Stream::new("e".into(), number, Request { tool: "t".into(), digest: [0; 32] })
    }

    async fn all(body: Body) -> String {
        String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap()
    }

    #[tokio::test]
    async fn a_new_reader_gets_the_priming_event_and_a_returning_one_only_what_it_has_not_seen() {
        let stream = stream(7);
        stream.progress(b"1");
        assert!(stream.answer(b"2", T).is_some());
        let whole = "id: e-7/0\nretry: 1000\ndata: \n\nid: e-7/1\ndata: 1\n\nid: e-7/2\ndata: 2\n\n";
        assert_eq!(all(stream.body(None, true)).await, whole);
        assert_eq!(all(stream.body(Some(1), true)).await, "id: e-7/2\ndata: 2\n\n");
        assert_eq!(all(stream.body(Some(2), true)).await, "");
        assert_eq!(all(stream.body(None, false)).await, "id: e-7/1\ndata: 1\n\nid: e-7/2\ndata: 2\n\n");
        assert_eq!(stream.answered_at(), Some(T));
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_stream_says_so_every_fifteen_seconds() {
        let stream = stream(1);
        let mut body = stream.body(Some(0), true);
        let start = tokio::time::Instant::now();
        for n in 1..=2 {
            let frame = body.frame().await.unwrap().unwrap().into_data().unwrap();
            assert_eq!(frame, ":\n\n");
            assert_eq!(start.elapsed(), limits::SSE_COMMENT * n);
        }
    }

    #[tokio::test]
    async fn a_closed_stream_ends_its_readers_and_keeps_no_late_answer() {
        let stream = stream(1);
        stream.close(Stop::Cancel);
        assert_eq!(stream.stopped().await, Stop::Cancel);
        assert_eq!(stream.answer(b"late", T), None);
        assert_eq!(all(stream.body(Some(0), true)).await, "");
    }

    #[test]
    fn a_reader_that_is_away_finds_the_newest_progress_and_the_answer() {
        let stream = stream(1);
        for n in 0..limits::STREAM_PROGRESS_MAX + 10 {
            stream.progress(n.to_string().as_bytes());
        }
        stream.answer(b"end", T);
        let state = stream.state.lock();
        assert_eq!(state.events.len(), limits::STREAM_PROGRESS_MAX + 1);
        assert_eq!(state.events.front().unwrap().0, 11);
    }

    #[test]
    fn event_ids_are_epoch_stream_and_event() {
        assert_eq!(parse_event_id("a-b-12/3"), Some(("a-b", 12, 3)));
        for bad in ["", "12/3", "e-/3", "e-1/", "e-1", "e-1/x", "e-x/1", "e-1/-1"] {
            assert_eq!(parse_event_id(bad), None, "{bad}");
        }
    }
}
