//! `channel bind`.

use std::collections::BTreeMap;
use std::path::Path;

use holdfast_core::command::Command as Ask;
use serde_json::{Value, json};

use super::args::Bind;
use crate::args::Folders;
use crate::ask::ask;
use crate::commands::told;
use crate::failure::Failure;
use crate::print;

pub async fn bind(folders: &Folders, args: Bind) -> Result<(), Failure> {
    let name = args.name.clone();
    let set = settings(args)?;
    if set.is_empty() {
        return Err(Failure::usage("nothing to change: name at least one option (see --help)"));
    }
    let answer = ask(&folders.dirs()?, Ask::ChannelBind { name: name.clone(), set }).await?;
    let at = answer["channel_name"].as_str().map(|at| format!(" to {at}")).unwrap_or_default();
    told(folders, &answer, &format!("{name} is bound{at}; `holdfast channel test {name}` posts a test message"))?;
    for warning in answer["warnings"].as_array().into_iter().flatten().filter(|_| !folders.json) {
        print::line(&format!("! {}", print::shown(warning["text"].as_str().unwrap_or_default())));
    }
    Ok(())
}

/// What is named, with what stood in its place taken away.
fn settings(args: Bind) -> Result<BTreeMap<String, Value>, Failure> {
    let mut set = BTreeMap::new();
    let mut put = |key: &str, value: Value| drop(set.insert(key.to_owned(), value));
    if let Some(channel) = args.channel {
        put("channel", channel.into());
    }
    if let Some(project) = &args.project {
        put("project", absolute(project)?);
    }
    if args.project.is_some() || args.session.is_some() || args.transcript.is_some() {
        put("session", args.session.into());
        put("transcript", args.transcript.as_deref().map(absolute).transpose()?.unwrap_or_default());
    }
    if let Some(deliver) = args.deliver {
        put("deliver", if deliver == "none" { Value::Null } else { deliver.as_str().into() });
        if deliver != "command" {
            put("command", Value::Null);
        }
        if deliver != "tmux" {
            put("pane", Value::Null);
            put("stop_key", Value::Null);
        }
    }
    if !args.command.is_empty() {
        put("command", args.command.into());
    }
    for (key, value) in [("pane", args.pane), ("stop_key", args.stop_key)] {
        if let Some(value) = value {
            put(key, value.into());
        }
    }
    if let Some(mention) = args.mention {
        put("mention", mention.into());
    }
    if let Some(people) = args.people {
        put("people", people.into_iter().filter(|person| !person.is_empty()).collect::<Vec<_>>().into());
    }
    Ok(set)
}

/// Whoever reads the file works in another folder.
pub fn absolute(path: &Path) -> Result<Value, Failure> {
    Ok(json!(std::path::absolute(path)?))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{Cli, Command};
    use crate::commands::channel::args::Channel;

    fn set(line: &str) -> Value {
        let cli = Cli::try_parse_from(["holdfast", "channel", "bind"].into_iter().chain(line.split(' '))).unwrap();
        let Command::Channel(Channel::Bind(args)) = cli.command else { panic!("{line}") };
        json!(settings(args).unwrap())
    }

    #[test]
    fn what_is_named_takes_the_place_of_what_stood_there() {
        assert_eq!(
            set("app --channel 12 --project /srv/app"),
            json!({"channel": "12", "project": "/srv/app", "session": null, "transcript": null})
        );
        assert_eq!(set("app --session s-1"), json!({"session": "s-1", "transcript": null}));
        assert_eq!(
            set("app --deliver tmux --pane work:0.1 --mention"),
            json!({"deliver": "tmux", "command": null, "pane": "work:0.1", "mention": true})
        );
        assert_eq!(
            set("app --deliver command -- claude -p --resume {session}"),
            json!({"deliver": "command", "command": ["claude", "-p", "--resume", "{session}"], "pane": null, "stop_key": null})
        );
        assert_eq!(
            set("app --deliver none --mention no"),
            json!({"deliver": null, "command": null, "pane": null, "stop_key": null, "mention": false})
        );
        assert_eq!(set("app --people 1 --people 2"), json!({"people": ["1", "2"]}));
        assert_eq!(set("app --people="), json!({"people": []}));
    }
}
