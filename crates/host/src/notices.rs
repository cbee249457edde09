//! Notices for a shell: follows the status, and hands over what the core finds worth telling.

use holdfast_core::desktop::{Notice, NoticeInput, Notices};
use tokio::sync::Notify;

use crate::resident::Resident;
use crate::runtime::{Clock as _, SystemClock};

/// Follows a resident for as long as it is polled. `window_closed` is told when a person closed the window.
pub async fn follow(resident: &Resident, window_closed: &Notify, show: impl Fn(Notice)) {
    let clock = SystemClock::default();
    let (mut status, mut switches) = (resident.watch(), resident.notices());
    let mut notices = Notices::new(clock.now(), *switches.borrow_and_update());
    notices.handle(clock.now(), NoticeInput::Snapshot(&status.borrow_and_update()));
    loop {
        while let Some(notice) = notices.poll_output() {
            show(notice);
        }
        let due = notices.poll_timeout(clock.now());
        tokio::select! {
            Ok(()) = status.changed() => notices.handle(clock.now(), NoticeInput::Snapshot(&status.borrow_and_update())),
            Ok(()) = switches.changed() => {
                let wanted = *switches.borrow_and_update();
                notices.handle(clock.now(), NoticeInput::Switches(wanted));
            }
            () = window_closed.notified() => notices.handle(clock.now(), NoticeInput::WindowClosed),
            () = tokio::time::sleep(due.unwrap_or_default()), if due.is_some() => notices.handle_timeout(clock.now()),
        }
    }
}
