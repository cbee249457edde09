//! Calls that ask the person at this machine before they run, and what that person may see of calls.

use std::time::Duration;

use holdfast_testkit::home::Home;
use holdfast_testkit::mcp::Modern;
use serde_json::{Value, json};

use super::embedded::serve;

/// What `holdfast status --json` shows as the first question that waits.
async fn question(home: &Home) -> Value {
    let asked = async {
        loop {
            let status = home.json(&["status", "--json"]).await;
            if let Some(question) = status["questions"].get(0) {
                return question.clone();
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(120), asked).await.expect("a question")
}

#[tokio::test]
async fn a_call_waits_for_the_person_s_answer_across_a_cut_of_the_link() {
    let home = Home::new();
    home.write_config("[ask]\nclients = [\"*\"]\n");
    let serve = serve(&home).await;
    let token = home.ok(&["token", "create", "--name", "script"]).await;
    let client = Modern::new(serve.ready_text("mcp"), &*token);
    client.call("list_dir", json!({})).send().await.expect("what only reads is not asked about");

    let call = client.call("write_file", json!({"path": "a.txt", "content": "x"})).send();
    let person = async {
        let asked = question(&home).await;
        assert_eq!((&asked["tool"], &asked["summary"]), (&json!("write_file"), &json!("a.txt")));
        home.ok(&["drill", "--cut", "500ms", "--force"]).await;
        assert_eq!(question(&home).await, asked);
        assert!(!home.workspace().join("a.txt").exists());
        let id = asked["id"].as_str().expect("an id");
        let shown = home.run(&["status"]).await;
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        assert!(shown.contains(" asks to run write_file a.txt ("), "{shown}");
        assert!(shown.contains(&format!(" s left: holdfast answer {id} yes|no)")), "{shown}");
        assert_eq!(home.ok(&["answer", id, "yes"]).await, "allowed");
        let late = home.run(&["answer", id, "yes"]).await;
        assert_eq!(late.status.code(), Some(1));
    };
    let (answer, ()) = tokio::join!(call, person);
    assert_eq!(answer.expect("an answer").content()["path"], "a.txt");
    assert_eq!(std::fs::read_to_string(home.workspace().join("a.txt")).expect("written"), "x");
}

#[tokio::test]
async fn a_no_that_is_remembered_refuses_what_this_client_asks_later() {
    let home = Home::new();
    home.write_config("[ask]\nclients = [\"*\"]\ntools = \"runs\"\n");
    let serve = serve(&home).await;
    let token = home.ok(&["token", "create", "--name", "script"]).await;
    let client = Modern::new(serve.ready_text("mcp"), &*token);
    let run = || client.call("run_process", json!({"argv": ["touch", "ran"]})).send();
    let person = async {
        let asked = question(&home).await;
        home.ok(&["answer", asked["id"].as_str().expect("an id"), "no", "--remember"]).await;
    };
    let (answer, ()) = tokio::join!(run(), person);
    for answer in [answer, run().await] {
        assert_eq!(answer.expect("an answer").code(), Some("policy_denied"));
    }
    assert!(!home.workspace().join("ran").exists());
    let set = json!({"command": "configure", "set": {"ask.clients": []}});
    assert_eq!(api(&home, "command", Some(set)).await.1, json!({"changed": ["ask.clients"], "restart": []}));
    assert_eq!(run().await.expect("an answer").code(), None, "nobody is asked about any more");
    assert!(home.workspace().join("ran").exists());
}

#[tokio::test]
async fn what_a_call_was_asked_is_shown_only_when_that_is_switched_on() {
    let home = Home::new();
    let serve = serve(&home).await;
    let token = home.ok(&["token", "create", "--name", "script"]).await;
    let client = Modern::new(serve.ready_text("mcp"), &*token);
    for (switch, shown) in [(None, 404), (Some(true), 200), (Some(false), 404)] {
        if let Some(on) = switch {
            let set = json!({"command": "configure", "set": {"calls.keep_bodies": on}});
            assert_eq!(api(&home, "command", Some(set)).await.0, 200);
        }
        client.call("list_dir", json!({"path": "."})).send().await.expect("an answer").content();
        let calls = home.json(&["calls", "--json"]).await;
        let (status, body) =
            api(&home, &format!("calls/{}/body", calls[0]["call"].as_str().expect("an id")), None).await;
        let asked = json!({"text": "{\"path\":\".\"}", "bytes": 12, "cut": false});
        assert_eq!((status, &body["arguments"]), (shown, if shown == 200 { &asked } else { &Value::Null }));
    }
}

/// What the local API answers to whoever may read `api.json`.
async fn api(home: &Home, path: &str, body: Option<Value>) -> (u16, Value) {
    let file = std::fs::read_to_string(home.data().join("api.json")).expect("a holder");
    let file: Value = serde_json::from_str(&file).expect("JSON");
    let (address, token) = (file["address"].as_str().expect("an address"), file["token"].as_str().expect("a token"));
    let (client, url) = (reqwest::Client::new(), format!("http://{address}/api/{path}"));
    let request = match body {
        Some(body) => client.post(url).json(&body),
        None => client.get(url),
    };
    let answer = request.bearer_auth(token).send().await.expect("an answer");
    (answer.status().as_u16(), answer.json().await.expect("JSON"))
}
