//! The channel, from a token to a person who is heard, by commands alone.

use holdfast_testkit::discord::FakeDiscord;
use holdfast_testkit::home::Home;
use holdfast_testkit::process::Process;
use serde_json::{Value, json};

const BOT: u64 = 4_200_000_000_042;
/// Nobody listens there: the link rests.
const SERVE: [&str; 3] = ["serve", "--relay", "http://127.0.0.1:9"];

struct Stand {
    discord: FakeDiscord,
    home: Home,
    channel: String,
    _process: Process,
}

/// A process and a channel; no bot is set up yet.
async fn stand() -> Stand {
    let (discord, home) = (FakeDiscord::start().await, Home::new());
    let process = home.start(&SERVE).await;
    let channel = discord.channel().to_string();
    Stand { discord, home, channel, _process: process }
}

impl Stand {
    async fn set_up(&self, more: &[&str]) -> std::process::Output {
        let url = self.discord.url("a");
        let args = [&["channel", "setup", "--base-url", &url], more].concat();
        self.home.run_with(&args, &format!("{}\n", self.discord.bot(BOT))).await
    }

    fn transcript(&self) -> String {
        let path = self.home.workspace().join("s.jsonl");
        std::fs::write(&path, "").expect("a transcript");
        path.display().to_string()
    }
}

fn said(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[tokio::test]
async fn set_up_proves_the_token_binds_checks_and_posts_a_test_message() {
    let stand = stand().await;
    let folder = stand.home.workspace().display().to_string();
    let more = ["--channel", &stand.channel, "--project", &folder, "--name", "app", "--test"];
    let output = stand.set_up(&more).await;
    let said = said(&output);
    assert!(output.status.success(), "{said}");
    let place = format!("#channel-{} in Workshop: the bot may read and write", stand.channel);
    for part in
        ["the token belongs to ", &place, "the service gives the bot what people write", "the test message is there"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
    let seen = stand.discord.seen();
    let channel: u64 = stand.channel.parse().expect("an id");
    assert_eq!(seen.texts(channel), ["Holdfast test message for **app**."]);
    let shown = stand.home.json(&["channel", "show", "--json"]).await;
    assert_eq!((&shown["backend"], &shown["binding"][0]["name"]), (&json!("discord"), &json!("app")));
    assert_eq!(shown["binding"][0]["project"], json!(folder));
    let status = stand.home.ok(&["status"]).await;
    assert!(status.contains("channel: speaks for the discord bot, 1 agent"), "{status}");
}

#[tokio::test]
async fn a_check_says_what_the_bot_lacks_and_ends_with_a_code_of_its_own() {
    let stand = stand().await;
    assert!(stand.set_up(&["--json"]).await.status.success());
    let ok = stand.home.run(&["channel", "check", "--channel", &stand.channel]).await;
    assert!(ok.status.success(), "{}", said(&ok));
    stand.discord.silence(stand.channel.parse().expect("an id"), true);
    stand.discord.intents(0);
    let bad = stand.home.run(&["channel", "check", "--channel", &stand.channel]).await;
    assert_eq!(bad.status.code(), Some(5), "{}", said(&bad));
    for part in ["the bot lacks Send Messages", "Message Content Intent", "oauth2/authorize?client_id=4200000000042"] {
        assert!(said(&bad).contains(part), "{part}: {}", said(&bad));
    }
    let doctor = stand.home.run(&["doctor"]).await;
    assert!(said(&doctor).contains("Message Content Intent"), "{}", said(&doctor));
}

#[tokio::test]
async fn a_binding_is_changed_while_it_runs_and_what_cannot_be_is_refused_by_its_key() {
    let stand = stand().await;
    assert!(stand.set_up(&["--json"]).await.status.success());
    let transcript = stand.transcript();
    let bind = ["channel", "bind", "app", "--channel", &stand.channel, "--transcript", &transcript];
    stand.home.ok(&bind).await;
    stand.home.ok(&["channel", "bind", "app", "--deliver", "inbox", "--mention"]).await;
    let shown = stand.home.json(&["channel", "show", "--json"]).await;
    let project = stand.home.workspace().display().to_string();
    let binding = &shown["binding"][0];
    assert_eq!(
        (&binding["deliver"], &binding["mention"], &binding["transcript"]),
        (&json!("inbox"), &json!(true), &json!(transcript))
    );
    assert_eq!(
        (&shown["now"]["bindings"][0]["name"], &shown["now"]["bindings"][0]["adapter"]),
        (&json!("app"), &json!("inbox"))
    );
    for (args, why) in [
        (&["channel", "bind", "app", "--deliver", "tmux"][..], "\"tmux\" needs `pane`"),
        (
            &["channel", "bind", "web", "--channel", &stand.channel, "--project", &project],
            "binding `app` has this channel already",
        ),
        (&["channel", "bind", "web", "--channel", "agent-log", "--project", &project], "the channel's id is a number"),
        (&["channel", "bind", "app", "--project", "nowhere"], "there is no folder "),
        (&["channel", "bind", "web", "--deliver", "tmux", "--pane", "a:0"], "there is no binding `web`"),
        (&["channel", "unbind", "web"], "there is no binding `web`"),
        (&["channel", "test", "web"], "there is no binding `web`; `holdfast channel show` lists them"),
        (&["channel", "retry", "web"], "there is no binding `web`"),
        (&["channel", "people", "--admit", "ann"], "\"ann\" is no person's id, which is a number"),
    ] {
        let output = stand.home.run(args).await;
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert!(said(&output).contains(why), "{args:?}: {}", said(&output));
    }
    let nothing = stand.home.run(&["channel", "bind", "app"]).await;
    assert_eq!(nothing.status.code(), Some(2), "it says too little");
    assert!(said(&nothing).contains("nothing to change: name at least one option"), "{}", said(&nothing));
    stand.home.ok(&["channel", "unbind", "app"]).await;
    let shown = stand.home.json(&["channel", "show", "--json"]).await;
    assert_eq!((&shown["binding"], &shown["now"]["bindings"]), (&json!([]), &json!([])));
}

#[tokio::test]
async fn somebody_is_paired_by_the_code_the_bot_told_them_and_dismissed() {
    let stand = stand().await;
    let ann = stand.discord.person("Ann");
    assert!(stand.set_up(&["--json"]).await.status.success());
    let bind = [
        "channel",
        "bind",
        "app",
        "--channel",
        &stand.channel,
        "--transcript",
        &stand.transcript(),
        "--deliver",
        "inbox",
    ];
    stand.home.ok(&bind).await;
    stand.home.ok(&["channel", "test", "app"]).await;
    let shown = stand.home.json(&["channel", "show", "--json"]).await;
    assert_eq!(shown["now"]["bindings"][0]["waiting_out"], 0, "what is told to be there waits no more: {shown}");
    assert_eq!(stand.home.json(&["channel", "pair", "--json"]).await, json!({"minutes": 10}));
    let wrong = stand.home.run(&["channel", "pair", "AAAAAA", "--json"]).await;
    assert!(said(&wrong).contains("wrong_code"), "{}", said(&wrong));
    let channel: u64 = stand.channel.parse().expect("an id");
    stand.discord.write(channel, ann, format!("<@{BOT}> hello").as_str());
    let told = |text: &str| text.contains("code");
    let seen = stand.discord.until("a code", |seen| seen.texts(channel).iter().any(|text| told(text))).await;
    let text = seen.texts(channel).into_iter().find(|text| told(text)).expect("it was seen").to_owned();
    let is_code = |word: &&str| word.len() == 6 && word.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase());
    let code = text.split(|c: char| !c.is_ascii_alphanumeric()).find(is_code).expect("a code in it");
    let admitted = stand.home.json(&["channel", "pair", code, "--json"]).await;
    assert_eq!(admitted, json!({"person": ann.to_string(), "name": "Ann"}));
    let people: Value = stand.home.json(&["channel", "people", "--json"]).await;
    assert_eq!(people, json!([{"id": ann.to_string(), "name": "Ann"}]));
    stand.home.ok(&["channel", "people", "--dismiss", &ann.to_string()]).await;
    assert_eq!(stand.home.json(&["channel", "people", "--json"]).await, json!([]));
}

#[tokio::test]
async fn bindings_and_people_are_kept_where_nothing_runs_and_what_needs_the_seat_says_so() {
    let home = Home::new();
    let project = home.workspace().display().to_string();
    for (args, code) in [
        (&["channel", "bind", "app", "--channel", "12", "--project", "/not/there", "--json"][..], "not_found"),
        (&["channel", "people", "--admit", "abc", "--json"], "invalid_request"),
    ] {
        let refused = home.run(args).await;
        assert_eq!(refused.status.code(), Some(1), "{args:?}");
        assert_eq!(serde_json::from_str::<Value>(&said(&refused)).expect("JSON")["error"]["code"], code, "{args:?}");
    }
    home.ok(&["channel", "bind", "app", "--channel", "12", "--project", &project]).await;
    home.ok(&["channel", "people", "--admit", "81"]).await;
    let config = std::fs::read_to_string(home.config().join("config.toml")).expect("config.toml");
    assert_eq!(
        config,
        format!(
            "[channel]\npeople = [\"81\"]\n[[channel.binding]]\nname = \"app\"\nchannel = \"12\"\nproject = {project:?}\n"
        )
    );
    for args in [&["channel", "pair"][..], &["channel", "test", "app"], &["channel", "retry"]] {
        assert_eq!(home.run(args).await.status.code(), Some(3), "{args:?}");
    }
    assert_eq!(home.json(&["channel", "candidates", "--json"]).await, json!([]));
}
