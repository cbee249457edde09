//! Holders that die between what the service did and what was written down of it.

use super::*;

/// How many holders die. Each dies right after the service took a message, before that is stored.
const KILLS: usize = 500;

#[tokio::test]
async fn of_500_holders_killed_between_the_answer_and_the_commit_none_loses_or_repeats_a_message() {
    let mut seat = Seat::new();
    seat.write(&["old"]);
    seat.serve_and_follow().await;
    seat.write(&["begin"]);
    seat.service.until("begin", |world| world.posts.len() == 1).await;
    seat.leave().await;
    let mut expected = vec!["begin".to_owned()];
    for n in 0..KILLS {
        // Half of them find nonces forgotten, so that only the channel itself can tell.
        if n % 2 == 0 {
            seat.service.change(|world| world.remembered_from = world.posts.len());
        }
        seat.service.hangs.store(true, Ordering::SeqCst);
        seat.serve();
        let text = format!("message {n}");
        seat.write(&[&text]);
        expected.push(text);
        // What the one before left is settled first; then this one's is posted, and its answer never comes.
        let posts = expected.len();
        seat.service.until("the post", |world| world.posts.len() == posts).await;
        seat.die().await;
    }
    seat.service.hangs.store(false, Ordering::SeqCst);
    seat.serve();
    seat.write(&["end"]);
    expected.push("end".into());
    seat.service.until("the end", |world| world.posts.last().is_some_and(|(_, _, text, _)| text == "end")).await;
    assert_eq!(seat.service.texts("c1"), expected);
    let status = seat.until("rest", |status| status.bindings[0].waiting_out == 0).await;
    assert_eq!(status.troubles, []);
}

#[tokio::test]
async fn where_the_channel_cannot_tell_two_messages_apart_that_is_told_and_nothing_is_posted_again() {
    let mut seat = Seat::new();
    seat.serve_and_follow().await;
    seat.service.hangs.store(true, Ordering::SeqCst);
    seat.write(&["Done."]);
    seat.service.until("the post", |world| world.posts.len() == 1).await;
    seat.die().await;
    seat.service.hangs.store(false, Ordering::SeqCst);
    // A person with the same bot wrote the same.
    seat.service.change(|world| {
        world.remembered_from = 1;
        world.posts.push((channel("c1"), 1001, "Done.".into(), "other".into()));
    });
    seat.serve();
    let status = seat.until("trouble", |status| !status.troubles.is_empty()).await;
    assert!(status.troubles[0].unknown);
    assert_eq!((status.troubles[0].text.as_str(), seat.service.texts("c1").len()), ("Done.", 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_holder_is_cut_off_whose_message_hangs_in_a_thread_that_nobody_can_end() {
    let mut seat = Seat::new();
    let (free, blocks) = std::sync::mpsc::channel();
    *seat.service.blocks.lock() = Some(blocks);
    seat.serve_and_follow().await;
    seat.write(&["a"]);
    let begun = async {
        while seat.service.blocks.lock().is_some() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    soon("a message under way", begun).await;
    soon("its end", seat.die()).await;
    drop(free);
}
