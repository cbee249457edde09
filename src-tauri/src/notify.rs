//! Notices: what core finds worth telling, shown by the desktop. A click on one opens the window.

use holdfast_core::desktop::{NoticeInput, Notices};
use holdfast_host::resident::Resident;
use holdfast_host::runtime::{Clock as _, SystemClock};
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
    tokio::spawn(follow(app.clone()));
}

async fn follow(app: AppHandle) {
    let (resident, closed, clock) = (app.state::<Resident>(), app.state::<WindowClosed>(), SystemClock::default());
    let (mut status, mut switches) = (resident.watch(), resident.notices());
    let mut notices = Notices::new(clock.now(), *switches.borrow_and_update());
    notices.handle(clock.now(), NoticeInput::Snapshot(&status.borrow_and_update()));
    loop {
        while let Some(notice) = notices.poll_output() {
            show(&app, &notice.title, &notice.body);
        }
        let due = notices.poll_timeout(clock.now());
        tokio::select! {
            Ok(()) = status.changed() => notices.handle(clock.now(), NoticeInput::Snapshot(&status.borrow_and_update())),
            Ok(()) = switches.changed() => {
                let wanted = *switches.borrow_and_update();
                notices.handle(clock.now(), NoticeInput::Switches(wanted));
            }
            () = closed.0.notified() => notices.handle(clock.now(), NoticeInput::WindowClosed),
            () = tokio::time::sleep(due.unwrap_or_default()), if due.is_some() => notices.handle_timeout(clock.now()),
        }
    }
}

/// Shows one notice, if anybody on this desktop shows notices.
pub fn show(app: &AppHandle, title: &str, body: &str) {
    if let Err(e) = app.notification().builder().title(title).body(body).show() {
        tracing::warn!("a notice was not shown: {e}");
    }
}
