//! The bridge between window and shell on Tauri's mock runtime, with the real configuration and permissions: no display, no
//! web view.

#![allow(clippy::expect_used, reason = "a panic is how a test fails")]

use std::sync::mpsc;
use std::time::Duration;

use holdfast_core::limits;
use holdfast_desktop::bridge;
use holdfast_host::bridge::Bridge;
use holdfast_host::engines::{EngineOptions, Mode, Overrides};
use holdfast_host::paths::Dirs;
use holdfast_host::resident::Resident;
use serde_json::{Value, json};
use tauri::ipc::{CallbackFn, InvokeBody, InvokeResponseBody};
use tauri::test::{INVOKE_KEY, MockRuntime, get_ipc_response, mock_builder};
use tauri::webview::InvokeRequest;
use tauri::{App, Manager as _, WebviewWindow, WebviewWindowBuilder};

/// A shell on real engines in a temporary home.
struct Shell {
    app: App<MockRuntime>,
    resident: Resident,
    /// What came down the window's channels, with the channel.
    pieces: mpsc::Receiver<(u32, Value)>,
    _home: tempfile::TempDir,
}

impl Shell {
    async fn start() -> Shell {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let home = tempfile::tempdir().expect("a folder");
        let at = |name: &str| home.path().join(name);
        std::fs::create_dir(at("workspace")).expect("a folder");
        std::fs::create_dir(at("config")).expect("a folder");
        std::fs::write(at("config").join("config.toml"), "[secrets]\nstore = \"file\"\n").expect("a file");
        let overrides = Overrides {
            workspace: Some(at("workspace")),
            listen: Some("127.0.0.1:0".parse().expect("an address")),
            ..Overrides::default()
        };
        let dirs = Dirs { config: at("config"), data: at("data") };
        let resident = Resident::launch(EngineOptions { dirs, mode: Mode::Serve, overrides, program: None })
            .await
            .expect("engines");
        let (came, pieces) = mpsc::channel();
        let app = bridge::commands(mock_builder())
            .channel_interceptor(move |_, channel, _, body| {
                if let InvokeResponseBody::Json(text) = body {
                    let _ = came.send((channel.0, serde_json::from_str(text).expect("JSON")));
                }
                true
            })
            .build(holdfast_desktop::context())
            .expect("the application");
        app.manage(Bridge::new(resident.clone()));
        Shell { app, resident, pieces, _home: home }
    }

    fn window(&self, label: &str) -> WebviewWindow<MockRuntime> {
        WebviewWindowBuilder::new(&self.app, label, Default::default()).build().expect("a window")
    }

    /// The next part of a stream.
    fn piece(&self) -> (u32, Value) {
        self.pieces.recv_timeout(Duration::from_secs(120)).expect("a piece in time")
    }
}

fn invoke(window: &WebviewWindow<MockRuntime>, command: &str, arguments: Value) -> Result<Value, Value> {
    let address = if cfg!(windows) { "http://tauri.localhost" } else { "tauri://localhost" };
    let request = InvokeRequest {
        cmd: command.into(),
        callback: CallbackFn(0),
        error: CallbackFn(1),
        url: address.parse().expect("an address"),
        body: InvokeBody::Json(arguments),
        headers: Default::default(),
        invoke_key: INVOKE_KEY.to_owned(),
    };
    get_ipc_response(window, request).map(|body| body.deserialize().expect("JSON"))
}

/// Runs a test's blocking half beside the engines' runtime.
fn with_shell(test: impl FnOnce(&Shell)) {
    let threads = holdfast_host::runtime::build().expect("threads");
    let shell = threads.block_on(Shell::start());
    let entered = threads.enter();
    test(&shell);
    drop(entered);
    shell.resident.hurry();
    threads.block_on(shell.resident.shutdown());
}

#[test]
fn the_window_asks_any_endpoint_and_gets_status_and_body() {
    with_shell(|shell| {
        let window = shell.window("status");
        let status = invoke(&window, "request", json!({"method": "GET", "path": "/api/status"})).unwrap();
        assert_eq!(status["status"], 200);
        assert_eq!(status["body"]["app"]["pid"], std::process::id());
        let command = json!({"method": "POST", "path": "/api/command", "body": {"command": "stop", "engine": "link"}});
        assert_eq!(invoke(&window, "request", command).unwrap(), json!({"status": 200, "body": {"done": true}}));
        assert_eq!(
            shell.resident.status().app.engines[&holdfast_core::command::Engine::Link],
            holdfast_core::status::EngineState::Stopped
        );
        let nothing = invoke(&window, "request", json!({"method": "GET", "path": "/api/nothing"})).unwrap();
        assert_eq!((&nothing["status"], &nothing["body"]["code"]), (&json!(404), &json!("not_found")));
    });
}

#[test]
fn a_body_beyond_the_apis_own_bound_is_refused() {
    with_shell(|shell| {
        let long = "x".repeat(limits::API_BODY_MAX);
        let order = json!({"method": "POST", "path": "/api/command", "body": {"command": "approve", "code": long}});
        let answer = invoke(&shell.window("status"), "request", order).unwrap();
        assert_eq!((&answer["status"], &answer["body"]["code"]), (&json!(413), &json!("invalid_request")));
    });
}

/// The status in a piece of a stream; nothing in what stands between them.
fn told(piece: &Value) -> Value {
    let status = piece["line"].as_str().and_then(|line| line.strip_prefix("data:"));
    status.map_or(Value::Null, |status| serde_json::from_str(status.trim()).expect("JSON"))
}

#[test]
fn a_stream_tells_each_change_until_the_window_lets_go_of_it() {
    with_shell(|shell| {
        let stopped = json!({"relay": "stopped", "link": "stopped", "worker": "stopped"});
        let window = shell.window("status");
        let id = invoke(&window, "stream", json!({"path": "/api/status/stream", "channel": "__CHANNEL__:7"})).unwrap();
        assert_eq!(id, 7);
        let (_, first) = shell.piece();
        assert_eq!(told(&first)["app"]["pid"], std::process::id());
        assert_ne!(told(&first)["app"]["engines"], stopped);
        invoke(&window, "unstream", json!({"id": 7})).unwrap();
        invoke(&window, "stream", json!({"path": "/api/status/stream", "channel": "__CHANNEL__:8"})).unwrap();
        let stop = json!({"method": "POST", "path": "/api/command", "body": {"command": "stop"}});
        assert_eq!(invoke(&window, "request", stop).unwrap()["status"], 200);
        // Whoever follows is told of the stop: the second stream is, so the first one would be.
        loop {
            let (channel, piece) = shell.piece();
            if told(&piece)["app"]["engines"] == stopped {
                assert_eq!(channel, 8, "nobody follows the first one any more");
                break;
            }
        }
    });
}

#[test]
fn a_stream_that_is_refused_ends_with_the_refusal() {
    with_shell(|shell| {
        let window = shell.window("status");
        invoke(&window, "stream", json!({"path": "/api/nothing", "channel": "__CHANNEL__:1"})).unwrap();
        let (_, end) = shell.piece();
        assert_eq!((&end["end"]["status"], &end["end"]["body"]["code"]), (&json!(404), &json!("not_found")));
    });
}

#[test]
fn the_window_follows_a_bounded_number_of_streams_and_none_outlives_its_page() {
    with_shell(|shell| {
        let window = shell.window("status");
        let open = |id: usize| {
            invoke(&window, "stream", json!({"path": "/api/status/stream", "channel": format!("__CHANNEL__:{id}")}))
        };
        for id in 0..limits::WINDOW_STREAMS {
            open(id).unwrap();
        }
        assert_eq!(open(99).unwrap_err(), "the window follows too many streams");
        shell.app.state::<Bridge>().page_gone();
        open(100).unwrap();
    });
}

#[test]
fn another_window_and_another_command_are_refused() {
    with_shell(|shell| {
        let order = json!({"method": "GET", "path": "/api/status"});
        let elsewhere = invoke(&shell.window("other"), "request", order).unwrap_err();
        assert!(elsewhere.as_str().unwrap().contains("not allowed"), "{elsewhere}");
        let window = shell.window("status");
        for command in
            ["plugin:window|create", "plugin:event|emit", "plugin:app|version", "plugin:webview|create_webview"]
        {
            let refused = invoke(&window, command, json!({})).unwrap_err();
            assert!(refused.as_str().unwrap().contains("not allowed"), "{command}: {refused}");
        }
    });
}
