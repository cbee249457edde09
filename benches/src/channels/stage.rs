//! `holdfast serve` as it is shipped, with one transcript and its channel at a Discord that this process plays.

use std::cell::Cell;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Instant;

use anyhow::{Context as _, Result};
use holdfast_testkit::discord::FakeDiscord;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::child::Running;

const BOT: u64 = 4242;

/// See the module.
pub struct Stage {
    /// The service.
    pub discord: FakeDiscord,
    /// What the agent writes; it is there.
    pub transcript: PathBuf,
    _process: Running,
    _home: tempfile::TempDir,
}

impl Stage {
    /// Starts both; returns once the bot listens.
    pub async fn start() -> Result<Stage> {
        let home = tempfile::tempdir()?;
        let discord = FakeDiscord::start().await;
        // What is measured is ours, not the service's limit.
        discord.limit(None);
        let (token, channel) = (discord.bot(BOT), discord.channel());
        let transcript = home.path().join("agent.jsonl");
        std::fs::write(&transcript, super::line(0, 0))?;
        let mut command = Command::new(std::env::current_exe()?.with_file_name("holdfast"));
        command.args(["serve", "--json", "--relay", "http://127.0.0.1:9"]).env("HOLDFAST_SECRETS", "file");
        for (name, folder) in [("DATA", "data"), ("CONFIG", "config"), ("STATE", "state")] {
            let path = home.path().join(folder);
            std::fs::create_dir_all(&path)?;
            command.env(format!("HOLDFAST_{name}_DIR"), path);
        }
        let workspace = home.path().join("workspace");
        std::fs::create_dir_all(&workspace)?;
        command.arg("--workspace").arg(workspace);
        let secrets = home.path().join("data/secrets.json");
        std::fs::write(&secrets, json!({format!("channel@discord:{BOT}"): token}).to_string())?;
        std::fs::set_permissions(&secrets, std::fs::Permissions::from_mode(0o600))?;
        std::fs::write(
            home.path().join("config/config.toml"),
            format!(
                "[channel]\nbackend = \"discord\"\nbot = \"{BOT}\"\non_start = \"take\"\nbase_url = \"{}\"\n\
                 gateway_url = \"{}\"\n[[channel.binding]]\nname = \"app\"\nchannel = \"{channel}\"\n\
                 transcript = \"{}\"\n",
                discord.url("bench"),
                discord.gateway_url("bench"),
                transcript.display()
            ),
        )?;
        let mut process = Running::start(command.stdout(Stdio::piped()).stderr(Stdio::null())).context("holdfast")?;
        process.hear::<Value>().await?;
        discord.until("a gateway session", |seen| !seen.identified.is_empty()).await;
        Ok(Stage { discord, transcript, _process: process, _home: home })
    }

    /// When the service was asked to post what holds this text.
    pub async fn asked(&self, text: &str) -> Instant {
        let at = Cell::new(None);
        let holds = |seen: &holdfast_testkit::discord::Seen| {
            let there = seen.posts.iter().rev().take(20).any(|post| post.content.contains(text));
            if there && at.get().is_none() {
                at.set(Some(Instant::now()));
            }
            there
        };
        self.discord.until("the post", holds).await;
        at.get().unwrap_or_else(Instant::now)
    }
}
