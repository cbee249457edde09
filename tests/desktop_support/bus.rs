//! The other side of the session bus: who shows tray icons, and who shows notices.

use std::collections::HashMap;

use tokio::sync::mpsc;
use zbus::connection::Builder;
use zbus::zvariant::{OwnedObjectPath, OwnedValue, Value};
use zbus::{Connection, Proxy};

use super::{Desktop, PATIENCE, eventually};

struct Watcher(mpsc::UnboundedSender<(String, String)>);

#[zbus::interface(name = "org.kde.StatusNotifierWatcher")]
impl Watcher {
    fn register_status_notifier_item(&self, service: String, #[zbus(header)] header: zbus::message::Header<'_>) {
        let sender = header.sender().map(|s| s.to_string()).unwrap_or_default();
        let _ = self.0.send((sender, service));
    }

    fn register_status_notifier_host(&self, _service: String) {}

    #[zbus(property)]
    fn registered_status_notifier_items(&self) -> Vec<String> {
        Vec::new()
    }

    #[zbus(property)]
    fn is_status_notifier_host_registered(&self) -> bool {
        true
    }

    #[zbus(property)]
    fn protocol_version(&self) -> i32 {
        0
    }
}

/// A panel that shows tray icons.
pub struct TrayHost {
    connection: Connection,
    registered: mpsc::UnboundedReceiver<(String, String)>,
}

impl TrayHost {
    /// Appears on a desktop's bus.
    pub async fn start(desktop: &Desktop) -> TrayHost {
        let (told, registered) = mpsc::unbounded_channel();
        let connection = Builder::address(desktop.address())
            .and_then(|b| b.serve_at("/StatusNotifierWatcher", Watcher(told)))
            .and_then(|b| b.name("org.kde.StatusNotifierWatcher"))
            .expect("a description of a connection")
            .build()
            .await
            .expect("the bus");
        TrayHost { connection, registered }
    }

    /// The next icon that comes.
    pub async fn icon(&mut self) -> Icon {
        let coming = tokio::time::timeout(PATIENCE, self.registered.recv());
        let (owner, path) = coming.await.expect("an icon in time").expect("the watcher lives");
        Icon { connection: self.connection.clone(), owner, path }
    }
}

/// One tray icon and its menu.
pub struct Icon {
    connection: Connection,
    owner: String,
    path: String,
}

/// An entry of a menu.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    id: i32,
    pub text: String,
    pub enabled: bool,
    pub checked: bool,
    pub entries: Vec<Entry>,
}

type Node = (i32, HashMap<String, OwnedValue>, Vec<OwnedValue>);

impl Entry {
    fn read((id, properties, children): Node) -> Entry {
        let text = |key: &str| properties.get(key).and_then(|v| v.downcast_ref::<String>().ok());
        let number = |key: &str| properties.get(key).and_then(|v| v.downcast_ref::<i32>().ok());
        let read = |child: OwnedValue| Entry::read(Value::from(child).downcast().expect("a menu entry"));
        Entry {
            id,
            // One underscore marks a key, two are one.
            text: text("label").unwrap_or_default().replace("__", "\u{0}").replace('_', "").replace('\u{0}', "_"),
            enabled: properties.get("enabled").and_then(|v| v.downcast_ref::<bool>().ok()).unwrap_or(true),
            checked: number("toggle-state") == Some(1),
            entries: children.into_iter().map(read).collect(),
        }
    }

    fn find(&self, text: &str) -> Option<&Entry> {
        if self.text == text {
            return Some(self);
        }
        self.entries.iter().find_map(|entry| entry.find(text))
    }
}

impl Icon {
    // An icon tells that it is there before all of it can be asked for, so each of these may be nothing yet.

    async fn property(&self, name: &str) -> Option<OwnedValue> {
        let proxy = Proxy::new(&self.connection, &*self.owner, &*self.path, "org.kde.StatusNotifierItem").await;
        proxy.expect("an item").get_property(name).await.ok()
    }

    async fn menu(&self) -> Option<Proxy<'_>> {
        let path: OwnedObjectPath = self.property("Menu").await?.try_into().ok()?;
        Proxy::new(&self.connection, self.owner.clone(), path, "com.canonical.dbusmenu").await.ok()
    }

    async fn layout(&self) -> Option<Entry> {
        let layout = (0i32, -1i32, Vec::<&str>::new());
        let (_, root): (u32, Node) = self.menu().await?.call("GetLayout", &layout).await.ok()?;
        Some(Entry::read(root))
    }

    /// The whole menu; the entry at its top has no text.
    pub async fn entries(&self) -> Entry {
        eventually("the menu", async || self.layout().await).await
    }

    /// The texts of the top level.
    pub async fn texts(&self) -> Vec<String> {
        self.entries().await.entries.into_iter().map(|entry| entry.text).filter(|text| !text.is_empty()).collect()
    }

    /// Waits until an entry of this text exists and satisfies this.
    pub async fn entry_is(&self, text: &str, holds: impl Fn(&Entry) -> bool) -> Entry {
        let look = async || self.layout().await?.find(text).filter(|entry| holds(entry)).cloned();
        eventually(&format!("the menu entry {text:?}"), look).await
    }

    /// Waits for an entry of this text, however it is.
    pub async fn entry(&self, text: &str) -> Entry {
        self.entry_is(text, |_| true).await
    }

    /// Clicks an entry as soon as it is enabled.
    pub async fn click(&self, text: &str) {
        let entry = self.entry_is(text, |entry| entry.enabled).await;
        let click = (entry.id, "clicked", Value::from(0i32), 0u32);
        // What ends the application may end it before it has answered.
        eventually("a click", async || self.menu().await?.call_noreply("Event", &click).await.ok()).await;
    }

    /// The picture that is shown now, unless it is being replaced.
    pub async fn picture(&self) -> Option<Vec<u8>> {
        let path: String = self.property("IconName").await?.try_into().ok()?;
        std::fs::read(path).ok()
    }
}

struct Notifications(mpsc::UnboundedSender<(String, String)>);

#[zbus::interface(name = "org.freedesktop.Notifications")]
impl Notifications {
    #[expect(clippy::too_many_arguments, reason = "the interface is as it is")]
    fn notify(
        &self,
        _app: String,
        _replaces: u32,
        _icon: String,
        summary: String,
        body: String,
        _actions: Vec<String>,
        _hints: HashMap<String, OwnedValue>,
        _timeout: i32,
    ) -> u32 {
        let _ = self.0.send((summary, body));
        1
    }

    fn close_notification(&self, _id: u32) {}

    fn get_capabilities(&self) -> Vec<String> {
        vec!["body".into()]
    }

    fn get_server_information(&self) -> (String, String, String, String) {
        ("test".into(), "test".into(), "1".into(), "1.2".into())
    }
}

/// Somebody who shows notices.
pub struct Notices {
    _connection: Connection,
    shown: mpsc::UnboundedReceiver<(String, String)>,
}

impl Notices {
    /// Appears on a desktop's bus.
    pub async fn start(desktop: &Desktop) -> Notices {
        let (told, shown) = mpsc::unbounded_channel();
        let connection = Builder::address(desktop.address())
            .and_then(|b| b.serve_at("/org/freedesktop/Notifications", Notifications(told)))
            .and_then(|b| b.name("org.freedesktop.Notifications"))
            .expect("a description of a connection")
            .build()
            .await
            .expect("the bus");
        Notices { _connection: connection, shown }
    }

    /// The next notice: its title and its text.
    pub async fn next(&mut self) -> (String, String) {
        tokio::time::timeout(PATIENCE, self.shown.recv()).await.expect("a notice in time").expect("the server lives")
    }

    /// Whether no further one came.
    pub fn no_more(&mut self) -> bool {
        self.shown.try_recv().is_err()
    }
}
