//! `config.toml`.

use std::path::Path;

use holdfast_host::config;

/// A refusal names a place inside the text.
pub fn config(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Err(config::ConfigError::Invalid { line, column, .. }) = config::parse(text, Path::new("config.toml")) {
        assert!(line >= 1 && line <= text.lines().count().max(1) + 1, "line {line}");
        assert!(column >= 1, "column {column}");
    }
}
