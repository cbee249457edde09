//! The package as a person meets it: what is in it, installing it, starting at login, upgrading it while it runs, removing it.

#![allow(clippy::expect_used, reason = "a panic is how a test fails")]

#[path = "../desktop_support/mod.rs"]
mod desktop_support;
mod machine;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use desktop_support::bus::{Icon, TrayHost};
use desktop_support::{Desktop, eventually};
use holdfast_testkit::process::Signal;
use machine::{Machine, package};
use serde_json::{Value, json};

const APP: &str = "usr/bin/holdfast-desktop";

/// The value of a key in a desktop entry.
fn value(entry: &str, key: &str) -> String {
    let found = entry.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    found.unwrap_or_else(|| panic!("{key} in {entry}")).to_owned()
}

/// Asks the holder of the data folder.
async fn command(desktop: &Desktop, body: Value) -> Value {
    let file = fs::read_to_string(desktop.home.data().join("api.json")).expect("api.json");
    let api: Value = serde_json::from_str(&file).expect("JSON");
    let text = |key: &str| api[key].as_str().expect("text").to_owned();
    let sent = holdfast_testkit::mcp::http()
        .post(format!("http://{}/api/command", text("address")))
        .bearer_auth(text("token"))
        .json(&body)
        .send()
        .await
        .expect("an answer");
    sent.json().await.expect("JSON")
}

/// Waits until an application that was just started can be asked; its icon.
async fn started(desktop: &Desktop, tray: &mut TrayHost) -> Icon {
    let icon = tray.icon().await;
    let api = desktop.home.data().join("api.json");
    eventually("the local API", async || api.exists().then_some(())).await;
    icon
}

#[tokio::test]
async fn the_package_holds_what_its_entries_and_commands_name() {
    let machine = Machine::new("contents");
    machine.unpack(&package("1.0.0"));
    let depends = machine.field(&package("1.0.0"), "Depends");
    for library in ["libc6 (>= ", "libgtk-3-0 (>= ", "libwebkit2gtk-4.1-0 (>= ", "libayatana-appindicator3-1"] {
        assert!(depends.contains(library), "{library} in {depends}");
    }
    let entry = machine.read("usr/share/applications/holdfast-desktop.desktop");
    assert_eq!(value(&entry, "Exec"), format!("\"/{APP}\""));
    assert_eq!(value(&entry, "TryExec"), format!("/{APP}"));
    for size in ["16x16", "32x32", "48x48", "256x256"] {
        let icon = format!("usr/share/icons/hicolor/{size}/apps/{}.png", value(&entry, "Icon"));
        assert!(machine.path(&icon).exists(), "{icon}");
    }
    let unit = machine.read("usr/lib/systemd/user/holdfast.service");
    assert!(unit.contains("ExecStart=/usr/bin/holdfast serve\n"), "{unit}");
    for script in [
        "bash-completion/completions/holdfast",
        "zsh/vendor-completions/_holdfast",
        "fish/vendor_completions.d/holdfast.fish",
    ] {
        assert!(machine.read(&format!("usr/share/{script}")).contains("doctor"), "{script}");
    }
    // One page for each command that help lists, and one for the application with all its options.
    let help = machine.run("usr/bin/holdfast", &["--help"]);
    let commands = help.split_once("Commands:").expect("a list").1.split("\n\n").next().expect("its end");
    let named: BTreeSet<_> = commands.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).collect();
    assert!(named.contains("serve") && named.contains("doctor"), "{named:?}");
    for command in named.iter().filter(|name| !name.is_empty() && **name != "help") {
        assert!(machine.path(&format!("usr/share/man/man1/holdfast-{command}.1.gz")).exists(), "a page for {command}");
    }
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/linux/holdfast-desktop.1"));
    let page = page.expect("the page").replace('\\', "");
    for option in machine.run(APP, &["--help"]).split_whitespace().filter(|word| word.starts_with("--")) {
        let known = page.contains(option) || ["--help", "--version"].contains(&option);
        assert!(known, "{option} is not in the application's manual page");
    }
}

/// GLib reads the entry, as most desktops do.
#[tokio::test]
async fn an_entry_made_from_a_hostile_path_starts_the_application_at_login() {
    let mut desktop = Desktop::start().await;
    let machine = Machine::new("it's 100% \"mine\" $HOME `id` a\\b");
    machine.unpack(&package("1.0.0"));
    let mut tray = TrayHost::start(&desktop).await;
    let app = machine.path(APP);
    let mut first = desktop.app_with(desktop.program(app.to_str().expect("UTF-8"), &["--autostart"]));
    let icon = started(&desktop, &mut tray).await;
    desktop.reachable().await;
    icon.click("Start at login").await;
    let status = desktop.status_is("the entry", |status| status["app"]["autostart"] == true).await;
    assert_eq!(status["app"]["pid"], first.pid());
    first.signal(Signal::SIGTERM);
    assert_eq!(first.ended().await.0, Some(0));

    let entry = desktop.home.runtime().with_file_name("xdg-config/autostart/holdfast-desktop.desktop");
    desktop.keep(desktop.program("gio", &["launch", entry.to_str().expect("UTF-8")]));
    started(&desktop, &mut tray).await;
    let status = desktop.reachable().await;
    assert!(desktop.windows().await.is_empty(), "it starts hidden");
    assert_eq!(status["app"]["autostart"], true);
    let pid = i32::try_from(status["app"]["pid"].as_i64().expect("a pid")).expect("a pid");
    assert_eq!(fs::read_link(format!("/proc/{pid}/exe")).expect("it runs"), app);
    holdfast_testkit::process::send(pid, Signal::SIGTERM);
    eventually("its end", async || (!Path::new(&format!("/proc/{pid}/exe")).exists()).then_some(())).await;
}

#[tokio::test]
async fn an_upgrade_leaves_the_running_application_alone_until_it_restarts_itself() {
    let desktop = Desktop::start().await;
    let machine = Machine::new("upgraded");
    machine.dpkg(&["--install", package("1.0.0").to_str().expect("UTF-8")]);
    let mut tray = TrayHost::start(&desktop).await;
    let app = machine.path(APP);
    let mut running = desktop.app_with(desktop.program(app.to_str().expect("UTF-8"), &["--autostart"]));
    started(&desktop, &mut tray).await;
    let before = desktop.reachable().await;
    assert_eq!(command(&desktop, json!({"command": "autostart", "on": true})).await["autostart"], true);

    machine.dpkg(&["--install", package("1.0.1").to_str().expect("UTF-8")]);
    assert_eq!(machine.installed(), "1.0.1");
    let told = |status: &Value| {
        status["health"].as_array().is_some_and(|list| list.iter().any(|w| w["code"] == "restart_to_update"))
    };
    let status = desktop.status_is("the news of the update", told).await;
    assert_eq!(status["app"]["started_at"], before["app"]["started_at"], "the old one still works");
    assert_eq!(status["relay"]["state"], "healthy");
    let exe = format!("/proc/{}/exe", running.pid());
    assert!(fs::read_link(&exe).expect("it runs").to_string_lossy().ends_with(" (deleted)"));

    command(&desktop, json!({"command": "restart"})).await;
    started(&desktop, &mut tray).await;
    // The old one may still answer for a moment.
    let anew = |status: &Value| {
        status["relay"]["state"] == "healthy" && status["app"]["started_at"] != before["app"]["started_at"]
    };
    let after = desktop.status_is("the new start", anew).await;
    assert_eq!(after["app"]["pid"], running.pid(), "the same process, with the new file");
    assert_eq!(fs::read_link(&exe).expect("it runs"), app);
    assert!(!told(&after));

    running.signal(Signal::SIGTERM);
    assert_eq!(running.ended().await.0, Some(0));
    machine.dpkg(&["--remove", "holdfast"]);
    assert!(!machine.path("usr").exists(), "nothing is left");
    let entry = desktop.home.runtime().with_file_name("xdg-config/autostart/holdfast-desktop.desktop");
    assert!(entry.exists(), "a package does not reach into homes");
    let launched = desktop.program("gio", &["launch", entry.to_str().expect("UTF-8")]).status().await;
    assert!(!launched.expect("gio").success(), "and the desktop passes it over");
}
