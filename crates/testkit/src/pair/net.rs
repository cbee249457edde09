//! The network: streams that keep their order, and everything that can happen to them.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use holdfast_core::daemon::SocketId;
use holdfast_core::limits;
use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};

/// One connection, numbered in the order of dialling.
pub(super) type Conn = u64;

/// An end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Relay,
    /// The process of this number.
    Daemon(usize),
}

/// What travels.
#[derive(Debug, Clone)]
pub(super) enum Item {
    Text(String),
    Ping(u64),
    Pong(u64),
    Close(u16, String),
    /// The stream ended without a word.
    End,
    /// Some bytes of the next item.
    Part,
}

/// What an end is told.
#[derive(Debug)]
pub(super) enum What {
    /// The connection is open.
    Open(SocketId),
    /// It could not be opened.
    Refused(SocketId),
    Item(Item, u64),
    /// Bytes that this end sent have arrived; whether all of them have.
    Taken(u64, bool),
}

/// Something for one end.
#[derive(Debug)]
pub(super) struct Delivery {
    pub to: Side,
    pub conn: Conn,
    pub what: What,
}

/// The state of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sky {
    /// Open.
    Clear,
    /// Connections are refused at once.
    Refusing,
    /// Nothing goes through, and nobody is told. What was sent waits.
    BlackHole,
}

/// Something that happens to the open connections once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Both ends are told, what was on its way is lost.
    Reset,
    /// Only the relay is told.
    ResetAtRelay,
    /// Only the daemon is told.
    ResetAtDaemon,
    /// What goes to the relay vanishes from now on.
    DeafRelay,
    /// What goes to the daemon vanishes from now on.
    DeafDaemon,
}

#[derive(Debug, Default)]
struct Stream {
    items: VecDeque<(Duration, Item, u64)>,
    /// When the last byte sent so far arrives.
    busy_until: Duration,
    /// Sent and not arrived.
    bytes: u64,
    vanish: bool,
    /// The receiving end is closed.
    closed: bool,
}

#[derive(Debug)]
struct Connection {
    machine: usize,
    socket: SocketId,
    began: Duration,
    /// When the opening is complete; `None` once it is.
    opening: Option<Duration>,
    latency: Duration,
    to_relay: Stream,
    to_daemon: Stream,
}

/// All connections that are not closed on both ends.
pub struct Net {
    rng: SmallRng,
    sky: Sky,
    /// Bytes per second and direction.
    pub rate: u64,
    /// One way, for connections made from now on; varied by half.
    pub latency: Duration,
    /// How many frames of a thousand a proxy swallows.
    pub swallow: u32,
    /// How many frames were swallowed.
    pub swallowed: u64,
    connections: BTreeMap<Conn, Connection>,
    next: Conn,
    relay_back: Duration,
    told: VecDeque<Delivery>,
}

impl Net {
    pub(super) fn new(seed: u64) -> Net {
        Net {
            rng: SmallRng::seed_from_u64(seed),
            sky: Sky::Clear,
            rate: 1 << 30,
            latency: Duration::from_millis(5),
            swallow: 0,
            swallowed: 0,
            connections: BTreeMap::new(),
            next: 0,
            relay_back: Duration::ZERO,
            told: VecDeque::new(),
        }
    }

    /// Changes the state of the path. `now` is the pair's time.
    pub fn set_sky(&mut self, now: Duration, sky: Sky) {
        if self.sky == Sky::BlackHole && sky != Sky::BlackHole {
            for connection in self.connections.values_mut() {
                let latency = connection.latency;
                // A lost opening is tried again by the kernel after 1, 3, 7 … seconds.
                if connection.opening.is_some() {
                    let mut retry = connection.began;
                    let mut wait = Duration::from_secs(1);
                    while retry < now {
                        retry += wait;
                        wait *= 2;
                    }
                    connection.opening = Some(retry + latency * 3);
                }
                for stream in [&mut connection.to_relay, &mut connection.to_daemon] {
                    for (at, ..) in &mut stream.items {
                        *at = (*at).max(now + latency);
                    }
                    stream.busy_until = stream.busy_until.max(now + latency);
                }
            }
        }
        self.sky = sky;
    }

    /// Something happens to every open connection.
    pub fn strike(&mut self, now: Duration, fault: Fault) {
        for connection in self.connections.values_mut().filter(|c| c.opening.is_none()) {
            let (relay, daemon) = (&mut connection.to_relay, &mut connection.to_daemon);
            match fault {
                Fault::Reset => {
                    relay.break_off(now);
                    daemon.break_off(now);
                }
                Fault::ResetAtRelay => {
                    relay.break_off(now);
                    daemon.vanish();
                }
                Fault::ResetAtDaemon => {
                    daemon.break_off(now);
                    relay.vanish();
                }
                Fault::DeafRelay => relay.vanish(),
                Fault::DeafDaemon => daemon.vanish(),
            }
        }
    }

    pub(super) fn dial(&mut self, now: Duration, machine: usize, socket: SocketId) {
        self.next += 1;
        if self.sky == Sky::Refusing || now < self.relay_back {
            let to = Side::Daemon(machine);
            self.told.push_back(Delivery { to, conn: self.next, what: What::Refused(socket) });
            return;
        }
        let latency = self.latency.mul_f64(self.rng.random_range(0.5..1.5));
        self.connections.insert(
            self.next,
            Connection {
                machine,
                socket,
                began: now,
                opening: Some(now + latency * 3),
                latency,
                to_relay: Stream::default(),
                to_daemon: Stream::default(),
            },
        );
    }

    /// Sends something from one end.
    pub(super) fn send(&mut self, now: Duration, conn: Conn, from: Side, item: Item) {
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        let latency = connection.latency;
        let stream = if from == Side::Relay { &mut connection.to_daemon } else { &mut connection.to_relay };
        if matches!(item, Item::Text(_)) && self.swallow > 0 && self.rng.random_range(0..1000) < self.swallow {
            self.swallowed += 1;
            return;
        }
        stream.send(now, latency, self.rate, item);
    }

    /// One end is done with a connection and says nothing more.
    pub(super) fn close(&mut self, now: Duration, conn: Conn, by: Side) {
        self.send(now, conn, by, Item::End);
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        if connection.opening.is_some() {
            self.connections.remove(&conn);
            return;
        }
        let own = if by == Side::Relay { &mut connection.to_relay } else { &mut connection.to_daemon };
        own.closed = true;
        own.items.clear();
        self.sweep(conn);
    }

    /// A process does not want an attempt any more, whether or not it opened meanwhile.
    pub(super) fn abandon(&mut self, now: Duration, machine: usize, socket: SocketId) {
        let attempt = self.connections.iter().find(|(_, c)| c.machine == machine && c.socket == socket);
        if let Some(conn) = attempt.map(|(conn, _)| *conn) {
            self.close(now, conn, Side::Daemon(machine));
        }
    }

    /// Whether this end may give the connection another frame.
    pub(super) fn has_room(&self, conn: Conn, from: Side) -> bool {
        self.connections.get(&conn).is_some_and(|connection| {
            let stream = if from == Side::Relay { &connection.to_daemon } else { &connection.to_relay };
            stream.bytes < limits::LINK_WRITE_ROOM as u64
        })
    }

    /// A process died: its kernel closes what it had.
    pub(super) fn kill(&mut self, machine: usize, now: Duration) {
        let own: Vec<Conn> = self.connections.iter().filter(|(_, c)| c.machine == machine).map(|(id, _)| *id).collect();
        for conn in own {
            self.close(now, conn, Side::Daemon(machine));
        }
    }

    /// The relay's process died and is back at a later time.
    pub(super) fn relay_down(&mut self, now: Duration, away: Duration) {
        self.relay_back = now + away;
        let all: Vec<Conn> = self.connections.keys().copied().collect();
        for conn in all {
            self.close(now, conn, Side::Relay);
        }
    }

    /// When something is due next.
    pub(super) fn next(&self, listens: impl Fn(Side) -> bool) -> Option<Duration> {
        if self.told.iter().any(|delivery| listens(delivery.to)) {
            return Some(Duration::ZERO);
        }
        if self.sky == Sky::BlackHole {
            return None;
        }
        self.connections.values().flat_map(Connection::due).filter(|(_, side)| listens(*side)).map(|(at, _)| at).min()
    }

    /// Takes the next thing that is due for an end that listens.
    pub(super) fn deliver(&mut self, now: Duration, listens: impl Fn(Side) -> bool) -> Option<Delivery> {
        if let Some(at) = self.told.iter().position(|delivery| listens(delivery.to)) {
            return self.told.remove(at);
        }
        if self.sky == Sky::BlackHole {
            return None;
        }
        let mut first: Option<(Duration, Conn, Side)> = None;
        for (id, c) in &self.connections {
            for (at, side) in c.due() {
                if at <= now && listens(side) && first.is_none_or(|(earliest, ..)| at < earliest) {
                    first = Some((at, *id, side));
                }
            }
        }
        let (_, conn, to) = first?;
        let connection = self.connections.get_mut(&conn)?;
        let (machine, socket) = (connection.machine, connection.socket);
        if connection.opening.take().is_some() {
            if now < self.relay_back {
                self.connections.remove(&conn);
                let to = Side::Daemon(machine);
                return Some(Delivery { to, conn, what: What::Refused(socket) });
            }
            self.told.push_back(Delivery { to: Side::Daemon(machine), conn, what: What::Open(socket) });
            return Some(Delivery { to: Side::Relay, conn, what: What::Open(socket) });
        }
        let (stream, from) = match to {
            Side::Relay => (&mut connection.to_relay, Side::Daemon(machine)),
            Side::Daemon(_) => (&mut connection.to_daemon, Side::Relay),
        };
        let (_, item, bytes) = stream.items.pop_front()?;
        stream.bytes -= bytes.min(stream.bytes);
        let taken = What::Taken(bytes, stream.bytes == 0);
        self.told.push_back(Delivery { to: from, conn, what: taken });
        if matches!(item, Item::End) {
            stream.closed = true;
            self.sweep(conn);
        }
        Some(Delivery { to, conn, what: What::Item(item, bytes) })
    }

    fn sweep(&mut self, conn: Conn) {
        let dead = |c: &Connection| c.to_relay.closed && c.to_daemon.closed;
        if self.connections.get(&conn).is_some_and(dead) {
            self.connections.remove(&conn);
        }
    }
}

impl Connection {
    /// What is due on it, and for whom.
    fn due(&self) -> impl Iterator<Item = (Duration, Side)> {
        let opening = self.opening.map(|at| (at, Side::Relay));
        let relay = self.to_relay.items.front().map(|(at, ..)| (*at, Side::Relay));
        let daemon = self.to_daemon.items.front().map(|(at, ..)| (*at, Side::Daemon(self.machine)));
        [opening, relay, daemon].into_iter().flatten()
    }
}

impl Stream {
    fn send(&mut self, now: Duration, latency: Duration, rate: u64, item: Item) {
        if self.vanish || self.closed {
            return;
        }
        let mut bytes = match &item {
            Item::Text(text) => text.len() as u64 + 8,
            Item::Close(..) | Item::Ping(_) | Item::Pong(_) => 16,
            Item::End | Item::Part => 0,
        };
        self.bytes += bytes;
        let mut at = self.busy_until.max(now + latency);
        // A receiver sees a slow frame come in, second by second.
        while bytes > rate {
            at += Duration::from_secs(1);
            self.items.push_back((at, Item::Part, rate));
            bytes -= rate;
        }
        at += Duration::from_secs_f64(bytes as f64 / rate as f64);
        self.items.push_back((at, item, bytes));
        self.busy_until = at;
    }

    fn vanish(&mut self) {
        self.vanish = true;
        self.items.clear();
        self.bytes = 0;
    }

    fn break_off(&mut self, now: Duration) {
        self.vanish();
        if !self.closed {
            self.items.push_back((now, Item::End, 0));
        }
    }
}
