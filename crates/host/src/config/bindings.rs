//! Changing bindings in the file, as the window and `holdfast channel bind` do.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use toml_edit::{ArrayOfTables, Item, Table};

use super::channel_rules::{is_number, no_person};
use super::edit::{change, edit, put};
use super::read::read;
use super::{ChannelService, Config, EditError};

/// Adds the binding of a name, or sets keys of it; a null takes a key away. Tells what the file says now.
pub fn bind(path: &Path, name: &str, set: &BTreeMap<String, Value>) -> Result<Config, EditError> {
    let act = |root: &mut Table| {
        let bindings = bindings(root)?;
        if !bindings.iter().any(|binding| is_called(binding, name)) {
            if !set.contains_key("channel") {
                return Err(EditError::Refused(format!(
                    "there is no binding `{name}`; `holdfast channel show` lists them, and a new one needs its --channel and \
                     what it follows, such as --project"
                )));
            }
            let mut binding = Table::new();
            binding.insert("name", toml_edit::value(name));
            bindings.push(binding);
        }
        let binding = bindings.iter_mut().find(|binding| is_called(binding, name));
        let binding = binding.ok_or_else(|| no_binding(name))?;
        set.iter().try_for_each(|(key, value)| match key.contains('.') {
            true => Err(EditError::Refused(format!("`{key}` is no key of a binding"))),
            false => put(binding, key, value),
        })
    };
    change(path, act, |_| Ok(()))
}

/// Takes the binding of a name away. Tells what the file says now.
pub fn unbind(path: &Path, name: &str) -> Result<Config, EditError> {
    let act = |root: &mut Table| {
        let bindings = bindings(root)?;
        let before = bindings.len();
        bindings.retain(|binding| !is_called(binding, name));
        if bindings.len() == before { Err(no_binding(name)) } else { Ok(()) }
    };
    change(path, act, |_| Ok(()))
}

/// Lets somebody speak to the agents. Tells what the file says now.
pub fn admit(path: &Path, person: &str) -> Result<Config, EditError> {
    // Every service names people by numbers, whichever will be set up.
    if !is_number(person) {
        return Err(EditError::Refused(no_person(Some(ChannelService::Discord), person)));
    }
    let mut people = read(path)?.channel.people;
    if !people.iter().any(|known| known == person) {
        people.push(person.to_owned());
    }
    edit(path, &BTreeMap::from([("channel.people".into(), people.into())]))
}

/// Takes that away, everywhere. Tells what the file says now.
pub fn dismiss(path: &Path, person: &str) -> Result<Config, EditError> {
    let mut people = read(path)?.channel.people;
    let before = people.len();
    people.retain(|known| known != person);
    if people.len() == before {
        return Err(EditError::Refused(format!("{person} is not on the list")));
    }
    edit(path, &BTreeMap::from([("channel.people".into(), people.into())]))
}

fn no_binding(name: &str) -> EditError {
    EditError::Refused(format!("there is no binding `{name}`; `holdfast channel show` lists them"))
}

fn is_called(binding: &Table, name: &str) -> bool {
    binding.get("name").and_then(Item::as_str) == Some(name)
}

/// The bindings, as tables of their own however they were written.
fn bindings(root: &mut Table) -> Result<&mut ArrayOfTables, EditError> {
    let channel = root.entry("channel").or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    *channel = std::mem::take(channel).into_table().map_or_else(|kept| kept, Item::Table);
    let channel = channel.as_table_mut().ok_or_else(|| EditError::Refused("`channel` is not a table".into()))?;
    let list = channel.entry("binding").or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
    *list = match std::mem::take(list).into_array_of_tables() {
        Ok(tables) => Item::ArrayOfTables(tables),
        Err(Item::Value(value)) if value.as_array().is_some_and(toml_edit::Array::is_empty) => {
            Item::ArrayOfTables(ArrayOfTables::new())
        }
        Err(kept) => kept,
    };
    list.as_array_of_tables_mut().ok_or_else(|| EditError::Refused("`channel.binding` is not a list of tables".into()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    fn set(of: Value) -> BTreeMap<String, Value> {
        serde_json::from_value(of).unwrap()
    }

    #[test]
    fn a_binding_is_added_changed_and_taken_away_and_comments_stay() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        fs::write(&path, "# mine\n[channel]\nbackend = \"discord\" # the bot\nbot = \"1\"\n").unwrap();
        let log = set(json!({"channel": "100200300400500600", "project": "/srv/log"}));
        let config = bind(&path, "log", &log).unwrap();
        assert_eq!((config.channel.bindings.len(), config.channel.bindings[0].name.as_str()), (1, "log"));
        bind(&path, "web", &set(json!({"channel": "100200300400500601", "session": "s-1", "deliver": "mcp"}))).unwrap();
        bind(&path, "log", &set(json!({"project": null, "transcript": "/srv/a.jsonl", "mention": true}))).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(
            text,
            "# mine\n[channel]\nbackend = \"discord\" # the bot\nbot = \"1\"\n\n[[channel.binding]]\nname = \"log\"\n\
             channel = \"100200300400500600\"\nmention = true\ntranscript = \"/srv/a.jsonl\"\n\n[[channel.binding]]\n\
             name = \"web\"\nchannel = \"100200300400500601\"\ndeliver = \"mcp\"\nsession = \"s-1\"\n"
        );
        assert_eq!(unbind(&path, "log").unwrap().channel.bindings[0].name, "web");
        assert_eq!(
            unbind(&path, "log").unwrap_err().to_string(),
            "there is no binding `log`; `holdfast channel show` lists them"
        );
    }

    #[test]
    fn a_binding_is_added_to_a_file_that_has_no_channel_or_writes_it_in_another_way() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        let log = set(json!({"channel": "-100", "project": "~/log"}));
        for text in [
            "",
            "channel = { backend = \"telegram\", bot = \"1\" }\n",
            "channel.backend = \"telegram\"\nchannel.bot = \"1\"\n",
            "[channel]\nbinding = []\n",
            "[channel]\nbinding = [{ name = \"a\", channel = \"-1\", project = \"/a\" }]\n",
        ] {
            fs::write(&path, text).unwrap();
            let config = bind(&path, "log", &log).unwrap();
            assert_eq!(config.channel.bindings.last().unwrap().channel, "-100", "{text}");
        }
    }

    #[test]
    fn people_are_admitted_once_and_dismissed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        for none in ["abc", "", "@ann", "-7", "7 8"] {
            let refused = admit(&path, none).unwrap_err().to_string();
            assert_eq!(
                refused,
                format!("{none:?} is no person's id, which is a number; `holdfast channel pair` adds people")
            );
        }
        assert_eq!(admit(&path, "7").unwrap().channel.people, ["7"]);
        assert_eq!(admit(&path, "8").unwrap().channel.people, ["7", "8"]);
        assert_eq!(admit(&path, "7").unwrap().channel.people, ["7", "8"]);
        assert_eq!(dismiss(&path, "7").unwrap().channel.people, ["8"]);
        assert_eq!(dismiss(&path, "7").unwrap_err().to_string(), "7 is not on the list");
    }

    #[test]
    fn what_a_binding_cannot_be_is_refused_and_the_file_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        let good = "[[channel.binding]]\nname = \"a\"\nchannel = \"-1\"\nproject = \"/a\"\n";
        fs::write(&path, good).unwrap();
        for (name, of, why) in [
            ("b", json!({"channel": "-1", "project": "/b"}), "channel = \"-1\": binding `a` has this channel already"),
            ("b", json!({"channel": "-2"}), "name = \"b\": name a project, a session or a transcript"),
            (
                "b",
                json!({"channel": "-2", "chanel": "-2"}),
                "unknown key `chanel` in [channel.binding]; did you mean `channel`?",
            ),
            ("b", json!({"channel": "-2", "a.b": "-2"}), "`a.b` is no key of a binding"),
            ("b c", json!({"channel": "-2", "project": "/b"}), "name = \"b c\": 1 to 40 letters, digits and `-`"),
        ] {
            assert_eq!(bind(&path, name, &set(of)).unwrap_err().to_string(), why);
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), good);
    }
}
