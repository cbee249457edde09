//! Reading and writing the file.

use std::fs;
use std::path::Path;

use holdfast_core::limits;
use schemars::Schema;
use schemars::generate::SchemaSettings;
use serde_json::Value;
use toml::de::{DeTable, DeValue};

use super::channel_rules::{self, Wrong};
use super::error::{nearest, position};
use super::{Config, ConfigError};
use crate::files::FileError;

/// The JSON schema of `config.toml`, for editors.
pub fn schema() -> Schema {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    settings.into_generator().into_root_schema_for::<Config>()
}

/// Reads the file; one that is not there is an empty one.
pub fn read(path: &Path) -> Result<Config, ConfigError> {
    parse(&text(path)?, path)
}

pub(super) fn text(path: &Path) -> Result<String, ConfigError> {
    let not_ours = |why| Err(FileError::NotOurs { path: path.to_path_buf(), why }.into());
    match fs::metadata(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(String::new()),
        Err(e) => return Err(FileError::io(path)(e).into()),
        // A device or a pipe has no length and may never end.
        Ok(meta) if !meta.is_file() => return not_ours("it is not a regular file"),
        Ok(meta) if meta.len() > limits::CONFIG_FILE_MAX as u64 => {
            return not_ours("it is larger than a configuration can be");
        }
        Ok(_) => {}
    }
    Ok(fs::read_to_string(path).map_err(FileError::io(path))?)
}

/// Reads a text; `path` is for messages.
pub fn parse(text: &str, path: &Path) -> Result<Config, ConfigError> {
    let invalid = |offset: usize, message: String| {
        let (line, column) = position(text, offset);
        ConfigError::Invalid { path: path.to_path_buf(), line, column, message }
    };
    let of_toml = |e: toml::de::Error| invalid(e.span().map_or(0, |s| s.start), e.message().trim().replace('\n', ", "));
    let table = DeTable::parse(text).map_err(of_toml)?;
    if let Some((offset, message)) = unknown_key(table.get_ref(), schema().as_value(), "") {
        return Err(invalid(offset, message));
    }
    let config: Config = toml::from_str(text).map_err(of_toml)?;
    if config.relay.tls_cert.is_some() != config.relay.tls_key.is_some() {
        let offset = text.find("tls_").unwrap_or(0);
        return Err(invalid(offset, "tls_cert and tls_key are given together or not at all".into()));
    }
    if let Err(wrong) = channel_rules::check(&config.channel) {
        return Err(invalid(place(table.get_ref(), &wrong), wrong.why));
    }
    Ok(config)
}

/// Where a key of the channel stands; the binding or the table it is missing in, if it is missing.
fn place(table: &DeTable<'_>, wrong: &Wrong) -> usize {
    let Some(channel) = table.get("channel") else { return 0 };
    let mut found = channel.span().start;
    let mut inside = channel.get_ref().as_table();
    if let Some(at) = wrong.binding {
        let list = inside.and_then(|channel| channel.get("binding")).and_then(|list| list.get_ref().as_array());
        let binding = list.and_then(|list| list.get(at));
        found = binding.map_or(found, |binding| binding.span().start);
        inside = binding.and_then(|binding| binding.get_ref().as_table());
    }
    let keys = inside.into_iter().flat_map(|table| table.iter());
    keys.map(|(key, _)| key).find(|key| key.get_ref() == wrong.key).map_or(found, |key| key.span().start)
}

/// The first key that the schema does not know, as its offset and a sentence.
fn unknown_key(table: &DeTable<'_>, schema: &Value, place: &str) -> Option<(usize, String)> {
    let known = schema.get("properties").and_then(Value::as_object)?;
    let mut keys: Vec<_> = table.iter().collect();
    keys.sort_by_key(|(key, _)| key.span().start);
    for (key, value) in keys {
        let name = key.get_ref().as_ref();
        let Some(inner) = known.get(name) else {
            let hint = match nearest(name, known.keys().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known here: {}", known.keys().cloned().collect::<Vec<_>>().join(", ")),
            };
            let place = if place.is_empty() { String::new() } else { format!(" in [{place}]") };
            return Some((key.span().start, format!("unknown key `{name}`{place}; {hint}")));
        };
        let place = if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") };
        let found = match value.get_ref() {
            DeValue::Table(table) => unknown_key(table, inner, &place),
            DeValue::Array(items) => items.iter().find_map(|item| match item.get_ref() {
                DeValue::Table(table) => unknown_key(table, inner.get("items")?, &place),
                _ => None,
            }),
            _ => None,
        };
        if found.is_some() {
            return found;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use holdfast_core::policy::{Policy, Profile};

    use super::*;
    use crate::config::{BasePeer, LogLevel, RelayConfig};

    fn error(text: &str) -> String {
        parse(text, Path::new("c.toml")).unwrap_err().to_string()
    }

    #[test]
    fn an_empty_file_is_the_default_and_a_full_one_is_read() {
        assert_eq!(parse("", Path::new("c.toml")).unwrap(), Config::default());
        assert_eq!(Config::default().policy.policy(), Policy::of(Profile::Agent, "default"));
        assert_eq!(Config::default().relay.listen, RelayConfig::DEFAULT_LISTEN);
        let text = r#"
            policy.profile = "edit"
            [relay]
            url = "https://relay.example"
            [link]
            compat = "machine-bridge-mcp@1.2.10"
            [log]
            level = "debug"
        "#;
        let config = parse(text, Path::new("c.toml")).unwrap();
        assert_eq!(config.relay.url.unwrap().as_str(), "https://relay.example/");
        assert_eq!(config.link.compat, Some(BasePeer::MachineBridge1210));
        assert_eq!(config.policy.policy(), Policy::of(Profile::Edit, "explicit"));
        assert_eq!(config.log.level, LogLevel::Debug);
    }

    #[test]
    fn what_is_wrong_is_told_with_line_column_and_the_nearest_key() {
        let table = [
            ("lnk = 1", "c.toml:1:1: unknown key `lnk`; did you mean `link`?"),
            (
                "[forward]\nallow_ports = [\"9-8\"]",
                "c.toml:2:16: a port from 1 to 65535, or two of them as in \"5000-5009\"",
            ),
            ("[relay]\n  lisen = \"x\"", "c.toml:2:3: unknown key `lisen` in [relay]; did you mean `listen`?"),
            ("# ä\nrelay.publicUrl = 1", "c.toml:2:7: unknown key `publicUrl` in [relay]; did you mean `public_url`?"),
            ("[log]\nqqqqqqqqqqqq = 1", "c.toml:2:1: unknown key `qqqqqqqqqqqq` in [log]; known here: level"),
            ("workspace = \"~/code\"", "c.toml:1:13: invalid type: string \"~/code\", expected a table"),
            ("[relay]\ntls_cert = \"a\"", "c.toml:2:1: tls_cert and tls_key are given together or not at all"),
        ];
        for (text, expected) in table {
            assert_eq!(error(text), expected, "{text}");
        }
        for (text, place) in [
            ("[relay", "c.toml:1:7: "),
            ("[relay]\nlisten = \"nowhere\"", "c.toml:2:10: "),
            ("[relay]\nlisten = 8787", "c.toml:2:10: "),
            ("[policy]\nprofile = \"root\"", "c.toml:2:11: "),
            ("[relay]\nurl = \"relay\"", "c.toml:2:7: "),
            ("a = 1\na = 2", "c.toml:2:1: "),
        ] {
            assert!(error(text).starts_with(place), "{text}: {}", error(text));
        }
    }

    #[test]
    fn only_a_regular_file_of_a_fitting_size_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        fs::write(&path, "#".repeat(limits::CONFIG_FILE_MAX + 1)).unwrap();
        let refused =
            |why: &str| assert_eq!(read(&path).unwrap_err().to_string(), format!("{}: {why}", path.display()));
        refused("not used, because it is larger than a configuration can be");
        #[cfg(unix)]
        {
            fs::remove_file(&path).unwrap();
            std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
            refused("not used, because it is not a regular file");
        }
    }

    #[test]
    fn the_schema_names_every_key() {
        let schema = schema();
        let keys = |v: &Value| v["properties"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(
            keys(schema.as_value()),
            [
                "relay",
                "link",
                "mcp",
                "policy",
                "ask",
                "workspace",
                "sync",
                "forward",
                "power",
                "calls",
                "channel",
                "notices",
                "secrets",
                "log"
            ]
        );
        assert_eq!(schema.as_value()["properties"]["policy"]["properties"]["profile"]["enum"][2], "agent");
    }
}
