//! `enroll`: trades a one-time code for this machine's credential at a relay.

use holdfast_core::command::{Command as Ask, Secret};
use holdfast_host::enrol;
use serde_json::json;

use super::told;
use crate::args::{Enroll, Folders};
use crate::ask::{ask, secret_line};
use crate::failure::Failure;

pub async fn enroll(folders: &Folders, args: Enroll) -> Result<(), Failure> {
    let Enroll { relay, code, name, token_stdin } = args;
    let dirs = folders.dirs()?;
    let store = |token| Ask::DeviceToken { relay: relay.to_string(), token };
    let at = relay.origin().ascii_serialization();
    let sentence = format!("enrolled; start it with: holdfast serve --relay {at}");
    if token_stdin {
        let answer = ask(&dirs, store(secret_line("credential")?)).await?;
        return told(folders, &answer, &sentence);
    }
    let code = match code {
        Some(code) => Secret(code),
        None => secret_line("code")?,
    };
    let name = name.unwrap_or_else(enrol::machine_name);
    let enrolled = enrol::exchange(&dirs, &relay, &code, &name).await?;
    ask(&dirs, store(enrolled.token)).await?;
    told(folders, &json!({"relay": at, "device": enrolled.device}), &sentence)
}
