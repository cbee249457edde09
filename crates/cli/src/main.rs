//! `holdfast`: headless engines, relay and command line.

mod args;
mod ask;
mod commands;
mod failure;
mod print;
mod system_start;

use std::process::ExitCode;

use clap::Parser as _;

use args::Cli;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    if let Some(code) = holdfast_host::run::asked() {
        return code;
    }
    // First of all: everything that speaks TLS takes the process's provider. Only a second call fails.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let cli = Cli::parse();
    let json = cli.folders.json;
    let runtime = match holdfast_host::runtime::build() {
        Ok(runtime) => runtime,
        Err(e) => {
            eprintln!("holdfast: {e}");
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
