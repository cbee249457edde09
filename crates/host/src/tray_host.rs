//! Whether somebody on this desktop shows tray icons. On Linux that is a program on the session bus, which may come late or
//! never: a panel, or an extension of the shell. Elsewhere the system itself does.

#[cfg(target_os = "linux")]
pub use linux::{library, shown};

/// Waits until a tray host is there, or [`limits::TRAY_HOST_WAIT`](holdfast_core::limits::TRAY_HOST_WAIT) passed, or there
/// is no session bus to find one on. True if a host is there.
#[cfg(target_os = "linux")]
pub async fn comes() -> bool {
    let coming = async {
        match linux::wait().await {
            Ok(()) => true,
            Err(e) => {
                tracing::info!("no session bus: {e}");
                false
            }
        }
    };
    tokio::time::timeout(holdfast_core::limits::TRAY_HOST_WAIT, coming).await.unwrap_or(false)
}

/// See above; always there.
#[cfg(not(target_os = "linux"))]
pub async fn comes() -> bool {
    true
}

#[cfg(target_os = "linux")]
mod linux {
    use futures_util::StreamExt as _;
    use zbus::fdo::DBusProxy;

    /// Whoever shows icons owns this name.
    const WATCHER: &str = "org.kde.StatusNotifierWatcher";

    /// The libraries that put an icon on the bus, by name, best first. The shell loads one of them when it makes its icon.
    const LIBRARIES: [&std::ffi::CStr; 2] = [c"libayatana-appindicator3.so.1", c"libappindicator3.so.1"];

    async fn bus() -> zbus::Result<DBusProxy<'static>> {
        DBusProxy::new(&zbus::Connection::session().await?).await
    }

    async fn present(bus: &DBusProxy<'_>) -> zbus::Result<bool> {
        Ok(bus.name_has_owner(WATCHER.try_into()?).await?)
    }

    /// Returns when a tray host is there; fails without a session bus.
    pub(super) async fn wait() -> zbus::Result<()> {
        let bus = bus().await?;
        // Asked for before the look, so that no host comes in between.
        let mut changes = bus.receive_name_owner_changed_with_args(&[(0, WATCHER)]).await?;
        while !present(&bus).await? {
            if changes.next().await.is_none() {
                return Err(zbus::Error::InputOutput(std::sync::Arc::new(std::io::ErrorKind::BrokenPipe.into())));
            }
        }
        Ok(())
    }

    /// Whether tray icons are shown now; `None` without a session bus.
    pub async fn shown() -> Option<bool> {
        present(&bus().await.ok()?).await.ok()
    }

    /// Whether a library is there that puts icons on the bus; without one the shell must not make an icon.
    #[allow(unsafe_code, reason = "asking the loader is the only way to know what it would find")]
    pub fn library() -> bool {
        // SAFETY: the names are C strings that live forever. Loading runs the libraries' constructors, which are those the
        // shell runs anyway when it makes its icon; the handle is kept for that.
        LIBRARIES.iter().any(|name| unsafe { !libc::dlopen(name.as_ptr(), libc::RTLD_LAZY).is_null() })
    }
}
