//! The runner's machine in virtual time.

use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;

use super::{Ask, End, Lease, Program, Runner, RunnerInput, RunnerOutput, Segment, Signal, Spec, Tell, VERSION};
use crate::id::{OperationId, RunId};
use crate::limits;
use crate::operation::{Exit, OnFull, Stream};
use crate::time::Now;

const S: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);
const OUT: Stream = Stream::Stdout;
const ERR: Stream = Stream::Stderr;
const START: Now = Now::at(Duration::from_secs(1000));

fn spec() -> Spec {
    Spec {
        version: VERSION,
        operation: id(0),
        run: RunId::mint([0; 16]),
        attempt: 1,
        program: Program::Pipes { argv: vec!["true".into()], stdin: true },
        cwd: "/".into(),
        env: Vec::new(),
        timeout: None,
        on_full: OnFull::Wait,
        quota: limits::SPOOL_RUN_MIN,
        lease: None,
        socket: String::new(),
    }
}

fn id(n: u8) -> OperationId {
    OperationId::mint([n; 16])
}

fn exit(code: i32) -> RunnerInput {
    RunnerInput::Exited(Exit { code: Some(code), ..Exit::default() })
}

fn wrote(stream: Stream, bytes: u64) -> RunnerInput {
    RunnerInput::Wrote { stream, bytes }
}

fn lease(generation: u64, until: Option<Duration>) -> RunnerInput {
    RunnerInput::Asked(Ask::Lease { lease: Lease { generation, until } })
}

fn drain(runner: &mut Runner) -> Vec<RunnerOutput> {
    std::iter::from_fn(|| runner.poll_output()).collect()
}

fn started(now: Now, spec: &Spec) -> Runner {
    let mut runner = Runner::new(now, spec);
    assert_eq!(drain(&mut runner), [RunnerOutput::Start]);
    runner.handle(now, RunnerInput::Started);
    assert_eq!(drain(&mut runner), []);
    runner
}

fn signals(outputs: &[RunnerOutput]) -> Vec<Signal> {
    let signals = outputs.iter().filter_map(|output| match output {
        RunnerOutput::Signal(signal) => Some(*signal),
        _ => None,
    });
    signals.collect()
}

/// The program ends as it was told, and everything is read.
fn ended(runner: &mut Runner, now: Now) -> End {
    for input in
        [exit(143), RunnerInput::Gone { escaped: Vec::new() }, RunnerInput::Closed(OUT), RunnerInput::Closed(ERR)]
    {
        runner.handle(now, input);
    }
    match drain(runner).pop() {
        Some(RunnerOutput::Finish(end)) => end,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_program_that_ends_is_over_when_its_pipes_are() {
    let mut runner = started(START, &spec());
    runner.handle(START, wrote(OUT, 3));
    runner.handle(START, exit(7));
    runner.handle(START, RunnerInput::Closed(OUT));
    drain(&mut runner);
    runner.handle(START, RunnerInput::Closed(ERR));
    // Something may have closed its pipes and live on.
    assert_eq!(drain(&mut runner), [RunnerOutput::Signal(Signal::Term)]);
    runner.handle(START, RunnerInput::Gone { escaped: vec![9] });
    let [RunnerOutput::Finish(end)] = &drain(&mut runner)[..] else { panic!() };
    assert_eq!((end.exit.unwrap().code, end.written.get(&OUT), &end.escaped[..]), (Some(7), Some(&3), &[9][..]));
    assert!(!end.killed && !end.timed_out && end.lease_expired.is_none());
}

#[test]
fn who_holds_the_pipes_of_an_ended_program_is_ended_and_what_is_in_them_is_read() {
    let mut runner = started(START, &spec());
    runner.handle(START, exit(0));
    runner.handle_timeout(START.plus(limits::RUNNER_DRAIN - MS));
    assert_eq!(drain(&mut runner), []);
    let now = START.plus(limits::RUNNER_DRAIN);
    runner.handle_timeout(now);
    assert_eq!(drain(&mut runner), [RunnerOutput::Signal(Signal::Term)]);
    let now = now.plus(limits::TREE_KILL_WAIT);
    runner.handle_timeout(now);
    assert_eq!(drain(&mut runner), [RunnerOutput::Signal(Signal::Kill)]);
    runner.handle(now, RunnerInput::Gone { escaped: Vec::new() });
    assert_eq!(drain(&mut runner), [RunnerOutput::ReadOut]);
    // A spool that is full does not keep it.
    runner.handle(now, wrote(OUT, limits::SPOOL_RUN_MIN));
    assert_eq!(runner.room(), u64::MAX);
    runner.handle(now, RunnerInput::Closed(OUT));
    runner.handle(now, RunnerInput::Closed(ERR));
    assert!(matches!(&drain(&mut runner)[..], [RunnerOutput::Tell(_), RunnerOutput::Finish(end)] if !end.killed));
}

#[test]
fn what_the_kernel_does_not_let_go_is_waited_for_only_when_it_is_the_program() {
    let mut runner = started(START, &spec());
    runner.handle(START, RunnerInput::Asked(Ask::Kill {}));
    let late = START.plus(limits::TREE_KILL_WAIT).plus(3600 * S);
    runner.handle_timeout(late);
    runner.handle_timeout(late.plus(3600 * S));
    assert_eq!(signals(&drain(&mut runner)), [Signal::Term, Signal::Kill]);

    let mut runner = started(START, &spec());
    runner.handle(START, RunnerInput::Asked(Ask::Kill {}));
    runner.handle(START, exit(1));
    runner.handle_timeout(late);
    runner.handle_timeout(late.plus(limits::TREE_KILL_WAIT));
    assert_eq!(drain(&mut runner).pop(), Some(RunnerOutput::ReadOut));
}

#[test]
fn who_is_left_of_a_tree_whose_program_the_kernel_let_go_late_is_left_behind_too() {
    let mut runner = started(START, &spec());
    runner.handle(START, RunnerInput::Asked(Ask::Kill {}));
    let late = START.plus(limits::TREE_KILL_WAIT);
    runner.handle_timeout(late);
    let late = late.plus(limits::TREE_KILL_WAIT);
    runner.handle_timeout(late);
    assert_eq!(signals(&drain(&mut runner)), [Signal::Term, Signal::Kill]);
    runner.handle(late.plus(S), exit(137));
    assert_eq!(drain(&mut runner), [], "its tree has its time");
    runner.handle_timeout(late.plus(S).plus(limits::TREE_KILL_WAIT));
    assert_eq!(drain(&mut runner), [RunnerOutput::ReadOut]);
}

#[test]
fn what_the_system_ends_says_so_and_what_ended_by_itself_was_not_ended() {
    let mut runner = started(START, &spec());
    runner.handle(START, RunnerInput::Interrupted);
    let end = ended(&mut runner, START);
    assert_eq!((end.killed, end.interrupted), (true, true));

    let mut runner = started(START, &spec());
    runner.handle(START, RunnerInput::Asked(Ask::Kill {}));
    runner.handle(START, RunnerInput::Interrupted);
    let end = ended(&mut runner, START);
    assert_eq!((end.killed, end.interrupted), (true, false), "who came first");

    // The system asks both, and the program is faster.
    let exits =
        [(Exit { signal: Some(15), ..Exit::default() }, true), (Exit { code: Some(0), ..Exit::default() }, false)];
    for (exit, cut_off) in exits {
        let mut runner = started(START, &spec());
        runner.handle(START, RunnerInput::Exited(exit));
        runner.handle(START, RunnerInput::Interrupted);
        runner.handle(START, RunnerInput::Closed(OUT));
        runner.handle(START, RunnerInput::Closed(ERR));
        runner.handle(START, RunnerInput::Gone { escaped: Vec::new() });
        let Some(RunnerOutput::Finish(end)) = drain(&mut runner).pop() else { panic!() };
        assert_eq!((end.killed, end.interrupted), (cut_off, cut_off));
    }
}

#[test]
fn the_time_of_a_program_is_awake_time() {
    let mut runner = started(START, &Spec { timeout: Some(60 * S), ..spec() });
    runner.handle_timeout(START.plus(59 * S).slept(3600 * S));
    assert_eq!(drain(&mut runner), []);
    let now = START.plus(60 * S);
    runner.handle_timeout(now);
    assert_eq!(drain(&mut runner), [RunnerOutput::Signal(Signal::Term)]);
    let end = ended(&mut runner, now);
    assert!(end.timed_out && !end.killed);

    let mut runner = started(START, &Spec { timeout: Some(60 * S), ..spec() });
    runner.handle(START.plus(59 * S), exit(0));
    runner.handle(START.plus(61 * S), RunnerInput::Closed(OUT));
    assert_eq!(drain(&mut runner), [RunnerOutput::Signal(Signal::Term)]);
    runner.handle(START.plus(61 * S), RunnerInput::Closed(ERR));
    assert!(!ended(&mut runner, START.plus(61 * S)).timed_out);
}

#[test]
fn a_lease_counts_sleep_and_what_ends_after_it_is_marked_with_its_generation() {
    let until = Some(START.boot + 120 * S);
    let of = |generation| Spec { lease: Some(Lease { generation, until }), ..spec() };
    // The machine sleeps past it; the program ended while nobody looked.
    let mut runner = started(START, &of(3));
    let woke = START.slept(120 * S);
    runner.handle(woke, exit(0));
    assert_eq!(drain(&mut runner), [RunnerOutput::Signal(Signal::Term)]);
    assert_eq!(ended(&mut runner, woke).lease_expired, Some(3));

    // One that ended in time is a result, however long its pipes take.
    let mut runner = started(START, &of(3));
    runner.handle(START.plus(119 * S), exit(0));
    assert_eq!(drain(&mut runner), []);
    runner.handle_timeout(woke);
    assert_eq!(drain(&mut runner), [RunnerOutput::Signal(Signal::Term)]);
    assert_eq!(ended(&mut runner, woke).lease_expired, None);

    // Without a lease nothing starts.
    let mut runner = Runner::new(woke, &of(4));
    let [RunnerOutput::Finish(end)] = &drain(&mut runner)[..] else { panic!() };
    assert_eq!((end.exit, end.lease_expired, end.not_started.is_some()), (None, Some(4), true));

    // It may end while the program starts.
    let mut runner = Runner::new(START, &of(5));
    drain(&mut runner);
    runner.handle(woke, RunnerInput::Started);
    assert_eq!(drain(&mut runner), [RunnerOutput::Signal(Signal::Term)]);
    assert_eq!(ended(&mut runner, woke).lease_expired, Some(5));
}

#[test]
fn a_lease_is_renewed_in_time_or_not_at_all_and_may_be_held() {
    let until = |seconds: u32| Some(START.boot + seconds * S);
    let mut runner = started(START, &Spec { lease: Some(Lease { generation: 2, until: until(120) }), ..spec() });
    runner.handle(START.plus(100 * S), lease(2, until(220)));
    runner.handle(START.plus(200 * S), lease(1, until(900)));
    runner.handle(START.plus(200 * S), lease(2, None));
    let woke = START.plus(200 * S).slept(8800 * S);
    runner.handle_timeout(woke);
    assert_eq!(drain(&mut runner), []);
    runner.handle(woke, lease(3, until(9100)));
    runner.handle(woke.plus(100 * S), lease(4, until(9900)));
    assert_eq!(drain(&mut runner), [RunnerOutput::Signal(Signal::Term)]);
    assert_eq!(ended(&mut runner, woke.plus(100 * S)).lease_expired, Some(3));

    // One that is held, by a worker that never comes back, ends all the same.
    let mut runner = started(START, &Spec { lease: Some(Lease { generation: 2, until: until(120) }), ..spec() });
    runner.handle(START.plus(S), lease(2, None));
    let woke = START.plus(S).slept(9000 * S);
    runner.handle_timeout(woke.plus(limits::WORKER_LEASE - S));
    assert_eq!(drain(&mut runner), []);
    runner.handle_timeout(woke.plus(limits::WORKER_LEASE));
    assert_eq!(drain(&mut runner), [RunnerOutput::Signal(Signal::Term)]);

    // A run without one takes none.
    let mut runner = started(START, &spec());
    runner.handle(START, lease(1, until(0)));
    assert_eq!(drain(&mut runner), []);
}

#[test]
fn input_is_given_once_however_often_it_is_asked() {
    let mut runner = started(START, &spec());
    let ask = || RunnerInput::Asked(Ask::Input { id: id(1), data: Bytes::from_static(b"x"), close: false });
    let done = |error: Option<&str>| RunnerOutput::Tell(Tell::Done { id: id(1), error: error.map(Into::into) });
    runner.handle(START, ask());
    runner.handle(START, ask());
    assert_eq!(drain(&mut runner), [RunnerOutput::Give { id: id(1), data: Bytes::from_static(b"x"), close: false }]);
    runner.handle(START, RunnerInput::Given { id: id(1), error: Some("closed".into()) });
    runner.handle(START, ask());
    assert_eq!(drain(&mut runner), [done(Some("closed")), done(Some("closed"))]);
}

#[test]
fn closing_a_terminal_hangs_up_and_is_no_kill() {
    let program = Program::Pty { argv: vec!["sh".into()], cols: 80, rows: 24 };
    let mut runner = started(START, &Spec { program, ..spec() });
    runner.handle(START, RunnerInput::Asked(Ask::Input { id: id(1), data: Bytes::new(), close: true }));
    assert_eq!(signals(&drain(&mut runner)), [Signal::HangUp]);
    runner.handle_timeout(START.plus(limits::TREE_KILL_WAIT));
    assert_eq!(signals(&drain(&mut runner)), [Signal::Kill]);
    runner.handle(START, RunnerInput::Closed(Stream::Pty));
    assert!(!ended(&mut runner, START).killed);
}

#[test]
fn growth_is_told_at_once_and_then_at_most_every_few_milliseconds() {
    let mut runner = started(START, &spec());
    let told = |runner: &mut Runner| drain(runner).len();
    runner.handle(START, wrote(OUT, 1));
    assert_eq!(told(&mut runner), 1);
    runner.handle(START.plus(MS), wrote(OUT, 1));
    runner.handle(START.plus(MS), wrote(ERR, 1));
    assert_eq!(told(&mut runner), 0);
    assert_eq!(runner.poll_timeout(START.plus(MS)), Some(limits::RUNNER_NEWS - MS));
    runner.handle_timeout(START.plus(limits::RUNNER_NEWS));
    let written = [(OUT, 2), (ERR, 1)].into();
    assert_eq!(drain(&mut runner), [RunnerOutput::Tell(Tell::Grew { written })]);
    runner.handle_timeout(START.plus(S));
    assert_eq!((told(&mut runner), runner.poll_timeout(START.plus(S))), (0, None));
}

#[test]
fn a_full_spool_and_a_full_disk_stall_the_program_until_there_is_room() {
    let mut runner = started(START, &spec());
    runner.handle(START, wrote(OUT, runner.room()));
    assert_eq!(drain(&mut runner).pop(), Some(RunnerOutput::Stalled(true)));
    let segment = Segment { stream: OUT, number: 0 };
    runner.handle(START, RunnerInput::Asked(Ask::Trim { stream: OUT, offset: limits::SPOOL_SEGMENT }));
    assert_eq!(drain(&mut runner), [RunnerOutput::Remove(segment), RunnerOutput::Stalled(false)]);

    runner.handle(START, RunnerInput::DiskFull);
    assert_eq!((drain(&mut runner), runner.room()), (vec![RunnerOutput::Stalled(true)], 0));
    let now = START.plus(limits::SPOOL_RETRY);
    runner.handle_timeout(now);
    assert_eq!(drain(&mut runner), [RunnerOutput::Retry]);
    runner.handle(now, RunnerInput::DiskFull);
    let segment = Segment { stream: OUT, number: 1 };
    runner.handle(now, RunnerInput::Asked(Ask::Trim { stream: OUT, offset: 2 * limits::SPOOL_SEGMENT }));
    assert_eq!(drain(&mut runner), [RunnerOutput::Remove(segment), RunnerOutput::Retry]);
    runner.handle(now, RunnerInput::DiskRoom);
    assert_eq!(drain(&mut runner), [RunnerOutput::Stalled(false)]);
}

#[test]
fn an_end_that_finds_no_room_is_written_later() {
    let mut runner = Runner::new(START, &spec());
    runner.handle(START, RunnerInput::NotStarted("no such program".into()));
    let first = drain(&mut runner).pop();
    runner.handle(START, RunnerInput::DiskFull);
    assert_eq!(drain(&mut runner), [RunnerOutput::Stalled(true)]);
    runner.handle_timeout(START.plus(limits::SPOOL_RETRY));
    assert_eq!(drain(&mut runner).pop(), first);
}

#[test]
fn output_is_not_given_up_for_an_end_that_finds_no_room() {
    let mut runner = started(START, &Spec { on_full: OnFull::DropMiddle, ..spec() });
    for _ in 0..4 {
        runner.handle(START, wrote(OUT, limits::SPOOL_SEGMENT));
    }
    runner.handle(START, RunnerInput::Asked(Ask::Kill {}));
    let first = ended(&mut runner, START);
    let mut now = START;
    for _ in 0..3 {
        runner.handle(now, RunnerInput::DiskFull);
        now = now.plus(limits::SPOOL_RETRY);
        runner.handle_timeout(now);
    }
    let Some(RunnerOutput::Finish(end)) = drain(&mut runner).pop() else { panic!() };
    assert_eq!(end.dropped, first.dropped);
}

#[derive(Debug, Clone)]
enum Step {
    Wait(u64),
    Sleep(u64),
    Write(u64),
    Trim(u64),
    Exit,
    Close(bool),
    Kill,
    Lease(u64, u64),
    DiskFull,
    DiskRoom,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..5000_u64).prop_map(Step::Wait),
        (0..100_000_u64).prop_map(Step::Sleep),
        (1..4_000_000_u64).prop_map(Step::Write),
        (0..40_000_000_u64).prop_map(Step::Trim),
        Just(Step::Exit),
        any::<bool>().prop_map(Step::Close),
        Just(Step::Kill),
        (0..3_u64, 0..200_000_u64).prop_map(|(generation, ms)| Step::Lease(generation, ms)),
        Just(Step::DiskFull),
        Just(Step::DiskRoom),
    ]
}

proptest! {
    /// Whatever happens in whatever order: once the program and its tree are gone, there is exactly one end, and a run that
    /// lived past its lease never has one that counts.
    #[test]
    fn every_run_comes_to_exactly_one_end(steps in prop::collection::vec(step(), 0..60), leased in any::<bool>()) {
        let mut now = START;
        let lease_end = START.boot + 60 * S;
        let first = leased.then_some(Lease { generation: 1, until: Some(lease_end) });
        let mut runner = started(now, &Spec { lease: first, timeout: Some(100 * S), ..spec() });
        let mut until = lease_end;
        let (mut exited, mut over, mut signalled, mut finished) = (None, false, false, Vec::new());
        let mut closed = [false; 2];
        let look = |runner: &mut Runner, signalled: &mut bool, finished: &mut Vec<End>| {
            for output in drain(runner) {
                match output {
                    RunnerOutput::Finish(end) => finished.push(end),
                    RunnerOutput::Signal(_) => *signalled = true,
                    _ => {}
                }
            }
        };
        for step in steps {
            match step {
                Step::Wait(ms) => now = now.plus(ms as u32 * MS),
                Step::Sleep(ms) => now = now.slept(ms as u32 * MS),
                _ => {}
            }
            over |= leased && exited.is_none() && now.boot >= until;
            match step {
                Step::Wait(_) | Step::Sleep(_) => runner.handle_timeout(now),
                Step::Write(bytes) if !closed[0] => {
                    let bytes = bytes.min(runner.room());
                    if bytes > 0 { runner.handle(now, wrote(OUT, bytes)) }
                }
                Step::Write(_) => {}
                Step::Trim(offset) => runner.handle(now, RunnerInput::Asked(Ask::Trim { stream: OUT, offset })),
                Step::Exit => if exited.is_none() {
                    exited = Some(now);
                    runner.handle(now, exit(0));
                },
                Step::Close(err) => if !std::mem::replace(&mut closed[usize::from(err)], true) {
                    runner.handle(now, RunnerInput::Closed(if err { ERR } else { OUT }));
                },
                Step::Kill => runner.handle(now, RunnerInput::Asked(Ask::Kill {})),
                Step::Lease(generation, ms) => {
                    let to = now.boot + ms as u32 * MS;
                    if leased && generation >= 1 && !over {
                        // Generations of a lease only grow.
                        until = to;
                        runner.handle(now, lease(3, Some(to)));
                        over |= exited.is_none() && now.boot >= until;
                    }
                }
                Step::DiskFull => runner.handle(now, RunnerInput::DiskFull),
                Step::DiskRoom => runner.handle(now, RunnerInput::DiskRoom),
            }
            look(&mut runner, &mut signalled, &mut finished);
            if !finished.is_empty() { break }
        }
        if exited.is_none() {
            runner.handle(now, exit(0));
        }
        for (at, stream) in [OUT, ERR].into_iter().enumerate() {
            if !closed[at] { runner.handle(now, RunnerInput::Closed(stream)) }
        }
        now = now.plus(limits::RUNNER_DRAIN);
        runner.handle_timeout(now);
        look(&mut runner, &mut signalled, &mut finished);
        prop_assert!(signalled, "what the program left behind is ended");
        runner.handle(now, RunnerInput::Gone { escaped: Vec::new() });
        look(&mut runner, &mut signalled, &mut finished);
        prop_assert_eq!(finished.len(), 1);
        prop_assert_eq!(finished[0].lease_expired.is_some(), over);
        prop_assert_eq!(&finished[0].written, &runner.written());
    }
}
