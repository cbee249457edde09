//! Against a logind of our own, on a bus of our own.

use std::io::Read as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use zbus::zvariant::OwnedFd;

use super::*;

/// One lock as logind sees it: what was asked, and the end that reads nothing until the other is closed.
type Taken = (String, UnixStream);

struct Logind(mpsc::UnboundedSender<Taken>);

#[zbus::interface(name = "org.freedesktop.login1.Manager")]
impl Logind {
    fn inhibit(&self, what: &str, who: &str, why: &str, mode: &str) -> OwnedFd {
        let (ours, theirs) = UnixStream::pair().unwrap();
        self.0.send((format!("{what} {who} {why} {mode}"), ours)).unwrap();
        std::os::fd::OwnedFd::from(theirs).into()
    }
}

struct Stage {
    _bus: Child,
    _logind: zbus::Connection,
    _folder: tempfile::TempDir,
    locks: Locks,
    taken: mpsc::UnboundedReceiver<Taken>,
}

async fn stage() -> Stage {
    let folder = tempfile::tempdir().unwrap();
    let mut bus = Command::new("dbus-daemon")
        .args(["--session", "--nofork", "--print-address"])
        .arg(format!("--address=unix:path={}", folder.path().join("bus").display()))
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let address = BufReader::new(bus.stdout.take().unwrap()).lines().next_line().await.unwrap().unwrap();
    let (told, taken) = mpsc::unbounded_channel();
    let logind = zbus::connection::Builder::address(address.as_str())
        .and_then(|b| b.name("org.freedesktop.login1"))
        .and_then(|b| b.serve_at("/org/freedesktop/login1", Logind(told)))
        .unwrap()
        .build()
        .await
        .unwrap();
    Stage { _bus: bus, _logind: logind, _folder: folder, locks: Locks::on(&address), taken }
}

/// Returns when the holder of this lock let it go.
async fn let_go(mut lock: UnixStream) {
    tokio::task::spawn_blocking(move || assert_eq!(lock.read(&mut [0]).unwrap(), 0)).await.unwrap();
}

#[tokio::test]
async fn idle_sleep_is_held_off_while_calls_run_and_not_longer() {
    let mut stage = stage().await;
    let (busy, busy_seen) = watch::channel(false);
    let (wanted, wanted_seen) = watch::channel(true);
    let mains = Mains::shown_in(Path::new("/nonexistent"));
    let keeping = tokio::spawn(keep_awake(stage.locks.clone(), mains, busy_seen, wanted_seen));
    for _ in 0..2 {
        busy.send_replace(true);
        let (asked, lock) = stage.taken.recv().await.unwrap();
        assert_eq!(asked, "idle Holdfast calls run block");
        busy.send_replace(false);
        let_go(lock).await;
    }
    busy.send_replace(true);
    let (_, lock) = stage.taken.recv().await.unwrap();
    wanted.send_replace(false);
    let_go(lock).await;
    wanted.send_replace(true);
    let (_, lock) = stage.taken.recv().await.unwrap();
    drop(wanted);
    let_go(lock).await;
    keeping.await.unwrap();
    assert!(stage.taken.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn on_battery_or_for_a_moment_nothing_is_asked() {
    let mut stage = stage().await;
    let battery = tempfile::tempdir().unwrap();
    std::fs::create_dir(battery.path().join("BAT0")).unwrap();
    std::fs::write(battery.path().join("BAT0/type"), "Battery\n").unwrap();
    for (supplies, lasting) in
        [(battery.path(), 3 * limits::MAINS_LOOK), (Path::new("/nonexistent"), limits::KEEP_AWAKE_AFTER / 2)]
    {
        let (busy, busy_seen) = watch::channel(true);
        let (_wanted, wanted_seen) = watch::channel(true);
        let keeping = keep_awake(stage.locks.clone(), Mains::shown_in(supplies), busy_seen, wanted_seen);
        let calls = async {
            tokio::time::sleep(lasting).await;
            busy.send_replace(false);
            tokio::time::sleep(2 * limits::KEEP_AWAKE_AFTER).await;
        };
        tokio::select! {
            () = keeping => panic!("it ended"),
            () = calls => {}
        }
        assert!(stage.taken.try_recv().is_err());
    }
}

#[tokio::test]
async fn a_logind_that_is_not_there_is_named() {
    let refused = Locks::on("unix:path=/nonexistent").hold().await.err().unwrap();
    assert!(refused.to_string().starts_with("logind: "), "{refused}");
}
