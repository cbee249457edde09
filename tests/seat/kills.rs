//! kill -9 and SIGSTOP of the holder and of those who ask.

use super::*;
use std::time::Instant;

#[tokio::test]
async fn a_killed_holder_frees_the_seat_at_every_step() {
    let telegram = FakeTelegram::start().await;
    let mut a = Contender::first(&telegram, "a", "take").await;
    a.is("serving").await;
    let b = a.beside(&telegram, "b", "off").await;
    // While it serves.
    a.process.kill_9().await;
    let started = Instant::now();
    assert_eq!(b.take().await["generation"], 2);
    assert!(started.elapsed() < Duration::from_secs(4), "a dead holder is not waited for");
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
async fn a_killed_taker_leaves_the_seat_to_those_who_wait() {
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
    c.home.ok(&["seat", "take", "--wait"]).await;
    b.process.kill_9().await;
    a.process.thaw();
    c.is("serving").await;
    a.is("off").await;
    assert_eq!((generation(&a.home), c.told(ACQUIRED)), (2, 1));
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
    assert_eq!((&question["state"], &question["frozen"]), (&json!("claiming"), &json!(true)));
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
async fn a_holder_that_thaws_lets_go_after_all() {
    let telegram = FakeTelegram::start().await;
    let a = Contender::first(&telegram, "a", "take").await;
    a.is("serving").await;
    let b = a.beside(&telegram, "b", "off").await;
    a.process.freeze();
    assert_eq!(b.home.run(&["seat", "take"]).await.status.code(), Some(6));
    a.process.thaw();
    b.is("serving").await;
    a.is("off").await;
    assert_eq!((a.told(SUPERSEDED), b.told(ACQUIRED), telegram.seen().conflicts), (1, 1, 0));
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
    assert_eq!((after, a.told(SUPERSEDED)), (before, 1));
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
        // Killed a little later each round: before it connects, while it does, and while it serves.
        telegram.until("a request", |seen| seen.requests.len() > before).await;
        let at = before + 1 + round % 4;
        if round % 4 > 0 {
            let more = telegram.until("more requests", |seen| seen.requests.len() >= at.min(before + 3));
            tokio::time::timeout(Duration::from_secs(10), more).await.expect("it goes on");
        }
        child.kill().await.expect("kill -9");
        before = telegram.seen().requests.len();
        assert_eq!(generation(&home), round as u64 + 1);
    }
}
