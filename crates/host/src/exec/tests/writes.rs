use holdfast_core::limits;
use serde_json::json;
use sha2::Digest as _;

use super::*;

fn sha256(text: &str) -> String {
    data_encoding::HEXLOWER.encode(&sha2::Sha256::digest(text))
}

/// What is in the workspace, so that nothing temporary stays behind unseen.
fn names(bench: &Bench) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(bench.workspace.path())
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_file_is_created_with_its_folders_and_replaced() {
    let bench = Bench::new(Profile::Edit);
    let made = bench.ok("write_file", json!({"path": "a/b/c.txt", "content": "one"})).await;
    assert_eq!(made, json!({"path": "a/b/c.txt", "sha256": sha256("one"), "size_bytes": 3, "created": true}));
    let replaced = bench.ok("write_file", json!({"path": "a/b/c.txt", "content": "two"})).await;
    assert_eq!((&replaced["created"], bench.read("a/b/c.txt")), (&json!(false), "two".to_owned()));
    assert_eq!(bench.code("write_file", json!({"path": "a", "content": ""})).await, Code::InvalidRequest);
    assert_eq!(bench.code("write_file", json!({"path": "a/b/c.txt/d", "content": ""})).await, Code::InvalidRequest);
    assert_eq!(bench.code("write_file", json!({"path": "absent/../x", "content": ""})).await, Code::InvalidRequest);
    assert_eq!(names(&bench), ["a"]);
}

#[tokio::test]
async fn preconditions_are_checked_before_anything_changes() {
    let bench = Bench::new(Profile::Edit);
    bench.write("f", "old");
    let write = |extra: Value| {
        let mut arguments = json!({"path": "f", "content": "new"});
        arguments.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        bench.call("write_file", arguments)
    };
    assert_eq!(write(json!({"create_only": true})).await.unwrap_err().code, Code::Conflict);
    assert_eq!(write(json!({"expected_sha256": sha256("other")})).await.unwrap_err().code, Code::Conflict);
    assert_eq!(bench.read("f"), "old");
    write(json!({"expected_sha256": sha256("old").to_uppercase()})).await.unwrap();
    assert_eq!(bench.read("f"), "new");
    let absent = json!({"path": "g", "content": "x", "expected_sha256": sha256("")});
    assert_eq!(bench.code("write_file", absent).await, Code::Conflict);
    bench.ok("write_file", json!({"path": "g", "content": "x", "create_only": true})).await;
    assert_eq!(names(&bench), ["f", "g"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_writers_with_one_precondition_exactly_one_wins() {
    let bench = Bench::new(Profile::Edit);
    bench.write("f", "0");
    let calls: Vec<_> = (1..=20)
        .map(|n| {
            bench.start("write_file", json!({"path": "f", "content": n.to_string(), "expected_sha256": sha256("0")}))
        })
        .collect();
    let created: Vec<_> = (1..=20)
        .map(|n| bench.start("write_file", json!({"path": "g", "content": n.to_string(), "create_only": true})))
        .collect();
    for calls in [calls, created] {
        let mut won = 0;
        for call in calls {
            match call.end().await {
                Ok(_) => won += 1,
                Err(e) => assert_eq!(e.code, Code::Conflict),
            }
        }
        assert_eq!(won, 1);
    }
}

#[cfg(unix)]
#[tokio::test]
async fn permissions_of_a_replaced_file_stay() {
    use std::os::unix::fs::PermissionsExt as _;
    let bench = Bench::new(Profile::Edit);
    bench.write("run.sh", "#!/bin/sh");
    std::fs::set_permissions(bench.path("run.sh"), std::fs::Permissions::from_mode(0o750)).unwrap();
    bench.ok("edit_file", json!({"path": "run.sh", "old_text": "sh", "new_text": "bash", "replace_all": true})).await;
    assert_eq!(bench.path("run.sh").metadata().unwrap().permissions().mode() & 0o777, 0o750);
}

#[tokio::test]
async fn an_edit_needs_exactly_one_place_unless_all_are_meant() {
    let bench = Bench::new(Profile::Edit);
    bench.write("f", "a b a");
    let edit = |old: &str, all: bool| {
        bench.call("edit_file", json!({"path": "f", "old_text": old, "new_text": "X", "replace_all": all}))
    };
    assert_eq!(edit("c", false).await.unwrap_err().code, Code::Conflict);
    let twice = edit("a", false).await.unwrap_err();
    assert_eq!((twice.code, twice.message.contains("2 times")), (Code::Conflict, true));
    assert_eq!(edit("b", false).await.unwrap()["replacements"], 1);
    assert_eq!(edit("a", true).await.unwrap()["replacements"], 2);
    assert_eq!(bench.read("f"), "X X X");
    assert_eq!(
        bench.code("edit_file", json!({"path": "none", "old_text": "a", "new_text": "b"})).await,
        Code::NotFound
    );
    bench.write("f", b"\xff");
    assert_eq!(edit("a", false).await.unwrap_err().code, Code::InvalidRequest);
    bench.write("f", "a".repeat(100_000));
    let huge = json!({"path": "f", "old_text": "a", "new_text": "b".repeat(1000), "replace_all": true});
    assert_eq!(bench.code("edit_file", huge).await, Code::LimitExceeded);
    bench.write("f", "a".repeat(limits::FILE_BYTES_MAX + 1));
    assert_eq!(edit("a", true).await.unwrap_err().code, Code::LimitExceeded);
}

#[tokio::test]
async fn git_folders_are_closed_to_writing_in_every_spelling() {
    let bench = Bench::new(Profile::Full);
    bench.write(".git/config", "x");
    for path in [
        ".git/config",
        ".git/hooks/pre-commit",
        "sub/.git",
        "sub/.GIT/x",
        ".Git/config",
        ".git./x",
        "a/.git /x",
        ".g\u{200c}it/config",
        "git~1/config",
    ] {
        assert_eq!(bench.code("write_file", json!({"path": path, "content": "y"})).await, Code::PathBoundary, "{path}");
        let patch = format!("*** Begin Patch\n*** Add File: {path}\n+y\n*** End Patch");
        assert_eq!(bench.code("apply_patch", json!({"patch": patch})).await, Code::PathBoundary, "{path}");
    }
    assert_eq!(
        bench.code("edit_file", json!({"path": ".git/config", "old_text": "x", "new_text": "y"})).await,
        Code::PathBoundary
    );
    assert_eq!(bench.read(".git/config"), "x");
    // Their names only look like one.
    bench.ok("write_file", json!({"path": ".gitignore", "content": "x"})).await;
    bench.ok("write_file", json!({"path": ".github/x", "content": "x"})).await;
}

#[tokio::test]
async fn a_patch_changes_all_its_files() {
    let bench = Bench::new(Profile::Edit);
    bench.write("update", "a\nb\nc\n");
    bench.write("delete", "x");
    bench.write("move", "m\n");
    let patch = "*** Begin Patch\n*** Add File: new/file\n+n\n*** Delete File: delete\n*** Update File: update\n a\n-b\n+B\n*** Update File: move\n*** Move to: moved\n-m\n+M\n*** End Patch";
    let done = bench.ok("apply_patch", json!({"patch": patch})).await;
    let actions: Vec<_> = done["files"].as_array().unwrap().iter().map(|f| f["action"].as_str().unwrap()).collect();
    assert_eq!(actions, ["added", "deleted", "updated", "moved"]);
    assert_eq!(
        (bench.read("new/file"), bench.read("update"), bench.read("moved")),
        ("n\n".into(), "a\nB\nc\n".into(), "M\n".into())
    );
    assert_eq!(names(&bench), ["moved", "new", "update"]);
}

#[tokio::test]
async fn a_patch_that_does_not_fit_changes_nothing() {
    let bench = Bench::new(Profile::Edit);
    bench.write("a", "a\n");
    bench.write("b", "b\n");
    let good = "*** Update File: a\n-a\n+A\n";
    for (bad, code) in [
        ("*** Update File: b\n-x\n+y\n", Code::Conflict),
        ("*** Update File: none\n-x\n+y\n", Code::NotFound),
        ("*** Delete File: none\n", Code::NotFound),
        ("*** Add File: b\n+x\n", Code::Conflict),
        ("*** Update File: b\n*** Move to: a\n-b\n+c\n", Code::Conflict),
        ("*** Add File: ../out\n+x\n", Code::PathBoundary),
        ("*** Add File: sub/../x\n+x\n", Code::InvalidRequest),
        ("*** Delete File: ./a\n", Code::InvalidRequest),
    ] {
        let patch = format!("*** Begin Patch\n{good}{bad}*** End Patch");
        assert_eq!(bench.code("apply_patch", json!({"patch": patch})).await, code, "{bad}");
        assert_eq!(
            (bench.read("a"), bench.read("b"), names(&bench)),
            ("a\n".into(), "b\n".into(), vec!["a".into(), "b".into()])
        );
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_patch_that_fails_halfway_is_put_back() {
    use std::os::unix::fs::PermissionsExt as _;
    if nix::unistd::geteuid().is_root() {
        // Root ignores permissions: make the last step fail by a folder that is no place for a file.
        let bench = Bench::new(Profile::Edit);
        bench.write("a", "a\n");
        bench.ok("write_file", json!({"path": "gone", "content": "g"})).await;
        let long = "n".repeat(255);
        let patch = format!(
            "*** Begin Patch\n*** Update File: a\n-a\n+A\n*** Delete File: gone\n*** Add File: {long}x\n+x\n*** End Patch"
        );
        let error = bench.call("apply_patch", json!({"patch": patch})).await.unwrap_err();
        assert!(matches!(error.code, Code::InvalidRequest | Code::ExecutionFailed), "{error:?}");
        assert_eq!((bench.read("a"), names(&bench)), ("a\n".into(), vec!["a".to_owned(), "gone".into()]));
        return;
    }
    let bench = Bench::new(Profile::Edit);
    bench.write("a", "a\n");
    bench.write("locked/b", "b\n");
    std::fs::set_permissions(bench.path("locked"), std::fs::Permissions::from_mode(0o500)).unwrap();
    let patch = "*** Begin Patch\n*** Update File: a\n-a\n+A\n*** Update File: locked/b\n-b\n+B\n*** End Patch";
    let error = bench.call("apply_patch", json!({"patch": patch})).await.unwrap_err();
    std::fs::set_permissions(bench.path("locked"), std::fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(error.code, Code::PermissionDenied);
    assert!(error.message.ends_with("nothing was changed"));
    assert_eq!((bench.read("a"), bench.read("locked/b")), ("a\n".into(), "b\n".into()));
}
