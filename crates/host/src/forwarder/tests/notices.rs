//! What the timeline gets: each once, when it happens.

use holdfast_core::chat::{Scope, SendError, Ticket, inbox};

use super::*;

#[tokio::test]
async fn a_channel_that_is_parked_is_noticed_once_however_much_waits_and_again_only_when_it_is_parked_again() {
    let mut seat = Seat::new();
    seat.serve_and_follow().await;
    seat.service.refusals.lock().push(fake::channel_is_gone());
    seat.write(&["one", "two", "three"]);
    seat.until("parked", |status| status.bindings[0].parked.is_some()).await;
    let parked = (ChannelNotice::Parked, "nothing is posted in channel c1: Unknown Channel (10003)".to_owned());
    assert_eq!(*seat.noticed.lock(), std::slice::from_ref(&parked));
    // The next holder knows it, and nothing happens.
    seat.leave().await;
    seat.serve_and_follow().await;
    seat.until("still parked", |status| status.bindings[0].parked.is_some()).await;
    assert_eq!(*seat.noticed.lock(), std::slice::from_ref(&parked));
    seat.service.refusals.lock().push(fake::channel_is_gone());
    seat.desk.retry(Some(channel("c1")), false).await.unwrap();
    let twice = async {
        while seat.noticed.lock().len() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    soon("a second notice", twice).await;
    assert_eq!(*seat.noticed.lock(), [parked.clone(), parked]);
}

#[tokio::test]
async fn a_message_that_is_refused_is_noticed_and_the_next_is_posted() {
    let mut seat = Seat::new();
    seat.serve_and_follow().await;
    let refused =
        SendError::Permanent { scope: Scope::Message, code: "50035".into(), text: "Invalid Form Body".into() };
    seat.service.refusals.lock().push(refused);
    seat.write(&["bad"]);
    seat.until("the refusal", |status| status.troubles.len() == 1).await;
    seat.write(&["good"]);
    seat.service.until("the next", |world| world.posts.len() == 1).await;
    let noticed = (ChannelNotice::Refused, "a message is refused: Invalid Form Body (50035)".to_owned());
    assert_eq!(*seat.noticed.lock(), [noticed]);
}

#[tokio::test]
async fn files_of_messages_go_when_they_had_their_time_though_nobody_sends_another() {
    let mut seat = Seat::new();
    let mut shell = seat.shell().await;
    let file = seat.folder.path().join("seat/files/old.png");
    let long_ago = std::time::SystemTime::now() - limits::FILES_KEPT - Duration::from_secs(60);
    std::fs::File::create(&file).unwrap().set_modified(long_ago).unwrap();
    let (now, changes) = (shell.turns.now(), vec![inbox::Change::Prune]);
    shell.inbox_output(now, inbox::Output::Commit { ticket: Ticket(1), generation: 1, changes });
    let gone = async {
        while file.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    soon("the end of a file", gone).await;
}

#[tokio::test]
async fn entries_that_are_too_old_are_noticed_with_their_number() {
    let mut seat = Seat::new();
    seat.serve_and_follow().await;
    let dated = |text: &str| said(text).replacen('{', r#"{"timestamp":"2001-01-01T00:00:00Z","#, 1);
    std::fs::write(seat.transcript(), [dated("a"), dated("b"), said("new")].concat()).unwrap();
    seat.service.until("the line and the new one", |world| world.posts.len() == 2).await;
    assert_eq!(seat.service.texts("c1"), ["_(skipped 2 entries)_", "new"]);
    let noticed = "2 entries are not posted in channel c1: too old, or too many waited".to_owned();
    assert_eq!(*seat.noticed.lock(), [(ChannelNotice::Skipped, noticed)]);
    seat.until("their number", |status| status.bindings[0].skipped == 2).await;
}

#[tokio::test]
async fn a_message_of_which_nobody_knows_whether_it_was_posted_is_noticed_and_the_next_is_posted() {
    let mut seat = Seat::new();
    seat.serve_and_follow().await;
    seat.service.hangs.store(true, Ordering::SeqCst);
    seat.write(&["one"]);
    seat.service.until("one", |world| world.posts.len() == 1).await;
    seat.die().await;
    seat.service.hangs.store(false, Ordering::SeqCst);
    // Another like it stands there.
    seat.service.change(|world| {
        let again = (channel("c1"), 1001, "one".to_owned(), String::new());
        world.posts.push(again);
    });
    seat.serve_and_follow().await;
    let status = seat.until("the doubt", |status| status.troubles.len() == 1).await;
    let why = "the channel has several messages like it";
    assert_eq!((status.troubles[0].unknown, status.troubles[0].reason.as_str()), (true, why));
    seat.write(&["two"]);
    seat.service.until("the next", |world| world.posts.len() == 3).await;
    assert_eq!(seat.service.texts("c1"), ["one", "one", "two"]);
    let noticed = format!("whether a message was posted is unknown: {why}");
    assert_eq!(*seat.noticed.lock(), [(ChannelNotice::Unknown, noticed)]);
}
