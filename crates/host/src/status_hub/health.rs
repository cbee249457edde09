//! The list of what is wrong: some told by the engines, some seen in the link's state.

use std::collections::BTreeMap;

use holdfast_core::limits;
use holdfast_core::status::{LinkState, RelayStatus, UnixMs, Warning, WarningCode};

use crate::link::LinkSnapshot;

/// Warnings that stand now.
#[derive(Debug, Default)]
pub(super) struct Health {
    standing: BTreeMap<WarningCode, Warning>,
    lost_seen: u64,
}

impl Health {
    /// A warning stands. One that already does keeps its time. Returns whether it says something new.
    pub(super) fn raise(&mut self, code: WarningCode, now: UnixMs, text: String) -> bool {
        let since = self.standing.get(&code).map_or(now, |w| w.since);
        let warning = code.warning(since, text);
        self.standing.insert(code, warning.clone()).as_ref() != Some(&warning)
    }

    /// It is over.
    pub(super) fn clear(&mut self, code: WarningCode) {
        self.standing.remove(&code);
    }

    /// Whether a warning stands.
    pub(super) fn stands(&self, code: WarningCode) -> bool {
        self.standing.contains_key(&code)
    }

    /// Worst first, then oldest first.
    pub(super) fn list(&self) -> Vec<Warning> {
        let mut list: Vec<_> = self.standing.values().cloned().collect();
        list.sort_by_key(|w| (std::cmp::Reverse(w.severity), w.since));
        list
    }

    /// Sets the warnings that follow from the link's state.
    pub(super) fn link(&mut self, relay: &RelayStatus, link: Option<&LinkSnapshot>, now: UnixMs) {
        let because = relay.cause.as_deref().map(|c| format!(": {c}")).unwrap_or_default();
        let in_state = |state| Some(relay.since).filter(|_| relay.state == state);
        self.hold(WarningCode::SignInNeeded, in_state(LinkState::SignInNeeded), || {
            format!("the relay does not know this device{because}; `holdfast enroll` lets it in")
        });
        self.hold(WarningCode::Incompatible, in_state(LinkState::Incompatible), || {
            "this version and the relay's cannot work together; update the older one".into()
        });
        self.hold(WarningCode::RelayOutage, in_state(LinkState::Outage), || format!("the relay is away{because}"));
        let since = |at: fn(&LinkSnapshot) -> Option<std::time::Duration>| link.and_then(|l| at(l).map(|t| l.at(t)));
        self.hold(WarningCode::DeviceInUse, since(|l| l.link.device_in_use), || {
            "another running instance uses this device's credential; if that is not you, revoke the device".into()
        });
        self.hold(WarningCode::ProtocolErrors, since(|l| l.link.protocol_errors), || {
            "the relay broke the protocol several times".into()
        });
        if let Some(link) = link {
            self.lost(link.link.lost, now);
        }
    }

    fn lost(&mut self, lost: u64, now: UnixMs) {
        if lost > self.lost_seen {
            self.clear(WarningCode::CallsLost);
            self.raise(
                WarningCode::CallsLost,
                now,
                match lost - self.lost_seen {
                    1 => "the outcome of 1 call is not known".into(),
                    calls => format!("the outcome of {calls} calls is not known"),
                },
            );
        }
        self.lost_seen = lost;
        let told_for = u64::try_from(limits::CALLS_LOST_TOLD.as_millis()).unwrap_or(u64::MAX);
        if self.standing.get(&WarningCode::CallsLost).is_some_and(|w| w.since + told_for < now) {
            self.clear(WarningCode::CallsLost);
        }
    }

    fn hold(&mut self, code: WarningCode, since: Option<UnixMs>, text: impl FnOnce() -> String) {
        match since {
            Some(since) => drop(self.raise(code, since, text())),
            None => self.clear(code),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_keeps_its_time_and_the_worst_is_first() {
        let mut health = Health::default();
        assert!(health.raise(WarningCode::ConfigRestart, 10, "a".into()));
        assert!(!health.raise(WarningCode::ConfigRestart, 20, "a".into()));
        assert!(health.raise(WarningCode::ConfigRestart, 20, "b".into()));
        health.raise(WarningCode::ConfigInvalid, 30, "c".into());
        let codes: Vec<_> = health.list().iter().map(|w| (w.code, w.since)).collect();
        assert_eq!(codes, [(WarningCode::ConfigInvalid, 30), (WarningCode::ConfigRestart, 10)]);
        health.clear(WarningCode::ConfigInvalid);
        assert_eq!(health.list().len(), 1);
    }

    #[test]
    fn lost_calls_are_told_for_an_hour() {
        let mut health = Health::default();
        health.lost(0, 1);
        assert_eq!(health.list(), vec![]);
        health.lost(2, 1_000);
        assert_eq!(health.list()[0].text, "the outcome of 2 calls is not known");
        health.lost(2, 3_600_000);
        assert_eq!(health.list().len(), 1);
        health.lost(2, 3_602_000);
        assert_eq!(health.list(), vec![]);
    }
}
