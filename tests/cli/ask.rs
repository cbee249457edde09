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
    tokio::time::timeout(Duration::from_secs(30), asked).await.expect("a question")
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
        assert_eq!(home.ok(&["answer", id, "yes"]).await, "it runs");
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
}

#[tokio::test]
async fn what_a_call_was_asked_is_shown_only_when_that_is_switched_on() {
    for (config, status) in [("", 404), ("[calls]\nkeep_bodies = true\n", 200)] {
        let home = Home::new();
        home.write_config(config);
        let serve = serve(&home).await;
        let token = home.ok(&["token", "create", "--name", "script"]).await;
        let client = Modern::new(serve.ready_text("mcp"), &*token);
        client.call("list_dir", json!({"path": "."})).send().await.expect("an answer").content();
        let calls = home.json(&["calls", "--json"]).await;
        let id = calls[0]["call"].as_str().expect("an id");
        let api = std::fs::read_to_string(home.data().join("api.json")).expect("a holder");
        let api: Value = serde_json::from_str(&api).expect("JSON");
        let (address, token) = (api["address"].as_str().expect("an address"), api["token"].as_str().expect("a token"));
        let url = format!("http://{address}/api/calls/{id}/body");
        let answer = reqwest::Client::new().get(url).bearer_auth(token).send().await.expect("an answer");
        assert_eq!(answer.status(), status);
        let body: Value = answer.json().await.expect("JSON");
        let asked = json!({"text": "{\"path\":\".\"}", "bytes": 12, "cut": false});
        assert_eq!(body["arguments"], if status == 200 { asked } else { Value::Null });
    }
}
