use super::super::*;
use super::desk::*;
use crate::id::RuntimeId;
use crate::limits;
use crate::operation::State;
use crate::wire::close::INCOMPATIBLE;
use crate::wire::worker::{CLOSE_IN_USE, CLOSE_PROTOCOL, CLOSE_RECOVERY, CLOSE_REPLACED, HostInfo, WorkerFrame};

#[test]
fn a_newer_socket_of_the_same_ledger_replaces_the_older_one() {
    let mut desk = Desk::new();
    let old = desk.live(1);
    let (id, run) = desk.running(old);
    let new = desk.live_knowing(1, &[(&id, State::Running)]);
    assert_eq!(desk.closes[&old], CLOSE_REPLACED);
    assert_eq!(desk.notes.last(), Some(&Note::Live { socket: new }));
    // Frames of the old one are nobody's.
    desk.output(old, &run, 0, b"abc");
    desk.exit(old, &id, 0);
    desk.close(old);
    assert_eq!((desk.bytes(&id), desk.outcome(&id)), (vec![], None));
    assert_eq!(desk.told(old), [""; 0]);
}

#[test]
fn another_ledger_is_refused_while_the_incumbent_is_heard_and_comes_in_when_it_is_silent() {
    let mut desk = Desk::new();
    let incumbent = desk.live(1);
    let (id, _) = desk.running(incumbent);
    desk.pass_alive(incumbent, S * 60);
    let clone = desk.connect();
    desk.hello(clone, 2);
    assert_eq!(desk.closes[&clone], CLOSE_IN_USE);
    assert!(desk.notes.contains(&Note::InUse));
    assert_eq!((desk.closes.get(&incumbent), desk.outcome(&id)), (None, None));
    desk.pass(limits::WORKER_SILENCE);
    assert_eq!(desk.closes[&incumbent], CLOSE_RECOVERY);
    desk.live(2);
    assert_eq!(desk.record(&id).state, State::Unknown);
}

#[test]
fn a_socket_lives_by_its_bytes() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    desk.pass_alive(socket, S * 100);
    assert_eq!(desk.closes.get(&socket), None);
    desk.pass(limits::WORKER_SILENCE - S * 2);
    assert_eq!(desk.closes.get(&socket), None);
    desk.pass(S);
    assert_eq!(desk.closes[&socket], CLOSE_RECOVERY);
    assert!(desk.notes.contains(&Note::Away { socket, why: Loss::Silence }));
    assert!(!desk.control.is_live());
    assert_eq!(desk.control.poll_timeout(desk.now), None);
}

#[test]
fn this_side_writes_at_least_every_five_seconds_and_renews_the_lease_every_twenty() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    desk.pass_alive(socket, S * 19);
    assert_eq!((desk.pings, desk.told(socket)), (3, vec![]));
    desk.pass_alive(socket, S * 2);
    assert_eq!(desk.told(socket), ["lease 120000"]);
    let pings = desk.pings;
    desk.pass_alive(socket, S * 4);
    assert_eq!(desk.pings, pings, "the lease was written");
    desk.pass_alive(socket, S * 2);
    assert_eq!(desk.pings, pings + 1);
}

#[test]
fn a_lease_that_nobody_reads_does_not_pile_up() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    desk.pass_alive(socket, S * 600);
    assert_eq!(desk.told(socket), ["lease 120000"]);
}

#[test]
fn a_socket_that_does_not_say_hello_is_closed_and_a_newer_one_takes_its_place() {
    let mut desk = Desk::new();
    let first = desk.connect();
    let second = desk.connect();
    assert_eq!(desk.closes[&first], CLOSE_REPLACED);
    desk.pass(limits::WORKER_HANDSHAKE);
    assert_eq!(desk.closes[&second], CLOSE_RECOVERY);
    let third = desk.connect();
    desk.close(third);
    assert_eq!(desk.control.poll_timeout(desk.now), None);
}

#[test]
fn what_is_not_this_protocol_closes_the_socket_and_touches_nothing() {
    let mut desk = Desk::new();
    let id = desk.start("one");
    let early = desk.connect();
    desk.exit(early, &id, 0);
    let noise = desk.connect();
    desk.tell(Input::Unreadable { socket: noise });
    let other = desk.connect();
    desk.say(
        other,
        WorkerFrame::Hello {
            resumable_protocol: 2,
            runtime_id: RuntimeId::mint([1; 16]),
            ledger_id: ledger(1),
            startup_ready: true,
            host_info: HostInfo::default(),
        },
    );
    let twice = desk.live(1);
    desk.hello(twice, 1);
    let live = desk.live(1);
    desk.tell(Input::Unreadable { socket: live });
    for socket in [early, noise, twice, live] {
        assert_eq!(desk.closes[&socket], CLOSE_PROTOCOL);
    }
    assert_eq!(desk.closes[&other], INCOMPATIBLE);
    assert_eq!(desk.outcome(&id), None);
}

#[test]
fn a_candidate_does_not_disturb_the_worker_in_service() {
    let mut desk = Desk::new();
    let socket = desk.live(1);
    let (id, run) = desk.running(socket);
    desk.connect();
    desk.output(socket, &run, 0, b"abc");
    assert_eq!((desk.bytes(&id), desk.told(socket)), (b"abc".to_vec(), vec!["stdout 3".to_owned()]));
}
