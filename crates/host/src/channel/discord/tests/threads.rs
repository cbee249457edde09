//! Where something may stand that nobody was told of.

use holdfast_core::chat::UserId;
use holdfast_core::chat::inbox::Thread;
use holdfast_core::limits;
use holdfast_testkit::discord::Fault;

use super::*;

fn thread(id: u64, parent: u64, last: Option<u64>) -> Thread {
    Thread { channel: channel(id), parent: channel(parent), last: last.map(message) }
}

#[tokio::test]
async fn open_threads_of_these_channels_are_found_the_newest_first() {
    let Stand { service, bot, .. } = stand().await;
    let (ann, place, other) = (service.person("ann"), service.channel(), service.channel());
    let (quiet, one, two) = (service.thread(place), service.thread(place), service.thread(place));
    service.write(service.thread(other), ann, "elsewhere");
    let archived = service.thread(place);
    service.archive(archived);
    let last = [two, one].map(|thread| service.write(thread, ann, "hey"));
    let of = [channel(place)];
    let expected = [thread(quiet, place, None), thread(one, place, Some(last[1])), thread(two, place, Some(last[0]))];
    assert_eq!(bot.threads(&of).await.unwrap(), expected);
    assert_eq!(bot.threads(&of).await.unwrap(), expected);
    assert_eq!(service.seen().count("a", "GET channels/*"), 1, "where a channel is, it stays");
    // Where they belong is known from then on.
    let missed = bot.fetch_after(&channel(one), &message(1)).await.unwrap();
    assert_eq!(missed.messages[0].parent, Some(channel(place)));
    assert_eq!(service.seen().count("a", "GET channels/*"), 1);
}

#[tokio::test]
async fn what_is_closed_or_has_no_threads_is_no_reason_to_find_none() {
    let Stand { service, bot, .. } = stand().await;
    let (ann, place, closed) = (service.person("ann"), service.channel(), service.channel());
    let open = service.thread(place);
    let last = service.write(open, ann, "hey");
    service.thread(closed);
    service.forbid(closed, true);
    let private = service.direct_of(BOT, ann);
    let of = [channel(closed), channel(private), ChannelId::parse("general").unwrap(), channel(place)];
    assert_eq!(bot.threads(&of).await.unwrap(), [thread(open, place, Some(last))]);
    service.fault("GET guilds/*/threads/active", Fault::Refuse(403));
    assert_eq!(bot.threads(&of).await.unwrap(), []);
    service.fault("GET guilds/*/threads/active", Fault::Refuse(502));
    assert!(bot.threads(&of).await.is_err(), "it may be told later");
}

#[tokio::test]
async fn of_very_many_threads_the_newest_are_found() {
    let Stand { service, bot, .. } = stand().await;
    let (ann, place) = (service.person("ann"), service.channel());
    let threads: Vec<u64> = (0..=limits::INBOX_THREADS).map(|_| service.thread(place)).collect();
    for thread in threads.iter().rev() {
        service.write(*thread, ann, "hey");
    }
    let found = bot.threads(&[channel(place)]).await.unwrap();
    let found: Vec<_> = found.into_iter().map(|thread| thread.channel).collect();
    let expected = threads.iter().take(limits::INBOX_THREADS).map(|thread| channel(*thread));
    assert!(found.into_iter().eq(expected));
}

#[tokio::test]
async fn the_place_where_the_bot_is_alone_with_a_person_is_found_and_made_once() {
    let Stand { service, bot, .. } = stand().await;
    let ann = service.person("ann");
    let person = |id: u64| UserId::parse(&id.to_string()).unwrap();
    let place = bot.direct(&person(ann)).await.unwrap().unwrap();
    assert_eq!(place, channel(service.direct_of(BOT, ann)));
    assert_eq!(bot.direct(&person(ann)).await, Ok(Some(place.clone())));
    service.write(service.direct_of(BOT, ann), ann, "in private");
    let missed = bot.fetch_after(&place, &message(1)).await.unwrap();
    assert!(missed.messages[0].direct);
    assert_eq!(bot.direct(&person(BOT)).await, Ok(None));
    service.fault("POST users/@me/channels", Fault::Refuse(502));
    assert!(bot.direct(&person(ann)).await.is_err());
}
