//! systemd: a person's own for `serve`, the system's for `relay`.

use std::path::{Path, PathBuf};

use tokio::process::Command;

use super::args::Which;
use super::unit::{OURS, Start};
use crate::failure::Failure;

/// The user a relay's unit names.
const RELAY_USER: &str = "holdfast-relay";

/// Where a unit stands, and which systemd reads it.
pub struct Place {
    which: Which,
    file: PathBuf,
}

impl Place {
    pub fn of(which: Which) -> Result<Place, Failure> {
        let file = match which {
            Which::Serve => dirs::config_dir()
                .map(|dir| dir.join("systemd/user/holdfast.service"))
                .ok_or_else(|| Failure::plain("no home folder to keep the unit in"))?,
            Which::Relay => "/etc/systemd/system/holdfast-relay.service".into(),
        };
        Ok(Place { which, file })
    }

    pub fn file(&self) -> &Path {
        &self.file
    }

    fn name(&self) -> &'static str {
        match self.which {
            Which::Serve => "holdfast.service",
            Which::Relay => "holdfast-relay.service",
        }
    }

    pub async fn install(&self, start: &Start) -> Result<Vec<String>, Failure> {
        let text = match self.which {
            Which::Serve => start.serve_unit()?,
            Which::Relay => start.relay_unit()?,
        };
        self.check_ours()?;
        if let Some(folder) = self.file.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(&self.file, text).map_err(|e| self.refused(&e))?;
        let mut said = vec![format!("wrote {}", self.file.display())];
        if self.which == Which::Relay && !user_exists(RELAY_USER).await {
            said.push(match make_user(RELAY_USER).await {
                true => format!("made the user {RELAY_USER}"),
                false => format!("make the user {RELAY_USER}, which the unit names; it could not be made here"),
            });
        }
        let steps: [&[&str]; 3] = [&["daemon-reload"], &["enable", self.name()], &["restart", self.name()]];
        for step in steps {
            match self.systemctl(step).await {
                Answer::Done(_) => said.push(format!("systemctl {}", self.words(step).join(" "))),
                Answer::Missing => {
                    said.push("there is no systemctl here; systemd starts it when it finds the unit".into());
                    break;
                }
                Answer::Failed(why) => {
                    let command = self.words(step).join(" ");
                    return Err(Failure::plain(format!(
                        "{}; but `systemctl {command}` failed: {why}",
                        said.join(", ")
                    )));
                }
            }
        }
        if self.which == Which::Serve {
            said.push("it runs while you are signed in; `loginctl enable-linger` makes it run always".into());
        }
        Ok(said)
    }

    pub async fn remove(&self) -> Result<Vec<String>, Failure> {
        if !self.file.exists() {
            return Ok(vec!["no service is installed".into()]);
        }
        self.check_ours()?;
        let mut said = Vec::new();
        let stop = ["disable", "--now", self.name()];
        match self.systemctl(&stop).await {
            Answer::Done(_) => said.push(format!("systemctl {}", self.words(&stop).join(" "))),
            Answer::Missing => {}
            // A unit that systemd forgot, or a systemd that does not answer: the file goes in any case.
            Answer::Failed(why) => said.push(format!("systemctl did not stop it: {why}")),
        }
        std::fs::remove_file(&self.file).map_err(|e| self.refused(&e))?;
        said.push(format!("removed {}", self.file.display()));
        if let Answer::Done(_) = self.systemctl(&["daemon-reload"]).await {
            said.push(format!("systemctl {}", self.words(&["daemon-reload"]).join(" ")));
        }
        Ok(said)
    }

    /// `active`, `inactive`, `failed` …, as systemd says it.
    pub async fn state(&self) -> Option<String> {
        match self.systemctl(&["show", "--property=ActiveState", "--value", self.name()]).await {
            Answer::Done(state) => Some(state).filter(|state| !state.is_empty()),
            _ => None,
        }
    }

    /// A unit that a person wrote is left to that person.
    fn check_ours(&self) -> Result<(), Failure> {
        match std::fs::read_to_string(&self.file) {
            Ok(text) if !text.starts_with(OURS) => {
                Err(Failure::plain(format!("{} was not written by this command; remove it first", self.file.display())))
            }
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(self.refused(&e)),
            _ => Ok(()),
        }
    }

    fn refused(&self, error: &std::io::Error) -> Failure {
        let hint = match (self.which, error.kind()) {
            (Which::Relay, std::io::ErrorKind::PermissionDenied) => {
                "; a relay is a service of the system, run this as root"
            }
            _ => "",
        };
        Failure::plain(format!("{}: {error}{hint}", self.file.display()))
    }

    fn words<'a>(&self, step: &[&'a str]) -> Vec<&'a str> {
        let whose = (self.which == Which::Serve).then_some("--user");
        whose.into_iter().chain(step.iter().copied()).collect()
    }

    async fn systemctl(&self, step: &[&str]) -> Answer {
        match Command::new("systemctl").args(self.words(step)).output().await {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Answer::Missing,
            Err(e) => Answer::Failed(e.to_string()),
            Ok(output) if output.status.success() => {
                Answer::Done(String::from_utf8_lossy(&output.stdout).trim().to_owned())
            }
            Ok(output) => Answer::Failed(String::from_utf8_lossy(&output.stderr).trim().replace('\n', ", ")),
        }
    }
}

enum Answer {
    Done(String),
    Missing,
    Failed(String),
}

async fn user_exists(name: &str) -> bool {
    Command::new("id").arg(name).output().await.is_ok_and(|output| output.status.success())
}

async fn make_user(name: &str) -> bool {
    let arguments = ["--system", "--no-create-home", "--shell", "/usr/sbin/nologin", name];
    Command::new("useradd").args(arguments).output().await.is_ok_and(|output| output.status.success())
}
