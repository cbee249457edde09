use holdfast_core::chat::{Button, Look, Scope};
use holdfast_testkit::telegram::FakeTelegram;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::actions::{message_id, number};
use super::*;

/// How long something that should happen soon may take.
const PATIENCE: Duration = Duration::from_secs(120);
const TOKEN: &str = "123456:ABC-DEF1234ghIkl-zyx57W2v1u123ew11";

fn telegram(base: &str) -> Result<Telegram, BadChannel> {
    // The second caller of a process finds the first one's provider.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Telegram::new(TOKEN.into(), Some(&base.parse().unwrap()))
}

#[test]
fn a_token_names_its_bot_and_anything_else_is_none() {
    assert_eq!(bot_of(TOKEN), Some("123456"));
    for bad in ["", "123456", "123456:", "x:ABCDEFGHIJ", "1:short", "1:ABC/../getMe?", "123456789012345678"] {
        assert_eq!(bot_of(bad), None, "{bad}");
    }
}

#[test]
fn a_token_goes_over_http_only_to_this_machine() {
    for good in ["https://telegram.example", "http://127.0.0.1:8081", "http://localhost/", "http://[::1]:1"] {
        assert!(telegram(good).is_ok(), "{good}");
    }
    for bad in [
        "http://telegram.example",
        "ftp://localhost",
        "https://user:pass@telegram.example",
        "https://telegram.example/?a=b",
        "https://telegram.example/#a",
    ] {
        assert_eq!(telegram(bad).unwrap_err(), BadChannel::Address, "{bad}");
    }
}

#[tokio::test]
async fn no_error_and_no_debug_output_names_the_token() {
    // Nothing listens there: every kind of error would like to name the address.
    let bot = telegram("http://127.0.0.1:9").unwrap();
    let why = bot.connect().await.unwrap_err();
    for text in [format!("{why:?}"), format!("{bot:?}")] {
        assert!(!text.contains("ABC-DEF") && !text.contains("getMe"), "{text}");
    }
}

async fn stand() -> (FakeTelegram, Arc<Telegram>) {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let service = FakeTelegram::start().await;
    let token = service.bot(42);
    let bot = Telegram::new(token.into(), Some(&service.url("a").parse().unwrap())).unwrap();
    (service, Arc::new(bot))
}

fn hear(bot: &Arc<Telegram>) -> mpsc::Receiver<Event> {
    let (sender, events) = mpsc::channel(8);
    let bot = Arc::clone(bot);
    tokio::spawn(async move { bot.listen(sender).await });
    events
}

async fn next(events: &mut mpsc::Receiver<Event>) -> Event {
    timeout(PATIENCE, events.recv()).await.expect("an event").expect("it listens")
}

async fn message(events: &mut mpsc::Receiver<Event>) -> (Incoming, oneshot::Sender<()>) {
    match next(events).await {
        Event::Message(incoming, Some(kept)) => (*incoming, kept),
        other => panic!("{other:?}"),
    }
}

fn channel(id: &str) -> ChannelId {
    ChannelId::parse(id).unwrap()
}

fn draft(to: &str, text: &str) -> Draft {
    let (nonce, channel) = (format!("nonce-{text}"), channel(to));
    Draft { channel, text: text.into(), nonce, reply_to: None, buttons: Vec::new() }
}

#[tokio::test]
async fn an_update_is_offered_until_it_is_kept() {
    let (service, bot) = stand().await;
    for text in ["one", "two"] {
        service.write(7, json!({"text": text}));
    }
    let mut events = hear(&bot);
    assert!(matches!(next(&mut events).await, Event::Ready));
    let (one, kept) = message(&mut events).await;
    let (two, not_kept) = message(&mut events).await;
    assert_eq!((one.text.as_str(), two.text.as_str()), ("one", "two"));
    kept.send(()).unwrap();
    // Nobody keeps the other one, and the process ends.
    drop(events);
    assert_eq!(service.offered(), 2);
    let mut events = hear(&bot);
    assert!(matches!(next(&mut events).await, Event::Ready));
    for text in ["one", "two"] {
        let (again, kept) = message(&mut events).await;
        assert_eq!(again.text, text);
        kept.send(()).unwrap();
    }
    service.until("a poll beyond them", |seen| seen.offered() == 0).await;
    drop(not_kept);
}

#[tokio::test]
async fn a_message_nobody_wants_is_not_offered_again() {
    let (service, bot) = stand().await;
    let mut events = hear(&bot);
    assert!(matches!(next(&mut events).await, Event::Ready));
    service.write(7, json!({"text": "spam"}));
    drop(message(&mut events).await);
    service.until("a poll beyond it", |seen| seen.offered() == 0).await;
}

#[tokio::test]
async fn a_message_says_who_wrote_what_and_where() {
    let (service, bot) = stand().await;
    bot.connect().await.unwrap();
    let mut events = hear(&bot);
    assert!(matches!(next(&mut events).await, Event::Ready));
    let id = service.write(7, json!({"text": "/status"}));
    let (private, kept) = message(&mut events).await;
    drop(kept);
    assert_eq!((private.id.as_str(), private.channel.as_str()), (id.to_string().as_str(), "7"));
    assert_eq!((private.author.as_str(), private.author_name.as_str()), ("7", "Ann Lee"));
    assert_eq!((private.direct, private.bot, private.mentions_us, private.parent), (true, false, false, None));
    assert!(private.age < PATIENCE && private.at > 1_700_000_000_000, "{:?}", private.age);

    let voice = json!({"file_id": "v", "mime_type": "audio/ogg", "file_size": 9});
    let topic = json!({"caption": "hey @BOT_42", "voice": voice, "message_thread_id": 5, "is_topic_message": true});
    service.write(-100, topic);
    let (group, kept) = message(&mut events).await;
    drop(kept);
    assert_eq!((group.channel.as_str(), group.parent, group.direct), ("-100/5", Some(channel("-100")), false));
    assert_eq!((group.text.as_str(), group.mentions_us), ("hey @BOT_42", true));
    assert_eq!((group.attachments[0].kind.as_str(), group.attachments[0].size), ("audio/ogg", 9));

    let ours = json!({"message_id": 1, "chat": {"id": -100}, "from": {"id": 42, "is_bot": true}});
    service.write(-100, json!({"text": "ok", "reply_to_message": ours, "message_thread_id": 9}));
    let (reply, kept) = message(&mut events).await;
    drop(kept);
    assert_eq!((reply.channel.as_str(), reply.mentions_us), ("-100", true), "an answer is no topic");
    service.write(-100, json!({"text": "beep", "from": {"id": 8, "is_bot": true, "first_name": "Other"}}));
    assert!(message(&mut events).await.0.bot);
}

#[tokio::test]
async fn what_waited_is_as_late_as_the_service_says_and_what_comes_then_is_not_late_whatever_clocks_show() {
    for (ahead, hidden) in [(3600, false), (-3600, false), (3600, true), (-3600, true)] {
        let (service, bot) = stand().await;
        if hidden {
            service.hide_clock();
        }
        for (before, text) in [(600, "/stop"), (0, "/status")] {
            service.clock(ahead - before);
            service.write(7, json!({"text": text}));
        }
        let mut events = hear(&bot);
        assert!(matches!(next(&mut events).await, Event::Ready));
        let (old, _) = message(&mut events).await;
        let (new, _) = message(&mut events).await;
        assert_eq!((old.text.as_str(), new.text.as_str()), ("/stop", "/status"));
        assert!((598..720).contains(&old.age.as_secs()), "{ahead} {hidden}: {:?}", old.age);
        assert!(new.age < limits::INBOX_COMMAND_AGE, "{ahead} {hidden}: {:?}", new.age);
        service.until("a poll that waits", |seen| seen.polling.contains_key("a")).await;
        service.write(7, json!({"text": "/stop"}));
        let (live, _) = message(&mut events).await;
        assert_eq!((live.text.as_str(), live.age), ("/stop", Duration::ZERO), "{ahead} {hidden}");
    }
}

#[tokio::test]
async fn what_comes_after_a_pause_may_have_waited() {
    let (service, bot) = stand().await;
    service.clock(3600);
    bot.connect().await.unwrap();
    let boot = bot.http.calendar().boot();
    let after = |pause: Duration| bot.calendar(Some(boot.saturating_sub(pause)), &[]);
    assert_eq!(after(Duration::ZERO), None);
    // The machine slept meanwhile, or the store took nothing.
    let drained = boot.checked_sub(limits::TELEGRAM_LIVE + Duration::from_secs(1));
    if drained.is_some() {
        let now = bot.calendar(drained, &[]).unwrap();
        assert!(now > crate::status_hub::unix_ms() + 3_500_000, "by the service's calendar");
    }
    assert!(bot.calendar(None, &[]).is_some());
}

#[tokio::test]
async fn a_click_is_heard_and_answered() {
    let (service, bot) = stand().await;
    let mut events = hear(&bot);
    assert!(matches!(next(&mut events).await, Event::Ready));
    let buttons = vec![Button { id: "yes".into(), label: "Yes".into(), look: Look::Good }];
    let sent = bot.send(&Draft { buttons, ..draft("7", "go?") }).await.unwrap();
    let pressed = service.click(7, number(&sent).unwrap(), "yes");
    let Event::Click(click) = next(&mut events).await else { panic!() };
    assert_eq!((&click.id, &click.message, click.button.as_str(), click.direct), (&pressed, &sent, "yes", true));
    bot.answer(&click.id, "It is done.").await;
    assert_eq!(service.seen().answered, [(pressed, "It is done.".to_owned())]);
}

#[tokio::test]
async fn a_message_goes_with_its_answer_buttons_and_topic_and_is_changed() {
    let (service, bot) = stand().await;
    let asked = service.write(-100, json!({"text": "go?"}));
    let buttons = vec![Button { id: "yes".into(), label: "Yes".into(), look: Look::Good }];
    let reply_to = message_id(asked);
    let sent = bot.send(&Draft { reply_to, buttons, ..draft("-100/5", "really?") }).await.unwrap();
    let posts = service.seen().posts;
    assert_eq!(posts[0].message, number(&sent).unwrap());
    assert_eq!((posts[0].chat, posts[0].topic, posts[0].reply_to), (-100, Some(5), Some(asked)));
    assert_eq!((posts[0].text.as_str(), &posts[0].buttons[..]), ("really?", &["yes".to_owned()][..]));
    for _ in 0..2 {
        bot.edit(&channel("-100/5"), &sent, "Allowed.").await.unwrap();
    }
    let posts = service.seen().posts;
    assert_eq!((posts[0].text.as_str(), posts[0].buttons.len()), ("Allowed.", 0));
}

#[tokio::test]
async fn what_may_have_been_posted_is_told_as_lost_and_posted_again_when_it_is_wanted() {
    let (service, bot) = stand().await;
    service.cut("sendMessage");
    assert!(matches!(bot.send(&draft("7", "one")).await, Err(SendError::Lost(_))));
    bot.send(&draft("7", "two")).await.unwrap();
    bot.send(&draft("7", "one")).await.unwrap();
    let texts: Vec<_> = service.seen().posts.into_iter().map(|post| post.text).collect();
    assert_eq!(texts, ["one", "two", "one"]);
    assert_eq!(bot.posted(&channel("7"), None, PATIENCE).await, Ok(None));
}

#[tokio::test]
async fn refusals_of_a_message_are_told_apart() {
    let (service, bot) = stand().await;
    service.close(-1, 400, "Bad Request: chat not found");
    service.close(-2, 403, "Forbidden: bot was kicked from the supergroup chat");
    let scope = async |to: &str, text: &str| match bot.send(&draft(to, text)).await {
        Err(SendError::Permanent { scope, .. }) => scope,
        other => panic!("{other:?}"),
    };
    assert_eq!(scope("-1", "x").await, Scope::Channel);
    assert_eq!(scope("-2", "x").await, Scope::Channel);
    assert_eq!(scope("general", "x").await, Scope::Channel);
    assert_eq!(scope("7", &"x".repeat(4097)).await, Scope::Message);
    service.refuse(Some((429, Some(7))));
    let limited = bot.send(&draft("7", "x")).await;
    assert_eq!(limited, Err(SendError::Limited { after: Duration::from_secs(7) }));
    service.refuse(Some((502, None)));
    assert!(matches!(bot.send(&draft("7", "y")).await, Err(SendError::Lost(_))));
    service.refuse(Some((401, None)));
    assert_eq!(scope("7", "z").await, Scope::Seat);
}

#[tokio::test]
async fn a_message_that_never_left_goes_later() {
    // Nothing listens there.
    let bot = telegram("http://127.0.0.1:9").unwrap();
    assert!(matches!(bot.send(&draft("7", "x")).await, Err(SendError::Later(_))));
}

#[tokio::test]
async fn connections_that_cannot_be_are_told_apart() {
    let (service, bot) = stand().await;
    service.refuse(Some((409, None)));
    assert!(matches!(bot.connect().await, Err(Failed::UsedElsewhere(_))));
    service.refuse(Some((429, Some(7))));
    let Err(Failed::ForNow { after, .. }) = bot.connect().await else { panic!() };
    assert_eq!(after, Some(Duration::from_secs(7)));
    service.refuse(Some((401, None)));
    assert_eq!(bot.connect().await, Err(Failed::ForGood("Telegram does not accept the bot's token (401)".into())));
}

#[tokio::test]
async fn signs_are_shown_as_telegram_has_them_and_taken_away() {
    let (service, bot) = stand().await;
    let on = message_id(service.write(7, json!({"text": "go"}))).unwrap();
    let there = channel("7");
    bot.typing(&there).await;
    bot.react(&there, &on, "🤔", true).await;
    bot.react(&there, &on, "🛠️", true).await;
    let seen = service.seen();
    assert_eq!((seen.typing, seen.reactions), (vec![7], vec![(7, 1, "👨‍💻".to_owned())]));
    bot.react(&there, &on, "🛠️", false).await;
    assert!(service.seen().reactions.is_empty());
}

#[tokio::test]
async fn a_file_is_fetched_whole_or_not_at_all() {
    let (service, bot) = stand().await;
    service.file("doc", b"hello".to_vec());
    service.file("none", Vec::new());
    service.file("large", vec![0; usize::try_from(limits::ATTACHMENT_MAX).unwrap() + 1]);
    let mut events = hear(&bot);
    assert!(matches!(next(&mut events).await, Event::Ready));
    service.write(7, json!({"document": {"file_id": "doc", "file_name": "a.txt"}}));
    let (heard, _kept) = message(&mut events).await;
    let file = |id: &str| Attachment { id: id.into(), ..heard.attachments[0].clone() };
    let mut into = tokio::fs::File::from_std(tempfile::tempfile().unwrap());
    assert_eq!(bot.download(&heard, &file("doc"), &mut into).await, Ok(5));
    assert_eq!(bot.download(&heard, &file("none"), &mut into).await, Err("the file is empty".into()));
    let too_large = bot.download(&heard, &file("large"), &mut into).await;
    assert_eq!(too_large, Err("the file is larger than 25 MiB".into()));
    let unknown = bot.download(&heard, &file("other"), &mut into).await.unwrap_err();
    assert!(unknown.contains("wrong file_id"), "{unknown}");
}

#[tokio::test]
async fn a_chat_says_its_name() {
    let (service, bot) = stand().await;
    service.close(-2, 400, "Bad Request: chat not found");
    for (id, name) in [("7", "ann"), ("-100", "group -100"), ("-100/5", "group -100, topic 5")] {
        assert_eq!(bot.examine(&channel(id)).await.unwrap().name, name);
    }
    let refused = bot.examine(&channel("-2")).await.unwrap_err();
    assert!(matches!(refused, SendError::Permanent { scope: Scope::Channel, .. }), "{refused:?}");
}

#[tokio::test]
async fn nobody_is_mentioned_no_command_is_offered_and_nothing_is_looked_up() {
    let (service, bot) = stand().await;
    let text = "🛠️ ask @ann_lee or /stop; npm i @types/node from /usr/lib, see https://t.me/x and a@example.com";
    let sent = bot.send(&draft("-100", text)).await.unwrap();
    let post = service.seen().posts[0].clone();
    assert_eq!((post.text.as_str(), post.alive, post.previews), (text, Vec::new(), false));
    bot.edit(&channel("-100"), &sent, &"@bob ".repeat(200)).await.unwrap();
    let post = service.seen().posts[0].clone();
    assert_eq!((post.alive, post.previews), (Vec::new(), false));
}

#[tokio::test]
async fn what_is_answered_may_be_named_with_its_channel() {
    let (service, bot) = stand().await;
    for (id, answered) in [("9", Some(9)), ("-100/5/9", Some(9)), ("-100/9", None), ("latest", None)] {
        let reply_to = MessageId::parse(id).ok();
        bot.send(&Draft { reply_to, ..draft("-100/5", "yes") }).await.unwrap();
        assert_eq!(service.seen().posts.pop().unwrap().reply_to, answered, "{id}");
    }
}

#[tokio::test]
async fn a_webhook_that_gets_the_messages_is_named() {
    let (service, bot) = stand().await;
    service.webhook();
    let Err(Failed::UsedElsewhere(why)) = bot.connect().await else { panic!() };
    assert!(why.contains("deleteWebhook"), "{why}");
}

/// The environment of a process cannot be changed safely from within, so the test runs itself in another one.
#[tokio::test]
async fn a_service_on_this_machine_is_not_asked_through_a_proxy() {
    const INSIDE: &str = "HOLDFAST_TEST_BEHIND_A_PROXY";
    if std::env::var_os(INSIDE).is_some() {
        let (_service, bot) = stand().await;
        bot.connect().await.unwrap();
        bot.reset();
        return bot.connect().await.unwrap();
    }
    let name = std::thread::current().name().unwrap().to_owned();
    let mut again = tokio::process::Command::new(std::env::current_exe().unwrap());
    // Nothing listens there.
    for variable in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
        again.env(variable, "http://127.0.0.1:9");
    }
    again.env_remove("NO_PROXY").env_remove("no_proxy").env(INSIDE, "1");
    let ran = again.args([name.as_str(), "--exact", "--nocapture"]).output().await.unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success() && said.contains("1 passed"), "{said}");
}
