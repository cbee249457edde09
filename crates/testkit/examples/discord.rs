//! A Discord for tests of other languages: says on stdout where it is, then does what each line of stdin asks and answers each by
//! a line. Ends with its stdin.

#![allow(clippy::expect_used, reason = "a panic is how a test fails")]

use std::io::{BufRead as _, Write as _};

use holdfast_testkit::discord::{FakeDiscord, MESSAGE_CONTENT};
use serde::Deserialize;
use serde_json::{Value, json};

const BOT: u64 = 4_200_000_000_042;

/// What a test asks for.
#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
enum Asked {
    /// Somebody writes.
    Write { channel: String, person: String, text: String },
    /// Waits until a text that holds this was posted in a channel.
    Posted { channel: String, text: String },
    /// Bots may not write in a channel any more, or may again.
    Silence { channel: String, silent: bool },
    /// Whether bots may ask for the text of messages.
    Content { on: bool },
}

#[tokio::main]
async fn main() {
    let service = FakeDiscord::start().await;
    let (token, channel, person) = (service.bot(BOT), service.channel(), service.person("Ann"));
    say(&json!({
        "url": service.url("a"), "token": token, "bot": BOT.to_string(), "channel": channel.to_string(),
        "person": person.to_string(),
    }));
    for line in std::io::stdin().lock().lines() {
        let asked = serde_json::from_str(&line.expect("a line")).expect("one of the requests");
        say(&done(&service, asked).await);
    }
}

async fn done(service: &FakeDiscord, asked: Asked) -> Value {
    let id = |text: String| text.parse().expect("an id");
    match asked {
        Asked::Write { channel, person, text } => {
            json!({"message": service.write(id(channel), id(person), text.as_str()).to_string()})
        }
        Asked::Posted { channel, text } => {
            let channel: u64 = id(channel);
            let is = |seen: &holdfast_testkit::discord::Seen| {
                seen.posts.iter().find(|post| post.channel == channel && post.content.contains(&text)).cloned()
            };
            let seen = service.until("such a post", |seen| is(seen).is_some()).await;
            let post = is(&seen).expect("it was seen");
            json!({"message": post.message.to_string(), "text": post.content})
        }
        Asked::Silence { channel, silent } => {
            service.silence(id(channel), silent);
            json!({})
        }
        Asked::Content { on } => {
            service.intents(if on { u64::MAX } else { !MESSAGE_CONTENT });
            json!({})
        }
    }
}

fn say(answer: &Value) {
    let mut out = std::io::stdout().lock();
    // A test that left is no failure of ours.
    let _ = writeln!(out, "{answer}").and_then(|()| out.flush());
}
