//! Rules of Discord's that nothing else makes sure of.

use reqwest::{Client, Method};
use serde_json::{Value, json};

use super::*;

const BOT: u64 = 4_200_000_000_042;

struct Caller {
    service: FakeDiscord,
    token: String,
    http: Client,
}

impl Caller {
    async fn new() -> Caller {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let service = FakeDiscord::start().await;
        let token = service.bot(BOT);
        let http = Client::builder().user_agent("DiscordBot (https://test.invalid, 1)").build().expect("a client");
        Caller { service, token, http }
    }

    async fn ask(&self, method: Method, path: &str, body: Value) -> (u16, Value) {
        let request = self.http.request(method, format!("{}/{path}", self.service.url("a")));
        let request = request.header("authorization", format!("Bot {}", self.token)).json(&body);
        let answer = request.send().await.expect("an answer");
        (answer.status().as_u16(), answer.json().await.unwrap_or_default())
    }

    async fn post(&self, channel: u64, body: Value) -> (u16, Value) {
        self.ask(Method::POST, &format!("channels/{channel}/messages"), body).await
    }

    async fn list(&self, channel: u64, query: &str) -> Vec<String> {
        let (_, list) = self.ask(Method::GET, &format!("channels/{channel}/messages?{query}"), json!({})).await;
        let texts = list.as_array().expect("a list").iter().map(|m| m["content"].as_str().expect("text").to_owned());
        texts.collect()
    }
}

#[tokio::test]
async fn a_nonce_counts_only_where_it_is_enforced_and_for_a_while() {
    let caller = Caller::new().await;
    let (one, two) = (caller.service.channel(), caller.service.channel());
    let body = |enforced: bool| json!({"content": "x", "nonce": "n", "enforce_nonce": enforced});
    let (_, first) = caller.post(one, body(true)).await;
    assert_eq!(caller.post(one, body(true)).await.1["id"], first["id"]);
    assert_ne!(caller.post(two, body(true)).await.1["id"], first["id"], "of another channel");
    assert_ne!(caller.post(one, body(false)).await.1["id"], first["id"]);
    caller.service.forget_nonces();
    assert_ne!(caller.post(one, body(true)).await.1["id"], first["id"]);
    assert_eq!(caller.service.seen().twice(), ["n"]);
}

#[tokio::test]
async fn pages_come_newest_first_and_without_nonces() {
    let caller = Caller::new().await;
    let (ann, place) = (caller.service.person("ann"), caller.service.channel());
    let ids: Vec<u64> = ["a", "b", "c", "d"].into_iter().map(|text| caller.service.write(place, ann, text)).collect();
    assert_eq!(caller.list(place, "limit=2").await, ["d", "c"]);
    assert_eq!(caller.list(place, &format!("after={}&limit=2", ids[0])).await, ["c", "b"]);
    assert_eq!(caller.list(place, &format!("before={}", ids[2])).await, ["b", "a"]);
    let (status, refused) = caller.ask(Method::GET, &format!("channels/{place}/messages?limit=101"), json!({})).await;
    assert_eq!((status, &refused["code"]), (400, &json!(50035)));
    let (_, sent) = caller.post(place, json!({"content": "x", "nonce": "n"})).await;
    let path = format!("channels/{place}/messages/{}", sent["id"].as_str().expect("an id"));
    assert_eq!(
        (&sent["nonce"], &caller.ask(Method::GET, &path, json!({})).await.1["nonce"]),
        (&json!("n"), &Value::Null)
    );
}

#[tokio::test]
async fn what_discord_refuses_is_refused() {
    let caller = Caller::new().await;
    let (ann, place) = (caller.service.person("ann"), caller.service.channel());
    let theirs = caller.service.write(place, ann, "mine");
    let path = format!("channels/{place}/messages/{theirs}");
    let code = |(status, body): (u16, Value)| (status, body["code"].as_u64().expect("a code"));
    assert_eq!(code(caller.ask(Method::PATCH, &path, json!({"content": "x"})).await), (403, 50005));
    assert_eq!(code(caller.post(place, json!({"content": "  "})).await), (400, 50006));
    assert_eq!(code(caller.post(place, json!({"content": "x", "nonce": "n".repeat(26)})).await), (400, 50035));
    let reply = json!({"content": "x", "message_reference": {"message_id": "1"}});
    assert_eq!(code(caller.post(place, reply).await), (400, 50035));
    let button = json!({"type": 2, "style": 1, "label": "x", "custom_id": "x".repeat(101)});
    let row = json!({"content": "x", "components": [{"type": 1, "components": [button]}]});
    assert_eq!(code(caller.post(place, row).await), (400, 50035));
    let answer = caller.ask(Method::POST, "interactions/1/x/callback", json!({"type": 6})).await;
    assert_eq!(code(answer), (404, 10062));
}

#[tokio::test]
async fn mentions_count_unless_they_are_switched_off_and_the_sixth_message_in_five_seconds_is_too_many() {
    let caller = Caller::new().await;
    let (ann, place) = (caller.service.person("ann"), caller.service.channel());
    let text = format!("hey <@{ann}>");
    caller.post(place, json!({"content": text})).await;
    caller.post(place, json!({"content": text, "allowed_mentions": {"parse": []}})).await;
    let posts = caller.service.seen().posts;
    assert_eq!((&posts[0].mentions, &posts[1].mentions), (&vec![ann], &Vec::new()));
    // A slow machine may take longer than the bucket lasts, so only the order of what comes counts.
    caller.service.limit(Some((5, Duration::from_secs(600))));
    let mut statuses = Vec::new();
    for _ in 0..7 {
        statuses.push(caller.post(place, json!({"content": "x"})).await.0);
    }
    let refused = statuses.iter().position(|status| *status == 429).expect("a refusal");
    assert!(refused <= 5 && statuses[refused..].iter().all(|status| *status == 429), "{statuses:?}");
}

#[tokio::test]
async fn threads_are_listed_while_they_are_open_and_a_private_conversation_is_made_once() {
    let caller = Caller::new().await;
    let service = &caller.service;
    let (ann, place, closed) = (service.person("ann"), service.channel(), service.channel());
    let (one, two, three) = (service.thread(place), service.thread(place), service.thread(closed));
    let last = service.write(one, ann, "hey");
    service.archive(two);
    service.forbid(closed, true);
    let path = format!("guilds/{}/threads/active", world::GUILD);
    let list = caller.ask(Method::GET, &path, json!({})).await.1["threads"].clone();
    let ids: Vec<_> = list.as_array().expect("a list").iter().map(|thread| &thread["id"]).collect();
    assert_eq!((ids, &list[0]["last_message_id"]), (vec![&json!(one.to_string())], &json!(last.to_string())));
    assert_eq!(caller.ask(Method::GET, &format!("channels/{three}"), json!({})).await.1["code"], json!(50001));
    assert_eq!(caller.ask(Method::GET, "guilds/7/threads/active", json!({})).await.1["code"], json!(10004));

    let direct = async |person: u64| {
        caller.ask(Method::POST, "users/@me/channels", json!({"recipient_id": person.to_string()})).await
    };
    let (status, made) = direct(ann).await;
    assert_eq!((status, &made["type"], made["guild_id"].is_null()), (200, &json!(1), true));
    assert_eq!(direct(ann).await.1["id"], made["id"]);
    assert_eq!(made["id"], json!(service.direct_of(BOT, ann).to_string()));
    for nobody in [BOT, 7] {
        assert_eq!(direct(nobody).await.1["code"], json!(50033));
    }
}
