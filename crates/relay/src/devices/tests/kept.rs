use std::time::Duration;

use holdfast_core::code::Code;
use holdfast_core::id::KeptId;
use holdfast_core::limits;
use holdfast_core::switchboard::{Identity, Outlives};
use holdfast_core::wire::*;
use rusqlite::params;

use super::fake::*;
use crate::devices::{CallEvent, CallHandle, OpenCall};
use crate::store::StoreError;

/// A call that is promoted at once.
fn lasting() -> OpenCall {
    OpenCall { outlives: Some(Outlives { after: Duration::ZERO, when_away: true, grant: "grant_x".into() }), ..call() }
}

async fn handle(mut call: CallHandle) -> KeptId {
    match call.next().await {
        CallEvent::Kept(handle) => handle,
        other => panic!("no handle: {other:?}"),
    }
}

async fn outcome(relay: &Relay, handle: &KeptId) -> Result<String, Code> {
    let kept = relay.room().kept("anna", handle, Duration::from_secs(20)).await.unwrap().expect("a record");
    kept.end.expect("an end").1.map(|raw| raw.get().into()).map_err(|error| error.code)
}

/// Handles of an account on another device, the first one the oldest.
async fn fill(relay: &Relay, count: usize, account: &str, ended: Option<i64>) {
    let account = account.to_owned();
    let written = relay.store.write(move |db| {
        for n in 0..i64::try_from(count).expect("few") {
            db.execute(
                "INSERT INTO calls (call, device, account, principal, tool, handle, budget_ms, control, opened, ended)
                 VALUES (?1 || ?2, 'dev_another', ?1, 'anna', 't', 'kept_' || ?1 || ?2, 1, 0, 0, ?3 + ?2)",
                params![account, n, ended],
            )?;
        }
        Ok::<_, StoreError>(())
    });
    written.await.expect("written");
}

fn count(relay: &Relay, sql: &'static str) -> i64 {
    relay.store.read_now(|db| db.query_row(sql, [], |row| row.get(0)).map_err(StoreError::from)).unwrap()
}

const HANDLES: &str = "SELECT count(*) FROM calls WHERE handle IS NOT NULL";

fn now(relay: &Relay) -> i64 {
    relay.devices.shared.pace.unix()
}

#[tokio::test]
async fn a_promoted_call_ends_in_its_record_and_whoever_reads_it_waits_for_that() {
    let relay = Relay::start(Identity::holdfast("1")).await;
    let mut daemon = relay.holdfast(1, Features::all()).await;
    let handle = handle(relay.room().open(lasting())).await;
    let sent = daemon.call().await;
    let room = relay.room();
    let running = room.kept("anna", &handle, Duration::ZERO).await.unwrap().expect("a record");
    assert!(running.end.is_none());
    let (read, ()) = tokio::join!(outcome(&relay, &handle), async {
        daemon.finish(&sent.id, "[1.10]").await;
        assert!(daemon.ack().await.matched);
    });
    assert_eq!(read, Ok("[1.10]".into()));
    assert!(room.kept("berta", &handle, Duration::ZERO).await.unwrap().is_none(), "another principal's");
    assert_eq!(room.cancel_kept("anna", &handle).await.unwrap(), Some(false));
}

#[tokio::test]
async fn an_account_at_its_bound_loses_its_oldest_finished_handle_and_takes_none_from_others() {
    let relay = Relay::start(Identity::holdfast("1")).await;
    let mut daemon = relay.holdfast(1, Features::all()).await;
    let own = call().authorization.account_id.to_string();
    let began = now(&relay);
    fill(&relay, limits::HANDLES_PER_ACCOUNT, &own, Some(began - 5000)).await;
    fill(&relay, 1, "other", Some(began - 9000)).await;
    handle(relay.room().open(lasting())).await;
    daemon.call().await;
    assert_eq!(count(&relay, HANDLES), limits::HANDLES_PER_ACCOUNT as i64 + 1);
    assert_eq!(count(&relay, "SELECT min(ended) FROM calls WHERE account <> 'other'"), began - 4999);
    assert_eq!(count(&relay, "SELECT count(*) FROM calls WHERE account = 'other'"), 1);
}

#[tokio::test]
async fn a_relay_full_of_running_handles_promotes_nothing_and_answers_as_a_plain_call() {
    let relay = Relay::start(Identity::holdfast("1")).await;
    let mut daemon = relay.holdfast(1, Features::all()).await;
    for account in 0..limits::HANDLES_MAX / limits::HANDLES_PER_ACCOUNT {
        fill(&relay, limits::HANDLES_PER_ACCOUNT, &format!("{account}-"), None).await;
    }
    let mut waiting = relay.room().open(lasting());
    let sent = daemon.call().await;
    daemon.finish(&sent.id, "1").await;
    assert_eq!(waiting.end().await.outcome.unwrap().get(), "1");
    assert_eq!(count(&relay, HANDLES), limits::HANDLES_MAX as i64);
}

#[tokio::test]
async fn results_over_the_accounts_bound_make_the_oldest_go_and_its_reader_is_told() {
    let relay = Relay::start(Identity::holdfast("1")).await;
    let mut daemon = relay.holdfast(1, Features::all()).await;
    let size = 200 * 1024;
    let raw = format!("\"{}\"", "x".repeat(size - 2));
    let mut handles = Vec::new();
    for _ in 0..2 {
        handles.push(handle(relay.room().open(lasting())).await);
        let sent = daemon.call().await;
        daemon.finish(&sent.id, &raw).await;
        assert!(outcome(&relay, handles.last().unwrap()).await.as_ref() == Ok(&raw));
        // The records claim more than they hold, so that the test need not write it all.
        let claim = i64::try_from(limits::KEPT_BYTES_MAX - size + 1).expect("fits");
        let claimed = relay.store.write(move |db| {
            db.execute("UPDATE calls SET bytes = ?1 WHERE bytes > 0", [claim]).map_err(StoreError::from)
        });
        claimed.await.unwrap();
    }
    assert_eq!(outcome(&relay, &handles[0]).await.map(|_| ()), Err(Code::LimitExceeded));
    assert!(outcome(&relay, &handles[1]).await == Ok(raw));
}

#[tokio::test]
async fn what_ended_a_day_ago_is_not_kept() {
    let relay = Relay::start(Identity::holdfast("1")).await;
    let mut daemon = relay.holdfast(1, Features::all()).await;
    let handle = handle(relay.room().open(lasting())).await;
    let sent = daemon.call().await;
    daemon.finish(&sent.id, "1").await;
    outcome(&relay, &handle).await.unwrap();
    let past = i64::try_from(limits::RECORD_KEPT.as_secs()).expect("a day") + 1;
    let aged = relay
        .store
        .write(move |db| db.execute("UPDATE calls SET ended = ended - ?1", [past]).map_err(StoreError::from));
    aged.await.unwrap();
    assert!(relay.room().kept("anna", &handle, Duration::ZERO).await.unwrap().is_none());
    relay.devices.forget_expired().await.unwrap();
    assert_eq!(count(&relay, "SELECT count(*) FROM calls"), 0);
}

#[tokio::test]
async fn an_end_that_no_disk_took_is_never_told_as_running() {
    let relay = Relay::start(Identity::holdfast("1")).await;
    // A base daemon does not send a result again.
    let mut daemon = relay.base(1).await;
    let handle = handle(relay.room().open(lasting())).await;
    let sent = daemon.call().await;
    relay
        .store
        .write(|db| {
            db.execute_batch(
                "CREATE TRIGGER full BEFORE UPDATE OF ended ON calls BEGIN SELECT RAISE(ABORT, 'full'); END",
            )
            .map_err(StoreError::from)
        })
        .await
        .unwrap();
    daemon.finish(&sent.id, "1").await;
    assert_eq!(outcome(&relay, &handle).await, Err(Code::OutcomeUnknown));
    let mended = relay.store.write(|db| db.execute_batch("DROP TRIGGER full").map_err(StoreError::from));
    mended.await.unwrap();
    let open = "SELECT count(*) FROM calls WHERE ended IS NULL";
    assert_eq!(count(&relay, open), 1);
    relay.devices.forget_expired().await.unwrap();
    assert_eq!(count(&relay, open), 0, "it would hold its place for ever");
    assert_eq!(outcome(&relay, &handle).await, Err(Code::OutcomeUnknown));
}

#[tokio::test]
async fn the_calls_of_a_grant_that_ended_while_the_relay_was_down_are_stopped() {
    let relay = Relay::start(Identity::holdfast("1")).await;
    let mut daemon = relay.holdfast(1, Features::all()).await;
    let handle = handle(relay.room().open(lasting())).await;
    daemon.call().await;
    relay.devices.cancel_kept_of_revoked(|grant| &**grant == "grant_x").await.unwrap();
    let running = relay.room().kept("anna", &handle, Duration::ZERO).await.unwrap().expect("a record");
    assert!(running.end.is_none());
    relay.devices.cancel_kept_of_revoked(|_| false).await.unwrap();
    assert_eq!(outcome(&relay, &handle).await, Err(Code::Cancelled));
}
