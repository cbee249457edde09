//! Clicks and commands.

use holdfast_core::chat::{Button, Click, Look, UserId};
use holdfast_testkit::discord::Fault;

use super::*;

const CALLBACK: &str = "POST interactions/*/*/callback";

#[tokio::test]
async fn a_click_is_acknowledged_at_once_and_answered_to_that_person_alone() {
    let stand = stand().await;
    let service = &stand.service;
    let (ann, place) = (service.person("ann"), service.channel());
    let thread = service.thread(place);
    let mut ears = stand.listen().await;
    let buttons = vec![Button { id: "yes".into(), label: "Yes".into(), look: Look::Good }];
    let sent = stand.bot.send(&Draft { buttons, ..draft(thread, "go?") }).await.unwrap();
    assert!(matches!(ears.next().await, Event::Ours(..)));
    let pressed = service.click(thread, sent.as_str().parse().unwrap(), ann, "yes");
    let Event::Click(click) = ears.next().await else { panic!() };
    let expected = Click {
        id: pressed.to_string(),
        message: sent,
        channel: channel(thread),
        parent: Some(channel(place)),
        direct: false,
        user: UserId::parse(&ann.to_string()).unwrap(),
        name: "ann".into(),
        button: "yes".into(),
    };
    assert_eq!(click, expected);
    let seen = service.until("the acknowledgement", |seen| seen.acknowledged.contains_key(&pressed)).await;
    assert_eq!((seen.acknowledged[&pressed].kind, seen.acknowledged[&pressed].texts.len()), (6, 0));
    stand.bot.answer(&click.id, "You may not do this here.").await;
    let texts = &service.seen().acknowledged[&pressed].texts;
    assert_eq!(texts, &[("You may not do this here.".to_owned(), true)]);
}

#[tokio::test]
async fn an_answer_waits_for_the_acknowledgement_and_one_to_an_unknown_click_goes_nowhere() {
    let stand = stand().await;
    let service = &stand.service;
    let (ann, private) = (service.person("ann"), service.direct());
    let mut ears = stand.listen().await;
    let asked = stand.bot.send(&draft(private, "go?")).await.unwrap();
    assert!(matches!(ears.next().await, Event::Ours(..)));
    service.fault(CALLBACK, Fault::Delay(Duration::from_millis(200)));
    let pressed = service.click(private, asked.as_str().parse().unwrap(), ann, "yes");
    let Event::Click(click) = ears.next().await else { panic!() };
    assert!(click.direct);
    stand.bot.answer(&click.id, "done").await;
    assert_eq!(service.seen().acknowledged[&pressed].texts, [("done".to_owned(), true)]);
    let before = service.seen().requests.len();
    stand.bot.answer("12345", "done").await;
    assert_eq!(service.seen().requests.len(), before);
}

#[tokio::test]
async fn a_slash_command_is_what_it_would_be_if_it_were_typed() {
    let stand = stand().await;
    let service = &stand.service;
    let (ann, place) = (service.person("ann"), service.channel());
    let thread = service.thread(place);
    let mut ears = stand.listen().await;
    let used = service.slash(thread, ann, "stop");
    let heard = ears.message().await;
    assert_eq!((heard.text.as_str(), heard.id, heard.mentions_us), ("/stop", message(used), true));
    assert_eq!((heard.channel, heard.parent), (channel(thread), Some(channel(place))));
    assert_eq!((heard.author_name.as_str(), heard.bot), ("ann", false));
    let seen = service.until("the acknowledgement", |seen| seen.acknowledged.contains_key(&used)).await;
    let acknowledged = &seen.acknowledged[&used];
    assert_eq!((acknowledged.kind, &acknowledged.texts[..]), (4, &[("Heard: /stop".to_owned(), true)][..]));
}

#[tokio::test]
async fn commands_are_registered_once() {
    let stand = stand().await;
    let ears = stand.listen().await;
    stand.service.until("three commands", |seen| seen.registered == 3).await;
    drop(ears);
    // Another process of the same bot finds them there.
    let other = Stand { bot: Arc::new(bot(&stand.service, "b", &stand.token)), ..stand };
    let _ears = other.listen().await;
    let seen =
        other.service.until("the look at them", |seen| seen.count("b", "GET applications/*/commands") == 1).await;
    assert_eq!(seen.registered, 3);
}
