//! Take, release, wait: what a person asks for.

use super::*;

#[tokio::test]
async fn a_take_moves_the_seat_and_both_sides_say_so_once() {
    let telegram = FakeTelegram::start().await;
    let a = Contender::first(&telegram, "a", "if-vacant").await;
    let held = a.is("serving").await;
    assert_eq!((&held["generation"], &held["holder"]["this"]), (&json!(1), &json!(true)));
    telegram.until("a's poll", |seen| seen.polling.contains_key("a")).await;

    let b = a.beside(&telegram, "b", "if-vacant").await;
    let stands_by = b.is("standby").await;
    assert_eq!(stands_by["holder"]["pid"], a.process.pid());
    assert_eq!(stands_by["reason"], "another process holds the seat");
    assert_eq!(telegram.seen().count("b", "getMe"), 0, "it does not even look at the service");

    let taken = b.take().await;
    assert_eq!((&taken["state"], &taken["generation"]), (&json!("serving"), &json!(2)));
    let lost = a.until("off, with b shown", |s| s["state"] == "off" && s["holder"]["pid"] == b.process.pid()).await;
    assert_eq!(lost["reason"], format!("process {} took the seat", b.process.pid()));
    telegram.until("b's poll alone", |seen| seen.polling.keys().eq(["b"])).await;
    assert_eq!(telegram.seen().conflicts, 0, "the one disconnected before the other connected");
    for (one, what) in [(&a, ACQUIRED), (&a, SUPERSEDED), (&b, ACQUIRED)] {
        one.tells(what, 1).await;
    }
    assert_eq!(b.told(SUPERSEDED), 0);
}

#[tokio::test]
async fn a_start_with_take_takes_and_one_with_off_does_nothing() {
    let telegram = FakeTelegram::start().await;
    let a = Contender::first(&telegram, "a", "take").await;
    a.is("serving").await;
    let c = a.beside(&telegram, "c", "off").await;
    assert_eq!(c.seat().await["state"], "off");
    let b = a.beside(&telegram, "b", "take").await;
    b.is("serving").await;
    a.is("off").await;
    assert_eq!(generation(&a.home), 2);
}

#[tokio::test]
async fn a_released_seat_goes_to_one_that_waits_and_to_nobody_else() {
    let telegram = FakeTelegram::start().await;
    let a = Contender::first(&telegram, "a", "if-vacant").await;
    a.is("serving").await;
    let b = a.beside(&telegram, "b", "if-vacant").await;
    let c = a.beside(&telegram, "c", "off").await;
    b.is("standby").await;
    let waits = c.home.json(&["seat", "take", "--wait", "--json"]).await;
    assert_eq!((&waits["state"], &waits["waits"]), (&json!("standby"), &json!(true)));
    let shown = String::from_utf8(c.home.run(&["seat", "show"]).await.stdout).expect("text");
    assert!(shown.contains("it takes the seat as soon as nobody holds it"), "{shown}");
    let released = a.home.json(&["seat", "release", "--json"]).await;
    assert_eq!((&released["state"], &released["reason"]), (&json!("off"), &json!(null)));
    c.is("serving").await;
    // What is asked for now is looked up now.
    let stands_by = b.seat().await;
    assert_eq!((&stands_by["state"], &stands_by["waits"]), (&json!("standby"), &json!(false)));
    assert_eq!(
        (&stands_by["holder"]["pid"], &a.seat().await["holder"]["pid"]),
        (&json!(c.process.pid()), &json!(c.process.pid()))
    );
    c.home.ok(&["seat", "release"]).await;
    assert_eq!((&b.seat().await["holder"], &a.seat().await["holder"]), (&json!(null), &json!(null)));
    assert_eq!(a.told(SUPERSEDED), 0, "a person let go");
}

#[tokio::test]
async fn superseded_while_connecting_it_never_serves() {
    let telegram = FakeTelegram::start().await;
    telegram.hold(true);
    let a = Contender::first(&telegram, "a", "take").await;
    a.is("connecting").await;
    telegram.until("a's first request", |seen| seen.count("a", "getMe") >= 1).await;
    let b = a.beside(&telegram, "b", "off").await;
    let taking = b.home.run(&["seat", "take", "--json"]);
    let let_in = async {
        a.is("off").await;
        telegram.hold(false);
    };
    let (taken, ()) = tokio::join!(taking, let_in);
    assert!(taken.status.success(), "{}", String::from_utf8_lossy(&taken.stderr));
    b.is("serving").await;
    a.tells(SUPERSEDED, 1).await;
    assert_eq!(a.told(ACQUIRED), 0);
    assert_eq!(telegram.seen().count("a", "getUpdates"), 0);
}

#[tokio::test]
async fn stopping_the_engine_or_the_process_lets_go() {
    let telegram = FakeTelegram::start().await;
    let mut a = Contender::first(&telegram, "a", "if-vacant").await;
    a.is("serving").await;
    a.home.ok(&["stop", "channels"]).await;
    assert_eq!(a.seat().await["state"], "off");
    telegram.until("no poll", |seen| seen.polling.is_empty()).await;
    a.home.ok(&["start", "channels"]).await;
    a.is("serving").await;
    assert_eq!(a.process.stop().await.code(), Some(0));
    for file in ["holder.sock", "active-instance.json"] {
        assert!(!folder(&a.home).join(file).exists(), "{file}");
    }
    a.again().await;
    assert_eq!(a.is("serving").await["generation"], 3);
}
