//! `POST /oauth/revoke` (RFC 7009): either token of a pair, or a personal access token, ends its grant.

use std::sync::Arc;

use axum::extract::State;
use http::StatusCode;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::error::OAuthError;
use super::params::Params;
use crate::auth::Change;
use crate::http::error::ApiError;
use crate::people::grants::revoke_where;
use crate::secret::TokenHash;
use crate::state::AppState;

/// The endpoint. The answer is 200 whether there was such a token or not.
pub(super) async fn revoke(
    State(state): State<Arc<AppState>>,
    params: Result<Params, OAuthError>,
) -> Result<StatusCode, OAuthError> {
    let mut params = params?;
    let token = params.take("token").ok_or_else(|| OAuthError::invalid_request("token is missing"))?;
    let (hash, client) = (TokenHash::of(&token), params.take("client_id"));
    state.auth.write(move |db, news| end(db, &hash, client.as_deref(), news)).await?;
    Ok(StatusCode::OK)
}

fn end(db: &Connection, token: &TokenHash, client: Option<&str>, news: &mut Vec<Change>) -> Result<(), ApiError> {
    let sql = "SELECT g.id FROM pairs p JOIN grants g ON g.id = p.grant_id
               WHERE (p.access = ?1 OR p.refresh = ?1) AND (?2 IS NULL OR g.client = ?2)";
    let grant = db.query_row(sql, params![token, client], |row| row.get::<_, String>(0)).optional()?;
    if let Some(grant) = grant {
        revoke_where(db, "id = ?1", &grant, news)?;
    }
    Ok(())
}
