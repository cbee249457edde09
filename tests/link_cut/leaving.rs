//! Who left while the link was down is not revived (`docs/PROMISES.md`, L3).

use std::time::Duration;

use holdfast_testkit::mcp::Session;
use holdfast_testkit::stand::{Stand, WireKind, work};

use super::{assert_done_once, marks, on_both_wires};

on_both_wires!(
    a_stateless_client_that_leaves_during_an_outage_is_not_revived,
    a_session_client_that_cancels_during_an_outage_is_not_revived,
    a_deleted_session_cancels_its_call_at_once,
    a_session_client_that_loses_its_connection_has_not_left_and_fetches_the_answer_once,
);

async fn a_stateless_client_that_leaves_during_an_outage_is_not_revived(wire: WireKind) {
    let stand = Stand::start(wire).await;
    let client = stand.modern();
    let call = client.call("run_process", work("a")).send();
    let outage = async {
        stand.journal_has("started a").await;
        stand.proxy.cut();
        stand.proxy.until("a refused dial", |seen| seen.refused > 0).await;
    };
    // The outage ends first, and the call's future is dropped: the connection closes.
    tokio::select! {
        answer = call => panic!("answered during the outage: {answer:?}"),
        () = outage => {}
    }
    no_trace_after_the_heal(&stand).await;
}

async fn a_session_client_that_cancels_during_an_outage_is_not_revived(wire: WireKind) {
    let stand = Stand::start(wire).await;
    let session = stand.session().await;
    let stream = session.start_call(7, "run_process", work("a")).await.expect("a stream");
    stand.journal_has("started a").await;
    stand.proxy.cut();
    stand.proxy.until("a refused dial", |seen| seen.refused > 0).await;
    assert_eq!(session.cancel(7).await, 202);
    drop(stream);
    no_trace_after_the_heal(&stand).await;
}

/// The work is killed once the link is back, and other calls go on.
async fn no_trace_after_the_heal(stand: &Stand) {
    stand.proxy.heal();
    stand.ready(2).await;
    stand.work_ended("a").await;
    stand.release("a");
    assert_eq!(marks(stand, "a"), (1, 0));
    stand.release("b");
    assert_done_once(stand, "b", stand.modern().call("run_process", work("b")).send().await);
}

async fn a_deleted_session_cancels_its_call_at_once(wire: WireKind) {
    let stand = Stand::start(wire).await;
    let session = stand.session().await;
    let _stream = session.start_call(7, "run_process", work("a")).await.expect("a stream");
    stand.journal_has("started a").await;
    let status = session.delete().await;
    assert!((200..300).contains(&status), "DELETE answered {status}");
    stand.work_ended("a").await;
    assert_eq!(marks(&stand, "a"), (1, 0));
}

async fn a_session_client_that_loses_its_connection_has_not_left_and_fetches_the_answer_once(wire: WireKind) {
    let stand = Stand::start(wire).await;
    let session: Session = stand.session().await;
    let mut stream = session.start_call(7, "run_process", work("a")).await.expect("a stream");
    let primed = stream.next().await.expect("a stream").expect("a priming event");
    let last = primed.id.expect("with an id");
    stand.journal_has("started a").await;
    drop(stream);
    stand.proxy.cut_for(Duration::from_millis(500)).await;
    stand.release("a");
    stand.journal_has("finished a").await;
    let resumed = session.resume(&last).await.expect("a stream");
    assert_eq!(resumed.status(), 200);
    assert_done_once(&stand, "a", resumed.answer().await);
}
