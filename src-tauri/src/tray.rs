//! The tray: a menu that is built once, of which then only texts, states and the icon change.

use std::sync::Mutex;

use holdfast_core::desktop::{MenuId, TrayIcon as State, TrayItem, TrayView, tray_view};
use holdfast_core::limits;
use holdfast_host::resident::Resident;
use holdfast_host::status_hub::unix_ms;
use tauri::image::Image;
use tauri::include_image;
use tauri::menu::{CheckMenuItem, IsMenuItem as _, Menu, MenuItem, MenuItemKind, PredefinedMenuItem, Submenu};
use tauri::tray::{TrayIcon, TrayIconBuilder};
use tauri::{AppHandle, Manager as _, Wry};
use tauri_plugin_clipboard_manager::ClipboardExt as _;

use crate::{notify, window};

/// The icon's own name: on Linux two programs whose icons go by one name overwrite each other's picture.
const ID: &str = "holdfast";

/// Does the same with a line of any kind.
macro_rules! each {
    ($line:expr, $item:ident => $act:expr) => {
        match $line {
            MenuItemKind::MenuItem($item) => $act,
            MenuItemKind::Check($item) => $act,
            MenuItemKind::Submenu($item) => $act,
            _ => Ok(()),
        }
    };
}

struct Tray {
    icon: TrayIcon,
    lines: Vec<MenuItemKind<Wry>>,
    /// What is shown, so that only what differs is touched.
    shown: Mutex<(TrayView, bool)>,
}

/// Puts the icon in the tray. False where no library can.
pub fn start(app: &AppHandle) -> anyhow::Result<bool> {
    #[cfg(target_os = "linux")]
    if !holdfast_host::tray_host::library() {
        tracing::warn!("there is no tray icon: libayatana-appindicator3 is not installed");
        return Ok(false);
    }
    let mut status = app.state::<Resident>().watch();
    app.manage(Tray::build(app, tray_view(unix_ms(), &status.borrow_and_update()))?);
    let app = app.clone();
    tokio::spawn(async move {
        while status.changed().await.is_ok() {
            let view = tray_view(unix_ms(), &status.borrow_and_update());
            let shown = app.clone();
            // An event loop that has ended shows nothing.
            let _ = app.run_on_main_thread(move || shown.state::<Tray>().show(view));
            tokio::time::sleep(limits::TRAY_EVERY).await;
        }
    });
    Ok(true)
}

fn chosen(app: &AppHandle, id: MenuId) {
    let resident = app.state::<Resident>().inner().clone();
    let status = resident.status();
    if id.is_check() {
        // The system has moved the mark already; it follows what is, not what is wished.
        app.state::<Tray>().show(tray_view(unix_ms(), &status));
    }
    match (id, id.command(&status)) {
        (MenuId::Open, _) => window::open(app, None),
        (MenuId::Drill, _) => window::open(app, Some("drill")),
        (MenuId::Quit, _) => app.exit(0),
        (MenuId::CopyMcp, _) => {
            let address = status.app.mcp.clone().unwrap_or_default();
            if let Err(e) = app.clipboard().write_text(address) {
                notify::show(app, "Holdfast", &e.to_string());
            }
        }
        (_, Some(command)) => {
            let app = app.clone();
            tokio::spawn(async move {
                if let Err(e) = resident.dispatch(command).await {
                    notify::show(&app, "Holdfast", &e.message);
                }
            });
        }
        _ => {}
    }
}

impl Tray {
    fn build(app: &AppHandle, view: TrayView) -> anyhow::Result<Tray> {
        let line = |id: MenuId| -> tauri::Result<MenuItemKind<Wry>> {
            let (TrayItem { text, enabled, checked, .. }, none) = (view.item(id), None::<&str>);
            let (name, text) = (id.as_str(), plain(text));
            Ok(match id {
                MenuId::Engines => Submenu::with_id(app, name, text, *enabled)?.kind(),
                _ if id.is_check() => CheckMenuItem::with_id(app, name, text, *enabled, *checked, none)?.kind(),
                _ => MenuItem::with_id(app, name, text, *enabled, none)?.kind(),
            })
        };
        let lines = MenuId::ALL.into_iter().map(line).collect::<tauri::Result<Vec<_>>>()?;
        let menu = Menu::new(app)?;
        for (id, line) in MenuId::ALL.into_iter().zip(&lines) {
            if id.begins_group() {
                menu.append(&PredefinedMenuItem::separator(app)?)?;
            }
            match lines[MenuId::Engines as usize].as_submenu() {
                Some(engines) if id.is_below_engines() => engines.append(line)?,
                _ => menu.append(line)?,
            }
        }
        let dark = is_dark();
        let icon = TrayIconBuilder::with_id(ID)
            .icon(picture(view.icon, dark))
            .icon_as_template(true)
            .tooltip(&view.tooltip)
            .menu(&menu)
            .on_menu_event(|app, event| {
                if let Some(id) = MenuId::parse(event.id().as_ref()) {
                    chosen(app, id);
                }
            })
            .build(app)?;
        Ok(Tray { icon, lines, shown: Mutex::new((view, dark)) })
    }

    /// On the main thread.
    fn show(&self, view: TrayView) {
        let Ok(mut shown) = self.shown.lock() else { return };
        let next = (view, is_dark());
        if let Err(e) = self.change(&shown, &next) {
            tracing::warn!("the tray cannot be changed: {e}");
        }
        *shown = next;
    }

    fn change(&self, (old, was_dark): &(TrayView, bool), (new, dark): &(TrayView, bool)) -> tauri::Result<()> {
        if (old.icon, was_dark) != (new.icon, dark) {
            self.icon.set_icon_with_as_template(Some(picture(new.icon, *dark)), true)?;
        }
        if old.tooltip != new.tooltip {
            self.icon.set_tooltip(Some(&new.tooltip))?;
        }
        for ((old, new), line) in old.items.iter().zip(&new.items).zip(&self.lines) {
            if old.text != new.text {
                each!(line, item => item.set_text(plain(&new.text)))?;
            }
            if old.enabled != new.enabled {
                each!(line, item => item.set_enabled(new.enabled))?;
            }
            match line.as_check_menuitem() {
                Some(line) if line.is_checked()? != new.checked => line.set_checked(new.checked)?,
                _ => {}
            }
        }
        Ok(())
    }
}

/// In a menu's text one `&` marks a key.
fn plain(text: &str) -> String {
    text.replace('&', "&&")
}

/// Whether the panel is taken to be dark. On Linux most are, whatever the theme of windows is; KDE's goes with the theme. The
/// taskbar of Windows is dark unless a person made it light; macOS colours the picture itself.
fn is_dark() -> bool {
    #[cfg(target_os = "linux")]
    if std::env::var("XDG_CURRENT_DESKTOP").is_ok_and(|desktop| desktop.contains("KDE")) {
        use gtk::prelude::GtkSettingsExt as _;
        let theme = gtk::Settings::default().and_then(|settings| settings.gtk_theme_name());
        return theme.is_some_and(|name| name.to_lowercase().contains("dark"));
    }
    true
}

macro_rules! pictures {
    ($($state:ident $light:literal $dark:literal $template:literal;)+) => {
        fn picture(state: State, dark: bool) -> Image<'static> {
            match state {
                $(State::$state if cfg!(target_os = "macos") => include_image!($template),
                State::$state if dark => include_image!($dark),
                State::$state => include_image!($light),)+
            }
        }
    };
}

pictures! {
    Working "icons/tray/working-light.png" "icons/tray/working-dark.png" "icons/tray/working-template.png";
    Busy "icons/tray/busy-light.png" "icons/tray/busy-dark.png" "icons/tray/busy-template.png";
    Waiting "icons/tray/waiting-light.png" "icons/tray/waiting-dark.png" "icons/tray/waiting-template.png";
    NeedsYou "icons/tray/needs-you-light.png" "icons/tray/needs-you-dark.png" "icons/tray/needs-you-template.png";
    Off "icons/tray/off-light.png" "icons/tray/off-dark.png" "icons/tray/off-template.png";
}
