//! What becomes of the first message of a lane.

use std::time::Duration;

use super::io::{Attempt, Output, Posted, Told};
use super::lane::{Doubt, Flow};
use super::machine::{Outbox, Phase, Timer};
use super::record::{Change, Record, Standing};
use crate::chat::{ChannelId, Draft, MessageId, Scope, SendError};
use crate::limits;
use crate::time::{Due, Now};

/// What is under way in a lane.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Doing {
    Send,
    Compare,
}

impl Outbox {
    /// Begins what is next in a lane that is idle.
    pub(super) fn advance(&mut self, now: Now, channel: &ChannelId) {
        if matches!(self.phase, Phase::Over | Phase::Draining { starts: false }) {
            return;
        }
        self.expire(now, channel);
        let Some(lane) = self.lanes.get(channel) else { return };
        let Some(front) = lane.queue.front() else { return };
        if lane.flow != Flow::Idle || lane.row.parked.is_some() || !self.commits.has(front.batch) {
            return;
        }
        let settled = now.boot >= lane.settles;
        let ask = match lane.doubt {
            Doubt::None => false,
            // It would be left out, but not while it may still arrive.
            Doubt::Asked(_) if lane.old(now.boot) > 0 => {
                if !settled {
                    return self.settles(now, channel);
                }
                true
            }
            Doubt::Nonce(until) | Doubt::Asked(until) => now.boot >= until,
            Doubt::Ask => true,
        };
        let record = &front.record;
        let (since, after) = (front.age(now.boot) + limits::OUTBOX_SKEW, lane.row.last.clone());
        let draft = Draft {
            channel: channel.clone(),
            text: record.text.clone(),
            nonce: record.key.nonce(),
            reply_to: record.reply_to.clone(),
            buttons: record.buttons.clone(),
        };
        let (attempt, generation) = (self.attempt(), self.generation);
        let Some(lane) = self.lanes.get_mut(channel) else { return };
        if ask {
            lane.flow = Flow::Asking { attempt, reset: false, settled };
            self.out.push_back(Output::Compare { attempt, channel: channel.clone(), after, since });
        } else {
            lane.flow = Flow::Sending { attempt, since: now.boot, reset: false };
            self.out.push_back(Output::Send { attempt, generation, draft });
        }
        self.timers.set(Timer::Watch(channel.clone()), Due::boot(now, limits::OUTBOX_WATCH));
    }

    /// The first message is let be until nothing of it can arrive any more.
    fn settles(&mut self, now: Now, channel: &ChannelId) {
        let Some(lane) = self.lanes.get_mut(channel) else { return };
        (lane.flow, lane.why) =
            (Flow::Waiting { limited: false }, Some("an earlier attempt may still arrive".to_owned()));
        let left = lane.settles.saturating_sub(now.boot);
        self.timers.set(Timer::Lane(channel.clone()), Due::boot(now, left));
        self.out.push_back(Output::Changed);
    }

    /// The lane in which this attempt is under way, and since when; its watch ends.
    fn take(&mut self, attempt: Attempt, doing: Doing) -> Option<(ChannelId, Duration)> {
        let found = self.lanes.iter().find_map(|(channel, lane)| match lane.flow {
            Flow::Sending { attempt: a, since, .. } if a == attempt && doing == Doing::Send => {
                Some((channel.clone(), since))
            }
            Flow::Asking { attempt: a, .. } if a == attempt && doing == Doing::Compare => {
                Some((channel.clone(), Duration::ZERO))
            }
            _ => None,
        })?;
        self.timers.stop(&Timer::Watch(found.0.clone()));
        Some(found)
    }

    pub(super) fn sent(&mut self, now: Now, attempt: Attempt, result: Result<MessageId, SendError>) {
        let Some((channel, since)) = self.take(attempt, Doing::Send) else { return };
        match result {
            Ok(message) => {
                self.last_sent = Some(now.boot);
                self.end(&channel, Standing::Sent(message.clone()), Some(message));
            }
            Err(SendError::Lost(why)) => self.end(&channel, Standing::Unknown(why), None),
            Err(error) => {
                if let (SendError::Unknown(_), Some(lane)) = (&error, self.lanes.get_mut(&channel)) {
                    lane.doubt = lane.doubt.unknown(since);
                    lane.settles = now.boot + limits::OUTBOX_NONCE_WINDOW;
                }
                self.failed(now, &channel, error, Doing::Send);
            }
        }
    }

    pub(super) fn compared(&mut self, now: Now, attempt: Attempt, result: Result<Option<Vec<Posted>>, SendError>) {
        let Some((channel, _)) = self.take(attempt, Doing::Compare) else { return };
        let posted = match result {
            Ok(Some(posted)) => posted,
            Ok(None) => {
                let why = "it may have been posted, and the channel cannot be asked whether it was";
                return self.end(&channel, Standing::Unknown(why.to_owned()), None);
            }
            Err(error) => return self.failed(now, &channel, error, Doing::Compare),
        };
        let Some(lane) = self.lanes.get_mut(&channel) else { return };
        let settled = matches!(lane.flow, Flow::Asking { settled: true, .. });
        let Some(front) = lane.queue.front() else { return };
        let same = |posted: &&Posted| is_same(&posted.text, &front.record.text);
        let mut matches = posted.iter().filter(same).map(|posted| posted.id.clone());
        let newest = posted.last().map(|posted| posted.id.clone());
        match (matches.next(), matches.next()) {
            (None, _) => {
                let until = now.boot + limits::OUTBOX_NONCE_WINDOW;
                lane.doubt = if settled { Doubt::None } else { Doubt::Asked(until) };
                (lane.flow, lane.tries) = (Flow::Idle, 0);
                lane.row.last = newest.or_else(|| lane.row.last.take());
                self.advance(now, &channel);
            }
            (Some(message), None) => self.end(&channel, Standing::Sent(message), newest),
            (Some(_), Some(_)) => {
                let why = "the channel has several messages like it";
                self.end(&channel, Standing::Unknown(why.to_owned()), newest);
            }
        }
    }

    /// The first message ended; `last` need not be looked at again.
    fn end(&mut self, channel: &ChannelId, standing: Standing, last: Option<MessageId>) {
        let Some(lane) = self.lanes.get_mut(channel) else { return };
        let Some(front) = lane.queue.front() else { return };
        let record = front.record.clone();
        if last.is_some() {
            lane.row.last = last;
            self.commits.add(Change::Lane(lane.row.clone()));
        }
        let key = record.key.clone();
        let ended = Change::Ended { key: key.clone(), standing: standing.clone(), generation: self.generation };
        let batch = self.commits.add(ended);
        let sent = match &standing {
            Standing::Sent(message) => Some(message.clone()),
            _ => None,
        };
        lane.flow = Flow::Ending { batch, sent };
        (lane.doubt, lane.tries, lane.why) = (Doubt::None, 0, None);
        match &standing {
            Standing::Prepared | Standing::Sent(_) => return,
            Standing::Parked(why) => self.tell(Told::Parked(key, why.clone())),
            Standing::Unknown(why) => self.tell(Told::Unknown(key, why.clone())),
        }
        self.trouble(record, standing);
    }

    fn trouble(&mut self, record: Record, standing: Standing) {
        self.troubles.push_back((record, standing));
        if self.troubles.len() > limits::OUTBOX_TROUBLES {
            self.troubles.pop_front();
        }
    }

    /// A channel is forgotten for another one. What waits there was refused with it, which people know.
    pub(super) fn make_way(&mut self, channel: &ChannelId) {
        let Some(lane) = self.lanes.remove(channel) else { return };
        let refused = lane.row.parked.unwrap_or_default();
        for (at, held) in lane.queue.into_iter().enumerate() {
            let key = held.record.key.clone();
            let standing = if at == 0 && lane.doubt != Doubt::None {
                let why = format!("refused, but an earlier attempt may have arrived: {refused}");
                self.tell(Told::Unknown(key.clone(), why.clone()));
                Standing::Unknown(why)
            } else {
                Standing::Parked(refused.clone())
            };
            self.commits.add(Change::Ended { key, standing: standing.clone(), generation: self.generation });
            self.trouble(held.record, standing);
        }
        self.timers.stop(&Timer::Lane(channel.clone()));
        self.commits.add(Change::Forget(channel.clone()));
    }

    /// A batch is stored: messages whose end was in it leave their lanes.
    pub(super) fn ended(&mut self) {
        for lane in self.lanes.values_mut() {
            let Flow::Ending { batch, sent } = &lane.flow else { continue };
            if !self.commits.has(*batch) {
                continue;
            }
            if let (Some(held), Some(message)) = (lane.queue.pop_front(), sent.clone()) {
                self.out.push_back(Output::Posted { key: held.record.key, message });
            }
            lane.flow = Flow::Idle;
            self.out.push_back(Output::Changed);
        }
    }

    fn failed(&mut self, now: Now, channel: &ChannelId, error: SendError, doing: Doing) {
        let Some(lane) = self.lanes.get_mut(channel) else { return };
        let (why, after, limited) = match error {
            SendError::Permanent { scope: Scope::Message, code, text } if doing == Doing::Send => {
                let why = reason(&code, &text);
                match lane.doubt {
                    // An earlier attempt may still arrive: the channel is asked when that is over.
                    Doubt::Nonce(until) | Doubt::Asked(until) => (why, Some(until.saturating_sub(now.boot)), true),
                    Doubt::None | Doubt::Ask => return self.end(channel, Standing::Parked(why), None),
                }
            }
            // Whoever may not look may not speak there either.
            SendError::Permanent { scope: Scope::Channel | Scope::Message, code, text } => {
                let why = reason(&code, &text);
                (lane.flow, lane.why) = (Flow::Idle, None);
                lane.row.parked = Some(why.clone());
                self.commits.add(Change::Lane(lane.row.clone()));
                self.tell(Told::ChannelParked(channel.clone(), why));
                return self.out.push_back(Output::Changed);
            }
            SendError::Permanent { scope: Scope::Seat, code, text } => {
                let why = reason(&code, &text);
                self.over();
                return self.out.push_back(Output::Failed(why));
            }
            SendError::Limited { after } => {
                ("the service asks for a pause".to_owned(), Some(after.min(limits::CHANNEL_AFTER_MAX)), true)
            }
            SendError::Unknown(why) | SendError::Lost(why) | SendError::Later(why) => (why, None, false),
        };
        lane.tries += u32::from(!limited);
        let tries = lane.tries;
        (lane.flow, lane.why) = (Flow::Waiting { limited }, Some(why));
        let wait = after.unwrap_or_else(|| self.back_off(tries - 1));
        self.timers.set(Timer::Lane(channel.clone()), Due::boot(now, wait));
        self.out.push_back(Output::Changed);
    }

    /// What is under way takes too long: the client is made anew, which should end it; if not, it counts as ended.
    pub(super) fn watch(&mut self, now: Now, channel: &ChannelId) {
        let Some(lane) = self.lanes.get_mut(channel) else { return };
        match &mut lane.flow {
            Flow::Sending { reset, .. } | Flow::Asking { reset, .. } if !*reset => {
                *reset = true;
                self.timers.set(Timer::Watch(channel.clone()), Due::boot(now, limits::OUTBOX_WATCH_END));
                self.out.push_back(Output::Reset);
            }
            Flow::Sending { attempt, .. } => {
                let attempt = *attempt;
                self.sent(now, attempt, Err(SendError::Unknown("no answer".to_owned())));
            }
            Flow::Asking { attempt, .. } => {
                let attempt = *attempt;
                self.compared(now, attempt, Err(SendError::Later("no answer".to_owned())));
            }
            Flow::Idle | Flow::Waiting { .. } | Flow::Ending { .. } => {}
        }
    }
}

fn reason(code: &str, text: &str) -> String {
    if code.is_empty() { text.to_owned() } else { format!("{text} ({code})") }
}

/// Whether a service that trims what it posts made this of that.
fn is_same(posted: &str, text: &str) -> bool {
    posted.trim().lines().eq(text.trim().lines())
}
