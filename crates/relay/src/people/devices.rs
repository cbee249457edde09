//! Devices in the store, and their enrolment codes.

use std::collections::HashMap;

use holdfast_core::id::{AccountId, DeviceId};
use holdfast_core::limits;
use http::StatusCode;
use rusqlite::{Connection, OptionalExtension as _, params};
use serde::{Deserialize, Serialize};

use super::grants;
use crate::auth::{Change, DeviceIdentity};
use crate::http::error::ApiError;
use crate::secret::{TokenHash, mint, random, seal, typed_code, unseal};
use crate::store::StoreError;

/// A device as people see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct DeviceView {
    /// Its id; `/mcp/{id}` reaches it.
    pub id: DeviceId,
    /// What it is called.
    pub name: String,
    /// The account it belongs to.
    pub account: String,
    /// Whether `/mcp` means it.
    pub default: bool,
    /// Whether its link is ready now.
    pub connected: bool,
    /// When another computer with its credential was last refused, in seconds since 1970, while that one keeps trying.
    pub in_use: Option<i64>,
    /// Seconds since 1970.
    pub created: i64,
    /// When it was revoked, in seconds since 1970.
    pub revoked: Option<i64>,
}

/// An enrolment code; shown this once.
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct DeviceCode {
    /// 20 base32 characters.
    pub code: String,
    /// Seconds.
    pub expires_in: u64,
}

impl std::fmt::Debug for DeviceCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeviceCode").field("expires_in", &self.expires_in).finish_non_exhaustive()
    }
}

/// The outcome of an enrolment: the device's credential.
#[derive(Clone, Serialize, Deserialize)]
pub struct Enrolled {
    /// The device.
    pub device: DeviceId,
    /// Its credential, for the header `X-Bridge-Token`.
    pub token: String,
}

impl std::fmt::Debug for Enrolled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Enrolled").field("device", &self.device).finish_non_exhaustive()
    }
}

/// Characters of an enrolment code.
pub(crate) const CODE_CHARACTERS: usize = 20;
const PURPOSE: &str = "holdfast enrolment";

/// Makes an enrolment code for an account.
pub(crate) fn create_code(db: &Connection, now: i64, account: &AccountId) -> Result<DeviceCode, ApiError> {
    db.execute("DELETE FROM enrolments WHERE expires <= ?1", [now])?;
    let sql = "SELECT count(*) FROM enrolments WHERE account = ?1 AND device IS NULL";
    let open: usize = db.query_row(sql, [account.as_str()], |row| row.get(0))?;
    if open >= limits::ENROL_CODES_MAX {
        return Err(ApiError::new(
            StatusCode::CONFLICT,
            "code_limit_reached",
            "too many enrolment codes are open; they expire by themselves",
        ));
    }
    // 15 bytes give 24 characters; the 20 kept are 100 bits.
    let code = typed_code::<15>().get(..CODE_CHARACTERS).unwrap_or_default().to_owned();
    let expires_in = limits::ENROL_CODE_TTL.as_secs();
    let expires = now.saturating_add(i64::try_from(expires_in).unwrap_or(0));
    let sql = "INSERT INTO enrolments (code, account, expires) VALUES (?1, ?2, ?3)";
    db.execute(sql, params![TokenHash::of(&code), account.as_str(), expires])?;
    Ok(DeviceCode { code, expires_in })
}

/// What a device asks with. `code` is normalised, `enrolment` is the random id that makes the exchange repeatable.
pub(crate) struct Exchange {
    pub(crate) code: String,
    pub(crate) enrolment: String,
    pub(crate) name: String,
}

/// Trades a code for a credential. The same code with the same enrolment id gives the same credential again until the code
/// expires; with another id it is used up. `None` for a code that does not exist, is used or expired: which, is not told.
pub(crate) fn exchange(
    db: &Connection,
    now: i64,
    ask: &Exchange,
    news: &mut Vec<Change>,
) -> Result<Option<Enrolled>, ApiError> {
    let code = TokenHash::of(&ask.code);
    let sql = "SELECT account, enrolment, device, sealed FROM enrolments WHERE code = ?1 AND expires > ?2";
    let found = db.query_row(sql, params![code, now], |row| {
        Ok((
            row.get::<_, String>(0)?,
            row.get::<_, Option<TokenHash>>(1)?,
            row.get::<_, Option<String>>(2)?,
            row.get::<_, Option<Vec<u8>>>(3)?,
        ))
    });
    let Some((account, used_by, device, sealed)) = found.optional()? else { return Ok(None) };
    let enrolment = TokenHash::of(&ask.enrolment);
    let secret = format!("{}\0{}", ask.code, ask.enrolment);
    if let (Some(used_by), Some(device), Some(sealed)) = (used_by, device, sealed) {
        if !used_by.same(&enrolment) {
            return Ok(None);
        }
        let known = DeviceId::parse(&device).ok().zip(unseal(&secret, PURPOSE, &sealed));
        return Ok(known.map(|(device, token)| Enrolled { device, token }));
    }
    let Ok(account) = AccountId::parse(&account) else { return Ok(None) };
    let enrolled = enrol(db, now, &account, &ask.name, news)?;
    let sealed = seal(&secret, PURPOSE, &enrolled.token);
    let sql = "UPDATE enrolments SET enrolment = ?2, device = ?3, sealed = ?4 WHERE code = ?1";
    db.execute(sql, params![code, enrolment, enrolled.device.as_str(), sealed])?;
    Ok(Some(enrolled))
}

/// Enrols a device. The first one of an account becomes its default.
pub(crate) fn enrol(
    db: &Connection,
    now: i64,
    account: &AccountId,
    name: &str,
    news: &mut Vec<Change>,
) -> Result<Enrolled, ApiError> {
    let sql = "SELECT count(*) FROM devices WHERE account = ?1 AND revoked IS NULL";
    let count: usize = db.query_row(sql, [account.as_str()], |row| row.get(0))?;
    if count >= limits::DEVICES_PER_ACCOUNT {
        return Err(ApiError::new(
            StatusCode::CONFLICT,
            "device_limit_reached",
            "the account has as many devices as it may have",
        ));
    }
    let (device, token) = (DeviceId::mint(random()), mint("hf_dev_"));
    let sql = "INSERT INTO devices (id, account, name, token, created) VALUES (?1, ?2, ?3, ?4, ?5)";
    db.execute(sql, params![device.as_str(), account.as_str(), name, TokenHash::of(&token), now])?;
    let sql = "UPDATE accounts SET default_device = ?2 WHERE id = ?1 AND default_device IS NULL";
    db.execute(sql, params![account.as_str(), device.as_str()])?;
    let identity = DeviceIdentity { id: device.clone(), account: account.clone() };
    news.push(Change::Device(TokenHash::of(&token), identity));
    Ok(Enrolled { device, token })
}

/// A device as stored.
pub(crate) struct Device {
    pub(crate) id: DeviceId,
    pub(crate) account: AccountId,
    pub(crate) account_name: String,
    pub(crate) name: String,
    pub(crate) default: bool,
    pub(crate) created: i64,
    pub(crate) revoked: Option<i64>,
}

/// The devices of one account, or all; revoked ones too.
pub(crate) fn list(db: &Connection, of: Option<&AccountId>) -> Result<Vec<Device>, ApiError> {
    let sql = "SELECT d.id, d.account, a.name, d.name, d.id = coalesce(a.default_device, ''), d.created, d.revoked
               FROM devices d JOIN accounts a ON a.id = d.account
               WHERE ?1 IS NULL OR d.account = ?1 ORDER BY d.created, d.rowid";
    let mut query = db.prepare(sql)?;
    let rows = query.query_map([of.map(AccountId::as_str)], |row| {
        let ids = (DeviceId::parse(&row.get::<_, String>(0)?), AccountId::parse(&row.get::<_, String>(1)?));
        let (Ok(id), Ok(account)) = ids else { return Ok(None) };
        let (account_name, name) = (row.get(2)?, row.get(3)?);
        Ok(Some(Device {
            id,
            account,
            account_name,
            name,
            default: row.get(4)?,
            created: row.get(5)?,
            revoked: row.get(6)?,
        }))
    })?;
    Ok(rows.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

/// The live device of an id or a name within an account (or within all).
pub(crate) fn find(db: &Connection, of: Option<&AccountId>, wanted: &str) -> Result<Device, ApiError> {
    let mut live: Vec<Device> = list(db, of)?.into_iter().filter(|device| device.revoked.is_none()).collect();
    if let Some(at) = live.iter().position(|device| device.id.as_str() == wanted) {
        return Ok(live.swap_remove(at));
    }
    let mut named: Vec<Device> = live.into_iter().filter(|device| device.name == wanted).collect();
    match (named.pop(), named.is_empty()) {
        (Some(device), true) => Ok(device),
        (Some(_), false) => Err(ApiError::new(
            StatusCode::CONFLICT,
            "device_ambiguous",
            "more than one device has that name: give its id",
        )),
        (None, _) => Err(ApiError::new(StatusCode::NOT_FOUND, "device_not_found", "there is no such device")),
    }
}

/// Gives a device another name.
pub(crate) fn rename(db: &Connection, device: &DeviceId, name: &str) -> Result<(), ApiError> {
    db.execute("UPDATE devices SET name = ?2 WHERE id = ?1", [device.as_str(), name])?;
    Ok(())
}

/// Makes a device the one that `/mcp` means.
pub(crate) fn make_default(db: &Connection, device: &Device) -> Result<(), ApiError> {
    db.execute("UPDATE accounts SET default_device = ?2 WHERE id = ?1", [device.account.as_str(), device.id.as_str()])?;
    Ok(())
}

/// Revokes a device and every grant that reaches it. Its credential stays known as revoked, so that the daemon is told.
pub(crate) fn revoke(db: &Connection, now: i64, device: &Device, news: &mut Vec<Change>) -> Result<(), ApiError> {
    let sql = "UPDATE devices SET revoked = ?2 WHERE id = ?1 RETURNING token";
    let token: TokenHash = db.query_row(sql, params![device.id.as_str(), now], |row| row.get(0))?;
    news.push(Change::DeviceRevoked(token));
    grants::revoke_where(db, "device = ?1", device.id.as_str(), news)?;
    let sql = "DELETE FROM devices WHERE account = ?1 AND revoked IS NOT NULL AND id NOT IN
               (SELECT id FROM devices WHERE account = ?1 AND revoked IS NOT NULL ORDER BY revoked DESC, id LIMIT ?2)
               RETURNING token";
    let mut query = db.prepare(sql)?;
    for token in query.query_map(params![device.account.as_str(), limits::DEVICES_REVOKED_KEPT], |row| row.get(0))? {
        news.push(Change::DeviceForgotten(token?));
    }
    // The oldest device left becomes the default; none leaves it empty for the next enrolment.
    let sql = "UPDATE accounts SET default_device =
               (SELECT id FROM devices WHERE account = ?1 AND revoked IS NULL ORDER BY created, rowid LIMIT 1)
               WHERE id = ?1 AND default_device = ?2";
    db.execute(sql, params![device.account.as_str(), device.id.as_str()])?;
    forget_links(db)
}

/// Forgets what is remembered of the links of devices that are not let in any more.
pub(crate) fn forget_links(db: &Connection) -> Result<(), ApiError> {
    for table in ["catalogues", "calls"] {
        let sql = format!("DELETE FROM {table} WHERE device NOT IN (SELECT id FROM devices WHERE revoked IS NULL)");
        db.execute(&sql, [])?;
    }
    Ok(())
}

/// The devices that are let in, and the accounts that they belong to.
pub(crate) fn let_in(db: &Connection) -> Result<HashMap<DeviceId, String>, StoreError> {
    let mut query = db.prepare("SELECT id, account FROM devices WHERE revoked IS NULL")?;
    let rows =
        query.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get(1)?)))?.collect::<Result<Vec<_>, _>>()?;
    Ok(rows.into_iter().filter_map(|(id, account)| Some((DeviceId::parse(&id).ok()?, account))).collect())
}

/// Forgets every device of an account that goes away, and names them.
pub(crate) fn forget_all(
    db: &Connection,
    account: &AccountId,
    news: &mut Vec<Change>,
) -> Result<Vec<DeviceId>, ApiError> {
    let mut query = db.prepare("SELECT id, token FROM devices WHERE account = ?1")?;
    let rows =
        query.query_map([account.as_str()], |row| Ok((row.get::<_, String>(0)?, row.get::<_, TokenHash>(1)?)))?;
    let mut gone = Vec::new();
    for row in rows {
        let (id, token) = row?;
        news.push(Change::DeviceForgotten(token));
        gone.extend(DeviceId::parse(&id));
    }
    Ok(gone)
}

/// An account without a device has nothing to reach.
pub(crate) fn none_enrolled() -> ApiError {
    ApiError::new(StatusCode::CONFLICT, "no_device", "the account has no device yet: enrol one")
}
