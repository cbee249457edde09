//! What the tray and the notices say, decided from the snapshot alone. Texts come from `locale/en.ftl`.

mod durations;
mod lines;
mod menu;
mod notices;
mod sentence;
mod tray;
mod words;

pub use durations::duration;
pub use menu::{MenuId, TrayItem};
pub use notices::{Notice, NoticeInput, NoticeKind, NoticeSwitches, Notices};
pub use tray::{TrayIcon, TrayView, tray_view};
pub use words::{Arg, say};

#[cfg(test)]
mod tests;
