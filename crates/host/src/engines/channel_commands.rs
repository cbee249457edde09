//! What a person asks of the channel: its bot, its bindings, its people, and what passes between them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use holdfast_core::chat::ChannelId;
use holdfast_core::command::{Command, Secret};
use holdfast_core::limits;
use holdfast_core::status::{ForwarderStatus, TranscriptRow};
use serde_json::{Value, json};

use super::channels_engine::{forget_former, removed, set_up};
use super::dispatch::{edited, secrets};
use super::{CommandError, Running, StartError, done};
use crate::channel::Examined;
use crate::config::{self, ChannelConfig, Config, Delivery, EditError};
use crate::doctor::{self, CheckState};
use crate::forwarder::{DeskError, at_home};
use crate::paths::Dirs;
use crate::transcript::{self, Found, Homes, Wanted};

/// Whether a command is about the channel.
pub(super) fn of_channels(command: &Command) -> bool {
    matches!(
        command,
        Command::ChannelSetup { .. }
            | Command::ChannelRemove {}
            | Command::ChannelBind { .. }
            | Command::ChannelUnbind { .. }
            | Command::ChannelPair { .. }
            | Command::ChannelAdmit { .. }
            | Command::ChannelDismiss { .. }
            | Command::ChannelRetry { .. }
            | Command::ChannelTest { .. }
            | Command::ChannelCheck { .. }
            | Command::ChannelCandidates { .. }
    )
}

impl From<DeskError> for CommandError {
    fn from(error: DeskError) -> Self {
        match error {
            DeskError::NoSeat => {
                CommandError::new(error.code(), "this process does not speak for the bot; `holdfast seat take` first")
            }
            DeskError::Parked(_) => {
                let why = format!("{error}; once that is mended there, `holdfast channel retry` tries again");
                CommandError::new(error.code(), why)
            }
            DeskError::WrongCode => {
                CommandError::new(error.code(), format!("{error}; `holdfast channel pair` opens it anew"))
            }
            error => CommandError::new(error.code(), error.to_string()),
        }
    }
}

/// What a command changes in the file.
type Edit = Box<dyn FnOnce(&Path) -> Result<Config, EditError> + Send>;

/// A command that only changes the file, or the command again.
fn edit_of(command: Command) -> Result<(Edit, Value), Command> {
    Ok(match command {
        Command::ChannelBind { name, set } => {
            let answer = json!({"binding": name});
            (Box::new(move |path| config::bind(path, &name, &set)), answer)
        }
        Command::ChannelUnbind { name } => {
            let answer = json!({"binding": name});
            (Box::new(move |path| config::unbind(path, &name)), answer)
        }
        Command::ChannelAdmit { person } => {
            let answer = json!({"person": person});
            (Box::new(move |path| config::admit(path, &person)), answer)
        }
        Command::ChannelDismiss { person } => {
            let answer = json!({"person": person});
            (Box::new(move |path| config::dismiss(path, &person)), answer)
        }
        other => return Err(other),
    })
}

/// What was found where a binding leads.
#[derive(Default)]
struct Seen {
    /// What people call the channel.
    name: Option<String>,
    warnings: Vec<Value>,
}

impl Seen {
    fn warn(&mut self, code: &str, text: String) {
        self.warnings.push(json!({"code": code, "text": text}));
    }

    /// # Errors
    /// The folder of an agent is not there.
    async fn look_for_project(set: &BTreeMap<String, Value>) -> Result<(), CommandError> {
        let Some(project) = set.get("project").and_then(Value::as_str) else { return Ok(()) };
        let folder = at_home(project);
        if !folder.is_absolute() {
            // Refused with the rest.
            return Ok(());
        }
        match tokio::fs::metadata(folder).await {
            Ok(found) if found.is_dir() => Ok(()),
            Ok(_) => Err(CommandError::new("invalid_request", format!("the project {project} is no folder"))),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Err(CommandError::new(
                "not_found",
                format!("there is no folder {project}; a project is one that exists"),
            )),
            Err(e) => Err(CommandError::new("invalid_request", format!("the project {project}: {e}"))),
        }
    }

    async fn look_for_pane(&mut self, set: &BTreeMap<String, Value>) {
        let Some(pane) = set.get("pane").and_then(Value::as_str) else { return };
        let check = doctor::pane_of(pane).await;
        if check.state == CheckState::Failed {
            let advice = check.advice.map(|advice| format!("; {advice}")).unwrap_or_default();
            let text = format!("messages cannot be delivered yet: {}{advice}", check.found);
            self.warnings.push(json!({"code": "pane_missing", "text": text}));
        }
    }

    fn add_to(self, answer: &mut Value) {
        if let Some(name) = self.name {
            answer["channel_name"] = name.into();
        }
        if !self.warnings.is_empty() {
            answer["warnings"] = self.warnings.into();
        }
    }
}

impl Running {
    pub(super) async fn channel_command(&self, command: Command) -> Result<Value, CommandError> {
        let mut seen = Seen::default();
        if let Command::ChannelBind { set, .. } = &command {
            seen = self.look_at(set).await?;
        }
        let command = match edit_of(command) {
            Ok((edit, mut answer)) => {
                self.edit_channel(edit).await?;
                seen.add_to(&mut answer);
                return Ok(answer);
            }
            Err(command) => command,
        };
        if matches!(command, Command::ChannelPair { .. } | Command::ChannelRetry { .. } | Command::ChannelTest { .. })
            && self.channel().await?.settled().await
        {
            self.desk.opened().await;
        }
        match command {
            Command::ChannelSetup { backend, token, base_url, gateway_url } => {
                self.channel_setup(backend.as_deref(), token, base_url, gateway_url).await
            }
            Command::ChannelRemove {} => self.channel_remove().await,
            Command::ChannelPair { code: None } => {
                let open = self.desk.pair_open().await?;
                Ok(json!({"minutes": open.as_secs() / 60}))
            }
            Command::ChannelPair { code: Some(Secret(code)) } => {
                let (person, name) = self.desk.pair_typed(code).await?;
                let answer = json!({"person": person, "name": name});
                self.edit_channel(Box::new(move |path| config::admit(path, &person))).await?;
                Ok(answer)
            }
            Command::ChannelRetry { channel, unknown } => {
                let channel = channel.as_deref().map(ChannelId::parse).transpose();
                let channel = channel.map_err(|e| CommandError::new("invalid_request", e.to_string()))?;
                self.desk.retry(channel, unknown).await?;
                Ok(done())
            }
            Command::ChannelTest { binding } => {
                let message = self.desk.test(&binding).await?;
                // Whoever looks next finds it posted.
                self.channel().await?.look().await?;
                Ok(json!({"message": message}))
            }
            command => looked_up(&self.config().await, &self.dirs, command).await,
        }
    }

    /// What a person should know of what is about to be bound. What the service cannot check now is bound all the same.
    ///
    /// # Errors
    /// There is no such channel.
    async fn look_at(&self, set: &BTreeMap<String, Value>) -> Result<Seen, CommandError> {
        let mut seen = Seen::default();
        Seen::look_for_project(set).await?;
        // What is no id is refused where the rest is checked.
        if let Some(Ok(channel)) = set.get("channel").and_then(Value::as_str).map(ChannelId::parse) {
            match self.desk.examine(channel.clone()).await {
                Ok(Examined { name, lacks }) if lacks.is_empty() => seen.name = Some(name),
                Ok(Examined { name, lacks }) => {
                    seen.warn("channel_parked", format!("the bot lacks {} in {name}", lacks.join(", ")));
                    seen.name = Some(name);
                }
                // What is no id of the service's is refused with the rest.
                Err(DeskError::NoSeat | DeskError::Invalid(_)) => {}
                Err(error @ (DeskError::Parked(_) | DeskError::Later(_))) => {
                    let why = format!("channel {channel} could not be looked at: {error}");
                    seen.warn(error.code(), why);
                }
                Err(error @ DeskError::NotFound(_)) => {
                    let why = format!("the service knows no channel {channel} that the bot may see: {error}");
                    return Err(CommandError::new(error.code(), why));
                }
                Err(error) => return Err(error.into()),
            }
        }
        seen.look_for_pane(set).await;
        Ok(seen)
    }

    /// Changes the file; when this returns, what it says is in force.
    async fn edit_channel(&self, edit: Edit) -> Result<(), CommandError> {
        self.edit(edit, |_| false).await?;
        if self.renew_channel(false).await && self.channel().await.is_ok() {
            let ChannelConfig { bindings, people, .. } = self.config().await.channel;
            let is_shown = |now: &ForwarderStatus| {
                let shown = now.bindings.iter().map(|b| (&b.name, &b.channel, b.adapter.as_deref()));
                shown.eq(bindings.iter().map(|b| (&b.name, &b.channel, b.deliver.map(Delivery::as_str))))
                    && now.people.iter().map(|person| &person.id).eq(&people)
            };
            // It is in force either way; whoever looks next shall find it.
            let mut status = self.hub.watch();
            let shown = status.wait_for(|now| now.channels.as_deref().is_some_and(is_shown));
            let _ = tokio::time::timeout(limits::ASK_PLACE, shown).await;
        }
        Ok(())
    }
}

/// The same where nothing runs.
pub(super) async fn offline(dirs: &Dirs, config: &Config, command: Command) -> Result<Value, CommandError> {
    let mut seen = Seen::default();
    if let Command::ChannelBind { set, .. } = &command {
        Seen::look_for_project(set).await?;
        seen.look_for_pane(set).await;
    }
    let command = match edit_of(command) {
        Ok((edit, mut answer)) => {
            seen.add_to(&mut answer);
            let path = dirs.config_file();
            tokio::task::spawn_blocking(move || edit(&path)).await.map_err(|_| StartError::Interrupted)??;
            return Ok(answer);
        }
        Err(command) => command,
    };
    match command {
        Command::ChannelSetup { backend, token, base_url, gateway_url } => {
            let secrets = secrets(dirs, config).await?;
            let (set, answer) =
                set_up(&secrets, &config.channel, backend.as_deref(), token, base_url, gateway_url).await?;
            let now = edited(dirs, set).await?;
            forget_former(&secrets, &config.channel, &now.channel).await?;
            Ok(answer)
        }
        Command::ChannelRemove {} => {
            let secrets = secrets(dirs, config).await?;
            let (set, answer) = removed(&secrets, &config.channel).await?;
            edited(dirs, set).await?;
            Ok(answer)
        }
        command => looked_up(config, dirs, command).await,
    }
}

/// What needs no seat.
async fn looked_up(config: &Config, dirs: &Dirs, command: Command) -> Result<Value, CommandError> {
    match command {
        Command::ChannelCheck { channel } => {
            let report = doctor::examine_channel(dirs, config, channel.as_deref()).await;
            serde_json::to_value(report).map_err(|e| CommandError::failed(&e))
        }
        Command::ChannelCandidates { project } => {
            let project = project.map(PathBuf::from);
            let found = transcript::discover(Homes::here(), Wanted { project, ..Wanted::default() }).await;
            let row = |found: Found| TranscriptRow {
                path: found.path.to_string(),
                agent: found.agent.as_str().into(),
                session: found.session,
                project: found.project,
                live: found.live,
                modified: found.modified,
            };
            let rows: Vec<TranscriptRow> = found.into_iter().map(row).collect();
            serde_json::to_value(rows).map_err(|e| CommandError::failed(&e))
        }
        _ => Err(CommandError::not_running()),
    }
}
