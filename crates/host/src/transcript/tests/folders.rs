use std::os::unix::fs::symlink;

use super::*;

#[tokio::test]
async fn a_file_and_its_folders_may_come_later_and_go_and_come_again() {
    let mut world = World::new();
    world.path = world.beside("x/y/a.jsonl");
    let folder = world.path.parent().unwrap().to_path_buf();
    world.bind(Start::End);
    world.hear().await;
    assert_eq!(world.told, [Told::Awaited]);
    fs::create_dir_all(&folder).unwrap();
    world.append(&line("first"));
    assert_eq!(world.said(1).await, ["first"]);
    for round in ["second", "third"] {
        fs::remove_dir_all(world.beside("..")).unwrap();
        fs::create_dir_all(&folder).unwrap();
        world.append(&line(round));
        assert_eq!(world.said(1).await, [round]);
        world.append(&line("more"));
        assert_eq!(world.said(1).await, ["more"]);
    }
    let away = world.dir.path().join("away");
    fs::rename(&folder, &away).unwrap();
    append(&away.join("a.jsonl"), &line("unheard of, perhaps"));
    fs::create_dir_all(&folder).unwrap();
    world.append(&line("fourth"));
    while world.said.last().map(String::as_str) != Some("fourth") {
        world.hear().await;
    }
}

#[tokio::test]
async fn a_file_reached_by_links_has_one_name_and_is_followed_where_it_is() {
    let mut world = World::bound(&line("old")).await;
    let (folder, file) = (world.beside("folder"), world.beside("file"));
    symlink(world.path.parent().unwrap(), &folder).unwrap();
    symlink(&world.path, &file).unwrap();
    let name = real_path(&world.path).unwrap();
    assert_eq!(real_path(&folder.join("a.jsonl")), Ok(name.clone()));
    assert_eq!(real_path(&file), Ok(name.clone()));
    symlink("nowhere/c.jsonl", world.beside("leads-to-c")).unwrap();
    let to_come = real_path(&world.beside("leads-to-c")).unwrap();
    assert_eq!(Some(&*to_come), world.beside("nowhere/c.jsonl").to_str());
    symlink("round", world.beside("round")).unwrap();
    assert!(real_path(&world.beside("round")).is_err());
    let later = real_path(&folder.join("later/b.jsonl")).unwrap();
    assert_eq!(Some(&*later), world.beside("later/b.jsonl").to_str());
    world.path = folder.join("a.jsonl");
    world.bind(Start::End);
    world.append(&line("new"));
    assert_eq!(world.said(1).await, ["new"]);
}

#[tokio::test]
async fn what_is_no_regular_file_is_not_opened_until_one_takes_its_place() {
    let mut world = World::new();
    nix::unistd::mkfifo(&world.path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert!(real_path(&world.path).unwrap_err().ends_with("a.jsonl: it is no regular file"));
    assert!(real_path(world.dir.path()).is_err());
    let transcript = world.path.to_str().unwrap().into();
    world.follower.bind(Binding { transcript, start: Start::End, generation: 1 });
    world.hear().await;
    assert_eq!(world.told, [Told::Awaited]);
    fs::remove_file(&world.path).unwrap();
    symlink("/etc/passwd", &world.path).unwrap();
    fs::remove_file(&world.path).unwrap();
    world.append(&line("a"));
    assert_eq!(world.said(1).await, ["a"]);
}

#[tokio::test]
async fn a_file_that_cannot_be_opened_is_told_and_read_once_it_can() {
    use std::os::unix::fs::PermissionsExt as _;
    if nix::unistd::geteuid().is_root() {
        return;
    }
    let mut world = World::new();
    world.append(&line("a"));
    fs::set_permissions(&world.path, fs::Permissions::from_mode(0o0)).unwrap();
    world.bind(Start::Beginning);
    let mut view = world.follower.view();
    let told = view.wait_for(|v| v.as_ref().is_some_and(|v| v.trouble.is_some()));
    assert!(tokio::time::timeout(SOON, told).await.is_ok());
    fs::set_permissions(&world.path, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(world.said(1).await, ["a"]);
}

#[test]
fn a_name_that_is_not_text_is_refused_in_words() {
    use std::os::unix::ffi::OsStrExt as _;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(std::ffi::OsStr::from_bytes(b"\xff.jsonl"));
    assert!(real_path(&path).unwrap_err().ends_with("only a path in UTF-8 can be followed"));
    assert!(real_path(Path::new("")).is_err());
}
