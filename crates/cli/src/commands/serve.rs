//! `serve` and `relay`: the processes that stay.

use holdfast_core::command::Engine;
use holdfast_core::status::StatusSnapshot;
use holdfast_host::engines::{EngineOptions, Mode, Overrides};
use holdfast_host::resident::Resident;
use serde_json::json;
use tokio::sync::mpsc;

use crate::args::{Folders, Relay, Serve};
use crate::failure::Failure;
use crate::print;

pub async fn serve(folders: &Folders, args: Serve) -> Result<(), Failure> {
    let Serve { workspace, listen, relay } = args;
    let overrides = Overrides { workspace, listen, relay, ..Overrides::default() };
    stay(folders, Mode::Serve, overrides).await
}

pub async fn relay(folders: &Folders, args: Relay) -> Result<(), Failure> {
    let Relay { listen, public_url, tls_cert, tls_key, behind_proxy } = args;
    let overrides = Overrides { listen, public_url, tls: tls_cert.zip(tls_key), behind_proxy, ..Overrides::default() };
    stay(folders, Mode::Relay, overrides).await
}

/// Runs until a signal or a command ends it. The first signal lets calls finish; the second does not.
async fn stay(folders: &Folders, mode: Mode, overrides: Overrides) -> Result<(), Failure> {
    // Not where tools run: programs would inherit the limit, and some cannot live with a large one.
    if mode == Mode::Relay {
        holdfast_host::runtime::raise_descriptor_limit();
    }
    let mut signals = holdfast_host::runtime::signals()?;
    let options = EngineOptions { dirs: folders.dirs()?, mode, overrides, program: None };
    let resident = tokio::select! {
        started = Resident::launch(options) => started?,
        _ = signals.recv() => return Ok(()),
    };
    let (status, api) = (resident.status(), resident.api().await.unwrap_or_default());
    if folders.json {
        let mcp = status.app.mcp.as_deref().unwrap_or_default();
        print::json(&json!({"event": "ready", "mcp": mcp, "api": api, "pid": status.app.pid}))?;
    } else {
        greet(&status, mode, &api);
    }
    tokio::select! {
        () = resident.quit_asked() => {}
        _ = signals.recv() => {}
    }
    if !folders.json {
        let running = resident.status().calls.pending;
        let waiting = match running {
            0 => "stopping…".to_owned(),
            some => format!("finishing {} (again: stop now)…", print::count(some as u64, "call", "calls")),
        };
        print::note(&waiting);
    }
    let hurried = hurry_on_signal(signals, &resident);
    tokio::select! {
        () = resident.shutdown() => {}
        () = hurried => {}
    }
    match resident.again() {
        Some(program) => Err(Failure::plain(holdfast_host::update::begin_anew(program).to_string())),
        None => Ok(()),
    }
}

/// The second signal means *now*; the third one does not even wait for that.
async fn hurry_on_signal(mut signals: mpsc::Receiver<()>, resident: &Resident) {
    let _ = signals.recv().await;
    resident.hurry();
    let _ = signals.recv().await;
}

fn greet(status: &StatusSnapshot, mode: Mode, api: &str) {
    let mcp = status.app.mcp.as_deref().unwrap_or_default();
    let remote = !status.app.engines.contains_key(&Engine::Relay);
    let mut lines = vec![format!("holdfast {} runs", status.app.version), String::new()];
    lines.push(format!("  MCP address   {mcp}"));
    if let Some(workspace) = &status.app.workspace {
        lines.push(format!("  workspace     {workspace}"));
    }
    if let Some(policy) = &status.app.policy {
        let meaning = match policy.as_str() {
            "review" => "clients may read the workspace",
            "edit" => "clients may read and write the workspace",
            "agent" => "clients may run any program as this user",
            _ => "clients may do everything this user may",
        };
        lines.push(format!("  policy        {policy}: {meaning}"));
    }
    lines.push(format!("  window        {api} (open it with `holdfast open`)"));
    lines.push(String::new());
    match mode {
        Mode::Relay => lines.extend(
            [
                "  next, here:   holdfast account add NAME --role owner --password-stdin",
                "                holdfast device code --account NAME",
                "  on a device:  holdfast enroll URL, then holdfast serve --relay URL",
            ]
            .map(str::to_owned),
        ),
        Mode::Serve => {
            lines.push(format!("  Claude Code   claude mcp add --transport http holdfast {mcp}"));
            lines.push(format!("  Codex         codex mcp add holdfast --url {mcp}"));
            lines.push(
                "  others        give them the address; they open a page in the browser that shows a code".into(),
            );
            if remote {
                lines.push(
                    "  approve       on the relay's machine: holdfast approve CODE, or sign in with the password"
                        .into(),
                );
            } else {
                lines.push("  approve       holdfast approve CODE".into());
                lines.push("  static token  holdfast token create --name NAME, sent as Authorization: Bearer …".into());
            }
        }
    }
    print::line(&lines.join("\n"));
    for warning in &status.health {
        print::note(&format!("  note: {}", warning.text));
    }
}
