//! The real window of the real tray application on an X server: what it says and does, and that it is back whenever it is asked for.

#![allow(clippy::expect_used, reason = "a panic is how a test fails")]

#[path = "../desktop_support/mod.rs"]
mod desktop_support;

use std::time::Instant;

use desktop_support::bus::TrayHost;
use desktop_support::driver::Driver;
use desktop_support::{App, Desktop, eventually, web_processes};
use holdfast_testkit::process::Signal;

/// Start or Stop, whichever is possible.
const SWITCH: &str = "header .buttons button:last-child";

#[tokio::test(flavor = "multi_thread")]
async fn the_window_says_that_this_machine_is_reachable_and_stops_and_starts_it() {
    let mut desktop = Desktop::start().await;
    let window = Driver::start(&mut desktop).await.app(&["--show"]).await;
    window.text_is("h1", |text| text == "Ready for clients on this machine — nothing is waiting").await;
    assert_eq!(window.text(SWITCH).await.as_deref(), Ok("Stop"));
    window.click(SWITCH).await;
    window.text_is(SWITCH, |text| text == "Start").await;
    desktop.status_is("a stopped link", |status| status["relay"]["state"] == "stopped").await;
    window.click(SWITCH).await;
    window.text_is(SWITCH, |text| text == "Stop").await;
    desktop.reachable().await;
    window.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_windows_counts_go_along_with_a_call_that_outlives_a_cut() {
    let mut desktop = Desktop::start().await;
    let window = Driver::start(&mut desktop).await.app(&["--show"]).await;
    window.text_is("h1", |text| text.starts_with("Ready for clients")).await;
    let drill = desktop.home.command(&["drill", "--cut", "30s"]).spawn().expect("the drill starts");
    window.text_is("main", |text| text.contains("1 detached")).await;
    window.text_is("main", |text| text.contains("1 result held")).await;
    window.text_is("main", |text| text.contains("idle")).await;
    let ended = drill.wait_with_output().await.expect("the drill ends");
    assert_eq!(ended.status.code(), Some(0));
    window.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_window_opened_from_the_tray_says_the_state() {
    let mut desktop = Desktop::start().await;
    let mut tray = TrayHost::start(&desktop).await;
    let driver = Driver::start(&mut desktop).await;
    let opening = async {
        let icon = tray.icon().await;
        icon.entry("Ready for clients on this machine").await;
        let asked = Instant::now();
        icon.click("Open status…").await;
        asked
    };
    let (window, asked) = tokio::join!(driver.app(&["--autostart"]), opening);
    window.text_is("h1", |text| text.starts_with("Ready for clients")).await;
    println!("the state can be read in the window {} ms after Open", asked.elapsed().as_millis());
    window.quit().await;
}

/// An application whose window was closed again, on a desktop with a window manager and a panel.
struct Closed {
    desktop: Desktop,
    app: App,
    tray: TrayHost,
}

impl Closed {
    async fn start() -> Closed {
        let mut desktop = Desktop::start().await;
        // A server that has just begun may refuse its first client.
        desktop.keep(desktop.program("sh", &["-c", "openbox || exec openbox"]));
        let tray = TrayHost::start(&desktop).await;
        let app = desktop.app(&[]);
        let (window, _) = desktop.window().await;
        desktop.reachable().await;
        let mut closed = Closed { desktop, app, tray };
        closed.close(&window).await;
        closed
    }

    /// As a person does with the keyboard; the window's web process goes with it, the engines do not.
    async fn close(&mut self, window: &str) {
        // The window manager may not be listening yet.
        let gone = async || {
            self.desktop.output("xdotool", &["windowactivate", window, "key", "alt+F4"]).await;
            self.desktop.windows().await.is_empty().then_some(())
        };
        eventually("a closed window", gone).await;
        assert!(self.app.runs());
        self.desktop.reachable().await;
    }
}

/// Waits for the window after something asked for it, and prints how long it took.
async fn back_after(desktop: &Desktop, what: &str) -> String {
    let (window, took) = desktop.window().await;
    println!("the window is back {} ms after {what}", took.as_millis());
    window
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_window_is_back_after_another_start_of_the_application() {
    let closed = Closed::start().await;
    let (code, said) = closed.desktop.app(&[]).ended().await;
    assert_eq!(code, Some(0), "{said}");
    back_after(&closed.desktop, "another start").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_window_is_back_from_the_tray_and_can_be_closed_again() {
    let mut closed = Closed::start().await;
    let icon = closed.tray.icon().await;
    for round in ["a click in the tray", "another one"] {
        icon.click("Open status…").await;
        let window = back_after(&closed.desktop, round).await;
        closed.close(&window).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_minimised_window_is_back_from_the_tray() {
    let mut closed = Closed::start().await;
    let icon = closed.tray.icon().await;
    icon.click("Open status…").await;
    let (window, _) = closed.desktop.window().await;
    closed.desktop.output("xdotool", &["windowminimize", "--sync", &window]).await;
    closed.desktop.no_window().await;
    icon.click("Open status…").await;
    assert_eq!(back_after(&closed.desktop, "being minimised").await, window, "the same window");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_window_whose_web_process_was_killed_goes_and_is_back_when_asked_for() {
    let mut desktop = Desktop::start().await;
    let mut tray = TrayHost::start(&desktop).await;
    let window = Driver::start(&mut desktop).await.app(&["--show"]).await;
    let icon = tray.icon().await;
    window.text_is("h1", |text| text.starts_with("Ready for clients")).await;
    let pid = desktop.status().await["app"]["pid"].as_i64().expect("its pid");
    let web = web_processes(i32::try_from(pid).expect("a pid"));
    assert_eq!(web.len(), 1);
    holdfast_testkit::process::send(web[0], Signal::SIGKILL);
    desktop.no_window().await;
    assert_eq!(desktop.status().await["app"]["pid"], pid);
    icon.click("Open status…").await;
    back_after(&desktop, "its web process was killed").await;
}
