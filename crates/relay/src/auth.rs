//! Who presents a secret: an index in memory of every live bearer token and device credential.
//!
//! The store is the truth; the index follows it in the order of the commits, because the writer thread applies the changes.
//! A check is one SHA-256 and one look into a map.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use holdfast_core::id::{AccountId, DeviceId};
use holdfast_core::limits;
use holdfast_core::policy::Role;
use parking_lot::RwLock;
use rusqlite::{Connection, Row, params};
use tokio::sync::broadcast;

use crate::clock::Clock;
use crate::principal::{AuthFailure, GrantId, Principal, ResourcePath, Scopes};
use crate::secret::TokenHash;
use crate::state::Site;
use crate::store::{Store, StoreError};

/// An enrolled device, as its credential proves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceIdentity {
    /// The device.
    pub id: DeviceId,
    /// The account it belongs to.
    pub account: AccountId,
}

/// Why a device credential is not accepted. The daemon tells the two apart: neither is tried again by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DeviceAuthFailure {
    /// Never enrolled here.
    #[error("device_unknown")]
    Unknown,
    /// Enrolled, and revoked since.
    #[error("device_revoked")]
    Revoked,
}

impl DeviceAuthFailure {
    /// The stable code.
    pub fn code(self) -> &'static str {
        match self {
            DeviceAuthFailure::Unknown => "device_unknown",
            DeviceAuthFailure::Revoked => "device_revoked",
        }
    }
}

/// What a token may be used for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Audience {
    /// A personal access token: its device, by either path.
    OwnDevice,
    /// The one resource named at consent.
    One(ResourcePath),
    /// A resource of an address that this relay does not have any more.
    Foreign,
}

#[derive(Debug)]
struct Bearer {
    principal: Arc<Principal>,
    audience: Audience,
    expires: i64,
    generation: i64,
    /// When a use was last recorded; 0 for never.
    used: AtomicI64,
}

#[derive(Debug, Default)]
struct Index {
    bearers: HashMap<TokenHash, Bearer>,
    /// Bearer tokens of each grant; a grant without an access token alive is here with none.
    grants: HashMap<GrantId, Vec<TokenHash>>,
    devices: HashMap<TokenHash, Result<Arc<DeviceIdentity>, DeviceAuthFailure>>,
}

/// A change of the index that a write brings with it.
#[derive(Debug)]
pub(crate) enum Change {
    /// Read the grant and its tokens again.
    Grant(GrantId),
    /// The grant is gone.
    Revoked(GrantId),
    /// A device was enrolled.
    Device(TokenHash, DeviceIdentity),
    /// A device was revoked.
    DeviceRevoked(TokenHash),
    /// A device is not even known as revoked any more.
    DeviceForgotten(TokenHash),
}

/// Checks bearer tokens and device credentials.
#[derive(Debug, Clone)]
pub struct Auth(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    index: RwLock<Index>,
    revocations: broadcast::Sender<GrantId>,
    store: Store,
    clock: Arc<dyn Clock>,
    site: Site,
}

impl Auth {
    /// Reads every live token from the store. Blocks.
    pub(crate) fn load(store: &Store, clock: &Arc<dyn Clock>, site: &Site) -> Result<Auth, StoreError> {
        let now = clock.unix();
        let mut index = Index::default();
        let (tokens, devices) =
            store.read_now(|db| Ok::<_, StoreError>((live_tokens(db, None, now)?, known_devices(db)?)))?;
        for token in tokens {
            index.insert(token, site);
        }
        index.devices = devices;
        let (revocations, _) = broadcast::channel(limits::REVOCATIONS_QUEUE);
        let shared = Shared {
            index: RwLock::new(index),
            revocations,
            store: store.clone(),
            clock: clock.clone(),
            site: site.clone(),
        };
        Ok(Auth(Arc::new(shared)))
    }

    /// Who presents this bearer token, for this resource. Touches no disk.
    pub fn check(&self, bearer: &str, resource: &ResourcePath) -> Result<Arc<Principal>, AuthFailure> {
        let fits = |token: &Bearer| match &token.audience {
            Audience::OwnDevice => resource.0.as_ref().is_none_or(|device| *device == token.principal.device),
            Audience::One(own) => own == resource,
            Audience::Foreign => false,
        };
        self.admit(bearer, fits, |scopes| scopes.mcp)
    }

    /// Who presents this bearer token, for the operations of its device. Touches no disk.
    pub fn check_operations(&self, bearer: &str) -> Result<Arc<Principal>, AuthFailure> {
        self.admit(bearer, |token| token.audience != Audience::Foreign, |scopes| scopes.operations)
    }

    fn admit(
        &self,
        bearer: &str,
        fits: impl Fn(&Bearer) -> bool,
        may: impl Fn(Scopes) -> bool,
    ) -> Result<Arc<Principal>, AuthFailure> {
        let hash = TokenHash::of(bearer);
        let index = self.0.index.read();
        let token = index.bearers.get(&hash).ok_or(AuthFailure::Unknown)?;
        let now = self.0.clock.unix();
        if token.expires <= now {
            return Err(AuthFailure::Expired);
        }
        if !fits(token) {
            return Err(AuthFailure::WrongAudience);
        }
        if !may(token.principal.scopes) {
            return Err(AuthFailure::InsufficientScope);
        }
        let used = token.used.load(Ordering::Relaxed);
        if now.saturating_sub(used) >= USE_RECORDED
            && token.used.compare_exchange(used, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            self.mark_used(&token.principal.grant, token.generation, now);
        }
        Ok(token.principal.clone())
    }

    /// People are told when a grant was last used, and the first use of a pair starts the end of its predecessor's grace. Should this
    /// write be lost, the grace is longer; nothing else.
    fn mark_used(&self, grant: &GrantId, generation: i64, now: i64) {
        let grant = grant.clone();
        self.0.store.submit(
            move |db| {
                db.execute("UPDATE grants SET last_used = ?2 WHERE id = ?1", params![&*grant, now])?;
                let sql =
                    "UPDATE pairs SET first_used = ?3 WHERE grant_id = ?1 AND generation = ?2 AND first_used IS NULL";
                db.execute(sql, params![&*grant, generation, now]).map_err(StoreError::from)
            },
            |outcome| {
                if let Err(error) = outcome {
                    tracing::warn!(%error, "use of a token was not recorded");
                }
            },
        );
    }

    /// Which device presents this credential. Touches no disk.
    pub fn device(&self, credential: &str) -> Result<Arc<DeviceIdentity>, DeviceAuthFailure> {
        let known = self.0.index.read().devices.get(&TokenHash::of(credential)).cloned();
        known.unwrap_or(Err(DeviceAuthFailure::Unknown))
    }

    /// Whether the grant still stands: for a listener of [`Auth::revocations`] that fell behind.
    pub fn is_live(&self, grant: &GrantId) -> bool {
        self.0.index.read().grants.contains_key(grant)
    }

    /// Tells every grant that is revoked from now on. Its sessions end and its calls are cancelled.
    pub fn revocations(&self) -> broadcast::Receiver<GrantId> {
        self.0.revocations.subscribe()
    }

    /// A write that also changes who has access: the index follows the commit.
    pub(crate) async fn write<T, E, F>(&self, work: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
        F: FnOnce(&Connection, &mut Vec<Change>) -> Result<T, E> + Send + 'static,
    {
        let (tell, told) = tokio::sync::oneshot::channel();
        let auth = self.clone();
        let now = self.0.clock.unix();
        let work = move |db: &Connection| {
            let mut changes = Vec::new();
            let value = work(db, &mut changes)?;
            let mut news = Vec::with_capacity(changes.len());
            for change in changes {
                let tokens = match &change {
                    Change::Grant(grant) => live_tokens(db, Some(grant), now).map_err(E::from)?,
                    _ => Vec::new(),
                };
                news.push((change, tokens));
            }
            Ok((value, news))
        };
        self.0.store.submit(work, move |outcome: Result<(T, Vec<News>), E>| {
            let outcome = outcome.map(|(value, news)| {
                auth.apply(news);
                value
            });
            // A receiver that left needs no answer; the change stands all the same.
            drop(tell.send(outcome));
        });
        told.await.unwrap_or_else(|_| Err(StoreError::Closed.into()))
    }

    fn apply(&self, news: Vec<News>) {
        let mut revoked = Vec::new();
        let mut index = self.0.index.write();
        for (change, tokens) in news {
            match change {
                Change::Grant(grant) => {
                    index.forget(&grant);
                    index.grants.insert(grant, Vec::new());
                    for token in tokens {
                        index.insert(token, &self.0.site);
                    }
                }
                Change::Revoked(grant) => {
                    index.forget(&grant);
                    revoked.push(grant);
                }
                Change::Device(hash, identity) => drop(index.devices.insert(hash, Ok(Arc::new(identity)))),
                Change::DeviceRevoked(hash) => drop(index.devices.insert(hash, Err(DeviceAuthFailure::Revoked))),
                Change::DeviceForgotten(hash) => drop(index.devices.remove(&hash)),
            }
        }
        drop(index);
        for grant in revoked {
            // Nobody listening means that no session exists.
            drop(self.0.revocations.send(grant));
        }
    }
}

impl Index {
    fn insert(&mut self, token: LiveToken, site: &Site) {
        let audience = match &token.audience {
            None => Audience::OwnDevice,
            Some(url) => site.resource(url).map_or(Audience::Foreign, Audience::One),
        };
        let grant = token.principal.grant.clone();
        let hashes = self.grants.entry(grant).or_default();
        if let Some(access) = token.access {
            hashes.push(access);
            let LiveToken { principal, expires, generation, used, .. } = token;
            let used = AtomicI64::new(used);
            self.bearers.insert(access, Bearer { principal: Arc::new(principal), audience, expires, generation, used });
        }
    }

    fn forget(&mut self, grant: &GrantId) {
        for hash in self.grants.remove(grant).unwrap_or_default() {
            self.bearers.remove(&hash);
        }
    }
}

const USE_RECORDED: i64 = limits::USE_RECORDED.as_secs().cast_signed();

/// A change, with what the store holds of the grant it is about.
type News = (Change, Vec<LiveToken>);

struct LiveToken {
    access: Option<TokenHash>,
    principal: Principal,
    audience: Option<String>,
    expires: i64,
    generation: i64,
    used: i64,
}

const LIVE_TOKENS: &str = "
SELECT g.id, g.account, a.name, a.version, a.role, g.role, g.client, g.device, g.scopes, g.audience,
       p.access, p.access_expires, p.generation, CASE WHEN p.first_used IS NULL THEN 0 ELSE coalesce(g.last_used, 0) END, g.name
FROM grants g JOIN accounts a ON a.id = g.account
LEFT JOIN pairs p ON p.grant_id = g.id AND p.access IS NOT NULL AND p.access_expires > ?1
WHERE a.active = 1 AND (?2 IS NULL OR g.id = ?2)";

fn live_tokens(db: &Connection, grant: Option<&str>, now: i64) -> Result<Vec<LiveToken>, StoreError> {
    let mut query = db.prepare_cached(LIVE_TOKENS)?;
    let rows = query.query_map(params![now, grant], read_token)?;
    // A row that does not parse was not written by us: it grants nothing.
    Ok(rows.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

fn read_token(row: &Row<'_>) -> rusqlite::Result<Option<LiveToken>> {
    let text = |column| row.get::<_, String>(column);
    let role = |text: &str| Role::parse(text);
    let (Ok(account), Ok(device)) = (AccountId::parse(&text(1)?), DeviceId::parse(&text(7)?)) else { return Ok(None) };
    let (Some(own), Some(scopes)) = (role(&text(4)?), Scopes::parse(&text(8)?)) else { return Ok(None) };
    let cap = row.get::<_, Option<String>>(5)?.as_deref().map_or(Some(own), role);
    let Some(cap) = cap else { return Ok(None) };
    let principal = Principal {
        account,
        account_name: text(2)?.into(),
        account_version: row.get::<_, i64>(3)?.unsigned_abs(),
        role: own.min(cap),
        client: text(6)?.into(),
        client_name: text(14)?.into(),
        grant: text(0)?.into(),
        device,
        scopes,
    };
    Ok(Some(LiveToken {
        access: row.get(10)?,
        principal,
        audience: row.get(9)?,
        expires: row.get::<_, Option<i64>>(11)?.unwrap_or_default(),
        generation: row.get::<_, Option<i64>>(12)?.unwrap_or_default(),
        used: row.get(13)?,
    }))
}

type DeviceIndex = HashMap<TokenHash, Result<Arc<DeviceIdentity>, DeviceAuthFailure>>;

fn known_devices(db: &Connection) -> Result<DeviceIndex, StoreError> {
    let mut query = db.prepare("SELECT token, id, account, revoked IS NOT NULL FROM devices")?;
    let rows = query.query_map([], |row| {
        let ids = (DeviceId::parse(&row.get::<_, String>(1)?), AccountId::parse(&row.get::<_, String>(2)?));
        Ok((row.get::<_, TokenHash>(0)?, ids, row.get::<_, bool>(3)?))
    })?;
    let mut devices = HashMap::new();
    for row in rows {
        match row? {
            (hash, _, true) => drop(devices.insert(hash, Err(DeviceAuthFailure::Revoked))),
            (hash, (Ok(id), Ok(account)), false) => {
                drop(devices.insert(hash, Ok(Arc::new(DeviceIdentity { id, account }))))
            }
            _ => {}
        }
    }
    Ok(devices)
}
