//! What is said when something is broken: a damaged ledger, a full disk, a second worker, a copied one.

use std::process::Command;
use std::time::Duration;

use holdfast_core::limits;
use holdfast_testkit::home::Home;
use holdfast_testkit::stand::until;
use serde_json::{Value, json};

use crate::desk::{Desk, PATIENCE};

async fn worker(desk: &Desk) -> Value {
    desk.stand.status().await
}

fn warned(status: &Value, code: &str) -> bool {
    status["health"].as_array().is_some_and(|all| all.iter().any(|warning| warning["code"] == code))
}

#[tokio::test]
async fn a_damaged_ledger_is_set_aside_and_what_was_sent_to_it_becomes_unknown_and_nothing_else() {
    let mut desk = Desk::start().await;
    let ended = desk.script("exit 0").await;
    assert_eq!(desk.end(&ended).await["state"], "completed");
    let running = desk.script("echo started lost >> journal; sleep 600").await;
    desk.stand.journal_has("started lost").await;
    desk.stand.device.kill_9().await;
    desk.stand.missed().await;
    let queued = desk.script("echo started later >> journal").await;
    let ledger = desk.stand.home.data().join("worker/ledger.sqlite");
    for file in ["ledger.sqlite", "ledger.sqlite-wal"] {
        std::fs::write(ledger.with_file_name(file), [0xa5; 8192]).expect("a file");
    }
    desk.stand.restart_device().await;
    desk.live().await;
    assert!(warned(&worker(&desk).await, "ledger_set_aside"), "{}", worker(&desk).await);
    assert_eq!(desk.end(&running).await["state"], "unknown");
    assert_eq!(desk.end(&queued).await["state"], "completed");
    assert_eq!(desk.view(&ended).await.expect("a view")["state"], "completed");
    assert_eq!((desk.started("lost"), desk.started("later")), (1, 1));
    let aside = std::fs::read_dir(desk.stand.home.data().join("worker")).expect("a folder");
    let aside = aside.flatten().filter(|entry| entry.file_name().to_string_lossy().contains(".damaged-")).count();
    assert!(aside >= 1, "the damaged file is kept");
}

#[tokio::test]
async fn a_second_worker_on_the_same_folder_refuses_to_start() {
    let desk = Desk::start().await;
    let proxy = desk.stand.proxy.http();
    let second = desk.stand.home.run(&["serve", "--relay", &proxy]).await;
    assert_eq!(second.status.code(), Some(4), "{}", String::from_utf8_lossy(&second.stderr));
    let id = desk.script("echo still here").await;
    assert_eq!(desk.end(&id).await["state"], "completed");
}

#[tokio::test]
async fn a_copied_data_folder_does_not_take_the_place_of_the_worker_that_answers() {
    let desk = Desk::start().await;
    let copy = Home::new();
    std::fs::copy(desk.stand.home.data().join("secrets.json"), copy.data().join("secrets.json")).expect("a copy");
    let workspace = copy.workspace();
    let args = ["serve", "--relay", &desk.stand.proxy.http(), "--workspace", workspace.to_str().expect("UTF-8")];
    let _clone = copy.start(&args).await;
    let told = until_status(&copy, |status| warned(status, "worker_refused") || warned(status, "device_in_use")).await;
    assert!(told, "{}", copy.json(&["status", "--json"]).await);
    let id = desk.script("echo started original >> journal").await;
    assert_eq!(desk.end(&id).await["state"], "completed");
    assert_eq!(desk.started("original"), 1);
}

async fn until_status(home: &Home, holds: impl Fn(&Value) -> bool) -> bool {
    let looked = async {
        while !holds(&home.json(&["status", "--json"]).await) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(PATIENCE, looked).await.is_ok()
}

/// A small disk under the runs of a worker; only where this user may mount one.
struct SmallDisk(std::path::PathBuf);

impl SmallDisk {
    fn mount(at: std::path::PathBuf, mebibytes: u32) -> Option<SmallDisk> {
        std::fs::create_dir_all(&at).ok()?;
        let size = format!("size={mebibytes}m,mode=0700");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&at).output().ok()?;
        mounted.status.success().then_some(SmallDisk(at))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: a runner that ends may still have a file open.
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

#[tokio::test]
async fn a_full_disk_refuses_new_work_keeps_what_runs_and_recovers_by_itself() {
    let mut desk = Desk::start().await;
    desk.stand.device.stop().await;
    let runs = desk.stand.home.data().join("runs");
    let _ = std::fs::remove_dir_all(&runs);
    let disk = SmallDisk::mount(runs.clone(), 24);
    // Where this user may mount none, the program fills what a run may hold: the rule is the same.
    let size = if disk.is_some() { 60_000_000 } else { limits::SPOOL_RUN_MAX + 20_000_000 };
    desk.stand.restart_device().await;
    desk.live().await;
    let id = desk
        .script(&format!("echo started big >> journal; while [ ! -e release-big ]; do sleep 0.05; done; head -c {size} /dev/zero; exit 4"))
        .await;
    desk.stand.journal_has("started big").await;
    // Nobody fetches: the disk fills before the program has written all.
    desk.stand.proxy.cut();
    desk.stand.release("big");
    let full = until_status(&desk.stand.home, |status| status["worker"]["counts"]["stalled"] == 1).await;
    assert!(full, "{}", desk.stand.status().await);
    desk.stand.proxy.heal();
    let view = desk.end(&id).await;
    assert_eq!((&view["state"], &view["outcome"]["exit"]["code"]), (&json!("completed"), &json!(4)), "{view}");
    assert_eq!(view["received"]["stdout"], size);
    assert_eq!(desk.started("big"), 1);
    let after = desk.script("echo room again").await;
    assert_eq!(desk.end(&after).await["state"], "completed");
    assert!(until(|| desk.runs().is_empty()).await);
}
