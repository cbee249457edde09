//! What was written, or waits, while something changes.

use super::*;

/// The agent of this binding takes its next message.
async fn take_from(seat: &Seat, binding: &str) -> String {
    let new = crate::deliver::inbox_folder(&seat.folder.path().join("seat"), binding).join("new");
    soon("a message in the agent's folder", async {
        loop {
            let file = std::fs::read_dir(&new).into_iter().flatten().find_map(Result::ok);
            if let Some(file) = file {
                let letter: serde_json::Value = serde_json::from_slice(&std::fs::read(file.path()).unwrap()).unwrap();
                std::fs::remove_file(file.path()).unwrap();
                return letter["content"].as_str().unwrap().to_owned();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
}

#[tokio::test]
async fn the_first_message_of_a_channel_may_be_written_while_nobody_listens() {
    let mut seat = Seat::new();
    *seat.service.moment.lock() = Some(id(5));
    seat.serve_and_follow().await;
    seat.leave().await;
    *seat.service.moment.lock() = Some(id(9));
    seat.service.missed.lock().extend([message(4, "before it was bound"), message(6, "continue please")]);
    seat.serve_and_follow().await;
    assert_eq!(take_from(&seat, "agent").await, "continue please");
}

#[tokio::test]
async fn what_waits_for_a_binding_that_gets_another_name_is_that_ones() {
    let mut seat = Seat::new();
    seat.serve_and_follow().await;
    for (n, text) in [(1, "one"), (2, "two")] {
        seat.hear(Event::Message(Box::new(message(n, text)), None)).await;
    }
    seat.until("messages that wait", |status| status.bindings[0].waiting_in == 2).await;
    seat.edit(|config| config.bindings[0].name = "claude".into());
    assert_eq!(take_from(&seat, "claude").await, "one");
    assert_eq!(take_from(&seat, "claude").await, "two");
    let last = seat.desk.fetch("claude", 9).await.unwrap();
    assert_eq!(last.iter().map(|m| m.text.as_str()).collect::<Vec<_>>(), ["one", "two"]);
    seat.until("rest", |status| status.bindings[0].waiting_in == 0).await;
}

#[tokio::test]
async fn what_waits_for_a_binding_that_is_gone_is_answered() {
    let mut seat = Seat::new();
    seat.serve_and_follow().await;
    seat.hear(Event::Message(Box::new(message(1, "one")), None)).await;
    seat.until("a message that waits", |status| status.bindings[0].waiting_in == 1).await;
    seat.edit(|config| config.bindings.clear());
    let world = seat.service.until("an answer", |world| !world.posts.is_empty()).await;
    assert_eq!(world.posts[0].2, "No agent is bound here any more; this was not delivered.");
}
