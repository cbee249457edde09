//! What is said of the place where an agent is about to be bound.

use holdfast_testkit::home::Home;
use serde_json::{Value, json};

use super::deliveries::with_tmux;
use super::stage::Stage;

/// Binds another agent to a channel.
fn bind(channel: &str) -> [&str; 7] {
    ["channel", "bind", "other", "--channel", channel, "--transcript", "/srv/other.jsonl"]
}

async fn bound(home: &Home) -> Vec<String> {
    let shown = home.json(&["channel", "show", "--json"]).await;
    let bindings = shown["binding"].as_array().expect("bindings").clone();
    bindings.iter().map(|binding| binding["name"].as_str().expect("a name").to_owned()).collect()
}

#[tokio::test]
async fn a_channel_that_is_not_there_is_refused_and_nothing_is_bound() {
    let stage = Stage::with("deliver = \"mcp\"").await;
    let refused = stage.home.run(&[&bind("999")[..], &["--json"]].concat()).await;
    let said: Value = serde_json::from_slice(&refused.stderr).expect("JSON");
    assert_eq!((refused.status.code(), &said["error"]["code"]), (Some(1), &json!("not_found")), "{said}");
    let why = "the service knows no channel 999 that the bot may see: Unknown Channel (10003)";
    assert_eq!(said["error"]["message"], why);
    assert_eq!(bound(&stage.home).await, ["app"]);
}

#[tokio::test]
async fn a_channel_where_the_bot_may_not_write_is_bound_with_a_warning_and_a_good_one_without() {
    let stage = Stage::with("deliver = \"mcp\"").await;
    let (quiet, hidden, good) = (stage.discord.channel(), stage.discord.channel(), stage.discord.channel());
    stage.discord.silence(quiet, true);
    stage.discord.forbid(hidden, true);
    let answer = async |channel: u64| stage.home.json(&[&bind(&channel.to_string())[..], &["--json"]].concat()).await;
    let warned = async |channel: u64| {
        let answer = answer(channel).await;
        assert_eq!(answer["warnings"].as_array().map(Vec::len), Some(1), "{answer}");
        let warning = &answer["warnings"][0];
        assert_eq!(warning["code"], "channel_parked");
        warning["text"].as_str().expect("a text").to_owned()
    };
    let text = warned(quiet).await;
    assert!(text.starts_with("the bot lacks Send Messages"), "{text}");
    let text = warned(hidden).await;
    assert!(text.starts_with(&format!("channel {hidden} could not be looked at: ")), "{text}");
    assert_eq!(bound(&stage.home).await, ["app", "other"]);
    let answer = answer(good).await;
    assert_eq!((&answer["binding"], &answer["warnings"]), (&json!("other"), &Value::Null));
    assert!(answer["channel_name"].is_string(), "{answer}");
}

#[tokio::test]
async fn a_pane_that_is_not_there_is_bound_with_a_warning_also_while_nothing_runs() {
    let home = with_tmux("echo \"can't find window: agent\" >&2; exit 1");
    let mut stage = Stage::in_home(home, "", "deliver = \"mcp\"").await;
    let bind = ["channel", "bind", "app", "--deliver", "tmux", "--pane", "work:agent"];
    let text = "messages cannot be delivered yet: tmux knows no pane work:agent: can't find window: agent";
    for runs in [true, false] {
        if !runs {
            stage.process.stop().await;
        }
        let answer = stage.home.json(&[&bind[..], &["--json"]].concat()).await;
        assert_eq!(answer["warnings"][0]["code"], "pane_missing", "{runs}: {answer}");
        assert!(answer["warnings"][0]["text"].as_str().is_some_and(|said| said.starts_with(text)), "{runs}: {answer}");
        let said = stage.home.ok(&bind).await;
        assert!(said.lines().any(|line| line.starts_with(&format!("! {text}"))), "{runs}: {said}");
    }
}
