//! The folders of Claude Code, and of the generic kind, which are alike: notes of running agents in `sessions/<pid>.json`,
//! transcripts in `projects/<project>/<session>.jsonl`.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use holdfast_core::limits;
use holdfast_core::transcript::discovery::{Candidate, Claim, Process, SessionRecord, slugs};

use super::{Aged, Agent, Found, Sight, Wish, age, newest, origin, processes};
use crate::transcript::real_path;

/// A note, with what its file says.
struct Note {
    record: SessionRecord,
    pid: u32,
    written: u64,
}

pub(super) fn look(agent: Agent, home: &Path, wish: &Wish) -> Vec<Sight> {
    let mut sights = Vec::new();
    let mut claimed = HashSet::new();
    let notes = notes(&home.join("sessions"));
    let all = processes::processes(&notes.iter().map(|note| note.pid).collect::<Vec<_>>());
    for note in notes {
        let Some(path) = transcript(agent, home, &note.record) else { continue };
        // Whoever is not admitted by its own word is not admitted as a file either.
        if claimed.insert(path.to_string())
            && wish.admits(&note.record.session_id, note.record.cwd.as_deref(), note.record.is_interactive())
        {
            sights.push(claim(agent, path, note, &all, wish));
        }
    }
    let mut files = files(agent, home, wish);
    files.sort_unstable_by_key(|file| std::cmp::Reverse(file.modified));
    for file in files.into_iter().take(limits::DISCOVERY_FILES) {
        if let Ok(path) = real_path(&file.path)
            && claimed.insert(path.to_string())
        {
            sights.extend(sight(agent, &path, &file, wish));
        }
    }
    sights
}

fn notes(folder: &Path) -> Vec<Note> {
    let files = newest(folder, |name| name.ends_with(".json")).into_iter().take(limits::DISCOVERY_RECORDS);
    files
        .filter_map(|file| {
            let text = fs::read(&file.path).ok().filter(|text| text.len() as u64 <= limits::DISCOVERY_HEAD)?;
            let record = SessionRecord::read(&text)?;
            let pid = record.pid.or_else(|| file.path.file_stem()?.to_str()?.parse().ok())?;
            let written = record.updated_at.unwrap_or(0).max(file.modified);
            Some(Note { record, pid, written })
        })
        .collect()
}

/// Where a session writes.
fn transcript(agent: Agent, home: &Path, record: &SessionRecord) -> Option<std::sync::Arc<str>> {
    let named = record.transcript_path.as_ref().map(PathBuf::from).filter(|path| path.is_absolute());
    let path = named.or_else(|| {
        let folder = home.join("projects").join(slug(agent, record.cwd.as_deref()?));
        Some(folder.join(format!("{}.jsonl", record.session_id)))
    })?;
    real_path(&path).ok()
}

fn slug(agent: Agent, cwd: &str) -> String {
    let [claude, generic] = slugs(cwd);
    if agent == Agent::Claude { claude } else { generic }
}

fn claim(agent: Agent, path: std::sync::Arc<str>, note: Note, all: &HashMap<u32, Process>, wish: &Wish) -> Sight {
    let Note { record, pid, written } = note;
    let claim = Claim {
        pid,
        process: all.get(&pid).copied().unwrap_or(Process::Gone),
        written,
        started: record.started_at.unwrap_or(0),
        above: wish.above.contains(&pid),
    };
    let modified = age(PathBuf::from(&*path)).map(|file| file.modified);
    let here = wish.project.is_some();
    let candidate = Candidate { path: path.to_string(), modified, here, claim: Some(claim) };
    let live = candidate.is_live();
    let found = Found { path, agent, session: Some(record.session_id), project: record.cwd, live, modified };
    Sight { found, candidate }
}

/// The transcripts that could be meant by where they are.
fn files(agent: Agent, home: &Path, wish: &Wish) -> Vec<Aged> {
    let projects = home.join("projects");
    let folders: Vec<PathBuf> = match &wish.project {
        Some(project) => {
            let names: HashSet<String> = project.iter().filter_map(|p| Some(slug(agent, p.to_str()?))).collect();
            names.into_iter().map(|name| projects.join(name)).collect()
        }
        None => {
            let all = fs::read_dir(&projects).into_iter().flatten().flatten().take(limits::DISCOVERY_NAMES);
            let mut all: Vec<_> = all.filter_map(|e| Some((e.metadata().ok()?.modified().ok()?, e.path()))).collect();
            all.sort_unstable();
            all.into_iter().rev().take(limits::DISCOVERY_FOLDERS).map(|(_, path)| path).collect()
        }
    };
    match &wish.session {
        Some(session) => folders.iter().filter_map(|f| age(f.join(format!("{session}.jsonl")))).collect(),
        // Those of agents that another one started stand beside it under names of their own.
        None => {
            let right = |name: &str| name.ends_with(".jsonl") && !name.starts_with("agent-");
            folders.iter().flat_map(|folder| newest(folder, right).into_iter().take(limits::DISCOVERY_FILES)).collect()
        }
    }
}

fn sight(agent: Agent, path: &std::sync::Arc<str>, file: &Aged, wish: &Wish) -> Option<Sight> {
    let origin = origin(&file.path);
    let named = file.path.file_stem()?.to_str()?;
    let session = origin.as_ref().map_or(named, |origin| &origin.session).to_owned();
    let cwd = origin.as_ref().map(|origin| origin.cwd.clone());
    // The name of its folder may mean several projects. One that says nothing yet has just begun.
    if !wish.admits(named, cwd.as_deref(), origin.is_none_or(|origin| origin.interactive)) {
        return None;
    }
    let here = wish.project.is_some();
    let modified = Some(file.modified);
    let candidate = Candidate { path: path.to_string(), modified, here, claim: None };
    let found = Found { path: path.clone(), agent, session: Some(session), project: cwd, live: false, modified };
    Some(Sight { found, candidate })
}
