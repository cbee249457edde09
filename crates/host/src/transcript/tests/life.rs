use super::*;

#[tokio::test]
async fn what_is_appended_is_heard_at_once_and_a_torn_line_when_it_is_whole() {
    let torn = line("torn");
    let mut world = World::bound(&[line("old"), torn[..7].to_vec()].concat()).await;
    world.append(&torn[7..20]);
    world.append(&torn[20..]);
    assert_eq!(world.said(1).await, ["torn"]);
    let before = std::time::Instant::now();
    for number in 0..60 {
        world.append(&line(&number.to_string()));
        assert_eq!(world.said(1).await, [number.to_string()]);
    }
    assert!(before.elapsed() < Duration::from_secs(50), "polls alone take a second each: {:?}", before.elapsed());
    let end = fs::metadata(&world.path).unwrap().len();
    assert_eq!(world.cursor.as_ref().map(|c| (c.generation, c.offset)), Some((1, end)));
    let mut view = world.follower.view();
    let told = view.wait_for(|view| view.as_ref().is_some_and(|v| v.cursor == world.cursor));
    assert!(tokio::time::timeout(SOON, told).await.is_ok());
}

#[tokio::test]
async fn a_file_renamed_away_is_finished_before_the_one_that_took_its_place() {
    let mut world = World::bound(&line("old")).await;
    let mut writer = OpenOptions::new().append(true).open(&world.path).unwrap();
    writer.write_all(&line("a")).unwrap();
    world.rotate("a.jsonl.1");
    // It still has the old one open, and dies without its last line end.
    let last = line("b");
    writer.write_all(&last[..last.len() - 1]).unwrap();
    world.append(&line("c"));
    assert_eq!(world.said(3).await, ["a", "b", "c"]);
    assert_eq!((world.told.as_slice(), world.cursor.unwrap().generation), ([Told::Rotated].as_slice(), 2));
}

#[tokio::test]
async fn a_file_renamed_away_while_nobody_followed_is_found_by_its_number_beside_the_new_one() {
    let mut world = World::bound(b"").await;
    world.append(&line("a"));
    assert_eq!(world.said(1).await, ["a"]);
    world.append(&line("b"));
    world.rotate("a.jsonl.2026-12-01");
    for number in 0..20 {
        // Not parts of it, as it has no number itself.
        append(&world.beside(&format!("a.jsonl.{number}")), &line("another"));
    }
    world.append(&line("c"));
    world.restart();
    assert_eq!(world.said(2).await, ["b", "c"]);
}

#[tokio::test]
async fn a_cut_file_goes_on_with_what_is_new() {
    let mut world = World::bound(&line("old").repeat(100)).await;
    OpenOptions::new().write(true).open(&world.path).unwrap().set_len(0).unwrap();
    world.append(&line("new"));
    assert_eq!(world.said(1).await, ["new"]);
    // Whether it was seen before it grew again, or only afterwards.
    assert!(matches!(world.told.as_slice(), [Told::Truncated] | [Told::Replaced]), "{:?}", world.told);
}

#[tokio::test]
async fn a_file_that_was_replaced_is_read_from_its_beginning() {
    let mut world = World::bound(&line("old")).await;
    world.append(&line("last"));
    let other = world.beside("other");
    append(&other, &line("first"));
    fs::rename(&other, &world.path).unwrap();
    assert_eq!(world.said(2).await, ["last", "first"]);
}

#[tokio::test]
async fn a_line_of_five_mebibytes_and_bytes_that_are_no_text_hide_nothing() {
    let mut world = World::bound(b"").await;
    let long = "x".repeat(5 << 20);
    world.append(&[line("a"), line(&long), b"\xff\xfe\n{\"\n".to_vec(), line("b")].concat());
    let mut bad = line("c?");
    let at = bad.iter().position(|b| *b == b'?').unwrap();
    bad[at] = 0xff;
    world.append(&bad);
    let said = world.said(4).await;
    assert_eq!(said, ["a", &long, "b", "c\u{fffd}"]);
    let mut view = world.follower.view();
    let told = view.wait_for(|view| view.as_ref().is_some_and(|v| v.skipped == 2));
    assert!(tokio::time::timeout(SOON, told).await.is_ok());
}

#[tokio::test]
async fn two_follow_one_file_and_each_hears_everything() {
    let mut one = World::bound(&line("old")).await;
    let mut two = World::new();
    two.path.clone_from(&one.path);
    two.bind(Start::Beginning);
    one.append(&line("a"));
    assert_eq!(one.said(1).await, ["a"]);
    assert_eq!(two.said(2).await, ["old", "a"]);
}

#[tokio::test]
async fn another_transcript_is_bound_after_the_last_word_of_the_one_before() {
    let mut world = World::bound(&line("old")).await;
    world.append(&line("last"));
    world.path = world.beside("b.jsonl");
    world.append(&line("old"));
    world.bind(Start::End);
    assert_eq!(world.said(1).await, ["last"]);
    while world.cursor.as_ref().is_none_or(|c| c.generation < 2) {
        world.hear().await;
    }
    world.append(&line("new"));
    assert_eq!(world.said(1).await, ["new"]);
}

#[tokio::test]
async fn the_end_is_heard_after_everything_that_stood_there_and_the_next_one_goes_on() {
    let mut world = World::bound(b"").await;
    let torn = line("torn");
    world.append(&[line("a").repeat(1000), torn[..9].to_vec()].concat());
    world.finish().await;
    assert_eq!((world.said.len(), world.follower.view().borrow().clone()), (1000, None));
    world.said.clear();
    world.append(&torn[9..]);
    world.restart();
    assert_eq!(world.said(1).await, ["torn"]);
}

#[tokio::test]
async fn nothing_more_comes_before_what_was_given_out_is_taken_and_nothing_after_the_follower_is_dropped() {
    let mut world = World::bound(b"").await;
    world.append(&line("a"));
    let first = tokio::time::timeout(SOON, world.heard.recv()).await.unwrap();
    let Some(Followed::Entries { entries, .. }) = first else { panic!("{first:?}") };
    assert_eq!(entries.iter().flat_map(what).collect::<Vec<_>>(), ["a"]);
    world.append(&line("b"));
    let (idle, heard) = begun();
    drop(std::mem::replace(&mut world.follower, idle));
    assert_eq!(tokio::time::timeout(SOON, world.heard.recv()).await.unwrap(), None, "its thread ended");
    drop(heard);
}

#[tokio::test]
async fn a_file_that_came_and_went_between_two_looks_is_read_between_the_others() {
    let mut world = World::bound(&line("old")).await;
    let rotated = |number: u32| PathBuf::from(format!("{}.{number}", world.path.display()));
    // Copies and older files are no part of it, whatever their names.
    append(&rotated(7), &line("older"));
    append(&PathBuf::from(format!("{}.bak", world.path.display())), &line("a copy"));
    let then = std::time::SystemTime::now() - Duration::from_secs(60);
    fs::File::options().append(true).open(rotated(7)).unwrap().set_modified(then - Duration::from_secs(60)).unwrap();
    // Nobody looks before the last of these is there.
    let new = world.beside("new.jsonl");
    append(&rotated(1), &line("between"));
    append(&new, &line("new"));
    fs::rename(&world.path, rotated(2)).unwrap();
    fs::File::options().append(true).open(rotated(2)).unwrap().set_modified(then).unwrap();
    fs::rename(&new, &world.path).unwrap();
    assert_eq!(world.said(2).await, ["between", "new"]);
    assert_eq!(world.told, [Told::Rotated, Told::Rotated]);
}
