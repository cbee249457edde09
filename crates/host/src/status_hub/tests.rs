use holdfast_core::id::CallId;
use holdfast_core::status::{LinkState, Step};

use super::*;

fn hub() -> Arc<StatusHub> {
    StatusHub::new(AppStatus::default(), OutageLog::default())
}

#[test]
fn the_number_grows_only_when_something_changed() {
    let hub = hub();
    let first = hub.snapshot().seq;
    assert_eq!(hub.snapshot().seq, first);
    hub.engine(Engine::Link, EngineState::Running);
    assert_eq!(hub.snapshot().seq, first + 1);
    hub.warn(WarningCode::DiskLow, "1 MB left");
    let warned = hub.snapshot();
    assert_eq!((warned.seq, warned.health.len()), (first + 2, 1));
    hub.clear(WarningCode::DiskLow);
    assert_eq!(hub.snapshot().health, vec![]);
}

#[test]
fn without_a_link_the_relay_is_stopped() {
    let snapshot = hub().snapshot();
    assert_eq!(snapshot.relay.state, LinkState::Stopped);
    assert_eq!(snapshot.calls, CallCounts::default());
}

#[tokio::test]
async fn a_step_reaches_those_who_listen_and_those_who_ask_later() {
    let hub = hub();
    let (known, mut coming) = hub.steps(0);
    assert_eq!(known, vec![]);
    let id = CallId::parse("call_aaaaaaaa").unwrap();
    hub.step(CallStep {
        id: id.clone(),
        tool: "read_file".into(),
        step: Step::Received,
        code: None,
        client: Some("ann".into()),
        summary: Some("src/main.rs".into()),
    });
    let heard = coming.recv().await.unwrap();
    assert_eq!((heard.call, heard.step, heard.seq), (id, Step::Received, 0));
    assert_eq!(hub.steps(0).0[0].summary.as_deref(), Some("src/main.rs"));
    assert_eq!(hub.steps(1).0, vec![]);
}
