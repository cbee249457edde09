//! `POST /oauth/token`: a code or a refresh token for a pair.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use holdfast_core::limits;
use http::header;
use rusqlite::{Connection, params};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::code::{Allowed, Presented};
use super::error::OAuthError;
use super::pair::{self, Issued, Redemption, Refused};
use super::params::Params;
use crate::auth::Change;
use crate::http::error::ApiError;
use crate::people::grants::revoke_where;
use crate::principal::{GrantId, Scopes};
use crate::secret::{TokenHash, mint_name};
use crate::state::AppState;

/// The endpoint.
pub(super) async fn token(
    State(state): State<Arc<AppState>>,
    params: Result<Params, OAuthError>,
) -> Result<Response, OAuthError> {
    let params = params?;
    let issued = match params.get("grant_type") {
        Some("authorization_code") => by_code(&state, params).await?,
        Some("refresh_token") => by_refresh(&state, params).await?,
        Some(_) => return Err(OAuthError::new("unsupported_grant_type", "authorization_code or refresh_token")),
        None => return Err(OAuthError::invalid_request("grant_type is missing")),
    };
    let Issued { tokens, scopes, expires_in } = issued;
    let mut body = json!({
        "access_token": tokens.access,
        "token_type": "Bearer",
        "expires_in": expires_in,
        "scope": scopes.to_text(),
    });
    if let (Some(refresh), Some(fields)) = (tokens.refresh, body.as_object_mut()) {
        fields.insert("refresh_token".into(), refresh.into());
    }
    Ok(([(header::CACHE_CONTROL, "no-store"), (header::PRAGMA, "no-cache")], Json(body)).into_response())
}

fn needed(params: &mut Params, name: &'static str) -> Result<String, OAuthError> {
    params.take(name).ok_or_else(|| OAuthError::invalid_request("a parameter is missing"))
}

async fn by_code(state: &Arc<AppState>, mut params: Params) -> Result<Issued, OAuthError> {
    let code = TokenHash::of(&needed(&mut params, "code")?);
    let client = needed(&mut params, "client_id")?;
    let verifier = needed(&mut params, "code_verifier")?;
    // OAuth 2.1 does without it, because PKCE binds the code; where it is sent, it must be the same.
    let redirect_uri = params.take("redirect_uri");
    let presented = state.oauth.codes.lock().present(state.clock.now().boot, &code);
    let allowed = match presented {
        Presented::Fresh(allowed) => *allowed,
        Presented::Replayed(grant) => {
            revoke(state, grant).await?;
            return Err(OAuthError::invalid_grant());
        }
        Presented::Unknown => return Err(OAuthError::invalid_grant()),
    };
    // None of these uses the code up: whoever does not hold the verifier must not be able to spoil it.
    if allowed.request.client != client
        || redirect_uri.is_some_and(|uri| allowed.request.redirect_uri != uri)
        || !proves(&verifier, &allowed.request.challenge)
    {
        return Err(OAuthError::invalid_grant());
    }
    if let Some(resource) = params.get("resource")
        && state.site.resource(resource).as_ref() != Some(&allowed.request.path)
    {
        return Err(OAuthError::new("invalid_target", "the code was issued for another resource"));
    }
    let grant: GrantId = mint_name("grant_").into();
    if !state.oauth.codes.lock().trade(&code, &grant) {
        revoke(state, grant).await?;
        return Err(OAuthError::invalid_grant());
    }
    let (now, new) = (state.clock.unix(), grant.clone());
    let stored = state.auth.write(move |db, news| store_grant(db, now, &new, &allowed, news)).await;
    if stored.is_err() {
        state.oauth.codes.lock().undo(&code);
    } else if state.oauth.codes.lock().was_replayed(&code) {
        revoke(state, grant).await?;
        return Err(OAuthError::invalid_grant());
    }
    Ok(stored?)
}

/// RFC 7636 §4.6, S256.
fn proves(verifier: &str, challenge: &str) -> bool {
    let unreserved = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
    if !(43..=128).contains(&verifier.len()) || !verifier.bytes().all(unreserved) {
        return false;
    }
    let made = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
    made.as_bytes().ct_eq(challenge.as_bytes()).into()
}

async fn revoke(state: &AppState, grant: GrantId) -> Result<(), ApiError> {
    let work = move |db: &Connection, news: &mut Vec<Change>| revoke_where(db, "id = ?1", &grant, news);
    state.auth.write(work).await.map(drop)
}

fn store_grant(
    db: &Connection,
    now: i64,
    grant: &GrantId,
    allowed: &Allowed,
    news: &mut Vec<Change>,
) -> Result<Issued, ApiError> {
    let Allowed { request, account, device } = allowed;
    make_room(db, account.as_str(), &request.client, news)?;
    let sql = "INSERT INTO grants (id, kind, account, device, client, name, scopes, audience, created)
               VALUES (?1, 'client', ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    let scopes = request.scopes.to_text();
    let (account, device) = (account.as_str(), device.as_str());
    db.execute(
        sql,
        params![&**grant, account, device, request.client, request.client_name, scopes, request.resource, now],
    )?;
    db.execute("UPDATE clients SET last_used = ?2 WHERE id = ?1", params![request.client, now])?;
    let issued = pair::first(db, now, grant, request.scopes, request.refreshes)?;
    news.push(Change::Grant(grant.clone()));
    Ok(issued)
}

/// The oldest grants end where a client, or an account, would get more than it may have.
fn make_room(db: &Connection, account: &str, client: &str, news: &mut Vec<Change>) -> Result<(), ApiError> {
    for (client, keep) in [(Some(client), limits::GRANTS_PER_CLIENT), (None, limits::GRANTS_PER_ACCOUNT)] {
        let sql = "SELECT id FROM grants WHERE kind = 'client' AND account = ?1 AND (?2 IS NULL OR client = ?2)
                   ORDER BY created DESC, id LIMIT -1 OFFSET ?3";
        let mut query = db.prepare(sql)?;
        let old = query.query_map(params![account, client, keep - 1], |row| row.get::<_, String>(0))?;
        for grant in old.collect::<Result<Vec<_>, _>>()? {
            revoke_where(db, "id = ?1", &grant, news)?;
        }
    }
    Ok(())
}

async fn by_refresh(state: &AppState, mut params: Params) -> Result<Issued, OAuthError> {
    let token = needed(&mut params, "refresh_token")?;
    let client = needed(&mut params, "client_id")?;
    let scopes = match params.get("scope").map(Scopes::parse) {
        Some(None) => return Err(OAuthError::new("invalid_scope", "an unknown scope")),
        Some(scopes) => scopes,
        None => None,
    };
    let resource = match params.get("resource").map(|url| state.site.resource(url)) {
        Some(None) => return Err(OAuthError::new("invalid_target", "not a resource of this relay")),
        Some(resource) => resource,
        None => None,
    };
    let ask = Redemption { token, client, resource, scopes };
    let now = state.clock.unix();
    let redeemed = state.auth.write(move |db, news| pair::redeem(db, now, &ask, news)).await?;
    redeemed.map_err(|refused| match refused {
        Refused::Grant => OAuthError::invalid_grant(),
        Refused::Target => OAuthError::new("invalid_target", "the grant is for another resource"),
        Refused::Scope => OAuthError::new("invalid_scope", "the grant holds other scopes"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verifier_proves_its_challenge_only() {
        // The example of RFC 7636, appendix B.
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        let challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
        assert!(proves(verifier, challenge));
        assert!(!proves(challenge, challenge), "plain");
        assert!(!proves(&verifier[1..], challenge));
        assert!(!proves(&format!("{verifier}="), challenge));
        assert!(!proves(&"a".repeat(129), challenge));
    }
}
