//! One channel: what waits for it, and what is known about the first of that.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::io::Attempt;
use super::record::{Key, LaneRow, Record};
use crate::chat::MessageId;
use crate::limits;

/// A prepared message.
#[derive(Debug)]
pub(super) struct Held {
    pub record: Record,
    /// Boot time at which the record's age was right.
    pub as_of: Duration,
    /// The batch that stores it.
    pub batch: u64,
    /// Boot time at which a person let it be sent however old it is.
    pub let_go: Option<Duration>,
    /// It is what a transcript says and was never sent, in no life: as long as it waits behind another one, more may be
    /// joined to it.
    pub open: bool,
}

impl Held {
    /// How old what it says is now.
    pub fn age(&self, boot: Duration) -> Duration {
        self.record.age.saturating_add(boot.saturating_sub(self.as_of))
    }

    /// Whether it is not worth sending any more.
    pub fn is_old(&self, boot: Duration) -> bool {
        self.let_go.map_or_else(|| self.age(boot), |at| boot.saturating_sub(at)) > limits::OUTBOX_AGE
    }
}

/// Whether the service may have the first message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doubt {
    /// It has not.
    None,
    /// It may, and remembers the nonce until this boot time.
    Nonce(Duration),
    /// It may; the channel has to be asked.
    Ask,
    /// The channel was asked and has it not. An attempt of before may still arrive: the nonce holds until this boot time.
    Asked(Duration),
}

/// What happens with the first message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Flow {
    /// Nothing.
    Idle,
    /// The lane's timer runs.
    Waiting {
        /// The service asked for it; otherwise it is not reachable.
        limited: bool,
    },
    /// It is under way since then.
    Sending { attempt: Attempt, since: Duration, reset: bool },
    /// The channel is asked whether it has it; `settled`: nothing of it can arrive after the answer.
    Asking { attempt: Attempt, reset: bool, settled: bool },
    /// Its end goes to the store.
    Ending { batch: u64, sent: Option<MessageId> },
}

#[derive(Debug)]
pub(super) struct Lane {
    pub row: LaneRow,
    pub queue: VecDeque<Held>,
    pub doubt: Doubt,
    /// With a doubt: boot time from which no attempt that was made so far can still arrive.
    pub settles: Duration,
    pub flow: Flow,
    /// Tries of the first message that came to nothing.
    pub tries: u32,
    /// Why it is not sent yet.
    pub why: Option<String>,
    /// Grows with use.
    pub used: u64,
    /// The transcript that was read for it last.
    pub source: Option<Arc<str>>,
}

impl Doubt {
    /// After an attempt that began then and whose end is unknown.
    pub fn unknown(self, since: Duration) -> Doubt {
        match self {
            Doubt::None | Doubt::Ask => Doubt::Nonce(since + limits::OUTBOX_NONCE_WINDOW),
            Doubt::Nonce(until) | Doubt::Asked(until) => Doubt::Nonce(until),
        }
    }
}

impl Lane {
    pub fn new(row: LaneRow, used: u64) -> Lane {
        Lane {
            row,
            queue: VecDeque::new(),
            doubt: Doubt::None,
            settles: Duration::ZERO,
            flow: Flow::Idle,
            tries: 0,
            why: None,
            used,
            source: None,
        }
    }

    /// Whether nothing is lost when it is forgotten but the last message's name.
    pub fn is_spare(&self) -> bool {
        self.queue.is_empty() && self.row.parked.is_none()
    }

    /// Whether something waits of which the service certainly has nothing.
    pub fn is_settled(&self) -> bool {
        let idle = matches!(self.flow, Flow::Idle | Flow::Waiting { .. });
        !self.queue.is_empty() && self.doubt == Doubt::None && idle
    }

    /// Whether this waits here, by itself or within another message.
    pub fn holds(&self, key: &Key) -> bool {
        self.queue.iter().any(|held| held.record.key.covers(key))
    }

    /// How many of the first messages are to become one line, because they are too old; lines alone stay as they are.
    pub fn old(&self, boot: Duration) -> usize {
        let old = || self.queue.iter().take_while(|held| held.is_old(boot) || held.record.skips > 0);
        if old().all(|held| held.record.skips > 0) { 0 } else { old().count() }
    }

    /// The last that was put here goes before all that is not begun, and after what went so before: somebody waits for an
    /// answer to it, and with nothing of a transcript it has an order to keep.
    pub fn hurry(&mut self, key: &Key) {
        let at = self.begun() + self.hurried();
        let last = self.queue.iter().rev().take_while(|held| held.record.key.same_entry(key)).count();
        if at + last <= self.queue.len() {
            self.queue.make_contiguous()[at..].rotate_right(last);
        }
    }

    /// How many messages behind what is begun wait for an answer of somebody, before all others.
    pub fn hurried(&self) -> usize {
        let waits = |held: &&Held| {
            let same = |other: &&Held| other.record.key.same_entry(&held.record.key);
            self.queue.iter().filter(same).any(|other| !other.record.buttons.is_empty())
        };
        self.queue.iter().skip(self.begun()).take_while(waits).count()
    }

    /// How many of the first messages must not be left out: the first if it is under way or may be there, and the rest of
    /// an entry that people have begun to read.
    pub fn begun(&self) -> usize {
        let Some(front) = self.queue.front() else { return 0 };
        let busy = !matches!(self.flow, Flow::Idle | Flow::Waiting { .. }) || self.doubt != Doubt::None;
        if !busy && front.record.key.chunk == 0 {
            return 0;
        }
        let same = |held: &&Held| held.record.key.same_entry(&front.record.key);
        self.queue.iter().take_while(same).count()
    }
}
