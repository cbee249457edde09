//! `/oauth/authorize`: from a client's request to a code, through a page in the browser that began.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse as _, Response};
use holdfast_core::id::AccountId;
use holdfast_core::limits;
use http::{HeaderMap, HeaderValue, StatusCode, header};

use super::code::Allowed;
use super::consent::{Refusal, Request, Stage};
use super::error::OAuthError;
use super::page::{self, Notice, Sheet};
use super::params::Params;
use super::register::{self, Client};
use super::{Approved, redirect};
use crate::http::Base;
use crate::http::error::ApiError;
use crate::http::source::Source;
use crate::people::devices::{self, Device};
use crate::people::{accounts, login};
use crate::principal::{ResourcePath, Scopes};
use crate::secret::{TokenHash, mint, read_typed_code};
use crate::state::AppState;

/// Characters of an approval code.
const APPROVAL_CHARACTERS: usize = 8;

/// `GET`: begins a request, or shows where one stands.
pub(super) async fn show(
    State(state): State<Arc<AppState>>,
    Extension(Base(base)): Extension<Base>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let Some(params) = Params::read(query.unwrap_or_default().as_bytes()) else {
        return page::failure(StatusCode::BAD_REQUEST, "A parameter stands more than once.");
    };
    match params.get("request") {
        Some(id) => stand(&state, id, &headers, StatusCode::OK, Notice::None).await,
        None => begin(&state, &base, params).await,
    }
}

async fn begin(state: &AppState, base: &Arc<str>, params: Params) -> Response {
    let client = match known_client(state, &params).await {
        Ok(client) => client,
        Err(response) => return response,
    };
    let asked = params.get("redirect_uri").map(str::to_owned).or_else(|| match client.redirect_uris.as_slice() {
        [only] => Some(only.clone()),
        _ => None,
    });
    let known =
        asked.filter(|asked| client.redirect_uris.iter().any(|registered| redirect::matches(registered, asked)));
    let Some(redirect_uri) = known else {
        return page::failure(
            StatusCode::BAD_REQUEST,
            "The client asked to be answered at an address it did not register.",
        );
    };
    let request = match read(state, base, &params, client, redirect_uri.clone()) {
        Ok(request) => request,
        // From here on the client is told: the address is its own.
        Err(code) => return back(&redirect_uri, &[("error", code)], params.get("state"), base),
    };
    let cookie = mint("");
    let opened = state.oauth.consents.lock().open(state.clock.now().boot, request.clone(), TokenHash::of(&cookie));
    let Ok(id) = opened else {
        return page::failure(
            StatusCode::SERVICE_UNAVAILABLE,
            "Too many requests are open. Try again in a few minutes.",
        );
    };
    let sheet = Sheet { id: &id, request: &request, notice: Notice::None };
    let mut response = page::sign_in(StatusCode::OK, &sheet, &only_account(state).await);
    let secure = if state.site.is_https() { "; Secure" } else { "" };
    let life = limits::CONSENT_TTL.as_secs();
    let cookie = format!(
        "{}={cookie}; Path=/oauth/authorize; HttpOnly; SameSite=Strict; Max-Age={life}{secure}",
        cookie_name(&id)
    );
    if let Ok(value) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, value);
    }
    response
}

async fn known_client(state: &AppState, params: &Params) -> Result<Client, Response> {
    let Some(id) = params.get("client_id").map(str::to_owned) else {
        return Err(page::failure(StatusCode::BAD_REQUEST, "The request does not name a client."));
    };
    let now = state.clock.unix();
    match state.store.read(move |db| register::find(db, now, &id)).await {
        Ok(Some(client)) => Ok(client),
        Ok(None) => {
            let hint = "This client is not registered here, or too long ago. Let it connect anew.";
            Err(page::failure(StatusCode::BAD_REQUEST, hint))
        }
        Err(error) => Err(page::failure(error.status, "The relay cannot read its store now.")),
    }
}

/// Checks what the client asks; the error is the code it is told.
fn read(
    state: &AppState,
    base: &Arc<str>,
    params: &Params,
    client: Client,
    redirect_uri: String,
) -> Result<Request, &'static str> {
    match params.get("response_type") {
        Some("code") => {}
        Some(_) => return Err("unsupported_response_type"),
        None => return Err("invalid_request"),
    }
    // Without a method RFC 7636 means `plain`, which protects nothing.
    if params.get("code_challenge_method") != Some("S256") {
        return Err("invalid_request");
    }
    let base64url = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    let challenge = params.get("code_challenge").filter(|text| text.len() == 43 && text.bytes().all(base64url));
    let challenge = challenge.ok_or("invalid_request")?.to_owned();
    let asked_state = params.get("state");
    if asked_state.is_some_and(|text| text.len() > limits::URI_MAX) {
        return Err("invalid_request");
    }
    let scopes = match params.get("scope").map(Scopes::parse) {
        Some(Some(scopes)) if scopes.mcp => scopes,
        Some(_) => return Err("invalid_scope"),
        None => Scopes { mcp: true, ..Scopes::default() },
    };
    let path = match params.get("resource").map(|url| state.site.resource(url)) {
        Some(path) => path.ok_or("invalid_target")?,
        None => ResourcePath::default(),
    };
    let refreshes = client.refreshes || scopes.offline_access;
    Ok(Request {
        client: client.id,
        client_name: client.name,
        redirect_uri,
        state: asked_state.map(str::to_owned),
        challenge,
        scopes,
        refreshes,
        resource: format!("{base}{}", path.to_path()),
        path,
        issuer: base.to_string(),
    })
}

/// The only account's name on a relay that is only for this computer; empty elsewhere.
async fn only_account(state: &AppState) -> String {
    if !state.site.is_local() {
        return String::new();
    }
    let only = state.store.read(|db| accounts::chosen(db, None)).await;
    only.map(|account| account.name).unwrap_or_default()
}

/// `POST`: what the person did on the page.
pub(super) async fn act(
    State(state): State<Arc<AppState>>,
    Extension(source): Extension<Source>,
    headers: HeaderMap,
    params: Result<Params, OAuthError>,
) -> Response {
    let own = |origin: &HeaderValue| origin.to_str().is_ok_and(|text| state.site.is_own_origin(text));
    if headers.get(header::ORIGIN).is_some_and(|origin| !own(origin)) {
        return page::failure(StatusCode::FORBIDDEN, "The form was sent from another page.");
    }
    let Ok(mut params) = params else {
        return page::failure(StatusCode::BAD_REQUEST, "The form is not as it was shown.");
    };
    let (Some(id), Some(action)) = (params.take("request"), params.take("action")) else {
        return page::failure(StatusCode::BAD_REQUEST, "The form is not as it was shown.");
    };
    let Some(browser) = browser(&headers, &id) else { return gone() };
    let now = state.clock.now().boot;
    let open = state.oauth.consents.lock().get(now, &id, &browser);
    match open {
        None => return gone(),
        Some((_, Stage::Denied)) => return away(&state, &id, &browser),
        Some(_) => {}
    }
    match action.as_str() {
        "password" => {
            let name = params.take("account").unwrap_or_default();
            let password = params.take("password").unwrap_or_default();
            match login::sign_in(&state, source, &name, password.into()).await {
                Ok(person) => moved(&id, state.oauth.consents.lock().sign_in(now, &id, &browser, person.account)),
                Err(error) => stand(&state, &id, &headers, error.status, Notice::Login(error)).await,
            }
        }
        "local" => {
            let name = params.take("account").unwrap_or_default();
            let wanted = name.clone();
            let found = match state.store.read(move |db| accounts::by_name(db, &wanted)).await {
                Ok(found) => found.filter(|account| account.active).map(|account| account.id),
                Err(error) => return page::failure(error.status, "The relay cannot read its store now."),
            };
            let waits = state.oauth.consents.lock().wait(now, &id, &browser, &name, found);
            match waits {
                Err(Refusal::TooMany) => {
                    stand(&state, &id, &headers, StatusCode::TOO_MANY_REQUESTS, Notice::TooMany).await
                }
                waits => moved(&id, waits),
            }
        }
        "allow" => allow(&state, &id, &browser, params.get("device")).await,
        "deny" => away(&state, &id, &browser),
        _ => page::failure(StatusCode::BAD_REQUEST, "The form is not as it was shown."),
    }
}

/// After a step the browser is sent to a page it may reload.
fn moved(id: &str, step: Result<(), Refusal>) -> Response {
    match step {
        Ok(()) => {
            (StatusCode::SEE_OTHER, [(header::LOCATION, format!("/oauth/authorize?request={id}"))]).into_response()
        }
        Err(_) => gone(),
    }
}

/// Ends a request that was refused, and sends the client away.
fn away(state: &AppState, id: &str, browser: &TokenHash) -> Response {
    let ended = state.oauth.consents.lock().finish(state.clock.now().boot, id, browser);
    let Some((request, _)) = ended else { return gone() };
    back(&request.redirect_uri, &[("error", "access_denied")], request.state.as_deref(), &request.issuer)
}

fn gone() -> Response {
    let text = "This request has lapsed, was cancelled, or began in another browser. Start again from the client.";
    page::failure(StatusCode::GONE, text)
}

/// Shows where a request stands, to the browser that began it.
async fn stand(state: &AppState, id: &str, headers: &HeaderMap, status: StatusCode, notice: Notice) -> Response {
    let Some(browser) = browser(headers, id) else { return gone() };
    let open = state.oauth.consents.lock().get(state.clock.now().boot, id, &browser);
    let Some((request, stage)) = open else { return gone() };
    let sheet = Sheet { id, request: &request, notice };
    match stage {
        Stage::Asked => page::sign_in(status, &sheet, &only_account(state).await),
        Stage::Denied => away(state, id, &browser),
        Stage::Waiting(waiting) => page::waiting(status, &sheet, &waiting.name, &waiting.code),
        Stage::SignedIn(account) => match reach(state, &account, &request.path).await {
            Ok((role, devices)) => page::consent(status, &sheet, role, &devices),
            Err(error) => page::failure(error.status, &error.message),
        },
    }
}

/// What the account may do, and the devices it can let the client reach: the one asked for, or all with the default first.
async fn reach(
    state: &AppState,
    account: &AccountId,
    path: &ResourcePath,
) -> Result<(holdfast_core::policy::Role, Vec<Device>), ApiError> {
    let (account, path) = (account.clone(), path.clone());
    let read = state.store.read(move |db| {
        let role =
            accounts::by_id(db, &account)?.filter(|account| account.active).ok_or_else(ApiError::not_found)?.role;
        let mut devices = devices::list(db, Some(&account))?;
        devices.retain(|device| device.revoked.is_none() && path.0.as_ref().is_none_or(|one| *one == device.id));
        devices.sort_by_key(|device| !device.default);
        if devices.is_empty() { Err(devices::none_enrolled()) } else { Ok((role, devices)) }
    });
    read.await
}

async fn allow(state: &AppState, id: &str, browser: &TokenHash, chosen: Option<&str>) -> Response {
    let now = state.clock.now().boot;
    let open = state.oauth.consents.lock().get(now, id, browser);
    let Some((request, Stage::SignedIn(account))) = open else { return gone() };
    let devices = match reach(state, &account, &request.path).await {
        Ok((_, devices)) => devices,
        Err(error) => return page::failure(error.status, &error.message),
    };
    let device = match chosen {
        Some(chosen) => devices.into_iter().find(|device| device.id.as_str() == chosen),
        None => devices.into_iter().next(),
    };
    let Some(device) = device else {
        return page::failure(StatusCode::BAD_REQUEST, "That device is not among those shown.");
    };
    let ended = state.oauth.consents.lock().finish(now, id, browser);
    let Some((request, Some(account))) = ended else { return gone() };
    let (uri, asked_state, issuer) = (request.redirect_uri.clone(), request.state.clone(), request.issuer.clone());
    let code = state.oauth.codes.lock().issue(now, Allowed { request, account, device: device.id });
    back(&uri, &[("code", &code)], asked_state.as_deref(), &issuer)
}

/// Sends the browser back to the client, with `state` and `iss` (RFC 9207).
fn back(uri: &str, answer: &[(&str, &str)], state: Option<&str>, issuer: &str) -> Response {
    let mut parameters = answer.to_vec();
    parameters.extend(state.map(|state| ("state", state)));
    parameters.push(("iss", issuer));
    let location = redirect::with(uri, &parameters);
    let headers = [
        (header::LOCATION, location),
        (header::CACHE_CONTROL, "no-store".into()),
        (header::REFERRER_POLICY, "no-referrer".into()),
    ];
    (StatusCode::SEE_OTHER, headers).into_response()
}

fn cookie_name(id: &str) -> String {
    format!("holdfast_consent_{id}")
}

/// The secret of the browser that began this request.
fn browser(headers: &HeaderMap, id: &str) -> Option<TokenHash> {
    let name = cookie_name(id);
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| TokenHash::of(value))
}

/// A code was typed into Holdfast: the request that shows it is approved.
pub(crate) async fn approve(state: &AppState, code: &str) -> Result<Approved, ApiError> {
    let code = read_typed_code(code, APPROVAL_CHARACTERS)
        .ok_or_else(|| ApiError::invalid("the code is 8 letters and digits, as the page in the browser shows it"))?;
    let approved = state.oauth.consents.lock().approve(state.clock.now().boot, &code);
    let wrong = |cancelled| {
        let (code, message) = match cancelled {
            0 => ("approval_code_invalid", "no page shows that code; three wrong ones cancel what waits"),
            _ => (
                "approvals_cancelled",
                "no page shows that code; it was the third wrong one, and what waited is cancelled",
            ),
        };
        ApiError::new(StatusCode::NOT_FOUND, code, message)
    };
    let (request, account) = approved.map_err(wrong)?;
    let account = state.store.read(move |db| accounts::by_id(db, &account)).await?.ok_or_else(ApiError::not_found)?;
    let redirect_host = redirect::host(&request.redirect_uri);
    Ok(Approved { client: request.client_name, redirect_host, account: account.name })
}
