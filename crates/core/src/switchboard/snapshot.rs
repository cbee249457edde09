//! The counts of a moment.

use std::collections::BTreeMap;

use super::calls::Stage;
use super::socket::Role;
use super::{PendingCalls, Switchboard, SwitchboardStatus};
use crate::limits;
use crate::time::Now;
use crate::wire::Features;

impl Switchboard {
    /// The counts of this moment.
    pub fn snapshot(&self, now: Now) -> SwitchboardStatus {
        let ready = self.ready_socket();
        let count = |pick: fn(&Role) -> bool| self.sockets.iter().filter(|socket| pick(&socket.role)).count();
        SwitchboardStatus {
            ready: ready.is_some(),
            ready_since: ready.and_then(|socket| match socket.role {
                Role::Ready { since } => Some(since),
                _ => None,
            }),
            last_heard: ready.map(|socket| socket.heard).or(self.last_heard),
            instance: self.home.as_ref().map(|home| home.instance.clone()),
            features: ready.and_then(|socket| socket.peer.as_ref()).map_or(Features::NONE, |peer| peer.features),
            candidates: count(|role| matches!(role, Role::Candidate | Role::Challenging { .. })),
            probing: count(|role| matches!(role, Role::Probing { .. } | Role::Resuming { .. })),
            pending: self.pending(now),
            hold_until: self.home.as_ref().and_then(|home| home.hold).map(|hold| hold.until),
            in_use_at: self.in_use_at,
            stopping: self.stop.refuses(),
        }
    }

    fn pending(&self, now: Now) -> PendingCalls {
        let mut by_tool = BTreeMap::new();
        let mut pending = PendingCalls {
            active: self.calls.len(),
            keyed: self.calls.values().filter(|call| call.key().is_some()).count(),
            promoted: self.calls.values().filter(|call| call.is_promoted()).count(),
            maximum: limits::DEVICE_CALLS_MAX,
            oldest: self.calls.values().map(|call| now.boot.saturating_sub(call.opened)).max(),
            ..PendingCalls::default()
        };
        for call in self.calls.values() {
            *by_tool.entry(call.tool.clone()).or_default() += 1;
            *match call.stage {
                Stage::Reserving | Stage::Queued | Stage::Assigning { .. } => &mut pending.queued,
                Stage::Sent { .. } => &mut pending.sent,
                Stage::Detached { .. } => &mut pending.detached,
                Stage::Handed { .. } | Stage::Storing { .. } => &mut pending.uncommitted,
            } += 1;
        }
        PendingCalls { by_tool, ..pending }
    }
}
