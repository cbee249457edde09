use super::*;
use crate::Scopes;
use holdfast_core::id::{AccountId, DeviceId};
use holdfast_core::policy::Role;

const T: Duration = Duration::from_secs(1000);

fn owner(grant: &str, client: &str, device: u8) -> Arc<Principal> {
    Arc::new(Principal {
        account: AccountId::mint([1; 18]),
        account_name: "ann".into(),
        account_version: 1,
        role: Role::Owner,
        client: client.into(),
        client_name: "c".into(),
        grant: grant.into(),
        device: DeviceId::mint([device; 12]),
        scopes: Scopes { mcp: true, ..Scopes::default() },
    })
}

fn request(digest: u8) -> Request {
    Request { tool: "t".into(), digest: [digest; 32] }
}

fn start(session: &Session, id: i64, digest: u8) -> Arc<Stream> {
    match session.start(&RpcId::Number(id), request(digest)).unwrap() {
        Started::New(stream) => stream,
        Started::Joined(_) => panic!("joined"),
    }
}

fn code<T>(result: Result<T, RpcError>) -> (i32, &'static str) {
    match result {
        Ok(_) => panic!("accepted"),
        Err(error) => (error.code, error.stable.as_str()),
    }
}

#[test]
fn a_session_exists_only_for_the_grant_and_device_that_opened_it() {
    let sessions = Sessions::default();
    let alice = owner("g1", "c", 1);
    let session = sessions.open(&alice, "2025-11-25", Patience::Endless, T).unwrap();
    assert!(sessions.find(&session.id, &alice, T).is_ok());
    for thief in [owner("g2", "c", 1), owner("g1", "c", 2)] {
        assert_eq!(code(sessions.find(&session.id, &thief, T)), (-32001, "not_found"));
    }
    assert_eq!(code(sessions.find("hf_nonsense", &alice, T)), (-32001, "not_found"));
    sessions.end(&session);
    assert_eq!(code(sessions.find(&session.id, &alice, T)), (-32001, "not_found"));
}

#[test]
fn the_same_request_in_flight_joins_and_another_under_its_id_is_a_conflict() {
    let session = Sessions::default().open(&owner("g", "c", 1), "2025-11-25", Patience::Endless, T).unwrap();
    let stream = start(&session, 1, 7);
    match session.start(&RpcId::Number(1), request(7)).unwrap() {
        Started::Joined(same) => assert!(Arc::ptr_eq(&stream, &same)),
        Started::New(_) => panic!("a second call"),
    }
    assert_eq!(code(session.start(&RpcId::Number(1), request(8))), (-32600, "conflict"));
    assert!(!Arc::ptr_eq(&start(&session, 2, 8), &stream));
    assert!(matches!(session.start(&RpcId::Text("1".into()), request(8)), Ok(Started::New(_))));
    // Once it has its answer, the id names nothing any more.
    assert!(session.answer(&RpcId::Number(1), &stream, b"{}", T));
    start(&session, 1, 9);
}

#[test]
fn an_answer_can_be_fetched_for_a_minute_and_then_the_resume_fails() {
    let session = Sessions::default().open(&owner("g", "c", 1), "2025-11-25", Patience::Endless, T).unwrap();
    let stream = start(&session, 1, 7);
    let id = |event: u64| format!("{}-{}/{event}", session.epoch, stream.number);
    assert_eq!(session.resume(&id(0), T).unwrap().1, 0);
    assert!(session.answer(&RpcId::Number(1), &stream, b"{}", T));
    let last = T + limits::RESUME_KEPT - Duration::from_millis(1);
    assert_eq!(session.resume(&id(1), last).unwrap().1, 1);
    assert_eq!(code(session.resume(&id(2), last)), (-32001, "not_found"));
    assert_eq!(code(session.resume(&id(1), T + limits::RESUME_KEPT)), (-32001, "not_found"));
    for bad in ["", "x", "0/0", &format!("other-{}/0", stream.number), &format!("{}-99/0", session.epoch)] {
        assert_eq!(code(session.resume(bad, T)), (-32001, "not_found"), "{bad}");
    }
    assert_eq!(session.kept.load(Ordering::Relaxed), 0);
}

#[test]
fn kept_answers_are_bounded_by_bytes_in_each_session_and_in_all() {
    let sessions = Sessions::default();
    let answer = vec![b'1'; 1024 * 1024];
    let fill = |session: &Session, count: i64| {
        for id in 0..count {
            let stream = start(session, id, 0);
            assert!(session.answer(&RpcId::Number(id), &stream, &answer, T));
            sessions.relieve();
        }
    };
    let first = sessions.open(&owner("g", "c", 1), "2025-11-25", Patience::Endless, T).unwrap();
    fill(&first, 20);
    assert_eq!(first.kept.load(Ordering::Relaxed) / answer.len(), 7);
    let huge = vec![b'1'; limits::RESUME_SESSION_BYTES * 2];
    let stream = start(&first, 99, 0);
    assert!(first.answer(&RpcId::Number(99), &stream, &huge, T));
    let newest = format!("{}-{}/0", first.epoch, stream.number);
    assert!(first.resume(&newest, T).is_ok(), "the newest stays whatever its size");
    for n in 0..20u8 {
        fill(&sessions.open(&owner("g", &n.to_string(), 1), "2025-11-25", Patience::Endless, T).unwrap(), 8);
    }
    assert!(sessions.counts().1 <= limits::RESUME_TOTAL_BYTES);
    assert!(first.resume(&newest, T).is_err(), "who kept most gave first");
    sessions.end_revoked(|_| false);
    assert_eq!(sessions.counts(), (0, 0));
}

#[test]
fn at_a_cap_the_least_recently_used_idle_session_makes_room_and_a_busy_one_never() {
    let sessions = Sessions::default();
    let ann = owner("g", "c", 1);
    let at = |n: usize| T + Duration::from_secs(n as u64);
    let all: Vec<_> = (0..limits::SESSIONS_PER_PRINCIPAL)
        .map(|n| sessions.open(&ann, "2025-11-25", Patience::Endless, at(n)).unwrap())
        .collect();
    let busy = start(&all[0], 1, 0);
    sessions.find(&all[1].id, &ann, at(100)).unwrap();
    sessions.open(&ann, "2025-11-25", Patience::Endless, at(101)).unwrap();
    let lives = |session: &Session| sessions.by_id.read().contains_key(&session.id);
    assert!(lives(&all[0]) && lives(&all[1]) && !lives(&all[2]) && lives(&all[3]));
    assert_eq!(busy.answered_at(), None);
    for session in all.iter().filter(|session| lives(session)) {
        let _ = session.start(&RpcId::Number(1), request(0));
    }
    for session in sessions.by_id.read().values() {
        let _ = session.start(&RpcId::Number(1), request(0));
    }
    assert_eq!(code(sessions.open(&ann, "2025-11-25", Patience::Endless, at(102))), (-32000, "busy"));
    assert!(sessions.open(&owner("g2", "another client", 1), "2025-11-25", Patience::Endless, at(103)).is_ok());
}

#[test]
fn all_sessions_together_are_bounded_too() {
    let sessions = Sessions::default();
    let own = |n: usize| owner("g", &(n / limits::SESSIONS_PER_PRINCIPAL).to_string(), 1);
    let first = sessions.open(&own(0), "2025-11-25", Patience::Endless, T).unwrap();
    for n in 1..limits::SESSIONS_MAX {
        sessions.open(&own(n), "2025-11-25", Patience::Endless, T + Duration::from_secs(1)).unwrap();
    }
    sessions.open(&own(limits::SESSIONS_MAX), "2025-11-25", Patience::Endless, T + Duration::from_secs(2)).unwrap();
    assert_eq!(sessions.counts().0, limits::SESSIONS_MAX);
    assert!(!sessions.by_id.read().contains_key(&first.id));
}

#[test]
fn the_sweep_takes_idle_sessions_and_never_one_with_a_call_in_flight_or_a_listener() {
    let sessions = Sessions::default();
    let ann = owner("g", "c", 1);
    let idle = sessions.open(&ann, "2025-11-25", Patience::Endless, T).unwrap();
    let busy = sessions.open(&ann, "2025-11-25", Patience::Endless, T).unwrap();
    let stream = start(&busy, 1, 0);
    let listening = sessions.open(&ann, "2025-11-25", Patience::Endless, T).unwrap();
    let (listener, _) = listening.listen();
    let late = T + limits::SESSION_IDLE;
    sessions.sweep(late - Duration::from_millis(1));
    assert_eq!(sessions.counts().0, 3);
    sessions.sweep(late);
    let lives = |session: &Session| sessions.by_id.read().contains_key(&session.id);
    assert!(!lives(&idle) && lives(&busy) && lives(&listening));
    // The answer counts as use: the client has its time to fetch it.
    assert!(busy.answer(&RpcId::Number(1), &stream, b"{}", late));
    drop(listener);
    sessions.sweep(late + limits::RESUME_KEPT);
    assert!(lives(&busy) && !lives(&listening));
    assert_eq!(sessions.counts(), (1, 0));
}

#[tokio::test]
async fn a_revoked_grant_ends_its_sessions_and_leaves_their_calls_and_nobody_elses() {
    let sessions = Sessions::default();
    let session = sessions.open(&owner("gone", "c", 1), "2025-11-25", Patience::Endless, T).unwrap();
    let other = sessions.open(&owner("stays", "c", 1), "2025-11-25", Patience::Endless, T).unwrap();
    let (stream, others) = (start(&session, 1, 0), start(&other, 1, 0));
    let (mut listener, mine) = session.listen();
    sessions.end_revoked(|grant| &**grant == "stays");
    assert_eq!(stream.stopped().await, Stop::Leave);
    assert!(!session.answer(&RpcId::Number(1), &stream, b"{}", T));
    assert_eq!(code(session.start(&RpcId::Number(2), request(0))), (-32001, "not_found"));
    assert_ne!(*listener.borrow_and_update(), mine);
    assert!(other.answer(&RpcId::Number(1), &others, b"{}", T));
}

#[tokio::test]
async fn a_cancelled_call_stops_gets_no_answer_and_frees_its_id() {
    let session = Sessions::default().open(&owner("g", "c", 1), "2025-11-25", Patience::Endless, T).unwrap();
    let first = start(&session, 1, 0);
    session.cancel(&RpcId::Text("1".into()));
    session.cancel(&RpcId::Number(1));
    session.cancel(&RpcId::Number(1));
    assert_eq!(first.stopped().await, Stop::Cancel);
    let second = start(&session, 1, 0);
    assert!(!session.answer(&RpcId::Number(1), &first, b"{}", T));
    assert!(session.is_busy(), "the late end of the first says nothing about the second");
    assert!(session.answer(&RpcId::Number(1), &second, b"{}", T));
    assert!(!session.is_busy());
}
