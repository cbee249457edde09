//! Refusals of the control machine as errors of the API.

use holdfast_core::code::Code;
use holdfast_core::operation::Failure;
use http::StatusCode;

use crate::http::error::ApiError;

impl From<Failure> for ApiError {
    fn from(failure: Failure) -> Self {
        let status = match failure.code {
            Code::InvalidRequest => StatusCode::BAD_REQUEST,
            Code::NotFound => StatusCode::NOT_FOUND,
            Code::Conflict | Code::Cancelled => StatusCode::CONFLICT,
            Code::LimitExceeded | Code::Busy => StatusCode::TOO_MANY_REQUESTS,
            Code::StorageFull => StatusCode::INSUFFICIENT_STORAGE,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        ApiError::new(status, failure.code.as_str(), failure.message)
    }
}
