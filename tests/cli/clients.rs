//! Tokens, accounts, approval and clients.

use holdfast_testkit::home::Home;
use holdfast_testkit::mcp::Modern;
use holdfast_testkit::oauth::OAuthClient;
use holdfast_testkit::stand::{ACCOUNT, Stand, WireKind};
use serde_json::json;

use super::embedded::serve;

#[tokio::test]
async fn tokens_are_made_listed_without_their_text_and_revoked() {
    let home = Home::new();
    let serve = serve(&home).await;
    let token = home.ok(&["token", "create", "--name", "ci", "--role", "reviewer"]).await;
    let client = Modern::new(serve.ready_text("mcp"), &*token);
    assert_eq!(client.call("list_dir", json!({})).send().await.expect("an answer").code(), None);
    let listed = home.json(&["token", "list", "--json"]).await;
    assert_eq!((&listed[0]["name"], &listed[0]["role"]), (&json!("ci"), &json!("reviewer")), "{listed}");
    assert!(!listed.to_string().contains(&token));
    home.ok(&["token", "revoke", listed[0]["id"].as_str().expect("an id")]).await;
    assert_eq!(client.call("list_dir", json!({})).send().await.expect("an answer").status, 401);
    assert!(!home.run(&["token", "revoke", "no-such-token"]).await.status.success());
}

#[tokio::test]
async fn a_client_is_approved_by_typing_the_code_its_page_shows() {
    let home = Home::new();
    let serve = serve(&home).await;
    let client = OAuthClient::register(serve.ready_text("mcp")).await;
    let (mut flow, page) = client.authorize().await;
    let owner = page.form().1.into_iter().find(|(name, _)| name == "account").expect("an account field").1;
    assert!(!owner.is_empty(), "on this computer the page knows its owner");
    let code = flow.browser.ask_locally(&page, &owner).await;
    assert!(!home.run(&["approve", "ZZZZ-ZZZZ"]).await.status.success());
    let approved = home.ok(&["approve", &code]).await;
    assert!(approved.contains("holdfast-testkit") && !approved.contains(&code), "{approved}");
    let page = flow.browser.allow().await;
    let (status, tokens) = client.redeem(&flow.code(&page), flow.verifier()).await;
    assert_eq!(status, 200, "{tokens}");
    let access = tokens["access_token"].as_str().expect("a token");
    assert_eq!(
        Modern::new(serve.ready_text("mcp"), access)
            .call("list_dir", json!({}))
            .send()
            .await
            .expect("an answer")
            .code(),
        None
    );
    let listed = home.json(&["client", "list", "--json"]).await;
    let named = listed.as_array().expect("a list").iter().find(|one| one["name"] == "holdfast-testkit").cloned();
    home.ok(&["client", "revoke", named.expect("listed")["id"].as_str().expect("an id")]).await;
    let refused =
        Modern::new(serve.ready_text("mcp"), access).call("list_dir", json!({})).send().await.expect("an answer");
    assert_eq!(refused.status, 401);
}

#[tokio::test]
async fn cutting_all_access_ends_every_token_and_stops_the_link_until_it_is_started_again() {
    let home = Home::new();
    let serve = serve(&home).await;
    let token = home.ok(&["token", "create", "--name", "ci"]).await;
    let client = Modern::new(serve.ready_text("mcp"), &*token);
    assert_eq!(client.call("list_dir", json!({})).send().await.expect("an answer").code(), None);
    assert!(!home.run(&["client", "revoke"]).await.status.success(), "whom?");
    home.ok(&["client", "revoke", "--all"]).await;
    assert_eq!(client.call("list_dir", json!({})).send().await.expect("an answer").status, 401);
    assert_eq!(home.json(&["token", "list", "--json"]).await, json!([]));
    assert_eq!(home.json(&["status", "--json"]).await["relay"]["state"], "stopped");
    home.ok(&["start"]).await;
    let token = home.ok(&["token", "create", "--name", "ci"]).await;
    let client = Modern::new(serve.ready_text("mcp"), &*token);
    assert_eq!(client.call("list_dir", json!({})).send().await.expect("an answer").code(), None);
}

#[tokio::test]
async fn cutting_all_access_on_a_device_of_a_relay_elsewhere_does_not_claim_its_grants() {
    let stand = Stand::start(WireKind::Feature).await;
    let cut = stand.home.json(&["client", "revoke", "--all", "--json"]).await;
    assert_eq!(cut, json!({"revoked": null}));
    assert_eq!(stand.status().await["relay"]["state"], "stopped");
    let told = stand.home.ok(&["client", "revoke", "--all"]).await;
    assert!(told.contains("the relay is elsewhere"), "{told}");
}

#[tokio::test]
async fn with_two_accounts_and_none_named_a_token_is_an_error() {
    let stand = Stand::start(WireKind::Feature).await;
    let relay = &stand.relay.home;
    let added = relay
        .run_with(&["account", "add", "bob", "--role", "reviewer", "--password-stdin"], "a good long password\n")
        .await;
    assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
    assert!(!relay.run(&["token", "create", "--name", "x"]).await.status.success());
    let token = relay.ok(&["token", "create", "--name", "x", "--account", ACCOUNT]).await;
    assert_eq!(
        Modern::new(stand.relay.mcp(), &*token).call("list_dir", json!({})).send().await.expect("an answer").code(),
        None
    );
    let twice = relay
        .run_with(&["account", "add", "bob", "--role", "owner", "--password-stdin"], "a good long password\n")
        .await;
    assert!(!twice.status.success());
    let weak = relay.run_with(&["account", "add", "carl", "--role", "owner", "--password-stdin"], "short\n").await;
    assert!(!weak.status.success());
}
