//! `channel show`, `people` and `candidates`.

use std::path::PathBuf;

use holdfast_core::command::Command as Ask;
use holdfast_core::status::{BindingStatus, ForwarderStatus, PersonRow};
use holdfast_host::config::{BindingConfig, ChannelConfig};
use serde_json::{Value, json};

use super::{bot_of, configured, snapshot};
use crate::args::Folders;
use crate::ask::ask;
use crate::failure::Failure;
use crate::print;

pub async fn show(folders: &Folders) -> Result<(), Failure> {
    let set = configured(folders)?;
    let (Some(service), Some(bot)) = (set.backend, &set.bot) else {
        return Err(Failure::plain("no channel is set up; `holdfast channel setup` does that"));
    };
    let now = snapshot(folders).await?.and_then(|s| s.channels);
    let mut shown = bot_of(&set);
    if folders.json {
        shown["people"] = json!(people_of(&set, now.as_deref()));
        shown["binding"] = json!(set.bindings);
        shown["now"] = json!(now);
        return print::json(&shown);
    }
    let at = set.base_url.as_ref().map(|url| format!(" at {url}")).unwrap_or_default();
    let on_start = shown["on_start"].as_str().unwrap_or_default();
    print::line(&format!("{} bot {}{at}; on start: {on_start}", service.as_str(), print::shown(bot)));
    if set.bindings.is_empty() {
        print::line("no agent has a channel; `holdfast channel bind` gives one its own");
    }
    for binding in &set.bindings {
        let now = now.as_ref().and_then(|now| now.bindings.iter().find(|b| b.name == binding.name));
        for line in lines(binding, now) {
            print::line(&line);
        }
    }
    match set.people.len() {
        0 => print::line("nobody may talk to the agents; `holdfast channel pair` lets people in"),
        people => print::line(&format!("{} may talk to the agents", print::count(people as u64, "person", "people"))),
    }
    Ok(())
}

fn lines(binding: &BindingConfig, now: Option<&BindingStatus>) -> Vec<String> {
    let id = &binding.channel;
    let channel = now.and_then(|b| b.channel_name.as_ref()).map_or(id.clone(), |name| format!("{name} ({id})"));
    let adapter = binding.deliver.map_or("none (mirrored only)", |deliver| deliver.as_str());
    let mut lines = vec![format!("{} ↔ {}; delivery: {adapter}", binding.name, print::shown(&channel))];
    let source = match (&binding.transcript, &binding.session, &binding.project) {
        (Some(_), ..) => None,
        (_, Some(session), _) => Some(format!("session {session}")),
        (_, _, project) => project.as_ref().map(|project| format!("the newest session of {project}")),
    };
    let transcript = now.and_then(|b| b.transcript.as_ref()).or(binding.transcript.as_ref());
    let follows = match (transcript, source) {
        (Some(transcript), Some(source)) => format!("{transcript} ({source})"),
        (Some(transcript), None) => transcript.clone(),
        (None, source) => source.unwrap_or_default(),
    };
    lines.push(format!("  follows {}", print::shown(&follows)));
    let Some(now) = now else { return lines };
    if now.waiting_out + now.waiting_in > 0 {
        let (out, inside) = (now.waiting_out, now.waiting_in);
        lines.push(format!("  {out} to be posted, {inside} to be delivered"));
    }
    if let Some(why) = &now.parked {
        let retry = format!("`holdfast channel retry {}` tries again", now.name);
        lines.push(format!("  ! nothing is posted: {}; {retry}", print::shown(why)));
    } else if let Some(why) = &now.why {
        lines.push(format!("  waits: {}", print::shown(why)));
    }
    if now.skipped > 0 {
        lines.push(format!("  {} not posted, too old or too many", print::count(now.skipped, "entry", "entries")));
    }
    if now.unread > 0 {
        lines.push(format!("  {} of the transcript too long or unreadable", print::count(now.unread, "line", "lines")));
    }
    if now.gaps > 0 {
        let places = print::count(now.gaps, "place", "places");
        lines.push(format!("  a part of the transcript may be missing in {places}; the log says where"));
    }
    if let Some(sent) = now.last_sent {
        lines.push(format!("  last posted at {}", print::moment(sent)));
    }
    lines
}

/// With their names, where a holder knows them.
fn people_of(set: &ChannelConfig, now: Option<&ForwarderStatus>) -> Vec<PersonRow> {
    let name = |id: &str| now?.people.iter().find(|person| person.id == id)?.name.clone();
    set.people.iter().map(|id| PersonRow { id: id.clone(), name: name(id) }).collect()
}

pub async fn people(folders: &Folders) -> Result<(), Failure> {
    let now = snapshot(folders).await?.and_then(|s| s.channels);
    let rows = json!(people_of(&configured(folders)?, now.as_deref()));
    if folders.json {
        return print::json(&rows);
    }
    print::table(&rows, &[("NAME", "name"), ("ID", "id")]);
    Ok(())
}

pub async fn candidates(folders: &Folders, project: Option<PathBuf>) -> Result<(), Failure> {
    let project = project.map(std::path::absolute).transpose()?.map(|path| path.display().to_string());
    let mut rows = ask(&folders.dirs()?, Ask::ChannelCandidates { project }).await?;
    if folders.json {
        return print::json(&rows);
    }
    if rows.as_array().is_some_and(Vec::is_empty) {
        print::line("No transcript of an agent was found, neither Claude Code's nor Codex's.");
        return Ok(());
    }
    for row in rows.as_array_mut().into_iter().flatten() {
        // The table's dates are in seconds.
        let created = row["modified"].as_u64().map(|ms| Value::from(ms / 1000));
        row["created"] = created.unwrap_or_default();
    }
    let columns =
        [("AGENT", "agent"), ("RUNS", "live"), ("WRITTEN", "created"), ("SESSION", "session"), ("TRANSCRIPT", "path")];
    print::table(&rows, &columns);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binding_says_what_it_follows_and_what_keeps_it() {
        let bound = BindingConfig {
            name: "app".into(),
            channel: "12".into(),
            project: Some("/srv/app".into()),
            ..BindingConfig::default()
        };
        assert_eq!(
            lines(&bound, None),
            ["app ↔ 12; delivery: none (mirrored only)", "  follows the newest session of /srv/app"]
        );
        let now = BindingStatus {
            name: "app".into(),
            channel: "12".into(),
            channel_name: Some("#log".into()),
            transcript: Some("/t.jsonl".into()),
            waiting_out: 2,
            parked: Some("the bot may not write there".into()),
            skipped: 1,
            unread: 2,
            gaps: 1,
            ..BindingStatus::default()
        };
        assert_eq!(
            lines(&bound, Some(&now)),
            [
                "app ↔ #log (12); delivery: none (mirrored only)",
                "  follows /t.jsonl (the newest session of /srv/app)",
                "  2 to be posted, 0 to be delivered",
                "  ! nothing is posted: the bot may not write there; `holdfast channel retry app` tries again",
                "  1 entry not posted, too old or too many",
                "  2 lines of the transcript too long or unreadable",
                "  a part of the transcript may be missing in 1 place; the log says where",
            ]
        );
    }
}
