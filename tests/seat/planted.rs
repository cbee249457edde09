//! What somebody put into the seat's folder by hand.

use std::os::unix::net::UnixListener;

use super::*;

/// The holder's socket by a path that is short enough for the system.
fn short(folder: &std::fs::File) -> PathBuf {
    format!("/proc/self/fd/{}/holder.sock", std::os::fd::AsRawFd::as_raw_fd(folder)).into()
}

#[tokio::test]
async fn an_advert_that_lies_or_cannot_be_read_is_never_acted_on() {
    let telegram = FakeTelegram::start().await;
    let a = Contender::first(&telegram, "a", "off").await;
    a.take().await;
    a.home.ok(&["seat", "release"]).await;
    let advert = folder(&a.home).join("active-instance.json");
    let lie = json!({"instance": "seat_0123456789abcdef", "pid": std::process::id(), "process_started": "1", "boot": "b", "host": "h",
        "generation": 99, "channel": null, "transcript": null, "backend_ready": true, "since": 1});
    for text in ["", "{", &lie.to_string()] {
        std::fs::write(&advert, text).expect("an advert");
        std::fs::set_permissions(&advert, std::fs::Permissions::from_mode(0o600)).expect("its mode");
        let taken = a.take().await;
        assert_eq!((&taken["state"], &taken["holder"]["this"]), (&json!("serving"), &json!(true)), "{text}");
        a.home.ok(&["seat", "release"]).await;
    }
    assert_eq!(generation(&a.home), 4);
}

#[tokio::test]
async fn a_socket_that_says_nothing_useful_keeps_nobody_from_a_vacant_seat_nor_is_its_process_ended() {
    let telegram = FakeTelegram::start().await;
    let a = Contender::first(&telegram, "a", "off").await;
    a.take().await;
    a.home.ok(&["seat", "release"]).await;
    // This process listens and never answers; nobody holds the lock.
    let open = std::fs::File::open(folder(&a.home)).expect("the folder");
    let socket = short(&open);
    let planted = UnixListener::bind(&socket).expect("a socket");
    assert_eq!(a.take().await["generation"], 2);
    a.home.ok(&["seat", "release"]).await;
    // The lock is held by something that is no Holdfast, and this process still listens.
    let planted_again = UnixListener::bind(&socket).expect("a socket");
    let lock = std::fs::OpenOptions::new().read(true).write(true).open(folder(&a.home).join("lock")).expect("a lock");
    lock.try_lock().expect("it is free");
    let asked = a.home.run(&["seat", "take", "--force", "--json"]).await;
    assert_eq!(asked.status.code(), Some(6), "{}", String::from_utf8_lossy(&asked.stderr));
    let status = a.seat().await;
    assert_eq!((&status["state"], &status["frozen"]), (&json!("standby"), &json!(true)));
    assert_eq!(status["reason"], "it cannot be told which process holds the seat");
    drop((planted, planted_again, lock));
    a.until("told that it is gone", |s| s["frozen"] == false).await;
    assert_eq!(a.take().await["generation"], 3);
}

#[tokio::test]
async fn a_lock_or_a_generation_that_is_no_file_of_ours_is_a_failure_with_its_reason() {
    let telegram = FakeTelegram::start().await;
    let a = Contender::first(&telegram, "a", "off").await;
    a.take().await;
    a.home.ok(&["seat", "release"]).await;
    let record = folder(&a.home).join("generation.json");
    std::fs::write(&record, "seven").expect("a record");
    let taken = a.home.run(&["seat", "take", "--json"]).await;
    assert_eq!(taken.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&taken.stderr).contains("not the generation of a seat"));
    assert_eq!(a.seat().await["state"], "failed");
    std::fs::write(&record, r#"{"generation":7}"#).expect("a record");
    let lock = folder(&a.home).join("lock");
    std::fs::remove_file(&lock).expect("a lock");
    std::os::unix::fs::symlink("/dev/null", &lock).expect("a link");
    let taken = a.home.run(&["seat", "take", "--json"]).await;
    assert!(String::from_utf8_lossy(&taken.stderr).contains("it is a symbolic link"));
    std::fs::remove_file(&lock).expect("the link");
    assert_eq!(a.take().await["generation"], 8);
}

#[tokio::test]
async fn the_folder_and_what_is_in_it_are_for_this_user_alone_and_strangers_are_not_listened_to_for_long() {
    use std::io::{Read as _, Write as _};
    let telegram = FakeTelegram::start().await;
    let a = Contender::first(&telegram, "a", "take").await;
    a.is("serving").await;
    let folder = folder(&a.home);
    let mode = |name: &str| std::fs::metadata(folder.join(name)).expect(name).permissions().mode() & 0o777;
    assert_eq!(mode("."), 0o700);
    for name in ["lock", "generation.json", "active-instance.json", "holder.sock"] {
        assert_eq!(mode(name), 0o600, "{name}");
    }
    let open = std::fs::File::open(&folder).expect("the folder");
    let asked = tokio::task::spawn_blocking(move || {
        let ask = |line: &str| {
            let mut stream = std::os::unix::net::UnixStream::connect(short(&open)).expect("a holder");
            // It may have hung up before everything is written.
            let _ = stream.write_all(line.as_bytes());
            let mut answer = String::new();
            let _ = stream.read_to_string(&mut answer);
            answer
        };
        (ask("{\"ask\":\"status\"}\n"), ask("{\"ask\":\"die\"}\n"), ask(&"x".repeat(100_000)), ask(""))
    });
    let (status, nonsense, flood, silence) = asked.await.expect("no panic");
    let status: Value = serde_json::from_str(&status).expect("JSON");
    assert_eq!((&status["state"], &status["advert"]["generation"]), (&json!("serving"), &json!(1)));
    assert_eq!((nonsense.as_str(), flood.as_str(), silence.as_str()), ("", "", ""));
    assert_eq!(a.seat().await["state"], "serving");
}

#[tokio::test]
async fn a_state_folder_with_a_long_path_holds_seats_too() {
    let telegram = FakeTelegram::start().await;
    let mut homes = [Home::new(), Home::new()];
    let long = homes[0].data().join("x".repeat(120));
    for home in &mut homes {
        home.set("HOLDFAST_STATE_DIR", long.to_str().expect("text"));
    }
    let [a, b] = homes;
    let a = Contender::start(a, &telegram, "a", "take").await;
    a.is("serving").await;
    let b = Contender::start(b, &telegram, "b", "take").await;
    b.is("serving").await;
    a.is("off").await;
}
