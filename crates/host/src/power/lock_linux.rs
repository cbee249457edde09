//! A lock on idle sleep, from logind. It hinders nobody who asks for sleep: that would need a lock on `sleep`.

use std::fmt;

use zbus::connection::Builder;
use zbus::zvariant::OwnedFd;

#[zbus::proxy(
    interface = "org.freedesktop.login1.Manager",
    default_service = "org.freedesktop.login1",
    default_path = "/org/freedesktop/login1"
)]
trait Manager {
    fn inhibit(&self, what: &str, who: &str, why: &str, mode: &str) -> zbus::Result<OwnedFd>;
}

/// Where locks come from: logind on the system bus, or on a bus of this address.
#[derive(Debug, Clone, Default)]
pub struct Locks(Option<String>);

/// While it lives, the machine does not fall asleep by itself.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "logind lets go when it is closed")] OwnedFd);

/// Why there is none.
pub struct Refused(zbus::Error);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "logind: {}", self.0)
    }
}

impl Locks {
    /// A logind elsewhere.
    #[cfg(test)]
    pub fn on(address: &str) -> Locks {
        Locks(Some(address.into()))
    }

    /// Takes one.
    pub async fn hold(&self) -> Result<Lock, Refused> {
        self.ask().await.map(Lock).map_err(Refused)
    }

    async fn ask(&self) -> zbus::Result<OwnedFd> {
        // The lock outlives the connection, which is not worth keeping.
        let bus = match &self.0 {
            Some(address) => Builder::address(address.as_str())?.build().await?,
            None => zbus::Connection::system().await?,
        };
        ManagerProxy::new(&bus).await?.inhibit("idle", "Holdfast", "calls run", "block").await
    }
}
