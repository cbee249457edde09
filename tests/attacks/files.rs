//! Tools that are asked to leave the workspace, and files that others planted.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use holdfast_testkit::home::Home;
use holdfast_testkit::stand::{Stand, WireKind, found};
use serde_json::{Value, json};

async fn code(stand: &Stand, tool: &str, arguments: Value) -> Option<String> {
    let answer = stand.modern().call(tool, arguments).send().await.expect("an answer");
    answer.code().map(str::to_owned)
}

#[tokio::test]
async fn no_path_and_no_link_leads_out_of_the_workspace() {
    let stand = Stand::start(WireKind::Feature).await;
    let workspace = stand.home.workspace();
    let outside = stand.home.config().join("outside.txt");
    std::fs::write(&outside, "private").expect("a file");
    symlink(&outside, workspace.join("link")).expect("a link");
    symlink(stand.home.config(), workspace.join("folder")).expect("a link");
    let absolute = outside.to_str().expect("UTF-8");
    for path in [
        "../config/outside.txt",
        "./../config/outside.txt",
        "link",
        "folder/outside.txt",
        absolute,
        "/etc/passwd",
        "\0",
    ] {
        let read = code(&stand, "read_file", json!({"path": path})).await;
        assert!(matches!(read.as_deref(), Some("path_boundary" | "invalid_request")), "read {path:?}: {read:?}");
        let write = code(&stand, "write_file", json!({"path": path, "content": "x"})).await;
        assert!(matches!(write.as_deref(), Some("path_boundary" | "invalid_request")), "write {path:?}: {write:?}");
    }
    assert_eq!(std::fs::read_to_string(&outside).expect("text"), "private");
    assert!(!stand.home.config().join("new.txt").exists());
    let new = code(&stand, "write_file", json!({"path": "folder/new.txt", "content": "x"})).await;
    assert_eq!(new.as_deref(), Some("path_boundary"));
    let patch = "*** Begin Patch\n*** Add File: ../config/new.txt\n+x\n*** End Patch\n";
    let patched = code(&stand, "apply_patch", json!({"patch": patch})).await;
    assert!(patched.is_some() && !stand.home.config().join("new.txt").exists(), "{patched:?}");
}

#[tokio::test]
async fn nothing_is_written_below_a_git_folder() {
    let stand = Stand::start(WireKind::Feature).await;
    std::fs::create_dir_all(stand.home.workspace().join("a/.git/hooks")).expect("a folder");
    for path in ["a/.git/hooks/post-checkout", "a/.git/config", ".git/config", "a/.GIT/config"] {
        let write = code(&stand, "write_file", json!({"path": path, "content": "x"})).await;
        assert!(write.is_some(), "{path}");
        assert!(!stand.home.workspace().join(path).exists(), "{path}");
    }
}

#[tokio::test]
async fn holdfasts_own_folders_are_closed_even_when_the_workspace_holds_them() {
    let relay = holdfast_testkit::stand::RelayStand::start(WireKind::Feature).await;
    let stand = Stand::on(relay, WireKind::Feature).await;
    // Under the profile `full` paths are unrestricted, but for these.
    stand.home.ok(&["policy", "set", "full"]).await;
    let full = async || stand.modern().tools().await.iter().any(|name| name == "exec_command").then_some(());
    found("the profile `full`", full).await;
    for own in [
        stand.home.data().join("secrets.json"),
        stand.home.data().join("api.json"),
        stand.home.config().join("config.toml"),
    ] {
        let own = own.to_str().expect("UTF-8").to_owned();
        let read = code(&stand, "read_file", json!({"path": own})).await;
        assert!(
            matches!(read.as_deref(), Some("path_boundary" | "permission_denied" | "not_found")),
            "read {own}: {read:?}"
        );
        let write = code(&stand, "write_file", json!({"path": own, "content": "x"})).await;
        assert!(matches!(write.as_deref(), Some("path_boundary" | "permission_denied")), "write {own}: {write:?}");
    }
}

#[tokio::test]
async fn folders_and_secrets_are_private() {
    let stand = Stand::start(WireKind::Feature).await;
    for home in [&stand.home, &stand.relay.home] {
        // A file may be gone again: whoever writes one first writes it under another name.
        let open = |path: &std::path::Path| match std::fs::metadata(path) {
            Ok(found) => found.permissions().mode() & 0o077,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
            Err(error) => panic!("{}: {error}", path.display()),
        };
        assert!(home.data().exists() && open(&home.data()) == 0, "the data folder");
        let mut folders = vec![home.data()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("readable") {
                let path = entry.expect("an entry").path();
                assert_eq!(open(&path), 0, "{} is open to others", path.display());
                if path.is_dir() {
                    folders.push(path);
                }
            }
        }
    }
}

#[tokio::test]
async fn a_data_folder_has_one_holder_and_planted_files_are_not_followed() {
    let stand = Stand::start(WireKind::Feature).await;
    let second = stand.home.run(&["serve", "--relay", &stand.proxy.http(), "--json"]).await;
    assert!(!second.status.success());
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(!said.is_empty() && !said.contains("panicked"), "{said}");

    let home = Home::new();
    let target = home.workspace().join("victim");
    std::fs::write(&target, "keep me").expect("a file");
    for name in ["secrets.json", "api.json", "lock"] {
        symlink(&target, home.data().join(name)).expect("a link");
    }
    let code = stand.relay.code().await;
    let _ = home.run(&["enroll", &stand.relay.url, &code]).await;
    assert_eq!(std::fs::read_to_string(&target).expect("text"), "keep me");
}
