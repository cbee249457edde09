//! Clicks and commands.

use holdfast_core::chat::SendError;
use holdfast_core::chat::{Button, Click, Look, UserId};
use holdfast_testkit::discord::{Fault, Seen};

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
    assert_eq!((heard.text.as_str(), &heard.id, heard.mentions_us), ("/stop", &message(used), true));
    assert_eq!((heard.channel, heard.parent), (channel(thread), Some(channel(place))));
    assert_eq!((heard.author_name.as_str(), heard.bot), ("ann", false));
    let seen = service.until("the acknowledgement", |seen| seen.acknowledged.contains_key(&used)).await;
    assert_eq!((seen.acknowledged[&used].kind, seen.acknowledged[&used].texts.len()), (5, 0));
    // Only whoever knows who may speak here can say more.
    stand.bot.answer(heard.id.as_str(), "You may not do this here.").await;
    let texts = &service.seen().acknowledged[&used].texts;
    assert_eq!(texts, &[("You may not do this here.".to_owned(), true)]);
    // The answer is in its place: there is no second one.
    stand.bot.answer(heard.id.as_str(), "again").await;
    assert_eq!(service.seen().acknowledged[&used].texts.len(), 1);
}

#[tokio::test]
async fn a_command_that_nobody_answers_says_where_to_look() {
    let stand = stand().await;
    let service = &stand.service;
    let (ann, place) = (service.person("ann"), service.channel());
    let mut ears = stand.listen().await;
    let used = service.slash(place, ann, "stop");
    ears.message().await;
    let answered = |seen: &Seen| seen.acknowledged.get(&used).is_some_and(|a| !a.texts.is_empty());
    let seen = service.until("the answer", answered).await;
    let text = "The answer is in the channel, if you may talk to the agent.";
    assert_eq!(seen.acknowledged[&used].texts, [(text.to_owned(), true)]);
}

#[tokio::test]
async fn a_click_is_acknowledged_while_nobody_takes_what_came_before_it_and_while_all_must_pause() {
    let stand = stand().await;
    let service = &stand.service;
    let (ann, place) = (service.person("ann"), service.channel());
    stand.bot.connect().await.unwrap();
    let asked = stand.bot.send(&draft(place, "go?")).await.unwrap();
    service.fault("POST channels/*/messages", Fault::Limit { after: 60.0, global: true });
    assert!(matches!(stand.bot.send(&draft(place, "x")).await, Err(SendError::Limited { .. })));
    let _ears = stand.hear(1);
    for n in 0..10 {
        service.write(place, ann, n.to_string().as_str());
    }
    let pressed = service.click(place, asked.as_str().parse().unwrap(), ann, "yes");
    service.until("the acknowledgement", |seen| seen.acknowledged.contains_key(&pressed)).await;
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
