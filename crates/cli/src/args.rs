//! The words of the command line.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use holdfast_core::command::Engine;
use holdfast_core::policy::{Profile, Role};
use holdfast_host::config::LogLevel;
use holdfast_host::paths::Dirs;
use url::Url;

use crate::commands::channel::args::Channel;
use crate::commands::op::args::Op;
use crate::failure::Failure;
use crate::system_start::args::Service;

const EXIT_CODES: &str = "Exit codes: 0 done · 1 not done · 2 wrong command line, or a value in it that cannot be read · 3 nothing runs on the data folder · \
4 the data folder is in use by a process that does not answer · 5 doctor, drill, `channel check` or `channel setup` found that something does not work · 6 the seat's holder lives and does not answer \
(`seat take --force` ends it). `op run` and `op read -f` end with the program's own code, 128 and its signal's number, 130 after Ctrl-C, or 125.";

/// Keeps this machine reachable for AI agents, and never loses their work when the network goes away.
#[derive(Debug, Parser)]
#[command(name = "holdfast", version, after_help = EXIT_CODES, disable_help_subcommand = true)]
pub struct Cli {
    #[command(flatten)]
    pub folders: Folders,
    #[command(subcommand)]
    pub command: Command,
}

/// What every command takes.
#[derive(Debug, Clone, Args)]
pub struct Folders {
    /// Folder of everything but the configuration [env: HOLDFAST_DATA_DIR].
    #[arg(long, global = true, value_name = "DIR", help_heading = "Everywhere")]
    pub data_dir: Option<PathBuf>,
    /// Folder of config.toml [env: HOLDFAST_CONFIG_DIR].
    #[arg(long, global = true, value_name = "DIR", help_heading = "Everywhere")]
    pub config_dir: Option<PathBuf>,
    /// Print one JSON document, or JSON lines; errors too, on stderr.
    #[arg(long, global = true, help_heading = "Everywhere")]
    pub json: bool,
}

impl Folders {
    /// The folders this command works with.
    pub fn dirs(&self) -> Result<Dirs, Failure> {
        Dirs::find(self.config_dir.clone(), self.data_dir.clone()).map_err(|e| Failure::plain(e.to_string()))
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the daemon, and a relay unless one is configured
    Serve(Serve),
    /// Run a relay alone, on a server
    Relay(Relay),
    /// Join this machine to a relay
    Enroll(Enroll),
    /// Accounts of the relay
    #[command(subcommand)]
    Account(Account),
    /// Machines that may join the relay
    #[command(subcommand)]
    Device(Device),
    /// Static tokens for clients that cannot sign in
    #[command(subcommand)]
    Token(Token),
    /// Let a client in, with the code its browser page shows
    Approve {
        /// The code; read from stdin if absent
        code: Option<String>,
    },
    /// Answer a call that asks before it runs, as `holdfast status` shows it
    Answer {
        /// The question's id
        question: String,
        /// Whether it may run
        answer: YesNo,
        /// The same answer for this client until the process ends
        #[arg(long)]
        remember: bool,
    },
    /// Clients that were let in
    #[command(subcommand)]
    Client(Client),
    /// What clients may do on this machine
    #[command(subcommand)]
    Policy(Policy),
    /// The bot at a chat service
    #[command(subcommand)]
    Channel(Channel),
    /// Which process speaks for the bot
    #[command(subcommand)]
    Seat(Seat),
    /// How it is now
    Status {
        /// Print again with every change
        #[arg(long)]
        watch: bool,
    },
    /// Durable operations: work that outlives the network, the relay and Holdfast itself
    #[command(subcommand)]
    Op(Op),
    /// Recent calls, step by step
    Calls,
    /// The log
    Logs {
        /// How many lines
        #[arg(short = 'n', long, default_value_t = 50)]
        lines: usize,
        /// Print what comes, too
        #[arg(short, long)]
        follow: bool,
        /// Only this level and worse
        #[arg(long, value_enum, default_value_t = Level::Debug)]
        level: Level,
    },
    /// Open the status window in the browser
    Open {
        /// Print its address instead; it is good once, for a minute
        #[arg(long)]
        print: bool,
    },
    /// Look for what keeps this machine from being reached
    Doctor {
        /// Look at the published relay, as the world sees it
        #[arg(long)]
        public: bool,
        /// Write everything that helps to find a fault into a file, without secrets
        #[arg(long, value_name = "FILE", conflicts_with = "public")]
        support: Option<PathBuf>,
    },
    /// Cut the link on purpose and watch a call survive it
    Drill {
        /// For how long
        #[arg(long, default_value = "5s", value_parser = duration)]
        cut: Duration,
        /// Also when real calls are running
        #[arg(long)]
        force: bool,
    },
    /// Start the engines of the running process, or one of them
    Start {
        #[arg(value_parser = engine)]
        engine: Option<Engine>,
    },
    /// Stop the engines of the running process, or one of them; calls may finish
    Stop {
        #[arg(value_parser = engine)]
        engine: Option<Engine>,
    },
    /// Let the system start Holdfast
    #[command(subcommand)]
    Service(Service),
    /// Remove what Holdfast keeps on this machine: credentials, grants, results, logs
    Reset {
        /// The configuration file too
        #[arg(long)]
        all: bool,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Completions for a shell
    Completions { shell: clap_complete::Shell },
    /// Write the manual pages into a folder
    #[command(hide = true)]
    Man { folder: PathBuf },
    /// The JSON schema of config.toml
    #[command(name = "config-schema")]
    ConfigSchema,
}

#[derive(Debug, Args)]
pub struct Serve {
    /// The folder clients work in; ~/holdfast by default
    #[arg(long, value_name = "DIR")]
    pub workspace: Option<PathBuf>,
    /// Where the embedded relay listens
    #[arg(long, value_name = "ADDR", conflicts_with = "relay")]
    pub listen: Option<SocketAddr>,
    /// Use this relay instead of an embedded one
    #[arg(long, value_name = "URL", value_parser = web_address)]
    pub relay: Option<Url>,
}

#[derive(Debug, Args)]
pub struct Relay {
    /// Where to listen
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<SocketAddr>,
    /// The address clients use, if it is another one
    #[arg(long, value_name = "URL", value_parser = web_address)]
    pub public_url: Option<Url>,
    /// Certificate chain (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key", conflicts_with = "behind_proxy")]
    pub tls_cert: Option<PathBuf>,
    /// Private key (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Network of the reverse proxy in front; may be given several times
    #[arg(long, value_name = "CIDR")]
    pub behind_proxy: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Enroll {
    /// The relay's address
    #[arg(value_parser = web_address)]
    pub relay: Url,
    /// The one-time code; read from stdin if absent
    pub code: Option<String>,
    /// What the relay shall call this machine; its host name by default
    #[arg(long)]
    pub name: Option<String>,
    /// Read a credential from stdin instead of a code (for a relay that gives none)
    #[arg(long, conflicts_with_all = ["code", "name"])]
    pub token_stdin: bool,
}

#[derive(Debug, Subcommand)]
pub enum Account {
    /// Make an account
    Add {
        /// 3 to 64 of a-z 0-9 . _ -
        name: String,
        /// owner, operator, editor or reviewer
        #[arg(long, value_parser = role)]
        role: Role,
        /// Read the password from stdin; without one, only local approval signs in
        #[arg(long)]
        password_stdin: bool,
    },
    /// List accounts
    List,
}

#[derive(Debug, Subcommand)]
pub enum Device {
    /// Print a one-time code with which a machine enrols
    Code {
        /// Whose machine it will be; the only account by default
        #[arg(long)]
        account: Option<String>,
    },
    /// List machines
    List,
    /// Give a machine another name
    Rename {
        /// Id or name
        device: String,
        /// The new name
        name: String,
    },
    /// Make a machine the one that new clients reach
    Default {
        /// Id or name
        device: String,
    },
    /// Take a machine's credential away
    Revoke {
        /// Id or name
        device: String,
    },
}

#[derive(Debug, Subcommand)]
pub enum Token {
    /// Make a token and print it, once
    Create {
        /// What it is for
        #[arg(long)]
        name: String,
        /// At most this role; the account's own by default
        #[arg(long, value_parser = role)]
        role: Option<Role>,
        /// Id or name; the account's default by default
        #[arg(long)]
        device: Option<String>,
        /// The only account by default
        #[arg(long)]
        account: Option<String>,
        /// Days until it expires; 90 by default
        #[arg(long)]
        days: Option<u32>,
    },
    /// List tokens
    List,
    /// Take a token away
    Revoke {
        /// Its id, as listed
        token: String,
    },
}

#[derive(Debug, Subcommand)]
pub enum Client {
    /// List clients
    List,
    /// Take away what a client was granted
    Revoke {
        /// A client's id, or one grant's, as listed
        #[arg(required_unless_present = "all", conflicts_with = "all")]
        client: Option<String>,
        /// Cut all access: every grant and token ends, running calls are killed, the link stops
        #[arg(long)]
        all: bool,
    },
}

#[derive(Debug, Subcommand)]
pub enum Seat {
    /// Who holds it, and what this process does about it
    Show,
    /// Take it, from its holder if there is one: that one finishes what is under way, disconnects and lets go
    Take {
        /// Wait until nobody holds it instead; not kept over a restart
        #[arg(long)]
        wait: bool,
        /// End the holder's process (kill) if it lives and does not answer
        #[arg(long, conflicts_with = "wait")]
        force: bool,
    },
    /// Let go of it
    Release,
}

#[derive(Debug, Subcommand)]
pub enum Policy {
    /// Change it, now and for good: review, edit, agent or full
    Set {
        /// review, edit, agent or full
        #[arg(value_parser = profile)]
        profile: Profile,
    },
}

/// An answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum YesNo {
    Yes,
    No,
}

/// Levels of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Level {
    Error,
    Warn,
    Info,
    Debug,
}

impl From<Level> for LogLevel {
    fn from(level: Level) -> LogLevel {
        match level {
            Level::Error => LogLevel::Error,
            Level::Warn => LogLevel::Warn,
            Level::Info => LogLevel::Info,
            Level::Debug => LogLevel::Debug,
        }
    }
}

fn role(text: &str) -> Result<Role, String> {
    Role::parse(text).ok_or_else(|| "owner, operator, editor or reviewer".into())
}

fn profile(text: &str) -> Result<Profile, String> {
    Profile::parse(text).ok_or_else(|| "review, edit, agent or full".into())
}

fn engine(text: &str) -> Result<Engine, String> {
    Engine::parse(text).ok_or_else(|| "relay, link, worker or channels".into())
}

/// An address of `https` or `http`.
pub fn web_address(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "https" | "http") && url.has_host());
    url.ok_or_else(|| "a web address such as https://relay.example is expected".into())
}

/// The same as [`duration`], and more than none.
pub fn some_time(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("it would be over at once; without it there is no limit".into()),
        time => Ok(time),
    }
}

/// `500ms`, `5s`, `2m`, `1h`, or a number of seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let per_unit = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(TIMES.into()),
    };
    let seconds = number.parse::<f64>().map_err(|_| TIMES)? * per_unit;
    Duration::try_from_secs_f64(seconds).map_err(|e| e.to_string())
}

const TIMES: &str = "a time such as 500ms, 5s, 2m or 1h is expected";

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn times_are_read_with_their_unit() {
        assert_eq!(duration("5s"), Ok(Duration::from_secs(5)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("7"), Ok(Duration::from_secs(7)));
        assert_eq!(duration("1h"), Ok(Duration::from_secs(3600)));
        for bad in ["", "s", "5 s", "5d", "-5s", "1e99m"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
        assert_eq!(some_time("1ms"), Ok(Duration::from_millis(1)));
        for none in ["0", "0s", "0h"] {
            assert_eq!(some_time(none), Err("it would be over at once; without it there is no limit".into()), "{none}");
        }
    }

    #[test]
    fn a_relay_has_an_address_of_the_web() {
        for good in ["https://relay.example", "http://127.0.0.1:8787", "https://relay.example/at/a/path"] {
            assert!(web_address(good).is_ok(), "{good}");
        }
        for bad in ["notaurl", "", "ftp://x", "relay.example", "relay.example:443", "https://", "file:///etc/passwd"] {
            assert!(web_address(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn every_command_takes_the_folders() {
        let cli =
            Cli::try_parse_from(["holdfast", "device", "list", "--data-dir", "/d", "--config-dir", "/c", "--json"]);
        let folders = cli.unwrap().folders;
        assert_eq!((folders.data_dir, folders.config_dir), (Some("/d".into()), Some("/c".into())));
        assert!(folders.json);
    }
}
