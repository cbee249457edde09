//! Notices, shown by the desktop. A click on one opens the window.

use holdfast_host::notices;
use holdfast_host::resident::Resident;
use tauri::{AppHandle, Manager as _};
use tauri_plugin_notification::NotificationExt as _;
use tokio::sync::Notify;

use crate::window;

/// The window was closed by a person.
#[derive(Default)]
pub struct WindowClosed(pub Notify);

/// Follows the status for as long as the application runs.
pub fn start(app: &AppHandle) {
    app.manage(WindowClosed::default());
    let opened = app.clone();
    if let Err(e) = app.notification().on_action(move |_| window::open(&opened, None)) {
        tracing::warn!("clicks on notices do nothing: {e}");
    }
    let app = app.clone();
    tokio::spawn(async move {
        let tell = |notice: holdfast_core::desktop::Notice| show(&app, &notice.title, &notice.body);
        notices::follow(&app.state::<Resident>(), &app.state::<WindowClosed>().0, tell).await;
    });
}

/// Shows one notice, if anybody on this desktop shows notices.
pub fn show(app: &AppHandle, title: &str, body: &str) {
    if let Err(e) = app.notification().builder().title(title).body(body).show() {
        tracing::warn!("a notice was not shown: {e}");
    }
}
