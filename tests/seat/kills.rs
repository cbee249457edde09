//! kill -9 and SIGSTOP of the holder and of those who ask.

use super::*;

#[tokio::test]
async fn a_killed_holder_frees_the_seat_at_every_step() {
    let telegram = FakeTelegram::start().await;
    let mut a = Contender::first(&telegram, "a", "take").await;
    a.is("serving").await;
    let b = a.beside(&telegram, "b", "off").await;
    // While it serves.
    a.process.kill_9().await;
    assert_eq!(b.take().await["generation"], 2, "a dead holder is not waited for");
    b.home.ok(&["seat", "release"]).await;
    // While it connects.
    telegram.hold(true);
    a.again().await;
    a.is("connecting").await;
    a.process.kill_9().await;
    telegram.hold(false);
    assert_eq!(b.take().await["generation"], 4);
    b.home.ok(&["seat", "release"]).await;
    // While somebody waits for it to let go.
    a.again().await;
    a.is("serving").await;
    a.process.freeze();
    let taking = b.home.run(&["seat", "take", "--json"]);
    let killing = async {
        b.is("claiming").await;
        a.process.kill_9().await;
    };
    let (taken, ()) = tokio::join!(taking, killing);
    assert!(taken.status.success(), "{}", String::from_utf8_lossy(&taken.stderr));
    assert_eq!(b.is("serving").await["generation"], 6);
}

#[tokio::test]
async fn a_taker_that_was_killed_before_its_holder_woke_takes_nothing_from_it() {
    let telegram = FakeTelegram::start().await;
    let a = Contender::first(&telegram, "a", "take").await;
    a.is("serving").await;
    let mut b = a.beside(&telegram, "b", "off").await;
    let c = a.beside(&telegram, "c", "off").await;
    a.process.freeze();
    let taking = b.home.run(&["seat", "take"]);
    let killing = async {
        b.is("claiming").await;
    };
    tokio::select! {
        _ = taking => panic!("nobody answers"),
        () = killing => {}
    }
    let waits = c.home.json(&["seat", "take", "--wait", "--json"]).await;
    assert_eq!((&waits["waits"], &waits["holder"]["pid"]), (&json!(true), &json!(a.process.pid())));
    b.process.kill_9().await;
    a.process.thaw();
    assert_eq!(c.take().await["generation"], 2);
    let lost = a.is("off").await;
    assert_eq!(lost["reason"], format!("process {} took the seat", c.process.pid()), "not the one that was killed");
    a.tells(SUPERSEDED, 1).await;
    c.tells(ACQUIRED, 1).await;
}

#[tokio::test]
async fn a_frozen_holder_is_ended_only_when_a_person_says_so() {
    let telegram = FakeTelegram::start().await;
    let mut a = Contender::first(&telegram, "a", "take").await;
    a.is("serving").await;
    let b = a.beside(&telegram, "b", "off").await;
    a.process.freeze();
    let asked = b.home.run(&["seat", "take", "--json"]).await;
    assert_eq!(asked.status.code(), Some(6), "{}", String::from_utf8_lossy(&asked.stderr));
    assert!(String::from_utf8_lossy(&asked.stderr).contains("seat_frozen"));
    let question = b.seat().await;
    assert_eq!((&question["state"], &question["frozen"]), (&json!("standby"), &json!(true)));
    assert_eq!(question["holder"]["pid"], a.process.pid());
    let status = b.home.json(&["status", "--json"]).await;
    let codes: Vec<_> = status["health"].as_array().expect("a list").iter().map(|w| w["code"].clone()).collect();
    assert!(codes.contains(&json!("seat_frozen")), "{codes:?}");
    let forced = b.home.json(&["seat", "take", "--force", "--json"]).await;
    assert_eq!((&forced["state"], &forced["generation"]), (&json!("serving"), &json!(2)));
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&a.process.ended().await), Some(9));
    assert_eq!(b.seat().await["frozen"], false);
}

#[tokio::test]
async fn a_process_that_is_frozen_itself_is_named_by_every_command_that_asks_it_and_those_end() {
    let telegram = FakeTelegram::start().await;
    let a = Contender::first(&telegram, "a", "off").await;
    a.process.freeze();
    for command in [["seat", "show"], ["seat", "take"], ["channel", "retry"]] {
        let asked = a.home.run(&command).await;
        let told = String::from_utf8_lossy(&asked.stderr).into_owned();
        assert_eq!(asked.status.code(), Some(4), "{command:?}: {told}");
        let pid = a.process.pid();
        assert!(told.contains(&format!("process {pid} runs on this data folder and does not answer")), "{told}");
    }
    a.process.thaw();
    assert_eq!(a.take().await["state"], "serving");
}

#[tokio::test]
async fn a_take_that_was_refused_is_withdrawn_and_a_holder_that_thaws_keeps_its_seat() {
    let telegram = FakeTelegram::start().await;
    let a = Contender::first(&telegram, "a", "take").await;
    a.is("serving").await;
    let b = a.beside(&telegram, "b", "off").await;
    a.process.freeze();
    for _ in 0..2 {
        let refused = b.home.run(&["seat", "take"]).await;
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(6), "{said}");
        assert!(said.contains("the take is withdrawn"), "{said}");
    }
    a.process.thaw();
    // The holder answers what was asked while it was frozen, and hears that nobody wants its seat any more.
    let told = b.until("told that it is awake", |s| s["state"] == "standby" && s["frozen"] == false).await;
    assert_eq!(told["reason"], "another process holds the seat");
    assert_eq!((&a.is("serving").await["generation"], a.told(SUPERSEDED)), (&json!(1), 0));
    assert_eq!(b.take().await["generation"], 2);
    a.is("off").await;
    a.tells(SUPERSEDED, 1).await;
    b.tells(ACQUIRED, 1).await;
    assert_eq!(telegram.seen().conflicts, 0);
}

#[tokio::test]
async fn a_holder_that_thaws_while_it_is_still_asked_lets_go() {
    let telegram = FakeTelegram::start().await;
    let a = Contender::first(&telegram, "a", "take").await;
    a.is("serving").await;
    let b = a.beside(&telegram, "b", "off").await;
    a.process.freeze();
    // Refused or not, each take is asked about for six seconds; the holder wakes within one of them.
    let taking = b.home.run(&["seat", "take", "--json"]);
    let waking = async {
        b.is("claiming").await;
        a.process.thaw();
    };
    let (taken, ()) = tokio::join!(taking, waking);
    assert!(taken.status.success(), "{}", String::from_utf8_lossy(&taken.stderr));
    a.is("off").await;
    assert_eq!(b.is("serving").await["generation"], 2);
}

#[tokio::test]
async fn a_holder_that_thaws_after_its_lock_was_taken_away_says_nothing_more() {
    let telegram = FakeTelegram::start().await;
    let a = Contender::first(&telegram, "a", "take").await;
    a.is("serving").await;
    telegram.until("a's poll", |seen| seen.polling.contains_key("a")).await;
    let b = a.beside(&telegram, "b", "off").await;
    a.process.freeze();
    std::fs::remove_file(folder(&a.home).join("lock")).expect("a lock file");
    assert_eq!(b.take().await["generation"], 2);
    let before = telegram.seen().count("a", "getUpdates") + telegram.seen().count("a", "getMe");
    a.process.thaw();
    a.is("off").await;
    b.is("serving").await;
    let after = telegram.seen().count("a", "getUpdates") + telegram.seen().count("a", "getMe");
    assert_eq!(after, before);
    a.tells(SUPERSEDED, 1).await;
    assert!(folder(&a.home).join("holder.sock").exists(), "the socket is b's");
    assert_eq!(a.take().await["generation"], 3);
}

#[tokio::test]
async fn over_fifty_kills_no_generation_is_used_twice() {
    let telegram = FakeTelegram::start().await;
    let home = Home::new();
    configured(&home, &telegram, "a", "take");
    let mut before = 0;
    for round in 0..50 {
        let mut child = home.command(&SERVE).spawn().expect("the binary starts");
        // A request of the one that was killed may still arrive; its generation is its own.
        let own = round as u64 + 1;
        found("its generation", async || (claimed(&home) == Some(own)).then_some(())).await;
        // Killed a little later each round: before it connects, while it does, and while it serves.
        let at = before + [0, 2, 3, 3][round % 4];
        telegram.until("so many requests", |seen| seen.requests.len() >= at).await;
        child.kill().await.expect("kill -9");
        before = telegram.seen().requests.len();
        assert_eq!(generation(&home), own);
    }
}
