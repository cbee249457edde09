//! A TCP proxy on 127.0.0.1 that can be told, while it runs, to behave like a bad network.
//!
//! It stands between a daemon and a relay (or a client and a relay). What it should do is one latest value, [`Faults`];
//! what it has seen is another, [`Seen`], which a test can wait on instead of sleeping.

mod frames;
mod pump;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// What a new or open connection meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Path {
    /// Bytes pass.
    #[default]
    Open,
    /// Whoever connects is reset at once.
    Refused,
    /// Connections are accepted and stay open; no byte passes until this changes.
    BlackHole,
}

/// Which data frames of a direction disappear. Control frames (ping, pong, close) always pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Swallow {
    /// None.
    #[default]
    Nothing,
    /// The nth data frame of each connection, counted from 1.
    Nth(u64),
    /// Every nth data frame of the direction, over all connections.
    OneIn(u64),
    /// The next `times` frames whose JSON has this `type`.
    Kind {
        /// The frame's `type`.
        kind: &'static str,
        /// How many still to swallow.
        times: u64,
    },
}

/// One direction's behaviour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flow {
    /// Bytes per second, if slowed.
    pub rate: Option<u32>,
    /// Bytes per write, if sliced.
    pub slice: Option<usize>,
    /// The connection is reset after this many bytes of this direction.
    pub truncate_after: Option<u64>,
    /// WebSocket frames that disappear.
    pub swallow: Swallow,
}

/// Everything the proxy does wrong. The default is a good network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Faults {
    /// For all connections.
    pub path: Path,
    /// From whoever connected to the target (daemon → relay).
    pub up: Flow,
    /// From the target back (relay → daemon).
    pub down: Flow,
    reset_before: u64,
    stranded_before: u64,
}

/// What went through one direction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FlowSeen {
    /// Bytes passed on.
    pub bytes: u64,
    /// WebSocket data frames that arrived here, swallowed ones included.
    pub frames: u64,
    /// Of these, swallowed.
    pub swallowed: u64,
    /// JSON frames passed on, by `type`.
    pub kinds: BTreeMap<String, u64>,
}

impl FlowSeen {
    /// Frames of this type passed on.
    pub fn of(&self, kind: &str) -> u64 {
        self.kinds.get(kind).copied().unwrap_or(0)
    }
}

/// What the proxy has seen so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// Connections accepted and not refused.
    pub accepted: u64,
    /// Of these, open now.
    pub open: u64,
    /// Connections reset at once, because the path was refused.
    pub refused: u64,
    /// From whoever connected to the target.
    pub up: FlowSeen,
    /// From the target back.
    pub down: FlowSeen,
}

/// A direction of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Up,
    Down,
}

struct Control {
    faults: watch::Sender<Faults>,
    seen: watch::Sender<Seen>,
    captured: Mutex<BTreeMap<String, String>>,
}

impl Control {
    fn capture(&self, kind: &str, payload: Vec<u8>) {
        if let Ok(text) = String::from_utf8(payload) {
            self.captured.lock().expect("no panic while held").insert(kind.to_owned(), text);
        }
    }

    fn flow(&self, direction: Direction) -> Flow {
        let faults = self.faults.borrow();
        match direction {
            Direction::Up => faults.up,
            Direction::Down => faults.down,
        }
    }

    fn count(&self, direction: Direction, change: impl FnOnce(&mut FlowSeen)) {
        self.seen.send_modify(|seen| {
            change(match direction {
                Direction::Up => &mut seen.up,
                Direction::Down => &mut seen.down,
            });
        });
    }

    /// Whether this data frame disappears; counts down [`Swallow::Kind`].
    fn swallows(&self, direction: Direction, nth_here: u64, nth_in_all: u64, kind: Option<&str>) -> bool {
        let mut swallowed = false;
        self.faults.send_if_modified(|faults| {
            let flow = match direction {
                Direction::Up => &mut faults.up,
                Direction::Down => &mut faults.down,
            };
            match &mut flow.swallow {
                Swallow::Nothing => {}
                Swallow::Nth(n) => swallowed = nth_here == *n,
                Swallow::OneIn(n) => swallowed = nth_in_all.is_multiple_of(*n),
                Swallow::Kind { kind: wanted, times } => {
                    swallowed = *times > 0 && kind == Some(wanted);
                    *times -= u64::from(swallowed);
                }
            }
            false
        });
        swallowed
    }
}

/// The proxy. Dropping it closes every connection.
pub struct FaultProxy {
    address: SocketAddr,
    control: Arc<Control>,
    accepting: JoinHandle<()>,
}

impl FaultProxy {
    /// Listens on a free port of 127.0.0.1 and passes everything to `target`.
    pub async fn start(target: SocketAddr) -> std::io::Result<FaultProxy> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let control = Arc::new(Control {
            faults: watch::Sender::default(),
            seen: watch::Sender::default(),
            captured: Mutex::default(),
        });
        let accepting = tokio::spawn(accept(listener, target, control.clone()));
        Ok(FaultProxy { address, control, accepting })
    }

    /// Where to connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://` and the address.
    pub fn http(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Changes the faults, for open and for new connections.
    pub fn set(&self, change: impl FnOnce(&mut Faults)) {
        self.control.faults.send_modify(change);
    }

    /// Resets (RST) every open connection; new ones are welcome.
    pub fn reset(&self) {
        let next = self.seen().accepted;
        self.set(|faults| faults.reset_before = next);
    }

    /// Every open connection carries nothing any more and is never closed, as after a change of networks; new ones pass.
    pub fn strand(&self) {
        let next = self.seen().accepted;
        self.set(|faults| faults.stranded_before = next);
    }

    /// Resets every open connection and refuses new ones until [`FaultProxy::heal`].
    pub fn cut(&self) {
        self.set(|faults| faults.path = Path::Refused);
        self.reset();
    }

    /// The path is open again; speeds and swallowing stay as set.
    pub fn heal(&self) {
        self.set(|faults| faults.path = Path::Open);
    }

    /// Cuts, waits, heals. The wait is the fault itself, not a guess at when something is done.
    pub async fn cut_for(&self, time: Duration) {
        self.cut();
        tokio::time::sleep(time).await;
        self.heal();
    }

    /// What was seen so far.
    pub fn seen(&self) -> Seen {
        self.control.seen.borrow().clone()
    }

    /// The last frame of this `type` that went through, in either direction.
    ///
    /// # Panics
    /// If there was none.
    pub fn captured(&self, kind: &str) -> String {
        let captured = self.control.captured.lock().expect("no panic while held");
        captured.get(kind).cloned().unwrap_or_else(|| panic!("no {kind} went through"))
    }

    /// Waits until `reached` holds of what was seen.
    ///
    /// # Panics
    /// After two minutes, naming what was waited for and what was seen.
    pub async fn until(&self, what: &str, reached: impl FnMut(&Seen) -> bool) -> Seen {
        let mut seen = self.control.seen.subscribe();
        let waited = tokio::time::timeout(Duration::from_secs(120), seen.wait_for(reached)).await;
        match waited {
            Ok(Ok(seen)) => seen.clone(),
            _ => panic!("the proxy did not see {what} within two minutes; seen: {:?}", self.seen()),
        }
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.reset();
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, target: SocketAddr, control: Arc<Control>) {
    while let Ok((client, _)) = listener.accept().await {
        // Decided under the lock of `seen`, so that a cut either refuses this connection or counts and resets it.
        let mut number = None;
        control.seen.send_modify(|seen| {
            if control.faults.borrow().path == Path::Refused {
                seen.refused += 1;
            } else {
                number = Some(seen.accepted);
                seen.accepted += 1;
                seen.open += 1;
            }
        });
        let Some(number) = number else {
            let _ = client.set_zero_linger();
            continue;
        };
        let control = control.clone();
        tokio::spawn(async move {
            connection(number, client, target, &control).await;
            control.seen.send_modify(|seen| seen.open -= 1);
        });
    }
}

/// Carries one connection to its end. A fault on either side resets both.
async fn connection(number: u64, mut client: TcpStream, target: SocketAddr, control: &Control) {
    let mut faults = control.faults.subscribe();
    let reset = async move { faults.wait_for(|faults| number < faults.reset_before).await.is_ok() };
    tokio::pin!(reset);
    let reach = async {
        pump::passable(number, control).await;
        TcpStream::connect(target).await
    };
    let server = tokio::select! {
        _ = &mut reset => Err(std::io::ErrorKind::ConnectionReset.into()),
        server = reach => server,
    };
    let Ok(mut server) = server else {
        let _ = client.set_zero_linger();
        return;
    };
    let (_, _) = (client.set_nodelay(true), server.set_nodelay(true));
    let whole = {
        let (client_read, client_write) = client.split();
        let (server_read, server_write) = server.split();
        let both = async {
            tokio::try_join!(
                pump::pump(number, Direction::Up, client_read, server_write, control),
                pump::pump(number, Direction::Down, server_read, client_write, control),
            )
        };
        tokio::select! {
            _ = &mut reset => false,
            both = both => both.is_ok(),
        }
    };
    if !whole {
        let (_, _) = (client.set_zero_linger(), server.set_zero_linger());
    }
}

#[cfg(test)]
mod tests;
