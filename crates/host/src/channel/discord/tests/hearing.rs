//! What is heard.

use holdfast_testkit::discord::{Break, Fault, Written};
use serde_json::json;

use super::*;

#[tokio::test]
async fn a_message_says_who_wrote_what_and_where() {
    let stand = stand().await;
    let service = &stand.service;
    let (ann, place) = (service.person("ann"), service.channel());
    let mut ears = stand.listen().await;
    let files = vec![("a.png".to_owned(), "image/png".to_owned(), vec![1, 2, 3])];
    let id = service.write(place, ann, Written { text: "  look  ".into(), files, ..Written::default() });
    let heard = ears.message().await;
    assert_eq!((heard.id, heard.channel, heard.parent), (message(id), channel(place), None));
    assert_eq!((heard.author.as_str(), heard.author_name.as_str()), (ann.to_string().as_str(), "ann"));
    assert_eq!((heard.text.as_str(), heard.direct, heard.bot, heard.mentions_us), ("look", false, false, false));
    let file = &heard.attachments[0];
    assert_eq!((file.name.as_str(), file.kind.as_str(), file.size), ("a.png", "image/png", 3));
    assert_eq!(heard.at, (id >> 22) + 1_420_070_400_000);
    assert!(heard.age < PATIENCE, "{:?}", heard.age);
}

#[tokio::test]
async fn naming_the_bot_or_answering_it_is_told_and_its_name_goes() {
    let stand = stand().await;
    let service = &stand.service;
    let (ann, place) = (service.person("ann"), service.channel());
    let mut ears = stand.listen().await;
    service.write(place, ann, format!("<@{BOT}> /status").as_str());
    let heard = ears.message().await;
    assert_eq!((heard.text.as_str(), heard.mentions_us), ("/status", true));
    let ours = stand.bot.send(&draft(place, "done")).await.unwrap();
    let Event::Ours(there, which) = ears.next().await else { panic!() };
    assert_eq!((there, &which), (channel(place), &ours));
    let reply_to = ours.as_str().parse().ok();
    service.write(place, ann, Written { text: "thanks".into(), reply_to, ..Written::default() });
    let heard = ears.message().await;
    assert_eq!((heard.text.as_str(), heard.mentions_us), ("thanks", true));
}

#[tokio::test]
async fn other_bots_are_told_from_people() {
    let stand = stand().await;
    let place = stand.service.channel();
    let mut ears = stand.listen().await;
    stand.service.bot(BOT + 1);
    stand.service.write(place, BOT + 1, "beep");
    let heard = ears.message().await;
    assert_eq!((heard.text.as_str(), heard.bot), ("beep", true));
}

#[tokio::test]
async fn threads_belong_to_their_channel_and_private_conversations_to_nobody() {
    let stand = stand().await;
    let service = &stand.service;
    let (ann, place) = (service.person("ann"), service.channel());
    let before = service.thread(place);
    let mut ears = stand.listen().await;
    let (since, private) = (service.thread(place), service.direct());
    for (there, parent, direct) in
        [(before, Some(channel(place)), false), (since, Some(channel(place)), false), (private, None, true)]
    {
        service.write(there, ann, "hey");
        let heard = ears.message().await;
        assert_eq!((heard.channel, heard.parent, heard.direct), (channel(there), parent, direct));
    }
    service.write(private, ann, "again");
    ears.message().await;
    assert_eq!(service.seen().count("a", "GET channels/*"), 0, "the events say all of it");
}

#[tokio::test]
async fn a_message_waits_in_order_until_it_is_known_where_it_belongs_and_nothing_else_waits_for_it() {
    let stand = stand().await;
    let service = &stand.service;
    let (ann, place) = (service.person("ann"), service.channel());
    let mut ears = stand.listen().await;
    let hidden = service.hidden_thread(place);
    for _ in 0..2 {
        service.fault("GET channels/*", Fault::Refuse(500));
    }
    service.fault("GET channels/*", Fault::Hang);
    for text in ["one", "two"] {
        service.write(hidden, ann, text);
    }
    service.write(place, ann, "elsewhere");
    let private = service.direct();
    service.write(private, ann, "in private");
    assert_eq!(ears.message().await.text, "elsewhere");
    let heard = ears.message().await;
    assert_eq!((heard.text.as_str(), heard.direct), ("in private", true));
    service.until("the third question", |seen| seen.count("a", "GET channels/*") == 3).await;
    service.write(hidden, ann, "three");
    service.release();
    for text in ["one", "two", "three"] {
        let heard = ears.message().await;
        assert_eq!((heard.text.as_str(), heard.parent), (text, Some(channel(place))));
    }
    assert_eq!(service.seen().count("a", "GET channels/*"), 3);
}

#[tokio::test]
async fn a_message_of_a_channel_that_discord_does_not_explain_is_heard_as_one_of_its_own() {
    let stand = stand().await;
    let service = &stand.service;
    let (ann, place) = (service.person("ann"), service.channel());
    let mut ears = stand.listen().await;
    let hidden = service.hidden_thread(place);
    service.fault("GET channels/*", Fault::Refuse(403));
    service.write(hidden, ann, "hey");
    let heard = ears.message().await;
    assert_eq!((heard.channel, heard.parent, heard.direct), (channel(hidden), None, false));
}

#[tokio::test]
async fn ours_is_only_what_was_posted_and_neither_what_one_person_sees_nor_what_discord_says_of_the_bot() {
    let stand = stand().await;
    let service = &stand.service;
    let (ann, place) = (service.person("ann"), service.channel());
    let mut ears = stand.listen().await;
    service.happens(place, BOT, 7);
    service.happens(place, BOT, 6);
    let used = service.slash(place, ann, "status");
    let heard = ears.message().await;
    stand.bot.answer(heard.id.as_str(), "You may not do this here.").await;
    service.until("the answer", |seen| seen.acknowledged.get(&used).is_some_and(|a| !a.texts.is_empty())).await;
    let asked = stand.bot.send(&draft(place, "go?")).await.unwrap();
    let Event::Ours(_, first) = ears.next().await else { panic!() };
    assert_eq!(first, asked);
    let clicked = service.click(place, asked.as_str().parse().unwrap(), ann, "yes");
    let Event::Click(click) = ears.next().await else { panic!() };
    stand.bot.answer(&click.id, "done").await;
    service.until("the answer", |seen| seen.acknowledged.get(&clicked).is_some_and(|a| !a.texts.is_empty())).await;
    let answer = stand.bot.send(&Draft { reply_to: Some(asked), ..draft(place, "an answer") }).await.unwrap();
    let Event::Ours(_, second) = ears.next().await else { panic!() };
    assert_eq!(second, answer);
    let there = stand.bot.posted(&channel(place), None, PATIENCE).await.unwrap().unwrap();
    assert_eq!(there.into_iter().map(|posted| posted.text).collect::<Vec<_>>(), ["go?", "an answer"]);
}

#[tokio::test]
async fn many_messages_come_in_order_however_slowly_they_are_taken() {
    let stand = stand().await;
    let service = &stand.service;
    let (ann, place) = (service.person("ann"), service.channel());
    stand.bot.connect().await.unwrap();
    let mut ears = stand.hear(1);
    assert!(matches!(ears.next().await, Event::Ready));
    for n in 0..1000 {
        service.write(place, ann, n.to_string().as_str());
    }
    for n in 0..1000 {
        assert_eq!(ears.message().await.text, n.to_string());
    }
    assert_eq!(service.seen().identified.len(), 1);
}

#[tokio::test]
async fn what_a_message_has_beside_its_text_is_said_and_what_is_forwarded_is_no_command() {
    let stand = stand().await;
    let service = &stand.service;
    let (ann, place) = (service.person("ann"), service.channel());
    let mut ears = stand.listen().await;
    let file = json!({"id": "77", "filename": "log.txt", "size": 3, "url": "https://cdn.discordapp.com/log.txt"});
    let forwarded = |text: &str| json!({"message_snapshots": [{"message": {"content": text, "attachments": [file]}}]});
    let answers =
        json!([{"answer_id": 1, "poll_media": {"text": "yes"}}, {"answer_id": 2, "poll_media": {"text": "no"}}]);
    let poll = json!({"poll": {"question": {"text": "go?"}, "answers": answers}});
    let sticker = json!({"sticker_items": [{"id": "1", "name": "wave", "format_type": 1}]});
    for (text, more, heard, files) in [
        ("", forwarded("/stop"), "[forwarded]\n/stop", 1),
        ("", forwarded(""), "[forwarded]", 1),
        ("", poll, "[poll: go?: yes / no]", 0),
        ("hi", sticker, "hi\n\n[sticker: wave]", 0),
        ("", json!({"embeds": [{}]}), "[a message without text]", 0),
    ] {
        service.write(place, ann, Written { text: text.into(), more, ..Written::default() });
        let incoming = ears.message().await;
        assert_eq!((incoming.text.as_str(), incoming.attachments.len()), (heard, files));
    }
}

#[tokio::test]
async fn only_what_was_missed_is_late_whatever_this_machines_clock_shows() {
    for ahead in [3600, -3600] {
        let stand = stand().await;
        let service = &stand.service;
        let (ann, place) = (service.person("ann"), service.channel());
        service.clock(ahead);
        let mut ears = stand.listen().await;
        service.write(place, ann, "now");
        assert!(ears.message().await.age < PATIENCE);
        service.slash(place, ann, "stop");
        assert!(ears.message().await.age < PATIENCE);
        let begins: u64 = stand.bot.moment().unwrap().as_str().parse().unwrap();
        service.mute(true);
        for (before, text) in [(600, "missed long ago"), (0, "missed just now")] {
            service.clock(ahead - before);
            service.write(place, ann, text);
        }
        service.disturb("a", Break::Drop);
        service.mute(false);
        let late = |age: Duration| (598..900).contains(&age.as_secs());
        let (old, new) = (ears.message().await, ears.message().await);
        assert!(late(old.age) && new.age < PATIENCE, "{ahead}: {:?} {:?}", old.age, new.age);
        // What a fetch brings is judged alike.
        let (at, before) = (channel(place), message(old.id.as_str().parse::<u64>().unwrap() - 1));
        let fetched = stand.bot.fetch_after(&at, &before).await.unwrap();
        let ages: Vec<_> = fetched.messages.into_iter().map(|m| (m.text, m.age)).collect();
        let age = |text: &str| ages.iter().find(|(other, _)| other == text).unwrap().1;
        assert!(late(age("missed long ago")) && age("missed just now") < PATIENCE, "{ahead}: {ages:?}");
        assert!(
            begins < new.id.as_str().parse().unwrap(),
            "a channel that is bound now begins before what is written now"
        );
    }
}
