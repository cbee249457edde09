//! `channel pair`: a person comes to be heard.

use std::io::IsTerminal as _;

use holdfast_core::command::{Command as Ask, Secret};
use serde_json::Value;

use super::setup::question;
use crate::args::Folders;
use crate::ask::ask;
use crate::commands::told;
use crate::failure::Failure;
use crate::print;

pub async fn pair(folders: &Folders, code: Option<String>) -> Result<(), Failure> {
    if let Some(code) = code {
        return admitted(folders, &typed(folders, code).await?);
    }
    let opened = ask(&folders.dirs()?, Ask::ChannelPair { code: None }).await?;
    let minutes = opened["minutes"].as_u64().unwrap_or_default();
    let sentence = format!(
        "For {minutes} minutes, whoever writes to the bot directly, or names it in a bound channel (@…), gets a code. Do that now."
    );
    if folders.json || !std::io::stdin().is_terminal() {
        return told(folders, &opened, &format!("{sentence} Then: holdfast channel pair CODE"));
    }
    print::line(&sentence);
    loop {
        let code = question("The code it answered (empty: later)", "").await?;
        if code.is_empty() {
            return Ok(());
        }
        match typed(folders, code).await {
            Ok(answer) => return admitted(folders, &answer),
            Err(wrong) if wrong.is("wrong_code") => print::line(wrong.message()),
            Err(other) => return Err(other),
        }
    }
}

async fn typed(folders: &Folders, code: String) -> Result<Value, Failure> {
    ask(&folders.dirs()?, Ask::ChannelPair { code: Some(Secret(code)) }).await
}

fn admitted(folders: &Folders, answer: &Value) -> Result<(), Failure> {
    let text = |key: &str| print::shown(answer[key].as_str().unwrap_or_default());
    told(folders, answer, &format!("{} ({}) may talk to the agents", text("name"), text("person")))
}
