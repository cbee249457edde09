//! `channel ask`: an agent's hook. A person decides in the channel whether a tool may run.
//!
//! It reads what Claude Code gives a `PreToolUse` or `PermissionRequest` hook, and answers in that hook's shape. Where
//! nobody can be asked, or nobody answers, a person decides at the terminal. For an agent that belongs to no channel
//! everything is as it would be without a hook.

mod preview;

use std::io::Read as _;

use holdfast_core::chat::asks::{self, Verdict};
use holdfast_core::limits;
use holdfast_host::api::channel::{AskAnswer, AskPerson, Whereabouts, Withdraw};
use holdfast_host::api::client::holder;
use holdfast_host::paths::Dirs;
use holdfast_host::runtime;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::args::Folders;
use crate::commands::op::rand_key;
use crate::failure::Failure;
use crate::print;
use preview::preview;

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
    tool_name: String,
    #[serde(default)]
    tool_input: Value,
    /// There for agents that keep rules of a session themselves.
    #[serde(default)]
    permission_suggestions: Option<Value>,
}

pub async fn ask(folders: &Folders, binding: Option<String>) -> Result<(), Failure> {
    let dirs = folders.dirs()?;
    let mut text = String::new();
    std::io::stdin().lock().take(limits::HOOK_INPUT as u64).read_to_string(&mut text)?;
    let hook: Hook = serde_json::from_str(&text)
        .map_err(|e| Failure::plain(format!("stdin is not what a PreToolUse or PermissionRequest hook gets: {e}")))?;
    let request = format!("hook-{:016x}{:016x}", rand_key(), rand_key());
    let at = Whereabouts {
        binding,
        session: hook.session_id.clone(),
        transcript: hook.transcript_path.clone(),
        folder: hook.cwd.clone(),
    };
    let (preview, left_out) = asks::preview(&preview(&hook.tool_name, &hook.tool_input));
    let description = hook.tool_input["description"].as_str().unwrap_or_default();
    let order = AskPerson {
        at,
        request: request.clone(),
        tool: hook.tool_name.chars().take(limits::INBOX_NAME_MAX).collect(),
        description: description.chars().take(8 * limits::ASK_DESCRIPTION_MAX).collect(),
        preview,
        left_out,
    };
    let mut signals = runtime::signals()?;
    let answer = tokio::select! {
        answer = tokio::time::timeout(limits::ASK_LIFE + 2 * limits::ASK_PLACE, answered(&dirs, &order)) => {
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

/// The answer, through restarts of whoever is asked: the same request again is the same prompt.
async fn answered(dirs: &Dirs, order: &AskPerson) -> AskAnswer {
    let mut alone = Instant::now();
    loop {
        let asked = Instant::now();
        if let Ok(Some(holder)) = holder(dirs).await {
            match holder.ask(order).await {
                Ok(answer) => return answer,
                // It was there, and went.
                Err(error) if error.code == "unavailable" && asked.elapsed() > limits::AGENT_AGAIN => {
                    alone = Instant::now();
                }
                Err(error) if matches!(error.code.as_str(), "unavailable" | "busy") => {}
                Err(_) => return AskAnswer::CannotAsk,
            }
        }
        if alone.elapsed() >= limits::ASK_PLACE {
            return AskAnswer::CannotAsk;
        }
        tokio::time::sleep(limits::AGENT_AGAIN).await;
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
async fn orphaned() {
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
