//! A browser and an OAuth client in one: registration, the authorize page with its form, and the token endpoint.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::RngCore as _;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use url::Url;

/// The redirect this client registers. Nothing listens there: the redirect is read from the answer.
pub const REDIRECT: &str = "http://127.0.0.1:7/callback";

/// A registered public client with what it discovered.
pub struct OAuthClient {
    http: reqwest::Client,
    resource: String,
    server: Value,
    client_id: String,
}

/// A browser: one cookie, forms, and no redirect followed.
pub struct Browser {
    http: reqwest::Client,
    at: Url,
    cookie: String,
}

/// One run of the authorization code flow, in the browser that began it.
pub struct Flow {
    /// The browser.
    pub browser: Browser,
    verifier: String,
    state: String,
}

/// A page as the browser shows it.
#[derive(Debug, Clone)]
pub struct Page {
    /// HTTP status.
    pub status: u16,
    /// Where it redirects to.
    pub location: Option<Url>,
    /// HTML.
    pub html: String,
}

impl OAuthClient {
    /// Follows the resource's metadata from its 401, then registers.
    ///
    /// # Panics
    /// If a step does not answer as RFC 9728, 8414 and 7591 say.
    pub async fn register(mcp: &str) -> OAuthClient {
        let http = crate::mcp::http();
        let refused = http.post(mcp).json(&json!({})).send().await.expect("an answer");
        assert_eq!(refused.status(), 401);
        let challenge = refused.headers()["www-authenticate"].to_str().expect("text").to_owned();
        let metadata = challenge.split("resource_metadata=\"").nth(1).and_then(|rest| rest.split('"').next());
        let metadata = metadata.unwrap_or_else(|| panic!("no resource_metadata in {challenge}"));
        let resource = json_of(&http, metadata).await;
        let issuer = Url::parse(resource["authorization_servers"][0].as_str().expect("an issuer")).expect("a URL");
        let server = issuer.join("/.well-known/oauth-authorization-server").expect("a URL");
        let server = json_of(&http, server.as_str()).await;
        let registration = json!({
            "client_name": "holdfast-testkit",
            "redirect_uris": [REDIRECT],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
        });
        let endpoint = server["registration_endpoint"].as_str().expect("an endpoint");
        let registered = http.post(endpoint).json(&registration).send().await.expect("an answer");
        assert!(registered.status().is_success(), "registration: {}", registered.status());
        let registered: Value = registered.json().await.expect("JSON");
        OAuthClient {
            http,
            resource: resource["resource"].as_str().expect("a resource").into(),
            server,
            client_id: registered["client_id"].as_str().expect("a client id").into(),
        }
    }

    /// The client's id.
    pub fn client_id(&self) -> &str {
        &self.client_id
    }

    /// The authorization server's metadata.
    pub fn server(&self) -> &Value {
        &self.server
    }

    /// The resource the tokens are for.
    pub fn resource(&self) -> &str {
        &self.resource
    }

    /// An endpoint of the authorization server.
    ///
    /// # Panics
    /// If the metadata does not name it.
    pub fn endpoint(&self, name: &str) -> &str {
        self.server[name].as_str().unwrap_or_else(|| panic!("no {name}: {}", self.server))
    }

    /// Opens the authorize page in a new browser.
    pub async fn authorize(&self) -> (Flow, Page) {
        self.authorize_with(|_| {}).await
    }

    /// Opens the authorize page with changed parameters.
    ///
    /// # Panics
    /// If no page comes.
    pub async fn authorize_with(&self, change: impl FnOnce(&mut Vec<(&'static str, String)>)) -> (Flow, Page) {
        let (verifier, state) = (random(), random());
        let mut query = vec![
            ("response_type", "code".to_owned()),
            ("client_id", self.client_id.clone()),
            ("redirect_uri", REDIRECT.into()),
            ("code_challenge", URL_SAFE_NO_PAD.encode(Sha256::digest(&verifier))),
            ("code_challenge_method", "S256".into()),
            ("scope", "mcp offline_access".into()),
            ("state", state.clone()),
            ("resource", self.resource.clone()),
        ];
        change(&mut query);
        let mut authorize = Url::parse(self.endpoint("authorization_endpoint")).expect("a URL");
        authorize.query_pairs_mut().extend_pairs(query);
        let (browser, page) = Browser::open(authorize.as_str()).await;
        (Flow { browser, verifier, state }, page)
    }

    /// Redeems a code; status and body.
    ///
    /// # Panics
    /// If no answer comes.
    pub async fn redeem(&self, code: &str, verifier: &str) -> (u16, Value) {
        self.token(&[
            ("grant_type", "authorization_code"),
            ("code", code),
            ("code_verifier", verifier),
            ("redirect_uri", REDIRECT),
        ])
        .await
    }

    /// Refreshes; status and body.
    ///
    /// # Panics
    /// If no answer comes.
    pub async fn refresh(&self, refresh_token: &str) -> (u16, Value) {
        self.token(&[("grant_type", "refresh_token"), ("refresh_token", refresh_token)]).await
    }

    /// A token request; client id and resource are added. Status and body.
    ///
    /// # Panics
    /// If no answer comes.
    pub async fn token(&self, form: &[(&str, &str)]) -> (u16, Value) {
        let mut form = form.to_vec();
        form.extend([("client_id", &*self.client_id), ("resource", &*self.resource)]);
        let sent = self.http.post(self.endpoint("token_endpoint")).form(&form).send().await.expect("an answer");
        (sent.status().as_u16(), sent.json().await.unwrap_or_default())
    }

    /// The whole flow with an account's password; the token endpoint's answer.
    ///
    /// # Panics
    /// If a step fails.
    pub async fn log_in(&self, account: &str, password: &str) -> Value {
        let (mut flow, page) = self.authorize().await;
        let page = flow.browser.log_in(&page, account, password).await;
        let code = flow.code(&page);
        let (status, tokens) = self.redeem(&code, flow.verifier()).await;
        assert_eq!(status, 200, "{tokens}");
        tokens
    }
}

impl Browser {
    /// Opens a page in a new browser.
    ///
    /// # Panics
    /// If no page comes.
    pub async fn open(at: &str) -> (Browser, Page) {
        let at = Url::parse(at).expect("a URL");
        let mut browser = Browser { http: crate::mcp::http(), at: at.clone(), cookie: String::new() };
        let page = browser.page(browser.http.get(at)).await;
        (browser, page)
    }

    /// Signs in on the authorize page with an account's password and allows what is asked; the redirect to the client.
    ///
    /// # Panics
    /// If the password is wrong or a page is not as it should be.
    pub async fn log_in(&mut self, page: &Page, account: &str, password: &str) -> Page {
        let signed_in = self.sign_in(page, account, password).await;
        assert_eq!(signed_in.status, 303, "{signed_in:?}");
        self.allow().await
    }

    /// Submits name and password alone; a right one is answered with 303.
    ///
    /// # Panics
    /// If the page has no form or no answer comes.
    pub async fn sign_in(&mut self, page: &Page, account: &str, password: &str) -> Page {
        let page = self.submit(page, &[("account", account), ("password", password), ("action", "password")]).await;
        if let Some(next) = &page.location {
            self.at = next.clone();
        }
        page
    }

    /// Names the account and asks for approval with Holdfast itself; the code the page shows, which a person would type
    /// into `holdfast approve`.
    ///
    /// # Panics
    /// If the page shows no code.
    pub async fn ask_locally(&mut self, page: &Page, account: &str) -> String {
        let page = self.submit(page, &[("account", account), ("action", "local")]).await;
        self.at = page.location.clone().unwrap_or_else(|| panic!("no redirect: {page:?}"));
        let waiting = self.reload().await;
        waiting.approval_code().unwrap_or_else(|| panic!("no code: {waiting:?}"))
    }

    /// Allows, on the page that asks somebody who is signed in; the redirect to the client.
    ///
    /// # Panics
    /// If the page does not ask.
    pub async fn allow(&mut self) -> Page {
        let asks = self.reload().await;
        self.submit(&asks, &[("action", "allow")]).await
    }

    /// Loads where the browser is once more.
    pub async fn reload(&mut self) -> Page {
        let at = self.at.clone();
        self.page(self.http.get(at)).await
    }

    /// Submits the page's form with these fields filled in.
    ///
    /// # Panics
    /// If the page has no form or no answer comes.
    pub async fn submit(&mut self, page: &Page, fill: &[(&str, &str)]) -> Page {
        let (action, mut fields) = page.form();
        fields.retain(|(name, _)| !fill.iter().any(|(filled, _)| filled == name));
        fields.extend(fill.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let action = self.at.join(&action).expect("a form action");
        self.page(self.http.post(action).form(&fields)).await
    }

    async fn page(&mut self, request: reqwest::RequestBuilder) -> Page {
        let mut request = request.header("accept", "text/html");
        // A browser says where a form was: the page's own origin.
        request = request.header("origin", self.at.origin().ascii_serialization());
        if !self.cookie.is_empty() {
            request = request.header("cookie", &self.cookie);
        }
        let response = request.send().await.expect("a page");
        for cookie in response.headers().get_all("set-cookie") {
            let cookie = cookie.to_str().expect("text");
            self.cookie = cookie.split(';').next().unwrap_or_default().to_owned();
        }
        let location = response.headers().get("location").and_then(|to| to.to_str().ok());
        let location = location.map(|to| self.at.join(to).expect("a location"));
        Page { status: response.status().as_u16(), location, html: response.text().await.expect("HTML") }
    }
}

impl Flow {
    /// The PKCE verifier.
    pub fn verifier(&self) -> &str {
        &self.verifier
    }

    /// The code in the redirect, after checking that state came back.
    ///
    /// # Panics
    /// If the page is no redirect to the client with code and state.
    pub fn code(&self, page: &Page) -> String {
        let to = page.location.as_ref().unwrap_or_else(|| panic!("no redirect: {page:?}"));
        assert!(to.as_str().starts_with(REDIRECT), "redirected to {to}");
        let field = |name: &str| to.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned());
        assert_eq!(field("state").as_deref(), Some(&*self.state));
        field("code").unwrap_or_else(|| panic!("no code: {to}"))
    }
}

impl Page {
    /// Action and fields of the page's first form.
    ///
    /// # Panics
    /// If it has none.
    pub fn form(&self) -> (String, Vec<(String, String)>) {
        let form = self.html.split("<form").nth(1).unwrap_or_else(|| panic!("no form: {}", self.html));
        let form = form.split("</form>").next().unwrap_or_default();
        let action = attribute(form, "action").unwrap_or_default();
        let inputs = form.split("<input").skip(1).map(|input| input.split('>').next().unwrap_or_default());
        let fields =
            inputs.filter_map(|input| Some((attribute(input, "name")?, attribute(input, "value").unwrap_or_default())));
        (action, fields.collect())
    }

    /// The code a person would type into `holdfast approve`.
    pub fn approval_code(&self) -> Option<String> {
        let after = self.html.split("approval code\">").nth(1)?;
        Some(after.split('<').next()?.to_owned())
    }
}

/// A double-quoted attribute of an element, with the five entities of HTML undone.
fn attribute(element: &str, name: &str) -> Option<String> {
    let value = element.split(&format!(" {name}=\"")).nth(1)?.split('"').next()?;
    let plain = value.replace("&quot;", "\"").replace("&#39;", "'").replace("&#x27;", "'");
    Some(plain.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
}

fn random() -> String {
    let mut bytes = [0; 32];
    rand::rng().fill_bytes(&mut bytes);
    URL_SAFE_NO_PAD.encode(bytes)
}

async fn json_of(http: &reqwest::Client, url: &str) -> Value {
    let response = http.get(url).send().await.expect("an answer");
    assert_eq!(response.status(), 200, "{url}");
    response.json().await.expect("JSON")
}
