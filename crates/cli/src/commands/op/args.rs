//! The words of `op`.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use holdfast_core::operation::{OnFull, OnLeaseExpiry, Stream};

use crate::args::some_time;

const RUN_HELP: &str = "Ends with the program's own exit code, or 128 and the number of the signal that ended it; with 125 if it did not start, was cancelled, its outcome is unknown, \
or output is missing: the relay keeps the first 1 MiB and the last 64 MiB of each stream, so a watcher that is slower than its program \
by more than that misses what lies between, and is told how much. Ctrl-C stops watching, leaves it running and ends with 130.

With --json it prints one JSON object a line: {\"event\":\"started\",\"operation\":…}, then {\"event\":\"output\",\"stream\",\"offset\",\"data\"} \
with the bytes as base64 and {\"event\":\"gap\",\"stream\",\"offset\",\"next\"} for bytes that were not kept, and in the end \
{\"event\":\"end\",\"operation\":…,\"missing\"} or, after Ctrl-C, {\"event\":\"left\"}; `op read --json` prints the same lines. Times are \
milliseconds since 1970.";

#[derive(Debug, Subcommand)]
pub enum Op {
    /// Run a program on this machine, and watch it; it outlives the network, the relay and this command
    #[command(after_help = RUN_HELP)]
    Run(Run),
    /// What is known of an operation
    Show {
        /// Its id
        operation: String,
    },
    /// Print an operation's output
    Read {
        /// Its id
        operation: String,
        /// Which stream; both if absent, each where it belongs
        #[arg(long, value_parser = stream)]
        stream: Option<Stream>,
        /// Where to begin, in bytes from the stream's beginning
        #[arg(long, default_value_t = 0)]
        offset: u64,
        /// Wait for more, until it ends
        #[arg(short, long)]
        follow: bool,
    },
    /// Send stdin to an operation that was started with --stdin
    Input {
        /// Its id
        operation: String,
        /// Close its input afterwards
        #[arg(long)]
        close: bool,
    },
    /// The newest operations
    List {
        /// Only those that have not ended
        #[arg(long)]
        living: bool,
    },
    /// Cancel an operation, whether the relay can be reached or not
    Cancel {
        /// Its id
        #[arg(required_unless_present = "session", conflicts_with = "session")]
        operation: Option<String>,
        /// Everything that was started under this name, and what will be
        #[arg(long)]
        session: Option<String>,
    },
}

#[derive(Debug, Args)]
pub struct Run {
    /// One command line for the system's shell instead of a program
    #[arg(long)]
    pub shell: bool,
    /// Folder to run in, relative to the workspace; without it, the folder you are in
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<String>,
    /// A variable, NAME=VALUE; may be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    pub env: Vec<(String, String)>,
    /// Pass this command's stdin on
    #[arg(long)]
    pub stdin: bool,
    /// Kill it after this time
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    pub timeout: Option<Duration>,
    /// A name under which operations can be cancelled together
    #[arg(long)]
    pub session: Option<String>,
    /// The same key again is the same operation: it is watched, not run a second time
    #[arg(long)]
    pub key: Option<String>,
    /// If the relay is away for longer than the lease
    #[arg(long, value_enum, default_value_t = Expiry::Continue)]
    pub on_lease_expiry: Expiry,
    /// If nobody fetches its output and the spool is full
    #[arg(long, value_enum, default_value_t = Full::Wait)]
    pub on_full: Full,
    /// Print its id and do not watch
    #[arg(long, conflicts_with = "stdin")]
    pub detach: bool,
    /// Program and arguments, after --
    #[arg(last = true, required = true)]
    pub argv: Vec<String>,
}

/// See [`OnLeaseExpiry`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Expiry {
    /// It goes on
    Continue,
    /// It is killed
    Stop,
}

impl From<Expiry> for OnLeaseExpiry {
    fn from(expiry: Expiry) -> OnLeaseExpiry {
        match expiry {
            Expiry::Continue => OnLeaseExpiry::Continue,
            Expiry::Stop => OnLeaseExpiry::Stop,
        }
    }
}

/// See [`OnFull`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Full {
    /// It waits; nothing is lost
    Wait,
    /// The middle of its output is given up, counted
    DropMiddle,
}

impl From<Full> for OnFull {
    fn from(full: Full) -> OnFull {
        match full {
            Full::Wait => OnFull::Wait,
            Full::DropMiddle => OnFull::DropMiddle,
        }
    }
}

fn stream(text: &str) -> Result<Stream, String> {
    Stream::parse(text).ok_or_else(|| "stdout, stderr or pty".into())
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err("a name and its value are expected, such as LANG=C; to pass one of yours on, NAME=\"$NAME\"".into()),
    }
}
