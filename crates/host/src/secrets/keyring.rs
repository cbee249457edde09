//! The system's keyring, asked with patience that ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

use holdfast_core::limits;
use keyring::{Entry, Error};
use secrecy::{ExposeSecret as _, SecretString};

use super::{Keyring, KeyringFailed};

/// Service under which entries are stored.
const SERVICE: &str = "holdfast";

/// The keyring of this session.
#[derive(Debug)]
pub(super) struct System {
    folder_id: String,
    /// Set once an answer did not come: a keyring that hangs is asked no more.
    silent: AtomicBool,
}

impl System {
    /// The keyring, if this session has one and it answers.
    pub(super) fn find(folder_id: &str) -> Option<Arc<dyn Keyring>> {
        if !session_can_have_one() {
            return None;
        }
        let system = System { folder_id: folder_id.into(), silent: AtomicBool::new(false) };
        system.get("probe").ok()?;
        Some(Arc::new(system))
    }

    /// Asks on a thread of its own: a keyring may wait for a person, and on a headless machine nobody comes.
    fn ask<T: Send + 'static>(
        &self,
        name: &str,
        question: impl FnOnce(Entry) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, KeyringFailed> {
        if self.silent.load(Ordering::Relaxed) {
            return Err(KeyringFailed);
        }
        let user = format!("{}/{name}", self.folder_id);
        let (answer, answered) = mpsc::sync_channel(1);
        thread::Builder::new()
            .name("keyring".into())
            .spawn(move || {
                // The asker may have given up; then nobody wants the answer.
                let _ = answer.send(Entry::new(SERVICE, &user).and_then(question));
            })
            .map_err(|_| KeyringFailed)?;
        match answered.recv_timeout(limits::KEYRING_WAIT) {
            Ok(answer) => answer.map_err(|_| KeyringFailed),
            Err(_) => {
                self.silent.store(true, Ordering::Relaxed);
                Err(KeyringFailed)
            }
        }
    }
}

impl Keyring for System {
    fn get(&self, name: &str) -> Result<Option<SecretString>, KeyringFailed> {
        self.ask(name, |entry| match entry.get_password() {
            Ok(text) => Ok(Some(text.into())),
            Err(Error::NoEntry) => Ok(None),
            Err(e) => Err(e),
        })
    }

    fn set(&self, name: &str, secret: &SecretString) -> Result<(), KeyringFailed> {
        let secret = secret.clone();
        self.ask(name, move |entry| entry.set_password(secret.expose_secret()))
    }

    fn delete(&self, name: &str) -> Result<(), KeyringFailed> {
        self.ask(name, |entry| match entry.delete_credential() {
            Err(Error::NoEntry) => Ok(()),
            other => other,
        })
    }
}

/// On Linux and its like the keyring lives on the session bus; asking without one can hang.
#[cfg(all(unix, not(target_os = "macos")))]
fn session_can_have_one() -> bool {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty());
    set("DBUS_SESSION_BUS_ADDRESS").is_some()
        || set("XDG_RUNTIME_DIR").is_some_and(|dir| std::path::Path::new(&dir).join("bus").exists())
}

#[cfg(not(all(unix, not(target_os = "macos"))))]
fn session_can_have_one() -> bool {
    true
}
