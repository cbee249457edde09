//! A process that stays: it starts, fails to start, starts again, restarts and ends, and its status says the truth.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use holdfast_core::command::{Command, Engine};
use holdfast_core::limits;
use holdfast_core::status::{Action, EngineState, LinkState, StatusSnapshot, WarningCode};
use holdfast_host::engines::{EngineOptions, Mode, Overrides};
use holdfast_host::lock::DataLock;
use holdfast_host::paths::Dirs;
use holdfast_host::resident::Resident;
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tempfile::TempDir;

struct Place {
    dir: TempDir,
}

impl Place {
    fn new() -> Place {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let place = Place { dir: tempfile::tempdir().unwrap() };
        for folder in ["data", "config", "workspace"] {
            std::fs::create_dir(place.dir.path().join(folder)).unwrap();
        }
        place.write("[relay]\nlisten = \"127.0.0.1:0\"\n");
        place
    }

    fn dirs(&self) -> Dirs {
        Dirs { config: self.dir.path().join("config"), data: self.dir.path().join("data") }
    }

    /// Writes `config.toml`, with what every test needs.
    fn write(&self, text: &str) {
        let workspace = self.dir.path().join("workspace");
        let text = format!("{text}\n[secrets]\nstore = \"file\"\n[workspace]\nroot = {workspace:?}\n");
        std::fs::write(self.dirs().config_file(), text).unwrap();
    }

    fn start(&self) -> Resident {
        Resident::start(EngineOptions {
            dirs: self.dirs(),
            mode: Mode::Serve,
            overrides: Overrides::default(),
            program: None,
        })
    }
}

async fn until(resident: &Resident, wanted: impl FnMut(&Arc<StatusSnapshot>) -> bool) -> Arc<StatusSnapshot> {
    let mut watch = resident.watch();
    let found = tokio::time::timeout(Duration::from_secs(120), watch.wait_for(wanted)).await;
    match found {
        Ok(found) => found.unwrap().clone(),
        Err(_) => panic!("never so: {:?}", resident.status()),
    }
}

async fn healthy(resident: &Resident) -> Arc<StatusSnapshot> {
    until(resident, |s| s.relay.state == LinkState::Healthy).await
}

/// The text of the warning that the start failed.
async fn failed(resident: &Resident) -> String {
    let stands = |s: &Arc<StatusSnapshot>| s.health.iter().any(|w| w.code == WarningCode::StartFailed);
    let status = until(resident, stands).await;
    let warning = status.health.iter().find(|w| w.code == WarningCode::StartFailed).unwrap();
    assert_eq!(warning.action, Some(Action::Start));
    assert_eq!((status.app.pid, status.app.engines.len()), (std::process::id(), 0));
    assert_eq!((status.relay.state, status.app.mcp.as_deref()), (LinkState::Stopped, None));
    warning.text.clone()
}

async fn ask(resident: &Resident, method: &str, path: &str, body: Value) -> (StatusCode, Value) {
    let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json").body(body);
    let response = resident.request(request.unwrap()).await;
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&body).unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread")]
async fn status_is_there_from_the_first_moment_and_requests_need_no_token() {
    let place = Place::new();
    let resident = place.start();
    assert_eq!(resident.watch().borrow().app.pid, std::process::id());
    let status = healthy(&resident).await;
    assert_eq!(status.app.engines[&Engine::Link], EngineState::Running);
    let (code, answer) = ask(&resident, "GET", "/api/status", Value::Null).await;
    assert_eq!((code, &answer["app"]["mcp"]), (StatusCode::OK, &json!(status.app.mcp)));
    let (code, answer) = ask(&resident, "POST", "/api/command", json!({"command": "device_list"})).await;
    assert_eq!((code, answer.as_array().map(Vec::len)), (StatusCode::OK, Some(1)));
    assert_eq!(ask(&resident, "GET", "/api/nothing", Value::Null).await.0, StatusCode::NOT_FOUND);
    resident.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_folder_in_use_is_told_and_taken_when_it_is_free() {
    let place = Place::new();
    let other = DataLock::take(&place.dirs().data).unwrap();
    let resident = place.start();
    let text = failed(&resident).await;
    let data = place.dirs().data;
    let pid = std::process::id();
    assert_eq!(text, format!("{} is in use by another Holdfast (process {pid}); quit that one first", data.display()));
    assert!(!place.dirs().api_file().exists(), "the folder is another's");
    let refused = resident.dispatch(Command::DeviceList {}).await.unwrap_err();
    assert_eq!(refused.code, "not_running");
    drop(other);
    resident.dispatch(Command::Start { engine: None }).await.unwrap();
    assert!(healthy(&resident).await.health.is_empty());
    resident.shutdown().await;
    DataLock::take(&data).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_configuration_is_told_with_its_place_and_the_api_answers_all_the_same() {
    let place = Place::new();
    place.write("[relay]\nlisen = \"127.0.0.1:0\"\n");
    let resident = place.start();
    let text = failed(&resident).await;
    assert!(text.ends_with("config.toml:2:1: unknown key `lisen` in [relay]; did you mean `listen`?"), "{text}");
    let (_, seen) = ask(&resident, "GET", "/api/config", Value::Null).await;
    assert_eq!((&seen["valid"], &seen["set"]["relay.lisen"]), (&json!(false), &json!("127.0.0.1:0")));
    let (code, answer) = ask(&resident, "POST", "/api/drill", json!({"cut_ms": 10})).await;
    assert_eq!((code, &answer["code"]), (StatusCode::SERVICE_UNAVAILABLE, &json!("not_running")));
    assert!(place.dirs().api_file().exists());
    let again = resident.dispatch(Command::Start { engine: None }).await.unwrap_err();
    assert_eq!(again.code, "config_invalid");
    place.write("[relay]\nlisten = \"127.0.0.1:0\"\n");
    resident.dispatch(Command::Start { engine: None }).await.unwrap();
    healthy(&resident).await;
    resident.shutdown().await;
    assert!(!place.dirs().api_file().exists());
}

fn set(key: &str, value: Value) -> Command {
    Command::Configure { set: BTreeMap::from([(key.into(), value)]) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_in_use_is_told_and_another_one_can_be_set_and_started() {
    let place = Place::new();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = other.local_addr().unwrap();
    place.write(&format!("[relay]\nlisten = \"{taken}\"\n"));
    let resident = place.start();
    let text = failed(&resident).await;
    assert!(text.starts_with(&format!("cannot listen on {taken}: ")), "{text}");
    assert!(text.ends_with("or choose another address with relay.listen in config.toml"), "{text}");
    let answer = resident.dispatch(set("relay.listen", json!("127.0.0.1:0"))).await.unwrap();
    assert_eq!(answer, json!({"changed": [], "restart": ["relay.listen"]}));
    resident.dispatch(Command::Start { engine: None }).await.unwrap();
    assert!(healthy(&resident).await.health.is_empty());
    resident.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_would_not_start_is_refused_and_a_restart_stops_nothing_for_it() {
    let place = Place::new();
    let resident = place.start();
    healthy(&resident).await;
    for (key, value) in [("workspace.root", json!("/nowhere/at/all")), ("relay.url", json!("ftp://relay.example"))] {
        let error = resident.dispatch(set(key, value)).await.unwrap_err();
        assert_eq!(error.code, "invalid_request");
        assert!(error.message.starts_with(&format!("{key}: ")), "{}", error.message);
    }
    let config = place.dirs().config_file();
    for text in ["[workspace]\nroot = \"/nowhere/at/all\"\n", "[relay]\nurl = \"ftp://relay.example\"\n", "nonsense"] {
        std::fs::write(&config, text).unwrap();
        resident.dispatch(Command::Restart {}).await.unwrap_err();
        assert_eq!(resident.status().relay.state, LinkState::Healthy, "{text}");
    }
    resident.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_store_is_told_with_the_way_out() {
    let place = Place::new();
    let store = place.dirs().relay().join("relay.sqlite");
    std::fs::create_dir(place.dirs().relay()).unwrap();
    std::fs::write(&store, "this is no database, but it is long enough to be looked at as one, ".repeat(40)).unwrap();
    let resident = place.start();
    let text = failed(&resident).await;
    assert_eq!(
        text,
        "the store is damaged; put a backup of relay/relay.sqlite in its place, or move it away, and accounts and \
         devices begin anew"
    );
    std::fs::remove_file(&store).unwrap();
    resident.dispatch(Command::Start { engine: None }).await.unwrap();
    healthy(&resident).await;
    resident.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_are_applied_or_wait_for_a_restart_which_needs_no_new_process() {
    let place = Place::new();
    let resident = place.start();
    let first = healthy(&resident).await;
    let answer = resident.dispatch(set("policy.profile", json!("full"))).await.unwrap();
    assert_eq!(answer, json!({"changed": ["policy.profile"], "restart": []}));
    assert_eq!(resident.status().app.policy.as_deref(), Some("full"), "whoever asks by a command may loosen it");
    let answer = resident.dispatch(set("relay.body_max_mib", json!(3))).await.unwrap();
    assert_eq!(answer, json!({"changed": [], "restart": ["relay.body_max_mib"]}));
    until(&resident, |s| s.health.iter().any(|w| w.code == WarningCode::ConfigRestart)).await;
    let refused = resident.dispatch(set("relay.bdy_max_mib", json!(3))).await.unwrap_err();
    let why = "unknown key `bdy_max_mib` in [relay]; did you mean `body_max_mib`?";
    assert_eq!((refused.code.as_str(), refused.message.as_str()), ("invalid_request", why));

    let asked = Request::builder().uri("/api/status/stream").body(Bytes::new()).unwrap();
    let mut stream = resident.request(asked).await.into_body();
    resident.dispatch(Command::Restart {}).await.unwrap();
    let second = healthy(&resident).await;
    // Whoever followed the status before follows it still.
    let mut seen = String::new();
    let newest = |seen: &str| {
        let seqs =
            seen.split(r#"data: {"seq":"#).skip(1).filter_map(|rest| rest.split_once(',')?.0.parse::<u64>().ok());
        seqs.max().unwrap_or(0)
    };
    let followed = async {
        // A snapshot that was soon followed by another may be left out.
        while newest(&seen) < second.seq {
            seen.push_str(&String::from_utf8_lossy(&stream.frame().await.unwrap().unwrap().into_data().unwrap()));
        }
    };
    tokio::time::timeout(Duration::from_secs(120), followed).await.unwrap();
    assert_eq!((second.app.pid, second.health.len()), (first.app.pid, 0));
    assert!(second.seq > first.seq, "one row of snapshots");
    let (_, seen) = ask(&resident, "GET", "/api/config", Value::Null).await;
    assert_eq!(
        (&seen["config"]["relay"]["body_max_mib"], &seen["config"]["policy"]["profile"]),
        (&json!(3), &json!("full"))
    );
    resident.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quit_is_told_to_the_shell_and_a_hurried_shutdown_waits_for_nothing() {
    let place = Place::new();
    let resident = place.start();
    healthy(&resident).await;
    resident.dispatch(Command::Quit { now: true }).await.unwrap();
    resident.quit_asked().await;
    tokio::time::timeout(Duration::from_secs(120), resident.shutdown()).await.unwrap();
    assert_eq!(resident.dispatch(Command::Start { engine: None }).await.unwrap_err().message, "interrupted");
    DataLock::take(&place.dirs().data).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn engines_come_back_as_they_were_left_and_a_person_who_serves_starts_them_all() {
    let place = Place::new();
    let first = place.start();
    healthy(&first).await;
    first.dispatch(Command::Stop { engine: None }).await.unwrap();
    first.shutdown().await;

    let second = place.start();
    let states =
        |s: &StatusSnapshot| (s.app.engines.get(&Engine::Relay).copied(), s.app.engines.get(&Engine::Link).copied());
    let stopped = (Some(EngineState::Stopped), Some(EngineState::Stopped));
    let left = until(&second, |s| states(s) == stopped).await;
    assert_eq!((left.relay.state, left.health.len()), (LinkState::Stopped, 0));
    assert_eq!(second.dispatch(Command::TryNow {}).await.unwrap_err().code, "stopped");
    let refused = second.dispatch(Command::Start { engine: Some(Engine::Link) }).await.unwrap_err();
    assert_eq!(refused.message, "the relay of this machine is stopped; `holdfast start relay` first");
    second.dispatch(Command::Start { engine: Some(Engine::Relay) }).await.unwrap();
    second.dispatch(Command::Start { engine: Some(Engine::Link) }).await.unwrap();
    healthy(&second).await;
    second.dispatch(Command::Stop { engine: Some(Engine::Link) }).await.unwrap();
    second.dispatch(Command::Restart {}).await.unwrap();
    assert_eq!(states(&second.status()), (Some(EngineState::Running), Some(EngineState::Stopped)), "a restart too");
    second.shutdown().await;

    let options =
        EngineOptions { dirs: place.dirs(), mode: Mode::Serve, overrides: Overrides::default(), program: None };
    let served = Resident::launch(options).await.unwrap();
    healthy(&served).await;
    served.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_worker_is_live_beside_the_link_and_is_stopped_and_started_by_itself() {
    let place = Place::new();
    let resident = place.start();
    let live =
        |s: &Arc<StatusSnapshot>| s.worker.as_ref().is_some_and(|w| w.state == LinkState::Healthy && w.lease.held);
    let status = until(&resident, live).await;
    assert_eq!(status.app.engines[&Engine::Worker], EngineState::Running);
    resident.dispatch(Command::Stop { engine: Some(Engine::Worker) }).await.unwrap();
    let stopped = resident.status();
    assert_eq!(stopped.worker.as_ref().map(|w| w.state), Some(LinkState::Stopped));
    assert_eq!(stopped.app.engines[&Engine::Worker], EngineState::Stopped);
    healthy(&resident).await;
    resident.dispatch(Command::Start { engine: Some(Engine::Worker) }).await.unwrap();
    until(&resident, live).await;
    for command in [
        Command::OperationCancel { operation: "op_aaaaaaaaaaaaaaaaaaaaaa".into() },
        Command::OperationDismiss { operation: "op_aaaaaaaaaaaaaaaaaaaaaa".into() },
    ] {
        assert_eq!(resident.dispatch(command).await.unwrap_err().code, "not_found");
    }
    resident.dispatch(Command::CutAllAccess {}).await.unwrap();
    assert_eq!(resident.status().app.engines[&Engine::Worker], EngineState::Stopped);
    resident.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_access_is_cut_while_the_relay_is_stopped_too() {
    let place = Place::new();
    let resident = place.start();
    healthy(&resident).await;
    let token = Command::TokenCreate { name: "script".into(), role: None, device: None, account: None, days: None };
    resident.dispatch(token).await.unwrap();
    resident.dispatch(Command::Stop { engine: None }).await.unwrap();
    let cut = resident.dispatch(Command::CutAllAccess {}).await.unwrap();
    assert_eq!(cut, json!({"revoked": 1}));
    resident.dispatch(Command::Start { engine: Some(Engine::Relay) }).await.unwrap();
    assert_eq!(resident.dispatch(Command::TokenList {}).await.unwrap(), json!([]));
    resident.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_access_is_cut_at_once_while_the_worker_cannot_write_its_ledger() {
    let place = Place::new();
    let resident = place.start();
    let live =
        |s: &Arc<StatusSnapshot>| s.worker.as_ref().is_some_and(|w| w.state == LinkState::Healthy && w.lease.held);
    until(&resident, live).await;
    let token = Command::TokenCreate { name: "script".into(), role: None, device: None, account: None, days: None };
    resident.dispatch(token).await.unwrap();
    // Somebody else writes to the ledger, and what the worker has to write waits.
    let other = rusqlite::Connection::open(place.dirs().data.join("worker/ledger.sqlite")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let start = json!({"request": {"type": "exec", "command": {"argv": ["sleep", "1000"]}}});
    let (code, answer) = ask(&resident, "POST", "/api/operations", start).await;
    assert_eq!(code, StatusCode::ACCEPTED, "{answer}");

    let cut = resident.dispatch(Command::CutAllAccess {});
    let cut = tokio::time::timeout(limits::STOP_WAIT, cut).await.expect("it waits for no ledger").unwrap();
    assert_eq!(cut, json!({"revoked": 1}));
    let engines = resident.status().app.engines.clone();
    assert_eq!((engines[&Engine::Worker], engines[&Engine::Link]), (EngineState::Stopped, EngineState::Stopped));
    assert_eq!(resident.dispatch(Command::TokenList {}).await.unwrap(), json!([]));

    // What was on its way into the ledger never runs.
    other.execute_batch("ROLLBACK").unwrap();
    resident.dispatch(Command::Start { engine: None }).await.unwrap();
    let path = format!("/api/operations/{}", answer["id"].as_str().unwrap());
    let view = async {
        loop {
            let (_, view) = ask(&resident, "GET", &path, Value::Null).await;
            if view["outcome"].is_object() {
                return view;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let view = tokio::time::timeout(Duration::from_secs(120), view).await.unwrap();
    assert_eq!((&view["state"], &view["outcome"]["started"]), (&json!("cancelled"), &json!(false)), "{view}");
    resident.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_launch_that_fails_leaves_nothing_behind() {
    let place = Place::new();
    place.write("[relay]\nlisten = \"0.0.0.0:0\"\n");
    let options =
        EngineOptions { dirs: place.dirs(), mode: Mode::Serve, overrides: Overrides::default(), program: None };
    let error = Resident::launch(options).await.unwrap_err();
    assert!(error.to_string().starts_with("0.0.0.0:0 is not a loopback address"), "{error}");
    assert!(!place.dirs().api_file().exists());
    DataLock::take(&place.dirs().data).unwrap();
}
