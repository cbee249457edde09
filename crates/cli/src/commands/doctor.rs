//! `doctor`: one copyable report.

use std::path::Path;
use std::process::ExitCode;

use holdfast_core::command::Command;
use holdfast_core::policy::Role;
use holdfast_core::status::StatusSnapshot;
use holdfast_host::api::client::Holder;
use holdfast_host::{config, doctor, files, support};
use secrecy::SecretString;
use serde_json::json;
use url::Url;

use super::told;
use crate::args::Folders;
use crate::ask::running;
use crate::failure::{Exit, Failure};
use crate::print;

pub async fn doctor(folders: &Folders, public: bool) -> Result<ExitCode, Failure> {
    let dirs = folders.dirs()?;
    let holder = running(&dirs).await.ok().flatten();
    let snapshot: Option<StatusSnapshot> = match &holder {
        Some(holder) => holder.get("/api/status").await.ok(),
        None => None,
    };
    let report = if public {
        let config = config::read(&dirs.config_file()).unwrap_or_default();
        let of_process = snapshot.as_ref().and_then(|s| s.app.mcp.as_deref()).and_then(|u| Url::parse(u).ok());
        let relay = of_process.or(config.relay.public_url).or(config.relay.url);
        let relay = relay.ok_or_else(|| Failure::plain("no relay is known: start it, or set relay.public_url"))?;
        let pass = match &holder {
            Some(holder) => Pass::take(holder).await,
            None => None,
        };
        let token = pass.as_ref().map(|pass| &pass.token);
        let report = doctor::examine_public(&relay, config.link.ca_file.as_deref(), token).await;
        if let (Some(holder), Some(pass)) = (&holder, pass) {
            pass.give_back(holder).await?;
        }
        report
    } else {
        doctor::examine(&dirs, snapshot.as_ref()).await
    };
    if folders.json {
        print::json(&report)?;
    } else {
        print::line(report.text().trim_end());
    }
    Ok(if report.ok { ExitCode::SUCCESS } else { Exit::Found.into() })
}

/// Everything that helps to find a fault, in one file.
pub async fn support(folders: &Folders, file: &Path) -> Result<(), Failure> {
    let dirs = folders.dirs()?;
    let text = match running(&dirs).await.ok().flatten() {
        Some(holder) => holder.text("/api/support").await?,
        None => support::text(&dirs, None, config::read(&dirs.config_file()).unwrap_or_default()).await,
    };
    files::replace(&std::path::absolute(file)?, text.as_bytes()).map_err(|e| Failure::plain(e.to_string()))?;
    let sentence = format!("{} is written; look through it before you give it away", file.display());
    told(folders, &json!({"file": file}), &sentence)
}

/// A token for the time of the examination, with the least rights.
struct Pass {
    id: String,
    token: SecretString,
}

impl Pass {
    /// `None` where the relay is elsewhere or has no device yet.
    async fn take(holder: &Holder) -> Option<Pass> {
        let (name, role) = ("doctor".into(), Some(Role::Reviewer));
        let ask = Command::TokenCreate { name, role, device: None, account: None, days: Some(1) };
        let answer = holder.command(&ask).await.ok()?;
        let text = |key: &str| answer[key].as_str().map(str::to_owned);
        Some(Pass { id: text("id")?, token: text("token")?.into() })
    }

    async fn give_back(self, holder: &Holder) -> Result<(), Failure> {
        holder.command(&Command::TokenRevoke { token: self.id }).await?;
        Ok(())
    }
}
