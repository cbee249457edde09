//! Where an agent's words go that answer a message, and what becomes of those that cannot.

use super::*;

/// Ann may speak in `c1`, in its threads, and alone with the bot.
async fn seat() -> Seat {
    let mut seat = Seat::new();
    seat.edit(|config| config.direct = Some("agent".into()));
    seat.serve_and_follow().await;
    seat
}

/// Somebody writes there, and the agent has it.
async fn write(seat: &Seat, incoming: Incoming) {
    let text = incoming.text.clone();
    seat.hear(Event::Message(Box::new(incoming), None)).await;
    assert_eq!(super::inbound::take(seat).await, text);
}

fn in_thread(n: u64, thread: &str) -> Incoming {
    Incoming { channel: channel(thread), parent: Some(channel("c1")), ..message(n, "in a thread") }
}

fn privately(n: u64) -> Incoming {
    Incoming { channel: channel("d1"), direct: true, ..message(n, "in private") }
}

async fn say(seat: &Seat, reply_to: Option<MessageId>, key: &str) -> Result<(), DeskError> {
    seat.desk.say("agent", format!("words {key}"), reply_to, key.into()).await
}

#[tokio::test]
async fn a_reply_goes_to_the_thread_or_the_private_conversation_of_what_it_answers() {
    let seat = seat().await;
    write(&seat, in_thread(1, "t1")).await;
    write(&seat, privately(2)).await;
    write(&seat, message(3, "in the channel")).await;
    for (key, to) in [("a", Some(id(1))), ("b", Some(id(2))), ("c", Some(id(3))), ("d", None), ("e", Some(id(9)))] {
        say(&seat, to, key).await.unwrap();
    }
    say(&seat, MessageId::parse(&format!("t1/{}", id(1))).ok(), "f").await.unwrap();
    say(&seat, MessageId::parse(&format!("t2/{}", id(1))).ok(), "g").await.unwrap();
    seat.service.until("all", |world| world.posts.len() == 7).await;
    assert_eq!(seat.service.texts("t1"), ["words a", "words f"]);
    assert_eq!(seat.service.texts("d1"), ["words b"]);
    assert_eq!(seat.service.texts("c1"), ["words c", "words d", "words e", "words g"]);
}

#[tokio::test]
async fn a_reply_to_a_place_where_its_agent_is_not_heard_any_more_goes_to_its_channel() {
    let seat = seat().await;
    write(&seat, privately(1)).await;
    seat.edit(|config| config.direct = None);
    // The change is in force once what comes after it is answered.
    seat.edit(|config| config.people.push("bob".into()));
    seat.until("the change", |status| status.people.len() == 2).await;
    say(&seat, Some(id(1)), "a").await.unwrap();
    seat.service.until("the words", |world| world.posts.len() == 1).await;
    assert_eq!(seat.service.texts("c1"), ["words a"]);
}

#[tokio::test]
async fn one_agent_does_not_answer_what_was_written_to_another() {
    let mut seat = Seat::new();
    seat.edit(|config| {
        let mut other = config.bindings[0].clone();
        (other.name, other.channel, other.transcript) = ("other".into(), "c2".into(), None);
        config.bindings.push(other);
    });
    seat.serve_and_follow().await;
    write(&seat, in_thread(1, "t1")).await;
    seat.desk.say("other", "hi".into(), Some(id(1)), "k".into()).await.unwrap();
    seat.service.until("the words", |world| world.posts.len() == 1).await;
    assert_eq!(seat.service.texts("c2"), ["hi"]);
}

#[tokio::test]
async fn words_that_were_said_elsewhere_under_the_same_name_are_told_so() {
    let seat = seat().await;
    write(&seat, in_thread(1, "t1")).await;
    say(&seat, Some(id(1)), "a").await.unwrap();
    seat.service.until("the words", |world| world.posts.len() == 1).await;
    assert_eq!(say(&seat, Some(id(1)), "a").await, Ok(()));
    let refused = say(&seat, None, "a").await.unwrap_err();
    assert_eq!((refused.code(), refused.to_string().contains("channel t1")), ("invalid_request", true), "{refused}");
    assert_eq!(seat.service.world().posts.len(), 1);
}

#[tokio::test]
async fn a_reply_where_nothing_may_be_posted_is_refused_and_elsewhere_it_is_not() {
    let seat = seat().await;
    write(&seat, in_thread(1, "t1")).await;
    seat.service.refusals.lock().push(super::fake::channel_is_gone());
    say(&seat, Some(id(1)), "a").await.unwrap();
    let refused = soon("word of the thread", async {
        let mut n = 0;
        loop {
            n += 1;
            // What is taken before the service refused waits there.
            if let Err(refused) = say(&seat, Some(id(1)), &format!("b{n}")).await {
                return refused;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    assert_eq!(refused.code(), "channel_parked");
    assert_eq!(say(&seat, None, "c").await, Ok(()));
}

#[tokio::test]
async fn where_there_is_no_room_for_another_channel_whoever_speaks_there_is_told_so() {
    let seat = seat().await;
    // Each of these waits for ever.
    seat.service.hangs.store(true, Ordering::SeqCst);
    for n in 1..=limits::OUTBOX_LANES as u64 {
        write(&seat, in_thread(n, &format!("t{n}"))).await;
        say(&seat, Some(id(n)), &n.to_string()).await.unwrap();
    }
    write(&seat, in_thread(1000, "t1000")).await;
    let refused = say(&seat, Some(id(1000)), "late").await.unwrap_err();
    assert_eq!((refused.code(), refused), ("unavailable", super::super::answers::no_room()));
    assert_eq!(seat.desk.test("agent").await.unwrap_err().code(), "unavailable");
    assert_eq!(say(&seat, Some(id(1)), "more").await, Ok(()), "in a channel that has its place");
}

#[tokio::test]
async fn of_very_many_callers_that_speak_at_once_some_are_told_to_come_again() {
    let seat = seat().await;
    let all = (0..limits::FORWARDER_SAYS + limits::FORWARDER_REQUESTS).map(|n| {
        let desk = seat.desk.clone();
        async move { desk.say("agent", "x".into(), None, n.to_string()).await }
    });
    let ended = futures_util::future::join_all(all).await;
    // However fast the store is, nobody is left without an answer.
    let late = |result: &Result<(), DeskError>| matches!(result, Err(error) if error.code() == "unavailable");
    assert!(ended.iter().all(|result| result.is_ok() || late(result)), "{ended:?}");
    let said = ended.iter().filter(|result| result.is_ok()).count();
    assert!(said >= limits::FORWARDER_SAYS, "{said}");
    seat.service.until("all that were taken", |world| world.posts.len() == said).await;
}

#[tokio::test]
async fn a_channel_is_shown_by_its_name() {
    let seat = seat().await;
    let name = |status: &ForwarderStatus| status.bindings[0].channel_name.clone();
    seat.until("its name", |status| name(status).as_deref() == Some("#c1")).await;
    seat.edit(|config| config.bindings[0].channel = "c2".into());
    seat.until("the other's name", |status| name(status).as_deref() == Some("#c2")).await;
    assert_eq!(seat.desk.examine(channel("c3")).await.unwrap().name, "#c3");
}
