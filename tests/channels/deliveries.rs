//! What people write reaches their agent, once, or they are told.

use holdfast_testkit::discord::Written;
use holdfast_testkit::home::Home;
use holdfast_testkit::stand::{alive, until};
use serde_json::Value;

use super::stage::{Stage, program};

#[tokio::test]
async fn a_message_is_the_input_of_the_agents_program() {
    let home = Home::new();
    keeps(&home);
    let stage = Stage::in_home(home, "", "deliver = \"command\"\ncommand = [\"$HOME/agent\", \"$HOME\"]").await;
    let message = stage.says("Hello, `agent`\nhow are you?");
    let got = stage.reads("got", |text| !text.is_empty()).await;
    let (heading, text) = got.split_once("\n\n").expect("a heading");
    let expected = format!("From: Ann ({})\nChannel: {}\nMessage: {message}\nTime: ", stage.ann, stage.channel);
    assert!(heading.starts_with(&expected), "{heading}");
    assert_eq!(text, "Hello, `agent`\nhow are you?\n");
}

#[tokio::test]
async fn a_failed_delivery_is_told_to_its_sender_and_tried_again() {
    let home = Home::new();
    let script = r#"[ -e "$1/well" ] || { echo "no session" >&2; exit 4; }
        cat > "$1/got.new" && mv "$1/got.new" "$1/got""#;
    program(&home, "agent", script);
    let stage = Stage::in_home(home, "", "deliver = \"command\"\ncommand = [\"$HOME/agent\", \"$HOME\"]").await;
    let message = stage.says("Hello");
    let told = stage.said("the failure", |text| text.starts_with("Not delivered yet")).await;
    assert!(told.content.ends_with("ended with code 4: no session"), "{}", told.content);
    assert_eq!(told.reply_to, Some(message));
    std::fs::write(stage.path("well"), "").expect("the cure");
    stage.said("the delivery", |text| text == "Delivered now.").await;
    assert!(stage.reads("got", |text| !text.is_empty()).await.ends_with("\n\nHello\n"));
}

#[tokio::test]
async fn stop_ends_the_agents_program_and_what_follows_is_delivered() {
    let home = Home::new();
    let script = r#"read line; text=$(tail -1)
        echo "$text" >> "$1/log"
        if [ "$text" = long ]; then sleep 1000 & wait; echo ended >> "$1/log"; fi"#;
    program(&home, "agent", script);
    let stage = Stage::in_home(home, "", "deliver = \"command\"\ncommand = [\"$HOME/agent\", \"$HOME\"]").await;
    stage.says("long");
    stage.reads("log", |text| text == "long\n").await;
    stage.says("/stop");
    stage.said("an answer", |text| text == "Stopped.").await;
    stage.says("next");
    assert_eq!(stage.reads("log", |text| text.ends_with("next\n")).await, "long\nnext\n");
}

/// A holder is killed while the agent's program has the message.
async fn perhaps(stage: &mut Stage, began: &str) {
    let message = stage.says("Deploy");
    stage.reads(began, |text| text == "x\n").await;
    let left = std::fs::read_to_string(stage.path("pid"));
    stage.dies_and_comes_again().await;
    let told = stage.said("the doubt", |text| text.starts_with("This may have been delivered")).await;
    assert_eq!((told.reply_to, told.buttons.len()), (Some(message), 1));
    if let Ok(pid) = left {
        let pid = pid.trim().parse().expect("a pid");
        assert!(until(|| !alive(pid)).await, "what the killed holder had started is ended");
    }
    assert_eq!(stage.reads(began, |_| true).await, "x\n", "it is not delivered again by itself");
    std::fs::write(stage.path("go"), "").expect("a mark");
    stage.presses(&told, "").await;
    stage.reads(began, |text| text == "x\nx\n").await;
}

#[tokio::test]
async fn killed_while_the_agents_program_runs_the_sender_decides() {
    let home = Home::new();
    let script = r#"echo $$ > "$1/pid"; echo x >> "$1/began"; [ -e "$1/go" ] || exec sleep 1000
        cat > "$1/got.new" && mv "$1/got.new" "$1/got""#;
    program(&home, "agent", script);
    let command = "deliver = \"command\"\ncommand = [\"$HOME/agent\", \"$HOME\"]";
    let mut stage = Stage::in_home(home, "", command).await;
    perhaps(&mut stage, "began").await;
    assert!(stage.reads("got", |text| !text.is_empty()).await.ends_with("\n\nDeploy\n"));
}

#[tokio::test]
async fn while_a_pane_is_gone_the_sender_is_told_and_the_message_is_typed_once_it_is_there() {
    let script = r#"home=${0%/bin/tmux}
        case "$1" in
        display-message) [ -e "$home/there" ] || { echo "can't find window: agent" >&2; exit 1; }; echo "%1 0 0";;
        load-buffer) cat > "$home/text";;
        send-keys) echo "$*" >> "$home/keys";;
        esac"#;
    let stage = Stage::in_home(with_tmux(script), "", "deliver = \"tmux\"\npane = \"work:agent\"").await;
    let message = stage.says("Hello");
    let told = stage.said("the failure", |text| text.starts_with("Not delivered yet")).await;
    let why = "Not delivered yet, tried again: can't find window: agent";
    assert_eq!((told.content.as_str(), told.reply_to), (why, Some(message)));
    std::fs::write(stage.path("there"), "").expect("the pane");
    stage.said("the delivery", |text| text == "Delivered now.").await;
    assert_eq!(stage.reads("text", |_| true).await, "Hello");
    assert_eq!(stage.reads("keys", |_| true).await, "send-keys -t %1 Enter\n");
    assert_eq!(stage.discord.seen().texts(stage.channel), [why, "Delivered now."]);
}

#[tokio::test]
async fn a_message_whose_folder_is_removed_is_told_of_and_put_there_again() {
    let stage = Stage::with("deliver = \"inbox\"").await;
    let message = stage.says("Hello");
    let new = has_a_file(&stage).await;
    std::fs::rename(&new, new.with_file_name("away")).expect("it is removed");
    let told = stage.said("the failure", |text| text.starts_with("Not delivered yet")).await;
    assert!(told.content.ends_with("inbox/app/new: it was removed"), "{}", told.content);
    assert_eq!(told.reply_to, Some(message));
    has_a_file(&stage).await;
    let file = std::fs::read_dir(&new).expect("the folder").next().expect("a file").expect("readable").path();
    std::fs::remove_file(file).expect("it is taken");
    stage.said("the delivery", |text| text == "Delivered now.").await;
    assert_eq!(stage.discord.seen().texts(stage.channel).len(), 2);
}

#[tokio::test]
async fn killed_while_a_text_is_pasted_the_sender_decides() {
    // A tmux that hangs between the paste and its end.
    let script = r#"home=${0%/bin/tmux}
        case "$1" in
        display-message) echo "%1 0 0";;
        load-buffer) cat > "$home/text";;
        paste-buffer) echo x >> "$home/began"; [ -e "$home/go" ] || exec sleep 1000;;
        send-keys) echo "$*" > "$home/keys";;
        esac"#;
    let mut stage = Stage::in_home(with_tmux(script), "", "deliver = \"tmux\"\npane = \"work:agent\"").await;
    perhaps(&mut stage, "began").await;
    assert_eq!(stage.reads("keys", |text| !text.is_empty()).await, "send-keys -t %1 Enter\n");
    assert_eq!(stage.reads("text", |_| true).await, "Deploy");
}

#[tokio::test]
async fn a_message_in_the_agents_folder_survives_a_kill_and_the_next_follows_it() {
    let mut stage = Stage::with("deliver = \"inbox\"").await;
    let (first, second) = (stage.says("one"), stage.says("two"));
    let new = stage.seat().join("inbox/app/new");
    let take = async |message: u64| {
        let waiting = async {
            loop {
                let entries = std::fs::read_dir(&new).into_iter().flatten().flatten();
                if let Some(entry) = entries.last()
                    && let Ok(text) = std::fs::read_to_string(entry.path())
                    && let Ok(letter) = serde_json::from_str::<Value>(&text)
                    && letter["meta"]["message_id"].as_str() == Some(message.to_string().as_str())
                {
                    return (entry.path(), letter);
                }
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(super::stage::PATIENCE, waiting).await.expect("the message in time")
    };
    take(first).await;
    stage.dies_and_comes_again().await;
    let (path, letter) = take(first).await;
    assert_eq!(letter["content"], "one");
    std::fs::remove_file(path).expect("taken");
    let (path, letter) = take(second).await;
    assert_eq!(letter["content"], "two");
    std::fs::remove_file(path).expect("taken");
    stage.says("/stop");
    stage.said("an answer", |text| text.contains("Asked the agent to stop")).await;
    assert!(stage.seat().join("inbox/app/stop").exists());
    assert!(!stage.discord.seen().texts(stage.channel).iter().any(|text| text.contains("may have been delivered")));
}

#[tokio::test]
async fn files_and_what_was_said_aloud_come_with_a_message() {
    let home = Home::new();
    keeps(&home);
    program(&home, "hear", r#"echo "please deploy $(cat "$1")""#);
    let voice = "voice = [\"$HOME/hear\"]";
    let stage = Stage::in_home(home, voice, "deliver = \"command\"\ncommand = [\"$HOME/agent\", \"$HOME\"]").await;
    let file = |name: &str, kind: &str, bytes: &[u8]| (name.to_owned(), kind.to_owned(), bytes.to_vec());
    let files = vec![
        file("shot.png", "image/png", b"\x89PNG"),
        file("voice.ogg", "audio/ogg", b"now"),
        file("virus.exe", "application/x-msdownload", b"MZ"),
    ];
    stage.discord.write(stage.channel, stage.ann, Written { files, ..Written::default() });
    let got = stage.reads("got", |text| !text.is_empty()).await;
    let (heading, text) = got.split_once("\n\n").expect("a heading");
    let paths: Vec<&str> = heading.lines().filter_map(|line| line.strip_prefix("File: ")).collect();
    assert_eq!(paths.len(), 2, "{heading}");
    assert_eq!(std::fs::read(paths[0]).expect("the picture"), b"\x89PNG");
    assert_eq!(text, "please deploy now\n[attachment not fetched: virus.exe is of kind application/x-msdownload]\n");
}

/// Messages of `app` go to the program `agent` from now on.
async fn goes_to_the_program(stage: &Stage) {
    let (agent, home) = (stage.path("agent"), stage.path(""));
    let program = [agent.to_str().expect("a path"), home.to_str().expect("a path")];
    stage.home.ok(&["channel", "bind", "app", "--deliver", "command", "--", program[0], program[1]]).await;
}

/// The folder in which a message waits for its agent.
async fn has_a_file(stage: &Stage) -> std::path::PathBuf {
    let new = stage.seat().join("inbox/app/new");
    let waits = async {
        while std::fs::read_dir(&new).map_or(0, Iterator::count) == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(super::stage::PATIENCE, waits).await.expect("a file");
    new
}

/// A home whose `tmux` is this script.
pub fn with_tmux(script: &str) -> Home {
    let mut home = Home::new();
    program(&home, "bin/tmux", script);
    let folder = home.data().parent().expect("a home").join("bin");
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").expect("PATH"));
    home.set("PATH", &path);
    home
}

/// A program that keeps the message it is given.
fn keeps(home: &Home) {
    program(home, "agent", r#"cat > "$1/got.new" && mv "$1/got.new" "$1/got""#);
}

#[tokio::test]
async fn what_waits_in_a_folder_goes_to_the_program_that_is_bound_now_and_to_nobody_else() {
    let home = Home::new();
    keeps(&home);
    let stage = Stage::in_home(home, "", "deliver = \"inbox\"").await;
    stage.says("Hello");
    let new = has_a_file(&stage).await;
    goes_to_the_program(&stage).await;
    assert!(stage.reads("got", |text| !text.is_empty()).await.ends_with("\n\nHello\n"));
    assert_eq!(std::fs::read_dir(&new).expect("the folder").count(), 0, "the agent behind the folder cannot take it");
    assert!(stage.discord.seen().posts.is_empty(), "nobody is told of a doubt");
}

#[tokio::test]
async fn what_a_killed_holder_left_in_a_folder_goes_to_the_program_that_is_bound_by_then() {
    let home = Home::new();
    keeps(&home);
    let mut stage = Stage::in_home(home, "", "deliver = \"inbox\"").await;
    stage.says("Hello");
    let new = has_a_file(&stage).await;
    stage.process.kill_9().await;
    let text = std::fs::read_to_string(stage.home.config().join("config.toml")).expect("config.toml");
    let (agent, home) = (stage.path("agent"), stage.path(""));
    let command = format!("deliver = \"command\"\ncommand = [\"{}\", \"{}\"]", agent.display(), home.display());
    stage.home.write_config(&text.replace("deliver = \"inbox\"", &command));
    stage.comes_again().await;
    assert!(stage.reads("got", |text| !text.is_empty()).await.ends_with("\n\nHello\n"));
    assert_eq!(std::fs::read_dir(&new).expect("the folder").count(), 0);
    assert!(stage.discord.seen().posts.is_empty(), "nobody is told of a doubt");
}

#[tokio::test]
async fn what_an_agents_process_had_in_its_hands_is_given_to_another_only_if_its_sender_says_so() {
    let home = Home::new();
    keeps(&home);
    let stage = Stage::in_home(home, "", "deliver = \"mcp\"").await;
    let message = stage.says("Hello");
    let _listens = stage.hears_of("Hello").await;
    goes_to_the_program(&stage).await;
    let told = stage.said("the doubt", |text| text.starts_with("This may have been delivered")).await;
    assert_eq!(told.reply_to, Some(message));
    assert!(!stage.path("got").exists());
    stage.presses(&told, "").await;
    assert!(stage.reads("got", |text| !text.is_empty()).await.ends_with("\n\nHello\n"));
}

#[tokio::test]
async fn what_waits_for_an_agent_that_is_unbound_is_told_to_its_sender() {
    let stage = Stage::with("deliver = \"mcp\"").await;
    let message = stage.says("Hello");
    let waiting = async {
        while stage.home.json(&["status", "--json"]).await["channels"]["bindings"][0]["waiting_in"] != 1 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(super::stage::PATIENCE, waiting).await.expect("it waits");
    stage.home.ok(&["channel", "bind", "app", "--deliver", "none"]).await;
    let told = stage.said("that", |text| text.ends_with("this was not delivered.")).await;
    assert_eq!(told.reply_to, Some(message));
}
