//! Several processes that want the seat at the same moment.

use futures_util::future::join_all;

use super::*;

async fn race(contenders: usize) {
    let telegram = FakeTelegram::start().await;
    let mut all = vec![Contender::first(&telegram, "c0", "off").await];
    for n in 1..contenders {
        let next = all[0].beside(&telegram, &format!("c{n}"), "off").await;
        all.push(next);
    }
    for round in 0..3 {
        // Each says what came of it within seconds, which on a busy machine may be nothing yet; what comes of all is seen below.
        join_all(all.iter().map(|c| c.home.run(&["seat", "take", "--json"]))).await;
        // Who let go says so a moment after another has it, so they are asked until they agree.
        let serving = found(&format!("round {round}: one that serves and others at rest"), async || {
            let mut serving = Vec::new();
            for contender in &all {
                match contender.seat().await["state"].as_str()? {
                    "serving" => serving.push(contender.name.clone()),
                    "off" | "standby" => {}
                    _ => return None,
                }
            }
            (serving.len() == 1).then_some(serving)
        })
        .await;
        let polls = |seen: &holdfast_testkit::telegram::Seen| seen.polling.keys().eq(&serving);
        telegram.until("the poll of the holder alone", polls).await;
    }
    assert_eq!(telegram.seen().conflicts, 0, "never two at once");
    let acquired: usize = all.iter().map(|c| c.told(ACQUIRED)).sum();
    assert!(acquired as u64 <= generation(&all[0].home), "told at most once for each generation");
}

#[tokio::test]
async fn of_two_that_take_at_once_one_speaks() {
    race(2).await;
}

#[tokio::test]
async fn of_five_that_take_at_once_one_speaks() {
    race(5).await;
}

#[tokio::test]
async fn of_five_that_start_at_once_one_speaks_and_four_stand_by() {
    let telegram = FakeTelegram::start().await;
    let first = Home::new();
    let mut homes: Vec<_> = (1..5).map(|_| Home::beside(&first)).collect();
    homes.push(first);
    let all = homes.into_iter().enumerate();
    let all =
        join_all(all.map(|(n, home)| Contender::start(home, &telegram, ["a", "b", "c", "d", "e"][n], "if-vacant")));
    let all = all.await;
    let mut states = Vec::new();
    for contender in &all {
        let rest = contender.until("at rest", |s| s["state"] == "serving" || s["state"] == "standby").await;
        states.push(rest["state"].as_str().expect("text").to_owned());
    }
    states.sort();
    assert_eq!(states, ["serving", "standby", "standby", "standby", "standby"]);
    assert_eq!((generation(&all[0].home), telegram.seen().conflicts), (1, 0));
}
