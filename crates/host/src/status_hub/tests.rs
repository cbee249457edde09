use std::time::Duration;

use holdfast_core::daemon::Snapshot;
use holdfast_core::id::CallId;
use holdfast_core::status::{LinkState, Step};
use holdfast_core::time::Now;

use super::*;

fn hub() -> Arc<StatusHub> {
    StatusHub::new(AppStatus::default())
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
    assert_eq!((heard.call, heard.step, heard.seq), (Some(id), Step::Received, 0));
    assert_eq!(hub.steps(0).0[0].summary.as_deref(), Some("src/main.rs"));
    assert_eq!(hub.steps(1).0, vec![]);
}

fn link(state: LinkState, lost: u64) -> Arc<LinkSnapshot> {
    let link = Snapshot {
        state,
        since: Duration::from_secs(90),
        attempts: 3,
        cause: Some("connection reset".into()),
        next_try_at: Some(Duration::from_secs(101)),
        grace_ends_at: None,
        features: None,
        generation: 1,
        calls: CallCounts { pending: 2, detached: 2, oldest_ms: Some(500), ..CallCounts::default() },
        delivered: 0,
        lost,
        device_in_use: None,
        protocol_errors: None,
    };
    let taken = Now::at(Duration::from_secs(100));
    Arc::new(LinkSnapshot {
        link,
        taken,
        taken_at: unix_ms(),
        route: Some("direct"),
        url: "https://relay.example".into(),
    })
}

#[test]
fn a_link_that_was_looked_at_wakes_nobody_until_it_changes() {
    let hub = hub();
    let (link_now, seen) = watch::channel(link(LinkState::Outage, 0));
    hub.set_link(Some(seen));
    let has_changed = || hub.facts.lock().link.as_ref().is_some_and(|l| l.has_changed().unwrap());
    let snapshot = hub.snapshot();
    assert!(!has_changed());
    assert_eq!(snapshot.relay.since, snapshot.relay.next_try_at.unwrap() - 11_000, "boot times as wall-clock times");
    assert_eq!((snapshot.calls.detached, snapshot.outages.len()), (2, 1));
    assert_eq!(snapshot.health[0].text, "the relay is away: connection reset");
    link_now.send_replace(link(LinkState::Healthy, 2));
    assert!(has_changed());
    let codes: Vec<_> = hub.snapshot().health.iter().map(|w| w.code).collect();
    assert_eq!(codes, [WarningCode::CallsLost]);
    assert_eq!(hub.snapshot().outages[0].calls_lost, 2);
    assert_eq!(hub.snapshot().seq, hub.snapshot().seq, "the age of a call is no change");
}

#[test]
fn an_outage_that_lasts_is_written_by_the_clock_and_not_with_every_try() {
    let hub = hub();
    let dir = tempfile::tempdir().unwrap();
    hub.keep_outages(dir.path().join("outages.json"));
    let (link_now, seen) = watch::channel(link(LinkState::Outage, 0));
    hub.set_link(Some(seen));
    hub.snapshot();
    assert!(hub.unsaved_outages(false).is_some(), "it began");
    link_now.send_modify(|link| Arc::make_mut(link).link.attempts += 1);
    hub.snapshot();
    assert!(hub.unsaved_outages(false).is_none());
    assert!(hub.unsaved_outages(true).is_some());
    link_now.send_replace(link(LinkState::Healthy, 0));
    hub.snapshot();
    assert!(hub.unsaved_outages(false).is_some(), "it ended");
    assert!(hub.unsaved_outages(true).is_none());
}
