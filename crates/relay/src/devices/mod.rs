//! The devices of this relay: one [`DeviceRoom`] each, its link, its calls.
//!
//! A room is one [`Switchboard`](holdfast_core::switchboard::Switchboard) behind one lock. Request handlers and socket
//! tasks call it directly; what it wants written goes into a queue per socket, what it wants told goes into a slot per
//! waiting request. No task stands between them.

mod call;
mod counters;
mod kept;
mod room;
mod store;
mod upgrade;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use holdfast_core::id::DeviceId;
use holdfast_core::limits;
use holdfast_core::switchboard::{Identity, Input, SocketId, Switchboard, WaiterId};
use parking_lot::RwLock;

pub use call::{CallEnd, CallEvent, CallHandle, CallProgress, Commit};
pub use counters::{Counters, CountersView};
pub use holdfast_core::switchboard::{Catalogue, IdempotencyKey, OpenCall, Outlives, PendingCalls};
pub use kept::KeptCall;
pub use room::{DeviceRoom, DeviceStatus};
pub use upgrade::router;

use crate::auth::DeviceAuthFailure;
use crate::clock::Clock;
use crate::socket::Pace;
use crate::store::{Store, StoreError};

/// Looks a device credential up.
pub type DeviceCheck = Arc<dyn Fn(&str) -> Result<DeviceId, DeviceAuthFailure> + Send + Sync>;

/// What the devices need of the relay.
pub struct DevicesOptions {
    /// What the link presents.
    pub identity: Identity,
    /// Who presents a credential.
    pub check: DeviceCheck,
    /// Catalogues and records of calls.
    pub store: Store,
    /// Time.
    pub clock: Arc<dyn Clock>,
}

/// All devices: rooms are made on demand, and kept while the device is let in.
pub struct Devices {
    shared: Arc<Shared>,
    rooms: RwLock<HashMap<DeviceId, Arc<DeviceRoom>>>,
}

/// What all rooms have in common.
pub(super) struct Shared {
    identity: Arc<Identity>,
    check: DeviceCheck,
    store: Store,
    pace: Arc<Pace>,
    counters: Counters,
    next: AtomicU64,
    /// Rooms start their timers here, and hear the store here: it answers on its own thread, or at once and under their lock.
    runtime: tokio::runtime::Handle,
    stopping: std::sync::atomic::AtomicBool,
}

impl std::fmt::Debug for Devices {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Devices").field("rooms", &self.rooms.read().len()).finish_non_exhaustive()
    }
}

impl Devices {
    /// The devices this relay remembers: catalogues, and calls with a record that had not ended. Blocks on the store; to be called
    /// before the relay listens, inside a tokio runtime.
    pub fn open(options: DevicesOptions) -> Result<Devices, StoreError> {
        let DevicesOptions { identity, check, store, clock } = options;
        let remembered = store::load(&store, clock.unix())?;
        let shared = Arc::new(Shared {
            identity: Arc::new(identity),
            check,
            store,
            pace: Arc::new(Pace::new(clock)),
            counters: Counters::default(),
            next: AtomicU64::new(1),
            runtime: tokio::runtime::Handle::current(),
            stopping: false.into(),
        });
        let devices = Devices { shared, rooms: RwLock::default() };
        for (device, memory) in remembered {
            let room = devices.room(&device);
            room.remember(memory);
        }
        Ok(devices)
    }

    /// The room of a device, made if it is not there. Only for devices that are let in: [`Devices::revoke`] alone takes a room away.
    pub fn room(&self, device: &DeviceId) -> Arc<DeviceRoom> {
        if let Some(room) = self.rooms.read().get(device) {
            return Arc::clone(room);
        }
        let mut rooms = self.rooms.write();
        let room = rooms.entry(device.clone()).or_insert_with(|| {
            let board = Switchboard::new(Arc::clone(&self.shared.identity), self.shared.seed());
            let room = DeviceRoom::new(device.clone(), Arc::clone(&self.shared), board);
            if self.shared.stopping.load(Ordering::Acquire) {
                room.tell(Input::Stop);
            }
            room
        });
        Arc::clone(room)
    }

    /// The room of a device that was seen or called since the start, or remembered from before.
    pub fn known(&self, device: &DeviceId) -> Option<Arc<DeviceRoom>> {
        self.rooms.read().get(device).cloned()
    }

    /// Every room, in no order.
    pub fn rooms(&self) -> Vec<Arc<DeviceRoom>> {
        self.rooms.read().values().cloned().collect()
    }

    /// Counts since the start, over all devices.
    pub fn counters(&self) -> CountersView {
        self.shared.counters.view()
    }

    /// The device's credential was revoked: its calls end, its sockets close 1008 `device_revoked`, its room goes with
    /// the last of them.
    pub fn revoke(&self, device: &DeviceId) {
        let room = self.rooms.write().remove(device);
        if let Some(room) = room {
            room.tell(Input::Revoke);
        }
    }

    /// Refuses new calls, waits up to [`limits::RELAY_STOP_WAIT`] for the others, ends the rest, closes every link 1012.
    pub async fn shutdown(&self) {
        self.shared.stopping.store(true, Ordering::Release);
        let rooms = self.rooms();
        for room in &rooms {
            room.tell(Input::Stop);
        }
        let all = async {
            for room in &rooms {
                room.stopped().await;
            }
        };
        // The machines keep the time themselves; this bound only covers a stalled runtime.
        let _ = tokio::time::timeout(limits::RELAY_STOP_WAIT + limits::CLOSE_WAIT * 2, all).await;
    }
}

impl Shared {
    fn socket(&self) -> SocketId {
        SocketId(self.next.fetch_add(1, Ordering::Relaxed))
    }

    fn waiter(&self) -> WaiterId {
        WaiterId(self.next.fetch_add(1, Ordering::Relaxed))
    }

    fn seed(&self) -> [u8; 32] {
        let mut seed = [0; 32];
        rand::RngCore::fill_bytes(&mut rand::rng(), &mut seed);
        seed
    }
}
