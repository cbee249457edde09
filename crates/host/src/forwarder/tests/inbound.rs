//! From channels to agents.

use holdfast_core::chat::Click;
use holdfast_core::chat::UserId;
use holdfast_core::chat::asks::Verdict;
use holdfast_core::chat::inbox;
use tokio::sync::oneshot;

use super::*;

/// The files that the agent of the `inbox` adapter finds, by their texts.
fn found(seat: &Seat) -> Vec<(PathBuf, String)> {
    let folder = crate::deliver::inbox_folder(&seat.folder.path().join("seat"), "agent").join("new");
    let Ok(files) = std::fs::read_dir(folder) else { return Vec::new() };
    let text = |path: PathBuf| {
        let letter: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).ok()?).ok()?;
        Some((path, letter["content"].as_str()?.to_owned()))
    };
    files.filter_map(|file| text(file.ok()?.path())).collect()
}

/// The agent takes its next message.
pub(super) async fn take(seat: &Seat) -> String {
    soon("a message in the agent's folder", async {
        loop {
            if let Some((path, text)) = found(seat).pop() {
                std::fs::remove_file(path).unwrap();
                return text;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
}

#[tokio::test]
async fn a_persons_message_is_stored_before_it_is_acknowledged_and_reaches_the_agent_once() {
    let mut seat = Seat::new();
    seat.serve_and_follow().await;
    let (kept, told) = oneshot::channel();
    seat.hear(Event::Message(Box::new(message(1, "hello")), Some(kept))).await;
    soon("word that it is kept", told).await.unwrap();
    seat.die().await;
    seat.service.missed.lock().extend([message(1, "hello"), message(2, "missed")]);
    seat.serve_and_follow().await;
    assert_eq!(take(&seat).await, "hello");
    assert_eq!(take(&seat).await, "missed");
    seat.hear(Event::Message(Box::new(message(3, "more")), None)).await;
    assert_eq!(take(&seat).await, "more");
    let last = seat.desk.fetch("agent", 2).await.unwrap();
    assert_eq!(last.iter().map(|m| m.text.as_str()).collect::<Vec<_>>(), ["missed", "more"]);
    seat.until("rest", |status| status.bindings[0].waiting_in == 0).await;
    assert_eq!(found(&seat), []);
}

#[tokio::test]
async fn who_is_not_admitted_is_not_heard_until_they_paired() {
    let mut seat = Seat::new();
    seat.edit(|config| config.people.clear());
    seat.serve_and_follow().await;
    let (kept, told) = oneshot::channel();
    seat.hear(Event::Message(Box::new(message(1, "hello")), Some(kept))).await;
    soon("word that nobody wants it", told).await.unwrap();
    assert_eq!(seat.desk.pair_typed("AAAAAA".into()).await, Err(DeskError::WrongCode));
    seat.desk.pair_open().await.unwrap();
    let mut asks = message(2, "let me in");
    asks.mentions_us = true;
    seat.hear(Event::Message(Box::new(asks), None)).await;
    let world = seat.service.until("the code", |world| world.posts.len() == 1).await;
    let code = world.posts[0].2.split("**").nth(1).unwrap().to_owned();
    assert_eq!(seat.desk.pair_typed(code).await, Ok(("ann".into(), "Ann".into())));
    seat.hear(Event::Message(Box::new(message(3, "now")), None)).await;
    assert_eq!(take(&seat).await, "now");
    assert_eq!(found(&seat), []);
}

#[tokio::test]
async fn what_people_ask_of_the_bot_is_answered_by_it() {
    let mut seat = Seat::new();
    seat.serve_and_follow().await;
    for (n, text) in [(1, "/status"), (2, "/seat"), (3, "/stop")] {
        seat.hear(Event::Message(Box::new(message(n, text)), None)).await;
        seat.service.until(text, |world| world.posts.len() as u64 == n).await;
    }
    let texts = seat.service.texts("c1");
    assert!(texts[0].contains("agent.jsonl"), "{}", texts[0]);
    assert_eq!(
        texts[1],
        format!("This bot runs on {} (process {}, generation 1).", crate::engines::machine_name(), std::process::id())
    );
    assert_eq!(texts[2], "Asked the agent to stop (file `stop` in its folder).");
    assert_eq!(found(&seat), []);
}

fn question(request: &str) -> Question {
    Question {
        request: request.into(),
        binding: "agent".into(),
        tool: "Bash".into(),
        description: String::new(),
        preview: "rm -r build".into(),
        left_out: 0,
    }
}

fn click(request: &str, what: &str, user: &str) -> Event {
    Event::Click(Click {
        id: format!("click-{user}"),
        message: id(1000),
        channel: channel("c1"),
        parent: None,
        direct: false,
        user: UserId::parse(user).unwrap(),
        name: user.into(),
        button: format!("ask:{request}:{what}"),
    })
}

#[tokio::test]
async fn a_prompt_is_answered_by_who_may_and_its_message_says_what_became_of_it() {
    let mut seat = Seat::new();
    seat.serve_and_follow().await;
    let desk = seat.desk.clone();
    let asking = tokio::spawn(async move { desk.ask(question("r1")).await });
    seat.service.until("the prompt", |world| world.posts.len() == 1).await;
    seat.hear(click("r1", "allow", "eve")).await;
    seat.service
        .until("eve's answer", |world| world.done.contains(&"answer click-eve: You may not do this here.".into()))
        .await;
    seat.hear(click("r1", "session", "ann")).await;
    assert_eq!(soon("the verdict", asking).await.unwrap(), Ok(Answered::By(Verdict::Session, "ann".into())));
    let edited = "edit 000001000: 🔐 `Bash` needs permission\n```\nrm -r build\n```\nAllowed for this session by ann";
    seat.service.until("the edit", |world| world.done.contains(&edited.into())).await;
    seat.hear(click("r1", "deny", "ann")).await;
    let over = "answer click-ann: This is over: allowed for this session by ann.";
    seat.service.until("that it is over", |world| world.done.contains(&over.into())).await;
}

#[tokio::test]
async fn a_prompt_outlives_its_holder_if_its_hook_asks_again() {
    let mut seat = Seat::new();
    seat.serve_and_follow().await;
    let desk = seat.desk.clone();
    let asking = tokio::spawn(async move { desk.ask(question("r1")).await });
    seat.service.until("the prompt", |world| world.posts.len() == 1).await;
    seat.leave().await;
    seat.serve_and_follow().await;
    seat.hear(click("r1", "deny", "ann")).await;
    assert_eq!(soon("the verdict", asking).await.unwrap(), Ok(Answered::By(Verdict::Deny, "ann".into())));
    assert_eq!(seat.service.texts("c1").len(), 1);
}

#[tokio::test]
async fn where_nothing_is_posted_nobody_can_be_asked() {
    let mut seat = Seat::new();
    seat.serve_and_follow().await;
    // By the prompt itself it turns out that nobody sees it.
    seat.service.refusals.lock().push(fake::channel_is_gone());
    assert_eq!(soon("the refusal", seat.desk.ask(question("r0"))).await, Err(CannotAsk));
    assert_eq!(seat.desk.ask(question("r1")).await, Err(CannotAsk));
    let unbound = Question { binding: "nobody".into(), ..question("r2") };
    assert_eq!(seat.desk.ask(unbound).await, Err(CannotAsk));
    assert_eq!(seat.desk.ask(question("bad:request")).await, Err(CannotAsk));
}

#[tokio::test]
async fn a_message_has_its_reactions_and_loses_them_when_the_agent_is_done() {
    let mut seat = Seat::new();
    seat.serve_and_follow().await;
    seat.hear(Event::Message(Box::new(message(7, "go")), None)).await;
    take(&seat).await;
    let world = seat.service.until("a thought", |world| world.done.len() >= 2).await;
    assert_eq!(world.done, ["react 000000007 🤔", "typing c1"]);
    let tool = json!({"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}});
    let line = json!({"type": "assistant", "sessionId": "s1", "message": {"role": "assistant", "content": [tool]}});
    std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(seat.transcript())
        .unwrap()
        .write_all(format!("{line}\n").as_bytes())
        .unwrap();
    let works = "react 000000007 🛠️";
    seat.service.until("work", |world| world.done.iter().any(|done| done == works)).await;
    let text = json!({"type": "text", "text": "all done"});
    let message = json!({"role": "assistant", "content": [text], "stop_reason": "end_turn"});
    let line = json!({"type": "assistant", "sessionId": "s1", "message": message});
    let mut file = std::fs::OpenOptions::new().append(true).open(seat.transcript()).unwrap();
    file.write_all(format!("{line}\n").as_bytes()).unwrap();
    let done = "unreact 000000007 🛠️";
    seat.service.until("the end", |world| world.done.iter().any(|d| d == done)).await;
}

#[tokio::test]
async fn no_reaction_stays_where_the_agent_was_asked_in_several_places_or_its_holder_leaves() {
    let mut seat = Seat::new();
    seat.serve_and_follow().await;
    let within = |n: u64, thread: &str| Incoming {
        channel: channel(thread),
        parent: Some(channel("c1")),
        ..message(n, "go on")
    };
    for (n, thread) in [(1, "t1"), (2, "t2")] {
        seat.hear(Event::Message(Box::new(within(n, thread)), None)).await;
        assert_eq!(take(&seat).await, "go on");
    }
    let ended = said("done").replace(r#""role":"assistant""#, r#""role":"assistant","stop_reason":"end_turn""#);
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(seat.transcript()).unwrap();
    file.write_all(ended.as_bytes()).unwrap();
    let stays = |world: &fake::World| {
        let put = world.done.iter().filter(|done| done.starts_with("react ")).count();
        put - world.done.iter().filter(|done| done.starts_with("unreact ")).count()
    };
    let both = |world: &fake::World| world.done.iter().filter(|done| done.starts_with("react ")).count() >= 2;
    seat.service.until("no reaction", |world| both(world) && stays(world) == 0).await;
    seat.hear(Event::Message(Box::new(message(3, "and on")), None)).await;
    assert_eq!(take(&seat).await, "and on");
    seat.service.until("a reaction", |world| stays(world) == 1).await;
    seat.service.slow.store(true, std::sync::atomic::Ordering::Relaxed);
    seat.leave().await;
    assert_eq!(stays(&seat.service.world()), 0);
}

#[tokio::test]
async fn a_command_that_the_next_holder_finds_is_as_old_as_the_services_calendar_says() {
    const HOUR: i64 = 3_600_000;
    for (ahead, ago, late) in [(HOUR, 0, false), (-HOUR, 0, false), (HOUR, 600_000, true), (-HOUR, 600_000, true)] {
        let mut seat = Seat::new();
        seat.service.ahead.store(ahead, Ordering::SeqCst);
        seat.generation = 1;
        let mut stop = message(1, "/stop");
        stop.at = seat.service.unix_ms() - ago;
        // As a holder leaves it that died before it carried it out.
        let folder = seat.folder.path().join("seat");
        std::fs::create_dir_all(&folder).unwrap();
        let taken =
            inbox::Message { seq: 1, incoming: stop, binding: "agent".into(), standing: inbox::Standing::Stored };
        let (tell, told) = std::sync::mpsc::channel();
        let store = store::SeatStore::open(&folder, 1).unwrap().store;
        store.inbox(vec![inbox::Change::Take(Box::new(taken))], move |made| tell.send(made).unwrap());
        assert_eq!(told.recv().unwrap(), Ok(vec![]));
        store.close();
        seat.serve_and_follow().await;
        let world = seat.service.until("an answer", |world| world.posts.len() == 1).await;
        assert_eq!(world.posts[0].2 == "Too late: this command was ignored.", late, "{ahead}: {}", world.posts[0].2);
    }
}
