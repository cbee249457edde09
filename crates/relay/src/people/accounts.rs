//! Accounts in the store.

use holdfast_core::id::{AccountId, DeviceId};
use holdfast_core::limits;
use holdfast_core::policy::Role;
use http::StatusCode;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde::{Deserialize, Serialize};

use super::grants;
use crate::auth::Change;
use crate::http::error::ApiError;
use crate::secret::random;

/// An account as people see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct AccountView {
    /// Its id.
    pub id: AccountId,
    /// Its name, unique.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// Whether it may be used.
    pub active: bool,
    /// Counts its changes.
    pub version: u64,
    /// Whether it has a password; without one only local approval signs in.
    pub has_password: bool,
    /// The device that `/mcp` means.
    pub default_device: Option<DeviceId>,
    /// Seconds since 1970.
    pub created: i64,
}

/// An account as stored.
#[derive(Clone)]
pub(crate) struct Account {
    pub(crate) id: AccountId,
    pub(crate) name: String,
    pub(crate) role: Role,
    pub(crate) password: Option<String>,
    pub(crate) version: u64,
    pub(crate) active: bool,
    pub(crate) default_device: Option<DeviceId>,
    pub(crate) created: i64,
}

impl From<Account> for AccountView {
    fn from(account: Account) -> Self {
        let Account { id, name, role, password, version, active, default_device, created } = account;
        AccountView { id, name, role, active, version, has_password: password.is_some(), default_device, created }
    }
}

const COLUMNS: &str = "id, name, role, password, version, active, default_device, created";

fn read(row: &Row<'_>) -> rusqlite::Result<Account> {
    let unreadable =
        |column| rusqlite::Error::InvalidColumnType(column, "unreadable".into(), rusqlite::types::Type::Text);
    Ok(Account {
        id: AccountId::parse(&row.get::<_, String>(0)?).map_err(|_| unreadable(0))?,
        name: row.get(1)?,
        role: Role::parse(&row.get::<_, String>(2)?).ok_or_else(|| unreadable(2))?,
        password: row.get(3)?,
        version: row.get::<_, i64>(4)?.unsigned_abs(),
        active: row.get(5)?,
        default_device: row.get::<_, Option<String>>(6)?.and_then(|text| DeviceId::parse(&text).ok()),
        created: row.get(7)?,
    })
}

pub(crate) fn by_name(db: &Connection, name: &str) -> Result<Option<Account>, ApiError> {
    let sql = format!("SELECT {COLUMNS} FROM accounts WHERE name = ?1");
    Ok(db.query_row(&sql, [name], read).optional()?)
}

pub(crate) fn by_id(db: &Connection, id: &AccountId) -> Result<Option<Account>, ApiError> {
    let sql = format!("SELECT {COLUMNS} FROM accounts WHERE id = ?1");
    Ok(db.query_row(&sql, [id.as_str()], read).optional()?)
}

pub(crate) fn list(db: &Connection) -> Result<Vec<Account>, ApiError> {
    let mut query = db.prepare(&format!("SELECT {COLUMNS} FROM accounts ORDER BY name"))?;
    let rows = query.query_map([], read)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The account of a name or id; without one, the only account.
pub(crate) fn chosen(db: &Connection, wanted: Option<&str>) -> Result<Account, ApiError> {
    let found = match wanted {
        Some(text) => match AccountId::parse(text) {
            Ok(id) => by_id(db, &id)?,
            Err(_) => by_name(db, text)?,
        },
        None => {
            let mut all = list(db)?;
            if all.len() > 1 {
                return Err(ApiError::new(
                    StatusCode::CONFLICT,
                    "account_needed",
                    "there is more than one account: name one",
                ));
            }
            all.pop()
        }
    };
    found.ok_or_else(|| ApiError::new(StatusCode::NOT_FOUND, "account_not_found", "there is no such account"))
}

/// Adds an account. The first one must be an owner, or nobody could administer.
pub(crate) fn create(
    db: &Connection,
    now: i64,
    name: &str,
    role: Role,
    password: Option<String>,
) -> Result<Account, ApiError> {
    check_name(name)?;
    let count: usize = db.query_row("SELECT count(*) FROM accounts", [], |row| row.get(0))?;
    if count >= limits::ACCOUNTS_MAX {
        return Err(conflict("account_limit_reached", "there are as many accounts as there may be"));
    }
    if count == 0 && role != Role::Owner {
        return Err(conflict("first_account_must_be_owner", "the first account must have the role owner"));
    }
    if by_name(db, name)?.is_some() {
        return Err(conflict("account_name_exists", "an account of that name exists"));
    }
    let id = AccountId::mint(random());
    let sql = "INSERT INTO accounts (id, name, role, password, created) VALUES (?1, ?2, ?3, ?4, ?5)";
    db.execute(sql, params![id.as_str(), name, role.as_str(), password, now])?;
    let name = name.to_owned();
    Ok(Account { id, name, role, password, version: 1, active: true, default_device: None, created: now })
}

/// What may change of an account. Each change ends all its access, so that nothing goes on under old rights.
#[derive(Debug, Default)]
pub(crate) struct AccountChange {
    pub(crate) role: Option<Role>,
    pub(crate) active: Option<bool>,
    /// A hash.
    pub(crate) password: Option<String>,
}

/// Changes an account and revokes everything it granted.
pub(crate) fn change(
    db: &Connection,
    id: &AccountId,
    change: AccountChange,
    news: &mut Vec<Change>,
) -> Result<Account, ApiError> {
    let old = by_id(db, id)?.ok_or_else(ApiError::not_found)?;
    let role = change.role.unwrap_or(old.role);
    let active = change.active.unwrap_or(old.active);
    if !(role == Role::Owner && active) {
        keep_an_owner(db, &old)?;
    }
    let sql = "UPDATE accounts SET role = ?2, active = ?3, password = coalesce(?4, password), version = version + 1 WHERE id = ?1";
    db.execute(sql, params![id.as_str(), role.as_str(), active, change.password])?;
    grants::revoke_where(db, "account = ?1", id.as_str(), news)?;
    by_id(db, id)?.ok_or_else(ApiError::not_found)
}

/// Removes an account with its devices and grants; tells the devices whose sockets must close.
pub(crate) fn remove(db: &Connection, id: &AccountId, news: &mut Vec<Change>) -> Result<Vec<DeviceId>, ApiError> {
    let old = by_id(db, id)?.ok_or_else(ApiError::not_found)?;
    keep_an_owner(db, &old)?;
    grants::revoke_where(db, "account = ?1", id.as_str(), news)?;
    let devices = super::devices::forget_all(db, id, news)?;
    db.execute("DELETE FROM accounts WHERE id = ?1", [id.as_str()])?;
    super::devices::forget_links(db)?;
    Ok(devices)
}

fn keep_an_owner(db: &Connection, losing: &Account) -> Result<(), ApiError> {
    let sql = "SELECT count(*) FROM accounts WHERE role = 'owner' AND active = 1 AND id != ?1";
    let others: usize = db.query_row(sql, [losing.id.as_str()], |row| row.get(0))?;
    if losing.role == Role::Owner && losing.active && others == 0 {
        return Err(conflict("last_owner_required", "one active owner must remain"));
    }
    Ok(())
}

fn conflict(code: &'static str, message: &str) -> ApiError {
    ApiError::new(StatusCode::CONFLICT, code, message)
}

/// 3 to 64 of `a-z 0-9 . _ -`, a letter or digit at both ends: what can be typed, said and sorted without surprise.
fn check_name(name: &str) -> Result<(), ApiError> {
    let ends = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let bytes = name.as_bytes();
    let inner = bytes.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(b));
    if (3..=limits::NAME_MAX).contains(&bytes.len()) && inner && ends(bytes.first()) && ends(bytes.last()) {
        return Ok(());
    }
    Err(ApiError::new(
        StatusCode::BAD_REQUEST,
        "invalid_account",
        "an account's name is 3 to 64 of a-z 0-9 . _ - with a letter or digit at both ends",
    ))
}
