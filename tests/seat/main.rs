//! One seat and several real processes of one user: races, kills, freezes, and what is planted by hand.

#![allow(clippy::expect_used, reason = "a panic is how a test fails")]

mod contenders;
mod hand_over;
mod kills;
mod planted;
mod set_up;

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use futures_util::StreamExt as _;
use holdfast_testkit::home::Home;
use holdfast_testkit::process::Process;
use holdfast_testkit::stand::found;
use holdfast_testkit::telegram::FakeTelegram;
use serde_json::{Value, json};

const BOT: u64 = 4242;
const PATIENCE: Duration = Duration::from_secs(120);
/// Nobody listens there: the link of these processes rests.
const SERVE: [&str; 3] = ["serve", "--relay", "http://127.0.0.1:9"];

/// A process that may want the seat.
struct Contender {
    name: String,
    home: Home,
    process: Process,
}

fn configured(home: &Home, telegram: &FakeTelegram, name: &str, on_start: &str) {
    let url = telegram.url(name);
    home.write_config(&format!(
        "[channel]\nbackend = \"telegram\"\nbot = \"{BOT}\"\non_start = \"{on_start}\"\nbase_url = \"{url}\"\n"
    ));
    let secrets = json!({format!("channel@telegram:{BOT}"): telegram.bot(BOT)});
    let path = home.data().join("secrets.json");
    std::fs::write(&path, secrets.to_string()).expect("secrets.json");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("its mode");
}

impl Contender {
    /// The first one makes the home that the others share the seat with.
    async fn first(telegram: &FakeTelegram, name: &str, on_start: &str) -> Contender {
        Contender::start(Home::new(), telegram, name, on_start).await
    }

    async fn beside(&self, telegram: &FakeTelegram, name: &str, on_start: &str) -> Contender {
        Contender::start(Home::beside(&self.home), telegram, name, on_start).await
    }

    async fn start(home: Home, telegram: &FakeTelegram, name: &str, on_start: &str) -> Contender {
        configured(&home, telegram, name, on_start);
        let process = home.start(&SERVE).await;
        Contender { name: name.into(), home, process }
    }

    /// A new process in the same home.
    async fn again(&mut self) {
        self.process = self.home.start(&SERVE).await;
    }

    /// Waits until its own view of the seat is such.
    async fn until(&self, what: &str, found: impl Fn(&Value) -> bool) -> Value {
        let file = std::fs::read_to_string(self.home.data().join("api.json")).expect("api.json");
        let file: Value = serde_json::from_str(&file).expect("JSON");
        let field = |name: &str| file[name].as_str().expect("text").to_owned();
        let client = holdfast_testkit::mcp::http();
        let url = format!("http://{}/api/status/stream", field("address"));
        let watching = async {
            let answer = client.get(url).bearer_auth(field("token")).send().await.expect("an answer");
            let (mut bytes, mut text) = (answer.bytes_stream(), String::new());
            while let Some(Ok(more)) = bytes.next().await {
                text.push_str(&String::from_utf8_lossy(&more));
                while let Some(end) = text.find('\n') {
                    let line: String = text.drain(..=end).collect();
                    let Some(data) = line.strip_prefix("data:") else { continue };
                    let status: Value = serde_json::from_str(data.trim()).expect("a snapshot");
                    if found(&status["seat"]) {
                        return status["seat"].clone();
                    }
                }
            }
            panic!("{} ended before: {what}", self.name)
        };
        match tokio::time::timeout(PATIENCE, watching).await {
            Ok(seat) => seat,
            Err(_) => panic!("{} is not {what} within {PATIENCE:?}: {}", self.name, self.seat().await),
        }
    }

    async fn is(&self, state: &str) -> Value {
        self.until(state, |seat| seat["state"] == state).await
    }

    async fn seat(&self) -> Value {
        self.home.json(&["seat", "show", "--json"]).await
    }

    async fn take(&self) -> Value {
        self.home.json(&["seat", "take", "--json"]).await
    }

    /// Waits until its log holds this so often: a thread of its own writes it.
    async fn tells(&self, what: &str, times: usize) {
        found(&format!("{times} times {what:?}"), async || (self.told(what) >= times).then_some(())).await;
        assert_eq!(self.told(what), times, "{what}");
    }

    /// How often its log holds this by now.
    fn told(&self, what: &str) -> usize {
        let folder = std::fs::read_dir(self.home.data().join("logs")).expect("its logs");
        let texts = folder.filter_map(|entry| std::fs::read_to_string(entry.ok()?.path()).ok());
        texts.map(|text| text.matches(what).count()).sum()
    }
}

const ACQUIRED: &str = "this process has the seat";
const SUPERSEDED: &str = "another process has the seat now";

/// The one folder of the one bot.
fn folder(home: &Home) -> PathBuf {
    let mut seats = std::fs::read_dir(home.seats()).expect("the folder of seats");
    seats.next().expect("one seat").expect("readable").path()
}

/// The generation that was claimed last; `None` before the first.
fn claimed(home: &Home) -> Option<u64> {
    let seat = std::fs::read_dir(home.seats()).ok()?.next()?.ok()?.path();
    let text = std::fs::read_to_string(seat.join("generation.json")).ok()?;
    let record: Value = serde_json::from_str(&text).expect("JSON");
    record["generation"].as_u64()
}

fn generation(home: &Home) -> u64 {
    claimed(home).expect("a generation")
}
