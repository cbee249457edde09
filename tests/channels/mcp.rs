//! `holdfast channel mcp`, as an agent drives it.

use std::process::Stdio;

use holdfast_testkit::process::{Signal, send};
use holdfast_testkit::stand::alive;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};

use super::stage::{PATIENCE, Stage};

/// An agent's end of the server.
pub struct Client {
    server: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    /// What came while something else was waited for.
    kept: Vec<Value>,
}

impl Client {
    /// Started in the project, and greeted; what it says of itself.
    pub async fn start(stage: &Stage, arguments: &[&str]) -> (Client, Value) {
        let mut command = stage.home.command(&[&["channel", "mcp"], arguments].concat());
        command.current_dir(stage.home.workspace()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut server = command.spawn().expect("the server");
        let input = server.stdin.take().expect("piped");
        let output = BufReader::new(server.stdout.take().expect("piped")).lines();
        let mut client = Client { server, input, output, kept: Vec::new() };
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "agent", "version": "1"}});
        let greeting = client.call(0, "initialize", params).await;
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        (client, greeting["result"].clone())
    }

    pub async fn send(&mut self, message: &Value) {
        self.input.write_all(format!("{message}\n").as_bytes()).await.expect("the server reads");
    }

    /// The first message that is such.
    pub async fn until(&mut self, what: &str, found: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.kept.iter().position(&found) {
            return self.kept.remove(at);
        }
        let waiting = async {
            while let Some(line) = self.output.next_line().await.expect("a line") {
                let message: Value = serde_json::from_str(&line).expect("JSON alone");
                if found(&message) {
                    return message;
                }
                self.kept.push(message);
            }
            panic!("the server ended before: {what}");
        };
        tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("no {what}"))
    }

    pub async fn call(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        self.until(method, |message| message["id"] == id).await
    }

    /// Calls a tool; its text, and whether it failed.
    async fn tool(&mut self, id: u64, name: &str, arguments: Value) -> (String, bool) {
        let answer = self.call(id, "tools/call", json!({"name": name, "arguments": arguments})).await;
        let text = answer["result"]["content"][0]["text"].as_str().expect("a text").to_owned();
        (text, answer["result"]["isError"].as_bool().expect("whether it failed"))
    }

    /// The next message from the channel.
    async fn message(&mut self) -> Value {
        let is = |message: &Value| message["method"] == "notifications/claude/channel";
        self.until("a message of the channel", is).await["params"].clone()
    }
}

#[tokio::test]
async fn a_message_is_pushed_to_the_agent_and_its_reply_is_posted_once() {
    let stage = Stage::with("deliver = \"mcp\"").await;
    let (mut client, greeting) = Client::start(&stage, &[]).await;
    assert_eq!(greeting["protocolVersion"], "2025-11-25");
    assert_eq!(greeting["capabilities"], json!({"experimental": {"claude/channel": {}}, "tools": {}}));
    let written = stage.says("What is the time?");
    let message = client.message().await;
    assert_eq!(message["content"], "What is the time?");
    let meta = message["meta"].as_object().expect("meta");
    assert!(meta.values().all(Value::is_string), "{meta:?}");
    assert_eq!((&meta["user"], &meta["message_id"]), (&json!("Ann"), &json!(written.to_string())));
    let listed = client.call(1, "tools/list", json!({})).await;
    let names: Vec<&Value> = listed["result"]["tools"].as_array().expect("tools").iter().map(|t| &t["name"]).collect();
    assert_eq!(names, ["reply", "fetch"]);
    let reply = json!({"message": "Four.", "reply_to": written.to_string()});
    for _same_request in 0..2 {
        assert_eq!(client.tool(2, "reply", reply.clone()).await, ("sent".to_owned(), false));
    }
    assert!(!client.tool(3, "reply", json!({"message": "Really."})).await.1);
    stage.said("the second reply", |text| text == "Really.").await;
    assert_eq!(stage.discord.seen().texts(stage.channel), ["Four.", "Really."]);
    let fetched: Value = serde_json::from_str(&client.tool(4, "fetch", json!({"limit": 5})).await.0).expect("JSON");
    assert_eq!(
        (fetched[0]["content"].as_str(), fetched.as_array().map(Vec::len)),
        (Some("What is the time?"), Some(1))
    );
    stage.says("/stop");
    assert_eq!(client.message().await["meta"], json!({"kind": "stop"}));
}

#[tokio::test]
async fn what_an_agent_got_and_did_not_acknowledge_is_offered_to_it_again() {
    let mut stage = Stage::with("deliver = \"mcp\"").await;
    stage.says("Hello");
    let _listens = stage.hears_of("Hello").await;
    stage.dies_and_comes_again().await;
    let (mut client, _) = Client::start(&stage, &["--binding", "app"]).await;
    assert_eq!(client.message().await["content"], "Hello");
    // That the agent is away may be told, if it is back late.
    let seen = stage.discord.seen();
    let told = seen.texts(stage.channel);
    assert!(!told.iter().any(|text| text.contains("may have been delivered")), "nobody is told of a doubt: {told:?}");
}

#[tokio::test]
async fn an_agent_does_not_notice_that_holdfast_begins_anew() {
    let mut stage = Stage::with("deliver = \"mcp\"").await;
    let (mut client, _) = Client::start(&stage, &[]).await;
    stage.says("one");
    assert_eq!(client.message().await["content"], "one");
    stage.process.stop().await;
    stage.says("two");
    client
        .send(&json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call",
        "params": {"name": "reply", "arguments": {"message": "Still here."}}}))
        .await;
    stage.comes_again().await;
    assert_eq!(client.message().await["content"], "two");
    let answer = client.until("the answer to the reply", |message| message["id"] == 7).await;
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    stage.said("the reply", |text| text == "Still here.").await;
    stage.says("three");
    assert_eq!(client.message().await["content"], "three");
    assert!(client.kept.is_empty(), "nothing came twice: {:?}", client.kept);
}

#[tokio::test]
async fn without_a_seat_a_tool_says_so_and_what_is_no_request_is_refused() {
    let stage = Stage::with("deliver = \"mcp\"").await;
    let (mut client, _) = Client::start(&stage, &[]).await;
    stage.home.ok(&["seat", "release"]).await;
    let (why, failed) = client.tool(1, "reply", json!({"message": "Hello"})).await;
    assert_eq!((why.as_str(), failed), ("this process does not hold the bot's seat", true));
    let (why, failed) = client.tool(2, "reply", json!({"text": "Hello"})).await;
    assert!(failed && why.starts_with("the arguments are not what this tool takes"), "{why}");
    assert_eq!(client.call(3, "ping", json!({})).await["result"], json!({}));
    assert_eq!(client.call(4, "resources/list", json!({})).await["error"]["code"], -32601);
    client.input.write_all(b"{\n").await.expect("the server reads");
    assert_eq!(client.until("a refusal", |message| message["id"].is_null()).await["error"]["code"], -32700);
    let (mut elsewhere, _) = Client::start(&stage, &["--binding", "other"]).await;
    let (why, failed) = elsewhere.tool(1, "fetch", json!({})).await;
    assert!(failed && why.starts_with("no binding of the channel belongs to this agent"), "{why}");
}

#[tokio::test]
async fn a_second_session_hears_nothing_until_the_first_has_gone() {
    let stage = Stage::with("deliver = \"mcp\"").await;
    let (mut first, _) = Client::start(&stage, &[]).await;
    stage.says("one");
    assert_eq!(first.message().await["content"], "one");
    let (mut second, _) = Client::start(&stage, &[]).await;
    stage.says("two");
    assert_eq!(first.message().await["content"], "two");
    stage.is_taken().await;
    drop(first);
    stage.says("three");
    assert_eq!(second.message().await["content"], "three");
    assert!(second.kept.is_empty());
}

#[tokio::test]
async fn while_an_agent_is_gone_the_sender_is_told_and_what_it_had_not_taken_goes_to_who_comes_next() {
    let stage = Stage::with("deliver = \"mcp\"").await;
    let message = stage.says("Hello");
    let told = stage.said("the failure", |text| text.starts_with("Not delivered yet")).await;
    let why = "Not delivered yet, tried again: the agent is not connected; it starts `holdfast channel mcp`";
    assert_eq!((told.content.as_str(), told.reply_to), (why, Some(message)));
    // One that has it in its hands and ends is no answer.
    drop(stage.hears_of("Hello").await);
    let (mut client, _) = Client::start(&stage, &[]).await;
    assert_eq!(client.message().await["content"], "Hello");
    stage.said("the delivery", |text| text == "Delivered now.").await;
    assert_eq!(stage.discord.seen().texts(stage.channel), [why, "Delivered now."]);
}

#[tokio::test]
async fn the_server_ends_with_its_agent_and_leaves_nothing_behind() {
    let stage = Stage::with("deliver = \"mcp\"").await;
    let (client, _) = Client::start(&stage, &[]).await;
    let Client { mut server, input, .. } = client;
    drop(input);
    let status = tokio::time::timeout(PATIENCE, server.wait()).await.expect("its end in time").expect("its status");
    assert_eq!(status.code(), Some(0));
}

#[tokio::test]
async fn an_agent_that_is_killed_takes_the_server_along() {
    let stage = Stage::with("deliver = \"mcp\"").await;
    let server = stage.home.command(&["channel", "mcp"]);
    let holdfast = server.as_std().get_program().to_str().expect("a path");
    // Another child of the agent keeps the server's stdin open and outlives it.
    let script = "mkfifo in; \"$0\" channel mcp < in > out & server=$!; exec 3> in; sleep 1000 & \
        echo \"$server $!\" > pids; echo \"$1\" >&3; exec sleep 1000";
    let program = std::path::Path::new("/bin/sh");
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    let mut agent = stage.home.program(program, &["-c", script, holdfast, &ping]).spawn().expect("the agent");
    // Only one that has begun knows whose it is.
    stage.reads("out", |text| text.ends_with('\n')).await;
    let pids = stage.reads("pids", |text| text.ends_with('\n')).await;
    let pids: Vec<i32> = pids.split_whitespace().map(|pid| pid.parse().expect("a pid")).collect();
    assert!(alive(pids[0]));
    agent.kill().await.expect("it is killed");
    let gone = async {
        while alive(pids[0]) {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    let gone = tokio::time::timeout(PATIENCE, gone).await;
    assert!(alive(pids[1]), "stdin is open still");
    send(pids[1], Signal::SIGKILL);
    gone.expect("the server ends");
}
