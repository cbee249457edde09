//! Reading small request bodies.

use axum::extract::{FromRequest, Request};
use http::{StatusCode, header};
use http_body_util::{BodyExt as _, LengthLimitError};
use serde::de::DeserializeOwned;

use super::error::ApiError;
use super::guard::too_large;

/// A JSON body, with our errors instead of axum's.
pub(crate) struct Body<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        let kind = request.headers().get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
        let mime = kind.split(';').next().unwrap_or_default().trim();
        // A form or text body can come from a foreign page without a preflight; JSON cannot.
        if !mime.eq_ignore_ascii_case("application/json") {
            return Err(ApiError::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "unsupported_media_type",
                "send application/json",
            ));
        }
        let bytes = read_body(request).await?;
        // serde's own message can quote the body, which may hold a secret: only the place is told.
        let parsed = serde_json::from_slice(&bytes).map_err(|e| {
            let code = if e.is_data() { "invalid_request" } else { "invalid_json" };
            ApiError::new(
                StatusCode::BAD_REQUEST,
                code,
                format!("the body is not as documented, column {}", e.column()),
            )
        })?;
        Ok(Body(parsed))
    }
}

/// The whole body, already bounded by the guard.
pub(crate) async fn read_body(request: Request) -> Result<bytes::Bytes, ApiError> {
    match request.into_body().collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if is_too_large(&error) => Err(too_large()),
        Err(_) => Err(ApiError::new(
            StatusCode::REQUEST_TIMEOUT,
            "request_incomplete",
            "the request's body did not arrive whole",
        )),
    }
}

fn is_too_large(error: &axum::Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(this) = cause {
        if this.is::<LengthLimitError>() {
            return true;
        }
        cause = this.source();
    }
    false
}
