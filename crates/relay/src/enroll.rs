//! `POST /api/enroll`: a device trades a one-time code for its credential.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::routing::post;
use axum::{Extension, Json, Router};
use holdfast_core::limits;
use http::StatusCode;
use parking_lot::Mutex;
use serde::Deserialize;

use crate::http::error::ApiError;
use crate::http::json::Body;
use crate::http::source::Source;
use crate::people::devices::{CODE_CHARACTERS, Exchange, exchange};
use crate::people::throttle::{Rule, Throttle};
use crate::people::{Enrolled, checked_name};
use crate::secret::read_typed_code;
use crate::state::AppState;

/// Wrong codes by source.
#[derive(Debug)]
pub(crate) struct Enrolment(Mutex<Throttle<Source>>);

impl Default for Enrolment {
    fn default() -> Self {
        let rule = Rule { tries: limits::ENROL_TRIES, window: limits::LOGIN_WINDOW, block: limits::LOGIN_WINDOW };
        Enrolment(Mutex::new(Throttle::new(rule)))
    }
}

/// The routes.
pub(crate) fn router() -> Router<Arc<AppState>> {
    Router::new().route("/api/enroll", post(enroll))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ask {
    /// 20 base32 characters, in either case, blanks and dashes ignored.
    code: String,
    /// Random, drawn once by the device; the same exchange may be repeated with it after a lost answer.
    enrolment: String,
    /// What the device calls itself.
    name: String,
}

async fn enroll(
    State(state): State<Arc<AppState>>,
    Extension(source): Extension<Source>,
    Body(ask): Body<Ask>,
) -> Result<Json<Enrolled>, ApiError> {
    let enrolment_fits = (16..=limits::ENROL_ID_MAX).contains(&ask.enrolment.len())
        && ask.enrolment.bytes().all(|b| b.is_ascii_graphic());
    if !enrolment_fits {
        return Err(ApiError::invalid("the enrolment id is 16 to 128 printable ASCII characters"));
    }
    let name = checked_name(&ask.name)?;
    let now = state.clock.now().boot;
    {
        let mut tries = state.enrolment.0.lock();
        let left = tries.blocked(now, &source);
        if left > Duration::ZERO {
            return Err(ApiError::too_many("too_many_requests", "too many wrong codes", left.as_secs() + 1));
        }
        tries.count(now, source);
    }
    let Some(code) = read_typed_code(&ask.code, CODE_CHARACTERS) else { return Err(invalid_code()) };
    let exchanged = exchange_now(&state, Exchange { code, enrolment: ask.enrolment, name }).await;
    if !matches!(exchanged, Ok(None)) {
        // Only a wrong code counts: not a full disk, nor a full account.
        state.enrolment.0.lock().forgive(&source);
    }
    exchanged?.map(Json).ok_or_else(invalid_code)
}

async fn exchange_now(state: &AppState, ask: Exchange) -> Result<Option<Enrolled>, ApiError> {
    let now = state.clock.unix();
    state.auth.write(move |db, news| exchange(db, now, &ask, news)).await
}

fn invalid_code() -> ApiError {
    ApiError::new(
        StatusCode::FORBIDDEN,
        "enrolment_code_invalid",
        "the code is wrong, used or expired; ask for a new one",
    )
}
