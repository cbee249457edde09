//! The status window: made when it is asked for, gone when it is closed. The engines do not notice.

use holdfast_host::bridge::Bridge;
use tauri::webview::NewWindowResponse;
use tauri::{AppHandle, Manager as _, Runtime, Url, WebviewWindow, WebviewWindowBuilder, WindowEvent};

use crate::notify::WindowClosed;

/// Its label, in `tauri.conf.json` and in the capability too.
const LABEL: &str = "status";

/// Shows the window, and in it a panel if one is named.
pub fn open<R: Runtime>(app: &AppHandle<R>, panel: Option<&'static str>) {
    let handle = app.clone();
    // An event loop that has ended shows nothing.
    let _ = app.run_on_main_thread(move || {
        let window = handle.get_webview_window(LABEL);
        let shown = window.map_or_else(|| make(&handle, panel), |window| show(&window, panel));
        if let Err(e) = shown {
            tracing::error!("the window cannot be shown: {e}");
        }
    });
}

fn show<R: Runtime>(window: &WebviewWindow<R>, panel: Option<&str>) -> tauri::Result<()> {
    if let Some(panel) = panel {
        let mut url = window.url()?;
        url.set_fragment(Some(&format!("/{panel}")));
        window.navigate(url)?;
    }
    window.unminimize()?;
    window.show()?;
    window.set_focus()
}

fn make<R: Runtime>(app: &AppHandle<R>, panel: Option<&str>) -> tauri::Result<()> {
    let mut config = app.config().app.windows.iter().find(|w| w.label == LABEL).cloned().unwrap_or_default();
    if let Some(panel) = panel {
        config.url = tauri::WebviewUrl::App(format!("index.html#/{panel}").into());
    }
    let window = WebviewWindowBuilder::from_config(app, &config)?
        .on_navigation(is_ours)
        .on_new_window(|_, _| NewWindowResponse::Deny)
        .build()?;
    let handle = app.clone();
    window.on_window_event(move |event| match event {
        WindowEvent::CloseRequested { .. } => handle.state::<WindowClosed>().0.notify_one(),
        WindowEvent::Destroyed => handle.state::<Bridge>().page_gone(),
        _ => {}
    });
    #[cfg(target_os = "linux")]
    window.with_webview({
        let window = window.clone();
        move |view| gone_with_its_process(&view, window)
    })?;
    Ok(())
}

/// Whether an address is one of the window's own pages. Windows gives custom schemes no origin.
fn is_ours(url: &Url) -> bool {
    let own = if cfg!(windows) { ("http", "tauri.localhost") } else { ("tauri", "localhost") };
    (url.scheme(), url.host_str().unwrap_or_default()) == own
}

/// A window whose web process died shows nothing ever again: it goes, and the next wish to see it makes a new one.
#[cfg(target_os = "linux")]
fn gone_with_its_process<R: Runtime>(view: &tauri::webview::PlatformWebview, window: WebviewWindow<R>) {
    use gtk::prelude::ObjectExt as _;
    view.inner().connect_local("web-process-terminated", false, move |_| {
        tracing::warn!("the window's web process ended");
        if let Err(e) = window.destroy() {
            tracing::error!("the window cannot be closed: {e}");
        }
        None
    });
}
