//! The tray application.
// No console window beside it.
#![cfg_attr(not(debug_assertions), windows_subsystem = "windows")]

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    if let Some(code) = holdfast_host::run::asked() {
        return code;
    }
    // First of all: everything that speaks TLS takes the process's provider. Only a second call fails.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match holdfast_desktop::run(holdfast_desktop::Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("holdfast-desktop: {e:#}");
            ExitCode::FAILURE
        }
    }
}
