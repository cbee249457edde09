//! `channel ask`: an agent's hook. A person decides in the channel whether a tool may run.
//!
//! It reads what Claude Code gives a `PreToolUse` or `PermissionRequest` hook, and answers in that hook's shape. Where
//! nobody can be asked, or nobody answers, a person decides at the terminal. For an agent that belongs to no channel
//! everything is as it would be without a hook.
//!
//! As a `SessionStart` hook it says which transcript is written from now on, and answers nothing.

mod preview;

use holdfast_core::chat::asks::{self, Verdict};
use holdfast_core::limits;
use holdfast_host::api::channel::{AskAnswer, AskPerson, Follow, Whereabouts, Withdraw, is_bound};
use holdfast_host::api::client::holder;
use holdfast_host::config;
use holdfast_host::paths::Dirs;
use holdfast_host::runtime;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::time::{Instant, timeout};

use crate::args::Folders;
use crate::commands::op::rand_key;
use crate::failure::Failure;
use crate::print;
use preview::preview;

/// The event of a session's beginning, also of one that goes on.
const STARTS: &str = "SessionStart";

/// What a hook is told.
#[derive(Deserialize)]
struct Hook {
    #[serde(default)]
    hook_event_name: String,
    #[serde(default)]
    session_id: Option<String>,
    #[serde(default)]
    transcript_path: Option<String>,
    #[serde(default)]
    cwd: Option<String>,
    #[serde(default)]
    tool_name: String,
    #[serde(default)]
    tool_input: Value,
    /// There for agents that keep rules of a session themselves.
    #[serde(default)]
    permission_suggestions: Option<Value>,
}

pub async fn ask(folders: &Folders, binding: Option<String>) -> Result<(), Failure> {
    let dirs = folders.dirs()?;
    let hook = told(tokio::io::stdin()).await?;
    let request = format!("hook-{:016x}{:016x}", rand_key(), rand_key());
    let at = Whereabouts {
        binding,
        session: hook.session_id.clone(),
        transcript: hook.transcript_path.clone(),
        folder: hook.cwd.clone(),
    };
    if hook.hook_event_name == STARTS {
        starts(&dirs, at).await;
        return Ok(());
    }
    let (preview, left_out) = asks::preview(&preview(&hook.tool_name, &hook.tool_input));
    let description = hook.tool_input["description"].as_str().unwrap_or_default();
    let mut order = AskPerson {
        at,
        again: false,
        request: request.clone(),
        tool: asks::tool(&hook.tool_name),
        description: description.chars().take(8 * limits::ASK_DESCRIPTION_MAX).collect(),
        preview,
        left_out,
    };
    let mut signals = runtime::signals()?;
    let answer = tokio::select! {
        answer = timeout(limits::ASK_LIFE + 2 * limits::ASK_PLACE, answered(&dirs, &mut order)) => {
            answer.unwrap_or(AskAnswer::Expired)
        }
        _ = signals.recv() => return withdrawn(&dirs, request).await,
        () = orphaned() => return withdrawn(&dirs, request).await,
    };
    if let (AskAnswer::NotBound, Some(name)) = (&answer, &order.at.binding) {
        return Err(Failure::plain(format!("there is no binding {name}")));
    }
    if let Some(answer) = shape(&hook, &answer) {
        print::json(&answer)?;
    }
    Ok(())
}

/// What the agent tells its hook. Whatever is wrong with it ends the hook with code 1, without an answer: of all codes only
/// 0, with an answer, and 2 decide anything, so that the terminal does.
async fn told(stdin: impl AsyncRead + Unpin) -> Result<Hook, Failure> {
    let mut text = Vec::new();
    let most = limits::HOOK_INPUT as u64;
    match timeout(limits::HOOK_TIME, stdin.take(most + 1).read_to_end(&mut text)).await {
        Ok(read) => _ = read?,
        Err(_) => {
            let seconds = limits::HOOK_TIME.as_secs();
            return Err(Failure::plain(format!("stdin did not end within {seconds} s; this is for an agent's hook")));
        }
    }
    if text.len() as u64 > most {
        return Err(Failure::plain(format!("stdin has more than {most} bytes")));
    }
    let no_hook = |why: &dyn std::fmt::Display| {
        Failure::plain(format!("stdin is not what a PreToolUse, PermissionRequest or SessionStart hook gets: {why}"))
    };
    let hook: Hook = serde_json::from_slice(&text).map_err(|e| no_hook(&e))?;
    if hook.tool_name.is_empty() && hook.hook_event_name != STARTS {
        return Err(no_hook(&"it names no tool"));
    }
    Ok(hook)
}

/// A session begins, or goes on: its transcript is followed from now on. The agent goes on whatever comes of it.
async fn starts(dirs: &Dirs, at: Whereabouts) {
    // A script's session is nobody's conversation.
    if std::env::var_os("CLAUDE_CODE_ENTRYPOINT").is_some_and(|from| from != "cli") {
        return;
    }
    let order = Follow { at };
    for nth in 1..=limits::HOOK_TRIES {
        let Ok(Some(holder)) = holder(dirs).await else { return };
        match holder.follow(&order).await {
            Err(error) if matches!(error.code.as_str(), "unavailable" | "busy") => {
                tokio::time::sleep(limits::HOOK_RETRY * nth).await;
            }
            Ok(()) | Err(_) => return,
        }
    }
}

/// The answer, through restarts of whoever is asked: the same request again is the same prompt. A Holdfast that was never
/// there is hardly waited for.
async fn answered(dirs: &Dirs, order: &mut AskPerson) -> AskAnswer {
    let mut alone = Instant::now();
    loop {
        let asked = Instant::now();
        let running = holder(dirs).await;
        let none = matches!(running, Ok(None));
        if let Ok(Some(holder)) = running {
            match holder.ask(order).await {
                Ok(answer) => return answer,
                // It was there, and went.
                Err(error) if error.code == "unavailable" && asked.elapsed() > limits::AGENT_AGAIN => {
                    alone = Instant::now();
                    order.again = true;
                }
                Err(error) if matches!(error.code.as_str(), "unavailable" | "busy") => {}
                Err(_) => return AskAnswer::CannotAsk,
            }
        }
        let patience = if none && !order.again { limits::ASK_ALONE } else { limits::ASK_PLACE };
        if alone.elapsed() >= patience {
            return if none { unasked(dirs, order).await } else { AskAnswer::CannotAsk };
        }
        tokio::time::sleep(limits::AGENT_AGAIN).await;
    }
}

/// Without a Holdfast the configuration alone says whether the agent has a channel.
async fn unasked(dirs: &Dirs, order: &AskPerson) -> AskAnswer {
    match config::read(&dirs.config_file()) {
        Ok(read) if !is_bound(&read.channel, &order.at).await => AskAnswer::NotBound,
        _ => AskAnswer::CannotAsk,
    }
}

/// Nobody waits any more: the prompt is taken back.
async fn withdrawn(dirs: &Dirs, request: String) -> Result<(), Failure> {
    let order = Withdraw { request };
    let told = async {
        if let Ok(Some(holder)) = holder(dirs).await {
            let _ = holder.withdraw(&order).await;
        }
    };
    let _ = tokio::time::timeout(2 * limits::AGENT_AGAIN, told).await;
    Err(Failure::plain("ended before anybody answered"))
}

/// Comes when the agent that started this is gone.
pub(super) async fn orphaned() {
    #[cfg(unix)]
    {
        let parent = std::os::unix::process::parent_id();
        while std::os::unix::process::parent_id() == parent {
            tokio::time::sleep(limits::AGENT_AGAIN).await;
        }
    }
    #[cfg(not(unix))]
    std::future::pending::<()>().await;
}

/// The answer as the hook's agent takes it. None: it goes on as if there were no hook.
fn shape(hook: &Hook, answer: &AskAnswer) -> Option<Value> {
    let (allow, why) = match answer {
        AskAnswer::Answered { verdict: Verdict::Deny, by } => (Some(false), format!("{by} denied it in the channel")),
        AskAnswer::Answered { verdict: Verdict::Session, by } if by.is_empty() => {
            (Some(true), "it was allowed for this session in the channel".to_owned())
        }
        AskAnswer::Answered { by, .. } => (Some(true), format!("{by} allowed it in the channel")),
        AskAnswer::Expired => (None, "nobody answered in the channel".to_owned()),
        AskAnswer::Withdrawn => (None, "the question in the channel was taken back".to_owned()),
        AskAnswer::NotBound => return None,
        AskAnswer::CannotAsk => (None, "nobody can be asked in the channel".to_owned()),
    };
    if hook.hook_event_name != "PermissionRequest" {
        let decision = match allow {
            Some(true) => "allow",
            Some(false) => "deny",
            None => "ask",
        };
        return Some(json!({"hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": decision,
            "permissionDecisionReason": why,
        }}));
    }
    let mut decision = match allow? {
        true => json!({"behavior": "allow"}),
        false => json!({"behavior": "deny", "message": why}),
    };
    let session = matches!(answer, AskAnswer::Answered { verdict: Verdict::Session, .. });
    if session && hook.permission_suggestions.is_some() {
        decision["updatedPermissions"] = json!([{
            "type": "addRules",
            "rules": [{"toolName": hook.tool_name}],
            "behavior": "allow",
            "destination": "session",
        }]);
    }
    Some(json!({"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hook(event: &str, suggestions: bool) -> Hook {
        let mut text = json!({"hook_event_name": event, "tool_name": "Bash", "tool_input": {"command": "ls"}});
        if suggestions {
            text["permission_suggestions"] = json!([]);
        }
        serde_json::from_value(text).unwrap()
    }

    fn by(verdict: Verdict) -> AskAnswer {
        AskAnswer::Answered { verdict, by: "Ann".into() }
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_hook_is_told_is_bounded_in_time_and_size() {
        let why = async |stdin| told(stdin).await.err().map(|failure: Failure| failure.message().to_owned());
        let (silent, _open) = tokio::io::duplex(64);
        let expected = "stdin did not end within 5 s; this is for an agent's hook";
        assert_eq!(why(silent).await.as_deref(), Some(expected));
        let endless = tokio::io::repeat(b' ');
        let expected = "stdin has more than 16777216 bytes";
        assert_eq!(told(endless).await.err().map(|failure| failure.message().to_owned()).as_deref(), Some(expected));
        let (read, mut write) = tokio::io::duplex(64);
        tokio::io::AsyncWriteExt::write_all(&mut write, br#"{"tool_name": "Bash"}"#).await.unwrap();
        drop(write);
        assert_eq!(told(read).await.unwrap().tool_name, "Bash");
    }

    #[test]
    fn before_a_tool_runs_the_answer_is_a_permission_decision() {
        let decision = |answer| shape(&hook("PreToolUse", false), &answer).unwrap()["hookSpecificOutput"].clone();
        assert_eq!(
            decision(by(Verdict::Allow)),
            json!({"hookEventName": "PreToolUse", "permissionDecision": "allow",
                "permissionDecisionReason": "Ann allowed it in the channel"})
        );
        assert_eq!(decision(by(Verdict::Session))["permissionDecision"], "allow");
        assert_eq!(decision(by(Verdict::Deny))["permissionDecision"], "deny");
        for nobody in [AskAnswer::Expired, AskAnswer::Withdrawn, AskAnswer::CannotAsk] {
            assert_eq!(decision(nobody)["permissionDecision"], "ask");
        }
    }

    #[test]
    fn an_agent_of_no_channel_goes_on_as_if_there_were_no_hook() {
        for event in ["PreToolUse", "PermissionRequest"] {
            assert_eq!(shape(&hook(event, false), &AskAnswer::NotBound), None);
        }
    }

    #[test]
    fn a_permission_dialog_is_answered_or_left_alone() {
        let decision = |suggestions, answer| {
            shape(&hook("PermissionRequest", suggestions), &answer)
                .map(|shape| shape["hookSpecificOutput"]["decision"].clone())
        };
        assert_eq!(decision(true, by(Verdict::Allow)), Some(json!({"behavior": "allow"})));
        assert_eq!(
            decision(true, by(Verdict::Session)),
            Some(json!({"behavior": "allow", "updatedPermissions": [{"type": "addRules",
                "rules": [{"toolName": "Bash"}], "behavior": "allow", "destination": "session"}]}))
        );
        assert_eq!(decision(false, by(Verdict::Session)), Some(json!({"behavior": "allow"})));
        let denied = json!({"behavior": "deny", "message": "Ann denied it in the channel"});
        assert_eq!(decision(true, by(Verdict::Deny)), Some(denied));
        assert_eq!(decision(true, AskAnswer::Expired), None);
    }
}
