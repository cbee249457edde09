//! Everything a person or a script can ask of a running Holdfast. One dispatcher in `holdfast-host` serves the tray,
//! the window, the loopback API and the command line.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::policy::{Profile, Role};

/// A part of Holdfast that can be started and stopped by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// The relay inside this process.
    Relay,
    /// The link to the relay, with the executor behind it.
    Link,
    /// Durable operations for the relay.
    Worker,
    /// The seat at a chat service; hosted only when a channel is set up.
    Channels,
}

impl Engine {
    /// All engines, in the order in which they start.
    pub const ALL: [Engine; 4] = [Engine::Relay, Engine::Link, Engine::Worker, Engine::Channels];

    /// The name on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Engine::Relay => "relay",
            Engine::Link => "link",
            Engine::Worker => "worker",
            Engine::Channels => "channels",
        }
    }

    /// The engine of a name.
    pub fn parse(text: &str) -> Option<Engine> {
        Engine::ALL.into_iter().find(|e| e.as_str() == text)
    }
}

/// A password or a code on its way in. Debug output hides it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(transparent)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hidden]")
    }
}

/// One request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS), ts(optional_fields = nullable))]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub enum Command {
    /// Starts one engine, or all.
    Start {
        /// Which; absent means all.
        #[serde(default)]
        engine: Option<Engine>,
    },
    /// Stops one engine, or all, after its calls have ended.
    Stop {
        /// Which; absent means all.
        #[serde(default)]
        engine: Option<Engine>,
    },
    /// Ends the process after its calls have ended.
    Quit {
        /// Does not wait for calls.
        #[serde(default)]
        #[cfg_attr(feature = "ts", ts(optional = nullable))]
        now: bool,
    },
    /// Tries to connect at once.
    TryNow {},
    /// Reads the configuration again.
    Reload {},
    /// Ends the engines after their calls have ended, reads the configuration again, and starts them; the process stays.
    Restart {},
    /// Changes the policy, to a stronger or a weaker one, for good.
    PolicySet {
        /// The new profile.
        profile: Profile,
    },
    /// Approves the consent request whose page shows this code.
    Approve {
        /// Eight base32 characters.
        code: Secret,
    },
    /// Refuses a client that waits to be let in; its browser is told.
    Deny {
        /// The id in [`crate::status::Consent`].
        consent: String,
    },
    /// Makes an account.
    AccountAdd {
        /// Its name.
        name: String,
        /// What it may do.
        role: Role,
        /// For signing in at the consent page; absent means local approval only.
        #[serde(default)]
        password: Option<Secret>,
    },
    /// Lists accounts.
    AccountList {},
    /// Makes a one-time enrolment code.
    DeviceCode {
        /// The account's name; absent means the only account.
        #[serde(default)]
        account: Option<String>,
    },
    /// Lists devices.
    DeviceList {},
    /// Gives a device another name.
    DeviceRename {
        /// The device, by id or name.
        device: String,
        /// Its new name.
        name: String,
    },
    /// Makes a device the one `/mcp` means for new grants.
    DeviceDefault {
        /// The device, by id or name.
        device: String,
    },
    /// Takes a device's credential away.
    DeviceRevoke {
        /// The device, by id or name.
        device: String,
    },
    /// Lists connected clients.
    ClientList {},
    /// Takes a client's grant away: its calls are cancelled, its sessions end.
    ClientRevoke {
        /// The client's id, or one grant's, as listed.
        client: String,
    },
    /// Makes a personal access token.
    TokenCreate {
        /// What it is for.
        name: String,
        /// At most this role; absent means the account's own.
        #[serde(default)]
        role: Option<Role>,
        /// By id or name; absent means the account's default device.
        #[serde(default)]
        device: Option<String>,
        /// The account's name; absent means the only account.
        #[serde(default)]
        account: Option<String>,
        /// Days until it expires; absent means the default.
        #[serde(default)]
        days: Option<u32>,
    },
    /// Stores the credential of a remote relay that a code bought, and uses it from now on.
    DeviceToken {
        /// The relay's address.
        relay: String,
        /// The credential.
        token: Secret,
    },
    /// Lists personal access tokens.
    TokenList {},
    /// Takes a token away.
    TokenRevoke {
        /// Its id, as listed.
        token: String,
    },
    /// Revokes every grant, kills calls and stops the link.
    CutAllAccess {},
    /// Answers a call that asks before it runs.
    Answer {
        /// The question's id.
        question: String,
        /// Whether it may run.
        allow: bool,
        /// The same answer for this client until the process ends.
        #[serde(default)]
        #[cfg_attr(feature = "ts", ts(optional = nullable))]
        remember: bool,
    },
    /// Cancels a durable operation of this machine, whether the relay is there or not.
    OperationCancel {
        /// Its id.
        operation: String,
    },
    /// A person has seen that an operation's outcome is unknown: it is not shown any more.
    OperationDismiss {
        /// Its id.
        operation: String,
    },
    /// Takes the seat, from its holder if there is one.
    SeatTake {
        /// Waits until it is free instead of taking it from a holder that lives.
        #[serde(default)]
        #[cfg_attr(feature = "ts", ts(optional = nullable))]
        wait: bool,
        /// Ends the holder's process if it lives and does not answer: the answer to the question in `seat.frozen`.
        #[serde(default)]
        #[cfg_attr(feature = "ts", ts(optional = nullable))]
        force: bool,
    },
    /// Lets go of the seat.
    SeatRelease {},
    /// The seat as it is at this moment: who holds it is looked up anew, where the status looks every second.
    SeatShow {},
    /// Proves a bot's token at the chat service, keeps it among the secrets and uses that bot from now on.
    ChannelSetup {
        /// The chat service: `discord` or `telegram`; absent: the one of which the token is.
        #[serde(default)]
        backend: Option<String>,
        /// The bot's token.
        token: Secret,
        /// Another address of the service's API than its own; `https`, or `http` to this machine. Absent: as configured.
        #[serde(default)]
        base_url: Option<String>,
        /// Another address of Discord's gateway than the one it names itself. Absent: as configured.
        #[serde(default)]
        gateway_url: Option<String>,
    },
    /// Forgets the bot and its token. Bindings and people stay.
    ChannelRemove {},
    /// Adds a binding, or changes what is named of one.
    ChannelBind {
        /// Its name.
        name: String,
        /// Key of `[[channel.binding]]` → new value; `null` takes the key away.
        #[cfg_attr(feature = "ts", ts(type = "Record<string, unknown>"))]
        set: BTreeMap<String, serde_json::Value>,
    },
    /// Takes a binding away.
    ChannelUnbind {
        /// Its name.
        name: String,
    },
    /// Without a code: from now on, for some minutes, people who write to the bot get one. With a code: whoever got it is
    /// admitted.
    ChannelPair {
        /// As the bot told it.
        #[serde(default)]
        code: Option<Secret>,
    },
    /// Lets somebody speak to the agents.
    ChannelAdmit {
        /// By their id at the service.
        person: String,
    },
    /// Hears somebody no longer.
    ChannelDismiss {
        /// By their id at the service.
        person: String,
    },
    /// Tries again what was refused: a channel is not parked any more, and its refused messages are sent again.
    ChannelRetry {
        /// Its id; absent means every channel.
        #[serde(default)]
        channel: Option<String>,
        /// Also what may be there already: it may then stand there twice.
        #[serde(default)]
        #[cfg_attr(feature = "ts", ts(optional = nullable))]
        unknown: bool,
    },
    /// Posts a test message in the channel of a binding.
    ChannelTest {
        /// Its name.
        binding: String,
    },
    /// Asks the service whether the bot can hear and speak; changes nothing.
    ChannelCheck {
        /// A channel that no binding has yet.
        #[serde(default)]
        channel: Option<String>,
    },
    /// Finds transcripts of agents on this machine, the likeliest first.
    ChannelCandidates {
        /// The folder an agent works in; absent: wherever.
        #[serde(default)]
        project: Option<String>,
    },
    /// Changes settings in the configuration file, keeping its comments, and applies what can be applied.
    Configure {
        /// Dotted key → new value; `null` takes the key away.
        #[cfg_attr(feature = "ts", ts(type = "Record<string, unknown>"))]
        set: BTreeMap<String, serde_json::Value>,
    },
    /// Starts the tray application at login, or no longer.
    Autostart {
        /// Which of the two.
        on: bool,
    },
    /// Shows the folder of the logs.
    OpenLogs {},
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_hides_its_secrets_when_it_is_printed() {
        let command =
            Command::AccountAdd { name: "ann".into(), role: Role::Owner, password: Some(Secret("hunter2".into())) };
        let printed = format!("{command:?}");
        assert!(printed.contains("[hidden]") && !printed.contains("hunter2"), "{printed}");
    }

    #[test]
    fn a_command_reads_from_its_documented_json_and_refuses_unknown_fields() {
        let read = |text| serde_json::from_str::<Command>(text);
        assert_eq!(read(r#"{"command":"try_now"}"#).unwrap(), Command::TryNow {});
        assert_eq!(
            read(r#"{"command":"stop","engine":"link"}"#).unwrap(),
            Command::Stop { engine: Some(Engine::Link) }
        );
        assert!(read(r#"{"command":"quit","force":true}"#).is_err());
        assert!(read(r#"{"command":"format_disk"}"#).is_err());
    }
}
