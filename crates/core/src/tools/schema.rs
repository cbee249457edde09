//! Building blocks of argument schemas, so that a bound stands in `limits` only.

use serde_json::{Map, Value, json};

/// An object with these properties and no others.
pub(super) fn object(properties: &[(&str, Value)], required: &[&str]) -> Value {
    let properties: Map<String, Value> =
        properties.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    let mut schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

/// A text of `min..=max` characters.
pub(super) fn text(min: usize, max: usize, what: &str) -> Value {
    let mut schema = json!({"type": "string", "maxLength": max, "description": what});
    if min > 0 {
        schema["minLength"] = json!(min);
    }
    schema
}

/// A whole number within bounds.
pub(super) fn whole(min: u64, max: u64, default: Option<u64>, what: &str) -> Value {
    let mut schema = json!({"type": "integer", "minimum": min, "maximum": max, "description": what});
    if let Some(default) = default {
        schema["default"] = json!(default);
    }
    schema
}

/// A switch that is off unless set, or on.
pub(super) fn switch(default: bool, what: &str) -> Value {
    json!({"type": "boolean", "default": default, "description": what})
}

/// A path in the workspace; `.` when absent.
pub(super) fn path(what: &str) -> Value {
    json!({"type": "string", "default": ".", "maxLength": crate::limits::PATH_MAX, "description": what})
}

/// A path that must be given.
pub(super) fn path_required(what: &str) -> Value {
    text(1, crate::limits::PATH_MAX, what)
}

/// `expected_sha256`.
pub(super) fn sha256() -> Value {
    json!({"type": "string", "pattern": "^[0-9a-fA-F]{64}$",
           "description": "SHA-256 of the file as you last read it (hex). The change is refused if the file differs now."})
}

/// A program and its arguments.
pub(super) fn argv() -> Value {
    json!({"type": "array", "minItems": 1, "maxItems": crate::limits::ARGV_MAX, "items": {"type": "string", "maxLength": crate::limits::ARGV_BYTES_MAX},
           "description": "Program and arguments, one item each. No shell reads them: no globbing, pipes or variables."})
}

/// `timeout_seconds`.
pub(super) fn timeout() -> Value {
    whole(
        1,
        crate::limits::EXEC_TIMEOUT_MAX.as_secs(),
        Some(crate::limits::EXEC_TIMEOUT_DEFAULT.as_secs()),
        "Seconds until the program and everything it started are killed.",
    )
}

/// `timeout_seconds` of work that may take as long as it takes.
pub(super) fn timeout_without_default() -> Value {
    whole(1, 30 * 86_400, None, "Seconds until the program and everything it started are killed; without it, never.")
}

/// `max_bytes` of a reading tool.
pub(super) fn max_bytes() -> Value {
    whole(
        1,
        crate::limits::FILE_BYTES_MAX as u64,
        Some(crate::limits::FILE_BYTES_DEFAULT as u64),
        "Bytes of text to return at most.",
    )
}
