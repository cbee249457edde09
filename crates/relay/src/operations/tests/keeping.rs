use std::time::Duration;

use holdfast_core::control::{Change, Found, SessionCancel};
use holdfast_core::id::LedgerId;
use holdfast_core::operation::{Digest, Outcome, State, Stream, Streams};
use rusqlite::Connection;

use super::super::{store, view};
use super::{Bounds, admit, apply, database, device, end, id, moment, number, record};
use crate::clock::BootMoment;

#[test]
fn what_has_not_ended_is_loaded_as_it_was_committed() {
    let db = database();
    (1..=3).for_each(|n| admit(&db, n));
    let ledger = LedgerId::mint([5; 16]);
    let bytes = bytes::Bytes::from_static(b"abc");
    apply(&db, &[Change::Sent { id: id(2), ledger: ledger.clone() }], 0).unwrap();
    apply(&db, &[Change::State { id: id(2), state: State::Running }, Change::Cancel { id: id(2) }], 0).unwrap();
    apply(&db, &[Change::Output { id: id(2), stream: Stream::Stderr, offset: 0, bytes }], 0).unwrap();
    end(&db, 1, 5_000);
    let mut loaded = store::load(&db, &moment(41_000)).unwrap();
    let living = loaded.remove(&device()).unwrap().living;
    let mut second = record(2);
    (second.state, second.sent_to, second.cancelled) = (State::Running, Some(ledger), true);
    second.received = Streams::from([(Stream::Stderr, 3)]);
    let left = Duration::from_secs(20);
    assert_eq!(living, vec![(second, left), (record(3), left)]);
    assert!(loaded.is_empty());
    assert_eq!(
        store::load(&db, &moment(99_000)).unwrap()[&device()].living[0].1,
        Duration::ZERO,
        "over, never less than that"
    );
}

#[test]
fn a_key_is_one_principals_and_stands_for_an_ended_operation_too_unless_nothing_was_done() {
    let db = database();
    admit(&db, 1);
    let known = Found::Known { id: id(1), digest: record(1).digest };
    let again = |principal: &str| {
        let mut again = record(2);
        (again.principal, again.key) = (principal.into(), record(1).key);
        apply(&db, &[Change::Admit(Box::new(again))], 0).unwrap()
    };
    assert_eq!(again("acct_a client"), known);
    assert_eq!(number(&db, "SELECT count(*) FROM operations"), 1);
    assert_eq!(again("acct_a another"), Found::Nothing);
    end(&db, 1, 5_000);
    assert_eq!(again("acct_a client"), known);
    let recall = Change::Recall { principal: "acct_a client".into(), key: "key 1".into() };
    assert_eq!(apply(&db, &[recall], 0).unwrap(), known);
    admit(&db, 3);
    let expired = Change::End { id: id(3), outcome: Outcome::Expired {}, written: Streams::new(), frees_key: true };
    apply(&db, &[expired], 0).unwrap();
    let recall = Change::Recall { principal: "acct_a client".into(), key: "key 3".into() };
    assert_eq!(apply(&db, &[recall], 0).unwrap(), Found::Nothing);
}

#[test]
fn an_ended_operation_does_not_change_and_forgets_what_it_asked() {
    let db = database();
    admit(&db, 1);
    end(&db, 1, 5_000);
    let other = Outcome::Cancelled { started: true, exit: None };
    let changes = [
        Change::State { id: id(1), state: State::Running },
        Change::Cancel { id: id(1) },
        Change::Sent { id: id(1), ledger: LedgerId::mint([5; 16]) },
        Change::Output { id: id(1), stream: Stream::Stdout, offset: 9, bytes: bytes::Bytes::from_static(b"x") },
        Change::Gap { id: id(1), stream: Stream::Stdout, offset: 9, next: 12 },
        Change::End { id: id(1), outcome: other.clone(), written: Streams::new(), frees_key: true },
        Change::Late { id: id(1), outcome: other },
        Change::Cancel { id: id(9) },
    ];
    apply(&db, &changes, 9_000).unwrap();
    let found = view::one(&db, &device(), &id(1)).unwrap().unwrap();
    assert_eq!((found.state, found.ended, found.cancelled), (State::Completed, Some(5_000), false));
    assert_eq!(found.received, Streams::new());
    assert_eq!(number(&db, "SELECT count(*) FROM operations WHERE operation LIKE '%secret%'"), 0);
}

#[test]
fn a_late_result_becomes_the_evidence_of_an_unknown_one_once() {
    let db = database();
    admit(&db, 1);
    let unknown = Outcome::Unknown { reason: "lost".into(), evidence: None };
    apply(&db, &[Change::End { id: id(1), outcome: unknown, written: Streams::new(), frees_key: false }], 0).unwrap();
    let late = |code| Outcome::Failed {
        error: holdfast_core::operation::Failure::new(code, "late"),
        started: true,
        evidence: None,
    };
    for code in [holdfast_core::code::Code::Timeout, holdfast_core::code::Code::Busy] {
        apply(&db, &[Change::Late { id: id(1), outcome: late(code) }], 0).unwrap();
    }
    let Some(Outcome::Unknown { evidence, .. }) = view::one(&db, &device(), &id(1)).unwrap().unwrap().outcome else {
        panic!("not unknown any more")
    };
    assert_eq!(evidence.unwrap()["error"]["code"], "timeout");
}

#[test]
fn a_cancelled_session_takes_nothing_new_and_is_loaded_until_the_worker_has_it() {
    let db = database();
    let cancel = SessionCancel { cancellation: "c1".into(), session: "acct_a/s".into() };
    apply(&db, &[Change::CancelSession(cancel.clone())], 1_000).unwrap();
    let again = SessionCancel { cancellation: "c2".into(), ..cancel.clone() };
    apply(&db, &[Change::CancelSession(again)], 2_000).unwrap();
    let mut one = record(1);
    let operation = std::sync::Arc::make_mut(&mut one.operation);
    operation.session_id = Some("acct_a/s".into());
    assert_eq!(apply(&db, &[Change::Admit(Box::new(one))], 0).unwrap(), Found::SessionCancelled);
    assert_eq!(store::load(&db, &moment(0)).unwrap()[&device()].sessions, vec![cancel]);
    store::forget_sessions(&db, 9_000).unwrap();
    apply(&db, &[Change::SessionConfirmed { cancellation: "c1".into() }], 0).unwrap();
    assert!(store::load(&db, &moment(0)).unwrap().is_empty());
    store::forget_sessions(&db, 1_000).unwrap();
    assert_eq!(number(&db, "SELECT count(*) FROM cancellations"), 1, "it is not old enough");
    store::forget_sessions(&db, 1_001).unwrap();
    assert_eq!(number(&db, "SELECT count(*) FROM cancellations"), 0);
}

#[test]
fn what_ended_long_ago_is_forgotten_with_its_output_and_the_living_never() {
    let db = database();
    (1..=3).for_each(|n| admit(&db, n));
    for n in 1..=3 {
        let bytes = bytes::Bytes::from(vec![0; 200_000]);
        let output = |offset| Change::Output { id: id(n), stream: Stream::Stdout, offset, bytes: bytes.clone() };
        (0..100_u64).for_each(|piece| drop(apply(&db, &[output(piece * 200_000)], 0).unwrap()));
    }
    end(&db, 1, 5_000);
    end(&db, 2, 6_000);
    let mut steps = 0;
    while store::forget_oldest(&db, 6_000).unwrap() {
        steps += 1;
    }
    assert_eq!(steps, 2, "its 100 rows are more than one write may take");
    assert_eq!(number(&db, "SELECT group_concat(n) = '2,3' FROM operations"), 1);
    let outcome = r#"{"state":"completed"}"#.len() as i64;
    assert_eq!(number(&db, "SELECT output FROM totals"), 40_000_000 + outcome);
    assert_eq!(number(&db, "SELECT ended FROM totals"), 1);
    assert_eq!(number(&db, "SELECT sum(ended) FROM accounts"), 1);
}

#[test]
fn an_account_above_its_bound_forgets_its_own_oldest_and_no_other_accounts() {
    let db = database();
    (1..=3).for_each(|n| admit(&db, n));
    db.execute("UPDATE operations SET account = 'acct_b' WHERE n = 1", []).unwrap();
    (1..=2).for_each(|n| end(&db, n, 1_000 + u64::from(n)));
    let bound = holdfast_core::limits::OPERATIONS_KEPT_ACCOUNT;
    db.execute("UPDATE accounts SET ended = ?1 WHERE account = 'acct_a'", [bound]).unwrap();
    end(&db, 3, 2_000);
    assert_eq!(number(&db, "SELECT group_concat(n) = '1,3' FROM operations"), 1);
}

#[test]
fn input_is_forgotten_sooner_than_what_it_was_for() {
    let db = database();
    admit(&db, 1);
    end(&db, 1, 1_000);
    for n in 2..102 {
        let mut input = record(n);
        let operation = std::sync::Arc::make_mut(&mut input.operation);
        operation.request = serde_json::from_str(r#"{"type":"exec_stdin","data":"AA=="}"#).unwrap();
        apply(&db, &[Change::Admit(Box::new(input))], 0).unwrap();
        end(&db, n, 1_000 + u64::from(n));
    }
    admit(&db, 200);
    assert_eq!((store::forget_inputs(&db, 1_101), store::forget_inputs(&db, 1_101)), (Ok(true), Ok(false)));
    assert_eq!(number(&db, "SELECT count(*) FROM operations"), 3, "the last input, and what is none");
    assert_eq!(number(&db, "SELECT ended * 10 + inputs FROM totals"), 11);
}

/// Input number `n` for the run of `of`.
fn input(db: &Connection, n: u32, of: u32, key: bool) {
    let mut input = record(n);
    let operation = std::sync::Arc::make_mut(&mut input.operation);
    operation.run_id = record(of).operation.run_id.clone();
    operation.request = serde_json::from_str(r#"{"type":"exec_stdin","data":"AA=="}"#).unwrap();
    input.key = input.key.filter(|_| key);
    apply(db, &[Change::Admit(Box::new(input))], 0).unwrap();
}

#[test]
fn the_key_of_an_input_is_known_as_long_as_its_run_lives_and_for_a_while_after() {
    let db = database();
    admit(&db, 1);
    input(&db, 2, 1, true);
    input(&db, 3, 1, false);
    (2..=3).for_each(|n| end(&db, n, 1_000));
    let recall = Change::Recall { principal: "acct_a client".into(), key: "key 2".into() };
    let digest = db.query_row("SELECT digest FROM operations WHERE n = 2", [], |row| row.get(0)).map(Digest).unwrap();
    let known = Found::Known { id: id(2), digest };
    assert_eq!(store::forget_inputs(&db, 900_000), Ok(false));
    assert_eq!(apply(&db, std::slice::from_ref(&recall), 0), Ok(known.clone()), "it would be given a second time");
    assert_eq!(number(&db, "SELECT count(*) FROM operations"), 2, "one without a key cannot be asked for again");
    end(&db, 1, 900_000);
    store::forget_inputs(&db, 900_000).unwrap();
    assert_eq!(apply(&db, std::slice::from_ref(&recall), 0), Ok(known));
    store::forget_inputs(&db, 900_001).unwrap();
    assert_eq!(apply(&db, &[recall], 0), Ok(Found::Nothing));
    assert_eq!(number(&db, "SELECT inputs FROM totals"), 0);
}

#[test]
fn typing_makes_older_typing_go_and_never_what_a_program_came_to() {
    let db = database();
    (1..=2).for_each(|n| admit(&db, n));
    end(&db, 1, 1_000);
    (3..=5).for_each(|n| input(&db, n, 2, true));
    (3..=4).for_each(|n| end(&db, n, 2_000 + u64::from(n)));
    assert_eq!(number(&db, "SELECT ended * 10 + inputs FROM totals"), 12);
    assert_eq!(number(&db, "SELECT ended * 10 + inputs FROM accounts"), 12);
    let bound = holdfast_core::limits::OPERATIONS_KEPT_ACCOUNT;
    db.execute("UPDATE accounts SET inputs = ?1", [bound]).unwrap();
    end(&db, 5, 3_000);
    assert_eq!(number(&db, "SELECT group_concat(n) = '1,2,4,5' FROM (SELECT n FROM operations ORDER BY n)"), 1);
    assert_eq!(store::forget_oldest(&db, u64::MAX >> 1), Ok(true));
    assert_eq!(store::forget_oldest(&db, u64::MAX >> 1), Ok(false), "input is no operation there");
    assert_eq!(number(&db, "SELECT group_concat(n) = '2,4,5' FROM (SELECT n FROM operations ORDER BY n)"), 1);
}

#[test]
fn a_session_is_told_by_its_clients_name_and_goes_on_as_its_accounts() {
    let db = database();
    let mut of_session = record(1);
    let mut operation = holdfast_core::operation::Operation::clone(&of_session.operation);
    operation.session_id = Some("acct_a/nightly".into());
    of_session.operation = std::sync::Arc::new(operation);
    apply(&db, &[Change::Admit(Box::new(of_session))], 0).unwrap();
    let found = view::one(&db, &device(), &id(1)).unwrap().unwrap();
    // Whoever gives input to it, the device's own account too.
    assert_eq!((found.session.as_deref(), found.session_id().as_deref()), (Some("nightly"), Some("acct_a/nightly")));
}

#[test]
fn how_long_an_operation_has_waited_does_not_depend_on_the_calendar_as_long_as_the_machine_runs() {
    let db = database();
    let at = |unix, boot: &str, seconds| {
        let boot = BootMoment { boot: boot.into(), at: Duration::from_secs(seconds) };
        store::Moment { unix, boot: Some(boot) }
    };
    let admit = [Change::Admit(Box::new(record(1)))];
    store::apply(&db, &Bounds::default(), &device(), &admit, &at(1_000, "this", 500)).unwrap();
    let left = |now: &store::Moment| store::load(&db, now).unwrap()[&device()].living[0].1.as_secs();
    let hour = 3_600_000;
    assert_eq!(left(&at(1_000 + hour, "this", 510)), 50, "the clock was set forward");
    assert_eq!(left(&at(0, "this", 510)), 50, "and back");
    assert_eq!(left(&at(1_000 + 20_000, "another", 510)), 40);
    assert_eq!(left(&moment(1_000 + 20_000)), 40);
}
