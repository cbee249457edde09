//! The findings about this machine.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use holdfast_core::limits;
use holdfast_core::status::{LinkState, StatusSnapshot};
use url::Url;

use super::{Check, in_folder};
use crate::config::{self, Config};
use crate::files;
use crate::http_client;
use crate::lock::DataLock;
use crate::paths::{self, Dirs};
use crate::power;
use crate::secrets::Secrets;

pub(super) fn config(dirs: &Dirs) -> (Config, Check) {
    let path = dirs.config_file();
    match config::read(&path) {
        Ok(config) if path.exists() => (config, Check::ok("config", in_folder(&path))),
        Ok(config) => (config, Check::ok("config", format!("defaults ({} does not exist)", path.display()))),
        Err(e) => (Config::default(), Check::failed("config", e.to_string())),
    }
}

pub(super) fn folders(dirs: &Dirs) -> Check {
    // Looking makes nothing, and closes no folder that is not ours.
    if !DataLock::was_taken(&dirs.data) {
        return Check::warning("data", format!("nothing ran on {} yet", dirs.data.display()))
            .advise("holdfast serve makes it; if it should be there, look at --data-dir and HOLDFAST_DATA_DIR");
    }
    match dirs.prepare() {
        Ok(()) => Check::ok("data", in_folder(&dirs.data)),
        Err(e) => Check::failed("data", e.to_string()),
    }
}

pub(super) fn holder(running: Option<&StatusSnapshot>) -> Check {
    match running {
        Some(s) => Check::ok("process", format!("version {} runs as process {}", s.app.version, s.app.pid)),
        None => Check::warning("process", "nothing runs on this data folder").advise("holdfast serve"),
    }
}

pub(super) fn disk(data: &Path) -> Check {
    let Some(free) = files::free_space(data) else { return Check::skipped("disk", "its room is not told here") };
    let found = format!("{} MiB free", free >> 20);
    match free {
        free if free < limits::DISK_LOW as u64 => {
            Check::failed("disk", found).advise("results that wait for the relay need room")
        }
        free if free < limits::OUTBOX_DISK as u64 => Check::warning("disk", found),
        _ => Check::ok("disk", found),
    }
}

pub(super) async fn credentials(dirs: &Dirs, config: &Config) -> Check {
    if !DataLock::was_taken(&dirs.data) {
        return Check::skipped("keyring", "no credentials are kept yet");
    }
    let (data, store) = (dirs.data.clone(), config.secrets.store);
    match tokio::task::spawn_blocking(move || Secrets::open(&data, store)).await {
        Ok(Ok(secrets)) if secrets.in_file() => Check::ok("keyring", "not used; credentials stand in a 0600 file"),
        Ok(Ok(_)) => Check::ok("keyring", "the system's keyring answers"),
        Ok(Err(e)) => Check::failed("keyring", e.to_string()),
        Err(_) => Check::failed("keyring", "could not be asked"),
    }
}

pub(super) fn workspace(config: &Config, running: Option<&StatusSnapshot>) -> Check {
    let of_process = running.and_then(|s| s.app.workspace.as_deref()).map(Path::new);
    match paths::workspace(of_process.or(config.workspace.root.as_deref())) {
        Ok(path) => Check::ok("workspace", in_folder(&path)),
        Err(e) => Check::failed("workspace", e.to_string()),
    }
}

pub(super) fn link(running: Option<&StatusSnapshot>) -> Check {
    let Some(running) = running else { return Check::skipped("link", "nothing runs") };
    if running.app.workspace.is_none() {
        return Check::skipped("link", "this process is a relay alone");
    }
    let relay = &running.relay;
    let cause = relay.cause.as_deref().map(|c| format!(", {c}")).unwrap_or_default();
    let route = relay.route.as_deref().map(|r| format!(", {r}")).unwrap_or_default();
    let found = format!("{}{cause}{route}", relay.state.words());
    match relay.state {
        LinkState::Healthy => Check::ok("link", found),
        LinkState::SignInNeeded => Check::failed("link", found).advise("holdfast enroll RELAY_URL"),
        LinkState::Incompatible => Check::failed("link", found).advise("update the older side"),
        LinkState::Outage => Check::failed("link", found),
        LinkState::Stopped => Check::warning("link", found).advise("holdfast start link"),
        LinkState::Connecting | LinkState::Blip | LinkState::Recovering => Check::warning("link", found),
    }
}

/// Whether idle sleep can be held off while calls run.
pub(super) async fn awake(config: &Config) -> Check {
    if !config.power.keep_awake {
        return Check::skipped("awake", "calls do not keep this machine from falling asleep: power.keep_awake is off");
    }
    match power::Locks::default().hold().await {
        Ok(_) if power::Mains::default().present() => Check::ok("awake", "calls keep this machine from falling asleep"),
        Ok(_) => Check::ok("awake", "on battery, calls do not keep this machine from falling asleep"),
        Err(e) => Check::warning("awake", format!("this machine may fall asleep while calls run: {e}"))
            .advise("calls go on after it wakes; for long ones switch automatic sleep off"),
    }
}

/// Proxies as the link sees them, without what they may carry as credentials.
pub(super) fn proxy() -> Check {
    let names = ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];
    let set = names.iter().filter_map(|name| {
        let value = std::env::var(name).ok().filter(|v| !v.is_empty())?;
        let host = Url::parse(&value).ok().and_then(|u| u.host_str().map(str::to_owned));
        Some(format!("{name}={}", host.as_deref().unwrap_or("(not an address)")))
    });
    match set.collect::<Vec<_>>().as_slice() {
        [] => Check::ok("proxy", "none"),
        all => Check::ok("proxy", all.join(", ")),
    }
}

/// Whether the tray application's icon would be seen.
#[cfg(target_os = "linux")]
pub(super) async fn tray_host() -> Check {
    let is_set = |name| std::env::var_os(name).is_some_and(|v| !v.is_empty());
    if !is_set("DISPLAY") && !is_set("WAYLAND_DISPLAY") {
        return Check::skipped("tray host", "there is no display");
    }
    match tokio::time::timeout(limits::API_ANSWER, crate::tray_host::shown()).await {
        Ok(Some(true)) => Check::ok("tray host", "this desktop shows tray icons"),
        Ok(Some(false)) => Check::warning("tray host", "nothing on this desktop shows tray icons")
            .advise("start Holdfast again to open its window; GNOME needs an extension for AppIndicators"),
        Ok(None) | Err(_) => Check::warning("tray host", "there is no session bus to show a tray icon through"),
    }
}

/// Whether the tray application's icon would be seen.
#[cfg(not(target_os = "linux"))]
pub(super) async fn tray_host() -> Check {
    Check::ok("tray host", "the system shows tray icons")
}

pub(super) async fn trust(ca_file: Option<&Path>) -> Check {
    match http_client::to_relay(ca_file).await {
        Ok(_) => Check::ok(
            "trust",
            if ca_file.is_some() { "the system's authorities and ca_file" } else { "the system's authorities" },
        ),
        Err(e) => Check::failed("trust", e.to_string()),
    }
}

pub(super) fn relay_address(config: &Config, running: Option<&StatusSnapshot>) -> Option<Url> {
    let of_process = running.and_then(|s| s.relay.url.as_deref().or(s.app.mcp.as_deref())).and_then(|u| u.parse().ok());
    of_process.or_else(|| config.relay.url.clone())
}

/// Whether the relay answers, and whether its clock and ours agree.
pub(super) async fn relay(relay: &Url, ca_file: Option<&Path>) -> Vec<Check> {
    let origin = relay.origin().ascii_serialization();
    let client = match http_client::to_relay(ca_file).await {
        Ok(client) => client,
        Err(e) => return vec![Check::failed("relay", e.to_string())],
    };
    let began = Instant::now();
    let answer = client.get(format!("{origin}/healthz")).timeout(limits::API_ANSWER).send().await;
    let response = match answer {
        Ok(response) => response,
        Err(e) => return vec![Check::failed("relay", format!("{origin}: {}", http_client::root_cause(&e)))],
    };
    let took = began.elapsed();
    let clock = match response.headers().get("date").and_then(|d| d.to_str().ok()).and_then(http_date) {
        None => Check::skipped("clock", "the relay tells no time"),
        Some(theirs) => clock(theirs, SystemTime::now(), took),
    };
    let found = format!("{origin} answered in {} ms", took.as_millis());
    let reached = match response.status() {
        status if status.is_success() => Check::ok("relay", found),
        // The link may use any name for the relay; clients may not.
        status if status == 403 => Check::warning("relay", format!("{found}, but does not go by this name"))
            .advise(format!("clients that use this address need the relay started with --public-url {origin}")),
        status => Check::failed("relay", format!("{found}: {status}")).advise("is another program on that address?"),
    };
    vec![reached, clock]
}

fn clock(theirs: SystemTime, ours: SystemTime, took: Duration) -> Check {
    let apart = ours.duration_since(theirs).unwrap_or_else(|e| e.duration());
    // A Date header has whole seconds, and is as old as the answer.
    let apart = apart.saturating_sub(took + Duration::from_secs(1));
    if apart > limits::CLOCK_SKEW_WARN {
        let found = format!("this machine and the relay are {} s apart", apart.as_secs());
        return Check::warning("clock", found).advise("certificates and codes depend on the clock: set it by NTP");
    }
    Check::ok("clock", "agrees with the relay's")
}

fn http_date(text: &str) -> Option<SystemTime> {
    let time = jiff::fmt::rfc2822::parse(text).ok()?;
    Some(time.timestamp().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::CheckState;

    #[test]
    fn a_date_header_is_read_and_a_wrong_clock_is_told() {
        let theirs = http_date("Mon, 30 Nov 2026 18:00:00 GMT").unwrap();
        assert_eq!(clock(theirs, theirs + Duration::from_secs(2), Duration::from_secs(1)).state, CheckState::Ok);
        let wrong = clock(theirs, theirs - Duration::from_secs(3600), Duration::ZERO);
        assert_eq!(
            (wrong.state, wrong.found.as_str()),
            (CheckState::Warning, "this machine and the relay are 3599 s apart")
        );
        assert_eq!(http_date("yesterday"), None);
    }
}
