//! A relay in this process, a scripted device, and clients.

use std::time::Duration;

use holdfast_core::policy::Role;
use holdfast_relay::{NewAccount, RelayHandle, RelayOptions, TokenRequest};
use holdfast_testkit::base::{self, Frame, Wire};
use holdfast_testkit::mcp::{Modern, Session};
use serde_json::{Value, json};

/// A relay with one account, one enrolled device and one token.
pub struct Stage {
    pub relay: RelayHandle,
    pub url: String,
    pub token: String,
    device_token: String,
    dir: tempfile::TempDir,
}

impl Stage {
    pub async fn start() -> Stage {
        Stage::with(|_| {}).await
    }

    /// A relay with other options.
    pub async fn with(change: impl FnOnce(&mut RelayOptions)) -> Stage {
        let dir = tempfile::tempdir().unwrap();
        let mut options = RelayOptions::loopback(0, dir.path());
        change(&mut options);
        let relay = holdfast_relay::start(options).await.unwrap();
        let owner = relay.admin.ensure_owner("anna").await.unwrap();
        let device = relay.admin.enrol_local(&owner.id, "desk").await.unwrap();
        let mut stage = Stage { url: relay.mcp_url(), relay, token: String::new(), device_token: device.token, dir };
        stage.token = stage.token_of("first", None).await.0;
        stage
    }

    /// Changes the relay's store behind its back.
    pub fn in_store(&self, sql: &str) {
        let db = rusqlite::Connection::open(self.dir.path().join("relay.sqlite")).unwrap();
        db.busy_timeout(std::time::Duration::from_secs(120)).unwrap();
        db.execute_batch(sql).unwrap();
    }

    /// The relay dies as it stands, and another one starts in its folder.
    pub async fn crash(self) -> Stage {
        let Stage { relay, token, device_token, dir, .. } = self;
        drop(relay);
        let relay = holdfast_relay::start(RelayOptions::loopback(0, dir.path())).await.unwrap();
        Stage { url: relay.mcp_url(), relay, token, device_token, dir }
    }

    /// A token of the first account: the bearer text and its id.
    pub async fn token_of(&self, name: &str, role: Option<Role>) -> (String, String) {
        let request = TokenRequest { name: name.into(), account: Some("anna".into()), role, ..TokenRequest::default() };
        let made = self.relay.admin.create_token(request).await.unwrap();
        (made.token, made.view.id.to_string())
    }

    /// A token of another account, with another device.
    pub async fn stranger(&self) -> String {
        let new = NewAccount { name: "bert".into(), role: Role::Owner, password: None };
        let account = self.relay.admin.create_account(new).await.unwrap();
        self.relay.admin.enrol_local(&account.id, "bertsdesk").await.unwrap();
        let request = TokenRequest { name: "berts".into(), account: Some("bert".into()), ..TokenRequest::default() };
        self.relay.admin.create_token(request).await.unwrap().token
    }

    /// Connects the device with these tools and waits until it is ready.
    pub async fn device(&self, tools: &[&str]) -> Device {
        self.device_with(base::hello(&base::instance("one"), tools)).await
    }

    /// As above, with any hello; progress is agreed.
    pub async fn device_with(&self, mut hello: Value) -> Device {
        hello["link"] = json!({"min": 1, "max": 1});
        hello["features"] = json!(["progress"]);
        let mut wire = base::dial(self.url.trim_end_matches("/mcp"), &self.device_token).await.unwrap();
        wire.send(hello).await;
        loop {
            match wire.next().await {
                Frame::Json(message) if message["type"] == "relay_probe" => {
                    wire.send(json!({"type": "relay_probe_result", "id": message["id"]})).await;
                }
                Frame::Json(message) if message["type"] == "ready_ack" => return Device { wire },
                Frame::Json(_) => {}
                other => panic!("not ready: {other:?}"),
            }
        }
    }

    pub fn modern(&self) -> Modern {
        Modern::new(&self.url, &self.token)
    }

    pub async fn session(&self) -> Session {
        Session::open(&self.url, &self.token).await
    }

    /// Posts any body with this token and these headers.
    pub async fn post(&self, body: impl Into<reqwest::Body>, headers: &[(&str, &str)]) -> (u16, String) {
        let mut request = holdfast_testkit::mcp::http().post(&self.url).bearer_auth(&self.token).body(body);
        if !headers.iter().any(|(name, _)| *name == "content-type") {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    }
}

/// A scripted device.
pub struct Device {
    wire: Wire,
}

impl Device {
    /// The next call it is sent.
    pub async fn called(&mut self) -> Value {
        self.wire.expect_past_life("tool_call").await
    }

    /// The id of the next call that is cancelled.
    pub async fn cancelled(&mut self) -> Value {
        self.wire.expect_past_life("cancel_call").await["id"].clone()
    }

    pub async fn succeed(&mut self, call: &Value, result: Value) {
        self.wire.succeed(call, result).await;
    }

    /// Answers with a result whose text is exactly this.
    pub async fn succeed_raw(&mut self, call: &Value, result: &str) {
        let frame = format!(r#"{{"type":"tool_result","id":{},"ok":true,"result":{result}}}"#, call["id"]);
        self.wire.send_text(frame).await;
    }

    pub async fn fail(&mut self, call: &Value, error: Value) {
        self.wire.send(json!({"type": "tool_result", "id": call["id"], "ok": false, "error": error})).await;
    }

    pub async fn progress(&mut self, call: &Value, progress: u64, message: &str) {
        let frame = json!({"type": "tool_progress", "id": call["id"], "progress": progress, "message": message});
        self.wire.send(frame).await;
    }

    /// Nothing is sent to it for this long.
    pub async fn hears_nothing_for(&mut self, time: Duration) {
        assert_eq!(self.wire.next_within(time).await, None);
    }

    /// Closes the link.
    pub async fn leave(mut self) {
        self.wire.close(1001, "going away").await;
    }
}
