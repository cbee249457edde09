//! A script around an official SDK, driven by JSON lines (their words stand in node/agent.mjs).

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use holdfast_testkit::oauth::Browser;
use holdfast_testkit::stand::{ACCOUNT, PASSWORD, Stand};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// An SDK and the era it is told to speak.
#[derive(Debug, Clone, Copy)]
pub enum Sdk {
    /// npm `@modelcontextprotocol/sdk` 1.x.
    TypeScript1,
    /// npm `@modelcontextprotocol/client` 2.x.
    TypeScript2 {
        /// `auto` or `legacy`.
        mode: &'static str,
    },
    /// PyPI `mcp`.
    Python {
        /// `auto` or `legacy`.
        mode: &'static str,
    },
}

/// A running script.
pub struct Agent {
    _child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

/// `tests/clients`.
pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/clients")
}

/// A Node.js that is new enough for all of them: the one npm brought, or this machine's.
pub fn node() -> PathBuf {
    let brought = ["x64", "arm64"].map(|cpu| folder().join(format!("node/node_modules/node-linux-{cpu}/bin/node")));
    assert!(folder().join("node/node_modules").exists(), "the npm clients are not installed; run `make clients`");
    brought.into_iter().find(|node| node.exists()).unwrap_or_else(|| "node".into())
}

impl Agent {
    fn start(sdk: Sdk, url: &str) -> Agent {
        let mut command = match sdk {
            Sdk::TypeScript1 | Sdk::TypeScript2 { .. } => Command::new(node()),
            Sdk::Python { .. } => {
                let python = folder().join("python/.venv/bin/python");
                assert!(python.exists(), "the Python client is not installed; run `make clients`");
                Command::new(python)
            }
        };
        match sdk {
            Sdk::TypeScript1 => command.arg(folder().join("node/sdk1.mjs")).arg(url),
            Sdk::TypeScript2 { mode } => command.arg(folder().join("node/sdk2.mjs")).args([url, mode]),
            Sdk::Python { mode } => command.arg(folder().join("python/sdk.py")).args([url, mode]),
        };
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        for proxy in ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
            command.env_remove(proxy);
        }
        let mut child = command.spawn().expect("the script starts");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        Agent { stdin: child.stdin.take().expect("piped"), lines, _child: child }
    }

    /// Starts the script, lets it discover, register and ask, and approves with the password in a browser of ours.
    pub async fn connect(sdk: Sdk, stand: &Stand) -> Agent {
        let mut agent = Agent::start(sdk, &stand.relay.mcp());
        agent.say(json!({"do": "connect"})).await;
        let asked = agent.hear().await;
        let authorize = asked["authorize"].as_str().unwrap_or_else(|| panic!("expected an authorize URL: {asked}"));
        let (mut browser, page) = Browser::open(authorize).await;
        let page = browser.log_in(&page, ACCOUNT, PASSWORD).await;
        let redirect = page.location.unwrap_or_else(|| panic!("no redirect: {}", page.html));
        agent.say(json!({"redirect": redirect.as_str()})).await;
        let connected = agent.hear().await;
        let era = match sdk {
            Sdk::TypeScript2 { mode: "auto" } | Sdk::Python { mode: "auto" } => "2026-07-28",
            _ => "2025-11-25",
        };
        assert_eq!(connected, json!({"connected": era}));
        agent
    }

    /// Sends a command.
    pub async fn say(&mut self, command: Value) {
        self.stdin.write_all(format!("{command}\n").as_bytes()).await.expect("the script listens");
    }

    /// The next answer.
    pub async fn hear(&mut self) -> Value {
        let line = tokio::time::timeout(Duration::from_secs(120), self.lines.next_line()).await;
        let line = line.expect("an answer within 60 s").expect("a line").expect("the script lives");
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("no JSON ({e}): {line}"))
    }

    /// Starts a tool call.
    pub async fn call(&mut self, id: u32, tool: &str, arguments: Value) {
        self.say(json!({"do": "call", "id": id, "name": tool, "arguments": arguments})).await;
    }

    /// The result of this call, which must be the next answer.
    pub async fn ended(&mut self, id: u32) -> Value {
        let mut answer = self.hear().await;
        assert!(answer["id"] == id && answer["result"].is_object(), "{answer}");
        answer["result"].take()
    }
}
