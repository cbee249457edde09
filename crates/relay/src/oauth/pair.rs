//! Pairs of access and refresh token, and how one follows another.
//!
//! A grant has one newest pair. Redeeming its refresh token makes the next pair, which is also kept sealed under the redeemed token: if the
//! answer is lost, the same token gives the same pair again, until the new pair was used and ten minutes more. Any older
//! refresh token is stolen or replayed, and ends the grant.

use holdfast_core::limits;
use rusqlite::{Connection, OptionalExtension as _, params};
use serde::{Deserialize, Serialize};
use url::Url;

use super::register;
use crate::auth::Change;
use crate::http::error::ApiError;
use crate::people::devices::forget_links;
use crate::people::grants::revoke_where;
use crate::principal::{GrantId, ResourcePath, Scopes};
use crate::secret::{TokenHash, mint, seal, unseal};
use crate::state::AppState;

const PURPOSE: &str = "holdfast token pair";

/// The two tokens of a pair; only on their way to the client, and sealed.
#[derive(Serialize, Deserialize)]
pub(super) struct Tokens {
    pub(super) access: String,
    pub(super) refresh: Option<String>,
}

impl Tokens {
    fn mint(refreshes: bool) -> Tokens {
        Tokens { access: mint("hf_at_"), refresh: refreshes.then(|| mint("hf_rt_")) }
    }
}

/// A pair as it is answered.
pub(super) struct Issued {
    pub(super) tokens: Tokens,
    pub(super) scopes: Scopes,
    /// Seconds the access token is good for.
    pub(super) expires_in: i64,
}

fn life(of: std::time::Duration) -> i64 {
    i64::try_from(of.as_secs()).unwrap_or(0)
}

fn insert(db: &Connection, now: i64, grant: &str, generation: i64, tokens: &Tokens) -> Result<(), ApiError> {
    let sql = "INSERT INTO pairs (grant_id, generation, access, access_expires, refresh, refresh_expires)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let refresh = tokens.refresh.as_deref().map(TokenHash::of);
    let refresh_expires = refresh.map(|_| now + life(limits::REFRESH_LIFE));
    let access_expires = now + life(limits::ACCESS_LIFE);
    db.execute(
        sql,
        params![grant, generation, TokenHash::of(&tokens.access), access_expires, refresh, refresh_expires],
    )?;
    Ok(())
}

/// The first pair of a grant.
pub(super) fn first(
    db: &Connection,
    now: i64,
    grant: &GrantId,
    scopes: Scopes,
    refreshes: bool,
) -> Result<Issued, ApiError> {
    let tokens = Tokens::mint(refreshes);
    insert(db, now, grant, 0, &tokens)?;
    Ok(Issued { tokens, scopes, expires_in: life(limits::ACCESS_LIFE) })
}

struct Stored {
    grant: String,
    generation: i64,
    expires: i64,
    successor: Option<Vec<u8>>,
    newest: i64,
    client: String,
    audience: Option<ResourcePath>,
    scopes: Scopes,
}

fn find(db: &Connection, refresh: &TokenHash) -> Result<Option<Stored>, ApiError> {
    let sql = "SELECT p.grant_id, p.generation, p.refresh_expires, p.successor, g.client, g.audience, g.scopes,
                      (SELECT max(generation) FROM pairs WHERE grant_id = p.grant_id)
               FROM pairs p JOIN grants g ON g.id = p.grant_id WHERE p.refresh = ?1";
    let found = db.query_row(sql, [refresh], |row| {
        Ok(Stored {
            grant: row.get(0)?,
            generation: row.get(1)?,
            expires: row.get(2)?,
            successor: row.get(3)?,
            client: row.get(4)?,
            audience: row
                .get::<_, Option<String>>(5)?
                .and_then(|url| ResourcePath::parse(Url::parse(&url).ok()?.path())),
            scopes: Scopes::parse(&row.get::<_, String>(6)?).unwrap_or_default(),
            newest: row.get(7)?,
        })
    });
    Ok(found.optional()?)
}

/// What a client redeems a refresh token with.
pub(super) struct Redemption {
    pub(super) token: String,
    pub(super) client: String,
    /// The resource, if it was named again.
    pub(super) resource: Option<ResourcePath>,
    /// The scopes, if they were named again.
    pub(super) scopes: Option<Scopes>,
}

/// Why a refresh token gives nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    Grant,
    Target,
    Scope,
}

/// Redeems a refresh token. Reuse of an old one revokes the grant, which is a change that must be kept: so the refusal is a value, not an error.
pub(super) fn redeem(
    db: &Connection,
    now: i64,
    ask: &Redemption,
    news: &mut Vec<Change>,
) -> Result<Result<Issued, Refused>, ApiError> {
    let Some(stored) = find(db, &TokenHash::of(&ask.token))? else { return Ok(Err(Refused::Grant)) };
    if stored.client != ask.client {
        return Ok(Err(Refused::Grant));
    }
    if ask.resource.is_some() && ask.resource != stored.audience {
        return Ok(Err(Refused::Target));
    }
    if ask.scopes.is_some_and(|scopes| scopes != stored.scopes) {
        return Ok(Err(Refused::Scope));
    }
    let reused = match (stored.newest - stored.generation, &stored.successor) {
        (0, _) => None,
        (1, Some(sealed)) => again(db, now, ask, &stored, sealed)?,
        _ => Some(Err(Refused::Grant)),
    };
    match reused {
        Some(Ok(issued)) => {
            news.push(Change::Grant(stored.grant.into()));
            Ok(Ok(issued))
        }
        Some(Err(refused)) => {
            revoke_where(db, "id = ?1", &stored.grant, news)?;
            Ok(Err(refused))
        }
        None if stored.expires <= now => Ok(Err(Refused::Grant)),
        None => rotate(db, now, ask, stored, news).map(Ok),
    }
}

/// The same pair again, while its predecessor may still ask for it.
fn again(
    db: &Connection,
    now: i64,
    ask: &Redemption,
    stored: &Stored,
    sealed: &[u8],
) -> Result<Option<Result<Issued, Refused>>, ApiError> {
    let sql = "SELECT first_used, access_expires FROM pairs WHERE grant_id = ?1 AND generation = ?2";
    let (first_used, mut expires): (Option<i64>, i64) =
        db.query_row(sql, params![stored.grant, stored.newest], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if first_used.is_some_and(|used| now > used + life(limits::REFRESH_GRACE)) || stored.expires <= now {
        return Ok(Some(Err(Refused::Grant)));
    }
    let tokens = unseal(&ask.token, PURPOSE, sealed).and_then(|text| serde_json::from_str::<Tokens>(&text).ok());
    let Some(tokens) = tokens else { return Ok(Some(Err(Refused::Grant))) };
    if first_used.is_none() {
        // Nobody has it yet: it starts its life now.
        expires = now + life(limits::ACCESS_LIFE);
        let sql = "UPDATE pairs SET access_expires = ?3, refresh_expires = ?4 WHERE grant_id = ?1 AND generation = ?2";
        db.execute(sql, params![stored.grant, stored.newest, expires, now + life(limits::REFRESH_LIFE)])?;
    }
    Ok(Some(Ok(Issued { tokens, scopes: stored.scopes, expires_in: (expires - now).max(0) })))
}

fn rotate(
    db: &Connection,
    now: i64,
    ask: &Redemption,
    stored: Stored,
    news: &mut Vec<Change>,
) -> Result<Issued, ApiError> {
    let tokens = Tokens::mint(true);
    let next = stored.generation + 1;
    insert(db, now, &stored.grant, next, &tokens)?;
    let sealed = serde_json::to_string(&tokens).ok().and_then(|text| seal(&ask.token, PURPOSE, &text));
    let sql = "UPDATE pairs SET successor = ?3, first_used = coalesce(first_used, ?4) WHERE grant_id = ?1 AND generation = ?2";
    db.execute(sql, params![stored.grant, stored.generation, sealed, now])?;
    // The predecessor's predecessor can get nothing any more: what was sealed for it goes.
    db.execute(
        "UPDATE pairs SET successor = NULL WHERE grant_id = ?1 AND generation < ?2",
        params![stored.grant, stored.generation],
    )?;
    let sql = "UPDATE pairs SET access = NULL WHERE grant_id = ?1 AND generation <= ?2";
    db.execute(sql, params![stored.grant, next - i64::try_from(limits::ACCESS_PER_GRANT).unwrap_or(0)])?;
    let sql = "DELETE FROM pairs WHERE grant_id = ?1 AND generation <= ?2";
    db.execute(sql, params![stored.grant, next - i64::try_from(limits::GENERATIONS_KEPT).unwrap_or(0)])?;
    db.execute("UPDATE clients SET last_used = ?2 WHERE id = ?1", params![stored.client, now])?;
    news.push(Change::Grant(stored.grant.into()));
    Ok(Issued { tokens, scopes: stored.scopes, expires_in: life(limits::ACCESS_LIFE) })
}

/// Forgets grants whose tokens have all expired, old codes and clients. To be called now and then.
pub(crate) async fn sweep(state: &AppState) -> Result<(), ApiError> {
    let now = state.clock.unix();
    let work = move |db: &Connection, news: &mut Vec<Change>| {
        let sql = "SELECT id FROM grants g WHERE NOT EXISTS (SELECT 1 FROM pairs p WHERE p.grant_id = g.id
                   AND (p.access_expires > ?1 OR p.refresh_expires > ?1))";
        let dead = db.prepare(sql)?.query_map([now], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?;
        for grant in dead {
            revoke_where(db, "id = ?1", &grant, news)?;
        }
        db.execute("DELETE FROM enrolments WHERE expires <= ?1", [now])?;
        forget_links(db)?;
        register::expire(db, now)
    };
    state.auth.write(work).await
}
