//! From transcripts to channels.

use holdfast_core::chat::{Scope, SendError};

use super::*;

#[tokio::test]
async fn a_binding_begins_at_the_end_of_its_transcript_and_goes_on_where_it_was_left() {
    let mut seat = Seat::new();
    seat.write(&["old"]);
    seat.serve_and_follow().await;
    seat.write(&["one"]);
    seat.service.until("one", |world| world.posts.len() == 1).await;
    seat.leave().await;
    seat.write(&["two", "Done.", "Done."]);
    seat.serve_and_follow().await;
    seat.service.until("the rest", |world| world.posts.len() == 2).await;
    assert_eq!(seat.service.texts("c1"), ["one", "two\n\nDone.\n\nDone."]);
}

#[tokio::test]
async fn what_was_said_before_the_transcript_was_there_is_said_from_its_first_line_also_by_the_next_holder() {
    let mut seat = Seat::new();
    seat.serve_and_follow().await;
    seat.leave().await;
    seat.write(&["first"]);
    seat.serve_and_follow().await;
    seat.service.until("its first line", |world| world.posts.len() == 1).await;
    assert_eq!(seat.service.texts("c1"), ["first"]);
}

#[tokio::test]
async fn while_there_is_no_connection_nothing_of_a_transcript_counts_as_said() {
    let mut seat = Seat::new();
    seat.serve_and_follow().await;
    seat.write(&["one"]);
    seat.service.until("one", |world| world.posts.len() == 1).await;
    seat.leave().await;
    let _heard = seat.open();
    seat.write(&["two"]);
    seat.leave().await;
    assert_eq!(seat.service.texts("c1"), ["one"]);
    seat.serve_and_follow().await;
    seat.service.until("two", |world| world.posts.len() == 2).await;
    assert_eq!(seat.service.texts("c1"), ["one", "two"]);
}

#[tokio::test]
async fn a_hand_over_reads_to_the_end_and_sends_what_is_prepared_before_it_ends() {
    let mut seat = Seat::new();
    seat.write(&["old"]);
    seat.serve_and_follow().await;
    seat.write(&["a"]);
    seat.service.until("a", |world| world.posts.len() == 1).await;
    let long = "word ".repeat(100);
    seat.write(&[&long, "end"]);
    seat.leave().await;
    let all = seat.service.texts("c1").concat();
    assert_eq!(all.matches("word").count(), 100);
    assert!(all.ends_with("end"), "{all}");
}

#[tokio::test]
async fn a_channel_that_is_gone_is_parked_and_others_are_not() {
    let mut seat = Seat::new();
    let other = seat.folder.path().join("other.jsonl");
    seat.edit(|config| {
        config.bindings.push(BindingConfig {
            name: "other".into(),
            channel: "c2".into(),
            transcript: Some(other.to_str().unwrap().into()),
            ..BindingConfig::default()
        });
    });
    seat.serve_and_follow().await;
    seat.service.refusals.lock().push(fake::channel_is_gone());
    seat.write(&["lost?"]);
    let status = seat.until("parked", |status| status.bindings[0].parked.is_some()).await;
    assert_eq!(status.bindings[0].parked.as_deref(), Some("Unknown Channel (10003)"));
    std::fs::write(&other, said("fine")).unwrap();
    seat.service.until("the other channel", |world| world.posts.len() == 1).await;
    assert_eq!(seat.service.texts("c2"), ["fine"]);
    assert_eq!(seat.desk.test("agent").await.unwrap_err().code(), "channel_parked");
    seat.desk.retry(Some(channel("c1")), false).await.unwrap();
    seat.service.until("what waited", |world| world.posts.len() == 2).await;
    assert_eq!(seat.service.texts("c1"), ["lost?"]);
}

#[tokio::test]
async fn a_token_that_counts_no_longer_ends_the_holder_with_its_reason() {
    let mut seat = Seat::new();
    seat.serve_and_follow().await;
    let refused = SendError::Permanent { scope: Scope::Seat, code: "401".into(), text: "Unauthorized".into() };
    seat.service.refusals.lock().push(refused);
    seat.write(&["a"]);
    assert_eq!(seat.news().await, News::Failed("Unauthorized (401)".into()));
}

#[tokio::test]
async fn nothing_is_sent_while_the_seat_is_not_held_on_disk() {
    let mut seat = Seat::new();
    seat.serve_and_follow().await;
    seat.holds.store(false, Ordering::Relaxed);
    seat.write(&["a"]);
    assert_eq!(seat.news().await, News::Doubt);
    assert_eq!(seat.service.world().posts.len(), 0);
    seat.holds.store(true, Ordering::Relaxed);
    seat.service.until("it", |world| world.posts.len() == 1).await;
}

#[tokio::test]
async fn a_holder_ends_when_a_later_one_has_the_store() {
    let mut seat = Seat::new();
    seat.serve_and_follow().await;
    let mut old = seat.holder.take().unwrap();
    seat.serve_and_follow().await;
    // Whichever reads it first: only one may keep and post it.
    seat.write(&["a"]);
    assert_eq!(soon("the old one's end", old.news.recv()).await, Some(News::Superseded(2)));
    seat.service.until("a", |world| world.posts.len() == 1).await;
    assert_eq!(seat.service.texts("c1"), ["a"]);
}

#[tokio::test]
async fn a_message_of_the_bot_that_nobody_here_sent_is_told() {
    let mut seat = Seat::new();
    seat.serve_and_follow().await;
    seat.write(&["mine"]);
    seat.service.until("mine", |world| world.posts.len() == 1).await;
    seat.hear(Event::Ours(channel("c1"), id(1000))).await;
    seat.hear(Event::Ours(channel("c1"), id(77))).await;
    assert_eq!(seat.news().await, News::Stranger);
    assert!(seat.holder.as_mut().unwrap().news.try_recv().is_err());
}

#[tokio::test]
async fn an_agents_words_are_in_custody_when_they_are_taken_and_are_said_once() {
    let mut seat = Seat::new();
    assert_eq!(seat.desk.say("agent", "x".into(), None, "k".into()).await, Err(DeskError::NoSeat));
    seat.serve_and_follow().await;
    seat.service.hangs.store(true, Ordering::SeqCst);
    let say = || seat.desk.say("agent", "hello".into(), None, "k1".into());
    assert_eq!(tokio::join!(say(), say()), (Ok(()), Ok(())));
    seat.die().await;
    seat.service.hangs.store(false, Ordering::SeqCst);
    seat.serve_and_follow().await;
    assert_eq!(seat.desk.say("agent", "hello".into(), None, "k1".into()).await, Ok(()));
    assert_eq!(seat.desk.say("agent", "again".into(), Some(id(5)), "k2".into()).await, Ok(()));
    seat.service.until("both", |world| world.posts.len() == 2).await;
    assert_eq!(seat.service.texts("c1"), ["hello", "again"]);
    for (text, key) in [("", "k3"), ("```\n```", "k3"), ("x", "")] {
        let refused = seat.desk.say("agent", text.into(), None, key.into()).await.unwrap_err();
        assert_eq!(refused.code(), "invalid_request", "{text:?}");
    }
    assert_eq!(seat.desk.say("nobody", "x".into(), None, "k".into()).await.unwrap_err().code(), "not_found");
}

#[tokio::test]
async fn an_agent_that_names_its_new_transcript_is_followed_there_from_its_beginning() {
    let mut seat = Seat::new();
    seat.edit(|config| config.bindings[0].transcript = None);
    seat.serve();
    let new = seat.folder.path().join("new.jsonl");
    std::fs::write(&new, said("early")).unwrap();
    soon("its place", async {
        while seat.desk.bind("agent", new.to_str().unwrap()).await.is_err()
            || seat.desk.view().borrow().bindings.is_empty()
        {
            tokio::task::yield_now().await;
        }
    })
    .await;
    seat.service.until("early", |world| world.posts.len() == 1).await;
    seat.leave().await;
    std::fs::write(&new, said("early") + &said("late")).unwrap();
    seat.serve();
    seat.service.until("late", |world| world.posts.len() == 2).await;
    assert_eq!(seat.service.texts("c1"), ["early", "late"]);
    let refused = seat.desk.bind("agent", "relative.jsonl").await.unwrap_err();
    assert_eq!(refused.code(), "invalid_request");
}

#[tokio::test]
async fn bindings_that_are_edited_take_effect_while_it_serves() {
    let mut seat = Seat::new();
    seat.serve_and_follow().await;
    let other = seat.folder.path().join("other.jsonl");
    std::fs::write(&other, said("old")).unwrap();
    // Another transcript: the first is still said to its end.
    seat.write(&["first"]);
    seat.edit(|config| config.bindings[0].transcript = Some(other.to_str().unwrap().into()));
    let followed = other.canonicalize().unwrap();
    let there = |status: &ForwarderStatus| status.bindings[0].transcript.as_deref() == followed.to_str();
    seat.until("the other transcript", there).await;
    assert_eq!(seat.service.until("first", |world| world.posts.len() == 1).await.posts[0].2, "first");
    // Another channel for what is said from now on.
    seat.edit(|config| config.bindings[0].channel = "c2".into());
    seat.until("the other channel", |status| status.bindings[0].channel == "c2").await;
    append(&other, &["second"]);
    seat.service.until("second", |world| world.posts.len() == 2).await;
    assert_eq!((seat.service.texts("c1"), seat.service.texts("c2")), (vec!["first".into()], vec!["second".into()]));
    // No binding at all, and again: what was said meanwhile is not lost.
    let binding = seat.config.borrow().bindings[0].clone();
    seat.edit(|config| config.bindings.clear());
    seat.until("no binding", |status| status.bindings.is_empty()).await;
    append(&other, &["third"]);
    seat.edit(|config| config.bindings.push(binding));
    seat.service.until("third", |world| world.posts.len() == 3).await;
    assert_eq!(seat.service.texts("c2"), ["second", "third"]);
}

#[tokio::test]
async fn another_session_is_said_once_its_file_takes_the_place_of_the_first() {
    let mut seat = Seat::new();
    seat.serve_and_follow().await;
    let of = |session: &str, text: &str| said(text).replace("s1", session);
    let next = seat.folder.path().join("next");
    for (session, text) in [("s1", "first"), ("s2", "second")] {
        std::fs::write(&next, of(session, text)).unwrap();
        std::fs::rename(&next, seat.transcript()).unwrap();
        seat.service.until(text, |world| world.posts.last().is_some_and(|post| post.2 == text)).await;
    }
    assert_eq!(seat.service.texts("c1"), ["first", "second"]);
}

#[tokio::test]
async fn two_bindings_do_not_follow_one_transcript() {
    let mut seat = Seat::new();
    seat.serve_and_follow().await;
    seat.edit(|config| {
        let second = BindingConfig { name: "second".into(), channel: "c2".into(), ..config.bindings[0].clone() };
        config.bindings.push(second);
    });
    let refused = |status: &ForwarderStatus| status.bindings.get(1).is_some_and(|second| second.why.is_some());
    let status = seat.until("a reason", refused).await;
    assert_eq!(status.bindings[1].why.as_deref(), Some("agent follows this transcript already"));
    seat.write(&["once"]);
    seat.service.until("it", |world| world.posts.len() == 1).await;
    assert_eq!(seat.service.texts("c1"), ["once"]);
}

#[tokio::test]
async fn a_binding_that_comes_back_does_not_follow_what_another_follows_by_now() {
    let mut seat = Seat::new();
    let path = seat.transcript().to_str().unwrap().to_owned();
    seat.write(&["old"]);
    let with_path = seat.config.borrow().bindings[0].clone();
    let first = BindingConfig { transcript: None, ..with_path.clone() };
    let second = BindingConfig { name: "second".into(), channel: "c2".into(), ..with_path };
    seat.edit(|config| config.bindings = vec![first.clone()]);
    seat.serve();
    seat.hear(Event::Ready).await;
    seat.desk.bind("agent", &path).await.unwrap();
    seat.until("the first", |status| status.bindings[0].transcript.is_some()).await;
    seat.edit(|config| config.bindings = vec![second.clone()]);
    seat.until("the second", |status| status.bindings[0].name == "second" && status.bindings[0].transcript.is_some())
        .await;
    seat.edit(|config| config.bindings = vec![first, second]);
    seat.until("both", |status| status.bindings.len() == 2).await;
    seat.write(&["once"]);
    seat.service.until("it", |world| world.posts.iter().any(|post| post.2 == "once")).await;
    let status = seat.until("custody", |status| status.bindings[1].waiting_out == 0).await;
    assert_eq!((&status.bindings[0].transcript, seat.service.texts("c2").last().unwrap().as_str()), (&None, "once"));
    seat.leave().await;
    assert!(!seat.service.texts("c1").contains(&"once".to_owned()));
}

#[tokio::test]
async fn a_pause_that_the_service_asks_for_is_kept_and_nothing_is_lost_by_it() {
    let mut seat = Seat::new();
    seat.serve_and_follow().await;
    seat.service.refusals.lock().push(SendError::Limited { after: Duration::from_millis(300) });
    let began = std::time::Instant::now();
    seat.write(&["patient"]);
    seat.service.until("it", |world| world.posts.len() == 1).await;
    assert!(began.elapsed() >= Duration::from_millis(300));
    assert_eq!(seat.service.texts("c1"), ["patient"]);
}

#[tokio::test]
async fn a_damaged_store_is_told_and_what_is_said_from_then_on_is_posted() {
    let mut seat = Seat::new();
    let folder = seat.folder.path().join("seat");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("channel.sqlite"), vec![7; 8192]).unwrap();
    seat.serve_and_follow().await;
    let News::SetAside(SetAside { to, waited }) = seat.news().await else { panic!() };
    assert_eq!((std::fs::read(to).unwrap(), waited), (vec![7; 8192], None));
    seat.write(&["a"]);
    seat.service.until("a", |world| world.posts.len() == 1).await;
}
