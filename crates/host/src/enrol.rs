//! Enrolling this machine at a relay: a one-time code buys the device's credential.

use std::time::Duration;

use holdfast_core::command::Secret;
use holdfast_core::id::DeviceId;
use holdfast_core::limits;
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;

use crate::config;
use crate::engines::CommandError;
pub use crate::engines::machine_name;
use crate::http_client;
use crate::paths::Dirs;

/// What the relay gave.
#[derive(Debug, Deserialize)]
pub struct Enrolled {
    /// This machine's id there.
    pub device: DeviceId,
    /// Its credential.
    pub token: Secret,
}

/// Trades the code. A lost answer is asked for again with the same enrolment id, which the relay answers the same way.
pub async fn exchange(dirs: &Dirs, relay: &Url, code: &Secret, name: &str) -> Result<Enrolled, CommandError> {
    let failed = |e: &dyn std::fmt::Display| CommandError::new("failed", e.to_string());
    if !http_client::may_carry_secrets(relay) {
        let text =
            "the code would travel in the clear: the relay's address must be https://, or http:// to this machine";
        return Err(CommandError::new("invalid_request", text));
    }
    let config = config::read(&dirs.config_file()).map_err(|e| failed(&e))?;
    let client = http_client::to_relay(config.link.ca_file.as_deref()).await.map_err(|e| failed(&e))?;
    let url = relay.join("/api/enroll").map_err(|e| failed(&e))?;
    let mut random = [0; 18];
    getrandom::fill(&mut random).map_err(|e| failed(&e))?;
    let enrolment = data_encoding::BASE64URL_NOPAD.encode(&random);
    let body = json!({"code": code.0, "enrolment": enrolment, "name": name});
    let mut tries = 0;
    let response = loop {
        tries += 1;
        match client.post(url.clone()).json(&body).timeout(limits::API_ANSWER).send().await {
            Ok(response) => break response,
            Err(e) if tries == limits::ENROL_ASKS => {
                return Err(CommandError::new(
                    "unavailable",
                    format!("the relay cannot be reached: {}", http_client::root_cause(&e)),
                ));
            }
            Err(_) => tokio::time::sleep(Duration::from_secs(tries as u64)).await,
        }
    };
    let status = response.status();
    let answer: Value = response.json().await.unwrap_or_default();
    if status.is_success() {
        return serde_json::from_value(answer).map_err(|_| CommandError::new("failed", "that is not a Holdfast relay"));
    }
    let text = |key: &str| answer[key].as_str().map(str::to_owned);
    Err(CommandError {
        code: text("code").unwrap_or_else(|| "failed".into()),
        message: text("message").unwrap_or_else(|| format!("the relay answered {status}")),
    })
}
