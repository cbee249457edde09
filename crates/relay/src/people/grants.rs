//! Grants: what an account let a client do, and personal access tokens, which are grants without a client.

use holdfast_core::id::{AccountId, DeviceId};
use holdfast_core::limits;
use holdfast_core::policy::Role;
use http::StatusCode;
use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};

use super::accounts::Account;
use crate::auth::Change;
use crate::http::error::ApiError;
use crate::principal::{GrantId, Scopes};
use crate::secret::{TokenHash, mint, mint_name};

/// A personal access token as people see it; the token itself is shown once, at its making.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct TokenView {
    /// Its id.
    pub id: String,
    /// The name it was given.
    pub name: String,
    /// Whose rights it uses.
    pub account: String,
    /// The device it reaches.
    pub device: DeviceId,
    /// A cap below the account's role, if one was set.
    pub role: Option<Role>,
    /// Seconds since 1970.
    pub created: i64,
    /// Seconds since 1970.
    pub expires: i64,
    /// Seconds since 1970, a minute behind at most; `None` if never.
    pub last_used: Option<i64>,
}

/// A personal access token at its making.
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct NewToken {
    /// The bearer token. Shown this once.
    pub token: String,
    /// What was made.
    #[serde(flatten)]
    pub view: TokenView,
}

impl std::fmt::Debug for NewToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewToken").field("view", &self.view).finish_non_exhaustive()
    }
}

/// What one client was granted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct GrantView {
    /// Its id; may be revoked alone.
    pub id: String,
    /// Whose rights it uses.
    pub account: String,
    /// The device it reaches.
    pub device: DeviceId,
    /// What was consented to.
    pub scopes: String,
    /// Seconds since 1970.
    pub created: i64,
    /// Seconds since 1970, a minute behind at most; `None` if never.
    pub last_used: Option<i64>,
}

/// A registered client with its grants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct ClientView {
    /// Its client id.
    pub id: String,
    /// What it calls itself. A claim.
    pub name: String,
    /// Seconds since 1970.
    pub created: i64,
    /// What it was granted; empty for one that only registered.
    pub grants: Vec<GrantView>,
}

/// What a personal access token is made of.
pub(crate) struct TokenOrder<'a> {
    pub(crate) account: &'a Account,
    pub(crate) device: &'a DeviceId,
    pub(crate) name: &'a str,
    pub(crate) role: Option<Role>,
    /// Seconds.
    pub(crate) life: i64,
}

/// Makes a personal access token.
pub(crate) fn create_token(
    db: &Connection,
    now: i64,
    order: &TokenOrder<'_>,
    news: &mut Vec<Change>,
) -> Result<NewToken, ApiError> {
    let TokenOrder { account, device, name, role, life } = *order;
    let sql = "SELECT count(*) FROM grants WHERE kind = 'token' AND account = ?1";
    let count: usize = db.query_row(sql, [account.id.as_str()], |row| row.get(0))?;
    if count >= limits::TOKENS_PER_ACCOUNT {
        return Err(ApiError::new(StatusCode::CONFLICT, "token_limit_reached", "revoke a token first"));
    }
    if role.is_some_and(|role| role > account.role) {
        return Err(ApiError::invalid("a token cannot have more rights than its account"));
    }
    let (id, token, expires) = (mint_name("pat_"), mint("hf_pat_"), now.saturating_add(life));
    let scopes = Scopes { mcp: true, operations: true, offline_access: false };
    let sql = "INSERT INTO grants (id, kind, account, device, client, name, role, scopes, created)
               VALUES (?1, 'token', ?2, ?3, ?1, ?4, ?5, ?6, ?7)";
    let role_text = role.map(Role::as_str);
    db.execute(sql, params![id, account.id.as_str(), device.as_str(), name, role_text, scopes.to_text(), now])?;
    let sql = "INSERT INTO pairs (grant_id, generation, access, access_expires) VALUES (?1, 0, ?2, ?3)";
    db.execute(sql, params![id, TokenHash::of(&token), expires])?;
    news.push(Change::Grant(id.as_str().into()));
    let (name, account) = (name.to_owned(), account.name.clone());
    let view = TokenView { id, name, account, device: device.clone(), role, created: now, expires, last_used: None };
    Ok(NewToken { token, view })
}

/// The tokens of one account, or of all.
pub(crate) fn tokens(db: &Connection, of: Option<&AccountId>) -> Result<Vec<TokenView>, ApiError> {
    let sql = "SELECT g.id, g.name, a.name, g.device, g.role, g.created, p.access_expires, g.last_used
               FROM grants g JOIN accounts a ON a.id = g.account JOIN pairs p ON p.grant_id = g.id
               WHERE g.kind = 'token' AND (?1 IS NULL OR g.account = ?1) ORDER BY g.created, g.id";
    let mut query = db.prepare(sql)?;
    let rows = query.query_map([of.map(AccountId::as_str)], |row| {
        let Ok(device) = DeviceId::parse(&row.get::<_, String>(3)?) else { return Ok(None) };
        Ok(Some(TokenView {
            id: row.get(0)?,
            name: row.get(1)?,
            account: row.get(2)?,
            device,
            role: row.get::<_, Option<String>>(4)?.as_deref().and_then(Role::parse),
            created: row.get(5)?,
            expires: row.get(6)?,
            last_used: row.get(7)?,
        }))
    })?;
    Ok(rows.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

/// The registered clients that one account granted something, or all of them.
pub(crate) fn clients(db: &Connection, of: Option<&AccountId>) -> Result<Vec<ClientView>, ApiError> {
    let sql = "SELECT c.id, c.name, c.created, g.id, a.name, g.device, g.scopes, g.created, g.last_used
               FROM clients c LEFT JOIN grants g ON g.client = c.id AND (?1 IS NULL OR g.account = ?1)
               LEFT JOIN accounts a ON a.id = g.account
               WHERE ?1 IS NULL OR g.id IS NOT NULL ORDER BY c.created, c.id, g.created, g.id";
    let mut query = db.prepare(sql)?;
    let mut rows = query.query([of.map(AccountId::as_str)])?;
    let mut clients: Vec<ClientView> = Vec::new();
    while let Some(row) = rows.next()? {
        let id: String = row.get(0)?;
        if clients.last().is_none_or(|last| last.id != id) {
            clients.push(ClientView { id, name: row.get(1)?, created: row.get(2)?, grants: Vec::new() });
        }
        let device = row.get::<_, Option<String>>(5)?.and_then(|text| DeviceId::parse(&text).ok());
        if let (Some(client), Some(device)) = (clients.last_mut(), device) {
            client.grants.push(GrantView {
                id: row.get(3)?,
                account: row.get(4)?,
                device,
                scopes: row.get(6)?,
                created: row.get(7)?,
                last_used: row.get(8)?,
            });
        }
    }
    Ok(clients)
}

/// Revokes every grant that fits a condition on its row, with `?1` bound to `value`; tells how many.
pub(crate) fn revoke_where(
    db: &Connection,
    condition: &'static str,
    value: &str,
    news: &mut Vec<Change>,
) -> Result<usize, ApiError> {
    let mut query = db.prepare_cached(&format!("DELETE FROM grants WHERE {condition} RETURNING id"))?;
    let ids = query.query_map([value], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?;
    let count = ids.len();
    news.extend(ids.into_iter().map(|id| Change::Revoked(GrantId::from(id))));
    Ok(count)
}

/// Revokes every grant there is.
pub(crate) fn revoke_all(db: &Connection, news: &mut Vec<Change>) -> Result<usize, ApiError> {
    revoke_where(db, "?1 = ''", "", news)
}

/// The ids of the grants of a client, or the one grant of that id; of one account, or of all.
pub(crate) fn of_client(db: &Connection, id: &str, account: Option<&str>) -> Result<Vec<String>, ApiError> {
    let sql =
        "SELECT id FROM grants WHERE kind = 'client' AND (client = ?1 OR id = ?1) AND (?2 IS NULL OR account = ?2)";
    let mut query = db.prepare(sql)?;
    let ids = query.query_map(params![id, account], |row| row.get(0))?;
    Ok(ids.collect::<Result<_, _>>()?)
}
