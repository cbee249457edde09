//! `holdfast serve` alone: this computer only.

use std::process::Stdio;
use std::time::Duration;

use holdfast_testkit::home::Home;
use holdfast_testkit::mcp::{Modern, Session};
use holdfast_testkit::process::Process;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

/// `holdfast serve` with an embedded relay on a free port.
pub async fn serve(home: &Home) -> Process {
    let workspace = home.workspace();
    home.start(&["serve", "--listen", "127.0.0.1:0", "--workspace", workspace.to_str().expect("UTF-8")]).await
}

#[tokio::test]
async fn two_commands_lead_to_a_tool_call() {
    let home = Home::new();
    let serve = serve(&home).await;
    assert_eq!(serve.ready()["pid"], serve.pid());
    let token = home.ok(&["token", "create", "--name", "script"]).await;
    assert!(!token.contains(char::is_whitespace), "the bearer token alone on stdout");
    std::fs::write(home.workspace().join("hello.txt"), "hello\n").expect("a file");
    let arguments = json!({"path": "hello.txt"});
    let answer = Modern::new(serve.ready_text("mcp"), &*token).call("read_file", arguments.clone()).send().await;
    assert_eq!(answer.expect("an answer").content()["content"], "hello\n");
    let session = Session::open(serve.ready_text("mcp"), &*token).await;
    assert_eq!(session.call("read_file", arguments).await.expect("an answer").content()["content"], "hello\n");
}

#[tokio::test]
async fn without_json_it_says_where_it_listens_and_how_to_connect() {
    let home = Home::new();
    let mut serve = home.command(&["serve", "--listen", "127.0.0.1:0"]);
    let mut serve = serve.stdout(Stdio::piped()).spawn().expect("the binary starts");
    let mut lines = BufReader::new(serve.stdout.take().expect("piped")).lines();
    let mut said = String::new();
    while !said.contains("static token") {
        let line = tokio::time::timeout(Duration::from_secs(120), lines.next_line()).await;
        said.push_str(&line.expect("a greeting").expect("a line").unwrap_or_else(|| panic!("it ended: {said}")));
        said.push('\n');
    }
    for part in
        ["MCP address   http://127.0.0.1:", "claude mcp add", "codex mcp add", "holdfast approve CODE", "/holdfast"]
    {
        assert!(said.contains(part), "{part} is missing in {said}");
    }
    serve.kill().await.expect("killed");
}

#[tokio::test]
async fn what_was_made_is_there_after_a_restart() {
    let home = Home::new();
    let mut first = serve(&home).await;
    let token = home.ok(&["token", "create", "--name", "script"]).await;
    assert_eq!(first.stop().await.code(), Some(0));
    let second = serve(&home).await;
    let answer = Modern::new(second.ready_text("mcp"), &*token).call("list_dir", json!({})).send().await;
    assert_eq!(answer.expect("an answer").code(), None);
}

#[tokio::test]
async fn the_drill_prints_its_steps_and_passes() {
    let home = Home::new();
    let _serve = serve(&home).await;
    let printed = home.ok(&["drill", "--cut", "2s"]).await;
    assert!(printed.lines().count() >= 4, "{printed}");
    assert!(printed.contains("delivered once"), "{printed}");
    let lines = home.ok(&["drill", "--cut", "1s", "--json"]).await;
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON lines")).collect();
    let last = lines.last().expect("a verdict");
    assert_eq!((&last["event"], &last["passed"]), (&json!("verdict"), &json!(true)), "{lines:?}");
}

#[tokio::test]
async fn a_wrong_configuration_is_told_with_line_and_nearest_key() {
    let home = Home::new();
    home.write_config("[relay]\n\nlisen = \"127.0.0.1:1\"\n");
    let output = home.run(&["serve", "--json"]).await;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(said.contains("config.toml:3:") && said.contains("listen"), "{said}");
}

#[tokio::test]
async fn nothing_listens_on_another_address_without_tls_or_a_proxy() {
    let home = Home::new();
    for args in [&["relay", "--listen", "0.0.0.0:0"][..], &["serve", "--listen", "0.0.0.0:0"]] {
        let output = home.run(args).await;
        assert!(!output.status.success(), "{args:?}");
        assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"));
    }
}

#[tokio::test]
async fn the_workspace_is_never_the_home_folder_or_the_root() {
    let home = Home::new();
    let of_the_user = home.workspace().parent().expect("a parent").to_owned();
    for workspace in ["/", of_the_user.to_str().expect("UTF-8")] {
        let output = home.run(&["serve", "--listen", "127.0.0.1:0", "--workspace", workspace]).await;
        assert!(!output.status.success(), "{workspace}");
    }
}
