//! `holdfast channel ask`: prompts of agents that people answer by a click.

use std::io::Write as _;
use std::process::{Output, Stdio};

use holdfast_testkit::discord::Post;
use holdfast_testkit::home::Home;
use holdfast_testkit::process::{Signal, send};
use holdfast_testkit::store;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Child;

use super::stage::{PATIENCE, SERVE, Stage};

/// A hook that was started by an agent in the project.
struct Hook(Child);

impl Hook {
    async fn start(stage: &Stage, event: &str, more: Value) -> Hook {
        let mut told = json!({
            "session_id": "s1",
            "transcript_path": "/none.jsonl",
            "cwd": stage.home.workspace(),
            "hook_event_name": event,
            "tool_name": "Bash",
            "tool_input": {"command": "rm -rf build", "description": "Cleans up"},
        });
        for (key, value) in more.as_object().expect("an object") {
            told[key] = value.clone();
        }
        let mut command = stage.home.command(&["channel", "ask"]);
        // A script's session says nothing.
        command.env_remove("CLAUDE_CODE_ENTRYPOINT");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the hook");
        let mut input = child.stdin.take().expect("piped");
        input.write_all(told.to_string().as_bytes()).await.expect("it reads");
        Hook(child)
    }

    async fn ends(self) -> Output {
        tokio::time::timeout(PATIENCE, self.0.wait_with_output()).await.expect("its end in time").expect("its output")
    }

    /// What it tells its agent.
    async fn answers(self) -> Value {
        let output = self.ends().await;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    fn kill(&self, signal: Signal) {
        let pid = i32::try_from(self.0.id().expect("it runs")).expect("a pid");
        send(pid, signal);
    }
}

async fn prompt(stage: &Stage) -> Post {
    stage.said("a prompt", |text| text.contains("needs permission")).await
}

async fn becomes(stage: &Stage, prompt: &Post, what: &str) {
    let ends = |text: &str| text.ends_with(what);
    let edited = |seen: &holdfast_testkit::discord::Seen| {
        seen.edits.iter().any(|(message, text, buttons)| *message == prompt.message && ends(text) && *buttons == 0)
    };
    stage.discord.until(what, edited).await;
}

#[tokio::test]
async fn a_click_decides_and_the_message_says_what_became_of_it() {
    let stage = Stage::with("").await;
    let hook = Hook::start(&stage, "PreToolUse", json!({})).await;
    let shown = prompt(&stage).await;
    assert_eq!(shown.content, "🔐 `Bash` needs permission\n`Cleans up`\n```\nrm -rf build\n```");
    assert_eq!(stage.presses(&shown, ":allow").await, "Allowed by Ann");
    assert_eq!(
        hook.answers().await,
        json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow",
            "permissionDecisionReason": "Ann allowed it in the channel"}})
    );
    becomes(&stage, &shown, "Allowed by Ann").await;
    assert_eq!(stage.presses(&shown, ":deny").await, "This is over: allowed by Ann.");
}

#[tokio::test]
async fn a_tool_that_was_allowed_for_the_session_asks_once() {
    let stage = Stage::with("").await;
    let suggestions = json!({"permission_suggestions": []});
    let hook = Hook::start(&stage, "PermissionRequest", suggestions.clone()).await;
    let shown = prompt(&stage).await;
    stage.presses(&shown, ":session").await;
    let decision = json!({"behavior": "allow", "updatedPermissions": [{"type": "addRules",
        "rules": [{"toolName": "Bash"}], "behavior": "allow", "destination": "session"}]});
    let expected = json!({"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}});
    assert_eq!(hook.answers().await, expected);
    let again = Hook::start(&stage, "PermissionRequest", suggestions).await;
    assert_eq!(again.answers().await, expected);
    assert_eq!(stage.discord.seen().posts.len(), 1);
    let denied = Hook::start(&stage, "PermissionRequest", json!({"session_id": "s2"})).await;
    let seen = stage.discord.until("another session's prompt", |seen| seen.posts.len() == 2).await;
    stage.presses(&seen.posts[1], ":deny").await;
    let decision = json!({"behavior": "deny", "message": "Ann denied it in the channel"});
    let expected = json!({"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}});
    assert_eq!(denied.answers().await, expected);
}

#[tokio::test]
async fn a_prompt_survives_that_holdfast_is_killed() {
    let mut stage = Stage::with("").await;
    let hook = Hook::start(&stage, "PreToolUse", json!({})).await;
    let shown = prompt(&stage).await;
    stage.dies_and_comes_again().await;
    assert_eq!(stage.presses(&shown, ":allow").await, "Allowed by Ann");
    assert_eq!(hook.answers().await["hookSpecificOutput"]["permissionDecision"], "allow");
    assert_eq!(stage.discord.seen().texts(stage.channel).len(), 1, "there is one prompt");
    becomes(&stage, &shown, "Allowed by Ann").await;
}

#[tokio::test]
async fn a_prompt_survives_that_holdfast_is_stopped() {
    let mut stage = Stage::with("").await;
    let hook = Hook::start(&stage, "PreToolUse", json!({})).await;
    let shown = prompt(&stage).await;
    stage.process.stop().await;
    let between = stage.discord.seen().edits;
    assert!(between.is_empty(), "nothing was decided: {between:?}");
    stage.comes_again().await;
    assert_eq!(stage.presses(&shown, ":deny").await, "Denied by Ann");
    assert_eq!(hook.answers().await["hookSpecificOutput"]["permissionDecision"], "deny");
    assert_eq!(stage.discord.seen().texts(stage.channel).len(), 1, "there is one prompt");
}

#[tokio::test]
async fn a_prompt_whose_hook_stays_with_the_former_holder_is_over() {
    let stage = Stage::with("").await;
    let hook = Hook::start(&stage, "PreToolUse", json!({})).await;
    let shown = prompt(&stage).await;
    let other = Home::beside(&stage.home);
    for (from, to) in [(stage.home.config(), other.config()), (stage.home.data(), other.data())] {
        for name in ["config.toml", "secrets.json"].map(|name| (from.join(name), to.join(name))) {
            // Each is in one of the two; its mode is copied too.
            let _ = std::fs::copy(name.0, name.1);
        }
    }
    let _taker = other.start(&SERVE).await;
    becomes(&stage, &shown, "The agent is no longer waiting").await;
    let over = "This is over: the agent is no longer waiting.";
    assert_eq!(stage.presses(&shown, ":allow").await, over);
    assert_eq!(hook.answers().await["hookSpecificOutput"]["permissionDecision"], "ask");
}

#[tokio::test]
async fn a_hook_that_ends_takes_its_prompt_back_and_a_late_click_is_told_so() {
    let stage = Stage::with("").await;
    for (nth, signal) in [Signal::SIGTERM, Signal::SIGKILL].into_iter().enumerate() {
        let hook = Hook::start(&stage, "PreToolUse", json!({})).await;
        let seen = stage.discord.until("a prompt", |seen| seen.posts.len() == nth + 1).await;
        hook.kill(signal);
        let output = hook.ends().await;
        assert!(!output.status.success() && output.stdout.is_empty(), "its agent is told nothing");
        becomes(&stage, &seen.posts[nth], "Decided at the terminal").await;
        assert_eq!(stage.presses(&seen.posts[nth], ":allow").await, "This is over: decided at the terminal.");
    }
}

#[tokio::test]
async fn a_prompt_that_nobody_answered_in_time_says_so_and_its_hook_leaves_the_terminal_to_decide() {
    let mut stage = Stage::with("").await;
    let hook = Hook::start(&stage, "PreToolUse", json!({})).await;
    let shown = prompt(&stage).await;
    // Ten minutes pass while nobody serves.
    stage.process.kill_9().await;
    let aged = "UPDATE asks SET asked = asked - 600000";
    assert_eq!(store::change(&stage.seat().join("channel.sqlite"), aged), 1);
    stage.comes_again().await;
    becomes(&stage, &shown, "Nobody answered in time").await;
    assert_eq!(stage.presses(&shown, ":allow").await, "This has expired.");
    assert_eq!(
        hook.answers().await,
        json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "ask",
            "permissionDecisionReason": "nobody answered in the channel"}})
    );
    assert_eq!(stage.discord.seen().texts(stage.channel).len(), 1, "it is not asked again");
}

#[tokio::test]
async fn where_nobody_can_be_asked_the_terminal_decides() {
    let stage = Stage::with("").await;
    let elsewhere = Hook::start(&stage, "PreToolUse", json!({"cwd": "/"})).await.ends().await;
    assert!(elsewhere.status.success() && elsewhere.stdout.is_empty(), "it belongs to no channel");
    let decision = |answer: Value| answer["hookSpecificOutput"]["permissionDecision"].clone();
    stage.home.ok(&["seat", "release"]).await;
    let no_seat = Hook::start(&stage, "PreToolUse", json!({})).await;
    assert_eq!(decision(no_seat.answers().await), "ask");
    let dialog = Hook::start(&stage, "PermissionRequest", json!({})).await.ends().await;
    assert!(dialog.status.success() && dialog.stdout.is_empty(), "the dialog is shown");
    assert!(stage.discord.seen().posts.is_empty());
}

#[tokio::test]
async fn a_stranger_decides_nothing() {
    let stage = Stage::with("").await;
    let hook = Hook::start(&stage, "PreToolUse", json!({})).await;
    let shown = prompt(&stage).await;
    let eve = stage.discord.person("Eve");
    let allow = shown.buttons.iter().find(|button| button.ends_with(":allow")).expect("a button");
    let click = stage.discord.click(stage.channel, shown.message, eve, allow);
    let told =
        |seen: &holdfast_testkit::discord::Seen| seen.acknowledged.get(&click).is_some_and(|ack| !ack.texts.is_empty());
    let seen = stage.discord.until("an answer to Eve", told).await;
    assert_eq!(seen.acknowledged[&click].texts, [("You may not do this here.".to_owned(), true)]);
    assert_eq!(stage.presses(&shown, ":deny").await, "Denied by Ann");
    assert_eq!(hook.answers().await["hookSpecificOutput"]["permissionDecision"], "deny");
}

#[tokio::test]
async fn a_session_that_goes_on_is_followed_as_soon_as_its_agent_says_so() {
    let stage = Stage::with("").await;
    let transcript = stage.path("resumed.jsonl");
    let said = |text: &str| {
        let message = json!({"role": "assistant", "content": [{"type": "text", "text": text}]});
        format!(
            "{}\n",
            json!({"type": "assistant", "sessionId": "s0", "isSidechain": false, "message": message,
            "timestamp": if text == "old" { "2026-01-01T00:00:00Z" } else { "2999-01-01T00:00:00Z" }})
        )
    };
    std::fs::write(&transcript, said("old")).expect("a transcript");
    let more = json!({"transcript_path": transcript, "source": "resume"});
    for _told in 0..2 {
        let output = Hook::start(&stage, "SessionStart", more.clone()).await.ends().await;
        assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    }
    let mut file = std::fs::OpenOptions::new().append(true).open(&transcript).expect("the transcript");
    file.write_all(said("new").as_bytes()).expect("it is written");
    stage.said("what the session says now", |text| text == "new").await;
    assert_eq!(stage.discord.seen().texts(stage.channel), ["new"]);
}
