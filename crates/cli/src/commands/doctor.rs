//! `doctor`: one copyable report.

use std::process::ExitCode;

use holdfast_core::status::StatusSnapshot;
use holdfast_host::{config, doctor};
use url::Url;

use crate::args::Folders;
use crate::ask::running;
use crate::failure::{Exit, Failure};
use crate::print;

pub async fn doctor(folders: &Folders, public: bool) -> Result<ExitCode, Failure> {
    let dirs = folders.dirs()?;
    let snapshot: Option<StatusSnapshot> = match running(&dirs).await {
        Ok(Some(holder)) => holder.get("/api/status").await.ok(),
        _ => None,
    };
    let report = if public {
        let config = config::read(&dirs.config_file()).unwrap_or_default();
        let of_process = snapshot.as_ref().and_then(|s| s.app.mcp.as_deref()).and_then(|u| Url::parse(u).ok());
        let relay = of_process.or(config.relay.public_url).or(config.relay.url);
        let relay = relay.ok_or_else(|| Failure::plain("no relay is known: start it, or set relay.public_url"))?;
        doctor::examine_public(&relay, config.link.ca_file.as_deref()).await
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
