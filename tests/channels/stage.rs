//! One agent, its channel, and a person who may speak to it.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use futures_util::StreamExt as _;
use holdfast_testkit::discord::{FakeDiscord, Post};
use holdfast_testkit::home::Home;
use holdfast_testkit::process::Process;
use serde_json::{Value, json};

pub const BOT: u64 = 4242;
/// How long something that should happen soon may take.
pub const PATIENCE: Duration = Duration::from_secs(120);
/// Nobody listens there: the link of these processes rests.
pub const SERVE: [&str; 3] = ["serve", "--relay", "http://127.0.0.1:9"];

/// A Holdfast that serves one binding, `app`, whose project is the workspace.
pub struct Stage {
    pub discord: FakeDiscord,
    pub home: Home,
    pub process: Process,
    pub channel: u64,
    pub ann: u64,
}

impl Stage {
    /// The binding has these further lines; `$HOME` in them is the home's folder.
    pub async fn with(binding: &str) -> Stage {
        Stage::in_home(Home::new(), "", binding).await
    }

    /// The same with more lines of `[channel]`, and a home that is prepared.
    pub async fn in_home(home: Home, more: &str, binding: &str) -> Stage {
        let discord = FakeDiscord::start().await;
        discord.limit(None);
        let (token, channel, ann) = (discord.bot(BOT), discord.channel(), discord.person("Ann"));
        let (url, gateway) = (discord.url("a"), discord.gateway_url("a"));
        let folder = home.data().parent().expect("a home").display().to_string();
        let project = home.workspace();
        let text = format!(
            "[channel]\nbackend = \"discord\"\nbot = \"{BOT}\"\non_start = \"take\"\nbase_url = \"{url}\"\n\
             gateway_url = \"{gateway}\"\npeople = [\"{ann}\"]\n{more}\n[[channel.binding]]\nname = \"app\"\n\
             channel = \"{channel}\"\nproject = \"{}\"\n{binding}\n",
            project.display()
        );
        home.write_config(&text.replace("$HOME", &folder));
        let secrets = home.data().join("secrets.json");
        std::fs::write(&secrets, json!({format!("channel@discord:{BOT}"): token}).to_string()).expect("secrets.json");
        std::fs::set_permissions(&secrets, std::fs::Permissions::from_mode(0o600)).expect("its mode");
        let process = home.start(&SERVE).await;
        let stage = Stage { discord, home, process, channel, ann };
        stage.hears(1).await;
        stage
    }

    /// Waits until the bot listens for the nth time.
    async fn hears(&self, times: usize) {
        self.discord.until("a gateway session", |seen| seen.identified.len() >= times).await;
    }

    /// kill -9, and a new process on the same folders.
    pub async fn dies_and_comes_again(&mut self) {
        self.process.kill_9().await;
        self.comes_again().await;
    }

    /// A new process on the same folders.
    pub async fn comes_again(&mut self) {
        let before = self.discord.seen().identified.len();
        self.process = self.home.start(&SERVE).await;
        self.hears(before + 1).await;
    }

    /// Ann writes; returns the message.
    pub fn says(&self, text: &str) -> u64 {
        self.discord.write(self.channel, self.ann, text)
    }

    /// The bot's message whose text is such, once it is there.
    pub async fn said(&self, what: &str, found: impl Fn(&str) -> bool) -> Post {
        let is = |post: &&Post| post.channel == self.channel && !post.repeated && found(&post.content);
        let seen = self.discord.until(what, |seen| seen.posts.iter().any(|post| is(&post))).await;
        seen.posts.iter().find(is).expect("just seen").clone()
    }

    /// Ann presses a button; returns what only she is told.
    pub async fn presses(&self, post: &Post, which: &str) -> String {
        let button = post.buttons.iter().find(|button| button.contains(which)).expect("such a button");
        let click = self.discord.click(self.channel, post.message, self.ann, button);
        let told = |seen: &holdfast_testkit::discord::Seen| {
            seen.acknowledged.get(&click).is_some_and(|ack| !ack.texts.is_empty())
        };
        let seen = self.discord.until("an answer to the click", told).await;
        let (text, alone) = seen.acknowledged[&click].texts[0].clone();
        assert!(alone, "only who pressed sees it");
        text
    }

    /// A process of the agent that listens at the API and never says that it has anything, once it has heard this. It is
    /// connected until that is dropped.
    pub async fn hears_of(&self, text: &str) -> impl Sized + use<> {
        let (address, token) = api(&self.home);
        let url = format!("http://{address}/api/channel/listen?binding=app");
        let listening = holdfast_testkit::mcp::http().get(url).bearer_auth(token).send().await.expect("an answer");
        let mut bytes = listening.bytes_stream();
        let mut heard = String::new();
        while !heard.contains(text) {
            heard.push_str(&String::from_utf8_lossy(&bytes.next().await.expect("more").expect("bytes")));
        }
        bytes
    }

    /// A file in the home's folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.home.data().parent().expect("a home").join(name)
    }

    /// What a file there holds, once it is so.
    pub async fn reads(&self, name: &str, found: impl Fn(&str) -> bool) -> String {
        let path = self.path(name);
        let waiting = async {
            loop {
                if let Ok(text) = std::fs::read_to_string(&path)
                    && found(&text)
                {
                    return text;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        match tokio::time::timeout(PATIENCE, waiting).await {
            Ok(text) => text,
            Err(_) => panic!("{name} is not so: {:?}\n{}", std::fs::read_to_string(&path), self.process.log()),
        }
    }

    /// Waits until the agent has everything.
    pub async fn is_taken(&self) {
        let waiting = async {
            while self.home.json(&["status", "--json"]).await["channels"]["bindings"][0]["waiting_in"] != 0 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.expect("taken in time");
    }

    /// The seat's folder.
    pub fn seat(&self) -> PathBuf {
        let mut seats = std::fs::read_dir(self.home.seats()).expect("the folder of seats");
        seats.next().expect("one seat").expect("readable").path()
    }
}

/// A program in a home that is not started yet.
pub fn program(home: &Home, name: &str, text: &str) {
    let path = home.data().parent().expect("a home").join(name);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("its folder");
    std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("a program");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).expect("its mode");
}

/// What `api.json` says.
pub fn api(home: &Home) -> (String, String) {
    let file = std::fs::read_to_string(home.data().join("api.json")).expect("api.json");
    let file: Value = serde_json::from_str(&file).expect("JSON");
    let field = |name: &str| file[name].as_str().expect("text").to_owned();
    (field("address"), field("token"))
}
