//! What people see of an outbox, and what they and the network set going again.

use std::time::Duration;

use super::io::{LaneView, OutboxView, Output, Told, Trouble};
use super::lane::{Flow, Held, Lane};
use super::machine::{Outbox, Timer};
use super::record::{Change, Record, Standing};
use crate::chat::ChannelId;
use crate::limits;
use crate::line::one_line;
use crate::time::{Due, Now};

impl Outbox {
    /// Everything about it.
    pub fn snapshot(&self, now: Now) -> OutboxView {
        let view = |(channel, lane): (&ChannelId, &Lane)| LaneView {
            channel: channel.clone(),
            waiting: lane.queue.len(),
            parked: lane.row.parked.clone(),
            why: lane.why.clone(),
            next_try: self.timers.get(&Timer::Lane(channel.clone())).map(|due| now.boot + due.left(now)),
        };
        let trouble = |(record, standing): &(Record, Standing)| {
            let (unknown, reason) = match standing {
                Standing::Unknown(why) => (true, why.clone()),
                Standing::Parked(why) => (false, why.clone()),
                Standing::Prepared | Standing::Sent(_) => return None,
            };
            let text = one_line(&record.text, limits::OUTBOX_EXCERPT);
            Some(Trouble { key: record.key.clone(), channel: record.channel.clone(), unknown, reason, text })
        };
        OutboxView {
            generation: self.generation,
            depth: self.lanes.values().map(|lane| lane.queue.len()).sum(),
            last_sent: self.last_sent,
            stuck: self.stuck,
            lanes: self.lanes.iter().filter(|(_, lane)| !lane.is_spare()).map(view).collect(),
            troubles: self.troubles.iter().filter_map(trouble).collect(),
        }
    }

    pub(super) fn online(&mut self, now: Now) {
        let waits = |(channel, lane): (&ChannelId, &Lane)| {
            matches!(lane.flow, Flow::Waiting { limited: false }).then(|| channel.clone())
        };
        let channels: Vec<ChannelId> = self.lanes.iter().filter_map(waits).collect();
        for channel in channels {
            self.timers.set(Timer::Lane(channel), Due::boot(now, Duration::ZERO));
        }
    }

    pub(super) fn retry(&mut self, now: Now, channel: Option<&ChannelId>, unknown: bool) {
        let meant = |c: &ChannelId| channel.is_none_or(|channel| channel == c);
        let mut again = Vec::new();
        self.troubles.retain(|(record, standing)| {
            let take = meant(&record.channel) && (unknown || matches!(standing, Standing::Parked(_)));
            if take {
                again.push(record.clone());
            }
            !take
        });
        for mut record in again {
            self.seq += 1;
            record.seq = self.seq;
            let batch = self.commits.add(Change::Again { key: record.key.clone(), seq: record.seq });
            let channel = record.channel.clone();
            match self.lane(&channel) {
                Some(lane) => lane.queue.push_back(Held { record, as_of: now.boot, batch, let_go: None, open: false }),
                None => self.tell(Told::NoLane(channel)),
            }
        }
        let channels: Vec<ChannelId> = self.lanes.keys().filter(|c| meant(c)).cloned().collect();
        for channel in channels {
            let Some(lane) = self.lanes.get_mut(&channel) else { continue };
            for held in &mut lane.queue {
                held.let_go = Some(now.boot);
            }
            if lane.row.parked.take().is_some() {
                self.commits.add(Change::Lane(lane.row.clone()));
            }
            if let Flow::Waiting { limited: false } = lane.flow {
                lane.flow = Flow::Idle;
                self.timers.stop(&Timer::Lane(channel.clone()));
            }
            self.advance(now, &channel);
        }
        self.out.push_back(Output::Changed);
    }
}
