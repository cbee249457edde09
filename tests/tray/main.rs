//! The tray of the real application, driven over the session bus as a panel does it.

#![allow(clippy::expect_used, reason = "a panic is how a test fails")]

#[path = "../desktop_support/mod.rs"]
mod desktop_support;

use desktop_support::bus::{Icon, Notices, TrayHost};
use desktop_support::{App, Desktop, eventually};
use holdfast_testkit::process::Signal;
use holdfast_testkit::telegram::FakeTelegram;
use serde_json::Value;

/// The application, started as at login, with a panel.
struct Tray {
    desktop: Desktop,
    app: App,
    icon: Icon,
}

impl Tray {
    async fn start() -> Tray {
        let desktop = Desktop::start().await;
        let mut panel = TrayHost::start(&desktop).await;
        let app = desktop.app(&["--autostart"]);
        let icon = panel.icon().await;
        desktop.reachable().await;
        Tray { desktop, app, icon }
    }

    /// Waits until the first line of the menu says this, and the picture is this one of `icons/tray`.
    async fn shows(&self, sentence: &str, picture: &str) {
        self.icon.entry(sentence).await;
        let file = format!("{}/icons/tray/{picture}-dark.png", env!("CARGO_MANIFEST_DIR"));
        let wanted = pixels(&std::fs::read(file).expect("the picture")).expect("a whole picture");
        let look = async || (pixels(&self.icon.picture().await?)? == wanted).then_some(());
        eventually(&format!("the picture {picture}"), look).await;
    }
}

/// Nothing while only a part is written.
fn pixels(file: &[u8]) -> Option<Vec<u8>> {
    let mut reader = png::Decoder::new(std::io::Cursor::new(file)).read_info().ok()?;
    let mut pixels = vec![0; reader.output_buffer_size()?];
    reader.next_frame(&mut pixels).ok()?;
    Some(pixels)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_menu_stands_in_its_order_and_a_start_at_login_shows_no_window() {
    let tray = Tray::start().await;
    tray.shows("Ready for clients on this machine", "working").await;
    let texts = tray.icon.texts().await;
    let wanted = [
        "Ready for clients on this machine",
        "Open status…",
        "Copy MCP address",
        "Start",
        "Stop",
        "Engines",
        "Drill…",
        "Logs folder",
        "Start at login",
        "Quit",
    ];
    assert_eq!(texts, wanted);
    let top = tray.icon.entries().await;
    assert!(!top.entries[0].enabled, "the sentence is not for clicking");
    assert_eq!(tray.desktop.windows().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn stop_and_start_in_the_menu_stop_and_start_the_engines() {
    let tray = Tray::start().await;
    tray.icon.entry_is("Start", |line| !line.enabled).await;
    tray.icon.click("Stop").await;
    tray.desktop
        .status_is("stopped engines", |s| {
            s["app"]["engines"] == serde_json::json!({"relay": "stopped", "link": "stopped", "worker": "stopped"})
        })
        .await;
    tray.shows("Stopped: this machine cannot be reached", "off").await;
    tray.icon.entry_is("Stop", |line| !line.enabled).await;
    tray.icon.click("Start").await;
    tray.desktop.reachable().await;
    tray.shows("Ready for clients on this machine", "working").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_is_switched_by_its_own_line() {
    let tray = Tray::start().await;
    tray.icon.entry_is("Relay link: connected", |line| line.checked).await;
    tray.icon.click("Relay link: connected").await;
    let stopped = |s: &Value| s["app"]["engines"]["link"] == "stopped" && s["app"]["engines"]["relay"] == "running";
    tray.desktop.status_is("a stopped link beside a running relay", stopped).await;
    tray.icon.entry_is("Relay link: stopped", |line| !line.checked).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_shows_in_sentence_and_picture_until_it_is_over() {
    let tray = Tray::start().await;
    let drill = tray.desktop.home.command(&["drill", "--cut", "20s"]).spawn().expect("the drill starts");
    tray.shows("Reconnecting to the relay on this machine — 1 call detached", "waiting").await;
    tray.shows("Ready for clients on this machine", "working").await;
    assert_eq!(drill.wait_with_output().await.expect("an end").status.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn start_at_login_writes_the_systems_entry_and_takes_it_away_again() {
    let tray = Tray::start().await;
    assert!(!tray.icon.entry("Start at login").await.checked);
    tray.icon.click("Start at login").await;
    tray.icon.entry_is("Start at login", |line| line.checked).await;
    // The mark is there as soon as it is clicked, the entry a moment later.
    tray.desktop.status_is("a start at login", |s| s["app"]["autostart"] == true).await;
    tray.icon.click("Start at login").await;
    tray.icon.entry_is("Start at login", |line| !line.checked).await;
    tray.desktop.status_is("no start at login", |s| s["app"]["autostart"] == false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_seat_is_released_and_taken_from_the_menu() {
    let telegram = FakeTelegram::start().await;
    let token = telegram.bot(7);
    let tray = Tray::start().await;
    // There is no channel.
    tray.icon.entry_is("Take seat", |line| !line.enabled).await;
    let url = telegram.url("desktop");
    let set_up = tray.desktop.home.run_with(&["channel", "setup", "--base-url", &url], &format!("{token}\n")).await;
    assert!(set_up.status.success(), "{}", String::from_utf8_lossy(&set_up.stderr));
    let seat = async |state: &str| tray.desktop.status_is(state, |s| s["seat"]["state"] == state).await;
    seat("serving").await;
    tray.icon.entry_is("Take seat (held by this app)", |line| !line.enabled).await;
    tray.icon.click("Release seat").await;
    seat("off").await;
    tray.icon.click("Take seat").await;
    seat("serving").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn quit_lets_a_running_call_finish_and_a_second_one_does_not_wait() {
    let mut tray = Tray::start().await;
    let call = || tray.desktop.home.command(&["drill", "--cut", "60s"]).spawn().expect("a call starts");
    let mut running = call();
    tray.desktop.status_is("a running call", |s| s["calls"]["pending"] == 1).await;
    tray.icon.click("Finish 1 call and quit").await;
    tray.desktop.status_is("a link that finishes its calls", |s| s["app"]["engines"]["link"] == "stopping").await;
    assert!(tray.app.runs());
    tray.icon.click("Finish 1 call and quit").await;
    assert_eq!(tray.app.ended().await.0, Some(0));
    running.wait().await.expect("an end");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminated_application_ends_by_itself() {
    let mut tray = Tray::start().await;
    tray.app.signal(Signal::SIGTERM);
    assert_eq!(tray.app.ended().await.0, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_icon_comes_when_its_panel_does_and_a_start_at_login_without_one_opens_the_window() {
    let desktop = Desktop::start().await;
    let _app = desktop.app(&["--autostart"]);
    desktop.window().await;
    let mut panel = TrayHost::start(&desktop).await;
    panel.icon().await.entry("Quit").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_session_bus_the_window_opens() {
    let desktop = Desktop::without_bus().await;
    let _app = desktop.app(&["--autostart"]);
    desktop.window().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_folder_that_is_held_is_told_and_the_window_opens_on_it() {
    let desktop = Desktop::start().await;
    let mut panel = TrayHost::start(&desktop).await;
    let _notices = Notices::start(&desktop).await;
    let mut serve = desktop.home.start(&["serve"]).await;
    let mut app = desktop.app(&[]);
    let icon = panel.icon().await;
    let told = |text: &str| text.starts_with("Holdfast could not start:");
    eventually("the reason", async || icon.texts().await.first().filter(|text| told(text)).cloned()).await;
    assert!(app.runs());
    assert!(desktop.status().await["app"]["pid"] != app.pid());
    serve.kill_9().await;
    icon.click("Retry start").await;
    desktop.status_is("our engines", |s| s["app"]["pid"] == app.pid()).await;
}
