//! `holdfast channel ask` where nobody can be asked: it ends soon, and never as an answer.

use std::process::{Output, Stdio};
use std::time::Duration;

use holdfast_testkit::home::Home;
use serde_json::{Value, json};

/// Codes by which a hook decides something: 0 with an answer on stdout, and 2.
fn decides(output: &Output) -> bool {
    output.status.code() == Some(2) || (output.status.success() && !output.stdout.is_empty())
}

fn told(home: &Home, event: &str) -> String {
    let told = json!({
        "session_id": "s1",
        "transcript_path": "/none.jsonl",
        "cwd": home.workspace(),
        "hook_event_name": event,
        "tool_name": "Bash",
        "tool_input": {"command": "ls"},
    });
    told.to_string()
}

fn bound(home: &Home) {
    let project = home.workspace();
    home.write_config(&format!(
        "[channel]\nbackend = \"discord\"\nbot = \"4242\"\n\n[[channel.binding]]\nname = \"app\"\nchannel = \"7\"\n\
         project = \"{}\"\n",
        project.display()
    ));
}

#[tokio::test]
async fn without_a_holdfast_the_terminal_decides_and_an_agent_of_no_channel_notices_nothing() {
    let home = Home::new();
    let nobody = home.run_with(&["channel", "ask"], &told(&home, "PreToolUse")).await;
    assert!(nobody.status.success() && nobody.stdout.is_empty(), "{nobody:?}");
    bound(&home);
    let asked = home.run_with(&["channel", "ask"], &told(&home, "PreToolUse")).await;
    let answer: Value = serde_json::from_slice(&asked.stdout).expect("JSON");
    let expected = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "ask",
        "permissionDecisionReason": "nobody can be asked in the channel"}});
    assert_eq!((asked.status.code(), answer), (Some(0), expected));
    let dialog = home.run_with(&["channel", "ask"], &told(&home, "PermissionRequest")).await;
    assert!(dialog.status.success() && dialog.stdout.is_empty(), "the dialog is shown: {dialog:?}");
}

#[tokio::test]
async fn what_is_no_hooks_input_decides_nothing() {
    let home = Home::new();
    bound(&home);
    for (input, why) in [("", "stdin is not what"), ("{}", "stdin is not what"), ("[1, 2", "stdin is not what")] {
        let output = home.run_with(&["channel", "ask"], input).await;
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!decides(&output) && stderr.contains(why), "{input:?}: {output:?}");
    }
}

#[tokio::test]
async fn a_stdin_that_never_ends_is_not_waited_for() {
    let home = Home::new();
    let mut command = home.command(&["channel", "ask"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut hook = command.spawn().expect("the hook");
    let open = hook.stdin.take().expect("piped");
    let output = tokio::time::timeout(Duration::from_secs(60), hook.wait_with_output());
    let output = output.await.expect("its end").expect("its output");
    drop(open);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{output:?}");
}

#[tokio::test]
async fn a_wrong_command_line_of_a_hook_does_not_stop_its_tool() {
    let home = Home::new();
    for wrong in [
        &["channel", "ask", "--nonsense"][..],
        &["channel", "ask", "--binding"],
        &["channel", "ask", "a", "b"],
        &["--json", "channel", "ask", "--nonsense"],
        &["channel", "--nonsense", "ask"],
    ] {
        let output = home.run(wrong).await;
        assert_eq!(output.status.code(), Some(1), "{wrong:?}: {output:?}");
        assert!(output.stdout.is_empty(), "{wrong:?}: {output:?}");
    }
    assert_eq!(
        home.run(&["channel", "show", "--nonsense"]).await.status.code(),
        Some(2),
        "of others it is told as such"
    );
}
