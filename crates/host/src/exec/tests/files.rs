use base64::Engine as _;
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
async fn the_root_is_named_without_its_path_below_full() {
    let bench = Bench::new(Profile::Agent);
    let root = bench.workspace.path().canonicalize().unwrap();
    let name = root.file_name().unwrap().to_str().unwrap();
    assert_eq!(
        bench.ok("list_roots", json!({})).await,
        json!({"roots": [{"path": ".", "name": name}], "unrestricted_paths": false})
    );
    let bench = Bench::new(Profile::Full);
    let root = bench.workspace.path().canonicalize().unwrap();
    assert_eq!(bench.ok("list_roots", json!({})).await["roots"][0]["absolute_path"], root.to_str().unwrap());
}

#[tokio::test]
async fn a_file_is_read_whole_by_lines_and_within_max_bytes() {
    let bench = Bench::new(Profile::Review);
    bench.write("f", "one\ntwo\nthree\nfour");
    let read = |mut arguments: Value| {
        arguments["path"] = json!("f");
        bench.call("read_file", arguments)
    };
    assert_eq!(
        read(json!({})).await.unwrap(),
        json!({"path": "f", "size_bytes": 18, "total_lines": 4, "start_line": 1, "end_line": 4, "encoding": "utf-8",
               "sha256": sha256("one\ntwo\nthree\nfour"),
               "content": "one\ntwo\nthree\nfour", "truncated": false})
    );
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
    assert_eq!((&beyond["content"], &beyond["end_line"]), (&json!(""), &json!(8)));
    bench.write("f", "ééé");
    assert_eq!(read(json!({"max_bytes": 3})).await.unwrap()["content"], "é");
    bench.write("f", b"a\xff\x00");
    let binary = read(json!({})).await.unwrap();
    assert_eq!((&binary["encoding"], &binary["content"]), (&json!("base64"), &json!("Yf8A")));
    bench.write("f", "");
    assert_eq!(read(json!({})).await.unwrap()["total_lines"], 0);
}

fn sha256(text: &str) -> String {
    use sha2::Digest as _;
    data_encoding::HEXLOWER.encode(&sha2::Sha256::digest(text))
}

#[tokio::test]
async fn malformed_arguments_are_refused() {
    let bench = Bench::new(Profile::Full);
    bench.write("f", "x");
    let long = "x".repeat(limits::PATH_MAX + 1);
    for (tool, arguments) in [
        ("list_roots", json!({"path": "."})),
        ("list_dir", json!({"path": 1})),
        ("list_dir", json!({"path": ""})),
        ("list_dir", json!({"path": long})),
        ("list_dir", json!({"path": "a\u{0}b"})),
        ("list_files", json!({"max_files": 0})),
        ("list_files", json!({"max_files": limits::LIST_FILES_MAX + 1})),
        ("read_file", json!({})),
        ("read_file", json!({"path": "f", "start_line": 0})),
        ("read_file", json!({"path": "f", "start_line": 3, "end_line": 2})),
        ("read_file", json!({"path": "f", "max_bytes": limits::FILE_BYTES_MAX + 1})),
        ("read_file", json!({"path": "f", "encoding": "latin1"})),
        ("view_image", json!({"path": "f"})),
        ("search_text", json!({"query": ""})),
        ("search_text", json!({"query": "a\nb"})),
        ("search_text", json!({"query": "x".repeat(limits::SEARCH_QUERY_MAX + 1)})),
        ("search_text", json!({"query": "x", "max_matches": limits::SEARCH_MATCHES_MAX + 1})),
        ("search_text", json!({"query": "x", "max_files": limits::SEARCH_FILES_MAX + 1})),
        ("write_file", json!({"path": "f"})),
        ("write_file", json!({"path": "f", "content": "x".repeat(limits::FILE_BYTES_MAX + 1)})),
        ("write_file", json!({"path": "f", "content": "", "expected_sha256": "abc"})),
        ("write_file", json!({"path": "f", "content": "", "create_only": true, "expected_sha256": "0".repeat(64)})),
        ("edit_file", json!({"path": "f", "old_text": "", "new_text": "x"})),
        ("edit_file", json!({"path": "f", "old_text": "x"})),
        ("apply_patch", json!({"patch": ""})),
        ("apply_patch", json!({"patch": "nonsense"})),
        ("git_log", json!({"max_count": 101})),
        ("git_diff", json!({"staged": 1})),
        ("git_show", json!({"revision": "--output=x"})),
        ("git_show", json!({"revision": "HEAD:f"})),
        ("git_show", json!({"revision": ""})),
        ("agent_context", json!({"max_skills": 0})),
        ("session_bootstrap", json!({"task": "x"})),
        ("diagnose_runtime", json!({"verbose": true})),
        ("project_overview", json!([])),
        ("drill_wait", json!({})),
    ] {
        assert_eq!(bench.code(tool, arguments.clone()).await, Code::InvalidRequest, "{tool} {arguments:.80}");
    }
    assert_eq!(bench.read("f"), "x");
}

#[cfg(unix)]
#[tokio::test]
async fn nothing_outside_the_workspace_is_reached_by_any_spelling() {
    let bench = Bench::new(Profile::Agent);
    let outside = TempDir::new().unwrap();
    std::fs::write(outside.path().join("secret"), "secret").unwrap();
    let link = |to: &Path, name: &str| std::os::unix::fs::symlink(to, bench.path(name)).unwrap();
    link(outside.path(), "dir");
    link(&outside.path().join("secret"), "file");
    link(Path::new("../.."), "up");
    bench.write("sub/x", "x");
    link(Path::new("sub/x"), "inside");
    let absolute = outside.path().join("secret").display().to_string();
    for path in
        ["dir/secret", "file", "../secret", "sub/../../x", "up", "/etc/passwd", &absolute, "/", "/proc/self/environ"]
    {
        for (tool, arguments) in [
            ("read_file", json!({"path": path})),
            ("list_dir", json!({"path": path})),
            ("list_files", json!({"path": path})),
            ("search_text", json!({"query": "secret", "path": path})),
            ("view_image", json!({"path": path})),
            ("git_status", json!({"path": path})),
            ("agent_context", json!({"path": path})),
            ("write_file", json!({"path": path, "content": "gone"})),
            ("edit_file", json!({"path": path, "old_text": "secret", "new_text": "gone"})),
            ("apply_patch", json!({"patch": format!("*** Begin Patch\n*** Delete File: {path}\n*** End Patch")})),
            (
                "apply_patch",
                json!({"patch": format!("*** Begin Patch\n*** Update File: sub/x\n*** Move to: {path}\n-x\n+y\n*** End Patch")}),
            ),
            ("run_process", json!({"argv": ["true"], "cwd": path})),
            ("start_process", json!({"argv": ["true"], "cwd": path})),
        ] {
            let error = bench.call(tool, arguments).await.unwrap_err();
            assert!(
                matches!(error.code, Code::PathBoundary | Code::NotFound | Code::Conflict),
                "{tool} {path}: {error:?}"
            );
            assert!(!error.message.contains('/') || path.contains("secret"), "{tool} {path}: {}", error.message);
        }
    }
    assert_eq!(std::fs::read_to_string(outside.path().join("secret")).unwrap(), "secret");
    assert_eq!(bench.read("sub/x"), "x");
    // A link that stays inside may be read through, never written through.
    assert_eq!(bench.ok("read_file", json!({"path": "inside"})).await["path"], "sub/x");
    assert_eq!(bench.code("write_file", json!({"path": "inside", "content": ""})).await, Code::PathBoundary);
    // Walks do not follow links.
    assert_eq!(bench.ok("list_files", json!({})).await["files"], json!(["sub/x"]));
    assert_eq!(bench.ok("search_text", json!({"query": "secret"})).await["matches"], json!([]));
}

#[tokio::test]
async fn an_owner_of_a_full_device_reaches_everything_but_holdfast_itself() {
    let bench = Bench::new(Profile::Full);
    let outside = TempDir::new().unwrap();
    let path = outside.path().canonicalize().unwrap().join("f").display().to_string();
    bench.ok("write_file", json!({"path": path, "content": "x"})).await;
    assert_eq!(bench.ok("read_file", json!({"path": path})).await["path"], path);
    // The same account as an operator is held to the workspace, and told no path.
    let operator = client(1, "c", Role::Operator);
    let refused = bench.call_as(operator, "read_file", json!({"path": path})).await.unwrap_err();
    assert_eq!((refused.code, &*refused.message), (Code::PathBoundary, "the path lies outside the workspace"));
    let data = bench.data.path().canonicalize().unwrap();
    std::fs::write(data.join("token"), "t").unwrap();
    for (tool, arguments) in [
        ("read_file", json!({"path": data.join("token")})),
        ("list_dir", json!({"path": data})),
        ("list_files", json!({"path": data})),
        ("write_file", json!({"path": data.join("new"), "content": ""})),
        ("search_text", json!({"path": data, "query": "t"})),
        ("start_process", json!({"argv": ["true"], "cwd": data})),
    ] {
        assert_eq!(bench.code(tool, arguments).await, Code::PathBoundary, "{tool}");
    }
    assert!(!data.join("new").exists());
}

#[tokio::test]
async fn a_workspace_that_holds_holdfast_s_own_folder_does_not_open_it() {
    let workspace = TempDir::new().unwrap();
    let data = workspace.path().join("state");
    std::fs::create_dir(&data).unwrap();
    std::fs::write(data.join("token"), "needle").unwrap();
    std::fs::write(workspace.path().join("open"), "needle").unwrap();
    let executor = open(workspace.path(), &data, Profile::Edit, Vec::new());
    let bench = Bench { workspace, data: TempDir::new().unwrap(), executor };
    assert_eq!(bench.ok("list_files", json!({})).await["files"], json!(["open"]));
    let found = bench.ok("search_text", json!({"query": "needle"})).await;
    assert_eq!(found["matches"].as_array().unwrap().len(), 1);
    assert_eq!(bench.code("read_file", json!({"path": "state/token"})).await, Code::PathBoundary);
    assert_eq!(bench.code("write_file", json!({"path": "state/x/y", "content": ""})).await, Code::PathBoundary);
}

#[tokio::test]
async fn files_of_a_tree_are_listed_as_git_would_and_bounded() {
    let bench = Bench::new(Profile::Review);
    bench.write(".gitignore", "target\n");
    bench.write("target/x", "");
    bench.write(".git/config", "");
    bench.write("src/a.rs", "");
    bench.write("src/b.rs", "");
    let all = bench.ok("list_files", json!({})).await;
    assert_eq!(all, json!({"path": ".", "files": [".gitignore", "src/a.rs", "src/b.rs"], "truncated": false}));
    let some = bench.ok("list_files", json!({"path": "src", "max_files": 1})).await;
    assert_eq!(some, json!({"path": "src", "files": ["src/a.rs"], "truncated": true}));
}

#[tokio::test]
async fn a_text_is_found_literally_with_its_place() {
    let bench = Bench::new(Profile::Review);
    bench.write("a.txt", "é a.b\nax b\na.b a.b\n");
    bench.write("b.bin", b"a.b\0");
    bench.write("c.txt", format!("{}a.b{}", "x".repeat(2000), "y".repeat(2000)));
    let found = bench.ok("search_text", json!({"query": "a.b"})).await;
    let matches = found["matches"].as_array().unwrap();
    assert_eq!(matches[0], json!({"path": "a.txt", "line": 1, "column": 3, "text": "é a.b"}));
    assert_eq!(matches[1], json!({"path": "a.txt", "line": 3, "column": 1, "text": "a.b a.b"}));
    assert_eq!((&matches[2]["path"], &matches[2]["column"]), (&json!("c.txt"), &json!(2001)));
    let shown = matches[2]["text"].as_str().unwrap();
    assert!(shown.len() == limits::SEARCH_LINE_MAX && shown.contains("xa.by"));
    assert_eq!((matches.len(), &found["files_searched"], &found["truncated"]), (3, &json!(3), &json!(false)));
    let found = bench.ok("search_text", json!({"query": "a.b", "max_matches": 1})).await;
    assert_eq!((found["matches"].as_array().unwrap().len(), &found["truncated"]), (1, &json!(true)));
    let found = bench.ok("search_text", json!({"query": "a.b", "max_files": 1})).await;
    assert_eq!((&found["files_searched"], &found["truncated"]), (&json!(1), &json!(true)));
    let found = bench.ok("search_text", json!({"query": "ax", "path": "a.txt"})).await;
    assert_eq!(found["matches"][0]["line"], 2);
}

#[tokio::test]
async fn an_image_is_shown_as_mcp_content() {
    let bench = Bench::new(Profile::Review);
    let png = base64::engine::general_purpose::STANDARD
        .decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
        .unwrap();
    bench.write("dot.png", &png);
    let shown = bench.ok("view_image", json!({"path": "dot.png"})).await;
    let content = &shown["$mcp"]["content"][0];
    assert_eq!((&content["type"], &content["mimeType"]), (&json!("image"), &json!("image/png")));
    assert_eq!(content["data"], base64::engine::general_purpose::STANDARD.encode(&png));
    for (name, bytes) in [
        ("a.gif", &b"GIF89a\x01\x00"[..]),
        ("a.jpg", b"\xff\xd8\xff\xe0\x00\x10"),
        ("a.webp", b"RIFF\x10\x00\x00\x00WEBPVP8 "),
    ] {
        bench.write(name, bytes);
        assert!(bench.call("view_image", json!({"path": name})).await.is_ok(), "{name}");
    }
    for bytes in [&b"%PDF-1.4"[..], b"<svg/>", b""] {
        bench.write("no", bytes);
        assert_eq!(bench.code("view_image", json!({"path": "no"})).await, Code::InvalidRequest);
    }
    bench.write("big.png", [&png[..], &vec![0; limits::FILE_BYTES_MAX]].concat());
    assert_eq!(bench.code("view_image", json!({"path": "big.png"})).await, Code::LimitExceeded);
}

#[cfg(unix)]
#[tokio::test]
async fn a_pipe_in_a_file_s_place_holds_nobody_up() {
    let bench = Bench::new(Profile::Full);
    bench.ok("run_process", json!({"argv": ["mkfifo", "pipe"]})).await;
    assert_eq!(bench.code("read_file", json!({"path": "pipe"})).await, Code::InvalidRequest);
    assert_eq!(
        bench.code("edit_file", json!({"path": "pipe", "old_text": "a", "new_text": "b"})).await,
        Code::InvalidRequest
    );
    assert_eq!(bench.ok("search_text", json!({"query": "x"})).await["files_searched"], 0);
}

/// A folder and a link to a folder outside change places as fast as they can while tools work below it.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_swapped_for_a_link_never_leads_outside() {
    use std::sync::atomic::AtomicBool;
    let bench = Bench::new(Profile::Edit);
    let outside = TempDir::new().unwrap();
    std::fs::write(outside.path().join("f"), "SECRET").unwrap();
    bench.write("dir/f", "harmless");
    let [dir, link] = ["dir", "link"].map(|name| bench.path(name));
    std::os::unix::fs::symlink(outside.path(), &link).unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let swapper = std::thread::spawn({
        let over = Arc::clone(&over);
        move || {
            use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
            let swap = || renameat2(AT_FDCWD, &dir, AT_FDCWD, &link, RenameFlags::RENAME_EXCHANGE).unwrap();
            while !over.load(Ordering::Relaxed) {
                swap();
                swap();
            }
        }
    });
    let (mut read, mut wrote) = (0, 0);
    for round in 0..400 {
        if let Ok(file) = bench.call("read_file", json!({"path": "dir/f"})).await {
            assert_eq!(file["content"], "harmless");
            read += 1;
        }
        for match_ in bench.ok("search_text", json!({"query": "E"})).await["matches"].as_array().unwrap() {
            assert_ne!(match_["text"], "SECRET");
        }
        let written = bench.call("write_file", json!({"path": "dir/new", "content": round.to_string()})).await;
        wrote += u32::from(written.is_ok());
    }
    over.store(true, Ordering::Relaxed);
    swapper.join().unwrap();
    assert!(read > 0 && wrote > 0, "the race was never won by us: {read} {wrote}");
    let names: Vec<_> = std::fs::read_dir(outside.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["f"]);
    assert_eq!(std::fs::read_to_string(outside.path().join("f")).unwrap(), "SECRET");
}
