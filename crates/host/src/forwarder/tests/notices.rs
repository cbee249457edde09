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
    assert_eq!(*seat.noticed.lock(), [parked.clone()]);
    // The next holder knows it, and nothing happens.
    seat.leave().await;
    seat.serve_and_follow().await;
    seat.until("still parked", |status| status.bindings[0].parked.is_some()).await;
    assert_eq!(*seat.noticed.lock(), [parked.clone()]);
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
