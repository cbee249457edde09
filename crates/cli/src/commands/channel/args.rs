//! The words of `channel`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use url::Url;

use crate::args::web_address;

const SETUP_HELP: &str = "The token is asked for without echo, or read from stdin; it tells which service it is of. In a terminal the first \
binding is asked for too. Discord: https://discord.com/developers/applications makes a bot; switch on its message content intent, and \
invite it with the permissions View Channel, Send Messages, Read Message History, Add Reactions and Send Messages in Threads.";

const BIND_HELP: &str = "What is not named stays as it is. Examples:\n  \
holdfast channel bind app --channel 1234567890 --project ~/app\n  \
holdfast channel bind app --deliver tmux --pane work:0.1\n  \
holdfast channel bind app --deliver command -- claude -p --resume {session}";

#[derive(Debug, Subcommand)]
pub enum Channel {
    /// Prove a bot's token at its service, use that bot, and look whether it hears and may speak
    #[command(after_help = SETUP_HELP)]
    Setup(Setup),
    /// The bot, its bindings and its people
    Show,
    /// Give an agent a channel, or change what is named of a binding
    #[command(after_help = BIND_HELP)]
    Bind(Bind),
    /// Take an agent's channel away
    Unbind {
        /// Its name
        name: String,
    },
    /// Let somebody speak to the agents: they write to the bot or name it, get a code, and it is typed here
    Pair {
        /// The code the bot gave them; without it pairing is opened, and in a terminal the code is asked for
        code: Option<String>,
    },
    /// Who may talk to the agents
    People {
        /// Hear this one no longer, by the id at the service
        #[arg(long, value_name = "ID", conflicts_with = "admit")]
        dismiss: Option<String>,
        /// Let this one speak without a code, by the id at the service
        #[arg(long, value_name = "ID")]
        admit: Option<String>,
    },
    /// Try again what a channel refused
    Retry {
        /// The binding; every channel if absent
        name: Option<String>,
        /// Send again, too, what may be there already: it may then stand there twice
        #[arg(long)]
        unknown: bool,
    },
    /// Post a test message
    Test {
        /// The binding
        name: String,
    },
    /// Ask the service whether the bot hears and may speak; changes nothing
    Check {
        /// A channel that no binding has yet
        #[arg(long, value_name = "ID", allow_negative_numbers = true)]
        channel: Option<String>,
    },
    /// The transcripts of agents on this machine, the likeliest first
    Candidates {
        /// Only of agents that work in this folder
        #[arg(long, value_name = "DIR")]
        project: Option<PathBuf>,
    },
    /// An MCP server on stdin and stdout, which an agent starts: messages are pushed to it, and it can reply
    Mcp {
        /// The binding of the agent; without it the one whose folder this is
        #[arg(long)]
        binding: Option<String>,
    },
    /// A hook of an agent that asks in the channel whether a tool may run; what is asked comes from stdin. A wrong command line ends
    /// with 1 here, because agents read 2 as a refusal
    Ask {
        /// The binding of the agent; without it the one whose folder this is
        #[arg(long)]
        binding: Option<String>,
    },
    /// Forget the bot and its token; bindings and people stay
    Remove,
}

#[derive(Debug, Args)]
pub struct Setup {
    /// The chat service; the token tells it
    #[arg(long, value_parser = ["discord", "telegram"])]
    pub backend: Option<String>,
    /// Another address of the service's API than its own
    #[arg(long, value_name = "URL", value_parser = web_address)]
    pub base_url: Option<Url>,
    /// Another address of Discord's gateway than the one it names itself
    #[arg(long, value_name = "URL")]
    pub gateway_url: Option<Url>,
    /// Bind this channel, by its id, to the agent of --project
    #[arg(long, value_name = "ID", allow_negative_numbers = true, requires = "project")]
    pub channel: Option<String>,
    /// The folder the agent works in
    #[arg(long, value_name = "DIR", requires = "channel")]
    pub project: Option<PathBuf>,
    /// The binding's name
    #[arg(long, value_name = "NAME", requires = "channel")]
    pub name: Option<String>,
    /// Post a test message there
    #[arg(long, requires = "channel")]
    pub test: bool,
}

#[derive(Debug, Args)]
pub struct Bind {
    /// Its name: letters, digits and `-`
    pub name: String,
    /// The channel's id; its threads belong to it
    #[arg(long, value_name = "ID", allow_negative_numbers = true)]
    pub channel: Option<String>,
    /// Follow the newest interactive session of this folder
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
    /// Follow this session, by its id
    #[arg(long, value_name = "ID", conflicts_with_all = ["transcript"])]
    pub session: Option<String>,
    /// Follow this transcript
    #[arg(long, value_name = "FILE")]
    pub transcript: Option<PathBuf>,
    /// How messages reach the agent: a program for each (after `--`), pasted into a tmux pane, by `holdfast channel mcp`, or as
    /// files in a folder; `none`: the channel only mirrors it
    #[arg(long, value_parser = ["command", "tmux", "mcp", "inbox", "none"])]
    pub deliver: Option<String>,
    /// For tmux: the pane, as `tmux -t` takes it
    #[arg(long, value_name = "PANE")]
    pub pane: Option<String>,
    /// For tmux: the key that stops the agent
    #[arg(long, value_name = "KEY")]
    pub stop_key: Option<String>,
    /// Whether only messages that name the bot count
    #[arg(long, value_name = "yes|no", num_args = 0..=1, default_missing_value = "yes", value_parser = yes_no)]
    pub mention: Option<bool>,
    /// Only these of the people who may speak at all, by their ids; an empty one lifts that
    #[arg(long, value_name = "ID")]
    pub people: Option<Vec<String>>,
    /// For command: the program and its arguments; {session} and {project} are filled in, and the message is its input
    #[arg(last = true, value_name = "PROGRAM")]
    pub command: Vec<String>,
}

fn yes_no(text: &str) -> Result<bool, String> {
    match text {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err("yes or no".into()),
    }
}
