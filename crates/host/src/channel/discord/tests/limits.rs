//! Discord's limits.

use holdfast_core::chat::SendError;
use holdfast_testkit::discord::Fault;

use super::*;

const POST: &str = "POST channels/*/messages";

#[tokio::test]
async fn a_short_wait_for_a_limit_is_waited_and_nothing_is_refused() {
    let Stand { service, bot, .. } = stand().await;
    service.limit(Some((2, Duration::from_millis(500))));
    let place = service.channel();
    for n in 0..5 {
        bot.send(&draft(place, &n.to_string())).await.unwrap();
    }
    let seen = service.seen();
    assert_eq!(seen.texts(place), ["0", "1", "2", "3", "4"]);
    assert_eq!(seen.count("a", POST), 5, "none was refused");
}

#[tokio::test]
async fn a_long_wait_is_left_to_whoever_asks_and_other_channels_go_on() {
    let Stand { service, bot, .. } = stand().await;
    service.limit(Some((1, Duration::from_secs(60))));
    let (one, two) = (service.channel(), service.channel());
    bot.send(&draft(one, "first")).await.unwrap();
    let Err(SendError::Limited { after }) = bot.send(&draft(one, "second")).await else { panic!() };
    assert!((50..=60).contains(&after.as_secs()), "{after:?}");
    bot.send(&draft(two, "elsewhere")).await.unwrap();
    assert_eq!(service.seen().count("a", POST), 2, "what would be refused is not asked");
}

#[tokio::test]
async fn a_refusal_for_too_many_says_how_long_to_wait() {
    let Stand { service, bot, .. } = stand().await;
    let place = service.channel();
    service.fault(POST, Fault::Limit { after: 7.5, global: false });
    let limited = bot.send(&draft(place, "x")).await.unwrap_err();
    assert_eq!(limited, SendError::Limited { after: Duration::from_millis(7500) });
    bot.send(&draft(place, "y")).await.unwrap();
}

#[tokio::test]
async fn a_limit_for_all_keeps_everything_back() {
    let Stand { service, bot, .. } = stand().await;
    let (one, two) = (service.channel(), service.channel());
    service.fault(POST, Fault::Limit { after: 60.0, global: true });
    assert!(matches!(bot.send(&draft(one, "x")).await, Err(SendError::Limited { .. })));
    assert!(matches!(bot.send(&draft(two, "x")).await, Err(SendError::Limited { .. })));
    bot.typing(&channel(two)).await;
    assert_eq!(service.seen().requests.len(), 1);
}
