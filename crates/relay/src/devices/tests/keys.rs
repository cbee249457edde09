use holdfast_core::code::Code;
use holdfast_core::switchboard::{IdempotencyKey, Identity};
use holdfast_core::wire::*;

use super::fake::*;
use crate::devices::{CallHandle, OpenCall};

fn keyed(digest: u8) -> OpenCall {
    OpenCall { key: Some(IdempotencyKey { key: "k".into(), digest: [digest; 32] }), ..call() }
}

async fn code(mut handle: CallHandle) -> Code {
    handle.end().await.outcome.unwrap_err().code
}

#[tokio::test]
async fn a_retry_with_the_same_key_joins_while_it_runs_and_gets_the_same_end_afterwards() {
    let relay = Relay::start(Identity::holdfast("1")).await;
    let mut daemon = relay.holdfast(1, Features::all()).await;
    let room = relay.room();
    let mut first = room.open(keyed(1));
    let sent = daemon.call().await;
    let mut joined = room.open(keyed(1));
    assert_eq!(joined.id(), first.id());
    assert_eq!(code(room.open(keyed(2))).await, Code::Conflict);
    daemon.finish(&sent.id, "[1.10]").await;
    for handle in [&mut first, &mut joined] {
        let end = handle.end().await;
        assert_eq!(end.outcome.unwrap().get(), "[1.10]");
        end.commit.done();
    }
    assert!(daemon.ack().await.matched);
    let mut later = room.open(keyed(1));
    assert_eq!(later.end().await.outcome.unwrap().get(), "[1.10]");
    assert_eq!(code(room.open(keyed(2))).await, Code::Conflict);
    assert_eq!(relay.devices.counters().calls_started, 1, "executed once");
}

#[tokio::test]
async fn an_error_is_remembered_too_and_a_cancelled_call_that_was_sent_keeps_its_key() {
    let relay = Relay::start(Identity::holdfast("1")).await;
    let mut daemon = relay.holdfast(1, Features::all()).await;
    let room = relay.room();
    let handle = room.open(keyed(1));
    daemon.call().await;
    drop(handle);
    assert_eq!(code(room.open(keyed(1))).await, Code::Cancelled);
    assert_eq!(relay.devices.counters().calls_started, 1);
}

#[tokio::test]
async fn after_a_crash_a_keyed_call_completes_and_a_retry_gets_its_result() {
    let relay = Relay::start(Identity::holdfast("1")).await;
    let mut daemon = relay.holdfast(1, Features::all()).await;
    let waiting = relay.room().open(keyed(1));
    let sent = daemon.call().await;
    // A crash: nothing is said or written any more, and what was written stands.
    let folder = relay.folder.clone();
    relay.store.close();
    std::mem::forget(waiting);
    drop(daemon);
    let relay = Relay::in_folder(Identity::holdfast("1"), folder).await;
    assert_eq!(relay.room().status().link.pending.detached, 1);
    assert_eq!(relay.room().catalogue().tools.len(), 2, "the catalogue is remembered");
    let mut retry = relay.room().open(keyed(1));
    assert_eq!(*retry.id(), sent.id);
    let mut daemon = relay.holdfast(1, Features::all()).await;
    daemon.finish(&sent.id, "1").await;
    assert_eq!(retry.end().await.outcome.unwrap().get(), "1");
    assert_eq!(relay.devices.counters().calls_started, 0, "not sent a second time");
}

#[tokio::test]
async fn after_a_crash_a_call_that_was_never_sent_leaves_its_key_free() {
    let relay = Relay::start(Identity::holdfast("1")).await;
    let waiting = relay.room().open(keyed(1));
    eventually("the record stands", || count(&relay) == 1).await;
    let folder = relay.folder.clone();
    relay.store.close();
    std::mem::forget(waiting);
    let relay = Relay::in_folder(Identity::holdfast("1"), folder).await;
    let mut daemon = relay.holdfast(1, Features::all()).await;
    let mut retry = relay.room().open(keyed(2));
    let sent = daemon.call().await;
    daemon.finish(&sent.id, "1").await;
    assert_eq!(retry.end().await.outcome.unwrap().get(), "1");
}

fn count(relay: &Relay) -> i64 {
    let count = |db: &rusqlite::Connection| {
        db.query_row("SELECT count(*) FROM calls", [], |row| row.get(0)).map_err(crate::store::StoreError::from)
    };
    relay.store.read_now(count).unwrap()
}

#[tokio::test]
async fn a_store_that_is_closed_refuses_a_keyed_call_and_leaves_plain_ones_alone() {
    let relay = Relay::start(Identity::holdfast("1")).await;
    let mut daemon = relay.holdfast(1, Features::all()).await;
    relay.store.close();
    assert_eq!(code(relay.room().open(keyed(1))).await, Code::StorageFull);
    let mut plain = relay.room().open(call());
    let sent = daemon.call().await;
    daemon.finish(&sent.id, "1").await;
    assert!(plain.end().await.outcome.is_ok());
}
