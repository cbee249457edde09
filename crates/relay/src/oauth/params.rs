//! Query and form parameters: each at most once, or the request is refused (RFC 6749 §3.1, §3.2).

use std::collections::HashMap;

use axum::extract::{FromRequest, Request};
use http::header;

use super::error::OAuthError;
use crate::http::json::read_body;

/// The parameters of one request.
#[derive(Default)]
pub(super) struct Params(HashMap<String, String>);

impl Params {
    /// Reads `application/x-www-form-urlencoded` text; `None` if a name stands twice. An empty value counts as left out (RFC 6749 §3.1).
    pub(super) fn read(text: &[u8]) -> Option<Params> {
        let mut params = HashMap::new();
        for (name, value) in url::form_urlencoded::parse(text) {
            if params.insert(name.into_owned(), value.into_owned()).is_some() {
                return None;
            }
        }
        params.retain(|_, value| !value.is_empty());
        Some(Params(params))
    }

    /// A parameter's value.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Takes a parameter's value out.
    pub(super) fn take(&mut self, name: &str) -> Option<String> {
        self.0.remove(name)
    }
}

impl<S: Send + Sync> FromRequest<S> for Params {
    type Rejection = OAuthError;

    async fn from_request(request: Request, _: &S) -> Result<Self, OAuthError> {
        let kind = request.headers().get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
        let mime = kind.split(';').next().unwrap_or_default().trim();
        if !mime.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            return Err(OAuthError::invalid_request("send application/x-www-form-urlencoded"));
        }
        let body = read_body(request).await?;
        Params::read(&body).ok_or_else(|| OAuthError::invalid_request("a parameter stands more than once"))
    }
}
