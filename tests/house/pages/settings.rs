//! `docs/CONFIG.md`, from the schema of `config.toml`.

use std::fmt::Write as _;

use holdfast_host::config;
use serde_json::Value;

use super::check;

const HEAD: &str = "# Settings, and where things are

Made by `make limits` from the types in `crates/host/src/config/`; change them there. `holdfast config-schema` prints the same as a JSON
schema, for editors.

## Folders

| what | Linux | macOS | Windows | or |
|---|---|---|---|---|
| the configuration, `config.toml` | `~/.config/holdfast` | `~/Library/Application Support/holdfast` | `%APPDATA%\\holdfast` | `--config-dir`, `HOLDFAST_CONFIG_DIR` |
| the data folder | `~/.local/share/holdfast` | `~/Library/Application Support/holdfast` | `%LOCALAPPDATA%\\holdfast` | `--data-dir`, `HOLDFAST_DATA_DIR` |
| the state folder: seats of bots | `~/.local/state/holdfast` | `~/Library/Application Support/holdfast` | `%LOCALAPPDATA%\\holdfast` | `HOLDFAST_STATE_DIR` |
| the workspace | `~/holdfast` | `~/holdfast` | `%USERPROFILE%\\holdfast` | `--workspace`, `workspace.root` |

On Linux `XDG_CONFIG_HOME`, `XDG_DATA_HOME` and `XDG_STATE_HOME` are heeded. One process at a time owns a data folder. It holds
`relay/` (the embedded relay, or the one of `holdfast relay`), `worker/` and `runs/` (durable operations and their output), `logs/`, and
`api.json`, by which commands find the running process. Credentials are in the system's keyring, or in a 0600 file there.

## `config.toml`

Everything has a default, and an empty or missing file is a good one. The file is read again when it changes; what needs a restart
is said as a warning. A file that cannot be used is refused with line and key, and the settings in force stay. A flag of `holdfast serve` or
`holdfast relay` counts for that start alone.
";

/// What a value may be, in a word or by its list.
fn kind(schema: &Value) -> String {
    if let Some(names) = schema["enum"].as_array() {
        return names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    }
    if let Some(all) = schema["oneOf"].as_array() {
        let one = |of: &Value| format!("`{}`: {}", of["const"], sentence(of).trim_end_matches('.'));
        return all.iter().map(one).collect::<Vec<_>>().join("; ");
    }
    let several = |all: &Value, join: &str| {
        let kinds = all.as_array().into_iter().flatten().filter(|of| of["type"] != "null").map(kind);
        kinds.collect::<Vec<_>>().join(join)
    };
    if schema["anyOf"].is_array() {
        return several(&schema["anyOf"], " or ");
    }
    let name = match &schema["type"] {
        Value::Array(names) => names.iter().find(|name| *name != "null").and_then(Value::as_str),
        name => name.as_str(),
    };
    match name {
        Some("string") => "text".to_owned(),
        Some("integer") => "number".to_owned(),
        Some("boolean") => "true or false".to_owned(),
        Some("array") => format!(
            "list of {}",
            if schema["items"]["type"] == "string" { "texts".to_owned() } else { kind(&schema["items"]) }
        ),
        other => panic!("the page has no word for {other:?}"),
    }
}

/// A description on one line, as a cell of a table takes it.
fn sentence(schema: &Value) -> String {
    schema["description"].as_str().unwrap_or_default().replace('\n', " ").replace('|', "\\|")
}

fn default(schema: &Value) -> String {
    match &schema["default"] {
        Value::Null => "–".to_owned(),
        Value::String(text) if text.is_empty() => "–".to_owned(),
        Value::Array(list) if list.is_empty() => "none".to_owned(),
        value => format!("`{value}`"),
    }
}

/// One table of the file; lists of tables stand behind it with tables of their own.
fn table(page: &mut String, name: &str, heading: &str, schema: &Value) {
    let _ = write!(
        page,
        "\n### `{heading}`\n\n{}\n\n| key | value | default | meaning |\n|---|---|---|---|\n",
        sentence(schema)
    );
    let fields = schema["properties"].as_object().expect("a table has keys");
    let is_table = |of: &Value| of["items"]["properties"].is_object();
    for (key, of) in fields.iter().filter(|(_, of)| !is_table(of)) {
        let _ = writeln!(page, "| `{key}` | {} | {} | {} |", kind(of), default(of), sentence(of));
    }
    for (key, of) in fields.iter().filter(|(_, of)| is_table(of)) {
        let inner = format!("{name}.{key}");
        table(page, &inner, &format!("[[{inner}]]"), &of["items"]);
    }
}

#[test]
fn the_page_of_settings_is_in_date() {
    let schema = config::schema();
    let mut page = HEAD.to_owned();
    for (name, of) in schema.as_value()["properties"].as_object().expect("the file has tables") {
        table(&mut page, name, &format!("[{name}]"), of);
    }
    check("docs/CONFIG.md", "make limits", &page);
}
