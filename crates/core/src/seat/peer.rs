//! What processes that want the same seat say to each other, one JSON document a line, and the two files they share.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::id::SeatId;
use crate::limits;
use crate::status::{SeatState, UnixMs};

/// A question to the holder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case", deny_unknown_fields)]
pub enum Ask {
    /// Who are you?
    Status {},
    /// Let me have the seat.
    Take {
        /// Who asks.
        taker: Taker,
    },
    /// After [`Answer::Ready`]: I am still here and want it.
    Confirm {},
}

/// Who asks for the seat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Taker {
    /// Its random id.
    pub instance: SeatId,
    /// Its process, as it says.
    pub pid: u32,
}

/// The holder's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case", deny_unknown_fields)]
pub enum Answer {
    /// To [`Ask::Status`].
    Status {
        /// What it does.
        state: SeatState,
        /// The same that stands in the file.
        advert: Box<Advert>,
    },
    /// To [`Ask::Take`]: it is awake, and waits for [`Ask::Confirm`]. One that was frozen thereby finds out who left meanwhile.
    Ready {},
    /// It finishes what is under way; another answer follows.
    Draining {},
    /// It let go.
    Released {},
    /// It lets go for somebody else.
    Busy {},
    /// It does not hold the seat.
    NotHolder {},
}

/// `active-instance.json`: who holds the seat, for people. Nothing is decided by it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Advert {
    /// The holder's random id.
    pub instance: SeatId,
    /// Its process.
    pub pid: u32,
    /// When that process started, as its system writes it.
    pub process_started: Option<String>,
    /// Which boot of the machine.
    pub boot: String,
    /// The machine's name.
    pub host: String,
    /// The holder's generation.
    pub generation: u64,
    /// The channel, as people call it.
    pub channel: Option<String>,
    /// The transcript that is followed.
    pub transcript: Option<String>,
    /// Whether the bot can speak.
    pub backend_ready: bool,
    /// Since when it holds the seat.
    pub since: UnixMs,
}

/// `generation.json`: what outlives a holder. Written only by who holds the lock.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The last holder's generation. Never goes back.
    pub generation: u64,
    /// For whom it let go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved_for: Option<Reserved>,
}

/// A seat that is kept for who asked for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reserved {
    /// The taker's random id.
    pub instance: SeatId,
    /// Until when.
    pub until: UnixMs,
}

impl Record {
    /// Whether the seat is kept for somebody else than `me`. A reservation further ahead than one can be made counts for
    /// nothing, so that a calendar that jumped cannot close a seat.
    pub fn kept_from(&self, me: &SeatId, now: UnixMs) -> bool {
        self.reserved_for.as_ref().is_some_and(|kept| {
            let left = Duration::from_millis(kept.until.saturating_sub(now));
            kept.instance != *me && !left.is_zero() && left <= limits::SEAT_RESERVED
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u8) -> SeatId {
        SeatId::mint([n; SeatId::RANDOM_BYTES])
    }

    #[test]
    fn lines_read_as_documented_and_refuse_what_they_do_not_know() {
        let ask = |text| serde_json::from_str::<Ask>(text);
        assert_eq!(ask(r#"{"ask":"status"}"#).unwrap(), Ask::Status {});
        let taker = Taker { instance: id(7), pid: 7 };
        let line = r#"{"ask":"take","taker":{"instance":"seat_BwcHBwcHBwcHBwcHBwcHBwcH","pid":7}}"#;
        assert_eq!(ask(line).unwrap(), Ask::Take { taker });
        assert_eq!(ask(r#"{"ask":"confirm"}"#).unwrap(), Ask::Confirm {});
        let endless = line.replace("Bwc", &"x".repeat(40));
        for bad in [endless.as_str(), r#"{"ask":"die"}"#, r#"{"ask":"take"}"#, r#"{"ask":"status","x":1}"#, "", "7"] {
            assert!(ask(bad).is_err(), "{bad}");
        }
        assert_eq!(serde_json::to_string(&Answer::NotHolder {}).unwrap(), r#"{"answer":"not_holder"}"#);
    }

    #[test]
    fn a_seat_is_kept_for_ten_seconds_for_one_and_from_all_others() {
        let kept = |until| Record { generation: 1, reserved_for: Some(Reserved { instance: id(2), until }) };
        assert!(kept(11_000).kept_from(&id(1), 1_000));
        assert!(!kept(11_000).kept_from(&id(2), 1_000), "it is b's");
        assert!(!kept(11_000).kept_from(&id(1), 11_000), "its time is over");
        assert!(!kept(11_001).kept_from(&id(1), 1_000), "no reservation reaches that far");
        assert!(!Record::default().kept_from(&id(1), 0));
    }
}
