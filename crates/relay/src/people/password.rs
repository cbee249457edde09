//! Passwords: argon2id, a bounded number at once, never on a task that answers others.

use std::sync::Arc;

use argon2::password_hash::{PasswordHash, PasswordHasher as _, PasswordVerifier as _, SaltString};
use argon2::{Argon2, password_hash};
use holdfast_core::limits;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::Semaphore;

use crate::http::error::ApiError;
use crate::secret::random;
use http::StatusCode;

/// A hash with the parameters of a real one and a random digest, so of nothing anybody knows.
const DECOY: &str = "$argon2id$v=19$m=19456,t=2,p=1$sbjX7pj9x677cQm0Y3ve+g$9G0aYg7jfjFufpDGIAOS+D1SSLmsxuw6OvGgHS/VCT0";

/// The places to hash in.
#[derive(Debug)]
pub(crate) struct Passwords {
    hashing: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
}

impl Default for Passwords {
    fn default() -> Self {
        Passwords {
            hashing: Arc::new(Semaphore::new(limits::PASSWORD_HASHES)),
            waiting: Arc::new(Semaphore::new(limits::PASSWORD_WAITING)),
        }
    }
}

/// Checks the length; nothing else makes a good password.
pub(crate) fn check(password: &SecretString) -> Result<(), ApiError> {
    let text = password.expose_secret();
    if text.chars().count() < limits::PASSWORD_MIN || text.len() > limits::PASSWORD_MAX {
        return Err(ApiError::new(
            StatusCode::BAD_REQUEST,
            "weak_password",
            format!(
                "a password is {} characters or more, at most {} bytes",
                limits::PASSWORD_MIN,
                limits::PASSWORD_MAX
            ),
        ));
    }
    Ok(())
}

impl Passwords {
    /// The string to store.
    pub(crate) async fn hash(&self, password: SecretString) -> Result<String, ApiError> {
        check(&password)?;
        self.run(move || hash_now(password.expose_secret())).await?.map_err(|_| broken())
    }

    /// Whether the password fits. Without a stored string it costs the same and does not fit.
    pub(crate) async fn verify(&self, password: SecretString, stored: Option<String>) -> Result<bool, ApiError> {
        self.run(move || {
            let hash = stored.as_deref().unwrap_or(DECOY);
            let fits = PasswordHash::new(hash).is_ok_and(|hash| {
                Argon2::default().verify_password(password.expose_secret().as_bytes(), &hash).is_ok()
            });
            fits && stored.is_some()
        })
        .await
    }

    async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, ApiError> {
        let busy = || ApiError {
            retry_after: Some(5),
            ..ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "busy", "too many logins at once")
        };
        let _waiting = self.waiting.clone().try_acquire_owned().map_err(|_| busy())?;
        let hashing = self.hashing.clone().acquire_owned().await.map_err(|_| busy())?;
        let work = move || {
            // The place is held until the work is done, even if the request goes away.
            let _place = hashing;
            work()
        };
        tokio::task::spawn_blocking(work).await.map_err(|_| broken())
    }
}

fn broken() -> ApiError {
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", "the password could not be hashed")
}

fn hash_now(password: &str) -> password_hash::Result<String> {
    let salt = SaltString::encode_b64(&random::<16>())?;
    Ok(Argon2::default().hash_password(password.as_bytes(), &salt)?.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_right_password_fits_and_no_account_never_does() {
        let passwords = Passwords::default();
        let stored = passwords.hash("correct horse battery".into()).await.unwrap();
        assert!(stored.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"));
        assert_eq!(passwords.verify("correct horse battery".into(), Some(stored.clone())).await, Ok(true));
        assert_eq!(passwords.verify("correct horse batterz".into(), Some(stored)).await, Ok(false));
        assert_eq!(passwords.verify("correct horse battery".into(), None).await, Ok(false));
        assert_eq!(passwords.verify("x".into(), Some("not a hash".into())).await, Ok(false));
    }

    #[test]
    fn the_decoy_costs_what_a_real_hash_costs() {
        let (decoy, real) = (PasswordHash::new(DECOY).unwrap(), hash_now("x").unwrap());
        let real = PasswordHash::new(&real).unwrap();
        assert_eq!((decoy.algorithm, decoy.version, decoy.params), (real.algorithm, real.version, real.params));
        assert_eq!(decoy.hash.unwrap().len(), real.hash.unwrap().len());
    }

    #[test]
    fn short_and_endless_passwords_are_refused() {
        assert!(check(&"a".repeat(11).into()).is_err());
        assert!(check(&"a".repeat(12).into()).is_ok());
        assert!(check(&"a".repeat(257).into()).is_err());
    }
}
