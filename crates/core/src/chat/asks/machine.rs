//! One holder's prompts.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::{Ask, Change, End, Input, Output, PREFIX, Row, Verdict, capital, draft, key, said, shown};
use crate::chat::commits::Commits;
use crate::chat::outbox::Key;
use crate::chat::{Click, MessageId};
use crate::limits;
use crate::line::one_line;
use crate::time::{Due, Now, TimerTable};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// A prompt had its time.
    Life(String),
    /// A prompt waited for a seat, for its message to be there, or for its hook.
    Place(String),
    /// Make the failed commit again.
    Commit,
}

#[derive(Debug)]
struct Held {
    row: Row,
    as_of: Duration,
    /// The batch that stores how it stands.
    batch: u64,
    /// What follows from that was done.
    done: bool,
    /// The click that ended it, to be answered once it is stored.
    click: Option<String>,
    /// Its hook waits here. That of the last holder's prompt has to come first: a verdict that nobody hears is none.
    heard: bool,
    /// What was clicked before its hook came: by whom, and the click.
    early: Option<(Verdict, String, String)>,
}

/// See the module. `handle`, drain `poll_output`, wait for `poll_timeout`.
#[derive(Debug, Default)]
pub struct Asks {
    serving: bool,
    /// Prompts that nobody could show yet.
    waiting: BTreeMap<String, Ask>,
    held: BTreeMap<String, Held>,
    /// Those that are over, the newest at the end.
    over: VecDeque<String>,
    commits: Commits<Change>,
    timers: TimerTable<Timer>,
    out: VecDeque<Output>,
}

impl Held {
    fn new(now: Now, row: Row, batch: u64, done: bool, heard: bool) -> Held {
        Held { row, as_of: now.boot, batch, done, click: None, heard, early: None }
    }
}

impl Asks {
    /// With what the store has: prompts that wait, and the last [`limits::ASKS_KEPT`] that are over.
    pub fn new(now: Now, rows: Vec<Row>) -> Asks {
        let mut asks = Asks::default();
        for row in rows {
            let request = row.ask.request.clone();
            if row.end.is_some() {
                asks.over.push_back(request.clone());
            } else {
                let left = limits::ASK_LIFE.saturating_sub(row.age);
                asks.timers.set(Timer::Life(request.clone()), Due::boot(now, left));
                asks.timers.set(Timer::Place(request.clone()), Due::boot(now, limits::ASK_PLACE));
            }
            // What follows from how it stands may not have been done by the last holder.
            let done = row.shown;
            asks.held.insert(request, Held::new(now, row, 0, done, false));
        }
        asks.follow();
        asks
    }

    /// Something happened.
    pub fn handle(&mut self, now: Now, input: Input) {
        match input {
            Input::Ask { request, ask } => self.ask(now, request, ask),
            Input::Withdraw(request) => {
                self.waiting.remove(&request);
                self.timers.stop(&Timer::Place(request.clone()));
                self.end(&request, End::Withdrawn, None);
            }
            Input::Serving(serving) => {
                self.serving = serving;
                for ask in if serving { std::mem::take(&mut self.waiting) } else { BTreeMap::new() }.into_values() {
                    self.put(now, ask);
                }
            }
            Input::Posted(key, message) => self.posted(&key, message),
            Input::Refused(key) => {
                if let Some(request) = key.source.strip_prefix(PREFIX) {
                    self.unseen(request);
                }
            }
            Input::Parked(channel) => {
                let there = |held: &&Held| held.row.ask.channel == channel;
                let all = self.held.values().filter(there).map(|held| held.row.ask.request.clone());
                all.collect::<Vec<_>>().iter().for_each(|request| self.unseen(request));
            }
            Input::Click(click) => self.click(now, click),
            Input::Committed(ticket, result) => {
                if self.commits.ended(ticket, result.is_ok()) {
                    match result {
                        Ok(()) => self.follow(),
                        Err(_) => self.timers.set(Timer::Commit, Due::boot(now, limits::OUTBOX_COMMIT_RETRY)),
                    }
                }
            }
        }
        self.commit();
    }

    /// Time passed.
    pub fn handle_timeout(&mut self, now: Now) {
        while let Some(timer) = self.timers.expired(now) {
            match timer {
                Timer::Life(request) => self.end(&request, End::Expired, None),
                Timer::Place(request) => {
                    if self.waiting.remove(&request).is_some() {
                        self.out.push_back(Output::CannotAsk(request));
                    } else if self.held.get(&request).is_some_and(|held| held.heard) {
                        self.unseen(&request);
                    } else {
                        let early = self.held.get_mut(&request).and_then(|held| held.early.take());
                        self.end(&request, End::Gone, early.map(|(_, _, click)| click));
                    }
                }
                Timer::Commit => self.issue(),
            }
        }
        self.commit();
    }

    /// What to do next.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    /// Time until [`Asks::handle_timeout`] has something to do.
    pub fn poll_timeout(&self, now: Now) -> Option<Duration> {
        self.timers.earliest(now)
    }

    /// Prompts that wait for a click, with their age.
    pub fn open(&self, now: Now) -> Vec<(&Ask, Duration)> {
        let open = self.held.values().filter(|held| held.row.end.is_none());
        open.map(|held| (&held.row.ask, held.row.age + now.boot.saturating_sub(held.as_of))).collect()
    }

    fn ask(&mut self, now: Now, request: String, ask: Option<Ask>) {
        if let Some(held) = self.held.get_mut(&request) {
            // The hook is here again; what it waits for may have come meanwhile.
            let first = !std::mem::replace(&mut held.heard, true);
            if held.row.message.is_some() {
                self.timers.stop(&Timer::Place(request.clone()));
            } else if first && held.row.end.is_none() {
                self.timers.set(Timer::Place(request.clone()), Due::boot(now, limits::ASK_PLACE));
            }
            if let (Some(end), true) = (held.row.end.clone(), held.done) {
                self.out.push_back(Output::Ended(request, end));
            } else if let Some((verdict, name, click)) = held.early.take() {
                self.end(&request, End::Answered(verdict, name), Some(click));
            }
            return;
        }
        let open = self.held.len() - self.over.len() + self.waiting.len();
        let fits = request.len() <= limits::ASK_REQUEST_MAX && open < limits::ASKS;
        let Some(ask) = ask.filter(|ask| fits && ask.request == request) else {
            return self.out.push_back(Output::CannotAsk(request));
        };
        // Until it is seen, whatever that waits for.
        self.timers.set(Timer::Place(request.clone()), Due::boot(now, limits::ASK_PLACE));
        if self.serving {
            self.put(now, ask);
        } else {
            self.waiting.insert(request, ask);
        }
    }

    fn put(&mut self, now: Now, ask: Ask) {
        let request = ask.request.clone();
        self.timers.set(Timer::Life(request.clone()), Due::boot(now, limits::ASK_LIFE));
        let row = Row { ask, age: Duration::ZERO, message: None, end: None, shown: false };
        let batch = self.commits.add(Change::Put(Box::new(row.clone())));
        self.held.insert(request, Held::new(now, row, batch, false, true));
    }

    fn posted(&mut self, posted: &Key, message: MessageId) {
        let Some(request) = posted.source.strip_prefix(PREFIX) else { return };
        let Some(held) = self.held.get_mut(request) else { return };
        held.row.message = Some(message);
        if held.heard {
            self.timers.stop(&Timer::Place(request.to_owned()));
        }
        held.batch = self.commits.add(Change::Put(Box::new(held.row.clone())));
        // One that ended before it was there is edited now.
        held.done = held.row.end.is_none() || held.row.shown;
    }

    fn click(&mut self, now: Now, click: Click) {
        let rest = click.button.strip_prefix(PREFIX).unwrap_or_default();
        let (request, verdict) = match rest.rsplit_once(':') {
            Some((request, "allow")) => (request, Verdict::Allow),
            Some((request, "session")) => (request, Verdict::Session),
            Some((request, "deny")) => (request, Verdict::Deny),
            _ => return self.expired(&click, None),
        };
        let held = self.held.get_mut(request);
        let old = held.as_ref().is_some_and(|h| h.row.age + now.boot.saturating_sub(h.as_of) >= limits::ASK_LIFE);
        match held.filter(|held| held.row.ask.channel == click.channel && !old) {
            Some(held) if held.row.end.is_none() => {
                let name = one_line(&click.name, limits::INBOX_NAME_MAX);
                if held.heard {
                    self.end(request, End::Answered(verdict, name), Some(click.id));
                } else if held.early.is_none() {
                    held.early = Some((verdict, name, click.id));
                } else {
                    let text = "Already answered.".to_owned();
                    self.out.push_back(Output::Answer { click: click.id, text });
                }
            }
            found => {
                let end = found.and_then(|held| held.row.end.clone());
                self.expired(&click, end);
            }
        }
    }

    fn expired(&mut self, click: &Click, end: Option<End>) {
        let text = end.map_or_else(|| "This has expired.".to_owned(), |end| format!("This is over: {}.", said(&end)));
        self.out.push_back(Output::Answer { click: click.id.clone(), text });
    }

    /// Nobody sees it, so nobody answers; it is decided elsewhere at once.
    fn unseen(&mut self, request: &str) {
        if self.held.get(request).is_some_and(|held| held.row.message.is_none()) {
            self.end(request, End::Unseen, None);
        }
    }

    fn end(&mut self, request: &str, end: End, click: Option<String>) {
        let Some(held) = self.held.get_mut(request).filter(|held| held.row.end.is_none()) else { return };
        self.timers.stop(&Timer::Life(request.to_owned()));
        self.timers.stop(&Timer::Place(request.to_owned()));
        held.row.end = Some(end);
        (held.batch, held.done, held.click) = (self.commits.add(Change::Put(Box::new(held.row.clone()))), false, click);
        self.over.push_back(request.to_owned());
        if self.over.len() > limits::ASKS_KEPT
            && let Some(oldest) = self.over.pop_front()
        {
            self.held.remove(&oldest);
            self.commits.add(Change::Remove(oldest));
        }
    }

    /// What follows from what is stored now.
    fn follow(&mut self) {
        for (request, held) in &mut self.held {
            if held.done || !self.commits.has(held.batch) {
                continue;
            }
            held.done = true;
            let Some(end) = held.row.end.clone() else {
                let draft = draft(&held.row.ask);
                self.out.push_back(Output::Say(key(request), draft));
                continue;
            };
            if let Some(click) = held.click.take() {
                self.out.push_back(Output::Answer { click, text: capital(&said(&end)) });
            }
            if let Some(message) = held.row.message.clone() {
                let text = format!("{}\n{}", shown(&held.row.ask), capital(&said(&end)));
                self.out.push_back(Output::Edit(held.row.ask.channel.clone(), message, text));
                held.row.shown = true;
                self.commits.add(Change::Put(Box::new(held.row.clone())));
            }
            self.out.push_back(Output::Ended(request.clone(), end));
        }
    }

    fn commit(&mut self) {
        if !self.commits.failed() {
            self.issue();
        }
    }

    fn issue(&mut self) {
        if let Some((ticket, changes)) = self.commits.issue() {
            self.out.push_back(Output::Commit(ticket, changes));
        }
    }
}
