//! What is posted, and what comes of it.

use holdfast_core::chat::{Button, Look, Scope, SendError};
use holdfast_testkit::discord::Fault;

use super::*;

const POST: &str = "POST channels/*/messages";

fn refused(scope: Scope, code: &str) -> impl Fn(SendError) -> bool {
    move |error| matches!(error, SendError::Permanent { scope: s, code: c, .. } if s == scope && c == code)
}

#[tokio::test]
async fn a_message_goes_with_its_answer_and_buttons_and_mentions_nobody() {
    let Stand { service, bot, .. } = stand().await;
    let (ann, place) = (service.person("ann"), service.channel());
    let asked = service.write(place, ann, "go?");
    let button = |id: &str, look| Button { id: id.into(), label: id.to_uppercase(), look };
    let buttons = vec![button("yes", Look::Good), button("ever", Look::Plain), button("no", Look::Bad)];
    let text = format!("  @everyone <@{ann}> really  ");
    let sent = bot.send(&Draft { reply_to: Some(message(asked)), buttons, ..draft(place, &text) }).await.unwrap();
    let posts = service.seen().posts;
    assert_eq!(posts.len(), 1);
    assert_eq!(sent, message(posts[0].message));
    assert_eq!(posts[0].content, text.trim());
    assert_eq!((posts[0].reply_to, &posts[0].mentions), (Some(asked), &Vec::new()));
    assert_eq!(posts[0].buttons, ["yes", "ever", "no"]);
}

#[tokio::test]
async fn an_answer_to_a_message_that_is_gone_is_posted_as_well() {
    let Stand { service, bot, .. } = stand().await;
    let (ann, place) = (service.person("ann"), service.channel());
    let asked = service.write(place, ann, "go?");
    service.unwrite(place, asked);
    bot.send(&Draft { reply_to: Some(message(asked)), ..draft(place, "yes") }).await.unwrap();
    assert_eq!(service.seen().texts(place), ["yes"]);
}

#[tokio::test]
async fn a_lost_answer_is_unknown_and_the_same_nonce_finds_the_message() {
    let Stand { service, bot, .. } = stand().await;
    let place = service.channel();
    for (fault, text) in [(Fault::Cut, "one"), (Fault::Half, "two")] {
        service.fault(POST, fault);
        let lost = bot.send(&draft(place, text)).await.unwrap_err();
        assert!(matches!(lost, SendError::Unknown(_)), "{lost:?}");
        let found = bot.send(&draft(place, text)).await.unwrap();
        let posts = service.seen().posts;
        let last = &posts[posts.len() - 1];
        assert!(last.repeated && found == message(last.message), "{posts:?}");
    }
    assert_eq!(service.seen().texts(place), ["one", "two"]);
    assert!(service.seen().twice().is_empty());
}

#[tokio::test]
async fn a_request_that_may_have_arrived_is_unknown_and_one_that_never_left_goes_later() {
    let Stand { service, bot, .. } = stand().await;
    let place = service.channel();
    service.fault(POST, Fault::CutBefore);
    assert!(matches!(bot.send(&draft(place, "one")).await, Err(SendError::Unknown(_))));
    service.fault(POST, Fault::Refuse(502));
    assert!(matches!(bot.send(&draft(place, "two")).await, Err(SendError::Unknown(_))));
    drop(service);
    // Nothing listens there any more.
    assert!(matches!(bot.send(&draft(place, "three")).await, Err(SendError::Later(_))));
}

#[tokio::test]
async fn a_send_that_hangs_ends_with_the_reset_and_the_next_one_works() {
    let Stand { service, bot, .. } = stand().await;
    let place = service.channel();
    service.fault(POST, Fault::Hang);
    let hangs = tokio::spawn({
        let bot = Arc::clone(&bot);
        async move { bot.send(&draft(place, "one")).await }
    });
    service.until("the message", |seen| seen.posts.len() == 1).await;
    bot.reset();
    let ended = timeout(PATIENCE, hangs).await.unwrap().unwrap();
    assert!(matches!(ended, Err(SendError::Unknown(_))), "{ended:?}");
    bot.send(&draft(place, "one")).await.unwrap();
    assert_eq!(service.seen().texts(place), ["one"]);
}

#[tokio::test]
async fn what_is_refused_for_good_says_how_much_is_lost() {
    let Stand { service, bot, token } = stand().await;
    let (gone, closed, open) = (service.channel(), service.channel(), service.channel());
    service.delete(gone);
    service.forbid(closed, true);
    let long = "ü".repeat(2001);
    assert!(refused(Scope::Message, "50035")(bot.send(&draft(open, &long)).await.unwrap_err()));
    assert!(bot.send(&draft(open, &long[2..])).await.is_ok(), "2,000 code points fit");
    assert!(refused(Scope::Channel, "10003")(bot.send(&draft(gone, "x")).await.unwrap_err()));
    assert!(refused(Scope::Channel, "50001")(bot.send(&draft(closed, "x")).await.unwrap_err()));
    service.revoke(&token);
    assert!(refused(Scope::Seat, "401")(bot.send(&draft(open, "x")).await.unwrap_err()));
}

#[tokio::test]
async fn a_channel_of_another_service_is_refused_before_anything_is_asked() {
    let Stand { service, bot, .. } = stand().await;
    for id in ["-100123", "1/../../users", "x?y"] {
        let elsewhere = Draft { channel: ChannelId::parse(id).unwrap(), ..draft(1, "x") };
        assert!(refused(Scope::Channel, "")(bot.send(&elsewhere).await.unwrap_err()), "{id}");
    }
    assert!(service.seen().requests.is_empty());
}

#[tokio::test]
async fn a_changed_message_loses_its_buttons() {
    let Stand { service, bot, .. } = stand().await;
    let place = service.channel();
    let buttons = vec![Button { id: "yes".into(), label: "Yes".into(), look: Look::Good }];
    let sent = bot.send(&Draft { buttons, ..draft(place, "go?") }).await.unwrap();
    bot.edit(&channel(place), &sent, "Allowed.").await.unwrap();
    let id = sent.as_str().parse().unwrap();
    assert_eq!(service.seen().edits, [(id, "Allowed.".to_owned(), 0)]);
    service.unwrite(place, id);
    let gone = bot.edit(&channel(place), &sent, "Denied.").await.unwrap_err();
    assert!(refused(Scope::Message, "10008")(gone));
}

#[tokio::test]
async fn signs_are_shown_and_taken_away_by_their_exact_characters() {
    let Stand { service, bot, .. } = stand().await;
    let (ann, place) = (service.person("ann"), service.channel());
    let written = service.write(place, ann, "go");
    let (there, on) = (channel(place), message(written));
    bot.typing(&there).await;
    bot.react(&there, &on, "🤔", true).await;
    bot.react(&there, &on, "🛠️", true).await;
    bot.react(&there, &on, "🤔", false).await;
    let seen = service.seen();
    assert_eq!(seen.typing, [("a".to_owned(), place)]);
    assert_eq!(seen.reactions[&written], ["🛠️"]);
}

#[tokio::test]
async fn what_is_answered_may_be_named_with_its_channel_and_anything_else_is_no_reason_to_lose_the_words() {
    let Stand { service, bot, .. } = stand().await;
    service.limit(None);
    let (ann, place) = (service.person("ann"), service.channel());
    let asked = service.write(place, ann, "go?");
    for (id, answered) in [
        (asked.to_string(), Some(asked)),
        (format!("{place}/{asked}"), Some(asked)),
        (format!("1/{asked}"), None),
        ("latest".to_owned(), None),
        ("99999999999999999999999".to_owned(), None),
    ] {
        let reply_to = MessageId::parse(&id).ok();
        bot.send(&Draft { reply_to, ..draft(place, &format!("{:.9}", id.len())) }).await.unwrap();
        assert_eq!(service.seen().posts.pop().unwrap().reply_to, answered, "{id}");
    }
}

#[tokio::test]
async fn where_nothing_can_be_read_back_an_answer_is_posted_as_a_message() {
    let Stand { service, bot, .. } = stand().await;
    let (ann, place) = (service.person("ann"), service.channel());
    let asked = service.write(place, ann, "go?");
    service.forget(place);
    bot.send(&Draft { reply_to: Some(message(asked)), ..draft(place, "yes") }).await.unwrap();
    assert_eq!(service.seen().texts(place), ["yes"]);
}

#[tokio::test]
async fn what_addresses_lead_to_is_not_looked_up() {
    let Stand { service, bot, .. } = stand().await;
    let place = service.channel();
    let sent = bot.send(&draft(place, "https://example.com/once")).await.unwrap();
    assert!(!service.seen().posts[0].previews);
    bot.edit(&channel(place), &sent, "https://example.com/twice").await.unwrap();
    assert!(!service.previews(place, sent.as_str().parse().unwrap()));
}
