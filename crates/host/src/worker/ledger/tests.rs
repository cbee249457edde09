use std::time::Instant;

use holdfast_core::id::{OperationId, RunId};
use holdfast_core::operation::{Exit, Operation, Outcome, State, Stream, Streams};
use holdfast_core::policy::Role;
use holdfast_core::worker::{Known, Row};

use holdfast_testkit::disk::Disk;

use super::*;

const OWNER: [u8; 32] = [7; 32];

fn id(n: u8) -> OperationId {
    OperationId::mint([n; 16])
}

fn run(n: u8) -> RunId {
    RunId::mint([n; 16])
}

fn operation(n: u8, session: Option<&str>) -> Operation {
    Operation {
        request_id: id(n),
        run_id: Some(run(n)),
        session_id: session.map(str::to_owned),
        role: Role::Owner,
        client: Some("c".into()),
        after: None,
        request: serde_json::from_str(r#"{"type":"exec","command":{"argv":["true"]}}"#).unwrap(),
    }
}

fn row(n: u8) -> Row {
    Row::received(operation(n, None))
}

fn done() -> Outcome {
    let exit = Exit { code: Some(3), ..Exit::default() };
    Outcome::Completed { exit: Some(exit), value: None }
}

fn commit(ledger: &Ledger, changes: Vec<Change>) -> Result<Vec<Found>, LedgerError> {
    let (tell, told) = mpsc::channel();
    ledger.commit(changes, move |outcome| tell.send(outcome).unwrap());
    told.recv().unwrap()
}

fn one(ledger: &Ledger, change: Change) -> Found {
    commit(ledger, vec![change]).unwrap().remove(0)
}

fn admit(ledger: &Ledger, row: Row) -> Found {
    one(ledger, Change::Admit(Box::new(row)))
}

fn known(row: &Row) -> Option<Known> {
    Some(Known {
        run_id: row.operation.run_id.clone(),
        kind: row.operation.kind(),
        digest: row.digest,
        state: row.state,
        outcome: row.outcome.clone(),
        written: row.written.clone(),
    })
}

#[test]
fn what_is_not_over_is_there_after_a_reopening_in_the_order_of_admission_and_what_is_over_is_remembered() {
    let dir = tempfile::tempdir().unwrap();
    let Opened { ledger, stored, set_aside } = Ledger::open(dir.path(), OWNER).unwrap();
    assert_eq!((stored.rows.len(), stored.offsets.len(), stored.generation, stored.config), (0, 0, 0, None));
    assert_eq!(set_aside, None);
    for n in [3, 1, 2] {
        assert_eq!(admit(&ledger, row(n)), Found::default());
    }
    let written = Streams::from([(Stream::Stdout, 7), (Stream::Stderr, 1 << 40)]);
    let config = Digest([9; 32]);
    commit(
        &ledger,
        vec![
            Change::Starting { id: id(3), attempt: 2, generation: 5 },
            Change::Running { id: id(3) },
            Change::Ended { id: id(1), outcome: done(), written: written.clone() },
            Change::Offset { run: run(1), stream: Stream::Stdout, offset: 7 },
            Change::Offset { run: run(3), stream: Stream::Stderr, offset: 9 },
            Change::Offset { run: run(3), stream: Stream::Stderr, offset: 4 },
            Change::Acked { id: id(1) },
            Change::Generation(5),
            Change::Configured(config),
        ],
    )
    .unwrap();
    let life = stored.ledger;
    ledger.close();

    let Opened { ledger, stored, .. } = Ledger::open(dir.path(), OWNER).unwrap();
    assert_eq!((stored.ledger, stored.generation, stored.config), (life, 5, Some(config)));
    let rows: Vec<Row> = stored.rows.into_iter().map(|living| living.row).collect();
    let started = Row { state: State::Running, attempt: 2, generation: 5, ..row(3) };
    assert_eq!(rows, [started, row(2)]);
    assert_eq!(stored.offsets, [(run(3), Stream::Stderr, 9)], "an offset never goes back, and goes with its operation");
    let over = Row { state: State::Completed, outcome: Some(done()), written, ..row(1) };
    assert_eq!(one(&ledger, Change::Recall(id(1))), Found { known: known(&over), cancelled: false });
}

#[test]
fn of_many_that_admit_the_same_operation_at_once_exactly_one_inserts_it() {
    let dir = tempfile::tempdir().unwrap();
    let Opened { ledger, .. } = Ledger::open(dir.path(), OWNER).unwrap();
    let (tell, told) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for n in 0..32 {
                    let tell = tell.clone();
                    ledger.commit(vec![Change::Admit(Box::new(row(n)))], move |found| tell.send((n, found)).unwrap());
                }
            });
        }
    });
    drop(tell);
    let mut inserted = [0; 32];
    for (n, found) in told {
        let found = found.unwrap().remove(0);
        if found == Found::default() {
            inserted[usize::from(n)] += 1;
        } else {
            assert_eq!(found, Found { known: known(&row(n)), cancelled: false });
        }
    }
    assert_eq!(inserted, [1; 32]);
}

#[test]
fn a_tombstone_or_a_cancelled_session_keeps_an_operation_from_being_admitted() {
    let dir = tempfile::tempdir().unwrap();
    let Opened { ledger, .. } = Ledger::open(dir.path(), OWNER).unwrap();
    let none = Found { known: None, cancelled: true };
    assert_eq!(one(&ledger, Change::Cancel { id: id(1) }), Found::default());
    assert_eq!(one(&ledger, Change::Cancel { id: id(1) }), none);
    assert_eq!(admit(&ledger, row(1)), none);

    admit(&ledger, Row::received(operation(2, Some("s"))));
    let cancel = || Change::CancelSession { session: "s".into(), cancellation: "c".into() };
    assert_eq!(one(&ledger, cancel()), Found::default());
    assert_eq!(one(&ledger, cancel()), none);
    assert_eq!(admit(&ledger, Row::received(operation(3, Some("s")))), none);
    assert_eq!(admit(&ledger, Row::received(operation(4, Some("t")))), Found::default());

    let cancelled = Outcome::Cancelled { started: false, exit: None };
    let settled = Row { state: State::Cancelled, outcome: Some(cancelled), cancelled: true, ..row(1) };
    one(&ledger, Change::Settle(Box::new(settled.clone())));
    assert_eq!(admit(&ledger, row(1)), Found { known: known(&settled), cancelled: false });

    ledger.close();
    let Opened { stored, .. } = Ledger::open(dir.path(), OWNER).unwrap();
    let marks: Vec<_> = stored.rows.iter().map(|l| (l.row.operation.request_id.clone(), l.row.cancelled)).collect();
    assert_eq!(marks, [(id(2), true), (id(4), false), (id(1), true)]);
}

#[test]
fn an_end_is_never_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let Opened { ledger, .. } = Ledger::open(dir.path(), OWNER).unwrap();
    admit(&ledger, row(1));
    let unknown = Outcome::Unknown { reason: "gone".into(), evidence: None };
    one(&ledger, Change::Ended { id: id(1), outcome: unknown.clone(), written: Streams::new() });
    one(&ledger, Change::Ended { id: id(1), outcome: done(), written: Streams::new() });
    one(&ledger, Change::Running { id: id(1) });
    let found = one(&ledger, Change::Cancel { id: id(1) });
    let known = found.known.unwrap();
    assert_eq!((known.state, known.outcome), (State::Unknown, Some(unknown)));
}

#[test]
fn a_commit_is_carried_out_as_a_whole_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let Opened { ledger, .. } = Ledger::open(dir.path(), OWNER).unwrap();
    // More than the column can hold.
    let beyond = Change::Offset { run: run(1), stream: Stream::Pty, offset: u64::MAX };
    assert_eq!(commit(&ledger, vec![Change::Admit(Box::new(row(1))), beyond]), Err(LedgerError::Failed));
    assert_eq!(one(&ledger, Change::Recall(id(1))), Found::default());
}

#[test]
fn a_damaged_ledger_is_set_aside_and_the_new_one_has_another_name() {
    let dir = tempfile::tempdir().unwrap();
    let Opened { ledger, stored, .. } = Ledger::open(dir.path(), OWNER).unwrap();
    admit(&ledger, row(1));
    ledger.close();
    std::fs::write(dir.path().join("ledger.sqlite"), b"no database, but long enough to be looked at as one").unwrap();
    let second = Ledger::open(dir.path(), OWNER).unwrap();
    let (why, aside) = second.set_aside.unwrap();
    assert_eq!(why, Aside::Damaged);
    assert!(aside.file_name().unwrap().to_str().unwrap().starts_with("ledger.sqlite.damaged-"), "{aside:?}");
    assert_ne!(second.stored.ledger, stored.ledger);
    assert_eq!(second.stored.rows.len(), 0);
}

/// What another build may have written.
fn written_by_another(dir: &Path, n: u8, set: &str) {
    let db = Connection::open(dir.join("ledger.sqlite")).unwrap();
    let sql = format!("UPDATE operations SET {set} WHERE id = ?1");
    assert_eq!(db.execute(&sql, params![id(n).as_str()]).unwrap(), 1);
}

#[test]
fn an_operation_that_cannot_be_read_is_unknown_by_itself_and_the_ledger_stays() {
    let unreadable = [
        r#"request = '{"type":"teleport"}'"#,
        "state = 'dreaming'",
        "kind = 'teleport', request = '{}'",
        r#"written = '{"smell":1}'"#,
        r#"state = 'completed', outcome = '{"state":"dreamt"}'"#,
        "role = 'emperor'",
    ];
    for set in unreadable {
        let dir = tempfile::tempdir().unwrap();
        let Opened { ledger, stored, .. } = Ledger::open(dir.path(), OWNER).unwrap();
        admit(&ledger, row(1));
        admit(&ledger, row(2));
        one(&ledger, Change::Offset { run: run(2), stream: Stream::Stdout, offset: 9 });
        ledger.close();
        written_by_another(dir.path(), 1, set);

        let again = Ledger::open(dir.path(), OWNER).unwrap();
        assert_eq!((again.set_aside, again.stored.ledger), (None, stored.ledger), "{set}");
        let rows: Vec<Row> = again.stored.rows.into_iter().map(|living| living.row).collect();
        assert_eq!((rows, again.stored.offsets), (vec![row(2)], vec![(run(2), Stream::Stdout, 9)]), "{set}");
        let Found { known, cancelled: false } = one(&again.ledger, Change::Recall(id(1))) else { panic!("{set}") };
        let known = known.unwrap();
        let reason = "this build cannot read what the ledger says of it; another one may have written it".into();
        assert_eq!(
            (known.state, known.outcome),
            (State::Unknown, Some(Outcome::Unknown { reason, evidence: None })),
            "{set}"
        );
        assert_eq!(
            (known.run_id, known.kind, known.digest),
            (Some(run(1)), row(1).operation.kind(), row(1).digest),
            "{set}"
        );
        // It never runs again, whoever sends it.
        assert_eq!(admit(&again.ledger, row(1)).known.unwrap().state, State::Unknown, "{set}");
        again.ledger.close();
    }
}

#[test]
fn a_remembered_end_that_cannot_be_read_is_unknown_and_no_commit_fails_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let Opened { ledger, .. } = Ledger::open(dir.path(), OWNER).unwrap();
    admit(&ledger, row(1));
    one(&ledger, Change::Ended { id: id(1), outcome: done(), written: Streams::new() });
    one(&ledger, Change::Acked { id: id(1) });
    ledger.close();
    written_by_another(dir.path(), 1, r#"outcome = '{"state":"dreamt"}'"#);
    let Opened { ledger, .. } = Ledger::open(dir.path(), OWNER).unwrap();
    let found = commit(&ledger, vec![Change::Recall(id(1)), Change::Admit(Box::new(row(1)))]).unwrap();
    assert!(found.iter().all(|found| found.known.as_ref().unwrap().state == State::Unknown), "{found:?}");
}

#[test]
fn what_ends_and_what_is_forgotten_has_the_reserve_of_a_full_disk() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Disk::at(dir.path());
    let Opened { ledger, .. } = Ledger::open(dir.path(), OWNER).unwrap();
    for n in [1, 2, 3] {
        admit(&ledger, row(n));
    }
    let all =
        || std::fs::read_dir(dir.path()).unwrap().flatten().map(|file| file.metadata().unwrap().len()).sum::<u64>();
    disk.resize(all());
    // The one that is refused has no share in the reserve, whatever stands beside it.
    let refused =
        (10..=u8::MAX).find(|n| commit(&ledger, vec![Change::Admit(Box::new(row(*n)))]) == Err(LedgerError::Full));
    let refused = refused.expect("the disk is full");
    for n in [1, 2] {
        one(&ledger, Change::Ended { id: id(n), outcome: done(), written: Streams::new() });
    }
    one(&ledger, Change::Offset { run: run(1), stream: Stream::Stdout, offset: 5 });
    one(&ledger, Change::Acked { id: id(1) });
    assert_eq!(commit(&ledger, vec![Change::Admit(Box::new(row(refused)))]), Err(LedgerError::Full));
    ledger.close();

    let Opened { ledger, stored, set_aside } = Ledger::open(dir.path(), OWNER).unwrap();
    assert_eq!(set_aside, None);
    let states: Vec<_> =
        stored.rows.iter().map(|living| (living.row.operation.request_id.clone(), living.row.state)).collect();
    assert_eq!(states[..2], [(id(2), State::Completed), (id(3), State::Received)]);
    assert_eq!(stored.offsets, []);
    let found = one(&ledger, Change::Recall(id(1))).known.unwrap();
    assert_eq!((found.state, found.outcome), (State::Completed, Some(done())));
    disk.heal();
    while commit(&ledger, vec![Change::Admit(Box::new(row(refused)))]) == Err(LedgerError::Full) {}
    assert_eq!(one(&ledger, Change::Recall(id(refused))).known, known(&row(refused)));
}

#[test]
fn another_device_gets_a_ledger_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let Opened { ledger, stored, .. } = Ledger::open(dir.path(), OWNER).unwrap();
    admit(&ledger, row(1));
    ledger.close();
    let again = Ledger::open(dir.path(), OWNER).unwrap();
    assert_eq!((again.set_aside, again.stored.rows.len()), (None, 1));
    again.ledger.close();
    let other = Ledger::open(dir.path(), [8; 32]).unwrap();
    assert_eq!(other.set_aside.map(|(why, _)| why), Some(Aside::OfAnother));
    assert_ne!(other.stored.ledger, stored.ledger);
    assert_eq!(other.stored.rows.len(), 0);
}

#[test]
fn a_ledger_that_does_not_say_which_it_is_is_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let Opened { ledger, stored, .. } = Ledger::open(dir.path(), OWNER).unwrap();
    admit(&ledger, row(1));
    let (tell, told) = mpsc::channel();
    let spoil = |db: &Connection| Ok::<_, StoreError>(db.execute("UPDATE ledger SET id = 'asleep'", [])?);
    ledger.0.submit(spoil, move |outcome| tell.send(outcome).unwrap());
    assert_eq!(told.recv().unwrap(), Ok(1));
    ledger.close();
    let second = Ledger::open(dir.path(), OWNER).unwrap();
    assert!(second.set_aside.is_some());
    assert_ne!(second.stored.ledger, stored.ledger);
}

#[tokio::test]
async fn a_start_costs_the_same_whatever_is_remembered_and_a_sweep_forgets_the_oldest() {
    let dir = tempfile::tempdir().unwrap();
    let Opened { ledger, .. } = Ledger::open(dir.path(), OWNER).unwrap();
    admit(&ledger, row(1));
    let many = limits::OPERATIONS_KEPT as u64 + 1200;
    let now = unix_ms();
    let remember = move |db: &Connection| {
        let mut insert = db.prepare(
            "WITH RECURSIVE counted(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM counted WHERE value < ?1)
             INSERT INTO operations SELECT NULL, 'op_' || value, NULL, NULL, 'owner', NULL, 'exec', NULL, zeroblob(32),
             'completed', 1, 0, '{\"state\":\"completed\"}', '{}', 0, 1, ?2 + value FROM counted",
        )?;
        Ok::<_, StoreError>(insert.execute(params![many, now])?)
    };
    assert_eq!(ledger.0.write(remember).await, Ok(many as usize));

    let plan = |db: &Connection| {
        let mut query = db.prepare(&format!("EXPLAIN QUERY PLAN {}", columns::LIVING))?;
        let steps = query.query_map([], |row| row.get::<_, String>(3))?.collect::<Result<Vec<_>, _>>()?;
        Ok::<_, StoreError>(steps)
    };
    assert_eq!(ledger.0.read_now(plan).unwrap(), ["SCAN operations USING INDEX living"]);
    let began = Instant::now();
    assert_eq!(ledger.read().unwrap().rows.len(), 1);
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());

    ledger.sweep(now).await.unwrap();
    let kept = |db: &Connection| {
        let of = "SELECT count(*), min(changed) FROM operations WHERE acked = 1";
        Ok::<_, StoreError>(db.query_row(of, [], |row| Ok((row.get::<_, u64>(0)?, row.get::<_, u64>(1)?)))?)
    };
    assert_eq!(ledger.0.read_now(kept).unwrap(), (limits::OPERATIONS_KEPT as u64, now + 1201));

    let week = u64::try_from(limits::OPERATIONS_KEPT_FOR.as_millis()).unwrap();
    ledger.sweep(now + week + 1901).await.unwrap();
    assert_eq!(ledger.0.read_now(kept).unwrap(), (limits::OPERATIONS_KEPT as u64 - 700, now + 1901));
    assert_eq!(one(&ledger, Change::Recall(id(1))).known, known(&row(1)), "what is not over is never swept");
}

#[tokio::test]
async fn typing_makes_older_typing_go_and_no_programs_end() {
    let dir = tempfile::tempdir().unwrap();
    let Opened { ledger, .. } = Ledger::open(dir.path(), OWNER).unwrap();
    let many = limits::OPERATIONS_KEPT as u64;
    let now = unix_ms();
    let remember = move |db: &Connection| {
        let mut insert = db.prepare(
            "WITH RECURSIVE counted(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM counted WHERE value < ?1)
             INSERT INTO operations SELECT NULL, 'op_' || value, NULL, NULL, 'owner', NULL,
             iif(value <= 3, 'exec', 'pty_input'), NULL, zeroblob(32),
             'completed', 1, 0, '{\"state\":\"completed\"}', '{}', 0, 1, ?2 + value FROM counted",
        )?;
        Ok::<_, StoreError>(insert.execute(params![many + 5, now])?)
    };
    ledger.0.write(remember).await.unwrap();
    ledger.sweep(now).await.unwrap();
    let kept = |db: &Connection| {
        let of = "SELECT sum(kind = 'exec'), sum(kind = 'pty_input'), min(iif(kind = 'pty_input', changed, NULL))
                  FROM operations";
        Ok::<_, StoreError>(db.query_row(of, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?)
    };
    assert_eq!(ledger.0.read_now(kept), Ok((3_u64, many, now + 6)));
    for [_, remove] in SWEEPS {
        let plan = move |db: &Connection| {
            let mut query = db.prepare(&format!("EXPLAIN QUERY PLAN {remove}"))?;
            let steps = query.query_map([0, 0], |row| row.get::<_, String>(3))?.collect::<Result<Vec<_>, _>>()?;
            Ok::<_, StoreError>(steps.join("; "))
        };
        let plan = ledger.0.read_now(plan).unwrap();
        assert!(!plan.contains("TEMP B-TREE"), "{plan}");
    }
}

#[test]
fn a_generation_never_goes_back() {
    let dir = tempfile::tempdir().unwrap();
    let Opened { ledger, .. } = Ledger::open(dir.path(), OWNER).unwrap();
    for generation in [3, 2] {
        one(&ledger, Change::Generation(generation));
    }
    assert_eq!(ledger.read().unwrap().generation, 3);
}
