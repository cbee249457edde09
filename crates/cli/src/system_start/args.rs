//! The words of `service`.

use clap::{Subcommand, ValueEnum};

use crate::args::{Relay, Serve};

#[derive(Debug, Subcommand)]
pub enum Service {
    /// Write the service, and start it now and with every sign-in or boot
    #[command(subcommand)]
    Install(Install),
    /// Stop it and take it away
    Remove {
        #[arg(value_enum, default_value_t = Which::Serve)]
        which: Which,
    },
    /// Whether it is installed and runs
    Status {
        #[arg(value_enum, default_value_t = Which::Serve)]
        which: Which,
    },
}

#[derive(Debug, Subcommand)]
pub enum Install {
    /// `holdfast serve` with these options, for this person
    Serve(Serve),
    /// `holdfast relay` with these options, for the whole machine; as root
    Relay(Relay),
}

/// Which service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Which {
    Serve,
    Relay,
}
