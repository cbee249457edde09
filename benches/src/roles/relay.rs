//! A relay of the library, as the binary hosts it, with one tool more: `echo`.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result};
use futures_util::{StreamExt as _, TryStreamExt as _};
use holdfast_core::limits;
use holdfast_core::policy::Role;
use holdfast_relay::{NewAccount, RelayOptions, TokenRequest, mcp};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::daemon::clock;
use super::say;

/// How often it looks whether the device is there; the figures carry this error.
const LOOK: Duration = Duration::from_millis(20);

/// What the bench must know of it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Ready {
    /// Where it listens.
    pub address: SocketAddr,
    /// A client's bearer token for the first device.
    pub bearer: String,
    /// A credential per device.
    pub devices: Vec<String>,
}

/// The first device came or went.
#[derive(Debug, Serialize, Deserialize)]
pub struct Presence {
    /// Whether calls reach it.
    pub ready: bool,
    /// When, in microseconds since 1970.
    pub at: u64,
}

/// The schema of `echo`'s arguments, on both sides.
pub fn schema() -> serde_json::Value {
    json!({
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "delay_ms": {"type": "integer", "minimum": 0},
            "values": {"type": "array"}
        },
        "additionalProperties": false
    })
}

/// Runs until it is killed. Enrols this many devices first.
pub async fn run(devices: usize) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut options = RelayOptions::loopback(0, folder.path());
    let description = "Says it again.".into();
    options.extra_tools = vec![mcp::ExtraTool {
        name: "echo".into(),
        description,
        input_schema: schema(),
        output_schema: None,
        long_running: false,
    }];
    let relay = holdfast_relay::start(options).await?;
    let admin = &relay.admin;

    let names = (0..devices.div_ceil(limits::DEVICES_PER_ACCOUNT)).map(|n| format!("account{n}"));
    let mut accounts = Vec::new();
    for name in names {
        accounts.push(admin.create_account(NewAccount { name, role: Role::Owner, password: None }).await?);
    }
    // Many at once share one commit of the store. `buffered` keeps them in order, so that the first stays the first.
    let enrolled: Vec<_> = futures_util::stream::iter(0..devices)
        .map(|n| {
            let account = &accounts[n / limits::DEVICES_PER_ACCOUNT];
            async move { admin.enrol_local(&account.id, &format!("device{n}")).await }
        })
        .buffered(256)
        .try_collect()
        .await?;
    let account = accounts.first().map(|account| account.id.to_string());
    let device = enrolled.first().map(|device| device.device.to_string());
    let token = TokenRequest { name: "bench".into(), account, device, ..TokenRequest::default() };
    let bearer = admin.create_token(token).await?.token;
    let first = enrolled.first().map(|device| device.device.clone()).context("no device")?;
    let devices = enrolled.into_iter().map(|device| device.token).collect();
    say(&Ready { address: relay.addr, bearer, devices })?;
    let mut last = false;
    loop {
        tokio::time::sleep(LOOK).await;
        let ready = relay.state().devices.known(&first).is_some_and(|room| room.is_ready());
        if std::mem::replace(&mut last, ready) != ready {
            say(&Presence { ready, at: clock() })?;
        }
    }
}
