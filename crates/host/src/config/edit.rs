//! Changing settings in the file, as the window and commands do: comments and order stay, and nothing is written unless the
//! whole is a valid configuration.

use std::collections::BTreeMap;
use std::path::Path;

use holdfast_core::limits;
use serde::Serialize;
use serde_json::Value;
use toml_edit::{DocumentMut, Item, Table, TableLike};

use super::error::position;
use super::read::{parse, text};
use super::{Config, ConfigError};
use crate::{files, link, paths};

/// Why settings were not changed. The file is as it was.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// The file itself.
    #[error(transparent)]
    File(#[from] ConfigError),
    /// What was asked for. A sentence that names the key.
    #[error("{0}")]
    Refused(String),
}

/// Sets dotted keys, or takes them away where the value is null. The file is made if there is none. Tells what it says now.
pub fn edit(path: &Path, set: &BTreeMap<String, Value>) -> Result<Config, EditError> {
    let after = |config: &Config| usable(config, set);
    change(path, |root| set.iter().try_for_each(|(key, value)| put(root, key, value)), after)
}

/// Changes the file by `act`, unless that makes it invalid or `check` refuses what it says then.
pub(super) fn change(
    path: &Path,
    act: impl FnOnce(&mut Table) -> Result<(), EditError>,
    check: impl FnOnce(&Config) -> Result<(), EditError>,
) -> Result<Config, EditError> {
    // A file that is kept elsewhere and linked here stays there.
    let path = &path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let old = text(path)?;
    let before = parse(&old, path)?;
    let mut document: DocumentMut = old.parse().map_err(|e: toml_edit::TomlError| {
        let (line, column) = position(&old, e.span().map_or(0, |s| s.start));
        ConfigError::Invalid { path: path.clone(), line, column, message: e.message().to_owned() }
    })?;
    act(document.as_table_mut())?;
    let new = document.to_string();
    if new == old {
        return Ok(before);
    }
    let after = parse(&new, path).map_err(|e| refusal(&new, e))?;
    check(&after)?;
    if new.len() > limits::CONFIG_FILE_MAX {
        return Err(EditError::Refused("the configuration would be larger than it can be".into()));
    }
    if let Some(dir) = path.parent() {
        files::make_dir(dir).map_err(ConfigError::from)?;
    }
    files::replace(path, new.as_bytes()).map_err(ConfigError::from)?;
    Ok(after)
}

/// Refuses, of what was asked for, what the next start would stumble over.
fn usable(config: &Config, set: &BTreeMap<String, Value>) -> Result<(), EditError> {
    let refused = |key: &str, why: &dyn std::fmt::Display| Err(EditError::Refused(format!("{key}: {why}")));
    let asked = |key: &str| set.get(key).is_some_and(|value| !value.is_null());
    if let Some(root) = config.workspace.root.as_deref().filter(|_| asked("workspace.root")) {
        // Which folder the next start is made from, nobody knows.
        if root.is_relative() && !root.starts_with("~") {
            return refused("workspace.root", &"it must be an absolute path or begin with ~/");
        }
        if let Err(why) = paths::workspace(Some(root)) {
            return refused("workspace.root", &why);
        }
    }
    if let Some(url) = config.relay.url.as_ref().filter(|_| asked("relay.url"))
        && let Err(why) = link::check_address(url)
    {
        return refused("relay.url", &why);
    }
    Ok(())
}

/// The place in a text nobody has seen says nothing; the line says it.
fn refusal(text: &str, error: ConfigError) -> EditError {
    match error {
        ConfigError::Invalid { message, .. } if message.starts_with("unknown key") => EditError::Refused(message),
        ConfigError::Invalid { line, message, .. } => {
            let line = text.lines().nth(line.saturating_sub(1)).unwrap_or_default().trim();
            EditError::Refused(format!("{line}: {message}"))
        }
        error => error.into(),
    }
}

pub(super) fn put(root: &mut dyn TableLike, key: &str, value: &Value) -> Result<(), EditError> {
    let (parents, name) = key.rsplit_once('.').unwrap_or(("", key));
    let mut table = root;
    for part in parents.split('.').filter(|part| !part.is_empty()) {
        if value.is_null() && !table.contains_key(part) {
            return Ok(());
        }
        let inner = table.entry(part).or_insert_with(toml_edit::table);
        table = inner.as_table_like_mut().ok_or_else(|| EditError::Refused(format!("`{part}` is not a table")))?;
    }
    if value.is_null() {
        table.remove(name);
        return Ok(());
    }
    let mut value = toml_value(value).ok_or_else(|| {
        EditError::Refused(format!("`{key}` takes a text, a number, true or false, or a list of these"))
    })?;
    match table.get_mut(name) {
        Some(Item::Value(old)) => {
            // The comment behind it is part of what surrounds it.
            *value.decor_mut() = old.decor().clone();
            *old = value;
        }
        Some(_) => return Err(EditError::Refused(format!("`{key}` is a table, not a setting"))),
        None => drop(table.insert(name, Item::Value(value))),
    }
    Ok(())
}

fn toml_value(value: &Value) -> Option<toml_edit::Value> {
    Some(match value {
        Value::Bool(yes) => (*yes).into(),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => whole.into(),
            None => number.as_f64()?.into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => items.iter().map(toml_value).collect::<Option<toml_edit::Array>>()?.into(),
        Value::Null | Value::Object(_) => return None,
    })
}

/// The configuration, as the window shows it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct ConfigView {
    /// The file.
    pub path: String,
    /// Whether what the file says can be used; one that is not there can.
    pub valid: bool,
    /// Why it cannot be used, with the place.
    pub error: Option<String>,
    /// What is in force: of the running engines, command line included; else what the next start would take.
    pub config: Config,
    /// What the file sets: dotted key → value.
    #[cfg_attr(feature = "ts", ts(type = "Record<string, unknown>"))]
    pub set: BTreeMap<String, Value>,
}

/// The file as it is now, with `config` in force.
pub fn view(path: &Path, config: Config) -> ConfigView {
    let file = text(path);
    let checked = match &file {
        Ok(text) => parse(text, path).map(drop).map_err(|e| e.to_string()),
        Err(error) => Err(error.to_string()),
    };
    let tables: toml::Table = file.ok().and_then(|text| text.parse().ok()).unwrap_or_default();
    let mut set = BTreeMap::new();
    for (table, values) in tables {
        for (key, value) in values.as_table().into_iter().flatten() {
            set.insert(format!("{table}.{key}"), serde_json::to_value(value).unwrap_or_default());
        }
    }
    ConfigView { path: path.display().to_string(), valid: checked.is_ok(), error: checked.err(), config, set }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use holdfast_core::policy::Profile;
    use serde_json::json;

    use super::*;
    use crate::config::LogLevel;

    fn set(pairs: &[(&str, Value)]) -> BTreeMap<String, Value> {
        pairs.iter().map(|(key, value)| ((*key).into(), value.clone())).collect()
    }

    #[test]
    fn a_setting_changes_and_everything_else_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new/config.toml");
        edit(&path, &set(&[("policy.profile", json!("review"))])).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "[policy]\nprofile = \"review\"\n");
        fs::write(
            &path,
            "# mine\n[log]\nlevel = \"warn\" # quiet\n\n[policy]\n# why\nprofile = \"review\" # for now\n",
        )
        .unwrap();
        let config = edit(
            &path,
            &set(&[
                ("policy.profile", json!("full")),
                ("relay.allowed_origins", json!(["https://a.example"])),
                ("relay.body_max_mib", json!(8)),
                ("log.level", json!("debug")),
            ]),
        )
        .unwrap();
        assert_eq!((config.policy.profile, config.log.level), (Some(Profile::Full), LogLevel::Debug));
        let expected = "# mine\n[log]\nlevel = \"debug\" # quiet\n\n[policy]\n# why\nprofile = \"full\" # for now\n\n\
                        [relay]\nallowed_origins = [\"https://a.example\"]\nbody_max_mib = 8\n";
        assert_eq!(fs::read_to_string(&path).unwrap(), expected);
    }

    #[test]
    fn null_takes_a_setting_away_and_dotted_files_stay_dotted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        fs::write(&path, "policy.profile = \"edit\"\nlog.level = \"warn\"\n").unwrap();
        edit(&path, &set(&[("log.level", Value::Null), ("relay.url", Value::Null)])).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "policy.profile = \"edit\"\n");
    }

    #[test]
    fn what_keeps_the_next_start_from_working_is_refused_by_its_key() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        fs::write(&path, "").unwrap();
        fs::create_dir(dir.path().join("work")).unwrap();
        let inside = |name: &str| json!(dir.path().join(name));
        let roots = [inside("missing"), inside("config.toml"), json!("/"), json!("~"), json!("work"), json!("")];
        for root in roots {
            let error = edit(&path, &set(&[("workspace.root", root.clone())])).unwrap_err();
            assert!(
                matches!(&error, EditError::Refused(why) if why.starts_with("workspace.root: ")),
                "{root}: {error}"
            );
        }
        for url in [
            "ftp://relay.example",
            "javascript:alert(1)",
            "http://relay.example",
            "https://me@relay.example",
            "https://:secret@relay.example",
            "https://relay.example/?a=b",
            "https://relay.example/#a",
        ] {
            let error = edit(&path, &set(&[("relay.url", json!(url))])).unwrap_err();
            let why = error.to_string();
            assert!(matches!(error, EditError::Refused(_)) && why.starts_with("relay.url: "), "{url}: {why}");
            assert!(!why.contains("secret"), "{why}");
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), "");
        edit(&path, &set(&[("workspace.root", inside("work")), ("relay.url", json!("https://relay.example"))]))
            .unwrap();
        edit(&path, &set(&[("workspace.root", Value::Null), ("relay.url", Value::Null)])).unwrap();
    }

    #[test]
    fn what_is_not_valid_is_refused_by_name_and_the_file_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        fs::write(&path, "[log]\nlevel = \"warn\"\n").unwrap();
        for (key, value, why) in [
            ("log.levle", json!("info"), "unknown key `levle` in [log]; did you mean `level`?"),
            ("logs.level", json!("info"), "unknown key `logs`; did you mean `log`?"),
            ("relay.listen", json!("nowhere"), "listen = \"nowhere\": invalid socket address syntax"),
            (
                "relay.tls_cert",
                json!("a.pem"),
                "tls_cert = \"a.pem\": tls_cert and tls_key are given together or not at all",
            ),
            ("log", json!("info"), "`log` is a table, not a setting"),
            ("log.level.deep", json!(1), "`level` is not a table"),
            ("log.level", json!({"a": 1}), "`log.level` takes a text, a number, true or false, or a list of these"),
        ] {
            assert_eq!(edit(&path, &set(&[(key, value)])).unwrap_err().to_string(), why, "{key}");
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), "[log]\nlevel = \"warn\"\n");
        fs::write(&path, "polcy = 1").unwrap();
        let error = edit(&path, &set(&[("log.level", json!("info"))])).unwrap_err();
        assert!(matches!(error, EditError::File(_)) && error.to_string().contains("config.toml:1:1: "), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "polcy = 1");
    }

    #[test]
    fn the_view_tells_what_the_file_sets_and_what_is_wrong_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        let empty = view(&path, Config::default());
        assert_eq!((empty.valid, empty.error, empty.set), (true, None, BTreeMap::new()));
        fs::write(&path, "log.level = \"warn\"\n[relay]\nbody_max_mib = 8\nx = 1\n").unwrap();
        let seen = view(&path, Config::default());
        assert_eq!(
            seen.set,
            set(&[("log.level", json!("warn")), ("relay.body_max_mib", json!(8)), ("relay.x", json!(1))])
        );
        assert!(!seen.valid && seen.error.unwrap().contains("4:1: unknown key `x` in [relay]"));
    }
}
