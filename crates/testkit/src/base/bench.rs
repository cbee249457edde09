//! A real side of the wire and a scripted one, up to the moment at which frames go.

use serde_json::Value;
use tokio::task::JoinHandle;

use super::{BaseRelay, Wire, call_id, dial, instance};
use crate::home::Home;
use crate::mcp::{Answer, Modern};
use crate::process::Process;
use crate::stand::{RelayStand, WireKind, device_credential, until, work};

/// The token that relay and daemon of a [`DaemonBench`] share.
pub const SECRET: &str = "a-shared-secret-of-the-base-relay";

/// A real relay, and what a scripted daemon and a client need to speak to it.
pub struct RelayBench {
    /// The relay.
    pub relay: RelayStand,
    /// The daemon's credential.
    pub credential: String,
    token: String,
}

impl RelayBench {
    /// Starts the relay and enrols a device.
    pub async fn start(wire: WireKind) -> RelayBench {
        let relay = RelayStand::start(wire).await;
        let home = Home::new();
        home.ok(&["enroll", &relay.url, &relay.code().await]).await;
        let token = relay.token("owner").await;
        RelayBench { credential: device_credential(&home), relay, token }
    }

    /// A socket of the scripted daemon.
    ///
    /// # Panics
    /// If the relay refuses it.
    pub async fn dial(&self) -> Wire {
        dial(&self.relay.url, &self.credential).await.expect("upgraded")
    }

    /// A daemon that is ready.
    ///
    /// # Panics
    /// If the relay does not let it get there.
    pub async fn daemon(&self, tail: &str) -> Wire {
        let mut daemon = self.dial().await;
        assert_eq!(daemon.become_ready(&instance(tail), &["list_dir", "run_process"]).await, [""; 0]);
        daemon
    }

    /// A stateless client.
    pub fn modern(&self) -> Modern {
        Modern::new(self.relay.mcp(), &*self.token)
    }

    /// A client's call. Its task panics when the answer is lost.
    pub fn call(&self, tool: &str, arguments: Value) -> JoinHandle<Answer> {
        let (client, tool) = (self.modern(), tool.to_owned());
        tokio::spawn(async move { client.call(&tool, arguments).send().await.expect("an answer") })
    }
}

/// A real daemon in base compatibility that dials a scripted relay.
pub struct DaemonBench {
    /// The scripted relay.
    pub relay: BaseRelay,
    /// The daemon's home.
    pub home: Home,
    _daemon: Process,
}

impl DaemonBench {
    /// Starts both.
    pub async fn start() -> DaemonBench {
        DaemonBench::with_secret(SECRET).await
    }

    /// The same with a daemon that was given this secret.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn with_secret(secret: &str) -> DaemonBench {
        let relay = BaseRelay::start(SECRET).await;
        let home = Home::new();
        home.write_config("[link]\ncompat = \"machine-bridge-mcp@1.2.10\"\n");
        let url = format!("http://{}", relay.address());
        let stored = home.run_with(&["enroll", &url, "--token-stdin"], secret).await;
        assert!(stored.status.success(), "{}", String::from_utf8_lossy(&stored.stderr));
        let workspace = home.workspace();
        let daemon = home.start(&["serve", "--relay", &url, "--workspace", workspace.to_str().expect("UTF-8")]).await;
        DaemonBench { relay, home, _daemon: daemon }
    }

    /// The next socket, proven with these ids named.
    pub async fn ready(&self, resume: &[&str]) -> Wire {
        let mut socket = self.relay.accept().await;
        socket.prove(resume).await;
        socket
    }

    /// The journal that [`crate::stand::work`] writes.
    pub fn journal(&self) -> String {
        std::fs::read_to_string(self.home.workspace().join("journal")).unwrap_or_default()
    }

    /// Waits until the journal holds this line.
    ///
    /// # Panics
    /// After two minutes.
    pub async fn journal_has(&self, line: &str) {
        assert!(until(|| self.journal().lines().any(|had| had == line)).await, "{line} in {}", self.journal());
    }

    /// Lets the work of this name finish.
    ///
    /// # Panics
    /// If the workspace cannot be written.
    pub fn release(&self, name: &str) {
        std::fs::write(self.home.workspace().join(format!("release-{name}")), "").expect("a mark");
    }

    /// A call on a ready socket that runs until released; its id.
    pub async fn running(&self, socket: &mut Wire, name: &str) -> String {
        let id = call_id(name);
        socket.call(&id, "run_process", work(name)).await;
        self.journal_has(&format!("started {name}")).await;
        id
    }
}
