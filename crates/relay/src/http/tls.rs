//! Certificates from files, read again when they change.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use holdfast_core::limits;
use parking_lot::RwLock;
use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file is missing, unreadable or not PEM.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The key does not fit the certificate, or is of an unknown kind.
    #[error("certificate and key: {0}")]
    Pair(#[from] rustls::Error),
}

/// The certificate in use. Connections made before a change keep theirs.
pub(crate) struct Certificates {
    cert: PathBuf,
    key: PathBuf,
    current: RwLock<(Arc<ServerConfig>, Stamp)>,
}

type Stamp = [Option<(SystemTime, u64)>; 2];

impl Certificates {
    /// Reads both files. Blocks.
    pub(crate) fn load(cert: &Path, key: &Path) -> Result<Certificates, TlsError> {
        // Taken before reading: a change in between is noticed by the next look.
        let stamp = stamp(cert, key);
        let config = read(cert, key)?;
        Ok(Certificates { cert: cert.into(), key: key.into(), current: RwLock::new((config, stamp)) })
    }

    /// What the next connection is accepted with.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.current.read().0.clone())
    }

    /// Looks whether a file changed and reads both again. A pair that does not fit is told and the old one stays: renewal tools
    /// replace the two files one after the other.
    pub(crate) fn refresh(&self) -> Result<bool, TlsError> {
        let stamp = stamp(&self.cert, &self.key);
        if self.current.read().1 == stamp {
            return Ok(false);
        }
        let config = read(&self.cert, &self.key)?;
        *self.current.write() = (config, stamp);
        Ok(true)
    }

    /// Looks every minute until stopped.
    pub(crate) async fn watch(self: Arc<Self>, stop: CancellationToken) {
        while stop.run_until_cancelled(tokio::time::sleep(limits::CERTIFICATE_POLL)).await.is_some() {
            let this = self.clone();
            match tokio::task::spawn_blocking(move || this.refresh()).await {
                Ok(Ok(true)) => tracing::info!("certificate read again"),
                Ok(Ok(false)) | Err(_) => {}
                Ok(Err(error)) => tracing::warn!(%error, "the changed certificate cannot be used; the old one stays"),
            }
        }
    }
}

fn stamp(cert: &Path, key: &Path) -> Stamp {
    [cert, key].map(|path| std::fs::metadata(path).ok().and_then(|m| Some((m.modified().ok()?, m.len()))))
}

fn read(cert: &Path, key: &Path) -> Result<Arc<ServerConfig>, TlsError> {
    let bad = |path: &Path, reason: String| TlsError::File { path: path.into(), reason };
    let chain: Vec<_> =
        CertificateDer::pem_file_iter(cert).and_then(Iterator::collect).map_err(|e| bad(cert, e.to_string()))?;
    if chain.is_empty() {
        return Err(bad(cert, "no certificate in it".into()));
    }
    let key = PrivateKeyDer::from_pem_file(key).map_err(|e| bad(key, e.to_string()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, name: &str) -> (PathBuf, PathBuf) {
        let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
        let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
        std::fs::write(&cert, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        (cert, key)
    }

    #[test]
    fn a_changed_pair_is_taken_and_a_broken_one_leaves_the_old_in_use() {
        let folder = tempfile::tempdir().unwrap();
        let (cert, key) = write(folder.path(), "one.example");
        let certificates = Certificates::load(&cert, &key).unwrap();
        assert!(!certificates.refresh().unwrap());
        let first = certificates.current.read().0.clone();
        write(folder.path(), "another-and-longer.example");
        assert!(certificates.refresh().unwrap());
        let second = certificates.current.read().0.clone();
        assert!(!Arc::ptr_eq(&first, &second));
        for broken in ["", "not a key"] {
            std::fs::write(&key, broken).unwrap();
            assert!(certificates.refresh().is_err());
            assert!(Arc::ptr_eq(&second, &certificates.current.read().0));
        }
        let stranger = rcgen::generate_simple_self_signed(vec!["x.example".to_owned()]).unwrap();
        std::fs::write(&key, stranger.signing_key.serialize_pem()).unwrap();
        assert!(matches!(certificates.refresh(), Err(TlsError::Pair(_))));
        write(folder.path(), "yet-another-and-longer.example");
        assert!(certificates.refresh().unwrap());
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = Certificates::load(Path::new("/nowhere/cert.pem"), Path::new("/nowhere/key.pem")).err().unwrap();
        assert!(error.to_string().starts_with("/nowhere/cert.pem: "), "{error}");
    }
}
