//! Signing in with a password, with a brake on guessing.

use std::time::Duration;

use holdfast_core::id::AccountId;
use holdfast_core::limits;
use holdfast_core::policy::Role;
use http::StatusCode;
use parking_lot::Mutex;
use secrecy::SecretString;

use super::accounts;
use super::throttle::{Rule, Throttle};
use crate::http::error::ApiError;
use crate::http::source::Source;
use crate::secret::TokenHash;
use crate::state::AppState;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Source(Source),
    /// The hash of the name as typed: it may be long, and it may be a password typed in the wrong field.
    Account([u8; 32]),
}

/// Failures so far.
#[derive(Debug)]
pub(crate) struct Logins(Mutex<Throttle<Key>>);

impl Default for Logins {
    fn default() -> Self {
        let rule = Rule { tries: limits::LOGIN_FAILURES, window: limits::LOGIN_WINDOW, block: limits::LOGIN_BLOCK };
        Logins(Mutex::new(Throttle::new(rule)))
    }
}

/// A person whose password was right.
#[derive(Debug, Clone)]
pub(crate) struct Person {
    pub(crate) account: AccountId,
    pub(crate) role: Role,
}

/// Checks name and password. Unknown names, accounts without a password and inactive ones take as long and look the same.
pub(crate) async fn sign_in(
    state: &AppState,
    source: Source,
    name: &str,
    password: SecretString,
) -> Result<Person, ApiError> {
    let keys = [Key::Source(source), Key::Account(TokenHash::of(name).0)];
    let now = state.clock.now().boot;
    {
        let mut logins = state.people.logins.0.lock();
        let left = keys.iter().map(|key| logins.blocked(now, key)).max().unwrap_or_default();
        if left > Duration::ZERO {
            return Err(blocked(left));
        }
        for key in &keys {
            logins.count(now, key.clone());
        }
    }
    let wanted = name.to_owned();
    let found = state.store.read(move |db| accounts::by_name(db, &wanted)).await?;
    let found = found.filter(|account| account.active);
    let stored = found.as_ref().and_then(|account| account.password.clone());
    let fits = state.people.passwords.verify(password, stored).await?;
    let mut logins = state.people.logins.0.lock();
    match found {
        Some(account) if fits => {
            for key in &keys {
                logins.forgive(key);
            }
            Ok(Person { account: account.id, role: account.role })
        }
        _ => {
            let left = keys.iter().map(|key| logins.blocked(now, key)).max().unwrap_or_default();
            if left > Duration::ZERO { Err(blocked(left)) } else { Err(wrong()) }
        }
    }
}

fn blocked(left: Duration) -> ApiError {
    let message = "too many failed logins; approve with Holdfast itself or wait";
    ApiError::too_many("login_blocked", message, left.as_secs() + 1)
}

fn wrong() -> ApiError {
    ApiError::new(StatusCode::UNAUTHORIZED, "authentication_failed", "name or password is wrong")
}
