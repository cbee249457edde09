//! Where this machine keeps its credentials: the system's keyring, or a 0600 file where there is none that answers.
//!
//! Entries are named by a random id that stands in the data folder, so two data folders never share a secret. What is
//! found in the file counts first: a machine that started without a keyring keeps working when it gets one.

mod keyring;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use data_encoding::BASE32_NOPAD;
use holdfast_core::limits;
use secrecy::{ExposeSecret as _, SecretString};

use crate::config::SecretStore;
use crate::files::{self, FileError};

/// Stores and finds credentials by name.
#[derive(Debug, Clone)]
pub struct Secrets {
    file: PathBuf,
    keyring: Option<Arc<dyn Keyring>>,
}

/// Why a credential could not be stored or found. Never holds a secret.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The file.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file is not what we wrote.
    #[error("{}: not a file of credentials", .0.display())]
    Format(PathBuf),
    /// The operating system gave no random bytes.
    #[error("no random bytes")]
    Random,
    /// The process is ending.
    #[error("interrupted")]
    Interrupted,
}

/// A keyring that did not do what was asked. Its words are not repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyringFailed;

/// What is asked of a keyring. May block, for a while.
pub(crate) trait Keyring: std::fmt::Debug + Send + Sync {
    fn get(&self, name: &str) -> Result<Option<SecretString>, KeyringFailed>;
    fn set(&self, name: &str, secret: &SecretString) -> Result<(), KeyringFailed>;
    fn delete(&self, name: &str) -> Result<(), KeyringFailed>;
}

impl Secrets {
    /// Opens the store of a data folder. `HOLDFAST_SECRETS=file` overrides `wanted`. May block for
    /// [`limits::KEYRING_WAIT`].
    pub fn open(data: &Path, wanted: SecretStore) -> Result<Secrets, SecretError> {
        let forced = std::env::var_os("HOLDFAST_SECRETS").is_some_and(|v| v == "file");
        let keyring = match wanted {
            SecretStore::Auto if !forced => keyring::System::find(&folder_id(data)?),
            _ => None,
        };
        Ok(Secrets::with(data, keyring))
    }

    fn with(data: &Path, keyring: Option<Arc<dyn Keyring>>) -> Secrets {
        Secrets { file: data.join("secrets.json"), keyring }
    }

    /// Whether new secrets go to the file.
    pub fn in_file(&self) -> bool {
        self.keyring.is_none()
    }

    /// Where secrets stand that are in a file, whether or not there are any.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Finds a secret. May block for [`limits::KEYRING_WAIT`], as what follows may.
    pub fn get(&self, name: &str) -> Result<Option<SecretString>, SecretError> {
        if let Some(found) = self.read_file()?.remove(name) {
            return Ok(Some(found.into()));
        }
        Ok(self.keyring.as_ref().and_then(|k| k.get(name).ok()).flatten())
    }

    /// Stores a secret: in the keyring, or in the file if that fails.
    pub fn set(&self, name: &str, secret: &SecretString) -> Result<(), SecretError> {
        let kept = self.keyring.as_ref().is_some_and(|k| k.set(name, secret).is_ok());
        let mut all = self.read_file()?;
        let before = all.remove(name);
        match kept {
            true if before.is_none() => return Ok(()),
            true => {}
            false => drop(all.insert(name.into(), secret.expose_secret().into())),
        }
        self.write_file(&all)
    }

    /// As [`Secrets::get`], from a task: the asking is done where it may block.
    pub async fn find(&self, name: &str) -> Result<Option<SecretString>, SecretError> {
        let (secrets, name) = (self.clone(), name.to_owned());
        tokio::task::spawn_blocking(move || secrets.get(&name)).await.map_err(|_| SecretError::Interrupted)?
    }

    /// As [`Secrets::set`], from a task.
    pub async fn store(&self, name: &str, secret: &SecretString) -> Result<(), SecretError> {
        let (secrets, name, secret) = (self.clone(), name.to_owned(), secret.clone());
        tokio::task::spawn_blocking(move || secrets.set(&name, &secret)).await.map_err(|_| SecretError::Interrupted)?
    }

    /// As [`Secrets::delete`], from a task.
    pub async fn forget(&self, name: &str) -> Result<(), SecretError> {
        let (secrets, name) = (self.clone(), name.to_owned());
        tokio::task::spawn_blocking(move || secrets.delete(&name)).await.map_err(|_| SecretError::Interrupted)?
    }

    /// Forgets a secret.
    pub fn delete(&self, name: &str) -> Result<(), SecretError> {
        if let Some(keyring) = &self.keyring {
            // Nothing to forget is as good as forgotten.
            let _ = keyring.delete(name);
        }
        let mut all = self.read_file()?;
        if all.remove(name).is_some() { self.write_file(&all) } else { Ok(()) }
    }

    fn read_file(&self) -> Result<BTreeMap<String, String>, SecretError> {
        match files::read(&self.file, limits::SECRETS_FILE_MAX) {
            Err(e) if e.is_absent() => Ok(BTreeMap::new()),
            Err(e) => Err(e.into()),
            Ok(text) => serde_json::from_str(&text).map_err(|_| SecretError::Format(self.file.clone())),
        }
    }

    fn write_file(&self, all: &BTreeMap<String, String>) -> Result<(), SecretError> {
        let text = serde_json::to_string(all).map_err(|_| SecretError::Format(self.file.clone()))?;
        Ok(files::replace(&self.file, text.as_bytes())?)
    }
}

/// The random id of a data folder, made when it is first asked for.
fn folder_id(data: &Path) -> Result<String, SecretError> {
    let path = data.join("folder-id");
    match files::read(&path, 64) {
        Ok(id) if !id.is_empty() && id.bytes().all(|b| b.is_ascii_alphanumeric()) => Ok(id),
        Ok(_) => Err(SecretError::Format(path)),
        Err(e) if e.is_absent() => {
            let mut random = [0; 10];
            getrandom::fill(&mut random).map_err(|_| SecretError::Random)?;
            let id = BASE32_NOPAD.encode(&random).to_lowercase();
            files::replace(&path, id.as_bytes())?;
            Ok(id)
        }
        Err(e) => Err(e.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;

    #[derive(Debug, Default)]
    struct Fake {
        entries: Mutex<BTreeMap<String, String>>,
        broken: bool,
    }

    impl Keyring for Fake {
        fn get(&self, name: &str) -> Result<Option<SecretString>, KeyringFailed> {
            if self.broken { Err(KeyringFailed) } else { Ok(self.entries.lock().get(name).cloned().map(Into::into)) }
        }
        fn set(&self, name: &str, secret: &SecretString) -> Result<(), KeyringFailed> {
            if self.broken {
                return Err(KeyringFailed);
            }
            self.entries.lock().insert(name.into(), secret.expose_secret().into());
            Ok(())
        }
        fn delete(&self, name: &str) -> Result<(), KeyringFailed> {
            self.entries.lock().remove(name);
            Ok(())
        }
    }

    fn text(secret: Option<SecretString>) -> Option<String> {
        secret.map(|s| s.expose_secret().to_owned())
    }

    #[test]
    fn without_a_keyring_secrets_stand_in_a_private_file() {
        let dir = tempfile::tempdir().unwrap();
        let secrets = Secrets::open(dir.path(), SecretStore::File).unwrap();
        assert!(secrets.in_file());
        assert!(secrets.get("device").unwrap().is_none());
        secrets.set("device", &"s3cret".into()).unwrap();
        assert_eq!(text(secrets.get("device").unwrap()).as_deref(), Some("s3cret"));
        #[cfg(unix)]
        {
            let meta = std::fs::metadata(dir.path().join("secrets.json")).unwrap();
            assert_eq!(std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o777, 0o600);
        }
        secrets.delete("device").unwrap();
        assert!(secrets.get("device").unwrap().is_none());
    }

    #[test]
    fn a_keyring_takes_new_secrets_and_an_old_one_leaves_the_file() {
        let dir = tempfile::tempdir().unwrap();
        Secrets::with(dir.path(), None).set("device", &"old".into()).unwrap();
        let fake = Arc::new(Fake::default());
        let secrets = Secrets::with(dir.path(), Some(fake.clone()));
        assert_eq!(text(secrets.get("device").unwrap()).as_deref(), Some("old"));
        secrets.set("device", &"new".into()).unwrap();
        assert_eq!(text(secrets.get("device").unwrap()).as_deref(), Some("new"));
        assert!(!std::fs::read_to_string(dir.path().join("secrets.json")).unwrap().contains("old"));
        assert_eq!(fake.entries.lock().len(), 1);
    }

    #[test]
    fn a_broken_keyring_falls_back_to_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let secrets = Secrets::with(dir.path(), Some(Arc::new(Fake { broken: true, ..Fake::default() })));
        secrets.set("device", &"s3cret".into()).unwrap();
        assert_eq!(text(secrets.get("device").unwrap()).as_deref(), Some("s3cret"));
        assert_eq!(text(Secrets::with(dir.path(), None).get("device").unwrap()).as_deref(), Some("s3cret"));
    }

    #[test]
    fn a_file_that_is_no_file_of_credentials_is_an_error_that_does_not_repeat_it() {
        let dir = tempfile::tempdir().unwrap();
        files::replace(&dir.path().join("secrets.json"), b"hunter2").unwrap();
        let error = Secrets::with(dir.path(), None).get("device").unwrap_err().to_string();
        assert!(error.ends_with("not a file of credentials") && !error.contains("hunter2"), "{error}");
    }

    #[test]
    fn the_id_of_a_folder_is_made_once() {
        let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let id = folder_id(a.path()).unwrap();
        assert_eq!(id.len(), 16);
        assert_eq!(folder_id(a.path()).unwrap(), id);
        assert_ne!(folder_id(b.path()).unwrap(), id);
    }
}
