//! The six defects of rmcp that this endpoint must not show (the fourth has `tests/mcp_hostile.rs` to itself).

use std::time::Duration;

use holdfast_testkit::mcp::Event;
use serde_json::json;

use crate::stage::Stage;

fn data(event: Option<Event>) -> serde_json::Value {
    serde_json::from_str(&event.expect("an event").data).expect("JSON")
}

#[tokio::test]
async fn d1_a_result_that_finished_while_the_client_was_away_is_fetched_again_once() {
    let stage = Stage::start().await;
    let mut device = stage.device(&["list_dir"]).await;
    let session = stage.session().await;
    let mut events = session.start_call(1, "list_dir", json!({})).await.unwrap();
    let priming = events.next().await.unwrap().unwrap();
    assert_eq!(priming.data, "");
    let call = device.called().await;
    drop(events);
    device.succeed(&call, json!({"entries": [1]})).await;
    let answer = session.resume(&priming.id.unwrap()).await.unwrap();
    assert_eq!(answer.status(), 200);
    let mut answer = answer;
    let event = answer.next().await.unwrap();
    let last = event.clone().unwrap().id.unwrap();
    assert_eq!(data(event)["result"]["structuredContent"], json!({"entries": [1]}));
    assert_eq!(answer.next().await.unwrap(), None, "the stream ends with the answer");
    let mut again = session.resume(&last).await.unwrap();
    assert_eq!(again.next().await.unwrap(), None, "who has seen everything gets nothing twice");
}

#[tokio::test]
async fn d2_a_resumed_stream_does_not_repeat_what_the_client_has() {
    let stage = Stage::start().await;
    let mut device = stage.device(&["list_dir"]).await;
    let session = stage.session().await;
    let params = json!({"name": "list_dir", "arguments": {}, "_meta": {"progressToken": "p"}});
    let mut events = session.start(1, "tools/call", params).await.unwrap();
    events.next().await.unwrap();
    let call = device.called().await;
    assert_eq!(call["progress"], true);
    device.progress(&call, 1, "one").await;
    let first = events.next().await.unwrap().unwrap();
    assert_eq!(data(Some(first.clone()))["params"]["message"], "one");
    drop(events);
    device.progress(&call, 2, "two").await;
    device.succeed(&call, json!({})).await;
    let answer = session.resume(&first.id.unwrap()).await.unwrap().answer().await.unwrap();
    let seen: Vec<_> = answer.before.iter().map(|message| message["params"]["message"].clone()).collect();
    assert_eq!(seen, ["two"]);
    assert_eq!(answer.message["id"], 1);
}

#[tokio::test]
async fn d3_a_stalled_reader_blocks_nobody() {
    let stage = Stage::start().await;
    let mut device = stage.device(&["list_dir", "list_roots"]).await;
    let session = stage.session().await;
    let params = json!({"name": "list_dir", "arguments": {}, "_meta": {"progressToken": "p"}});
    let stalled = session.start("stalled", "tools/call", params).await.unwrap();
    let call = device.called().await;
    let flood = "x".repeat(20_000);
    for n in 0..1000 {
        device.progress(&call, n, &flood).await;
    }
    let (other, ()) = tokio::join!(session.call("list_roots", json!({})), async {
        let call = device.called().await;
        device.succeed(&call, json!({"roots": []})).await;
    });
    assert_eq!(other.unwrap().content(), &json!({"roots": []}));
    assert_eq!(session.cancel("stalled").await, 202);
    assert_eq!(device.cancelled().await, call["id"]);
    drop(stalled);
}

#[tokio::test]
async fn d5_results_pass_byte_for_byte_in_both_eras() {
    let stage = Stage::start().await;
    let mut device = stage.device(&["list_dir"]).await;
    let raw = r#"{"z":1e2,"big":18446744073709551617,"a":1.10,"s":"\u00e9\/","n":null,"deep":[[{}]]}"#;
    let content = r#"[{"type":"hologram","x":1.0},{"type":"text","text":"a","extra":{"k":1e1}}]"#;
    let wrapped = format!(r#"{{"$mcp":{{"content":{content},"structuredContent":{raw},"isError":true}}}}"#);
    let session = stage.session().await;
    let modern = stage.modern();
    for result in [raw.to_owned(), wrapped] {
        let (old, ()) = tokio::join!(session.call("list_dir", json!({})), async {
            let call = device.called().await;
            device.succeed_raw(&call, &result).await;
        });
        let (new, ()) = tokio::join!(modern.call("list_dir", json!({})).send(), async {
            let call = device.called().await;
            device.succeed_raw(&call, &result).await;
        });
        for answer in [old.unwrap(), new.unwrap()] {
            assert!(answer.text.contains(&format!(r#""structuredContent":{raw},"#)), "{}", answer.text);
            if result.contains("$mcp") {
                assert!(answer.text.contains(&format!(r#""content":{content},"#)), "{}", answer.text);
                assert_eq!(answer.message["result"]["isError"], true);
            }
        }
    }
}

#[tokio::test]
async fn a_failed_resume_is_a_terminal_error() {
    let stage = Stage::start().await;
    let session = stage.session().await;
    for id in ["0/0", "nonsense", "AAAAAAAA-1/0", ""] {
        let failed = session.resume(id).await.unwrap();
        assert_eq!(failed.status(), 400, "{id}");
    }
    session.delete().await;
    assert_eq!(session.resume("0/0").await.unwrap().status(), 404);
}

#[tokio::test]
async fn d6_a_silent_call_keeps_its_session_and_its_stream_shows_life_from_the_start() {
    // That the sweep spares sessions with a call in flight is a test of the session table, with a clock of its own.
    let stage = Stage::start().await;
    let mut device = stage.device(&["list_dir"]).await;
    let session = stage.session().await;
    let mut events = session.start_call(1, "list_dir", json!({})).await.unwrap();
    let priming = tokio::time::timeout(Duration::from_secs(120), events.next()).await.expect("at once").unwrap();
    assert!(priming.unwrap().id.is_some());
    let call = device.called().await;
    device.succeed(&call, json!({})).await;
    assert_eq!(events.answer().await.unwrap().message["id"], 1);
}
