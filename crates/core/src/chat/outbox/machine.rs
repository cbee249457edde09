//! One holder's outbox.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};

use super::io::{Attempt, Input, Output, Told};
use super::lane::{Doubt, Flow, Held, Lane};
use super::record::{Change, Key, LaneRow, Record, Standing, Stored};
use crate::chat::commits::Commits;
use crate::chat::{ChannelId, CommitError, Ticket};
use crate::limits;
use crate::time::{Due, Now, TimerTable};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// Try the lane's first message again.
    Lane(ChannelId),
    /// What is under way in the lane takes too long.
    Watch(ChannelId),
    /// Make a commit.
    Commit,
    /// No further message is begun for this hand-over.
    Starts,
    /// The hand-over's time is over.
    Drained,
    /// Remove what had its time.
    Prune,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Running,
    /// The seat is let go; whether further messages are begun.
    Draining {
        starts: bool,
    },
    /// Nothing is sent or stored any more.
    Over,
}

/// See the module. `handle`, drain `poll_output`, wait for `poll_timeout`.
#[derive(Debug)]
pub struct Outbox {
    pub(super) generation: u64,
    /// Units of one message.
    pub(super) chunk: usize,
    pub(super) phase: Phase,
    pub(super) lanes: BTreeMap<ChannelId, Lane>,
    pub(super) troubles: VecDeque<(Record, Standing)>,
    pub(super) commits: Commits<Change>,
    pub(super) timers: TimerTable<Timer>,
    pub(super) out: VecDeque<Output>,
    pub(super) seq: u64,
    pub(super) stuck: Option<CommitError>,
    pub(super) last_sent: Option<Duration>,
    /// What waits for a commit is to be stored at once.
    pub(super) hurries: bool,
    attempts: u64,
    used: u64,
    rng: SmallRng,
}

impl Outbox {
    /// The outbox of a holder that begins to serve. `chunk` is what one message of the service holds, in UTF-16 units; the
    /// seed is for jitter only.
    pub fn new(now: Now, generation: u64, chunk: usize, stored: Stored, seed: u64) -> Outbox {
        let mut outbox = Outbox {
            generation,
            chunk,
            phase: Phase::Running,
            lanes: BTreeMap::new(),
            troubles: stored.troubles.into(),
            commits: Commits::default(),
            timers: TimerTable::default(),
            out: VecDeque::new(),
            seq: stored.seq,
            stuck: None,
            last_sent: None,
            hurries: false,
            attempts: 0,
            used: 0,
            rng: SmallRng::seed_from_u64(seed),
        };
        for row in stored.lanes {
            outbox.used += 1;
            outbox.lanes.insert(row.channel.clone(), Lane::new(row, outbox.used));
        }
        for record in stored.prepared {
            let channel = record.channel.clone();
            let empty = || Lane::new(LaneRow { channel: channel.clone(), last: None, parked: None }, 0);
            let lane = outbox.lanes.entry(channel.clone()).or_insert_with(empty);
            // Another life may have sent the first one and died before it could write that down.
            if !stored.settled.contains(&channel) {
                lane.doubt = Doubt::Ask;
                lane.settles = now.boot + limits::OUTBOX_NONCE_WINDOW;
            }
            lane.queue.push_back(Held { record, as_of: now.boot, batch: 0, let_go: None, open: false });
        }
        outbox.timers.set(Timer::Prune, Due::boot(now, limits::OUTBOX_RETRY_MAX));
        outbox.advance_all(now);
        outbox
    }

    /// Something happened.
    pub fn handle(&mut self, now: Now, input: Input) {
        if self.phase == Phase::Over {
            return;
        }
        match input {
            Input::Entries { source, channel, entries, cursor } => self.entries(now, source, channel, entries, cursor),
            Input::Say { key, draft } => self.say(now, key, draft),
            Input::TakeBack(key) => self.take_back(&key),
            Input::Sent(attempt, result) => self.sent(now, attempt, result),
            Input::Compared(attempt, result) => self.compared(now, attempt, result),
            Input::Committed(ticket, result) => self.committed(now, ticket, result),
            Input::Generation(generation) => self.seen(generation),
            Input::Retry { channel, unknown } => self.retry(now, channel.as_ref(), unknown),
            Input::Online => self.online(now),
            Input::Drain => self.drain(now),
        }
        self.settle(now);
    }

    /// Time passed.
    pub fn handle_timeout(&mut self, now: Now) {
        while let Some(timer) = self.timers.expired(now) {
            match timer {
                Timer::Lane(channel) => {
                    if let Some(lane) = self.lanes.get_mut(&channel) {
                        lane.flow = Flow::Idle;
                    }
                    self.advance(now, &channel);
                }
                Timer::Watch(channel) => self.watch(now, &channel),
                Timer::Commit => self.commit(),
                Timer::Starts => self.phase = Phase::Draining { starts: false },
                Timer::Drained => self.drained(),
                Timer::Prune => {
                    self.commits.add(Change::Prune);
                    self.timers.set(Timer::Prune, Due::boot(now, limits::OUTBOX_PRUNE));
                }
            }
        }
        self.settle(now);
    }

    /// What to do next.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    /// Time until [`Outbox::handle_timeout`] has something to do.
    pub fn poll_timeout(&self, now: Now) -> Option<Duration> {
        self.timers.earliest(now)
    }

    /// Whether more of a transcript may be read for this channel now.
    pub fn takes(&self, channel: &ChannelId) -> bool {
        let room = self.lanes.contains_key(channel)
            || self.lanes.len() < limits::OUTBOX_LANES
            || self.lanes.values().any(|lane| self.gives_way(lane));
        self.phase != Phase::Over && self.commits.len() < limits::OUTBOX_BACKLOG && room
    }

    /// Whether something said in this channel would be sent: no prompt is of use where nobody sees it.
    pub fn speaks(&self, channel: &ChannelId) -> bool {
        self.phase == Phase::Running && self.parked(channel).is_none()
    }

    /// Why nothing is sent in this channel until a person lets it.
    pub fn parked(&self, channel: &ChannelId) -> Option<&str> {
        self.lanes.get(channel)?.row.parked.as_deref()
    }

    /// Whether something waits for this channel or is on its way there.
    pub fn is_busy(&self, channel: &ChannelId) -> bool {
        self.lanes.get(channel).is_some_and(|lane| !lane.queue.is_empty())
    }

    /// The lane of a channel, made if there is room.
    pub(super) fn lane(&mut self, channel: &ChannelId) -> Option<&mut Lane> {
        self.used += 1;
        if !self.lanes.contains_key(channel) {
            if self.lanes.len() >= limits::OUTBOX_LANES {
                let spare = self.lanes.iter().filter(|(_, lane)| self.gives_way(lane));
                // One that people may let go on only goes where there is no other.
                let spare = spare.min_by_key(|(_, lane)| (!lane.is_spare(), lane.used));
                let spare = spare.map(|(channel, _)| channel.clone())?;
                self.make_way(&spare);
            }
            let row = LaneRow { channel: channel.clone(), last: None, parked: None };
            self.lanes.insert(channel.clone(), Lane::new(row, self.used));
        }
        let lane = self.lanes.get_mut(channel)?;
        lane.used = self.used;
        Some(lane)
    }

    /// Whether a lane can be forgotten for another channel: with nothing in it, or with what people know to be refused.
    fn gives_way(&self, lane: &Lane) -> bool {
        let stored = || lane.queue.iter().all(|held| self.commits.has(held.batch));
        lane.is_spare() || (lane.row.parked.is_some() && stored())
    }

    pub(super) fn attempt(&mut self) -> Attempt {
        self.attempts += 1;
        Attempt(self.attempts)
    }

    /// How long to wait after so many tries; half of it is chance.
    pub(super) fn back_off(&mut self, tries: u32) -> Duration {
        let full = limits::OUTBOX_RETRY_MIN.saturating_mul(1 << tries.min(16)).min(limits::OUTBOX_RETRY_MAX);
        full / 2 + (full / 2).mul_f64(self.rng.random::<f64>())
    }

    pub(super) fn tell(&mut self, told: Told) {
        self.out.push_back(Output::Told(told));
    }

    /// What follows from whatever happened: a commit, the end of a hand-over.
    fn settle(&mut self, now: Now) {
        if self.phase == Phase::Over {
            return;
        }
        let draining = matches!(self.phase, Phase::Draining { .. });
        if self.commits.can_wait() && !draining && !self.hurries {
            if !self.commits.is_idle() && self.timers.get(&Timer::Commit).is_none() {
                self.timers.set(Timer::Commit, Due::boot(now, limits::OUTBOX_CURSOR_LAG));
            }
        } else if !self.commits.failed() {
            self.commit();
        }
        if draining
            && self.commits.is_idle()
            && !self.lanes.iter().any(|(channel, lane)| self.moves(now, channel, lane))
        {
            self.drained();
        }
    }

    /// Whether a lane still gets on with this hand-over.
    fn moves(&self, now: Now, channel: &ChannelId, lane: &Lane) -> bool {
        match lane.flow {
            Flow::Sending { .. } | Flow::Asking { .. } | Flow::Ending { .. } => true,
            Flow::Idle => false,
            Flow::Waiting { .. } => {
                let left = |timer: &Timer| self.timers.get(timer).map(|due| due.left(now));
                lane.row.parked.is_none()
                    && left(&Timer::Starts)
                        .is_some_and(|end| left(&Timer::Lane(channel.clone())).is_some_and(|l| l < end))
            }
        }
    }

    fn commit(&mut self) {
        if let Some((ticket, changes)) = self.commits.issue() {
            self.timers.stop(&Timer::Commit);
            self.hurries = false;
            self.out.push_back(Output::Commit { ticket, generation: self.generation, changes });
        }
    }

    fn committed(&mut self, now: Now, ticket: Ticket, result: Result<Vec<Key>, CommitError>) {
        if let Err(CommitError::Superseded(generation)) = result {
            return self.seen(generation);
        }
        if !self.commits.ended(ticket, result.is_ok()) {
            return;
        }
        let stuck = result.as_ref().err().copied();
        if self.stuck != stuck {
            self.stuck = stuck;
            self.out.push_back(Output::Changed);
        }
        match result {
            Ok(known) => {
                let batch = self.commits.stored();
                for lane in self.lanes.values_mut().filter(|_| !known.is_empty()) {
                    lane.queue.retain(|held| held.batch != batch || !known.contains(&held.record.key));
                }
                self.ended();
                self.advance_all(now);
            }
            Err(_) => self.timers.set(Timer::Commit, Due::boot(now, limits::OUTBOX_COMMIT_RETRY)),
        }
    }

    fn advance_all(&mut self, now: Now) {
        let channels: Vec<ChannelId> = self.lanes.keys().cloned().collect();
        for channel in channels {
            self.advance(now, &channel);
        }
    }

    fn seen(&mut self, generation: u64) {
        if generation > self.generation {
            self.over();
            self.out.clear();
            self.out.push_back(Output::Superseded(generation));
        }
    }

    pub(super) fn over(&mut self) {
        self.phase = Phase::Over;
        self.timers = TimerTable::default();
        self.out.push_back(Output::Changed);
    }

    fn drain(&mut self, now: Now) {
        if self.phase == Phase::Running {
            self.phase = Phase::Draining { starts: true };
            self.timers.set(Timer::Starts, Due::boot(now, limits::OUTBOX_DRAIN_STARTS));
            self.timers.set(Timer::Drained, Due::boot(now, limits::SEAT_DRAIN));
        }
    }

    fn drained(&mut self) {
        let settled = self.lanes.iter().filter(|(_, lane)| lane.is_settled());
        let settled: Vec<ChannelId> = settled.map(|(channel, _)| channel.clone()).collect();
        for channel in settled {
            self.commits.add(Change::Settled(channel));
        }
        self.commit();
        let left = self.lanes.values().map(|lane| lane.queue.len()).sum();
        self.over();
        self.out.push_back(Output::Drained { left });
    }

    /// The origin of lines that stand for what was left out.
    pub(super) fn skipped_source() -> Arc<str> {
        "skipped".into()
    }
}
