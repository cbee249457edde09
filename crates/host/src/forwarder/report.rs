//! What is shown of it.

use std::time::Duration;

use holdfast_core::chat::ChannelId;
use holdfast_core::chat::inbox::InboxView;
use holdfast_core::chat::outbox::{LaneView, OutboxView};
use holdfast_core::limits;
use holdfast_core::status::{BindingStatus, ForwarderStatus, PersonRow, TroubleRow, UnixMs};
use holdfast_core::time::Now;

use super::run::Shell;
use super::sources::Source;
use crate::config::{BindingConfig, ChannelConfig, Delivery};

/// What is known while this process does not serve.
pub(crate) fn idle(config: &ChannelConfig) -> ForwarderStatus {
    ForwarderStatus {
        bindings: config.bindings.iter().map(binding).collect(),
        people: config.people.iter().map(|id| PersonRow { id: id.clone(), name: None }).collect(),
        ..ForwarderStatus::default()
    }
}

fn binding(config: &BindingConfig) -> BindingStatus {
    let adapter = config.deliver.map(|deliver| match deliver {
        Delivery::Command => "command",
        Delivery::Tmux => "tmux",
        Delivery::Mcp => "mcp",
        Delivery::Inbox => "inbox",
    });
    BindingStatus {
        name: config.name.clone(),
        channel: config.channel.clone(),
        adapter: adapter.map(str::to_owned),
        session: config.session.clone(),
        ..BindingStatus::default()
    }
}

impl Shell {
    /// Everything about it now.
    pub(super) fn status(&self, now: Now) -> ForwarderStatus {
        let (outbox, inbox) = (self.outbox.snapshot(now), self.inbox.snapshot(now));
        let at = |boot: Duration| self.turns.unix_ms().saturating_add(ms(boot)).saturating_sub(ms(now.boot));
        let mut status = idle(&self.config);
        for row in &mut status.bindings {
            let Some(source) = self.sources.get(row.name.as_str()) else { continue };
            self.show(row, source, &outbox, &inbox, at);
        }
        for row in &mut status.people {
            row.name = self.names.iter().find(|(id, _)| id.as_str() == row.id).map(|(_, name)| name.clone());
        }
        status.troubles = outbox.troubles.into_iter().map(trouble).collect();
        status.perhaps = inbox.perhaps;
        status.pairing_until = inbox.pairing.map(at);
        status.in_flight = self.sending;
        status.stuck = outbox.stuck.or(inbox.stuck).or(self.asks_stuck).map(|stuck| stuck.to_string());
        status
    }

    fn show(
        &self,
        row: &mut BindingStatus,
        source: &Source,
        outbox: &OutboxView,
        inbox: &InboxView,
        at: impl Fn(Duration) -> UnixMs,
    ) {
        let lane: Option<&LaneView> = outbox.lanes.iter().find(|lane| Some(&lane.channel) == source.channel.as_ref());
        let queue = inbox.queues.iter().find(|queue| *queue.binding == *row.name);
        let of = |channel: &ChannelId| self.last_sent.get(channel).copied();
        row.channel_name = source.channel.as_ref().and_then(|channel| self.called.get(channel)).cloned().flatten();
        row.transcript = source.placed().map(|transcript| transcript.to_string());
        row.session = source.session.lock().clone();
        row.waiting_out = lane.map_or(0, |lane| lane.waiting);
        row.waiting_in = queue.map_or(0, |queue| queue.waiting);
        row.last_sent = source.channel.as_ref().and_then(of);
        row.parked = lane.and_then(|lane| lane.parked.clone());
        row.next_try_at = lane.and_then(|lane| lane.next_try).map(at);
        let undelivered = queue.and_then(|queue| queue.why.clone());
        row.why = lane.and_then(|lane| lane.why.clone()).or(undelivered).or_else(|| source.why());
        row.why = row.why.take().or_else(|| source.agent.as_ref().err().cloned());
        row.skipped = source.channel.as_ref().and_then(|c| self.skipped.get(c)).copied().unwrap_or_default();
        (row.unread, row.gaps) = (source.unread, source.gaps);
    }

    /// Shows what changed, if its time has come; how long it may still wait.
    pub(super) fn publish(&mut self, now: Now) -> Duration {
        if !self.unpublished {
            return Duration::MAX;
        }
        let due = self.published_at + limits::STATUS_PACE;
        if now.boot < due {
            return due - now.boot;
        }
        self.show_now(now);
        Duration::MAX
    }

    /// The same, at once.
    pub(super) fn show_now(&mut self, now: Now) {
        (self.unpublished, self.published_at) = (false, now.boot);
        self.means.desk.show(self.status(now));
    }
}

fn trouble(trouble: holdfast_core::chat::outbox::Trouble) -> TroubleRow {
    TroubleRow {
        id: trouble.key.nonce(),
        channel: trouble.channel.to_string(),
        unknown: trouble.unknown,
        reason: trouble.reason,
        text: trouble.text,
    }
}

fn ms(time: Duration) -> UnixMs {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
