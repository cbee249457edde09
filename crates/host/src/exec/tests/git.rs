//! Each test runs twice: an editor's calls go through our own reader, an owner's through the git program.

use std::process::Command;

use serde_json::json;

use super::*;

const READERS: [(&str, Role); 2] = [("own", Role::Editor), ("program", Role::Owner)];

fn git(dir: &Path, arguments: &[&str]) -> String {
    let out = Command::new("git")
        .args([
            "-c",
            "user.name=A U Thor",
            "-c",
            "user.email=a@example.com",
            "-c",
            "init.defaultBranch=main",
            "-c",
            "commit.gpgsign=false",
        ])
        .args(arguments)
        .current_dir(dir)
        .env("GIT_AUTHOR_DATE", "2026-01-02T03:04:05+01:00")
        .env("GIT_COMMITTER_DATE", "2026-01-02T03:04:05+01:00")
        .output()
        .unwrap();
    assert!(out.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap().trim().to_owned()
}

/// A repository with one commit, something staged, something changed and something untracked.
fn repository(bench: &Bench) {
    let dir = bench.workspace.path();
    git(dir, &["init", "-q"]);
    bench.write("kept.txt", "one\ntwo\nthree\n");
    bench.write("sub/gone.txt", "x\n");
    git(dir, &["add", "."]);
    git(dir, &["commit", "-q", "-m", "First\n\nWith a body."]);
    bench.write("kept.txt", "one\nTWO\nthree\n");
    std::fs::remove_file(bench.path("sub/gone.txt")).unwrap();
    bench.write("staged.txt", "s\n");
    git(dir, &["add", "staged.txt"]);
    bench.write("new.txt", "n\n");
}

#[tokio::test]
async fn status_shows_branch_head_and_every_change() {
    for (reader, role) in READERS {
        let bench = Bench::new(Profile::Full);
        assert_eq!(bench.code("git_status", json!({})).await, Code::NotFound);
        repository(&bench);
        let head = git(bench.workspace.path(), &["rev-parse", "HEAD"]);
        let status = bench.call_as(client(1, "c", role), "git_status", json!({})).await.unwrap();
        assert_eq!(
            status,
            json!({"repository": ".", "branch": "main", "head": head, "clean": false, "truncated": false, "entries": [
                {"path": "kept.txt", "unstaged": "modified"},
                {"path": "new.txt", "unstaged": "untracked"},
                {"path": "staged.txt", "staged": "added"},
                {"path": "sub/gone.txt", "unstaged": "deleted"},
            ]}),
            "{reader}"
        );
        let below = bench.call_as(client(1, "c", role), "git_status", json!({"path": "sub"})).await.unwrap();
        assert_eq!(below["entries"], json!([{"path": "sub/gone.txt", "unstaged": "deleted"}]), "{reader}");
    }
}

#[tokio::test]
async fn an_empty_repository_has_neither_head_nor_history() {
    for (reader, role) in READERS {
        let bench = Bench::new(Profile::Full);
        git(bench.workspace.path(), &["init", "-q"]);
        let status = bench.call_as(client(1, "c", role), "git_status", json!({})).await.unwrap();
        assert_eq!(
            status,
            json!({"repository": ".", "branch": "main", "head": null, "clean": true, "truncated": false, "entries": []}),
            "{reader}"
        );
        let log = bench.call_as(client(1, "c", role), "git_log", json!({})).await.unwrap();
        assert_eq!(log["commits"], json!([]), "{reader}");
        let show = bench.call_as(client(1, "c", role), "git_show", json!({})).await.unwrap_err();
        assert_eq!(show.code, Code::NotFound, "{reader}");
    }
}

#[tokio::test]
async fn diffs_are_git_s() {
    for (reader, role) in READERS {
        let bench = Bench::new(Profile::Full);
        repository(&bench);
        let who = || client(1, "c", role);
        let diff = bench.call_as(who(), "git_diff", json!({})).await.unwrap();
        let without_ids = |diff: &Value| {
            let lines = diff["diff"].as_str().unwrap().lines().filter(|l| !l.starts_with("index "));
            lines.map(|l| format!("{l}\n")).collect::<String>()
        };
        let kept = "diff --git a/kept.txt b/kept.txt\n--- a/kept.txt\n+++ b/kept.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n";
        let gone = "diff --git a/sub/gone.txt b/sub/gone.txt\ndeleted file mode 100644\n--- a/sub/gone.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n";
        assert_eq!(without_ids(&diff), format!("{kept}{gone}"), "{reader}");
        let below = bench.call_as(who(), "git_diff", json!({"path": "kept.txt"})).await.unwrap();
        assert_eq!(without_ids(&below), kept, "{reader}");
        let staged = bench.call_as(who(), "git_diff", json!({"staged": true})).await.unwrap();
        let expected = "diff --git a/staged.txt b/staged.txt\nnew file mode 100644\n--- /dev/null\n+++ b/staged.txt\n@@ -0,0 +1 @@\n+s\n";
        assert_eq!((without_ids(&staged), &staged["truncated"]), (expected.to_owned(), &json!(false)), "{reader}");
        let cut = bench.call_as(who(), "git_diff", json!({"max_bytes": 20})).await.unwrap();
        assert_eq!((&cut["diff"], &cut["truncated"]), (&json!("diff --git a/kept.tx"), &json!(true)), "{reader}");
    }
}

#[tokio::test]
async fn history_and_commits_are_shown() {
    for (reader, role) in READERS {
        let bench = Bench::new(Profile::Full);
        repository(&bench);
        let dir = bench.workspace.path();
        git(dir, &["commit", "-q", "-m", "Second"]);
        let [second, first] = ["HEAD", "HEAD~1"].map(|rev| git(dir, &["rev-parse", rev]));
        let who = || client(1, "c", role);
        let log = bench.call_as(who(), "git_log", json!({"include_author_email": true})).await.unwrap();
        let commit = |id: &str, parents: Value, subject: &str| {
            json!({"id": id, "parents": parents, "author": "A U Thor", "author_email": "a@example.com",
                   "date": "2026-01-02T03:04:05+01:00", "subject": subject})
        };
        assert_eq!(
            log,
            json!({"repository": ".", "commits": [commit(&second, json!([first]), "Second"), commit(&first, json!([]), "First")]}),
            "{reader}"
        );
        let one = bench.call_as(who(), "git_log", json!({"max_count": 1})).await.unwrap();
        assert_eq!(
            (one["commits"].as_array().unwrap().len(), one["commits"][0].get("author_email")),
            (1, None),
            "{reader}"
        );
        let show = bench.call_as(who(), "git_show", json!({"revision": "HEAD~1"})).await.unwrap();
        assert_eq!((&show["id"], &show["message"]), (&json!(first), &json!("First\n\nWith a body.\n")), "{reader}");
        let diff = show["diff"].as_str().unwrap();
        assert!(diff.contains("+++ b/kept.txt\n@@ -0,0 +1,3 @@\n+one\n+two\n+three\n"), "{reader}: {diff}");
        for revision in ["nowhere", "HEAD~9", "HEAD^{tree}"] {
            let error = bench.call_as(who(), "git_show", json!({"revision": revision})).await.unwrap_err();
            assert_eq!(error.code, Code::NotFound, "{reader} {revision}");
        }
    }
}

#[tokio::test]
async fn nothing_a_hostile_repository_names_is_run() {
    for (reader, role) in READERS {
        let bench = Bench::new(Profile::Full);
        repository(&bench);
        let dir = bench.workspace.path();
        let marker = bench.data.path().join("ran");
        let run = format!("sh -c 'echo ran >> {}; cat' x", marker.display());
        bench.write(".gitattributes", "* filter=evil diff=evil\n*.txt filter=we=ird\n");
        for (key, value) in [
            ("core.fsmonitor", &*run),
            ("core.hooksPath", "hooks"),
            ("core.pager", &run),
            ("core.sshCommand", &run),
            ("core.askPass", &run),
            ("core.editor", &run),
            ("diff.external", &run),
            ("diff.evil.command", &run),
            ("diff.evil.textconv", &run),
            ("filter.evil.clean", &run),
            ("filter.evil.smudge", &run),
            ("filter.evil.process", &run),
            ("filter.evil.required", "true"),
            ("filter.we=ird.clean", &run),
            ("gpg.program", &run),
            ("log.showSignature", "true"),
            ("pager.log", &run),
            ("remote.origin.url", &format!("ext::{run}")),
            ("remote.origin.promisor", "true"),
            ("remote.origin.partialclonefilter", "blob:none"),
            ("protocol.ext.allow", "always"),
        ] {
            git(dir, &["config", key, value]);
        }
        bench.write("hooks/post-index-change", format!("#!/bin/sh\n{run}\n"));
        std::fs::set_permissions(
            bench.path("hooks/post-index-change"),
            std::os::unix::fs::PermissionsExt::from_mode(0o755),
        )
        .unwrap();
        // The stat of the index no longer fits, so that a reader has to look at the content.
        bench.write("kept.txt", "one\nTWO\nthree\n");
        let who = || client(1, "c", role);
        for (tool, arguments) in [
            ("git_status", json!({})),
            ("git_diff", json!({})),
            ("git_diff", json!({"staged": true})),
            ("git_log", json!({})),
            ("git_show", json!({})),
            ("project_overview", json!({})),
        ] {
            bench.call_as(who(), tool, arguments).await.unwrap_or_else(|e| panic!("{reader} {tool}: {e:?}"));
            assert!(!marker.exists(), "{reader} {tool} ran something");
        }
        // An object that is missing is not fetched either.
        let blob =
            git(dir, &["-c", "filter.evil.clean=", "-c", "core.fsmonitor=false", "rev-parse", "HEAD:sub/gone.txt"]);
        std::fs::remove_file(dir.join(".git/objects").join(&blob[..2]).join(&blob[2..])).unwrap();
        let _ = std::fs::remove_file(&marker);
        let _ = bench.call_as(who(), "git_show", json!({})).await;
        let _ = bench.call_as(who(), "git_diff", json!({})).await;
        assert!(!marker.exists(), "{reader} fetched");
        // Without our options git does run them: the traps are real.
        let _ = Command::new("git").arg("diff").current_dir(dir).output();
        assert!(marker.exists(), "{reader}");
    }
}

#[tokio::test]
async fn a_repository_cannot_lead_our_reader_outside_the_workspace() {
    let outside = TempDir::new().unwrap();
    git(outside.path(), &["init", "-q"]);
    std::fs::write(outside.path().join("secret"), "secret\n").unwrap();
    git(outside.path(), &["add", "."]);
    git(outside.path(), &["commit", "-q", "-m", "Secret"]);
    let elsewhere = outside.path().display();
    let editor = || client(1, "c", Role::Editor);
    type Plant<'a> = (&'a str, &'a dyn Fn(&Bench));
    let plants: [Plant<'_>; 5] = [
        ("gitfile", &|bench| bench.write(".git", format!("gitdir: {elsewhere}/.git\n"))),
        ("link", &|bench| std::os::unix::fs::symlink(outside.path().join(".git"), bench.path(".git")).unwrap()),
        ("worktree", &|bench| {
            repository(bench);
            git(bench.workspace.path(), &["config", "core.worktree", outside.path().to_str().unwrap()]);
        }),
        ("alternates", &|bench| {
            repository(bench);
            bench.write(".git/objects/info/alternates", format!("{elsewhere}/.git/objects\n"));
        }),
        ("objects", &|bench| {
            repository(bench);
            std::fs::remove_dir_all(bench.path(".git/objects")).unwrap();
            std::os::unix::fs::symlink(outside.path().join(".git/objects"), bench.path(".git/objects")).unwrap();
        }),
    ];
    for (how, plant) in plants {
        let bench = Bench::new(Profile::Full);
        plant(&bench);
        for tool in ["git_status", "git_diff", "git_log", "git_show"] {
            match bench.call_as(editor(), tool, json!({})).await {
                Err(error) => assert_eq!(error.code, Code::PathBoundary, "{how} {tool}"),
                // Distrusted, the setting does not exist, and the repository is read where it stands.
                Ok(shown) => {
                    assert!(how == "worktree" && !shown.to_string().contains("ecret"), "{how} {tool}: {shown}")
                }
            }
        }
    }
    // A repository that begins above the workspace is none of ours.
    let inner = outside.path().join("inner");
    std::fs::create_dir(&inner).unwrap();
    let data = TempDir::new().unwrap();
    let executor = open(&inner, data.path(), Profile::Edit, Vec::new());
    let bench = Bench { workspace: TempDir::new().unwrap(), data, executor };
    assert_eq!(bench.code("git_log", json!({})).await, Code::NotFound);
}
