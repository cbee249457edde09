//! What the tray shows: one of five icons, one sentence, and the lines of the menu.

use super::lines::line;
use super::menu::{MenuId, TrayItem};
use super::sentence::{Needs, sentence};
use crate::status::{LinkState, SeatState, StatusSnapshot, UnixMs};

/// The icon. The worst that is true wins: *needs you* over *waiting* over *busy* over *working*; *off* is what is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TrayIcon {
    /// Nothing is wanted: the link is stopped, and so is the seat.
    Off,
    /// Reachable, or speaking for the bot, and nothing happens.
    Working,
    /// A call runs.
    Busy,
    /// On the way to the relay or to the chat service, or calls wait for the link.
    Waiting,
    /// It does not go on without a person: a failed start or engine, a refused device, a client that asks to be let in, a call
    /// that asks before it runs, a seat that was given up, or any other warning that says so.
    NeedsYou,
}

/// Everything the tray shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrayView {
    /// The icon.
    pub icon: TrayIcon,
    /// One sentence, or two; also the first line of the menu. At most [`crate::limits::TRAY_TEXT_MAX`] characters.
    pub tooltip: String,
    /// Every line, in the order of [`MenuId::ALL`].
    pub items: [TrayItem; MenuId::ALL.len()],
}

impl TrayView {
    /// The line of an id.
    pub fn item(&self, id: MenuId) -> &TrayItem {
        &self.items[id as usize]
    }
}

/// Draws a snapshot. By `now` it is known whether what waits for a person still does; no text counts time, so a view stays
/// true until the next snapshot.
pub fn tray_view(now: UnixMs, snapshot: &StatusSnapshot) -> TrayView {
    let needs = Needs::of(now, snapshot);
    let tooltip = sentence(snapshot, &needs);
    TrayView { icon: icon(snapshot, &needs), items: MenuId::ALL.map(|id| line(id, snapshot, &tooltip)), tooltip }
}

fn icon(snapshot: &StatusSnapshot, needs: &Needs) -> TrayIcon {
    let seat = snapshot.seat.as_ref().map_or(SeatState::Off, |seat| seat.state);
    let away = matches!(
        snapshot.relay.state,
        LinkState::Connecting | LinkState::Blip | LinkState::Outage | LinkState::Recovering
    );
    if *needs != Needs::Nobody {
        TrayIcon::NeedsYou
    } else if away || snapshot.calls.detached > 0 || seat == SeatState::Connecting {
        TrayIcon::Waiting
    } else if snapshot.calls.pending > 0 {
        TrayIcon::Busy
    } else if snapshot.relay.state == LinkState::Healthy || matches!(seat, SeatState::Serving | SeatState::Draining) {
        TrayIcon::Working
    } else {
        TrayIcon::Off
    }
}
