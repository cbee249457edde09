//! A person at the real window, by way of `WebKitWebDriver`.

use holdfast_testkit::port::Port;
use reqwest::{Client, Method};
use serde_json::{Value, json};

use super::{APP, Desktop, PATIENCE, eventually};

/// The driver before a window is there.
pub struct Driver {
    client: Client,
    base: String,
    _port: Port,
}

/// A window that is driven. The application ends with it.
pub struct Window {
    driver: Driver,
}

impl Driver {
    /// Starts the driver on a free port. It waits for the application's first window as long as it takes.
    pub async fn start(desktop: &mut Desktop) -> Driver {
        let port = Port::reserve();
        let mut command =
            desktop.program("WebKitWebDriver", &[&format!("--port={}", port.number()), "--host=127.0.0.1"]);
        command.env("TAURI_WEBVIEW_AUTOMATION", "true");
        desktop.keep(command);
        // The driver speaks plain HTTP; the client wants a provider all the same. Only a second one fails.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder().no_proxy().timeout(PATIENCE).build().expect("a client");
        let driver = Driver { client, base: format!("http://127.0.0.1:{}", port.number()), _port: port };
        eventually("the driver", async || driver.client.get(format!("{}/status", driver.base)).send().await.ok()).await;
        driver
    }

    /// Starts the application and takes hold of its first window.
    pub async fn app(self, args: &[&str]) -> Window {
        let wanted =
            json!({"capabilities": {"alwaysMatch": {"webkitgtk:browserOptions": {"binary": APP, "args": args}}}});
        let session = self.ask(Method::POST, "/session", Some(wanted)).await.expect("a session");
        let id = session["sessionId"].as_str().expect("its id");
        Window {
            driver: Driver { base: format!("{}/session/{id}", self.base), client: self.client, _port: self._port },
        }
    }

    async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> Result<Value, String> {
        let mut request = self.client.request(method, format!("{}{path}", self.base));
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer: Value = match request.send().await {
            Ok(response) => response.json().await.map_err(|e| e.to_string())?,
            Err(e) => return Err(e.to_string()),
        };
        match answer["value"]["error"].as_str() {
            Some(error) => Err(format!("{error}: {}", answer["value"]["message"])),
            None => Ok(answer["value"].clone()),
        }
    }
}

impl Window {
    async fn find(&self, css: &str) -> Result<String, String> {
        let wanted = json!({"using": "css selector", "value": css});
        let found = self.driver.ask(Method::POST, "/element", Some(wanted)).await?;
        let id = found.as_object().and_then(|o| o.values().next()?.as_str());
        id.map(str::to_owned).ok_or_else(|| format!("no element {css}"))
    }

    /// The visible text of an element.
    pub async fn text(&self, css: &str) -> Result<String, String> {
        let element = self.find(css).await?;
        let text = self.driver.ask(Method::GET, &format!("/element/{element}/text"), None).await?;
        Ok(text.as_str().unwrap_or_default().to_owned())
    }

    /// Waits until the text of an element satisfies this.
    pub async fn text_is(&self, css: &str, holds: impl Fn(&str) -> bool) -> String {
        let look = async || self.text(css).await.ok().filter(|text| holds(text));
        eventually(&format!("the text of {css}"), look).await
    }

    /// Clicks an element as soon as that is possible.
    pub async fn click(&self, css: &str) {
        let click = async || {
            let element = self.find(css).await.ok()?;
            self.driver.ask(Method::POST, &format!("/element/{element}/click"), Some(json!({}))).await.ok()
        };
        eventually(&format!("a click on {css}"), click).await;
    }

    /// What a function body returns in the page.
    pub async fn script(&self, body: &str) -> Value {
        let script = json!({"script": body, "args": []});
        self.driver.ask(Method::POST, "/execute/sync", Some(script)).await.expect("a result")
    }

    /// What a function body calls its last argument with.
    pub async fn script_later(&self, body: &str) -> Value {
        let script = json!({"script": body, "args": []});
        self.driver.ask(Method::POST, "/execute/async", Some(script)).await.expect("a result")
    }

    /// Lets go of the window; the driver ends the application.
    pub async fn quit(self) {
        let _ = self.driver.ask(Method::DELETE, "", None).await;
    }
}
