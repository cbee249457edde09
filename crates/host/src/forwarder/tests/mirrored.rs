//! Which file is mirrored, and what of it is not.

use std::os::unix::fs::symlink;

use holdfast_core::chat::SendError;
use holdfast_core::transcript::discovery::slugs;

use super::*;

fn lead(link: &Path, to: &Path) {
    let next = link.with_extension("next");
    symlink(to, &next).unwrap();
    std::fs::rename(&next, link).unwrap();
}

#[tokio::test]
async fn a_link_that_leads_to_another_transcript_is_followed_there_after_the_last_word_of_the_first() {
    let mut seat = Seat::new();
    let (one, two) = (seat.folder.path().join("one.jsonl"), seat.folder.path().join("two.jsonl"));
    append(&one, &["old"]);
    lead(&seat.transcript(), &one);
    seat.serve_and_follow().await;
    append(&one, &["a"]);
    seat.service.until("a", |world| world.posts.len() == 1).await;
    append(&one, &["b"]);
    append(&two, &["c"]);
    lead(&seat.transcript(), &two);
    seat.service.until("c", |world| world.posts.iter().any(|post| post.2.ends_with('c'))).await;
    append(&two, &["d"]);
    seat.service.until("d", |world| world.posts.iter().any(|post| post.2.ends_with('d'))).await;
    // Back again, where it was left, by way of a file that is not there yet.
    append(&one, &["e"]);
    let three = seat.folder.path().join("three.jsonl");
    lead(&seat.transcript(), &three);
    let followed = seat.folder.path().canonicalize().unwrap().join("three.jsonl");
    let there = |status: &ForwarderStatus| status.bindings[0].transcript.as_deref() == followed.to_str();
    seat.until("the third", there).await;
    append(&three, &["f"]);
    seat.service.until("f", |world| world.posts.iter().any(|post| post.2.ends_with('f'))).await;
    lead(&seat.transcript(), &one);
    seat.service.until("e", |world| world.posts.iter().any(|post| post.2.ends_with('e'))).await;
    assert_eq!(seat.service.texts("c1").join("\n\n"), ["a", "b", "c", "d", "f", "e"].join("\n\n"));
}

#[tokio::test]
async fn lines_that_cannot_be_read_and_parts_that_may_be_missing_are_shown() {
    let mut seat = Seat::new();
    seat.write(&["old"]);
    seat.serve_and_follow().await;
    let mut file = std::fs::OpenOptions::new().append(true).open(seat.transcript()).unwrap();
    file.write_all(b"not JSON\n{\"also\":\n").unwrap();
    seat.write(&["a"]);
    let status = seat.until("two lines", |status| status.bindings[0].unread == 2).await;
    assert_eq!(status.bindings[0].gaps, 0);
    seat.service.until("a", |world| world.posts.len() == 1).await;
    seat.leave().await;
    // Another file takes its place while nobody looks.
    let next = seat.folder.path().join("next");
    append(&next, &["b"]);
    std::fs::rename(&next, seat.transcript()).unwrap();
    seat.serve_and_follow().await;
    let status = seat.until("a gap", |status| status.bindings[0].gaps == 1).await;
    assert_eq!(status.bindings[0].unread, 0);
    seat.service.until("b", |world| world.posts.len() == 2).await;
    assert_eq!(seat.service.texts("c1"), ["a", "b"]);
}

#[tokio::test]
async fn prompts_that_cannot_be_stored_are_shown() {
    let mut seat = Seat::new();
    seat.serve_and_follow().await;
    let store = rusqlite::Connection::open(seat.folder.path().join("seat/channel.sqlite")).unwrap();
    store.execute_batch("ALTER TABLE asks RENAME TO away").unwrap();
    let question = Question {
        request: "abcde".into(),
        binding: "agent".into(),
        tool: "Bash".into(),
        description: String::new(),
        preview: "ls".into(),
        left_out: 0,
    };
    let desk = seat.desk.clone();
    let asked = tokio::spawn(async move { desk.ask(question).await });
    let status = seat.until("why", |status| status.stuck.is_some()).await;
    assert_eq!(status.stuck.as_deref(), Some("the seat's store could not be written"));
    store.execute_batch("ALTER TABLE away RENAME TO asks").unwrap();
    seat.until("that it can be stored again", |status| status.stuck.is_none()).await;
    asked.abort();
}

#[tokio::test]
async fn what_is_said_while_people_write_and_a_message_waits_to_be_sent_is_all_posted() {
    let mut seat = Seat::new();
    seat.serve_and_follow().await;
    seat.service.refusals.lock().push(SendError::Limited { after: Duration::from_millis(500) });
    seat.write(&["a"]);
    for (n, text) in (1..).zip(["b", "c", "d"]) {
        seat.hear(Event::Message(Box::new(message(n, "go on")), None)).await;
        seat.write(&[text]);
    }
    seat.service.until("d", |world| world.posts.iter().any(|post| post.2.ends_with('d'))).await;
    assert_eq!(seat.service.texts("c1").join("\n\n"), "a\n\nb\n\nc\n\nd");
}

/// A project with a session of Claude Code that has said something.
fn project(seat: &Seat, name: &str, session: &str) -> (String, PathBuf) {
    let folder = seat.folder.path().canonicalize().unwrap();
    let project = folder.join(name);
    let sessions = folder.join("claude/projects").join(&slugs(project.to_str().unwrap())[0]);
    std::fs::create_dir_all(&project).unwrap();
    std::fs::create_dir_all(&sessions).unwrap();
    let transcript = sessions.join(format!("{session}.jsonl"));
    append(&transcript, &["before"]);
    (project.to_str().unwrap().to_owned(), transcript)
}

#[tokio::test]
async fn a_session_is_known_after_a_restart_before_its_agent_writes_again() {
    let mut seat = Seat::new();
    let (project, _) = project(&seat, "project", "s1");
    seat.homes.claude = Some(seat.folder.path().canonicalize().unwrap().join("claude"));
    seat.edit(|config| (config.bindings[0].transcript, config.bindings[0].project) = (None, Some(project)));
    for _life in 0..2 {
        seat.serve();
        seat.hear(Event::Ready).await;
        let status = seat.until("a session", |status| status.bindings[0].session.is_some()).await;
        assert_eq!(status.bindings[0].session.as_deref(), Some("s1"));
        seat.die().await;
    }
}

#[tokio::test]
async fn what_is_found_for_another_project_than_is_wanted_by_then_is_not_followed() {
    let mut seat = Seat::new();
    let (first, of_first) = project(&seat, "first", "s1");
    let (second, of_second) = project(&seat, "second", "s2");
    seat.homes.claude = Some(seat.folder.path().canonicalize().unwrap().join("claude"));
    seat.edit(|config| (config.bindings[0].transcript, config.bindings[0].project) = (None, Some(first)));
    let mut shell = seat.shell().await;
    shell.arrange();
    let now = shell.turns.now();
    shell.look_for(now);
    let stale = shell.doing.join_next().await.unwrap().unwrap();
    assert!(format!("{stale:?}").contains(of_first.to_str().unwrap()), "{stale:?}");
    seat.edit(|config| config.bindings[0].project = Some(second));
    shell.config = seat.config.borrow().clone();
    shell.arrange();
    shell.look_for(now);
    shell.take(stale);
    assert_eq!((shell.sources["agent"].transcript(), shell.bound.len()), (None, 0));
    let found = shell.doing.join_next().await.unwrap().unwrap();
    shell.take(found);
    assert_eq!(shell.sources["agent"].transcript().map(|path| &**path), of_second.to_str());
    assert_eq!(&*shell.bound["agent"].transcript, of_second.to_str().unwrap());
}

#[tokio::test]
async fn what_a_session_said_that_began_while_nobody_held_the_seat_is_said_by_the_next_holder() {
    let mut seat = Seat::new();
    let (project, first) = project(&seat, "project", "s1");
    seat.homes.claude = Some(seat.folder.path().canonicalize().unwrap().join("claude"));
    seat.edit(|config| (config.bindings[0].transcript, config.bindings[0].project) = (None, Some(project)));
    let long_ago = std::time::SystemTime::now() - Duration::from_secs(60);
    std::fs::File::open(&first).unwrap().set_modified(long_ago).unwrap();
    seat.serve_and_follow().await;
    seat.leave().await;
    std::fs::write(first.with_file_name("s2.jsonl"), said("meanwhile").replace("s1", "s2")).unwrap();
    seat.serve_and_follow().await;
    seat.service.until("what was said meanwhile", |world| world.posts.iter().any(|post| post.2 == "meanwhile")).await;
    assert_eq!(seat.service.texts("c1"), ["meanwhile"]);
}

#[tokio::test]
async fn the_session_of_a_transcript_that_is_named_by_its_path_is_known_before_its_agent_writes_again() {
    for by_its_agent in [false, true] {
        let mut seat = Seat::new();
        let path = seat.transcript();
        append(&path, &["before"]);
        if by_its_agent {
            let project = seat.folder.path().to_str().map(str::to_owned);
            seat.edit(|config| (config.bindings[0].transcript, config.bindings[0].project) = (None, project));
        }
        for life in 0..2 {
            seat.serve();
            seat.hear(Event::Ready).await;
            if by_its_agent && life == 0 {
                seat.desk.opened().await;
                seat.desk.bind("agent", path.to_str().unwrap()).await.unwrap();
            }
            let status = seat.until("a session", |status| status.bindings[0].session.is_some()).await;
            assert_eq!(status.bindings[0].session.as_deref(), Some("s1"), "{by_its_agent}, life {life}");
            seat.die().await;
        }
    }
}
