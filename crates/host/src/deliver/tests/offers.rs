use futures_util::FutureExt as _;
use holdfast_core::limits;

use super::*;

fn mcp(offers: &Offers) -> Arc<dyn Agent> {
    Arc::new(mcp::McpAgent::new(offers.clone(), "app".into()))
}

fn deliver(agent: &Arc<dyn Agent>, seq: u64, text: &str) -> tokio::task::JoinHandle<Result<(), Undelivered>> {
    let (agent, message) = (Arc::clone(agent), said(seq, text));
    tokio::spawn(async move { agent.deliver(&message, &Prepared::default()).await })
}

fn content(offer: Offer) -> String {
    match offer {
        Offer::Message(letter) => letter.content,
        Offer::Stop => "stop".into(),
    }
}

#[tokio::test]
async fn a_message_is_given_once_acknowledged_by_id_and_followed_by_the_next() {
    let offers = Offers::default();
    let agent = mcp(&offers);
    let mut listener = offers.listen("app").unwrap();
    let delivery = deliver(&agent, 1, "one");
    assert_eq!(content(listener.next().await), "one");
    assert!(listener.next().now_or_never().is_none(), "it is not told twice");
    assert!(!offers.acknowledge("app", "100/m2") && !offers.acknowledge("other", "100/m1"));
    assert!(!delivery.is_finished());
    assert!(offers.acknowledge("app", "100/m1"));
    assert_eq!(delivery.await.unwrap(), Ok(()));
    assert!(!offers.acknowledge("app", "100/m1"), "it is over");
    let delivery = deliver(&agent, 2, "two");
    assert_eq!(content(listener.next().await), "two");
    offers.acknowledge("app", "100/m2");
    assert_eq!(delivery.await.unwrap(), Ok(()));
}

#[tokio::test]
async fn what_was_not_acknowledged_goes_to_who_comes_next() {
    let offers = Offers::default();
    let agent = mcp(&offers);
    let mut first = offers.listen("app").unwrap();
    let delivery = deliver(&agent, 1, "one");
    assert_eq!(content(first.next().await), "one");
    drop(first);
    let mut next = offers.listen("app").unwrap();
    assert_eq!(content(next.next().await), "one");
    offers.acknowledge("app", "100/m1");
    assert_eq!(delivery.await.unwrap(), Ok(()));
}

#[tokio::test]
async fn a_second_session_neither_takes_the_messages_of_the_first_nor_hears_them() {
    let offers = Offers::default();
    let agent = mcp(&offers);
    let mut first = offers.listen("app").unwrap();
    let mut second = offers.listen("app").unwrap();
    let mut elsewhere = offers.listen("other").unwrap();
    let _delivery = deliver(&agent, 1, "one");
    assert_eq!(content(first.next().await), "one");
    assert!(second.next().now_or_never().is_none() && elsewhere.next().now_or_never().is_none());
    drop(first);
    assert_eq!(content(second.next().await), "one");
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_listens_and_does_not_take_it_makes_room() {
    let offers = Offers::default();
    let agent = mcp(&offers);
    let mut frozen = offers.listen("app").unwrap();
    let mut second = offers.listen("app").unwrap();
    let delivery = deliver(&agent, 1, "one");
    assert_eq!(content(frozen.next().await), "one");
    assert_eq!(delivery.await.unwrap(), Err(Undelivered::Not("the agent's process does not take it".into())));
    let delivery = deliver(&agent, 1, "one");
    assert_eq!(content(second.next().await), "one");
    offers.acknowledge("app", "100/m1");
    assert_eq!(delivery.await.unwrap(), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn the_sender_hears_once_that_nobody_listens_and_whoever_comes_gets_it() {
    let offers = Offers::default();
    let agent = mcp(&offers);
    let why = "the agent is not connected; it starts `holdfast channel mcp`".to_owned();
    let began = tokio::time::Instant::now();
    assert_eq!(deliver(&agent, 1, "one").await.unwrap(), Err(Undelivered::Not(why)));
    assert_eq!(began.elapsed(), limits::AGENT_COMES);
    let delivery = deliver(&agent, 1, "one");
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert!(!delivery.is_finished());
    let mut listener = offers.listen("app").unwrap();
    assert_eq!(content(listener.next().await), "one");
    offers.acknowledge("app", "100/m1");
    assert_eq!(delivery.await.unwrap(), Ok(()));
}

#[tokio::test]
async fn the_wish_to_stop_reaches_whoever_has_the_binding() {
    let offers = Offers::default();
    let agent = mcp(&offers);
    assert!(agent.stop().await.is_err());
    let mut listener = offers.listen("app").unwrap();
    assert!(listener.next().now_or_never().is_none(), "a stop before its time is not its own");
    assert_eq!(agent.stop().await, Ok("The agent was told to stop.".into()));
    assert_eq!(listener.next().await, Offer::Stop);
}

/// Ends a delivery and takes its message back.
async fn back(offers: &Offers, seq: u64, delivery: tokio::task::JoinHandle<Result<(), Undelivered>>) -> Back {
    delivery.abort();
    assert!(delivery.await.unwrap_err().is_cancelled());
    offers.take_back("app", &format!("100/m{seq}")).await
}

#[tokio::test]
async fn what_no_process_was_told_of_is_taken_back_and_none_is_told_of_it_later() {
    let offers = Offers::default();
    let agent = mcp(&offers);
    let delivery = deliver(&agent, 1, "one");
    until(|| offers.is_offered("app")).await;
    assert_eq!(back(&offers, 1, delivery).await, Back::Safe);
    let mut listener = offers.listen("app").unwrap();
    assert!(listener.next().now_or_never().is_none());
}

#[tokio::test(start_paused = true)]
async fn what_a_process_was_told_of_and_does_not_acknowledge_it_perhaps_has() {
    let offers = Offers::default();
    let agent = mcp(&offers);
    let mut listener = offers.listen("app").unwrap();
    let delivery = deliver(&agent, 1, "one");
    assert_eq!(content(listener.next().await), "one");
    assert!(matches!(back(&offers, 1, delivery).await, Back::Perhaps(_)));
    assert!(!offers.acknowledge("app", "100/m1"), "that comes too late");
    // A person wants it sent again, to the same one.
    let delivery = deliver(&agent, 1, "one");
    assert_eq!(content(listener.next().await), "one");
    assert!(offers.acknowledge("app", "100/m1"));
    assert_eq!(delivery.await.unwrap(), Ok(()));
}

#[tokio::test]
async fn who_was_told_of_it_has_a_moment_to_say_so() {
    let offers = Offers::default();
    let agent = mcp(&offers);
    let mut listener = offers.listen("app").unwrap();
    let delivery = deliver(&agent, 1, "one");
    assert_eq!(content(listener.next().await), "one");
    let (taken, ()) = tokio::join!(back(&offers, 1, delivery), async {
        // The process writes it to its agent first.
        tokio::task::yield_now().await;
        assert!(offers.acknowledge("app", "100/m1"));
    });
    assert_eq!(taken, Back::Taken);
}

#[tokio::test]
async fn what_an_earlier_process_of_ours_offered_was_perhaps_taken() {
    assert!(matches!(Offers::default().take_back("app", "100/m1").await, Back::Perhaps(_)));
}

#[tokio::test(start_paused = true)]
async fn a_word_that_comes_between_two_tries_counts() {
    let offers = Offers::default();
    let agent = mcp(&offers);
    let mut slow = offers.listen("app").unwrap();
    let delivery = deliver(&agent, 1, "one");
    assert_eq!(content(slow.next().await), "one");
    assert!(delivery.await.unwrap().is_err());
    assert!(offers.acknowledge("app", "100/m1"));
    assert_eq!(deliver(&agent, 1, "one").await.unwrap(), Ok(()));
}

#[test]
fn the_processes_of_a_binding_are_bounded() {
    let offers = Offers::default();
    let all: Vec<Listener> = (0..limits::AGENT_LISTENERS).map(|_| offers.listen("app").unwrap()).collect();
    assert_eq!(offers.listen("app").unwrap_err(), "8 processes listen for app already");
    drop(all);
    offers.listen("app").unwrap();
}
