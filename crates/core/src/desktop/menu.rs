//! The tray's menu: its lines, and what choosing one asks for.

use crate::command::{Command, Engine};
use crate::status::{EngineState, StatusSnapshot};

macro_rules! menu {
    ($($(#[$doc:meta])* $name:ident = $id:literal,)+) => {
        /// A line of the tray's menu. The menu is built once; only texts, enabled and checked change.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum MenuId { $($(#[$doc])* $name),+ }

        impl MenuId {
            /// Every line, in the menu's order.
            pub const ALL: [MenuId; [$($id),+].len()] = [$(MenuId::$name),+];

            /// The line's stable name.
            pub const fn as_str(self) -> &'static str {
                match self { $(MenuId::$name => $id),+ }
            }
        }
    };
}

menu! {
    /// One sentence; never enabled.
    Status = "status",
    /// Opens the status window.
    Open = "open",
    /// Copies the address MCP clients use.
    CopyMcp = "copy_mcp",
    /// Starts every engine.
    Start = "start",
    /// Stops every engine.
    Stop = "stop",
    /// The submenu of the engines and the seat.
    Engines = "engines",
    /// The embedded relay, on or off.
    EngineRelay = "engine_relay",
    /// The link, on or off.
    EngineLink = "engine_link",
    /// The worker, on or off.
    EngineWorker = "engine_worker",
    /// The channels, on or off.
    EngineChannels = "engine_channels",
    /// Takes the seat.
    SeatTake = "seat_take",
    /// Lets go of the seat.
    SeatRelease = "seat_release",
    /// Opens the drill.
    Drill = "drill",
    /// Shows the folder of the logs.
    Logs = "logs",
    /// Start at login, on or off.
    Autostart = "autostart",
    /// Ends Holdfast.
    Quit = "quit",
}

impl MenuId {
    /// The line of a name.
    pub fn parse(text: &str) -> Option<MenuId> {
        MenuId::ALL.into_iter().find(|id| id.as_str() == text)
    }

    /// Whether the line has a check mark.
    pub const fn is_check(self) -> bool {
        self.engine().is_some() || matches!(self, MenuId::Autostart)
    }

    /// Whether a line above parts it from what comes before.
    pub const fn begins_group(self) -> bool {
        matches!(self, MenuId::Open | MenuId::Start | MenuId::Drill | MenuId::Quit)
    }

    /// Whether it stands in the submenu [`MenuId::Engines`].
    pub const fn is_below_engines(self) -> bool {
        self.engine().is_some() || matches!(self, MenuId::SeatTake | MenuId::SeatRelease)
    }

    /// The engine that the line starts and stops.
    pub const fn engine(self) -> Option<Engine> {
        match self {
            MenuId::EngineRelay => Some(Engine::Relay),
            MenuId::EngineLink => Some(Engine::Link),
            MenuId::EngineWorker => Some(Engine::Worker),
            MenuId::EngineChannels => Some(Engine::Channels),
            _ => None,
        }
    }

    /// What choosing the line asks of the engines; `None` for what only the shell can do.
    pub fn command(self, snapshot: &StatusSnapshot) -> Option<Command> {
        match self {
            MenuId::Start => Some(Command::Start { engine: None }),
            MenuId::Stop => Some(Command::Stop { engine: None }),
            MenuId::EngineRelay | MenuId::EngineLink | MenuId::EngineWorker | MenuId::EngineChannels => {
                let engine = self.engine();
                let runs = engine.is_some_and(|engine| is_running(snapshot, engine));
                Some(if runs { Command::Stop { engine } } else { Command::Start { engine } })
            }
            MenuId::SeatTake => Some(Command::SeatTake { wait: false, force: false }),
            MenuId::SeatRelease => Some(Command::SeatRelease {}),
            MenuId::Logs => Some(Command::OpenLogs {}),
            MenuId::Autostart => Some(Command::Autostart { on: snapshot.app.autostart != Some(true) }),
            MenuId::Quit => Some(Command::Quit { now: false }),
            MenuId::Status | MenuId::Open | MenuId::CopyMcp | MenuId::Engines | MenuId::Drill => None,
        }
    }
}

/// Whether an engine runs, or has not ended yet.
pub(super) fn is_running(snapshot: &StatusSnapshot, engine: Engine) -> bool {
    matches!(snapshot.app.engines.get(&engine), Some(EngineState::Running | EngineState::Stopping))
}

/// How a line stands now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrayItem {
    /// Which.
    pub id: MenuId,
    /// At most [`crate::limits::TRAY_TEXT_MAX`] characters.
    pub text: String,
    /// Whether it can be chosen.
    pub enabled: bool,
    /// Whether its check mark is set; false where [`MenuId::is_check`] is.
    pub checked: bool,
}
