//! The desktop shell: turns what Tauri tells into commands, and snapshots into pixels. Everything else is decided in
//! `holdfast-core` and done in `holdfast-host`.
#![cfg(feature = "desktop")]

pub mod bridge;
mod notify;
mod tray;
mod window;

use std::path::PathBuf;

use holdfast_host::bridge::Bridge;
use holdfast_host::engines::{EngineOptions, Mode, Overrides};
use holdfast_host::paths::Dirs;
use holdfast_host::resident::Resident;
use holdfast_host::{autostart, runtime, tray_host, update};
use tauri::{AppHandle, Context, Manager as _, RunEvent, Runtime};

/// Keeps this machine reachable for AI agents, from the tray.
#[derive(Debug, clap::Parser)]
#[command(name = "holdfast-desktop", version)]
pub struct Args {
    /// Open the status window; what a start without arguments does, too.
    #[arg(long)]
    show: bool,
    /// Start hidden, as at login.
    #[arg(long, conflicts_with = "show")]
    autostart: bool,
    /// Folder of everything but the configuration [env: HOLDFAST_DATA_DIR].
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Folder of config.toml [env: HOLDFAST_CONFIG_DIR].
    #[arg(long, value_name = "DIR")]
    config_dir: Option<PathBuf>,
}

/// `tauri.conf.json`, the built window, and what the window may do.
pub fn context<R: Runtime>() -> Context<R> {
    tauri::generate_context!()
}

/// Runs until somebody ends it.
pub fn run(args: Args) -> anyhow::Result<()> {
    let dirs = Dirs::find(args.config_dir, args.data_dir)?;
    #[cfg(target_os = "linux")]
    gtk::init()
        .map_err(|_| anyhow::anyhow!("there is no display to show anything on; without one, run `holdfast serve`"))?;
    let threads = runtime::build()?;
    tauri::async_runtime::set(threads.handle().clone());
    let entered = threads.enter();
    let program = Some(autostart::program()?);
    let options = EngineOptions { dirs, mode: Mode::Serve, overrides: Overrides::default(), program };
    let app = bridge::commands(tauri::Builder::default())
        // A second start ends in here, before it touches the data folder.
        .plugin(tauri_plugin_single_instance::init(|app, arguments, _| {
            if !arguments.iter().any(|a| a == "--autostart") {
                window::open(app, None);
            }
        }))
        .plugin(tauri_plugin_clipboard_manager::init())
        .plugin(tauri_plugin_notification::init())
        .setup(move |app| start(app.handle(), options, args.autostart).map_err(Into::into))
        .build(context())?;
    let handle = app.handle().clone();
    app.run_return(|app, event| {
        if let RunEvent::ExitRequested { code, api, .. } = event {
            // Without a code the last window was closed, and the tray stays.
            if code.is_none() || !app.state::<Resident>().wish_to_end() {
                api.prevent_exit();
            }
        }
    });
    if let Some(program) = handle.state::<Resident>().again() {
        return Err(update::begin_anew(program).into());
    }
    drop(entered);
    // A keyring or a name look-up that hangs must not keep the process.
    threads.shutdown_background();
    Ok(())
}

fn start(app: &AppHandle, options: EngineOptions, hidden: bool) -> anyhow::Result<()> {
    #[cfg(target_os = "macos")]
    app.set_activation_policy(tauri::ActivationPolicy::Accessory)?;
    let resident = Resident::start(options);
    app.manage(resident.clone());
    app.manage(Bridge::new(resident.clone()));
    notify::start(app);
    let iconic = tray::start(app)?;
    let opener = app.clone();
    tokio::spawn(async move {
        // Nobody could reach an application that shows nothing.
        if !(hidden && iconic && tray_host::comes().await) {
            window::open(&opener, None);
        }
    });
    let app = app.clone();
    tokio::spawn(async move {
        resident.stay().await;
        app.exit(0);
    });
    Ok(())
}
