//! `service`: Holdfast started by the system, and again when it fails.

pub mod args;
#[cfg(target_os = "macos")]
mod launchd;
#[cfg(all(unix, not(target_os = "macos")))]
mod systemd;
mod unit;

#[cfg(target_os = "macos")]
use launchd as system;
#[cfg(all(unix, not(target_os = "macos")))]
use systemd as system;

use serde_json::json;

use crate::args::Folders;
use crate::ask::running;
use crate::failure::Failure;
use crate::print;
use args::{Install, Service, Which};
use unit::Start;

pub async fn service(folders: &Folders, command: Service) -> Result<(), Failure> {
    match command {
        Service::Install(what) => install(folders, what).await,
        Service::Remove { which } => {
            let said = system::Place::of(which)?.remove().await?;
            tell(folders, &said)
        }
        Service::Status { which } => {
            let place = system::Place::of(which)?;
            let (installed, state) = (place.file().exists(), place.state().await);
            if folders.json {
                return print::json(&json!({"file": place.file(), "installed": installed, "state": state}));
            }
            match (installed, state) {
                (false, _) => print::line("no service is installed"),
                (true, state) => {
                    print::line(&format!("{}: {}", place.file().display(), state.as_deref().unwrap_or("not known")));
                }
            }
            Ok(())
        }
    }
}

async fn install(folders: &Folders, what: Install) -> Result<(), Failure> {
    let program = std::env::current_exe()?;
    let (place, start) = match what {
        Install::Serve(options) => {
            let dirs = folders.dirs()?;
            let place = system::Place::of(Which::Serve)?;
            if !place.file().exists() && running(&dirs).await?.is_some() {
                return Err(Failure::plain(
                    "Holdfast is already running on this data folder; quit it first, so that the service can start",
                ));
            }
            (place, Start::serve(program, options, &dirs.config, &dirs.data)?)
        }
        Install::Relay(options) => {
            if folders.data_dir.is_some() || folders.config_dir.is_some() {
                return Err(Failure::plain(
                    "a relay that the system starts has folders of its own, see `systemctl cat holdfast-relay`",
                ));
            }
            (system::Place::of(Which::Relay)?, Start::relay(program, options)?)
        }
    };
    let said = place.install(&start).await?;
    tell(folders, &said)
}

/// What was done, line by line.
fn tell(folders: &Folders, said: &[String]) -> Result<(), Failure> {
    if folders.json {
        return print::json(&json!({"done": said}));
    }
    said.iter().for_each(|line| print::line(line));
    Ok(())
}

/// Where there is neither systemd nor launchd.
#[cfg(not(unix))]
mod system {
    use std::path::Path;

    use super::unit::Start;
    use super::{Failure, Which};

    pub enum Place {}

    impl Place {
        pub fn of(_which: Which) -> Result<Place, Failure> {
            Err(Failure::plain(
                "no service here: the tray application starts at login, and for `holdfast serve` the Task Scheduler does it: \
                 schtasks /Create /TN Holdfast /SC ONLOGON /TR \"holdfast serve\"",
            ))
        }

        pub fn file(&self) -> &Path {
            match *self {}
        }

        pub async fn state(&self) -> Option<String> {
            match *self {}
        }

        pub async fn install(&self, _start: &Start) -> Result<Vec<String>, Failure> {
            match *self {}
        }

        pub async fn remove(&self) -> Result<Vec<String>, Failure> {
            match *self {}
        }
    }
}
