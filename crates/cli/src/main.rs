//! `holdfast`: headless engines, relay and command line.

// Both end the process where nobody reads any more; `print` does not.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod args;
mod ask;
mod commands;
mod failure;
mod print;
mod system_start;

use std::process::ExitCode;

use clap::Parser as _;

use args::Cli;
use failure::{Exit, Failure};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    if let Some(code) = holdfast_host::run::asked() {
        return code;
    }
    // First of all: everything that speaks TLS takes the process's provider. Only a second call fails.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return misread(&error),
    };
    let json = cli.folders.json;
    let runtime = match holdfast_host::runtime::build() {
        Ok(runtime) => runtime,
        Err(e) => {
            print::note(&format!("holdfast: {e}"));
            return ExitCode::FAILURE;
        }
    };
    let outcome = runtime.block_on(commands::run(cli));
    // A keyring or a name look-up that hangs must not keep the process.
    runtime.shutdown_background();
    match outcome {
        Ok(code) => code,
        Err(failure) => failure.tell(json),
    }
}

/// What clap says of a wrong command line, or of what was asked of it.
fn misread(error: &clap::Error) -> ExitCode {
    if error.exit_code() == 0 {
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    let words = || std::env::args_os().skip(1).take_while(|word| word != "--");
    let failure = Failure::usage(error.to_string().trim().trim_start_matches("error: "));
    let ended = match words().any(|word| word == "--json") {
        true => failure.tell(true),
        false => {
            let _ = error.print();
            Exit::Usage.into()
        }
    };
    // Of a hook, 2 means that the tool must not run.
    if words().skip_while(|word| word != "channel").any(|word| word == "ask") { ExitCode::FAILURE } else { ended }
}
