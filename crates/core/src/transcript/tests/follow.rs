use super::shell::{PATH, Shell, line};
use crate::limits;
use crate::transcript::{Input, Start, Told};

fn said(shell: &Shell) -> Vec<String> {
    shell.said()
}

#[test]
fn a_new_binding_begins_after_what_stands_there_and_the_line_that_is_being_written_is_whole() {
    let torn = line("torn", 0);
    let mut shell = Shell::bound(Start::End, &[line("old", 0), torn[..20].to_vec()].concat());
    assert_eq!(said(&shell), Vec::<String>::new());
    shell.append(&torn[20..]);
    shell.append(&line("new", 0));
    assert_eq!(said(&shell), ["torn", "new"]);
}

#[test]
fn a_gibibyte_of_lines_is_bound_by_reading_its_last_block() {
    let mut shell = Shell::bound(Start::End, &line("old", 1000).repeat(10_000));
    assert!(shell.read <= limits::TRANSCRIPT_BACK, "{}", shell.read);
    shell.append(&line("new", 0));
    assert_eq!(said(&shell), ["new"]);
}

#[test]
fn a_binding_inside_of_an_endless_line_waits_for_its_end() {
    let mut shell = Shell::bound(Start::End, &vec![b'x'; limits::TRANSCRIPT_LINE_MAX + (1 << 20)]);
    assert!(shell.read <= limits::TRANSCRIPT_LINE_MAX + limits::TRANSCRIPT_BACK, "{}", shell.read);
    shell.append(b"xx\n");
    shell.append(&line("new", 0));
    assert_eq!(said(&shell), ["new"]);
}

#[test]
fn a_file_that_comes_after_its_binding_is_read_from_its_beginning() {
    let mut shell = Shell::bound(Start::End, b"");
    shell.poll();
    shell.disk.append(PATH, &line("first", 0));
    shell.poll();
    assert_eq!(said(&shell), ["first"]);
}

#[test]
fn a_binding_that_stands_already_moves_nothing_and_a_replay_gives_everything_again_under_another_name() {
    let mut shell = Shell::bound(Start::End, &line("old", 0));
    shell.append(&line("new", 0));
    shell.disk.append(PATH, &line("newer", 0));
    shell.bind(PATH, Start::End);
    shell.bind(PATH, Start::Beginning);
    shell.poll();
    assert_eq!(said(&shell), ["new", "newer"]);
    shell.down();
    shell.bind(PATH, Start::Beginning);
    assert_eq!(said(&shell)[2..], ["old", "new", "newer"]);
    let generations: Vec<u64> = shell.kept.iter().map(|(generation, _)| *generation).collect();
    assert_eq!(generations, [1, 1, 2, 2, 2]);
}

#[test]
fn what_was_said_before_another_transcript_is_bound_is_given_out_first() {
    let mut shell = Shell::bound(Start::End, &line("old", 0));
    shell.disk.append(PATH, &line("last words", 0));
    shell.disk.append("/t/b.jsonl", &line("not ours", 0));
    shell.bind("/t/b.jsonl", Start::End);
    shell.disk.append("/t/b.jsonl", &line("hello", 0));
    shell.poll();
    assert_eq!(said(&shell), ["last words", "hello"]);
    assert_eq!(shell.open.len(), 1);
    assert_eq!(shell.cursor.map(|c| c.source("/t/b.jsonl")), Some("2:/t/b.jsonl".into()));
}

#[test]
fn a_hand_over_reads_to_the_end_and_the_next_holder_goes_on_there() {
    let mut shell = Shell::bound(Start::End, b"");
    let torn = line("torn", 0);
    shell.disk.append(PATH, &[line("a", 0), torn[..9].to_vec()].concat());
    shell.input(Input::Finish);
    assert_eq!((said(&shell), shell.finished, shell.open.len()), (vec!["a".to_owned()], true, 0));
    assert_eq!(shell.follow.poll_timeout(shell.now), None);
    shell.disk.append(PATH, &torn[9..]);
    shell.restart();
    assert_eq!(said(&shell), ["a", "torn"]);
}

#[test]
fn a_hand_over_does_not_wait_for_a_writer_that_never_pauses() {
    for finish in [true, false] {
        let mut shell = Shell::bound(Start::Beginning, &line("a", 0));
        shell.restless = 1000;
        shell.disk.append(PATH, &line("b", 0));
        if finish {
            shell.input(Input::Finish);
            assert!(shell.finished);
        } else {
            shell.bind("/t/b.jsonl", Start::End);
            assert_eq!(shell.follow.snapshot().map(|view| view.transcript), Some("/t/b.jsonl".into()));
        }
        assert!(shell.restless > 900, "{} lines were waited for", 1000 - shell.restless);
        assert_eq!(said(&shell)[..2], ["a", "b"]);
        // The next holder goes on with what came later.
        shell.bind(PATH, Start::At(shell.cursor.clone().unwrap()));
        shell.restless = 0;
        shell.poll();
        let more = shell.disk.files[&1].iter().filter(|b| **b == b'\n').count() - 2;
        assert_eq!(said(&shell).iter().filter(|text| *text == "more").count(), more);
    }
}

#[test]
fn nothing_is_read_before_what_was_given_out_is_kept() {
    let mut shell = Shell::bound(Start::End, b"");
    shell.dies = true;
    shell.append(&line("a", 0));
    let read = shell.read;
    shell.append(&line("b", 0));
    shell.poll();
    assert_eq!(shell.read, read);
    shell.restart();
    assert_eq!(said(&shell), ["a", "b"]);
}

#[test]
fn a_rotated_file_is_finished_before_the_new_one_is_begun_even_without_its_last_line_end() {
    let mut shell = Shell::bound(Start::Beginning, &line("a", 0));
    let last = line("b", 0);
    shell.disk.append(PATH, &last[..last.len() - 1]);
    shell.disk.rename(PATH, "/t/a.jsonl.1");
    shell.append(&line("c", 0));
    assert_eq!(said(&shell), ["a", "b", "c"]);
    assert_eq!(shell.told, [Told::Rotated]);
    assert_eq!(shell.cursor.as_ref().map(|c| (c.generation, c.offset)), Some((2, line("c", 0).len() as u64)));
}

#[test]
fn a_file_that_was_rotated_while_nobody_looked_is_found_beside_the_new_one() {
    let mut shell = Shell::bound(Start::Beginning, &line("a", 0));
    shell.down();
    shell.disk.append(PATH, &line("b", 0));
    shell.disk.rename(PATH, "/t/a.jsonl.1");
    shell.restart();
    assert_eq!(said(&shell), ["a", "b"]);
    shell.append(&line("c", 0));
    assert_eq!(said(&shell), ["a", "b", "c"]);
}

#[test]
fn files_that_came_and_went_between_two_looks_are_read_between_the_others() {
    for live in [true, false] {
        let mut shell = Shell::bound(Start::Beginning, &line("a", 0));
        shell.disk.append("/t/a.jsonl.9", &line("a copy of old", 0));
        shell.disk.append(PATH, &line("b", 0));
        shell.poll();
        if !live {
            shell.down();
        }
        // Each is turned over before anybody looks.
        shell.disk.append(PATH, &line("c", 0));
        shell.disk.rename(PATH, "/t/a.jsonl.1");
        for text in ["d", "e"] {
            shell.disk.append(PATH, &line(text, 0));
            shell.disk.rename("/t/a.jsonl.2", "/t/a.jsonl.3");
            shell.disk.rename("/t/a.jsonl.1", "/t/a.jsonl.2");
            shell.disk.rename(PATH, "/t/a.jsonl.1");
        }
        shell.disk.append("/t/a.jsonl.bak", &line("not a part of it", 0));
        shell.disk.append(PATH, &line("f", 0));
        if live {
            shell.poll()
        } else {
            shell.restart()
        }
        assert_eq!(said(&shell), ["a", "b", "c", "d", "e", "f"], "live {live}");
        assert_eq!((shell.told.clone(), shell.gaps()), (vec![Told::Rotated; 3], 0), "live {live}");
        assert_eq!(shell.open.len(), 1);
    }
}

#[test]
fn numbered_files_are_something_else_where_the_first_was_put_away_by_another_name() {
    let mut shell = Shell::bound(Start::Beginning, &line("a", 0));
    shell.disk.rename(PATH, "/t/a.jsonl.2026-12-01");
    shell.disk.append("/t/a.jsonl.1", &line("not ours", 0));
    shell.disk.append(PATH, &line("b", 0));
    shell.poll();
    assert_eq!(said(&shell), ["a", "b"]);
}

#[test]
fn a_file_that_took_the_name_of_the_first_is_read_after_it() {
    // As agents do it that keep one old file.
    let mut shell = Shell::bound(Start::Beginning, &line("a", 0));
    for text in ["b", "c"] {
        shell.disk.rename(PATH, "/t/a.jsonl.1");
        shell.disk.append(PATH, &line(text, 0));
    }
    shell.poll();
    assert_eq!((said(&shell), shell.gaps()), (vec!["a".to_owned(), "b".to_owned(), "c".to_owned()], 0));
}

#[test]
fn more_files_than_are_kept_at_a_time_that_came_and_went_between_two_looks_are_all_read() {
    let mut shell = Shell::bound(Start::Beginning, &line("0", 0));
    let count = 2 * limits::TRANSCRIPT_FILES + 3;
    for n in 1..=count {
        shell.disk.rename(PATH, &format!("/t/a.jsonl.{n}"));
        shell.disk.append(PATH, &line(&n.to_string(), 0));
    }
    shell.poll();
    let all: Vec<String> = (0..=count).map(|n| n.to_string()).collect();
    assert_eq!((said(&shell), shell.gaps()), (all, 0));
}

#[test]
fn a_new_transcript_is_read_from_its_first_line_unless_it_is_long_and_from_there_on_if_it_comes_later() {
    for (most, expected) in [(1000, vec!["old", "new"]), (10, vec!["new"])] {
        let mut shell = Shell::bound(Start::Recent(most), &line("old", 0));
        shell.append(&line("new", 0));
        assert_eq!(said(&shell), expected);
    }
    let mut shell = Shell::bound(Start::Recent(10), b"");
    shell.append(&line("longer than ten bytes", 0));
    assert_eq!(said(&shell), ["longer than ten bytes"]);
}

#[test]
fn a_file_that_is_gone_for_good_is_replaced_by_all_of_the_new_one() {
    let mut shell = Shell::bound(Start::Beginning, &line("a", 0));
    shell.down();
    shell.disk.names.clear();
    shell.disk.append(PATH, &line("b", 0));
    shell.restart();
    assert_eq!((said(&shell), shell.told.clone()), (vec!["a".to_owned(), "b".to_owned()], vec![Told::Replaced]));
    assert_eq!(shell.gaps(), 1, "what it said last may be missing");
}

#[test]
fn a_file_that_was_written_anew_with_the_same_beginning_goes_on_where_it_was() {
    for live in [true, false] {
        let before = line("a", 2000);
        let mut shell = Shell::bound(Start::Beginning, &before);
        if !live {
            shell.down();
        }
        shell.disk.names.clear();
        shell.disk.append(PATH, &[before, line("b", 0)].concat());
        if live {
            shell.poll();
        } else {
            shell.restart();
        }
        assert_eq!(said(&shell), ["a", "b"], "live {live}");
    }
}

#[test]
fn what_follows_a_truncation_is_new_and_what_was_left_is_not_said_again() {
    let mut shell = Shell::bound(Start::Beginning, &[line("a", 0), line("b", 0)].concat());
    shell.disk.truncate(PATH, line("a", 0).len());
    shell.poll();
    shell.append(&line("c", 0));
    shell.disk.truncate(PATH, 0);
    shell.poll();
    shell.append(&line("d", 0));
    assert_eq!(said(&shell), ["a", "b", "c", "d"]);
    assert_eq!(shell.told, [Told::Truncated, Told::Truncated]);
    // The bytes of `d` were those of `a` before, so only the generation tells them apart.
    assert_eq!(shell.kept[0].1.range, shell.kept[3].1.range);
    assert_ne!(shell.kept[0].0, shell.kept[3].0);
}

#[test]
fn another_text_in_the_same_place_is_read_from_its_beginning() {
    let mut shell = Shell::bound(Start::Beginning, &line("a", 0));
    shell.disk.truncate(PATH, 0);
    shell.append(&[line("b", 0), line("c", 0)].concat());
    assert_eq!((said(&shell), shell.told.clone()), (vec!["a".into(), "b".into(), "c".into()], vec![Told::Replaced]));
}

#[test]
fn a_line_of_five_mebibytes_is_said_and_one_above_the_bound_is_skipped_and_counted() {
    let mut shell = Shell::bound(Start::Beginning, &line("five", 5 << 20));
    shell.append(&line("nine", 9 << 20));
    shell.append(&[b"not json\n".to_vec(), b"\xff\xfe\n".to_vec(), line("next", 0)].concat());
    assert_eq!(
        (said(&shell), shell.told.clone()),
        (vec!["five".into(), "next".into()], vec![Told::LineTooLong, Told::Unreadable(2)])
    );
    assert_eq!(shell.follow.snapshot().map(|view| view.skipped), Some(3));
}

#[test]
fn a_read_that_fails_is_told_and_tried_again_at_the_next_look() {
    let mut shell = Shell::bound(Start::Beginning, b"");
    shell.broken = true;
    shell.append(&line("a", 0));
    assert_eq!(shell.follow.snapshot().and_then(|view| view.trouble), Some("input/output error".into()));
    shell.broken = false;
    shell.poll();
    assert_eq!(said(&shell), ["a"]);
    assert_eq!(shell.follow.snapshot().and_then(|view| view.trouble), None);
}
