//! What must never be seen: secrets in logs and arguments, control characters in a terminal.

use std::path::Path;

use holdfast_testkit::mcp::http;
use holdfast_testkit::oauth::{OAuthClient, REDIRECT};
use holdfast_testkit::stand::{ACCOUNT, PASSWORD, Stand, WireKind, device_credential};
use serde_json::json;

/// Every file below a folder whose name says that it is a log.
fn logs(folder: &Path, into: &mut String) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if path.is_dir() {
            logs(&path, into);
        } else if path.to_string_lossy().contains("log") {
            into.push_str(&String::from_utf8_lossy(&std::fs::read(&path).unwrap_or_default()));
        }
    }
}

#[tokio::test]
async fn no_log_holds_a_token_a_password_a_code_an_argument_or_an_output() {
    let stand = Stand::start(WireKind::Feature).await;
    let client = OAuthClient::register(&stand.relay.mcp()).await;
    let (mut flow, page) = client.authorize().await;
    let approval = flow.browser.ask_locally(&page, ACCOUNT).await;
    stand.relay.home.ok(&["approve", &approval]).await;
    let page = flow.browser.allow().await;
    let code = flow.code(&page);
    let (_, tokens) = client.redeem(&code, flow.verifier()).await;
    let (_, refreshed) = client.refresh(tokens["refresh_token"].as_str().expect("a token")).await;
    let script = "echo output-of-the-$0";
    let call = json!({"argv": ["/bin/sh", "-c", script, "secret-argument"]});
    stand.modern().call("run_process", call.clone()).send().await.expect("an answer");
    let session = stand.session().await;
    session.call("run_process", call).await.expect("an answer");
    stand.proxy.reset();
    stand.ready(2).await;
    let wrong = Stand::start(WireKind::Feature).await;
    let (mut other, page) = OAuthClient::register(&wrong.relay.mcp()).await.authorize().await;
    other.browser.sign_in(&page, ACCOUNT, "a-wrong-password").await;

    let mut said = [stand.device.log(), stand.relay.process.log(), wrong.relay.process.log()].concat();
    for home in [&stand.home, &stand.relay.home, &wrong.relay.home] {
        logs(&home.data(), &mut said);
    }
    let api = std::fs::read_to_string(stand.home.data().join("api.json")).expect("api.json");
    let api: serde_json::Value = serde_json::from_str(&api).expect("JSON");
    let text = |value: &serde_json::Value| value.as_str().expect("text").to_owned();
    for (name, secret) in [
        ("the token", stand.token.clone()),
        ("the device's credential", device_credential(&stand.home)),
        ("the access token", text(&tokens["access_token"])),
        ("the refresh token", text(&tokens["refresh_token"])),
        ("the second refresh token", text(&refreshed["refresh_token"])),
        ("the authorization code", code),
        ("the approval code", approval),
        ("the local API's token", text(&api["token"])),
        ("the password", PASSWORD.into()),
        ("a wrong password", "a-wrong-password".into()),
        ("an argument", "secret-argument".into()),
        ("an output", "output-of-the".into()),
        ("the verifier", flow.verifier().into()),
        ("the session id", session.id().into()),
    ] {
        assert!(!said.contains(&secret), "{name} stands in a log");
    }
    assert!(!said.contains("Bearer "), "a header stands in a log");
}

#[tokio::test]
async fn names_that_strangers_choose_cannot_paint_the_terminal_or_the_page() {
    let stand = Stand::start(WireKind::Feature).await;
    let client = OAuthClient::register(&stand.relay.mcp()).await;
    let hostile = "\u{1b}[31mred\u{202e}\u{7}<script>alert(1)</script>";
    let body = json!({"client_name": hostile, "redirect_uris": [REDIRECT]});
    let sent = http().post(client.endpoint("registration_endpoint")).json(&body).send().await.expect("an answer");
    let registered: serde_json::Value = sent.json().await.expect("JSON");
    let id = registered["client_id"].as_str().expect("an id").to_owned();
    let (mut flow, page) = client
        .authorize_with(|query| {
            query.iter_mut().filter(|(name, _)| *name == "client_id").for_each(|(_, v)| *v = id.clone())
        })
        .await;
    let bad =
        |text: &str| text.chars().any(|c| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c));
    assert!(!bad(&page.html) && !page.html.contains("<script"), "{}", page.html);
    flow.browser.log_in(&page, ACCOUNT, PASSWORD).await;
    for command in [&["client", "list"][..], &["status"], &["calls"], &["device", "list"]] {
        let printed = stand.relay.home.run(command).await;
        let printed = String::from_utf8_lossy(&printed.stdout).into_owned();
        assert!(!bad(&printed), "{command:?}: {printed:?}");
    }
}
