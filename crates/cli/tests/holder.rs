//! Two processes and one data folder; edits while it runs; commands with nobody to ask.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Stdio;
use std::time::Duration;

use holdfast_testkit::home::Home;
use holdfast_testkit::mcp::Modern;
use holdfast_testkit::process::{Process, Signal};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};

async fn serve(home: &Home) -> Process {
    let workspace = home.workspace();
    home.start(&["serve", "--listen", "127.0.0.1:0", "--workspace", workspace.to_str().unwrap()]).await
}

fn stderr(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[tokio::test]
async fn a_second_process_is_told_who_holds_the_data_folder() {
    let home = Home::new();
    let mut first = serve(&home).await;
    let second = home.run(&["serve", "--json"]).await;
    assert_eq!(second.status.code(), Some(4));
    let said: Value = serde_json::from_str(&stderr(&second)).unwrap();
    let expected = format!(
        "{} is in use by another Holdfast (process {}); quit that one first",
        home.data().display(),
        first.pid()
    );
    assert_eq!(said, json!({"error": {"code": "in_use", "message": expected}}));
    first.kill_9().await;
    // The lock ends with the process, and what it left behind misleads nobody.
    assert!(home.data().join("api.json").exists());
    assert_eq!(home.run(&["status"]).await.status.code(), Some(3));
    let mut third = serve(&home).await;
    assert_eq!(home.json(&["status", "--json"]).await["app"]["pid"], third.pid());
    assert_eq!(third.stop().await.code(), Some(0));
}

#[tokio::test]
async fn planted_lock_and_api_files_are_refused_and_their_targets_left_alone() {
    let home = Home::new();
    let victim = home.workspace().join("victim");
    std::fs::write(&victim, "precious").unwrap();
    symlink(&victim, home.data().join("lock")).unwrap();
    let output = home.run(&["serve", "--listen", "127.0.0.1:0"]).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("not used, because it is a symbolic link"), "{}", stderr(&output));
    std::fs::remove_file(home.data().join("lock")).unwrap();

    symlink(&victim, home.data().join("api.json")).unwrap();
    let _serve = serve(&home).await;
    assert!(!home.data().join("api.json").is_symlink(), "replaced, not followed");
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");

    std::fs::set_permissions(home.data().join("api.json"), std::fs::Permissions::from_mode(0o644)).unwrap();
    let output = home.run(&["status"]).await;
    assert!(stderr(&output).contains("others may read or write it"), "{}", stderr(&output));
}

/// The first status that is as wanted, of those that are and come.
async fn seen(home: &Home, mut wanted: impl FnMut(&Value) -> bool) -> Value {
    let mut watch = home.command(&["status", "--watch", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut last = Value::Null;
    let looking = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            last = serde_json::from_str(&line).unwrap();
            if wanted(&last) {
                return true;
            }
        }
        false
    };
    assert_eq!(tokio::time::timeout(Duration::from_secs(120), looking).await, Ok(true), "{last}");
    last
}

async fn health(home: &Home, wanted: &str) -> Value {
    let of = |status: &Value| status["health"].as_array().unwrap().iter().find(|w| w["code"] == wanted).cloned();
    of(&seen(home, |status| of(status).is_some()).await).unwrap()
}

#[tokio::test]
async fn an_edit_is_applied_refused_or_told_to_wait() {
    let home = Home::new();
    let _serve = serve(&home).await;
    home.write_config("[policy]\nprofile = \"full\"\n");
    let warning = health(&home, "policy_not_loosened").await;
    assert_eq!((&warning["severity"], &warning["action"]), (&json!("warning"), &json!("restart")));
    assert_eq!(home.json(&["status", "--json"]).await["app"]["policy"], "agent");

    home.write_config(
        "[policy]\nprofile = \"review\"\n[relay]\nlisten = \"127.0.0.1:1\"\n[link]\nca_file = \"x.pem\"\n",
    );
    let warning = health(&home, "config_restart").await;
    assert_eq!(
        warning["text"], "takes effect with the next start: link.ca_file",
        "the command line wins over relay.listen"
    );
    let status = home.json(&["status", "--json"]).await;
    assert_eq!(status["app"]["policy"], "review");
    assert!(!status["health"].to_string().contains("policy_not_loosened"));

    home.write_config("[polcy]\n");
    let warning = health(&home, "config_invalid").await;
    let text = warning["text"].as_str().unwrap();
    assert!(text.ends_with("config.toml:1:2: unknown key `polcy`; did you mean `policy`?"), "{text}");
    assert_eq!(home.json(&["status", "--json"]).await["app"]["policy"], "review", "the running one was kept");
}

#[tokio::test]
async fn commands_work_on_the_closed_store_and_find_it_again_when_it_runs() {
    let home = Home::new();
    assert_eq!(home.ok(&["account", "add", "anna", "--role", "owner"]).await, "account anna has the role owner");
    let code = home.ok(&["device", "code"]).await;
    assert_eq!(code.chars().filter(char::is_ascii_alphanumeric).count(), 20, "{code}");
    assert_eq!(home.run(&["drill"]).await.status.code(), Some(3));
    assert_eq!(home.run(&["start"]).await.status.code(), Some(3));
    let relay = home.start(&["relay", "--listen", "127.0.0.1:0"]).await;
    assert_eq!(home.json(&["account", "list", "--json"]).await[0]["name"], "anna");
    let device = Home::new();
    let url = relay.ready_text("mcp").trim_end_matches("/mcp").to_owned();
    device.ok(&["enroll", &url, &code, "--name", "laptop"]).await;
    assert_eq!(home.json(&["device", "list", "--json"]).await[0]["name"], "laptop");
}

#[tokio::test]
async fn a_device_without_a_credential_says_so_and_works_after_enrolling() {
    let relay_home = Home::new();
    let relay = relay_home.start(&["relay", "--listen", "127.0.0.1:0"]).await;
    let url = relay.ready_text("mcp").trim_end_matches("/mcp").to_owned();
    relay_home.ok(&["account", "add", "anna", "--role", "owner"]).await;
    let code = relay_home.ok(&["device", "code"]).await;
    let home = Home::new();
    let workspace = home.workspace();
    let _serve = home.start(&["serve", "--relay", &url, "--workspace", workspace.to_str().unwrap()]).await;
    let warning = health(&home, "sign_in_needed").await;
    assert_eq!((&warning["severity"], &warning["action"]), (&json!("needs_you"), &json!("enroll")));
    home.ok(&["enroll", &url, &code]).await;
    seen(&home, |status| status["relay"]["state"] == "healthy").await;
}

#[tokio::test]
async fn engines_stop_and_start_while_the_process_stays() {
    let home = Home::new();
    let serve = serve(&home).await;
    home.ok(&["stop", "link"]).await;
    let status = home.json(&["status", "--json"]).await;
    assert_eq!((&status["relay"]["state"], &status["app"]["engines"]["link"]), (&json!("stopped"), &json!("stopped")));
    home.ok(&["stop"]).await;
    assert_eq!(home.json(&["status", "--json"]).await["app"]["engines"]["relay"], "stopped");
    home.ok(&["start"]).await;
    seen(&home, |status| status["relay"]["state"] == "healthy").await;
    assert_eq!(home.json(&["status", "--json"]).await["app"]["mcp"], serve.ready_text("mcp"));
}

#[tokio::test]
async fn the_first_signal_lets_a_call_finish_and_the_second_does_not() {
    let home = Home::new();
    let mut serve = serve(&home).await;
    let token = home.ok(&["token", "create", "--name", "t"]).await;
    let client = Modern::new(serve.ready_text("mcp"), &*token);
    let script = "until [ -e go ]; do sleep 0.05; done; echo finished";
    let run = json!({"argv": ["/bin/sh", "-c", script]});
    let first = tokio::spawn(async move { client.call("run_process", run).send().await });
    running(&home, 1).await;
    serve.signal(Signal::SIGTERM);
    stopping(&home).await;
    std::fs::write(home.workspace().join("go"), "").unwrap();
    let answer = first.await.unwrap().unwrap();
    assert_eq!(answer.content()["stdout"], "finished\n");
    assert_eq!(serve.stop().await.code(), Some(0));

    let mut serve = self::serve(&home).await;
    let client = Modern::new(serve.ready_text("mcp"), &*token);
    let run = json!({"argv": ["/bin/sleep", "600"], "timeout_seconds": 600});
    let second = tokio::spawn(async move { client.call("run_process", run).send().await });
    running(&home, 1).await;
    serve.signal(Signal::SIGTERM);
    stopping(&home).await;
    let began = std::time::Instant::now();
    assert_eq!(serve.stop().await.code(), Some(0));
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    second.abort();
}

/// Waits until this many calls run.
async fn running(home: &Home, calls: u64) {
    seen(home, |status| status["calls"]["pending"] == calls).await;
}

/// Waits until the link is on its way to rest.
async fn stopping(home: &Home) {
    seen(home, |status| status["app"]["engines"]["link"] == "stopping").await;
}

#[tokio::test]
async fn a_drill_does_not_cut_a_real_call_unless_told_to() {
    let home = Home::new();
    let serve = serve(&home).await;
    let token = home.ok(&["token", "create", "--name", "t"]).await;
    let client = Modern::new(serve.ready_text("mcp"), &*token);
    let run = json!({"argv": ["/bin/sh", "-c", "until [ -e go ]; do sleep 0.05; done; echo finished"]});
    let call = tokio::spawn(async move { client.call("run_process", run).send().await });
    running(&home, 1).await;
    let refused = home.run(&["drill", "--cut", "500ms", "--json"]).await;
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains(r#""code":"busy""#), "{}", stderr(&refused));
    let lines = home.ok(&["drill", "--cut", "500ms", "--force", "--json"]).await;
    assert_eq!(serde_json::from_str::<Value>(lines.lines().last().unwrap()).unwrap()["verdict"], "delivered_once");
    std::fs::write(home.workspace().join("go"), "").unwrap();
    assert_eq!(call.await.unwrap().unwrap().content()["stdout"], "finished\n", "the real call survived the drill");
    let long = home.run(&["drill", "--cut", "5m"]).await;
    assert!(stderr(&long).contains("at most 119 s"), "{}", stderr(&long));
}

#[tokio::test]
async fn the_public_doctor_finds_a_relay_that_streams() {
    let home = Home::new();
    let _serve = serve(&home).await;
    let report = home.json(&["doctor", "--public", "--json"]).await;
    let state = |name: &str| {
        let checks = report["checks"].as_array().unwrap();
        checks.iter().find(|c| c["name"] == name).map(|c| c["state"].as_str().unwrap().to_owned())
    };
    for name in ["reach", "issuer", "challenge", "streaming"] {
        assert_eq!(state(name).as_deref(), Some("ok"), "{name}: {report}");
    }
    assert_eq!(state("address").as_deref(), Some("warning"), "this computer only");
    assert_eq!(home.json(&["token", "list", "--json"]).await, json!([]), "its token is gone");
}

#[tokio::test]
async fn a_signal_while_it_starts_or_runs_ends_it_cleanly() {
    let home = Home::new();
    let mut first = serve(&home).await;
    first.signal(Signal::SIGINT);
    assert_eq!(first.stop().await.code(), Some(0));
    assert!(!home.data().join("api.json").exists());
}

#[tokio::test]
async fn commands_that_only_read_make_no_folder_and_close_none() {
    let home = Home::new();
    let mistyped = home.workspace().join("dta");
    let at = mistyped.to_str().unwrap();
    assert_eq!(home.run(&["status", "--data-dir", at]).await.status.code(), Some(3));
    assert_eq!(home.run(&["calls", "--data-dir", at]).await.status.code(), Some(3));
    let logs = home.run(&["logs", "--data-dir", at]).await;
    assert!(stderr(&logs).ends_with("does not exist: nothing ran on this data folder yet\n"), "{}", stderr(&logs));
    let doctor = home.run(&["doctor", "--data-dir", at, "--json"]).await;
    let report: Value = serde_json::from_slice(&doctor.stdout).unwrap();
    let data = report["checks"].as_array().unwrap().iter().find(|c| c["name"] == "data").unwrap();
    assert_eq!((&data["state"], &data["found"]), (&json!("warning"), &json!(format!("nothing ran on {at} yet"))));
    assert!(!mistyped.exists());

    std::fs::create_dir(&mistyped).unwrap();
    std::fs::set_permissions(&mistyped, std::fs::Permissions::from_mode(0o755)).unwrap();
    home.run(&["status", "--data-dir", at]).await;
    home.run(&["doctor", "--data-dir", at]).await;
    assert_eq!(std::fs::metadata(&mistyped).unwrap().permissions().mode() & 0o777, 0o755);
    assert_eq!(std::fs::read_dir(&mistyped).unwrap().count(), 0);
}

#[tokio::test]
async fn a_relay_alone_says_where_policy_and_drill_belong() {
    let home = Home::new();
    let _relay = home.start(&["relay", "--listen", "127.0.0.1:0"]).await;
    for (args, what) in [
        (&["policy", "set", "review"][..], "the policy stands at the machines that join it"),
        (&["drill"], "the drill runs at the machines that join it"),
    ] {
        let output = home.run(args).await;
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(stderr(&output), format!("holdfast: this is a relay alone; {what}\n"));
    }
    assert!(!home.config().join("config.toml").exists());
}

#[tokio::test]
async fn a_support_report_holds_no_secret() {
    let home = Home::new();
    home.write_config("[relay]\nallowed_origins = [\"https://ada:hunter2@a.example\"]\n");
    let serve = serve(&home).await;
    let token = home.ok(&["token", "create", "--name", "t"]).await;
    let client = Modern::new(serve.ready_text("mcp"), &*token);
    client.call("run_process", json!({"argv": ["/bin/echo", "private-argument"]})).send().await.unwrap();
    let file = home.workspace().join("report.txt");
    let said = home.ok(&["doctor", "--support", file.to_str().unwrap()]).await;
    assert!(said.ends_with("is written; look through it before you give it away"), "{said}");
    let report = std::fs::read_to_string(&file).unwrap();
    let api: Value = serde_json::from_slice(&std::fs::read(home.data().join("api.json")).unwrap()).unwrap();
    let secrets = std::fs::read_to_string(home.data().join("secrets.json")).unwrap();
    let device = secrets.split('"').find(|text| text.len() > 40).unwrap();
    for secret in [&token, api["token"].as_str().unwrap(), device, "hunter2", "private-argument"] {
        assert!(!report.contains(secret), "{secret}: {report}");
    }
    for part in
        ["## Doctor", "## Configuration", "allowed_origins", "## Status", "\"healthy\"", "## Log", "the relay listens"]
    {
        assert!(report.contains(part), "{part}: {report}");
    }
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
}
