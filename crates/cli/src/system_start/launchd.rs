//! launchd: an agent of this user for `serve`.

use std::path::{Path, PathBuf};

use tokio::process::Command;

use super::args::Which;
use super::unit::Start;
use crate::failure::Failure;

const LABEL: &str = "dev.holdfast.serve";

/// Where the agent stands.
pub struct Place {
    file: PathBuf,
    /// What launchd calls this user's session.
    domain: String,
}

impl Place {
    pub fn of(which: Which) -> Result<Place, Failure> {
        if which == Which::Relay {
            return Err(Failure::plain(
                "a relay belongs on a server with systemd; here run `holdfast relay` as you run other servers",
            ));
        }
        let home = dirs::home_dir().ok_or_else(|| Failure::plain("no home folder to keep the agent in"))?;
        let domain = format!("gui/{}", std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(&home)?));
        Ok(Place { domain, file: home.join("Library/LaunchAgents").join(format!("{LABEL}.plist")) })
    }

    pub fn file(&self) -> &Path {
        &self.file
    }

    pub async fn install(&self, start: &Start) -> Result<Vec<String>, Failure> {
        if let Some(folder) = self.file.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(&self.file, start.agent(LABEL)?)?;
        let mut said = vec![format!("wrote {}", self.file.display())];
        // One that runs keeps its old arguments until it is loaded anew.
        let _ = launchctl(&["bootout", &format!("{}/{LABEL}", self.domain)]).await;
        let file = self.file.display().to_string();
        launchctl(&["bootstrap", &self.domain, &file])
            .await
            .map_err(|why| Failure::plain(format!("{}; but launchctl failed: {why}", said.join(", "))))?;
        said.push(format!("launchctl bootstrap {} {file}", self.domain));
        Ok(said)
    }

    pub async fn remove(&self) -> Result<Vec<String>, Failure> {
        if !self.file.exists() {
            return Ok(vec!["no service is installed".into()]);
        }
        // One that is not loaded cannot be stopped; the file goes in any case.
        let stopped = launchctl(&["bootout", &format!("{}/{LABEL}", self.domain)]).await;
        std::fs::remove_file(&self.file)?;
        let stopped = stopped.map_or_else(|why| format!("launchctl did not stop it: {why}"), |_| "stopped it".into());
        Ok(vec![stopped, format!("removed {}", self.file.display())])
    }

    /// `running` or `not running`, as launchd says it.
    pub async fn state(&self) -> Option<String> {
        let print = launchctl(&["print", &format!("{}/{LABEL}", self.domain)]).await.ok()?;
        print.lines().find_map(|line| line.trim().strip_prefix("state = ")).map(str::to_owned)
    }
}

async fn launchctl(arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("launchctl").args(arguments).output().await.map_err(|e| e.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().replace('\n', ", ");
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(text(&output.stderr))
    }
}
