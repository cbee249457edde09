//! The whole product on one machine: a relay, a device that serves through a fault proxy, and a client's token.

use std::time::Duration;

use serde_json::{Value, json};
use url::Url;

use crate::fault::FaultProxy;
use crate::home::Home;
use crate::mcp::{Modern, Session};
use crate::port::Port;
use crate::process::Process;

/// Which wire the two sides speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireKind {
    /// Two Holdfasts with every feature.
    Feature,
    /// Two Holdfasts that are told to be a 1.2.10 pair.
    Base,
}

/// Name of the account a stand makes.
pub const ACCOUNT: &str = "anna";
/// Its password.
pub const PASSWORD: &str = "correct horse battery staple";

/// The relay lets a call take as long as it takes: the suites look at what the link does with it.
const RELAY: &str = "[mcp]\npatience_ms = 0\n";
const BASE_RELAY: &str = "[mcp]\npatience_ms = 0\n[link]\nidentity = \"machine-bridge-mcp@1.2.10\"\n";
const BASE_DAEMON: &str = "[link]\ncompat = \"machine-bridge-mcp@1.2.10\"\n";

/// How long something that should be there soon may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// A relay that stands alone.
pub struct RelayStand {
    /// Its home.
    pub home: Home,
    /// Its process.
    pub process: Process,
    /// `http://127.0.0.1:PORT`.
    pub url: String,
    port: Port,
}

/// A relay, a device behind a fault proxy, and a token.
pub struct Stand {
    /// The relay.
    pub relay: RelayStand,
    /// Between device and relay.
    pub proxy: FaultProxy,
    /// The device's home.
    pub home: Home,
    /// `holdfast serve`.
    pub device: Process,
    /// A bearer token for the relay's MCP endpoint.
    pub token: String,
}

impl RelayStand {
    /// Starts `holdfast relay` on a free port and makes the account.
    pub async fn start(wire: WireKind) -> RelayStand {
        RelayStand::start_with(wire, &[]).await
    }

    /// The same with more arguments.
    ///
    /// # Panics
    /// If it does not become ready.
    pub async fn start_with(wire: WireKind, more: &[&str]) -> RelayStand {
        let home = Home::new();
        home.write_config(if wire == WireKind::Base { BASE_RELAY } else { RELAY });
        let port = Port::reserve();
        let address = format!("127.0.0.1:{}", port.number());
        let args = [&["relay", "--listen", &address], more].concat();
        let process = home.start(&args).await;
        let url = listening(&process);
        let add = ["account", "add", ACCOUNT, "--role", "owner", "--password-stdin"];
        let added = home.run_with(&add, &format!("{PASSWORD}\n")).await;
        assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
        RelayStand { home, process, url, port }
    }

    /// Starts it again on the same port after it ended.
    pub async fn restart(&mut self) {
        let address = format!("127.0.0.1:{}", self.port.number());
        self.process = self.home.start(&["relay", "--listen", &address]).await;
    }

    /// The MCP endpoint.
    pub fn mcp(&self) -> String {
        format!("{}/mcp", self.url)
    }

    /// A new enrolment code.
    pub async fn code(&self) -> String {
        self.home.ok(&["device", "code", "--account", ACCOUNT]).await
    }

    /// A new token of the default device with this role's rights.
    pub async fn token(&self, role: &str) -> String {
        self.home.ok(&["token", "create", "--name", role, "--role", role]).await
    }

    /// What this device's `server_info` or another tool says, asked once.
    ///
    /// # Panics
    /// If the call fails.
    pub async fn ask(&self, token: &str, tool: &str, arguments: Value) -> Value {
        let client = Modern::new(self.mcp(), token);
        client.call(tool, arguments).send().await.expect("an answer").content().clone()
    }
}

impl Stand {
    /// Everything up and the device proven ready.
    pub async fn start(wire: WireKind) -> Stand {
        Stand::on(RelayStand::start(wire).await, wire).await
    }

    /// A first device on this relay.
    ///
    /// # Panics
    /// If something does not come up.
    pub async fn on(relay: RelayStand, wire: WireKind) -> Stand {
        let proxy = FaultProxy::start(relay.url.trim_start_matches("http://").parse().expect("an address"))
            .await
            .expect("a proxy");
        let home = Home::new();
        if wire == WireKind::Base {
            home.write_config(BASE_DAEMON);
        }
        home.ok(&["enroll", &proxy.http(), &relay.code().await]).await;
        let device = serve(&home, &proxy.http()).await;
        proxy.until("the first ready_ack", |seen| seen.down.of("ready_ack") >= 1).await;
        let token = relay.token("owner").await;
        Stand { relay, proxy, home, device, token }
    }

    /// Starts `holdfast serve` again after it ended.
    pub async fn restart_device(&mut self) {
        self.device = serve(&self.home, &self.proxy.http()).await;
    }

    /// The same after a while.
    pub async fn restart_device_after(&mut self, wait: Duration) {
        tokio::time::sleep(wait).await;
        self.restart_device().await;
    }

    /// Waits until the link was proven `times` times in all.
    pub async fn ready(&self, times: u64) {
        let what = format!("ready_ack number {times}");
        self.proxy.until(&what, |seen| seen.down.of("ready_ack") >= times).await;
    }

    /// Waits until the relay knows that the device is gone. Who cut the path or killed the device knows it earlier, and what
    /// the relay is asked in between is sent to one that does not hear it.
    pub async fn missed(&self) {
        let http = crate::mcp::http();
        let metrics = format!("{}/metrics", self.relay.url);
        found("the relay to miss the device", async || {
            let text = http.get(&metrics).send().await.ok()?.text().await.ok()?;
            let value =
                |gauge: &str| text.lines().find_map(|line| line.strip_prefix(gauge)?.trim().parse::<f64>().ok());
            let here = value("holdfast_devices_ready ")? + value("holdfast_workers_live ")?;
            (here < 1.0).then_some(())
        })
        .await;
    }

    /// A stateless client.
    pub fn modern(&self) -> Modern {
        Modern::new(self.relay.mcp(), &*self.token)
    }

    /// A client with a session.
    pub async fn session(&self) -> Session {
        Session::open(self.relay.mcp(), &*self.token).await
    }

    /// The journal that [`work`] writes: every line is one side effect.
    pub fn journal(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.home.workspace().join("journal")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Waits until the journal holds this line.
    ///
    /// # Panics
    /// After two minutes.
    pub async fn journal_has(&self, line: &str) {
        let found = until(|| self.journal().iter().any(|had| had == line)).await;
        assert!(found, "no line `{line}` in the journal: {:?}", self.journal());
    }

    /// Lets the work of this name finish.
    ///
    /// # Panics
    /// If the workspace cannot be written.
    pub fn release(&self, name: &str) {
        std::fs::write(self.home.workspace().join(format!("release-{name}")), "").expect("a mark");
    }

    /// The process id the work of this name had.
    ///
    /// # Panics
    /// If it did not start.
    pub fn work_pid(&self, name: &str) -> i32 {
        let prefix = format!("pid {name} ");
        let journal = self.journal();
        let pid = journal.iter().find_map(|line| line.strip_prefix(&prefix)).and_then(|pid| pid.parse().ok());
        pid.unwrap_or_else(|| panic!("{name} did not start: {journal:?}"))
    }

    /// Waits until the process of this work is gone.
    ///
    /// # Panics
    /// If it lives on for two minutes.
    pub async fn work_ended(&self, name: &str) {
        let pid = self.work_pid(name);
        assert!(until(|| !alive(pid)).await, "the work {name} lives on as {pid}");
    }

    /// `holdfast status --json` of the device.
    pub async fn status(&self) -> Value {
        self.home.json(&["status", "--json"]).await
    }
}

/// Arguments of `run_process` that leave a mark at the start, wait for [`Stand::release`], leave a mark at the end and
/// print `result-NAME`. The work also ends when its workspace is gone, so that no test leaves it behind.
pub fn work(name: &str) -> Value {
    let script = format!(
        "echo pid {name} $$ >> journal; echo started {name} >> journal; \
         while [ ! -e release-{name} ]; do [ -e journal ] || exit 9; sleep 0.05; done; \
         echo finished {name} >> journal; echo result-{name}"
    );
    json!({"argv": ["/bin/sh", "-c", script], "timeout_seconds": 600})
}

/// The device credential in a home's secrets file, as a thief of that file has it.
///
/// # Panics
/// If the device is not enrolled.
pub fn device_credential(home: &Home) -> String {
    let text = std::fs::read_to_string(home.data().join("secrets.json")).expect("a secrets file");
    let secrets: Value = serde_json::from_str(&text).expect("JSON");
    let found = secrets.as_object().and_then(|all| all.iter().find(|(name, _)| name.contains("device")));
    found.and_then(|(_, value)| value.as_str()).unwrap_or_else(|| panic!("no device credential")).to_owned()
}

/// Polls a condition that no event tells of. False after two minutes.
pub async fn until(mut holds: impl FnMut() -> bool) -> bool {
    let polled = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, polled).await.is_ok()
}

/// Polls for what no event tells of, with commands or requests.
///
/// # Panics
/// After two minutes, with what was waited for.
pub async fn found<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let polled = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, polled).await.unwrap_or_else(|_| panic!("{what}: not within {PATIENCE:?}"))
}

/// Whether a process of this id runs. A zombie does not, nor does one that ends: it has let go of its pipes, does nothing more,
/// and stays like that for as long as the machine has no time for it.
pub fn alive(pid: i32) -> bool {
    stat(pid).is_some_and(|stat| stat.state != "Z" && !stat.ends)
}

/// Zombies whose parent is this process: children it forgot to reap.
///
/// # Panics
/// Without `/proc`.
pub fn zombies_of(parent: i32) -> Vec<i32> {
    let processes =
        std::fs::read_dir("/proc").expect("/proc").filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    processes.filter(|pid| stat(*pid).is_some_and(|stat| stat.state == "Z" && stat.parent == parent)).collect()
}

/// What the system says of a process.
struct Stat {
    state: String,
    parent: i32,
    ends: bool,
}

fn stat(pid: i32) -> Option<Stat> {
    /// Among the flags of a process, as Linux has them.
    const EXITING: u32 = 4;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in parentheses and may hold anything, so what follows the last one counts.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let (state, parent) = (fields.next()?.to_owned(), fields.next()?.parse().ok()?);
    let flags: u32 = fields.nth(4)?.parse().ok()?;
    Some(Stat { state, parent, ends: flags & EXITING != 0 })
}

/// `http://host:port` of a ready line's `mcp`.
fn listening(process: &Process) -> String {
    let mcp = Url::parse(process.ready_text("mcp")).expect("a URL");
    format!("http://127.0.0.1:{}", mcp.port().expect("a port"))
}

async fn serve(home: &Home, relay: &str) -> Process {
    let workspace = home.workspace();
    home.start(&["serve", "--relay", relay, "--workspace", workspace.to_str().expect("UTF-8")]).await
}
