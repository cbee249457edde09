//! Dynamic client registration (RFC 7591): open to everybody, so bounded in every direction.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Json};
use holdfast_core::limits;
use http::{StatusCode, header};
use rusqlite::{Connection, params};
use serde::Deserialize;
use serde_json::json;

use super::error::OAuthError;
use super::redirect;
use crate::http::error::ApiError;
use crate::http::json::Body;
use crate::http::source::Source;
use crate::people::is_unfit;
use crate::secret::{TokenHash, mint_name};
use crate::state::AppState;

#[derive(Deserialize)]
pub(super) struct Metadata {
    redirect_uris: Vec<String>,
    #[serde(default)]
    client_name: Option<String>,
    #[serde(default)]
    grant_types: Option<Vec<String>>,
    #[serde(default)]
    response_types: Option<Vec<String>>,
}

/// `POST /oauth/register`.
pub(super) async fn register(
    State(state): State<Arc<AppState>>,
    Extension(source): Extension<Source>,
    body: Result<Body<Metadata>, ApiError>,
) -> Result<Response, OAuthError> {
    let Body(metadata) = body.map_err(|error| match error.status {
        StatusCode::BAD_REQUEST => bad("the metadata is not as documented"),
        _ => error.into(),
    })?;
    let Metadata { redirect_uris, client_name, grant_types, response_types } = metadata;
    if redirect_uris.is_empty() || redirect_uris.len() > limits::REDIRECT_URIS_MAX {
        return Err(bad("one to five redirect addresses are needed"));
    }
    if !redirect_uris.iter().all(|uri| redirect::may_register(uri)) {
        return Err(OAuthError::new(
            "invalid_redirect_uri",
            "a redirect address must be https, http to this machine, or an app's own scheme",
        ));
    }
    if response_types.is_some_and(|types| !types.iter().any(|kind| kind == "code")) {
        return Err(bad("the only response type is code"));
    }
    let grant_types = grant_types.unwrap_or_else(|| vec!["authorization_code".into()]);
    if !grant_types.iter().any(|kind| kind == "authorization_code") {
        return Err(bad("the grant type authorization_code is needed"));
    }
    let refreshes = grant_types.iter().any(|kind| kind == "refresh_token");
    let client =
        Client { id: mint_name("client_"), name: shown_name(client_name.as_deref()), redirect_uris, refreshes };
    let now = state.clock.unix();
    let (made, origin) = (client.clone(), TokenHash::of(&source.0.to_string()));
    state.store.write(move |db| insert(db, now, &made, origin)).await?;
    let mut grants = vec!["authorization_code"];
    grants.extend(refreshes.then_some("refresh_token"));
    let body = Json(json!({
        "client_id": client.id,
        "client_id_issued_at": now,
        "client_name": client.name,
        "redirect_uris": client.redirect_uris,
        "grant_types": grants,
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    }));
    Ok((StatusCode::CREATED, [(header::CACHE_CONTROL, "no-store")], body).into_response())
}

fn bad(description: &str) -> OAuthError {
    OAuthError::new("invalid_client_metadata", description)
}

/// A client's claim to a name, made harmless to show.
fn shown_name(claim: Option<&str>) -> String {
    let kept: String = claim
        .unwrap_or_default()
        .chars()
        .map(|c| if is_unfit(c) { ' ' } else { c })
        .take(limits::CLIENT_NAME_MAX)
        .collect();
    let kept = kept.split_whitespace().collect::<Vec<_>>().join(" ");
    if kept.is_empty() { "MCP client".into() } else { kept }
}

/// A registered client.
#[derive(Debug, Clone)]
pub(super) struct Client {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) redirect_uris: Vec<String>,
    /// Whether it said that it uses refresh tokens.
    pub(super) refreshes: bool,
}

fn insert(db: &Connection, now: i64, client: &Client, source: TokenHash) -> Result<(), ApiError> {
    expire(db, now)?;
    let total: usize = db.query_row("SELECT count(*) FROM clients", [], |row| row.get(0))?;
    if total >= limits::CLIENTS_MAX {
        return Err(ApiError {
            retry_after: Some(limits::CLIENT_UNUSED_TTL.as_secs()),
            ..ApiError::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "temporarily_unavailable",
                "there are as many clients as there may be",
            )
        });
    }
    let sql = "SELECT count(*) FROM clients WHERE source = ?1 AND last_used IS NULL";
    let unused: usize = db.query_row(sql, [source], |row| row.get(0))?;
    if unused >= limits::CLIENTS_UNUSED_PER_SOURCE {
        let message = "too many clients of this address wait to be authorised";
        return Err(ApiError::too_many("too_many_requests", message, limits::CLIENT_UNUSED_TTL.as_secs()));
    }
    let uris = serde_json::to_string(&client.redirect_uris).unwrap_or_default();
    let sql =
        "INSERT INTO clients (id, name, redirect_uris, refreshes, source, created) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    db.execute(sql, params![client.id, client.name, uris, client.refreshes, source, now])?;
    Ok(())
}

/// Forgets clients that nobody authorised in time and those long unused, unless a grant of theirs stands.
pub(super) fn expire(db: &Connection, now: i64) -> Result<(), ApiError> {
    let before = |ttl: std::time::Duration| now.saturating_sub(i64::try_from(ttl.as_secs()).unwrap_or(0));
    let sql = "DELETE FROM clients WHERE ((last_used IS NULL AND created <= ?1) OR last_used <= ?2)
               AND NOT EXISTS (SELECT 1 FROM grants WHERE grants.client = clients.id)";
    db.execute(sql, params![before(limits::CLIENT_UNUSED_TTL), before(limits::CLIENT_IDLE_TTL)])?;
    Ok(())
}

/// The client of an id.
pub(super) fn find(db: &Connection, now: i64, id: &str) -> Result<Option<Client>, ApiError> {
    use rusqlite::OptionalExtension as _;
    let ttl = i64::try_from(limits::CLIENT_UNUSED_TTL.as_secs()).unwrap_or(0);
    let sql = "SELECT id, name, redirect_uris, refreshes FROM clients WHERE id = ?1 AND (last_used IS NOT NULL OR created > ?2)";
    let found = db.query_row(sql, params![id, now.saturating_sub(ttl)], |row| {
        let redirect_uris = serde_json::from_str(&row.get::<_, String>(2)?).unwrap_or_default();
        Ok(Client { id: row.get(0)?, name: row.get(1)?, redirect_uris, refreshes: row.get(3)? })
    });
    Ok(found.optional()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_shown_without_what_could_deceive() {
        assert_eq!(shown_name(Some("  Claude\u{202e}edoC \n x ")), "Claude edoC x");
        assert_eq!(shown_name(Some("\u{200b}\u{feff}")), "MCP client");
        assert_eq!(shown_name(None), "MCP client");
        assert_eq!(shown_name(Some(&"a".repeat(500))).chars().count(), 128);
    }
}
