//! Ours as the bench starts it: a relay and a daemon, two processes, perhaps a bad network between them.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use holdfast_testkit::fault::FaultProxy;

use crate::child::Running;
use crate::load::{Connection, Era, Target};
use crate::roles::relay::Ready;

/// How long both may take to find each other.
const FIRST_CALL: Duration = Duration::from_secs(20);

/// A relay with one device.
pub struct Ours {
    /// The relay's process.
    pub relay: Running,
    /// The daemon's process.
    pub daemon: Running,
    /// The network between them.
    pub proxy: Option<FaultProxy>,
    address: SocketAddr,
    bearer: String,
}

impl Ours {
    /// Starts both and waits until a call comes through.
    pub async fn start(through_proxy: bool) -> Result<Ours> {
        let mut relay = Running::role(&["relay", "1"])?;
        let Ready { address, bearer, devices } = relay.hear().await.context("relay")?;
        let proxy = if through_proxy { Some(FaultProxy::start(address).await?) } else { None };
        let url = proxy.as_ref().map_or_else(|| format!("http://{address}"), FaultProxy::http);
        let mut daemon = Running::role(&["daemon", &url])?;
        daemon.tell(&format!("{}\n", devices.first().context("no device")?)).await?;
        let ours = Ours { relay, daemon, proxy, address, bearer };
        let target = ours.target(Era::Stateless);
        let deadline = Instant::now() + FIRST_CALL;
        loop {
            let first = Connection::open(&target).await?.call(&target, r#"{"text":"first"}"#, "first").await;
            match first {
                Ok(_) => return Ok(ours),
                Err(error) if Instant::now() > deadline => return Err(error.context("the first call")),
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    }

    /// How it is spoken to.
    pub fn target(&self, era: Era) -> Target {
        Target::new(self.address, "/mcp", Some(self.bearer.clone()), era)
    }

    /// Both processes.
    pub fn pids(&self) -> Vec<u32> {
        vec![self.relay.pid(), self.daemon.pid()]
    }
}
