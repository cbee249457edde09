//! `/api/…`: accounts, devices and connected clients for people who are not at the relay's own machine.
//!
//! These take a person's name and password (HTTP Basic), never a token: nothing that an agent holds can administer. Owners reach
//! everything, others what is theirs.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Path};
use axum::routing::{delete, get, patch, post};
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use holdfast_core::id::AccountId;
use holdfast_core::policy::Role;
use http::request::Parts;
use http::{StatusCode, header};
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Value, json};

use super::error::ApiError;
use super::json::Body;
use super::source::Source;
use crate::admin::{AccountPatch, Admin, NewAccount};
use crate::people::login::{self, Person};
use crate::people::{AccountView, ClientView, DeviceCode, DeviceView};
use crate::state::AppState;

/// The routes.
pub(crate) fn router() -> Router<Arc<AppState>> {
    Router::new()
        .route("/api/accounts", get(accounts).post(add_account))
        .route("/api/accounts/{account}", patch(change_account).delete(remove_account))
        .route("/api/devices", get(devices))
        .route("/api/devices/code", post(device_code))
        .route("/api/devices/{device}", patch(change_device).delete(revoke_device))
        .route("/api/clients", get(clients))
        .route("/api/clients/{client}", delete(revoke_client))
        .route("/api/drill", post(super::drill::drill))
}

/// A person who gave name and password.
struct Caller {
    person: Person,
    admin: Admin,
}

impl Caller {
    fn owner(&self) -> Result<(), ApiError> {
        if self.person.role == Role::Owner { Ok(()) } else { Err(denied()) }
    }

    /// `None` reaches everything.
    fn reach(&self) -> Option<&AccountId> {
        (self.person.role != Role::Owner).then_some(&self.person.account)
    }
}

fn denied() -> ApiError {
    ApiError::new(StatusCode::FORBIDDEN, "authorization_denied", "this takes the role owner")
}

impl FromRequestParts<Arc<AppState>> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &Arc<AppState>) -> Result<Self, ApiError> {
        let missing =
            || ApiError::new(StatusCode::UNAUTHORIZED, "authentication_failed", "name and password are needed");
        let source = parts.extensions.get::<Source>().copied().ok_or_else(missing)?;
        let (name, password) = basic(parts).ok_or_else(missing)?;
        let person = login::sign_in(state, source, &name, password).await?;
        Ok(Caller { person, admin: Admin { state: state.clone() } })
    }
}

fn basic(parts: &Parts) -> Option<(String, SecretString)> {
    let mut values = parts.headers.get_all(header::AUTHORIZATION).iter();
    let (scheme, coded) = values.next()?.to_str().ok()?.split_once(' ')?;
    if values.next().is_some() || !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let text = String::from_utf8(STANDARD.decode(coded.trim()).ok()?).ok()?;
    let (name, password) = text.split_once(':')?;
    Some((name.to_owned(), password.into()))
}

async fn accounts(caller: Caller) -> Result<Json<Vec<AccountView>>, ApiError> {
    let mut accounts = caller.admin.accounts().await?;
    accounts.retain(|account| caller.reach().is_none_or(|own| *own == account.id));
    Ok(Json(accounts))
}

async fn add_account(caller: Caller, Body(new): Body<NewAccount>) -> Result<(StatusCode, Json<AccountView>), ApiError> {
    caller.owner()?;
    Ok((StatusCode::CREATED, Json(caller.admin.create_account(new).await?)))
}

async fn change_account(
    caller: Caller,
    Path(account): Path<String>,
    Body(change): Body<AccountPatch>,
) -> Result<Json<AccountView>, ApiError> {
    // One's own password is everybody's to change; rights are the owner's.
    let own = account == caller.person.account.as_str() && change.role.is_none() && change.active.is_none();
    if !own {
        caller.owner()?;
    }
    Ok(Json(caller.admin.change_account(&account, change).await?))
}

async fn remove_account(caller: Caller, Path(account): Path<String>) -> Result<StatusCode, ApiError> {
    caller.owner()?;
    caller.admin.remove_account(&account).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn devices(caller: Caller) -> Result<Json<Vec<DeviceView>>, ApiError> {
    Ok(Json(caller.admin.devices(caller.reach()).await?))
}

/// A code to enrol a device of the caller's own account.
async fn device_code(caller: Caller) -> Result<(StatusCode, Json<DeviceCode>), ApiError> {
    let code = caller.admin.device_code(Some(caller.person.account.as_str())).await?;
    Ok((StatusCode::CREATED, Json(code)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
enum DeviceChange {
    /// Another name.
    Name(String),
    /// `true`: `/mcp` means this device from now on.
    Default(bool),
}

async fn change_device(
    caller: Caller,
    Path(device): Path<String>,
    Body(change): Body<DeviceChange>,
) -> Result<Json<DeviceView>, ApiError> {
    let changed = match change {
        DeviceChange::Name(name) => caller.admin.rename_device(caller.reach(), &device, &name).await?,
        DeviceChange::Default(true) => caller.admin.make_default_device(caller.reach(), &device).await?,
        DeviceChange::Default(false) => return Err(ApiError::invalid("make another device the default instead")),
    };
    Ok(Json(changed))
}

async fn revoke_device(caller: Caller, Path(device): Path<String>) -> Result<StatusCode, ApiError> {
    caller.admin.revoke_device(caller.reach(), &device).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn clients(caller: Caller) -> Result<Json<Vec<ClientView>>, ApiError> {
    Ok(Json(caller.admin.clients(caller.reach()).await?))
}

async fn revoke_client(caller: Caller, Path(client): Path<String>) -> Result<Json<Value>, ApiError> {
    let ended = caller.admin.revoke_client(caller.reach(), &client).await?;
    Ok(Json(json!({"grants_ended": ended})))
}
