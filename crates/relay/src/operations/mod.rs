//! Durable operations: the relay's control side.
//!
//! One [`WorkerRoom`] per device holds its control machine behind one short lock; everything the machine promises stands in a
//! store of its own, committed before it is said. [`Operations`] is what the rest of the relay uses: the HTTP API, tools and
//! tasks.

mod api;
mod counters;
mod failure;
mod follow;
mod output;
mod party;
mod read;
mod readers;
mod room;
mod schema;
mod socket;
mod store;
mod view;

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use holdfast_core::code::Code;
use holdfast_core::control::{Accepted, AskId, Input, Loaded, SessionCancel, Snapshot, Start};
use holdfast_core::id::{DeviceId, OperationId};
use holdfast_core::limits;
use holdfast_core::operation::Request;
use holdfast_core::status::UnixMs;
use holdfast_core::switchboard::SocketId;
use http::StatusCode;
use parking_lot::RwLock;
use rusqlite::Connection;

pub use counters::OperationCounts;
pub use party::Party;
pub use read::{Piece, Reading};
pub use view::{OperationView, Page};

pub(crate) use api::router;
pub(crate) use socket::router as socket_router;

use self::room::WorkerRoom;
use crate::clock::Clock;
use crate::devices::DeviceCheck;
use crate::http::error::ApiError;
use crate::socket::Pace;
use crate::store::{Store, StoreError};

/// All operations of this relay. Clones share them.
#[derive(Clone)]
pub struct Operations(Arc<Inner>);

struct Inner {
    shared: Arc<Shared>,
    rooms: RwLock<Rooms>,
}

#[derive(Default)]
struct Rooms {
    by_device: HashMap<DeviceId, Arc<WorkerRoom>>,
    /// Devices revoked since the start: whoever was let in just before must not bring their rooms back.
    revoked: HashSet<DeviceId>,
}

/// What all rooms have in common.
struct Shared {
    check: DeviceCheck,
    store: Store,
    bounds: output::Bounds,
    clock: Arc<dyn Clock>,
    pace: Arc<Pace>,
    counters: counters::Counters,
    next: AtomicU64,
    /// When an earlier store was set aside because it was damaged (unix seconds).
    set_aside: Option<u64>,
    readers: readers::Readers,
    /// Rooms start their timers here, and hear the store here.
    runtime: tokio::runtime::Handle,
    /// The devices that were let in at the start, and the accounts that they belong to.
    owners: HashMap<DeviceId, String>,
}

impl Shared {
    fn ask(&self) -> AskId {
        AskId(self.next.fetch_add(1, Ordering::Relaxed))
    }

    fn socket(&self) -> SocketId {
        SocketId(self.next.fetch_add(1, Ordering::Relaxed))
    }

    fn seed(&self) -> [u8; 32] {
        let mut seed = [0; 32];
        rand::RngCore::fill_bytes(&mut rand::rng(), &mut seed);
        seed
    }

    fn moment(&self) -> store::Moment {
        store::Moment { unix: self.unix_ms(), boot: self.clock.boot() }
    }

    fn unix_ms(&self) -> UnixMs {
        u64::try_from(self.clock.unix()).unwrap_or(0).saturating_mul(1000)
    }
}

impl std::fmt::Debug for Operations {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Operations").field("rooms", &self.0.rooms.read().by_device.len()).finish_non_exhaustive()
    }
}

/// What a client asks for.
#[derive(Debug, Clone)]
pub struct Order {
    /// What to do.
    pub request: Request,
    /// The session it belongs to, at most [`limits::OPERATION_SESSION_NAME_MAX`] characters; one account's own on one device.
    pub session: Option<String>,
    /// Makes a repetition the same operation, at most [`limits::OPERATION_KEY_MAX`] characters.
    pub key: Option<String>,
    /// How long it may wait to be sent; [`limits::OPERATIONS_QUEUE_TTL`] unless shorter.
    pub ttl: Option<Duration>,
}

impl Operations {
    /// What this relay remembers. Blocks on the store; to be called before the relay listens, inside a tokio runtime.
    /// Operations of devices that are not `let_in` any more end.
    pub(crate) fn open(
        folder: &Path,
        clock: Arc<dyn Clock>,
        check: DeviceCheck,
        let_in: HashMap<DeviceId, String>,
    ) -> Result<Operations, StoreError> {
        let (store, set_aside) = store::open(folder)?;
        // After that it would be forgotten anyway.
        let now = u64::try_from(clock.unix()).unwrap_or(0);
        let set_aside = set_aside.filter(|at| now.saturating_sub(*at) < limits::OPERATIONS_KEPT_FOR.as_secs());
        let shared = Arc::new(Shared {
            check,
            bounds: output::Bounds::default(),
            pace: Arc::new(Pace::new(clock.clone())),
            clock,
            counters: counters::Counters::default(),
            next: AtomicU64::new(1),
            set_aside,
            readers: readers::Readers::default(),
            runtime: tokio::runtime::Handle::current(),
            owners: let_in,
            store,
        });
        let now = shared.moment();
        let loaded = shared.store.read_now(|db| store::load(db, &now))?;
        let operations = Operations(Arc::new(Inner { shared, rooms: RwLock::default() }));
        for (device, loaded) in loaded {
            let room = WorkerRoom::new(device.clone(), operations.0.shared.clone(), loaded);
            match operations.0.shared.owners.contains_key(&device) {
                true => drop(operations.0.rooms.write().by_device.insert(device, room)),
                false => room.tell(Input::Revoke),
            }
        }
        Ok(operations)
    }

    /// Starts an operation, or answers the one its key stands for. Answered when it stands in the store, whether its worker
    /// is there or not.
    pub async fn start(&self, party: &Party, order: Order) -> Result<OperationView, ApiError> {
        let Order { request, session, key, ttl } = order;
        if request.kind().is_input() {
            return Err(ApiError::invalid("input is for an operation that runs: give it there"));
        }
        let start = Start {
            principal: party.principal(),
            key: checked_key(key)?,
            session_id: session.map(|session| party.session(&session)).transpose()?,
            run_id: None,
            role: party.role(),
            client: Some(party.client_name().to_owned()),
            request,
            ttl,
            at: self.0.shared.unix_ms(),
        };
        self.admit(party, start).await
    }

    /// Gives input to an operation that runs: `exec_stdin`, `pty_input`, `pty_resize` or `pty_close`. The input is an
    /// operation too; it is answered when it stands in the store.
    pub async fn input(
        &self,
        party: &Party,
        id: &OperationId,
        input: Request,
        key: Option<String>,
    ) -> Result<OperationView, ApiError> {
        if !input.kind().is_input() {
            return Err(ApiError::invalid("this is no input: exec_stdin, pty_input, pty_resize or pty_close"));
        }
        let operation = self.get(party, id).await?;
        let Some(run) = &operation.run else { return Err(ApiError::invalid("this operation takes no input")) };
        let start = Start {
            principal: party.principal(),
            key: checked_key(key)?,
            session_id: operation.session_id(),
            run_id: Some(run.clone()),
            role: party.role(),
            client: Some(party.client_name().to_owned()),
            request: input,
            ttl: None,
            at: self.0.shared.unix_ms(),
        };
        self.admit(party, start).await
    }

    async fn admit(&self, party: &Party, start: Start) -> Result<OperationView, ApiError> {
        let room = self.room(party.device()).ok_or_else(ApiError::not_found)?;
        let accepted = room.ask(|ask| Input::Start { ask, start: Box::new(start) }).await?;
        match accepted {
            // It stands in the store: nobody may take this for "nothing was done" and ask again.
            Accepted::Operation(id) => self.get(party, &id).await.map_err(|_| {
                let why = format!("operation {id} was admitted and cannot be shown now");
                ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, Code::OutcomeUnknown.as_str(), why)
            }),
            Accepted::Session => Err(ApiError::not_found()),
        }
    }

    /// Cancels an operation; one that has ended stays as it is. What it came to is told by its state, later.
    pub async fn cancel(&self, party: &Party, id: &OperationId) -> Result<OperationView, ApiError> {
        let operation = self.get(party, id).await?;
        if operation.state.is_final() {
            return Ok(operation);
        }
        if let Some(room) = self.known(party.device()) {
            room.ask(|ask| Input::Cancel { ask, id: id.clone() }).await?;
        }
        self.get(party, id).await
    }

    /// Cancels what a session of this account has on its device, and will have.
    pub async fn cancel_session(&self, party: &Party, session: &str) -> Result<(), ApiError> {
        let cancellation = format!("cancel_{}", data_encoding::BASE64URL_NOPAD.encode(&self.0.shared.seed()[..16]));
        let cancel = SessionCancel { cancellation, session: party.session(session)? };
        let room = self.room(party.device()).ok_or_else(ApiError::not_found)?;
        room.ask(|ask| Input::CancelSession { ask, cancel }).await?;
        Ok(())
    }

    /// An operation of this party's; guessing ids finds nothing.
    pub async fn get(&self, party: &Party, id: &OperationId) -> Result<OperationView, ApiError> {
        Ok(self.find(party, id, |_, _| Ok(())).await?.0)
    }

    /// The same, with what `more` reads of its row.
    async fn find<T: Send + 'static>(
        &self,
        party: &Party,
        id: &OperationId,
        more: impl FnOnce(&Connection, &OperationView) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<(OperationView, T), ApiError> {
        // The machine first: an operation that ends in between is found ended.
        let room = self.known(party.device());
        let live = room.as_ref().and_then(|room| room.view(id));
        let (owner, wanted, set_aside) = (party.clone(), id.clone(), self.0.shared.set_aside);
        let found = self.0.shared.store.read(move |db| {
            let found = view::one(db, owner.device(), &wanted)?.filter(|found| owner.owns(&found.account));
            let found = found.ok_or_else(|| unknown(set_aside))?;
            let more = more(db, &found)?;
            Ok::<_, ApiError>((found, more))
        });
        let (mut found, more) = found.await?;
        found.worker_live = room.is_some_and(|room| room.is_live());
        if let Some(live) = live {
            found.enliven(live);
        }
        Ok((found, more))
    }

    /// The newest operations of this party's.
    pub async fn list(&self, party: &Party, page: Page) -> Result<Vec<OperationView>, ApiError> {
        let (device, account) = (party.device().clone(), party.only_account());
        let room = self.known(party.device());
        let found = self.0.shared.store.read(move |db| view::list(db, &device, account.as_deref(), &page)).await?;
        let mut operations = found.ok_or_else(ApiError::not_found)?;
        let worker_live = room.as_ref().is_some_and(|room| room.is_live());
        for operation in &mut operations {
            operation.worker_live = worker_live;
            if let Some(live) = room.as_ref().and_then(|room| room.view(&operation.id)) {
                operation.enliven(live);
            }
        }
        Ok(operations)
    }

    /// Every device's worker, in no order.
    pub(crate) fn workers(&self) -> Vec<Snapshot> {
        self.all().iter().map(|room| room.snapshot()).collect()
    }

    /// Devices whose operations the store refuses for want of room, or because it is broken.
    pub(crate) fn refusing(&self) -> usize {
        self.all().iter().filter(|room| room.is_refusing()).count()
    }

    /// When an earlier store of operations was set aside because it was damaged, unix seconds, for as long as what it knew
    /// would have been remembered.
    pub fn set_aside(&self) -> Option<u64> {
        self.0.shared.set_aside
    }

    /// Counts since the start.
    pub fn counts(&self) -> OperationCounts {
        self.0.shared.counters.view()
    }

    /// Cancels every operation of every device that has not ended.
    pub(crate) fn cancel_all(&self) {
        for room in self.all() {
            room.tell(Input::CancelAll);
        }
    }

    /// The device's credential was revoked: its worker will not come back.
    pub(crate) fn revoke(&self, device: &DeviceId) {
        let room = {
            let mut rooms = self.0.rooms.write();
            rooms.revoked.insert(device.clone());
            rooms.by_device.remove(device)
        };
        if let Some(room) = room {
            room.tell(Input::Revoke);
        }
    }

    /// Forgets what ended long ago.
    pub(crate) async fn sweep(&self) -> Result<(), StoreError> {
        let store = &self.0.shared.store;
        let now = self.0.shared.unix_ms();
        let ago = |kept: Duration| now.saturating_sub(u64::try_from(kept.as_millis()).unwrap_or(u64::MAX));
        let inputs = ago(limits::OPERATION_INPUTS_KEPT_FOR);
        while store.write(move |db| store::forget_inputs(db, inputs)).await? {}
        let before = ago(limits::OPERATIONS_KEPT_FOR);
        while store.write(move |db| store::forget(db, before)).await? {}
        store.write(move |db| store::forget_sessions(db, before)).await
    }

    /// Closes the sockets and the store; what was acknowledged stands on disk then.
    pub(crate) async fn shutdown(&self) {
        let rooms = self.all();
        let all = async {
            for room in &rooms {
                room.stop().await;
            }
        };
        drop(tokio::time::timeout(limits::CLOSE_WAIT * 2, all).await);
        self.close().await;
    }

    /// Ends at once: sockets are cut without a word, and nothing is kept from now on. What was acknowledged stands on disk.
    /// Blocks until the store is closed.
    pub(crate) fn cut(&self) {
        for room in self.all() {
            room.cut();
        }
        self.0.shared.store.close();
    }

    /// Closes the store.
    pub(crate) async fn close(&self) {
        let store = self.0.shared.store.clone();
        drop(tokio::task::spawn_blocking(move || store.close()).await);
    }

    fn all(&self) -> Vec<Arc<WorkerRoom>> {
        self.0.rooms.read().by_device.values().cloned().collect()
    }

    fn known(&self, device: &DeviceId) -> Option<Arc<WorkerRoom>> {
        self.0.rooms.read().by_device.get(device).cloned()
    }

    /// The room of a device, made if it is not there: nothing was kept of it then. `None`: it was revoked.
    fn room(&self, device: &DeviceId) -> Option<Arc<WorkerRoom>> {
        if let Some(room) = self.known(device) {
            return Some(room);
        }
        let mut rooms = self.0.rooms.write();
        if rooms.revoked.contains(device) {
            return None;
        }
        let made = || WorkerRoom::new(device.clone(), self.0.shared.clone(), Loaded::default());
        Some(Arc::clone(rooms.by_device.entry(device.clone()).or_insert_with(made)))
    }
}

/// Nothing is known of an operation; after damage that does not mean that there was none.
fn unknown(set_aside: Option<u64>) -> ApiError {
    match set_aside {
        None => ApiError::not_found(),
        Some(at) => {
            let why = format!("no such operation; what was known at unix time {at} was damaged and is set aside");
            ApiError { message: why, ..ApiError::not_found() }
        }
    }
}

fn checked_key(key: Option<String>) -> Result<Option<Arc<str>>, ApiError> {
    match key {
        Some(key) if key.is_empty() || key.chars().count() > limits::OPERATION_KEY_MAX => {
            Err(ApiError::invalid("a key has 1 to 128 characters"))
        }
        key => Ok(key.map(Arc::from)),
    }
}
