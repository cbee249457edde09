//! What happens to a call while the link holds.

use super::*;
use crate::code::Code;
use crate::limits;
use crate::wire::ToolResultChunk;

#[test]
fn a_call_runs_once_and_its_result_is_kept_until_it_is_acknowledged() {
    let (mut rig, socket) = Rig::ready(Compat::Holdfast);
    rig.call(socket, 1);
    assert_eq!(rig.run(), Some(call_id(1)));
    rig.call(socket, 1);
    assert_eq!(rig.run(), None, "running: ignored");
    rig.finish(1, "[1.10]");
    assert_eq!(rig.results(socket), [(call_id(1), "[1.10]".into())]);
    rig.call(socket, 1);
    assert_eq!(rig.run(), None);
    assert_eq!(rig.results(socket), [(call_id(1), "[1.10]".into())], "finished: the stored result again");
    rig.ack(socket, 1);
    assert_eq!(rig.daemon.snapshot(rig.now).calls.queued_results, 0);
    assert_eq!(rig.daemon.snapshot(rig.now).delivered, 1);
}

#[test]
fn an_unacknowledged_result_is_sent_again_after_10_s_doubling_to_60_s() {
    let (mut rig, socket) = Rig::ready(Compat::Holdfast);
    rig.call(socket, 1);
    rig.finish(1, "1");
    let mut at = Vec::new();
    for second in 0..=200 {
        if !rig.results(socket).is_empty() {
            at.push(second);
        }
        rig.live(socket, S);
    }
    assert_eq!(at, [0, 10, 30, 70, 130, 190]);
}

#[test]
fn without_acks_a_result_is_kept_until_the_pong_to_a_later_heartbeat() {
    let (mut rig, socket) = Rig::ready(Compat::Base);
    rig.pass(S * 25);
    let frames = rig.written(socket);
    let DaemonFrame::Heartbeat(early) = &frames[0].frame else { panic!() };
    rig.call(socket, 1);
    rig.finish(1, "1");
    assert_eq!(rig.results(socket).len(), 1);
    rig.say(socket, &RelayFrame::Pong(wire::Pong { ts: early.ts.clone(), in_use: false }));
    assert_eq!(rig.daemon.snapshot(rig.now).calls.queued_results, 1, "that heartbeat was sent before the result");
    rig.pass(S * 25);
    let frames = rig.written(socket);
    let DaemonFrame::Heartbeat(late) = &frames[0].frame else { panic!() };
    rig.say(socket, &RelayFrame::Pong(wire::Pong { ts: late.ts.clone(), in_use: false }));
    assert_eq!(rig.daemon.snapshot(rig.now).calls.queued_results, 0);
}

#[test]
fn a_cancelled_call_sends_no_result() {
    let (mut rig, socket) = Rig::ready(Compat::Holdfast);
    rig.call(socket, 1);
    rig.say(socket, &RelayFrame::CancelCall(wire::CancelCall { id: call_id(1) }));
    assert_eq!(rig.cancelled(), [(call_id(1), CancelReason::Caller)]);
    rig.finish(1, "1");
    assert!(rig.results(socket).is_empty());
}

#[test]
fn a_call_over_its_budget_is_stopped_and_the_executors_word_is_the_result() {
    let (mut rig, socket) = Rig::ready(Compat::Holdfast);
    rig.call_of(socket, 1, "echo", 2_000);
    rig.call_of(socket, 2, "echo", 2_000);
    rig.pass(S * 2);
    let why = CancelReason::Timeout;
    assert_eq!(rig.cancelled(), [(call_id(1), why), (call_id(2), why)]);
    rig.fail(1, ToolError::new(Code::Timeout, "the tree was killed"));
    assert_eq!(rig.results(socket), [(call_id(1), "timeout".into())]);
    rig.pass(limits::KILL_SETTLE);
    assert_eq!(rig.results(socket), [(call_id(2), "outcome_unknown".into())], "its executor never said a word");
}

#[test]
fn a_full_daemon_is_busy_for_ordinary_calls_and_keeps_four_places_for_control() {
    let (mut rig, socket) = Rig::ready(Compat::Holdfast);
    for n in 0..60 {
        rig.call(socket, n);
        assert_eq!(rig.run(), Some(call_id(n)));
    }
    rig.call(socket, 60);
    assert_eq!(rig.results(socket), [(call_id(60), "busy".into())]);
    for n in 61..65 {
        rig.call_of(socket, n, "kill_process", 1000);
        assert_eq!(rig.run(), Some(call_id(n)));
    }
    rig.call_of(socket, 65, "kill_process", 1000);
    assert_eq!(rig.results(socket), [(call_id(65), "busy".into())]);
    let (mut rig, socket) = Rig::ready(Compat::Base);
    for n in 0..14 {
        rig.call(socket, n);
    }
    rig.call(socket, 14);
    assert_eq!(rig.results(socket), [(call_id(14), "limit_exceeded".into())]);
}

#[test]
fn a_malformed_call_with_a_usable_id_is_answered_and_one_without_is_not() {
    let (mut rig, socket) = Rig::ready(Compat::Base);
    let id = call_id(1);
    rig.input(Input::Frame(socket, &format!(r#"{{"type":"tool_call","id":"{id}","tool":"echo","arguments":{{}}}}"#)));
    assert_eq!(rig.results(socket), [(id, "invalid_request".into())]);
    rig.input(Input::Frame(socket, r#"{"type":"tool_call","tool":"echo"}"#));
    assert!(rig.written(socket).is_empty());
    assert_eq!(rig.state(), LinkState::Healthy);
}

#[test]
fn progress_is_sent_while_the_call_runs_and_only_the_latest_waits() {
    let (mut rig, socket) = Rig::ready(Compat::Holdfast);
    rig.call(socket, 1);
    for step in 1..=5 {
        let progress = Progress { progress: f64::from(step), total: None, message: None };
        rig.input(Input::Progress(call_id(1), progress));
    }
    let frames = rig.written(socket);
    assert_eq!(frames.len(), 1);
    assert!(matches!(&frames[0].frame, DaemonFrame::ToolProgress(p) if p.progress == 5.0));
}

fn big(bytes: usize) -> String {
    format!("\"{}\"", "x".repeat(bytes))
}

#[test]
fn a_big_result_goes_in_chunks_and_small_frames_pass_it() {
    let (mut rig, socket) = Rig::ready(Compat::Holdfast);
    rig.call(socket, 1);
    rig.call(socket, 2);
    let raw = big(300 * 1024);
    rig.finish(1, &raw);
    let mut chunks: Vec<ToolResultChunk> = Vec::new();
    let mut order = Vec::new();
    while let Some(text) = rig.daemon.poll_transmit(rig.now, socket) {
        assert!(text.len() <= limits::CHUNK_FRAME_MAX, "{}", text.len());
        let frame = DaemonFrame::decode(&text).expect("valid").frame;
        order.push(kind(&frame));
        if let DaemonFrame::ToolResultChunk(chunk) = frame {
            chunks.push(chunk);
        }
        if chunks.len() == 2 && order.len() == 2 {
            rig.finish(2, "2");
        }
    }
    assert_eq!(order[..4], ["tool_result_chunk", "tool_result_chunk", "tool_result", "tool_result_chunk"]);
    use base64::Engine as _;
    let whole: Vec<u8> = chunks
        .iter()
        .flat_map(|c| base64::engine::general_purpose::STANDARD.decode(&c.data).expect("base64"))
        .collect();
    assert_eq!(whole.len() as u64, chunks[0].total);
    let text = String::from_utf8(whole).expect("utf-8");
    assert_eq!(text, format!(r#"{{"type":"tool_result","id":"{}","ok":true,"result":{raw}}}"#, call_id(1)));
}

#[test]
fn a_waiting_result_above_64_kib_is_stored_loaded_when_needed_and_removed_when_acknowledged() {
    let (mut rig, socket) = Rig::ready(Compat::Holdfast);
    rig.call(socket, 1);
    rig.input(Input::Closed(socket, None));
    let raw = big(100 * 1024);
    rig.finish(1, &raw);
    let stored = rig.take(|o| if let Output::Store(id, text) = o { Some((id.clone(), text.clone())) } else { None });
    let (id, text) = stored.expect("a store");
    rig.input(Input::Stored(id.clone(), true));
    rig.pass(S);
    let socket = rig.daemon_dials();
    rig.handshake(socket, std::slice::from_ref(&id));
    assert!(rig.results(socket).is_empty());
    assert!(rig.out.iter().any(|o| matches!(o, Output::Load(loaded) if *loaded == id)));
    rig.input(Input::Loaded(id.clone(), Some(text)));
    assert_eq!(rig.results(socket), [(id.clone(), raw)]);
    rig.ack(socket, 1);
    assert!(rig.out.iter().any(|o| matches!(o, Output::Remove(removed) if *removed == id)));
}

#[test]
fn only_a_full_disk_replaces_a_result() {
    let (mut rig, socket) = Rig::ready(Compat::Holdfast);
    for n in 0..5 {
        rig.call(socket, n);
    }
    rig.input(Input::Closed(socket, None));
    let raw = big(5 * 1024 * 1024);
    for n in 0..5 {
        rig.finish(n, &raw);
    }
    // Three of them fit the memory; the others cannot be kept.
    for n in [4, 3, 2, 1, 0] {
        rig.input(Input::Stored(call_id(n), false));
    }
    rig.pass(S);
    let socket = rig.daemon_dials();
    rig.handshake(socket, &(0..5).map(call_id).collect::<Vec<_>>());
    let replaced = rig.results(socket);
    assert_eq!(replaced, [(call_id(3), "result_too_large".into()), (call_id(4), "result_too_large".into())]);
}

#[test]
fn a_result_that_does_not_fit_the_link_says_that_the_tool_ran() {
    let (mut rig, socket) = Rig::ready(Compat::Base);
    rig.call(socket, 1);
    rig.finish(1, &big(limits::FRAME_MAX));
    assert_eq!(rig.results(socket), [(call_id(1), "limit_exceeded".into())]);
}

#[test]
fn a_stopping_daemon_finishes_its_calls_and_refuses_new_ones() {
    let (mut rig, socket) = Rig::ready(Compat::Holdfast);
    rig.call(socket, 1);
    rig.input(Input::Stop { patient: true });
    rig.call(socket, 2);
    assert_eq!(rig.results(socket), [(call_id(2), "unavailable".into())]);
    rig.ack(socket, 2);
    rig.live(socket, S * 20);
    rig.finish(1, "1");
    assert_eq!(rig.results(socket), [(call_id(1), "1".into())]);
    assert_eq!(rig.closed(), None);
    rig.ack(socket, 1);
    assert_eq!(rig.closed(), Some((socket, 1000, "daemon shutdown")));
    assert_eq!(rig.state(), LinkState::Stopped);
}

#[test]
fn a_second_stop_kills_what_runs_and_acknowledgements_are_waited_for_3_s() {
    let (mut rig, socket) = Rig::ready(Compat::Holdfast);
    rig.call(socket, 1);
    rig.call(socket, 2);
    rig.finish(2, "2");
    rig.written(socket);
    rig.input(Input::Stop { patient: true });
    rig.input(Input::Stop { patient: false });
    assert_eq!(rig.cancelled(), [(call_id(1), CancelReason::Shutdown)]);
    rig.pass(limits::STOP_ACK_WAIT - Duration::from_millis(1));
    assert_eq!(rig.state(), LinkState::Healthy);
    rig.pass(Duration::from_millis(1));
    assert_eq!(rig.closed(), Some((socket, 1000, "daemon shutdown")));
    assert!(rig.daemon.poll_timeout(rig.now).is_none_or(|wait| wait <= limits::KILL_SETTLE));
}

#[test]
fn a_text_that_a_slow_disk_still_writes_counts_as_memory_though_its_result_arrived() {
    let (mut rig, socket) = Rig::ready(Compat::Holdfast);
    for n in 1..=5 {
        rig.call(socket, n);
        rig.finish(n, &big(limits::OUTBOX_MEMORY / 4));
        rig.written(socket);
        rig.ack(socket, n);
    }
    assert_eq!(rig.daemon.snapshot(rig.now).calls.queued_results, 0);
    let stored = |o: &Output| if let Output::Store(id, _) = o { Some(id.clone()) } else { None };
    rig.out.clear();
    rig.call(socket, 6);
    rig.finish(6, "6");
    assert_eq!(rig.take(stored), Some(call_id(6)), "there is no room in memory");
    for n in 1..=5 {
        rig.input(Input::Stored(call_id(n), true));
        assert!(rig.take(|o| matches!(o, Output::Remove(id) if *id == call_id(n)).then_some(())).is_some());
    }
    rig.call(socket, 7);
    rig.finish(7, "7");
    assert_eq!(rig.take(stored), None, "there is room again");
}

#[test]
fn a_stop_says_how_many_calls_and_results_it_cut_off() {
    let (mut rig, socket) = Rig::ready(Compat::Holdfast);
    for n in 1..=3 {
        rig.call(socket, n);
    }
    rig.finish(3, "3");
    rig.input(Input::Stop { patient: false });
    assert_eq!(rig.told(), [&Told::CutOff { calls: 2 }]);
    rig.out.clear();
    rig.pass(limits::STOP_ACK_WAIT);
    assert!(rig.told().contains(&&Told::CutOff { calls: 1 }));
    assert_eq!(rig.daemon.snapshot(rig.now).lost, 3);
}

fn refused_id(n: usize) -> CallId {
    CallId::parse(&format!("call_refused_{n}")).expect("valid")
}

/// A call that is answered at once.
fn refused(n: usize) -> RelayFrame {
    RelayFrame::ToolCall(wire::ToolCall {
        id: refused_id(n),
        tool: "echo".into(),
        arguments: RawValue::from_string("[]".into()).expect("raw"),
        timeout_ms: 5_000,
        authorization: wire::Authorization {
            account_id: AccountId::mint([2; 18]),
            account_version: 1,
            role: Role::Owner,
            client: None,
            client_name: None,
        },
        progress: false,
    })
}

/// **Proves** that a relay that acknowledges nothing cannot make the device keep answers without end.
#[test]
fn a_call_on_top_of_thousands_of_unacknowledged_results_is_a_protocol_error() {
    let (mut rig, socket) = Rig::ready(Compat::Holdfast);
    for n in 0..limits::SEEN_IDS_MAX {
        rig.say(socket, &refused(n));
    }
    assert_eq!(rig.results(socket).len(), limits::SEEN_IDS_MAX);
    assert_eq!(rig.daemon.snapshot(rig.now).calls.queued_results, limits::SEEN_IDS_MAX);
    assert_eq!(rig.closed(), None);
    rig.call(socket, 1);
    assert_eq!(rig.closed(), Some((socket, 1002, "results are not acknowledged")));
    assert_eq!(rig.run(), None, "nothing starts");
    rig.pass(S);
    let new = rig.daemon_dials();
    rig.handshake(new, &[refused_id(7)]);
    assert_eq!(rig.results(new), [(refused_id(7), "invalid_request".into())], "only what it still names is kept");
    rig.call(new, 1);
    assert_eq!(rig.run(), Some(call_id(1)), "it was never seen before");
}

#[test]
fn a_relay_that_acknowledges_may_send_as_many_calls_as_it_likes() {
    let (mut rig, socket) = Rig::ready(Compat::Holdfast);
    for n in 0..2 * limits::SEEN_IDS_MAX {
        rig.say(socket, &refused(n));
        rig.results(socket);
        rig.say(socket, &RelayFrame::ToolResultAck(wire::ToolResultAck { id: refused_id(n), matched: true }));
    }
    assert_eq!(rig.closed(), None);
}

#[test]
fn on_the_base_wire_a_fast_relay_is_asked_early_what_it_has_read() {
    let (mut rig, socket) = Rig::ready(Compat::Base);
    for n in 0..2 * limits::SEEN_IDS_MAX {
        rig.say(socket, &refused(n));
        for frame in rig.written(socket) {
            if let DaemonFrame::Heartbeat(beat) = frame.frame {
                rig.say(socket, &RelayFrame::Pong(wire::Pong { ts: beat.ts, in_use: false }));
            }
        }
    }
    assert_eq!(rig.closed(), None, "no time has passed, and no heartbeat was due");
    assert!(rig.daemon.snapshot(rig.now).calls.queued_results < limits::SEEN_IDS_MAX);
}
