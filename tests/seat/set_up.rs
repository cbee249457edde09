//! Setting a channel up, and what the service may say.

use super::*;

const ON: [&str; 4] = ["channel", "setup", "--json", "--base-url"];

#[tokio::test]
async fn a_bot_is_set_up_used_shown_and_forgotten_while_it_runs_and_its_token_is_nowhere() {
    let telegram = FakeTelegram::start().await;
    let (token, home) = (telegram.bot(BOT), Home::new());
    let process = home.start(&SERVE).await;
    let a = Contender { name: "a".into(), home, process };
    let none = a.home.run(&["seat", "take"]).await;
    assert!(String::from_utf8_lossy(&none.stderr).contains("holdfast channel setup"));
    let url = telegram.url("a");
    let args = [&ON[..], &[url.as_str()]].concat();
    let set = a.home.run_with(&args, &format!("{token}\n")).await;
    assert!(set.status.success(), "{}", String::from_utf8_lossy(&set.stderr));
    let set: Value = serde_json::from_slice(&set.stdout).expect("JSON");
    assert_eq!(set, json!({"backend": "telegram", "bot": BOT.to_string(), "name": format!("@bot_{BOT}")}));
    a.is("serving").await;
    // Set up once more, nothing has changed.
    let again = a.home.run_with(&args, &format!("{token}\n")).await;
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
    assert_eq!(a.is("serving").await["generation"], 1, "one set up is one start of the seat");
    // Each set up proves the token, and the seat asks once more who it is.
    assert_eq!(telegram.seen().count("a", "getMe"), 3);
    let shown = a.home.json(&["channel", "show", "--json"]).await;
    assert_eq!((&shown["bot"], &shown["on_start"]), (&json!(BOT.to_string()), &json!("if-vacant")));

    telegram.message();
    telegram.revoke(&token);
    a.is("failed").await;
    let requests = telegram.seen().requests.len();
    a.home.ok(&["channel", "remove"]).await;
    assert_eq!(a.home.run(&["seat", "show"]).await.status.code(), Some(1));
    let secret = token.split_once(':').expect("a token").1;
    assert_eq!(a.told(secret), 0, "the log");
    assert!(!a.process.log().contains(secret));
    let kept = std::fs::read_to_string(a.home.data().join("secrets.json")).expect("secrets");
    let config = std::fs::read_to_string(a.home.config().join("config.toml")).expect("config");
    assert!(!kept.contains(secret) && !config.contains(secret));
    assert_eq!(telegram.seen().requests.len(), requests, "a bad token is not tried again");
}

#[tokio::test]
async fn a_token_that_is_none_is_refused_and_nothing_is_kept() {
    let telegram = FakeTelegram::start().await;
    let home = Home::new();
    let url = telegram.url("a");
    let args = [&ON[..], &[url.as_str()]].concat();
    for (token, code) in [("hello", "invalid_request"), ("1:wrong-TOKEN_0000", "token_refused")] {
        let refused = home.run_with(&args, token).await;
        assert_eq!(refused.status.code(), Some(1));
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(said.contains(code) && !said.contains("wrong-TOKEN"), "{said}");
    }
    let elsewhere = [&ON[..], &["http://telegram.example"]].concat();
    assert!(!home.run_with(&elsewhere, &telegram.bot(BOT)).await.status.success());
    assert!(!home.config().join("config.toml").exists() && !home.data().join("secrets.json").exists());
}

#[tokio::test]
async fn another_bot_takes_the_place_of_the_first_whose_token_is_forgotten() {
    let telegram = FakeTelegram::start().await;
    let home = Home::new();
    let url = telegram.url("a");
    let args = [&ON[..], &[url.as_str()]].concat();
    let (first, second, third) = (telegram.bot(BOT), telegram.bot(BOT + 1), telegram.bot(BOT + 2));
    let kept = || std::fs::read_to_string(home.data().join("secrets.json")).expect("secrets");
    for token in [&first, &second] {
        assert!(home.run_with(&args, token).await.status.success());
    }
    assert!(kept().contains(&second) && !kept().contains(&first));
    let _process = home.start(&SERVE).await;
    assert!(home.run_with(&args, &third).await.status.success());
    assert!(kept().contains(&third) && !kept().contains(&second));
}

#[tokio::test]
async fn a_bad_token_is_told_once_and_frees_the_seat() {
    let telegram = FakeTelegram::start().await;
    let home = Home::new();
    configured(&home, &telegram, "a", "take");
    telegram.revoke(&telegram.bot(BOT));
    let process = home.start(&SERVE).await;
    let a = Contender { name: "a".into(), home, process };
    let failed = a.is("failed").await;
    assert_eq!(failed["reason"], "Telegram does not accept the bot's token (401)");
    assert_eq!(telegram.seen().requests.len(), 1, "no login loop");
    let status = a.home.json(&["status", "--json"]).await;
    assert_eq!(status["health"].to_string().matches("seat_failed").count(), 1);
    telegram.bot(BOT);
    assert_eq!(a.take().await["generation"], 2);
}

#[tokio::test]
async fn a_service_that_is_away_is_tried_again_with_the_seat_held_and_when_it_asks_for() {
    let telegram = FakeTelegram::start().await;
    telegram.refuse(Some((429, Some(3600))));
    let a = Contender::first(&telegram, "a", "take").await;
    let waits = a.until("waiting", |s| s["next_try_at"].is_number()).await;
    assert_eq!((&waits["state"], &waits["holder"]["this"]), (&json!("connecting"), &json!(true)));
    // It was refused at some time after it began and before now.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_millis();
    let (next, since) = (waits["next_try_at"].as_u64().expect("a time"), waits["since"].as_u64().expect("a time"));
    assert!(next >= since + 3_590_000 && u128::from(next) <= now + 3_610_000, "{waits} at {now}");
    telegram.refuse(None);
    // A person need not wait.
    assert_eq!(a.take().await["state"], "serving");
}

#[tokio::test]
async fn somebody_else_who_uses_the_bot_is_told() {
    let telegram = FakeTelegram::start().await;
    let a = Contender::first(&telegram, "a", "take").await;
    a.is("serving").await;
    telegram.until("a's poll", |seen| seen.polling.contains_key("a")).await;
    // Another machine with the same token: no lock keeps the two apart.
    let b = Contender::first(&telegram, "b", "take").await;
    b.is("serving").await;
    a.until("connecting again", |s| s["reason"].as_str().is_some_and(|r| r.starts_with("the bot is used elsewhere")))
        .await;
    let status = a.home.json(&["status", "--json"]).await;
    assert_eq!(status["health"].to_string().matches("bot_used_elsewhere").count(), 1, "{status}");
}

#[tokio::test]
async fn another_bot_that_is_set_up_while_the_first_still_connects_is_used_at_once_and_the_first_no_more() {
    let telegram = FakeTelegram::start().await;
    telegram.refuse(Some((502, None)));
    let a = Contender::first(&telegram, "a", "take").await;
    a.until("a next try", |s| s["next_try_at"].is_number()).await;
    telegram.refuse(None);
    let (url, second) = (telegram.url("b"), telegram.bot(BOT + 1));
    let args = [&ON[..], &[url.as_str()]].concat();
    let set = a.home.run_with(&args, &second).await;
    assert!(set.status.success(), "{}", String::from_utf8_lossy(&set.stderr));
    let second = (BOT + 1).to_string();
    a.until("the second", |s| s["state"] == "serving" && s["bot"] == *second).await;
    telegram.until("its poll alone", |seen| seen.polling.keys().eq(["b"])).await;
    assert_eq!(telegram.seen().conflicts, 0, "never two at once");
}

#[tokio::test]
async fn a_process_whose_stderr_is_closed_takes_serves_and_lets_go_as_before() {
    let telegram = FakeTelegram::start().await;
    let a = Contender::first(&telegram, "a", "off").await;
    let home = Home::beside(&a.home);
    configured(&home, &telegram, "b", "off");
    let mut child = home.command(&SERVE).stderr(std::process::Stdio::piped()).spawn().expect("it starts");
    drop(child.stderr.take());
    let answers = async {
        while !home.run(&["seat", "show"]).await.status.success() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, answers).await.expect("it answers");
    a.take().await;
    // What is told of a take is a warning, which would go to stderr too.
    assert_eq!(home.json(&["seat", "take", "--json"]).await["state"], "serving");
    a.is("off").await;
    assert_eq!(a.take().await["state"], "serving");
    found("no seat", async || (home.json(&["seat", "show", "--json"]).await["state"] == "off").then_some(())).await;
    child.kill().await.expect("it ends");
}

/// What stands in its file of secrets from now on, as a program writes it that replaces the file.
fn replace_token(home: &Home, token: &str) {
    let path = home.data().join("secrets.json");
    let new = path.with_extension("new");
    std::fs::write(&new, json!({format!("channel@telegram:{BOT}"): token}).to_string()).expect("a file");
    std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o600)).expect("its mode");
    std::fs::rename(new, path).expect("replaced");
}

#[tokio::test]
async fn a_token_that_is_replaced_beside_set_up_is_used_whether_or_not_the_former_one_still_holds() {
    let telegram = FakeTelegram::start().await;
    let a = Contender::first(&telegram, "a", "take").await;
    a.is("serving").await;
    // The service gives the bot another one, and the former does not hold any more.
    let second = telegram.rotate(BOT);
    telegram.message();
    a.is("failed").await;
    replace_token(&a.home, &second);
    a.until("the seat, again", |s| s["state"] == "serving" && s["generation"] == 2).await;
    telegram.until("the message, kept", |seen| seen.offered() == 0).await;
    // It is replaced before the former one fails.
    let third = telegram.bot(BOT);
    replace_token(&a.home, &third);
    a.until("the seat, a third time", |s| s["state"] == "serving" && s["generation"] == 3).await;
    // The same once more changes nothing; a seat that was let go is not taken for it.
    replace_token(&a.home, &third);
    a.home.ok(&["seat", "release"]).await;
    a.is("off").await;
    replace_token(&a.home, &telegram.rotate(BOT));
    a.until("the token, read", |s| s["state"] == "off").await;
    assert_eq!(generation(&a.home), 3);
}

/// The configuration of [`configured`] for another caller, with one binding that has this name.
fn edit(home: &Home, telegram: &FakeTelegram, caller: &str, binding: &str) {
    let url = telegram.url(caller);
    home.write_config(&format!(
        "[channel]\nbackend = \"telegram\"\nbot = \"{BOT}\"\non_start = \"take\"\nbase_url = \"{url}\"\n\
         people = [\"7\"]\n[[channel.binding]]\nname = \"{binding}\"\nchannel = \"7\"\nproject = \"/srv\"\ndeliver = \"inbox\"\n"
    ));
}

#[tokio::test]
async fn what_is_edited_while_a_start_is_under_way_is_in_force_after_it() {
    let telegram = FakeTelegram::start().await;
    telegram.hold(true);
    let a = Contender::first(&telegram, "a", "take").await;
    telegram.until("a start", |seen| seen.count("a", "getMe") > 0).await;
    edit(&a.home, &telegram, "b", "first");
    telegram.until("the next start", |seen| seen.count("b", "getMe") > 0).await;
    edit(&a.home, &telegram, "c", "second");
    telegram.until("the last start", |seen| seen.count("c", "getMe") > 0).await;
    // What needs no further start comes while this one is under way.
    edit(&a.home, &telegram, "c", "third");
    telegram.hold(false);
    a.is("serving").await;
    telegram.until("a poll of the last", |seen| seen.polling.contains_key("c")).await;
    let name = async || {
        let status = a.home.json(&["status", "--json"]).await;
        status["channels"]["bindings"][0]["name"].as_str().map(str::to_owned)
    };
    let last = async { while name().await.as_deref() != Some("third") {} };
    tokio::time::timeout(PATIENCE, last).await.expect("the last binding");
    telegram.write(7, json!({"text": "hello"}));
    telegram.until("the message, kept", |seen| seen.offered() == 0).await;
    let polled = |caller: &str| telegram.seen().count(caller, "getUpdates");
    assert_eq!((polled("a"), polled("b")), (0, 0));
}

#[tokio::test]
async fn after_another_bot_took_the_place_of_the_first_people_are_heard_as_before() {
    let telegram = FakeTelegram::start().await;
    let a = Contender::first(&telegram, "a", "take").await;
    edit(&a.home, &telegram, "a", "app");
    a.is("serving").await;
    telegram.write(7, json!({"text": "to the first"}));
    telegram.until("the first's message, kept", |seen| seen.offered() == 0).await;
    let url = telegram.url("b");
    let args = [&ON[..], &[url.as_str()]].concat();
    assert!(a.home.run_with(&args, &telegram.bot(BOT + 1)).await.status.success());
    telegram.until("a poll of the second", |seen| seen.polling.contains_key("b")).await;
    telegram.write(7, json!({"text": "/seat"}));
    let answered = telegram.until("an answer", |seen| seen.posts.iter().any(|post| post.caller == "b")).await;
    let post = answered.posts.iter().find(|post| post.caller == "b").expect("it is there");
    assert!(post.text.contains("generation 1"), "its seat was begun once: {}", post.text);
}
