use super::super::*;
use super::desk::*;
use crate::code::Code;
use crate::limits;
use crate::wire::*;

#[test]
fn an_announced_sleep_holds_the_calls_for_twelve_hours() {
    let mut desk = Desk::new();
    let socket = desk.ready(&holdfast(1));
    let waiter = desk.open();
    let call = desk.id(waiter);
    desk.say(socket, DaemonFrame::Suspending(Suspending {}));
    let Some(RelayFrame::SuspendingAck(ack)) = desk.frames[&socket].last() else { panic!() };
    assert_eq!(ack.hold_ms, 12 * 3600 * 1000);
    desk.pass(S * 3600 * 11);
    assert_eq!(desk.closes[&socket], close::LIVENESS);
    assert_eq!(desk.error(waiter), None);
    let socket = desk.ready(&holdfast(1));
    assert_eq!(desk.named(socket), std::slice::from_ref(&call));
    desk.finish(socket, &call, "1");
    assert_eq!(desk.got(waiter), Some("1"));
    assert_eq!(desk.board.snapshot(desk.now).hold_until, None);
}

#[test]
fn a_hold_that_runs_out_ends_the_calls_as_unknown() {
    let mut desk = Desk::new();
    let socket = desk.ready(&holdfast(1));
    let waiter = desk.open();
    desk.say(socket, DaemonFrame::Suspending(Suspending {}));
    desk.pass(limits::SUSPEND_HOLD - MS);
    assert_eq!(desk.error(waiter), None);
    desk.pass(MS);
    assert_eq!(desk.error(waiter), Some((Code::OutcomeUnknown, false)));
}

#[test]
fn nothing_new_is_sent_to_a_device_that_is_about_to_sleep() {
    let mut desk = Desk::new();
    let socket = desk.ready(&holdfast(1));
    desk.say(socket, DaemonFrame::Suspending(Suspending {}));
    let waiter = desk.open();
    assert!(desk.calls(socket).is_empty());
    desk.pass_alive(socket, S * 15);
    assert_eq!(desk.error(waiter), Some((Code::Unavailable, true)));
}

#[test]
fn an_ordinary_frame_ends_the_hold_and_a_heartbeat_right_after_the_announcement_does_not() {
    let mut desk = Desk::new();
    let socket = desk.ready(&holdfast(1));
    desk.say(socket, DaemonFrame::Suspending(Suspending {}));
    desk.pass_alive(socket, S * 3);
    desk.heartbeat(socket);
    assert!(desk.board.snapshot(desk.now).hold_until.is_some());
    let waiter = desk.open();
    desk.pass_alive(socket, S * 8);
    desk.heartbeat(socket);
    assert_eq!(desk.board.snapshot(desk.now).hold_until, None);
    assert_eq!(desk.calls(socket), [desk.id(waiter)]);
    desk.lose(socket);
    desk.pass(limits::GRACE);
    assert_eq!(desk.error(waiter), Some((Code::OutcomeUnknown, false)), "the plain grace counts again");
}

#[test]
fn a_cut_during_the_hold_keeps_it_and_the_refused_clone_stays_out() {
    let mut desk = Desk::new();
    let socket = desk.ready(&holdfast(1));
    let clone = desk.connect();
    desk.hello(clone, &holdfast(2));
    let nonce = desk.pings.last().expect("a ping").1;
    desk.tell(Input::Ponged { socket, nonce });
    let waiter = desk.open();
    desk.say(socket, DaemonFrame::Suspending(Suspending {}));
    desk.lose(socket);
    desk.pass(S * 3600);
    let again = desk.connect();
    desk.hello(again, &holdfast(2));
    assert_eq!(desk.closes[&again], close::IN_USE);
    assert_eq!(desk.error(waiter), None);
}
