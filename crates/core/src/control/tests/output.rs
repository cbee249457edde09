use super::super::*;
use super::desk::*;
use crate::id::RunId;
use crate::limits;
use crate::operation::{State, Stream};
use crate::wire::worker::WorkerFrame;

fn gap(desk: &mut Desk, socket: SocketId, run: &RunId, offset: u64, next_offset: u64) {
    let (run_id, stream) = (run.clone(), Stream::Stdout);
    desk.say(socket, WorkerFrame::ExecGap { run_id, stream, offset, next_offset });
}

#[test]
fn output_is_acknowledged_only_when_it_is_committed() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let (id, run) = desk.running(socket);
    desk.mood = Mood::Slow;
    desk.output(socket, &run, 0, b"abc");
    assert_eq!(desk.told(socket), [""; 0]);
    desk.answer_all();
    assert_eq!(desk.told(socket), ["stdout 3"]);
    assert_eq!(desk.bytes(&id), b"abc");
}

#[test]
fn what_comes_while_a_commit_is_in_flight_makes_up_the_next_one() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let (id, run) = desk.running(socket);
    desk.mood = Mood::Slow;
    for (at, piece) in [b"a", b"b", b"c"].into_iter().enumerate() {
        desk.output(socket, &run, at as u64, piece);
    }
    assert_eq!(desk.waiting.len(), 1);
    desk.answer_one();
    assert_eq!(desk.waiting.len(), 1);
    desk.answer_all();
    // As one piece.
    assert_eq!(desk.committed.last(), Some(&format!("Output({id}, stdout, 1+2)")));
    assert_eq!(desk.bytes(&id), b"abc");
    // One word for all of it.
    assert_eq!(desk.told(socket), ["stdout 3"]);
}

#[test]
fn duplicates_and_overlaps_are_trimmed_and_a_hole_is_not_accepted() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let (id, run) = desk.running(socket);
    desk.output(socket, &run, 0, b"abc");
    desk.output(socket, &run, 1, b"bcde");
    desk.output(socket, &run, 6, b"g");
    assert_eq!(desk.bytes(&id), b"abcde");
    assert_eq!(desk.told(socket), ["stdout 5"]);
    // A duplicate is answered: its acknowledgement may have been lost.
    desk.output(socket, &run, 0, b"ab");
    assert_eq!(desk.told(socket), ["stdout 5"]);
    desk.output(socket, &run, 5, b"fg");
    assert_eq!(desk.bytes(&id), b"abcdefg");
    desk.output(socket, &run, u64::MAX, b"xx");
    assert_eq!(desk.bytes(&id), b"abcdefg");
}

#[test]
fn what_cannot_be_counted_is_not_accepted_and_a_claim_of_it_breaks_nothing() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let (id, run) = desk.running(socket);
    gap(&mut desk, socket, &run, 0, u64::MAX);
    let mut claim = report(&id, State::Running);
    claim.written = [(Stream::Stdout, u64::MAX), (Stream::Stderr, u64::MAX)].into();
    desk.say(socket, WorkerFrame::OperationState(claim));
    assert_eq!(desk.control.snapshot().behind, u64::MAX);
    desk.output(socket, &run, 0, b"abc");
    assert_eq!(desk.bytes(&id), b"abc");
}

#[test]
fn a_refused_commit_leaves_no_hole_behind() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let (id, run) = desk.running(socket);
    desk.mood = Mood::Slow;
    desk.output(socket, &run, 0, b"abc");
    desk.output(socket, &run, 3, b"def");
    desk.mood = Mood::Full;
    desk.answer_one();
    desk.mood = Mood::Prompt;
    desk.output(socket, &run, 6, b"ghi");
    desk.pass(S);
    assert_eq!((desk.bytes(&id), desk.told(socket)), (vec![], vec![]));
    // The worker offers it again from the first byte that was not acknowledged.
    desk.output(socket, &run, 0, b"abcdefghi");
    assert_eq!(desk.bytes(&id), b"abcdefghi");
    assert_eq!(desk.told(socket), ["stdout 9"]);
}

#[test]
fn a_gap_that_is_told_is_kept_as_a_gap_and_acknowledged() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let (id, run) = desk.running(socket);
    desk.output(socket, &run, 0, b"ab");
    gap(&mut desk, socket, &run, 5, 9);
    assert_eq!(desk.bytes(&id), b"ab", "there is a hole before the gap");
    gap(&mut desk, socket, &run, 1, 9);
    desk.output(socket, &run, 9, b"j");
    assert_eq!(desk.bytes(&id), b"ab<2..9>j");
    gap(&mut desk, socket, &run, 2, 9);
    gap(&mut desk, socket, &run, 12, 11);
    assert_eq!(desk.told(socket), ["stdout 10"]);
    assert_eq!(desk.bytes(&id), b"ab<2..9>j");
}

#[test]
fn streams_have_their_own_offsets_and_share_a_commit() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let (id, run) = desk.running(socket);
    desk.mood = Mood::Slow;
    desk.output(socket, &run, 0, b"first");
    let data = bytes::Bytes::from_static(b"\xff\x00");
    let stream = Stream::Stderr;
    desk.say(socket, WorkerFrame::ExecOutput { run_id: run.clone(), stream, offset: 0, data });
    desk.output(socket, &run, 5, b"!");
    desk.answer_one();
    assert_eq!(desk.waiting.len(), 1);
    desk.answer_all();
    assert_eq!(desk.record(&id).received, [(Stream::Stdout, 6), (Stream::Stderr, 2)].into());
    assert_eq!(desk.told(socket), ["stdout 6", "stderr 2"]);
}

#[test]
fn no_more_than_a_window_waits_in_memory() {
    static PIECE: [u8; 1 << 20] = [7; 1 << 20];
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let (id, run) = desk.running(socket);
    desk.mood = Mood::Slow;
    let window = limits::WORKER_WINDOW as u64 >> 20;
    for at in 0..window + 2 {
        desk.output(socket, &run, at << 20, &PIECE);
    }
    desk.answer_all();
    assert_eq!(desk.record(&id).received[&Stream::Stdout], limits::WORKER_WINDOW as u64);
    desk.mood = Mood::Prompt;
    for at in window..window + 2 {
        desk.output(socket, &run, at << 20, &PIECE);
    }
    assert_eq!(desk.record(&id).received[&Stream::Stdout], (window + 2) << 20);
}

#[test]
fn output_of_a_run_that_is_over_or_nobodys_is_acknowledged_so_that_the_worker_forgets_it() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let (id, run) = desk.running(socket);
    desk.output(socket, &run, 0, b"abc");
    desk.exit(socket, &id, 3);
    desk.read(socket);
    desk.output(socket, &run, 1, b"bc");
    let foreign = RunId::mint([9; 16]);
    desk.output(socket, &foreign, 70, b"x");
    let mut told = desk.told(socket);
    told.sort();
    assert_eq!(told, ["stdout 3", "stdout 71"]);
    assert_eq!(desk.bytes(&id), b"abc");
}

#[test]
fn answers_about_runs_of_nobody_are_bounded() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    for n in 0..=u16::try_from(limits::CONTROL_LATE_MAX).unwrap() {
        let mut random = [1; 16];
        random[..2].copy_from_slice(&n.to_be_bytes());
        desk.output(socket, &RunId::mint(random), 0, b"x");
    }
    assert_eq!(desk.told(socket).len(), limits::CONTROL_LATE_MAX);
}

#[test]
fn an_acknowledgement_that_was_not_written_is_not_missed_after_a_reconnect() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let (id, run) = desk.running(socket);
    desk.mood = Mood::Slow;
    desk.output(socket, &run, 0, b"abc");
    desk.close(socket);
    let socket = desk.live_knowing(1, &[(&id, State::Running)]);
    desk.output(socket, &run, 0, b"abcdef");
    desk.answer_all();
    assert_eq!(desk.bytes(&id), b"abcdef");
    assert_eq!(desk.told(socket).last().unwrap(), "stdout 6");
}

#[test]
fn pieces_are_joined_up_to_a_frames_worth_and_not_over_a_gap() {
    static HALF: [u8; limits::WORKER_OUTPUT_PIECE / 2] = [7; limits::WORKER_OUTPUT_PIECE / 2];
    let half = HALF.len() as u64;
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let (id, run) = desk.running(socket);
    desk.mood = Mood::Slow;
    desk.output(socket, &run, 0, b"a");
    desk.output(socket, &run, 1, b"b");
    gap(&mut desk, socket, &run, 2, 10);
    for at in 0..3 {
        desk.output(socket, &run, 10 + at * half, &HALF);
    }
    desk.answer_all();
    let last: Vec<String> = desk.committed[desk.committed.len() - 4..].to_vec();
    let whole = 2 * half;
    assert_eq!(
        last,
        [
            format!("Output({id}, stdout, 1+1)"),
            format!("Gap({id}, stdout, 2..10)"),
            format!("Output({id}, stdout, 10+{whole})"),
            format!("Output({id}, stdout, {}+{half})", 10 + whole),
        ]
    );
}
