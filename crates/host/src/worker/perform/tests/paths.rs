//! Where files may go, and who may send them.

use super::server::{Server, ok};
use super::*;

#[tokio::test]
async fn a_file_goes_down_from_the_target_and_nowhere_else() {
    let server = Server::new(|_, _| ok("alpha")).await;
    let stage = Stage::new(&server.url(""));
    let url = server.url("/a");
    let outside = TempDir::new().unwrap();
    std::fs::create_dir(stage.path("out")).unwrap();
    for name in ["../x", "a/../../x", "..", ".", "", "/x", "a/", ".git/config", "a/.GIT/x", "a/.git"] {
        assert_eq!(stage.code(&[file(name, "alpha", &url)]).await, Code::PathBoundary, "{name:?}");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::symlink;
        std::fs::create_dir(stage.path("beside")).unwrap();
        symlink(outside.path(), stage.path("out/away")).unwrap();
        symlink("../beside", stage.path("out/near")).unwrap();
        symlink(outside.path().join("new"), stage.path("out/link")).unwrap();
        symlink("dangling", stage.path("out/dangling")).unwrap();
        for name in ["away/x", "near/x", "link", "dangling"] {
            assert_eq!(stage.code(&[file(name, "alpha", &url)]).await, Code::PathBoundary, "{name:?}");
        }
        assert!(stage.code(&[file("dangling/x", "alpha", &url)]).await != Code::InternalError);
        assert!(stage.names("beside").is_empty());
    }
    let twice = [file("x", "alpha", &url), file("./x", "alpha", &url)];
    assert!(stage.sync(&twice).await.is_err());
    // One bad name, and nothing is fetched.
    assert_eq!(stage.code(&[file("good", "alpha", &url), file("../x", "alpha", &url)]).await, Code::PathBoundary);
    assert_eq!(server.seen().len(), 0);
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
    assert!(!stage.path("x").exists() && !stage.path("out/x").exists());
}

#[tokio::test]
async fn the_target_lies_where_write_tools_may_write() {
    let server = Server::new(|_, _| ok("alpha")).await;
    let stage = Stage::new(&server.url(""));
    let into = |target: &str| {
        let files = [file("a", "alpha", &server.url("/a"))];
        stage.perform(json!({"type": "file_sync", "target": target, "files": files}))
    };
    let data = stage.data.path().to_str().unwrap().to_owned();
    for target in ["..", "../x", "/tmp", ".git", "x/.git/hooks", &data] {
        assert_eq!(into(target).await.unwrap_err().code, Code::PathBoundary, "{target}");
    }
    assert_eq!(server.seen().len(), 0);
    assert!(into("x/y").await.is_ok());
    assert_eq!(stage.read("x/y/a"), "alpha");
    assert!(into(".").await.is_ok());
    assert_eq!(stage.read("a"), "alpha");
    // Holdfast's own folders are closed even where everything else is open.
    let full = Stage::with(&server.url(""), Profile::Full);
    let files = [file("a", "alpha", &server.url("/a"))];
    let own = full.data.path().to_str().unwrap();
    let refused = full.perform(json!({"type": "file_sync", "target": own, "files": files})).await.unwrap_err();
    assert_eq!(refused.code, Code::PathBoundary);
}

#[tokio::test]
async fn a_device_that_may_not_be_written_to_fetches_nothing() {
    let server = Server::new(|_, _| ok("alpha")).await;
    let stage = Stage::with(&server.url(""), Profile::Review);
    assert_eq!(stage.code(&[file("a", "alpha", &server.url("/a"))]).await, Code::PolicyDenied);
    assert_eq!(server.seen().len(), 0);
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_put_in_a_folder_s_place_meanwhile_redirects_nothing() {
    let root = TempDir::new().unwrap();
    let (swap, outside) = (Arc::new(parking_lot::Mutex::new(PathBuf::new())), root.path().to_owned());
    let place = Arc::clone(&swap);
    let server = Server::new(move |_, _| {
        let workspace = place.lock().clone();
        std::fs::rename(workspace.join("out"), workspace.join("moved")).unwrap();
        std::os::unix::fs::symlink(&outside, workspace.join("out")).unwrap();
        ok("alpha")
    })
    .await;
    let stage = Stage::new(&server.url(""));
    *swap.lock() = stage.workspace.path().to_owned();
    stage.sync(&[file("a", "alpha", &server.url("/a"))]).await.unwrap();
    assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 0);
    assert_eq!(stage.read("moved/a"), "alpha");
}

#[cfg(unix)]
#[tokio::test]
async fn permissions_of_a_file_that_is_replaced_stay() {
    use std::os::unix::fs::PermissionsExt as _;
    let server = Server::new(|_, _| ok("alpha")).await;
    let stage = Stage::new(&server.url(""));
    std::fs::create_dir(stage.path("out")).unwrap();
    std::fs::write(stage.path("out/run"), "old").unwrap();
    std::fs::set_permissions(stage.path("out/run"), std::fs::Permissions::from_mode(0o750)).unwrap();
    stage.sync(&[file("run", "alpha", &server.url("/a"))]).await.unwrap();
    assert_eq!(std::fs::metadata(stage.path("out/run")).unwrap().permissions().mode() & 0o777, 0o750);
    std::fs::create_dir(stage.path("out/folder")).unwrap();
    assert_eq!(stage.code(&[file("folder", "alpha", &server.url("/a"))]).await, Code::InvalidRequest);
}
