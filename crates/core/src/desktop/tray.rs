//! What the tray shows: one of five icons, one sentence, and the lines of the menu.

use super::menu::{MenuId, TrayItem};
use crate::status::{StatusSnapshot, UnixMs};

/// The icon. The worst that is true wins; the order is from good to bad, and *off* is last because nothing else is true then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TrayIcon {
    /// Reachable, and nothing happens.
    Working,
    /// A call runs.
    Busy,
    /// On its way to the relay, or calls wait for it.
    Waiting,
    /// Nothing goes on without a person.
    NeedsYou,
    /// Nothing is wanted.
    Off,
}

/// Everything the tray shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrayView {
    /// The icon.
    pub icon: TrayIcon,
    /// One sentence; also the first line of the menu.
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

/// Draws a snapshot. `now` decides whether what waits for a person still does.
pub fn tray_view(now: UnixMs, snapshot: &StatusSnapshot) -> TrayView {
    let _ = (now, snapshot);
    TrayView {
        icon: TrayIcon::Off,
        tooltip: String::new(),
        items: MenuId::ALL.map(|id| TrayItem { id, text: String::new(), enabled: false, checked: false }),
    }
}
