use holdfast_core::limits;
use serde_json::json;

use super::*;

#[tokio::test]
async fn a_folder_is_listed_by_name_with_kinds_and_sizes() {
    let bench = Bench::new(Profile::Review);
    bench.write("b.txt", "12345");
    bench.write("a/x", "");
    let listed = bench.ok("list_dir", json!({})).await;
    assert_eq!(
        listed,
        json!({"path": ".", "truncated": false, "total": 2, "entries": [
            {"name": "a", "kind": "dir"}, {"name": "b.txt", "kind": "file", "size": 5}]})
    );
    assert_eq!(bench.code("list_dir", json!({"path": "nowhere"})).await, Code::NotFound);
    assert_eq!(bench.code("list_dir", json!({"path": "b.txt"})).await, Code::InvalidRequest);
}

#[tokio::test]
async fn a_file_is_read_whole_by_lines_and_within_max_bytes() {
    let bench = Bench::new(Profile::Review);
    bench.write("f", "one\ntwo\nthree\nfour");
    let read = |arguments: Value| {
        let mut arguments = arguments;
        arguments["path"] = json!("f");
        bench.call("read_file", arguments)
    };
    let whole = read(json!({})).await.unwrap();
    assert_eq!(whole["content"], "one\ntwo\nthree\nfour");
    assert_eq!((&whole["total_lines"], &whole["size_bytes"], &whole["end_line"]), (&json!(4), &json!(18), &json!(4)));
    let some = read(json!({"start_line": 2, "end_line": 3})).await.unwrap();
    assert_eq!(
        (&some["content"], &some["start_line"], &some["end_line"]),
        (&json!("two\nthree\n"), &json!(2), &json!(3))
    );
    let cut = read(json!({"max_bytes": 10})).await.unwrap();
    assert_eq!(
        (&cut["content"], &cut["truncated"], &cut["next_line"]),
        (&json!("one\ntwo\n"), &json!(true), &json!(3))
    );
    let beyond = read(json!({"start_line": 9})).await.unwrap();
    assert_eq!(beyond["content"], "");
}
