use std::path::Path;

use super::*;

fn new_files(folder: &Path) -> Vec<String> {
    // It is made beside everything else.
    let entries = std::fs::read_dir(folder.join("new")).into_iter().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_message_is_a_file_until_somebody_moves_it_away() {
    let bench = Bench::new();
    let agent = bench.agent(&binding(Delivery::Inbox));
    let folder = inbox_folder(bench.folder.path(), "app");
    let delivery = tokio::spawn(async move { agent.deliver(&said(12, "hello"), &Prepared::default()).await });
    until(|| !new_files(&folder).is_empty()).await;
    assert_eq!(new_files(&folder), ["000000000012.json"]);
    let letter: Letter = serde_json::from_str(&bench.read("inbox/app/new/000000000012.json")).unwrap();
    assert_eq!((letter.id.as_str(), letter.content.as_str()), ("100/m12", "hello"));
    assert!(!delivery.is_finished());
    std::fs::rename(folder.join("new/000000000012.json"), folder.join("mine.json")).unwrap();
    assert_eq!(delivery.await.unwrap(), Ok(()));
}

#[tokio::test]
async fn what_the_last_holder_left_is_the_same_file_again() {
    let bench = Bench::new();
    let folder = inbox_folder(bench.folder.path(), "app");
    for _holder in 0..2 {
        let agent = bench.agent(&binding(Delivery::Inbox));
        let delivery = tokio::spawn(async move { agent.deliver(&said(1, "hello"), &Prepared::default()).await });
        until(|| !new_files(&folder).is_empty()).await;
        delivery.abort();
        assert!(delivery.await.unwrap_err().is_cancelled());
    }
    assert_eq!(new_files(&folder), ["000000000001.json"]);
}

#[tokio::test]
async fn what_was_taken_while_nobody_looked_is_not_put_there_again() {
    let bench = Bench::new();
    let folder = inbox_folder(bench.folder.path(), "app");
    let agent = bench.agent(&binding(Delivery::Inbox));
    let delivery = tokio::spawn(async move { agent.deliver(&said(1, "hello"), &Prepared::default()).await });
    until(|| !new_files(&folder).is_empty()).await;
    delivery.abort();
    assert!(delivery.await.unwrap_err().is_cancelled());
    std::fs::remove_file(folder.join("new/000000000001.json")).unwrap();
    let agent = bench.agent(&binding(Delivery::Inbox));
    assert_eq!(agent.deliver(&said(1, "hello"), &Prepared::default()).await, Ok(()));
    assert!(new_files(&folder).is_empty());
}

#[tokio::test]
async fn what_a_killed_holder_had_made_and_not_given_is_given() {
    let bench = Bench::new();
    let folder = inbox_folder(bench.folder.path(), "app");
    let agent = bench.agent(&binding(Delivery::Inbox));
    let letter = Letter::of(&said(1, "hello").incoming, &Prepared::default());
    crate::files::make_dir(&folder).unwrap();
    std::fs::write(folder.join("000000000001.json"), serde_json::to_vec(&letter).unwrap()).unwrap();
    crate::files::replace(&folder.join("given"), letter.id.as_bytes()).unwrap();
    let delivery = tokio::spawn(async move { agent.deliver(&said(1, "hello"), &Prepared::default()).await });
    until(|| !new_files(&folder).is_empty()).await;
    std::fs::remove_file(folder.join("new/000000000001.json")).unwrap();
    assert_eq!(delivery.await.unwrap(), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn the_sender_hears_once_that_nobody_takes_it_and_later_tries_wait() {
    let bench = Bench::new();
    let agent = bench.agent(&binding(Delivery::Inbox));
    let message = said(1, "hello");
    let why = agent.deliver(&message, &Prepared::default()).await;
    assert_eq!(why, Err(Undelivered::Not("nobody took it from the agent's folder yet".into())));
    let nothing = Prepared::default();
    let again = agent.deliver(&message, &nothing);
    assert!(tokio::time::timeout(Duration::from_secs(86_400), again).await.is_err());
}

#[tokio::test]
async fn the_wish_to_stop_is_a_file() {
    let bench = Bench::new();
    let agent = bench.agent(&binding(Delivery::Inbox));
    assert_eq!(agent.stop().await, Ok("Asked the agent to stop (file `stop` in its folder).".into()));
    assert_eq!(bench.read("inbox/app/stop"), "{}\n");
}

/// A delivery whose file is there, and that is ended.
async fn offered(bench: &Bench, seq: u64) -> std::path::PathBuf {
    let folder = inbox_folder(bench.folder.path(), "app");
    let agent = bench.agent(&binding(Delivery::Inbox));
    let delivery = tokio::spawn(async move { agent.deliver(&said(seq, "hello"), &Prepared::default()).await });
    until(|| !new_files(&folder).is_empty()).await;
    delivery.abort();
    assert!(delivery.await.unwrap_err().is_cancelled());
    folder
}

/// Everything in a folder but the folders in it.
fn files_beside(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().filter(|entry| entry.as_ref().unwrap().path().is_file()).count()
}

#[tokio::test]
async fn what_nobody_took_is_taken_back_and_can_be_put_there_again() {
    let bench = Bench::new();
    for _again in 0..2 {
        let folder = offered(&bench, 1).await;
        for _asked_twice in 0..2 {
            assert_eq!(bench.courier.take_back(Adapter::Inbox, &said(1, "hello")).await, Back::Safe);
            assert_eq!((new_files(&folder).len(), files_beside(&folder)), (0, 0));
        }
    }
}

#[tokio::test]
async fn what_was_taken_before_it_could_be_taken_back_is_the_agents() {
    let bench = Bench::new();
    let folder = offered(&bench, 1).await;
    std::fs::rename(folder.join("new/000000000001.json"), bench.path("mine.json")).unwrap();
    assert_eq!(bench.courier.take_back(Adapter::Inbox, &said(1, "hello")).await, Back::Taken);
}

#[tokio::test]
async fn what_was_made_and_not_put_there_yet_is_no_ones() {
    let bench = Bench::new();
    assert_eq!(bench.courier.take_back(Adapter::Inbox, &said(1, "hello")).await, Back::Safe);
    let folder = offered(&bench, 1).await;
    // As a holder leaves it that died while it put it there, or while it took it back.
    std::fs::rename(folder.join("new/000000000001.json"), folder.join("000000000001.json")).unwrap();
    assert_eq!(bench.courier.take_back(Adapter::Inbox, &said(1, "hello")).await, Back::Safe);
    assert_eq!(files_beside(&folder), 0);
}

#[tokio::test]
async fn a_folder_that_cannot_be_changed_may_have_given_it() {
    let bench = Bench::new();
    let folder = offered(&bench, 1).await;
    // No file can take the place of a folder.
    std::fs::create_dir_all(folder.join("000000000001.json/x")).unwrap();
    let Back::Perhaps(why) = bench.courier.take_back(Adapter::Inbox, &said(1, "hello")).await else { panic!() };
    assert!(why.starts_with("it could not be taken back from the agent's folder: "), "{why}");
}

#[tokio::test]
async fn a_message_whose_folder_is_removed_or_cannot_be_looked_into_is_not_taken_and_is_put_there_again() {
    for is_file in [false, true] {
        let bench = Bench::new();
        let agent = bench.agent(&binding(Delivery::Inbox));
        let folder = inbox_folder(bench.folder.path(), "app");
        let (new, given) = (folder.join("new"), Arc::clone(&agent));
        // Made when the agent is, beside everything else: not later than it is taken away here.
        until(|| new.is_dir()).await;
        let delivery = tokio::spawn(async move { given.deliver(&said(1, "hello"), &Prepared::default()).await });
        until(|| !new_files(&folder).is_empty()).await;
        let away = folder.join("away");
        if is_file {
            std::fs::rename(&new, away).unwrap();
            std::fs::write(&new, "").unwrap();
        } else {
            std::fs::rename(&new, away).unwrap();
        }
        let Err(Undelivered::Not(why)) = delivery.await.unwrap() else { panic!("it counts as taken") };
        assert!(why.starts_with(new.to_str().unwrap()), "{why}");
        if is_file {
            std::fs::remove_file(&new).unwrap();
        }
        let delivery = tokio::spawn(async move { agent.deliver(&said(1, "hello"), &Prepared::default()).await });
        until(|| new.is_dir() && !new_files(&folder).is_empty()).await;
        std::fs::remove_file(new.join("000000000001.json")).unwrap();
        assert_eq!(delivery.await.unwrap(), Ok(()));
    }
}

#[tokio::test]
async fn what_was_in_a_folder_that_was_removed_was_perhaps_taken() {
    let bench = Bench::new();
    let folder = inbox_folder(bench.folder.path(), "app");
    std::fs::create_dir_all(&folder).unwrap();
    crate::files::replace(&folder.join("given"), b"100/m1").unwrap();
    let Back::Perhaps(why) = bench.courier.take_back(Adapter::Inbox, &said(1, "hello")).await else { panic!() };
    assert_eq!(why, "it could not be taken back from the agent's folder: it was removed");
}

#[tokio::test]
async fn what_was_in_a_folder_that_was_removed_while_nobody_served_is_put_there_again() {
    let bench = Bench::new();
    let folder = offered(&bench, 1).await;
    std::fs::remove_dir_all(folder.join("new")).unwrap();
    let agent = bench.agent(&binding(Delivery::Inbox));
    until(|| folder.join("new").is_dir()).await;
    let delivery = tokio::spawn(async move { agent.deliver(&said(1, "hello"), &Prepared::default()).await });
    until(|| !new_files(&folder).is_empty()).await;
    std::fs::remove_file(folder.join("new/000000000001.json")).unwrap();
    assert_eq!(delivery.await.unwrap(), Ok(()));
}
