//! Output on its way: one window, fairly shared, from the first unacknowledged byte.

use super::*;
use crate::limits;

const PIECE: u64 = limits::WORKER_OUTPUT_PIECE as u64;
const WINDOW: u64 = limits::WORKER_WINDOW as u64;

fn grew(rig: &mut Rig, of: u8, stdout: u64) {
    rig.run(of, 1, RunNews::Grew(streams(stdout)));
}

#[test]
fn output_goes_in_pieces_up_to_one_window_and_on_with_the_acknowledgements() {
    let mut rig = Rig::live();
    rig.started(exec(1));
    grew(&mut rig, 1, 10 * WINDOW);
    let sent = rig.output();
    assert_eq!(sent.len() as u64, WINDOW / PIECE);
    assert_eq!((sent[0], sent[1]), ((1, 0, PIECE), (1, PIECE, PIECE)));
    assert_eq!(rig.output(), []);
    rig.ack(1, 2 * PIECE);
    assert_eq!(rig.output(), [(1, WINDOW, PIECE), (1, WINDOW + PIECE, PIECE)]);
}

#[test]
fn a_chatty_run_does_not_keep_another_ones_output_waiting() {
    let mut rig = Rig::live();
    rig.started(exec(1));
    rig.started(exec(2));
    rig.written();
    grew(&mut rig, 1, 10 * WINDOW);
    grew(&mut rig, 2, 3 * PIECE);
    let of_two: Vec<_> = rig.output().iter().enumerate().filter(|(_, (of, ..))| *of == 2).map(|(at, _)| at).collect();
    assert_eq!(of_two.len(), 3);
    assert!(of_two[2] <= 8, "{of_two:?}");
}

#[test]
fn answers_and_ends_pass_output_that_stands_ready() {
    let mut rig = Rig::live();
    rig.started(exec(1));
    rig.started(exec(2));
    rig.written();
    grew(&mut rig, 1, WINDOW);
    rig.spool();
    rig.cancel(1);
    rig.run(2, 1, RunNews::Ended(ended(0, 0)));
    assert_eq!(rig.kinds()[..3], ["cancel_result", "exec_exit", "exec_output"]);
}

#[test]
fn acknowledged_output_is_made_durable_then_trimmed_and_not_sent_again_after_a_crash() {
    let mut rig = Rig::live();
    rig.started(exec(1));
    grew(&mut rig, 1, 4 * PIECE);
    rig.output();
    rig.ack(1, 3 * PIECE);
    assert!(!rig.has(&Output::Trim(run(1), 1, Stream::Stdout, 3 * PIECE)));
    rig.pass(limits::WORKER_OFFSETS_EVERY);
    assert!(rig.has(&Output::Trim(run(1), 1, Stream::Stdout, 3 * PIECE)));
    rig.restart();
    assert!(rig.has(&Output::Trim(run(1), 1, Stream::Stdout, 3 * PIECE)), "it may not have been said");
    rig.attach(1, 1, 4 * PIECE);
    rig.open();
    let frames = rig.recover(2, &[1], &[]);
    let sent: Vec<_> = frames.iter().filter(|frame| kind(frame) == "exec_output").collect();
    let [WorkerFrame::ExecOutput { offset, .. }] = sent[..] else { panic!("{sent:?}") };
    assert_eq!(*offset, 3 * PIECE);
}

#[test]
fn the_relays_word_on_what_it_has_counts_in_either_direction() {
    for (has, first) in [(PIECE, PIECE), (3 * PIECE, 3 * PIECE)] {
        let mut rig = Rig::live();
        rig.started(exec(1));
        grew(&mut rig, 1, 4 * PIECE);
        rig.output();
        rig.ack(1, 2 * PIECE);
        rig.lose();
        rig.open();
        let frames = rig.recover(2, &[1], &[(1, has)]);
        let offset = frames.iter().find_map(|frame| match frame {
            WorkerFrame::ExecOutput { offset, .. } => Some(*offset),
            _ => None,
        });
        assert_eq!(offset, Some(first));
    }
}

#[test]
fn output_that_a_recovery_shows_to_be_there_ends_an_operation_whose_end_was_acknowledged() {
    let mut rig = Rig::live();
    rig.started(exec(1));
    rig.run(1, 1, RunNews::Ended(ended(0, 10)));
    assert_eq!(rig.output(), [(1, 0, 10)]);
    rig.say(ControlFrame::ExecTerminalAck { run_id: run(1) });
    rig.lose();
    rig.open();
    rig.recover(2, &[], &[(1, 10)]);
    assert!(rig.has(&Output::Remove(run(1), 1)) && rig.ledger.rows[0].acked);
}

#[test]
fn what_the_relay_has_of_a_run_that_is_not_found_yet_is_not_sent_when_it_is() {
    let mut rig = Rig::live();
    rig.started(exec(1));
    rig.restart();
    rig.open();
    rig.recover(2, &[1], &[(1, 3 * PIECE)]);
    rig.attach(1, 1, 4 * PIECE);
    assert_eq!(rig.output(), [(1, 3 * PIECE, PIECE)]);
}

#[test]
fn recovery_replays_at_most_one_window_before_it_is_complete() {
    let mut rig = Rig::live();
    rig.started(exec(1));
    rig.lose();
    grew(&mut rig, 1, 3 * WINDOW);
    rig.open();
    let frames = rig.recover(2, &[1], &[(1, 0)]);
    let replayed: u64 = frames
        .iter()
        .map(|frame| if let WorkerFrame::ExecOutput { data, .. } = frame { data.len() as u64 } else { 0 })
        .sum();
    assert_eq!(replayed, WINDOW);
    rig.ack(1, WINDOW);
    assert_eq!(rig.output().len() as u64, WINDOW / PIECE);
}

#[test]
fn nothing_is_sent_again_while_acknowledgements_move_and_one_window_when_they_do_not() {
    let mut rig = Rig::live();
    rig.started(exec(1));
    grew(&mut rig, 1, 20 * PIECE);
    assert_eq!(rig.output().len(), 20);
    rig.ack(1, PIECE);
    for n in 2..=10 {
        rig.pass_live(S);
        rig.ack(1, n * PIECE);
        assert_eq!(rig.output(), [], "a slow acknowledgement is one");
    }
    rig.pass_live(S);
    assert_eq!(rig.output(), []);
    rig.pass_live(S);
    let again: Vec<u64> = rig.output().iter().map(|(_, offset, _)| offset / PIECE).collect();
    assert_eq!(again, (10..20).collect::<Vec<_>>());
    rig.pass_live(S * 3);
    assert_eq!(rig.output(), [], "the next time it waits twice as long");
    rig.pass_live(S);
    assert_eq!(rig.output().len(), 10);
    rig.ack(1, 20 * PIECE);
    rig.pass_live(S * 60);
    assert_eq!(rig.output(), []);
}

#[test]
fn what_has_not_left_the_socket_is_not_late() {
    let mut rig = Rig::live();
    rig.started(exec(1));
    grew(&mut rig, 1, PIECE);
    assert_eq!(rig.output().len(), 1);
    for _ in 0..10 {
        rig.pass(S);
        rig.tell(Input::Traffic(rig.socket, Traffic { read: 2, written: 900, drained: false }));
    }
    assert_eq!(rig.output(), []);
    rig.life();
    rig.pass_live(S * 2);
    assert_eq!(rig.output().len(), 1);
}

#[test]
fn four_round_trips_are_waited_where_that_is_longer() {
    let mut rig = Rig::live();
    rig.started(exec(1));
    grew(&mut rig, 1, PIECE);
    rig.output();
    rig.pass(S * 3 / 2);
    rig.ack(1, PIECE);
    grew(&mut rig, 1, 2 * PIECE);
    assert_eq!(rig.output().len(), 1);
    rig.pass_live(S * 5);
    assert_eq!(rig.output(), []);
    rig.pass_live(S);
    assert_eq!(rig.output(), [(1, PIECE, PIECE)]);
}

#[test]
fn an_acknowledgement_that_comes_after_the_second_offer_began_counts() {
    let mut rig = Rig::live();
    rig.started(exec(1));
    grew(&mut rig, 1, 8 * PIECE);
    assert_eq!(rig.output().len(), 8);
    rig.pass_live(S * 2);
    rig.spool();
    rig.ack(1, 6 * PIECE);
    let rest: Vec<u64> = rig.output().iter().map(|(_, offset, _)| offset / PIECE).collect();
    assert_eq!(rest, [6, 7]);
}

#[test]
fn acknowledgements_of_what_was_never_written_are_ignored() {
    let mut rig = Rig::live();
    rig.started(exec(1));
    grew(&mut rig, 1, PIECE);
    rig.output();
    rig.ack(1, PIECE + 1);
    rig.ack(9, 5);
    assert_eq!(rig.worker.snapshot(rig.now).behind, PIECE);
}

#[test]
fn output_given_up_in_the_middle_is_told_as_a_gap() {
    let mut rig = Rig::live();
    rig.started(exec(1));
    rig.written();
    grew(&mut rig, 1, 100);
    let read = rig.reads().pop().unwrap();
    assert_eq!((read.offset, read.max), (0, 100));
    rig.tell(Input::Piece(run(1), Stream::Stdout, 0, Piece::Gap(60)));
    let gap = WorkerFrame::ExecGap { run_id: run(1), stream: Stream::Stdout, offset: 0, next_offset: 60 };
    assert_eq!(rig.written(), [gap]);
    assert_eq!(rig.output(), [(1, 60, 40)]);
}

#[test]
fn a_spool_that_cannot_be_read_is_tried_again_each_second_and_keeps_nobody_else_waiting() {
    let mut rig = Rig::live();
    rig.started(exec(1));
    rig.started(exec(2));
    rig.written();
    grew(&mut rig, 1, 10);
    assert_eq!(rig.reads().len(), 1);
    rig.tell(Input::Piece(run(1), Stream::Stdout, 0, Piece::Unreadable));
    assert_eq!(rig.reads(), []);
    grew(&mut rig, 2, 10);
    assert_eq!(rig.output(), [(2, 0, 10)]);
    rig.pass(limits::SPOOL_RETRY);
    assert_eq!(rig.output(), [(1, 0, 10)]);
}

#[test]
fn an_operation_is_over_when_its_end_and_all_of_its_output_are_acknowledged_in_either_order() {
    for end_first in [true, false] {
        let mut rig = Rig::live();
        rig.started(exec(1));
        rig.run(1, 1, RunNews::Ended(ended(0, 10)));
        assert_eq!(rig.output(), [(1, 0, 10)]);
        let end = |rig: &mut Rig| rig.say(ControlFrame::ExecTerminalAck { run_id: run(1) });
        if end_first {
            end(&mut rig);
        } else {
            rig.ack(1, 10);
        }
        assert!(!rig.has(&Output::Remove(run(1), 1)) && !rig.ledger.rows[0].acked);
        if end_first {
            rig.ack(1, 10);
        } else {
            end(&mut rig);
        }
        assert!(rig.has(&Output::Remove(run(1), 1)) && rig.ledger.rows[0].acked);
        let snapshot = rig.worker.snapshot(rig.now);
        assert_eq!((snapshot.living.len(), snapshot.ended.len(), snapshot.behind), (0, 1, 0));
        assert_eq!(snapshot.ended[0].exit_code, Some(0));
    }
}

#[test]
fn an_end_without_an_acknowledgement_is_offered_again() {
    let mut rig = Rig::live();
    rig.started(exec(1));
    rig.run(1, 1, RunNews::Ended(ended(0, 0)));
    rig.written();
    rig.pass_live(S);
    assert_eq!(rig.kinds(), [""; 0]);
    rig.pass_live(S);
    assert_eq!(rig.kinds(), ["exec_exit"]);
}

#[test]
fn what_is_over_leaves_no_offset_behind_and_nothing_of_it_is_trimmed_after_it_is_removed() {
    let mut rig = Rig::live();
    rig.started(exec(1));
    grew(&mut rig, 1, PIECE);
    rig.output();
    rig.run(1, 1, RunNews::Ended(ended(0, PIECE)));
    rig.written();
    rig.say(ControlFrame::ExecTerminalAck { run_id: run(1) });
    rig.holding = true;
    rig.ack(1, PIECE);
    rig.pass(limits::WORKER_OFFSETS_EVERY * 2);
    rig.release();
    assert!(rig.has(&Output::Remove(run(1), 1)));
    assert!(!rig.has(&Output::Trim(run(1), 1, Stream::Stdout, PIECE)));
    assert!(rig.ledger.offsets.is_empty());
}

#[test]
fn what_is_lost_of_one_run_is_offered_again_however_much_another_one_is_acknowledged() {
    let mut rig = Rig::live();
    rig.started(exec(1));
    rig.started(exec(2));
    rig.run(1, 1, RunNews::Ended(ended(0, 10)));
    grew(&mut rig, 2, 40 * PIECE);
    assert_eq!(rig.output().len(), 41);
    for n in 1..=2 {
        rig.ack(2, n * PIECE);
        assert_eq!(rig.output(), []);
        rig.pass_live(S);
    }
    rig.ack(2, 3 * PIECE);
    rig.spool();
    let frames = rig.written();
    assert_eq!(frames.iter().map(kind).collect::<Vec<_>>(), ["exec_exit", "exec_output"], "and nothing of the other");
    rig.ack(2, 4 * PIECE);
    assert_eq!(rig.output(), [], "once, until it is late again");
    rig.say(ControlFrame::ExecTerminalAck { run_id: run(1) });
    rig.ack(1, 10);
    for n in 5..=20 {
        rig.ack(2, n * PIECE);
        rig.pass_live(S);
        assert_eq!(rig.output(), []);
    }
}

#[test]
fn an_offset_that_could_not_be_kept_is_not_written_after_its_run_was_forgotten() {
    let mut rig = Rig::live();
    rig.started(exec(1));
    grew(&mut rig, 1, PIECE);
    rig.output();
    rig.run(1, 1, RunNews::Ended(ended(0, PIECE)));
    rig.written();
    rig.say(ControlFrame::ExecTerminalAck { run_id: run(1) });
    rig.holding = true;
    rig.ack(1, PIECE / 2);
    rig.pass(limits::WORKER_OFFSETS_EVERY);
    assert_eq!(rig.held.len(), 1, "the offset");
    rig.ack(1, PIECE);
    rig.failing = Some(LedgerError::Full);
    rig.commit_next();
    rig.failing = None;
    rig.pass(limits::WORKER_OFFSETS_EVERY);
    rig.release();
    rig.pass(S * 3);
    assert!(rig.has(&Output::Remove(run(1), 1)) && rig.ledger.offsets.is_empty());
    assert!(rig.take(|output| matches!(output, Output::Trim(..)).then_some(())).is_none());
}

#[test]
fn what_is_lost_is_offered_again_also_before_a_socket_that_is_never_empty() {
    let mut rig = Rig::live();
    rig.started(exec(1));
    rig.started(exec(2));
    grew(&mut rig, 1, PIECE);
    assert_eq!(rig.output(), [(1, 0, PIECE)]);
    let mut again = Vec::new();
    for n in 1..=4 {
        grew(&mut rig, 2, n * PIECE);
        let sent = rig.output();
        assert!(sent.contains(&(2, (n - 1) * PIECE, PIECE)));
        again.extend(sent.contains(&(1, 0, PIECE)).then_some(n));
        // It went after the other's piece and is here: so was that.
        rig.ack(2, n * PIECE);
        rig.pass(S);
        rig.tell(Input::Traffic(rig.socket, Traffic { read: 2, written: 900, drained: false }));
    }
    assert_eq!(again, [3]);
}
