use holdfast_core::limits;
use serde_json::json;

use super::*;

#[tokio::test]
async fn bodies_are_kept_only_while_that_is_switched_on() {
    let bench = Bench::new(Profile::Agent);
    let write = json!({"path": "a", "content": "password=hunter2"});
    let call = bench.start("write_file", write.clone());
    let id = call.id.to_string();
    call.end().await.unwrap();
    assert_eq!(bench.executor.body(&id), None);

    bench.executor.keep_bodies(true);
    let call = bench.start("write_file", write);
    let id = call.id.to_string();
    call.end().await.unwrap();
    let body = bench.executor.body(&id).unwrap();
    assert_eq!(body.arguments.text, r#"{"path":"a","content":"password=[hidden]"}"#);
    assert!(body.result.as_ref().unwrap().text.starts_with(r#"{"path":"a""#), "{:?}", body.result.unwrap().text);
    assert_eq!(bench.read("a"), "password=hunter2");

    let call = bench.start("read_file", json!({"path": "none"}));
    let id = call.id.to_string();
    call.end().await.unwrap_err();
    assert!(bench.executor.body(&id).unwrap().result.unwrap().text.starts_with("not_found: "));
    bench.executor.keep_bodies(false);
    assert_eq!(bench.executor.body(&id), None);
}

#[tokio::test]
async fn the_oldest_bodies_make_room() {
    let bench = Bench::new(Profile::Agent);
    bench.executor.keep_bodies(true);
    bench.write("big", "y".repeat(limits::BODY_READ));
    let mut ids = Vec::new();
    for _ in 0..limits::BODIES_MAX / limits::BODY_SHOWN {
        let call = bench.start("read_file", json!({"path": "big"}));
        ids.push(call.id.to_string());
        call.end().await.unwrap();
    }
    assert_eq!(bench.executor.body(&ids[0]), None);
    let newest = bench.executor.body(ids.last().unwrap()).unwrap().result.unwrap();
    assert_eq!((newest.text.len(), newest.cut), (limits::BODY_SHOWN, true));
}
