//! What is worth interrupting a person for.
//!
//! The machine compares the latest snapshot with what it has told. Everything but lost calls waits until it is quiet no
//! more, and is told then if it still stands; the same goes for what comes above the bound of an hour.

mod seat;
#[cfg(test)]
mod tests;
mod texts;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use seat::SeatWatch;

use crate::limits;
use crate::status::{LinkState, StatusSnapshot, UnixMs, WarningCode};
use crate::time::{Due, Now, TimerTable};

const HOUR: Duration = Duration::from_secs(3600);

/// What a notice is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NoticeKind {
    /// The relay has been away for [`limits::NOTICE_OUTAGE`], or will not have this device.
    Outage,
    /// It is back, after an outage that was told.
    Recovered,
    /// Calls ended without a known outcome.
    CallsLost,
    /// A client asks to be let in.
    Consent,
    /// A call asks before it runs.
    Question,
    /// The seat was taken, taken over, or given up; or its holder does not answer.
    Seat,
    /// The engines, or the relay on this machine, could not start.
    StartFailed,
    /// The window was closed and Holdfast goes on.
    StillRunning,
}

/// One notice, once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// What it is about.
    pub kind: NoticeKind,
    /// A few words.
    pub title: String,
    /// A sentence or two.
    pub body: String,
}

/// Which notices a person wants. What is switched off is not told later either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoticeSwitches {
    /// Outages and recoveries.
    pub outages: bool,
    /// Lost calls.
    pub calls_lost: bool,
    /// Clients that ask to be let in.
    pub consents: bool,
    /// Calls that ask before they run.
    pub questions: bool,
    /// The seat.
    pub seat: bool,
    /// What could not start.
    pub start_failed: bool,
    /// That Holdfast keeps running when the window closes.
    pub still_running: bool,
}

impl Default for NoticeSwitches {
    fn default() -> Self {
        NoticeSwitches {
            outages: true,
            calls_lost: true,
            consents: true,
            questions: true,
            seat: true,
            start_failed: true,
            still_running: true,
        }
    }
}

impl NoticeSwitches {
    /// Whether notices of a kind are wanted.
    pub const fn wants(&self, kind: NoticeKind) -> bool {
        match kind {
            NoticeKind::Outage | NoticeKind::Recovered => self.outages,
            NoticeKind::CallsLost => self.calls_lost,
            NoticeKind::Consent => self.consents,
            NoticeKind::Question => self.questions,
            NoticeKind::Seat => self.seat,
            NoticeKind::StartFailed => self.start_failed,
            NoticeKind::StillRunning => self.still_running,
        }
    }
}

/// What happened.
#[derive(Debug, Clone, Copy)]
pub enum NoticeInput<'a> {
    /// The state, as it is now.
    Snapshot(&'a Arc<StatusSnapshot>),
    /// The status window was closed.
    WindowClosed,
    /// A person changed what is told.
    Switches(NoticeSwitches),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// The quiet after a start or a wake is over.
    Quiet,
    /// The link has been away for long enough to be told. Awake time: a closed lid is no outage.
    Outage,
    /// A kind that had its number may be told again.
    Hour,
}

/// The link is not ready.
#[derive(Debug)]
struct Away {
    /// Boot time since when.
    since: Duration,
    /// For long enough to be told.
    long: bool,
    /// It was told, in the words of this state.
    told: Option<LinkState>,
    /// It was told and is over since; how long it lasted.
    back: Option<Duration>,
}

/// Losses that are not told yet.
#[derive(Debug, Default)]
struct Losses {
    /// The warning that was seen last, by its time.
    seen: Option<UnixMs>,
    untold: usize,
    text: String,
}

/// See the module. `handle`, drain `poll_output`, wait for `poll_timeout`.
#[derive(Debug)]
pub struct Notices {
    switches: NoticeSwitches,
    timers: TimerTable<Timer>,
    out: VecDeque<Notice>,
    last: Now,
    latest: Option<Arc<StatusSnapshot>>,
    /// Boot times of the last hour's notices, by kind.
    hour: BTreeMap<NoticeKind, VecDeque<Duration>>,
    away: Option<Away>,
    losses: Losses,
    seat: SeatWatch,
    /// Of those that wait now: the ones that were told.
    consents: Vec<String>,
    questions: Vec<String>,
    failures: Vec<(WarningCode, UnixMs)>,
    hinted: bool,
}

impl Notices {
    /// The machine of a process that starts now.
    pub fn new(now: Now, switches: NoticeSwitches) -> Self {
        let mut timers = TimerTable::default();
        timers.set(Timer::Quiet, Due::boot(now, limits::NOTICE_QUIET));
        Notices {
            switches,
            timers,
            out: VecDeque::new(),
            last: now,
            latest: None,
            hour: BTreeMap::new(),
            away: None,
            losses: Losses::default(),
            seat: SeatWatch::default(),
            consents: Vec::new(),
            questions: Vec::new(),
            failures: Vec::new(),
            hinted: false,
        }
    }

    /// Takes in what happened.
    pub fn handle(&mut self, now: Now, input: NoticeInput<'_>) {
        self.pass(now);
        match input {
            NoticeInput::Snapshot(snapshot) => self.observe(now, snapshot),
            NoticeInput::Switches(switches) => self.switches = switches,
            // An answer to what a person just did: never too early.
            NoticeInput::WindowClosed if !self.hinted => {
                self.hinted = self.tell(now, NoticeKind::StillRunning, texts::still_running());
            }
            NoticeInput::WindowClosed => {}
        }
        self.settle(now);
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Now) {
        self.pass(now);
        self.settle(now);
    }

    /// The next notice.
    pub fn poll_output(&mut self) -> Option<Notice> {
        self.out.pop_front()
    }

    /// Time until [`Notices::handle_timeout`] has something to do.
    pub fn poll_timeout(&self, now: Now) -> Option<Duration> {
        self.timers.earliest(now)
    }

    /// Time passed: perhaps asleep.
    fn pass(&mut self, now: Now) {
        let boot = now.boot.saturating_sub(self.last.boot);
        let awake = now.awake.saturating_sub(self.last.awake);
        self.last = now;
        if boot.saturating_sub(awake) >= limits::SHELL_TURN_MAX {
            self.timers.set(Timer::Quiet, Due::boot(now, limits::NOTICE_QUIET));
        }
        while let Some(timer) = self.timers.expired(now) {
            if let (Timer::Outage, Some(away)) = (timer, &mut self.away) {
                away.long = true;
            }
        }
    }

    /// Keeps what the next snapshot may not show any more.
    fn observe(&mut self, now: Now, snapshot: &Arc<StatusSnapshot>) {
        self.observe_link(now, snapshot.relay.state);
        let lost = snapshot.health.iter().find(|w| w.code == WarningCode::CallsLost);
        if let Some(lost) = lost.filter(|lost| self.losses.seen != Some(lost.since)) {
            self.losses = Losses { seen: Some(lost.since), untold: self.losses.untold + 1, text: lost.text.clone() };
        }
        self.seat.observe(snapshot.seat.as_ref());
        self.consents.retain(|told| snapshot.consents.iter().any(|c| c.id == *told));
        self.questions.retain(|told| snapshot.questions.iter().any(|q| q.id == *told));
        self.failures.retain(|(code, since)| snapshot.health.iter().any(|w| (w.code, w.since) == (*code, *since)));
        self.latest = Some(snapshot.clone());
    }

    fn observe_link(&mut self, now: Now, state: LinkState) {
        match (state, &mut self.away) {
            (LinkState::Stopped, _) => self.away = None,
            (LinkState::Healthy, Some(away)) if away.told.is_some() => {
                away.back.get_or_insert(now.boot.saturating_sub(away.since));
            }
            (LinkState::Healthy, _) => self.away = None,
            // People think it is away still.
            (_, Some(away)) => away.back = None,
            (_, None) => {
                self.away = Some(Away { since: now.boot, long: false, told: None, back: None });
                self.timers.set(Timer::Outage, Due::awake(now, limits::NOTICE_OUTAGE));
            }
        }
        if self.away.is_none() {
            self.timers.stop(&Timer::Outage);
        }
    }

    /// Tells what stands and was not told.
    fn settle(&mut self, now: Now) {
        let Some(snapshot) = self.latest.clone() else { return };
        if self.losses.untold > 0 && self.tell(now, NoticeKind::CallsLost, self.losses.words()) {
            self.losses.untold = 0;
        }
        if self.timers.get(&Timer::Quiet).is_some() {
            return;
        }
        self.settle_failures(now, &snapshot);
        self.settle_asks(now, &snapshot);
        self.settle_link(now, &snapshot);
        while let Some((said, words)) = self.seat.untold(snapshot.seat.as_ref()) {
            if !self.tell(now, NoticeKind::Seat, words) {
                break;
            }
            self.seat.told(said);
        }
    }

    fn settle_failures(&mut self, now: Now, snapshot: &StatusSnapshot) {
        for warning in &snapshot.health {
            let Some(words) = texts::failure(warning) else { continue };
            let name = (warning.code, warning.since);
            if !self.failures.contains(&name) && self.tell(now, NoticeKind::StartFailed, words) {
                self.failures.push(name);
            }
        }
    }

    fn settle_asks(&mut self, now: Now, snapshot: &StatusSnapshot) {
        let asks = || snapshot.consents.iter().filter(|c| !self.consents.contains(&c.id));
        if let Some(words) = texts::consents(asks())
            && self.tell(now, NoticeKind::Consent, words)
        {
            self.consents = snapshot.consents.iter().map(|c| c.id.clone()).collect();
        }
        let asks = || snapshot.questions.iter().filter(|q| !self.questions.contains(&q.id));
        if let Some(words) = texts::questions(asks())
            && self.tell(now, NoticeKind::Question, words)
        {
            self.questions = snapshot.questions.iter().map(|q| q.id.clone()).collect();
        }
    }

    fn settle_link(&mut self, now: Now, snapshot: &StatusSnapshot) {
        let Some(away) = &self.away else { return };
        if let Some(lasted) = away.back {
            if self.tell(now, NoticeKind::Recovered, texts::recovered(snapshot, lasted)) {
                self.away = None;
            }
            return;
        }
        let state = snapshot.relay.state;
        let due = match state {
            LinkState::SignInNeeded | LinkState::Incompatible => away.told != Some(state),
            LinkState::Connecting | LinkState::Blip | LinkState::Outage => away.long && away.told.is_none(),
            LinkState::Recovering | LinkState::Healthy | LinkState::Stopped => false,
        };
        if due
            && self.tell(now, NoticeKind::Outage, texts::away(snapshot))
            && let Some(away) = &mut self.away
        {
            away.told = Some(state);
        }
    }

    /// Whether it is done with: told, or not wanted. What has to wait for the hour's end is asked for again then.
    fn tell(&mut self, now: Now, kind: NoticeKind, (title, body): texts::Words) -> bool {
        if !self.switches.wants(kind) {
            return true;
        }
        let most = match kind {
            NoticeKind::Question => limits::NOTICE_ASKS_PER_HOUR,
            _ => limits::NOTICES_PER_HOUR,
        };
        let hour = self.hour.entry(kind).or_default();
        while hour.front().is_some_and(|at| *at + HOUR <= now.boot) {
            hour.pop_front();
        }
        if let Some(oldest) = hour.front().filter(|_| hour.len() >= most) {
            let due = Due::Boot(*oldest + HOUR);
            if self.timers.get(&Timer::Hour).is_none_or(|set| due.left(now) < set.left(now)) {
                self.timers.set(Timer::Hour, due);
            }
            return false;
        }
        hour.push_back(now.boot);
        self.out.push_back(Notice { kind, title, body });
        true
    }
}

impl Losses {
    fn words(&self) -> texts::Words {
        texts::losses(Some(&self.text).filter(|_| self.untold == 1))
    }
}
