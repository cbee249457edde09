//! Logging in, and what keeps the connection.

use holdfast_testkit::discord::{Break, Fault, MESSAGE_CONTENT};

use super::*;

#[tokio::test]
async fn it_connects_says_so_and_leaves_when_nobody_listens() {
    let stand = stand().await;
    assert_eq!(stand.bot.prove().await.unwrap().name, format!("bot_{BOT}"));
    let ears = stand.listen().await;
    assert_eq!(stand.service.seen().connected["a"], 1);
    drop(ears);
    stand.service.until("the end of the connection", |seen| seen.connected.is_empty()).await;
}

#[tokio::test]
async fn a_connection_that_ends_is_resumed_and_nothing_is_missed() {
    let stand = stand().await;
    let service = &stand.service;
    let (ann, place) = (service.person("ann"), service.channel());
    let mut ears = stand.listen().await;
    for (n, how) in
        [Break::Drop, Break::Reset, Break::Reconnect, Break::Close(4000), Break::Invalid(true)].into_iter().enumerate()
    {
        service.disturb("a", how);
        let text = format!("during {how:?}");
        service.write(place, ann, text.as_str());
        let (mut heard, mut ready) = (false, false);
        while !(heard && ready) {
            match ears.next().await {
                Event::Ready => ready = true,
                Event::Message(message, None) => heard |= message.text == text,
                other => panic!("{other:?}"),
            }
        }
        let seen = service.seen();
        assert_eq!((seen.identified.len(), seen.resumed.len()), (1, n + 1), "{how:?}");
    }
}

#[tokio::test]
async fn a_session_that_is_gone_is_begun_anew() {
    let stand = stand().await;
    let service = &stand.service;
    let (ann, place) = (service.person("ann"), service.channel());
    let mut ears = stand.listen().await;
    service.disturb("a", Break::Invalid(false));
    assert!(matches!(ears.next().await, Event::Ready));
    service.write(place, ann, "there?");
    assert_eq!(ears.message().await.text, "there?");
    assert_eq!(service.seen().identified.len(), 2);
}

#[tokio::test]
async fn a_connection_that_answers_nothing_is_replaced() {
    let stand = stand().await;
    let service = &stand.service;
    let (ann, place) = (service.person("ann"), service.channel());
    service.heartbeats(Duration::from_secs(1));
    let mut ears = stand.listen().await;
    service.until("a heartbeat", |seen| seen.heartbeats > 0).await;
    service.mute(true);
    service.write(place, ann, "hello?");
    // On a busy machine an answer may have been late before.
    let before = service.seen().resumed.len();
    service.until("the next connection", |seen| seen.resumed.len() > before).await;
    service.mute(false);
    let heard = loop {
        match ears.next().await {
            Event::Ready => {}
            Event::Message(incoming, None) => break incoming,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(heard.text, "hello?");
    assert!(matches!(ears.next().await, Event::Ready));
}

#[tokio::test]
async fn a_gateway_that_takes_nobody_is_left_to_the_seat_after_a_while() {
    let stand = stand().await;
    let mut ears = stand.listen().await;
    stand.service.open(false);
    // The library waits longer each time, a minute in all; here that is at once.
    tokio::time::pause();
    stand.service.disturb("a", Break::Drop);
    let Failed::ForNow { reason, .. } = (&mut ears.listening).await.unwrap() else { panic!() };
    assert!(reason.starts_with("Discord's gateway cannot be reached"), "{reason}");
}

#[tokio::test]
async fn a_token_that_does_not_count_any_more_is_for_good() {
    let stand = stand().await;
    let mut ears = stand.listen().await;
    stand.service.revoke(&stand.token);
    let Failed::ForGood(reason) = ears.end().await else { panic!() };
    assert!(reason.contains("channel setup") && reason.ends_with("(4004)"), "{reason}");
    let Err(Failed::ForGood(reason)) = stand.bot.connect().await else { panic!() };
    assert!(reason.contains("channel setup") && reason.ends_with("(401)"), "{reason}");
    assert_eq!(stand.service.seen().identified.len(), 1, "it did not log in again");
}

#[tokio::test]
async fn a_missing_intent_is_for_good_and_named() {
    let stand = stand().await;
    stand.service.intents(!MESSAGE_CONTENT);
    let Err(Failed::ForGood(reason)) = stand.bot.connect().await else { panic!() };
    assert!(reason.contains("Message Content Intent") && reason.ends_with("(4014)"), "{reason}");
}

#[tokio::test]
async fn whoever_logged_in_too_often_today_waits() {
    let stand = stand().await;
    stand.service.identifies_left(0);
    let Err(Failed::ForNow { after, .. }) = stand.bot.connect().await else { panic!() };
    assert_eq!(after, Some(Duration::from_secs(3600)));
    assert!(stand.service.seen().identified.is_empty());
}

#[tokio::test]
async fn a_pause_the_service_asks_for_while_connecting_is_told() {
    let stand = stand().await;
    stand.service.fault("GET gateway/bot", Fault::Limit { after: 9.0, global: false });
    let Err(Failed::ForNow { after, .. }) = stand.bot.connect().await else { panic!() };
    assert_eq!(after, Some(Duration::from_secs(9)));
}

#[tokio::test]
async fn a_gateway_that_does_not_let_the_bot_in_gets_longer_each_time() {
    let Stand { service, bot, .. } = stand().await;
    service.mute(true);
    // No connection is given up for want of an answer meanwhile.
    service.heartbeats(Duration::from_secs(600));
    for (n, longest) in [30, 60, 90, 90].into_iter().enumerate() {
        let connecting = tokio::spawn({
            let bot = Arc::clone(&bot);
            async move { bot.connect().await }
        });
        service.until("the login", |seen| seen.identified.len() == n + 1).await;
        // The rest of the wait is skipped; the service has nothing to say in it.
        tokio::time::pause();
        let before = tokio::time::Instant::now();
        assert!(matches!(connecting.await.unwrap(), Err(Failed::ForNow { .. })));
        let waited = before.elapsed().as_secs();
        assert!((longest - 20..=longest).contains(&waited), "{waited} of {longest} s");
        tokio::time::resume();
    }
}

#[tokio::test]
async fn the_configured_gateway_is_dialled_instead_of_the_named_one() {
    let stand = stand().await;
    let (base, gateway) =
        (stand.service.url("a").parse().unwrap(), stand.service.gateway_url("other").parse().unwrap());
    let bot = Discord::new(stand.token.as_str().into(), Some(&base), Some(&gateway)).unwrap();
    bot.connect().await.unwrap();
    assert_eq!(stand.service.seen().identified, ["other"]);
}

#[tokio::test]
async fn a_token_goes_over_http_only_to_this_machine() {
    let stand = stand().await;
    let new = |base: &str, gateway: Option<&str>| {
        let gateway = gateway.map(|url| url.parse().unwrap());
        Discord::new(stand.token.as_str().into(), Some(&base.parse().unwrap()), gateway.as_ref()).err()
    };
    assert_eq!(new("https://discord.example", Some("https://gateway.example")), None);
    assert_eq!(new("http://discord.example", None), Some(crate::channel::BadChannel::Address));
    let clear = new("https://discord.example", Some("http://gateway.example"));
    assert_eq!(clear, Some(crate::channel::BadChannel::Address));
}

#[tokio::test]
async fn no_error_and_no_debug_output_names_the_token() {
    let Stand { service, token, bot } = stand().await;
    drop(service);
    let why = bot.connect().await.unwrap_err();
    let sent = bot.send(&draft(5, "x")).await.unwrap_err();
    let secret = token.rsplit('.').next().unwrap();
    for text in [format!("{why:?}"), format!("{bot:?}"), format!("{sent:?}"), format!("{:?}", bot.rest)] {
        assert!(!text.contains(secret), "{text}");
    }
}
