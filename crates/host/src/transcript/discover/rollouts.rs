//! Codex's folder: `sessions/<year>/<month>/<day>/rollout-<time>-<session>.jsonl`.

use std::cmp::Reverse;
use std::fs;
use std::path::{Path, PathBuf};

use holdfast_core::limits;
use holdfast_core::transcript::discovery::Candidate;

use super::{Aged, Agent, Found, Sight, Wish, newest, origin};
use crate::transcript::real_path;

pub(super) fn look(home: &Path, wish: &Wish) -> Vec<Sight> {
    let mut sights = Vec::new();
    let mut read = 0;
    for day in days(&home.join("sessions")).take(limits::DISCOVERY_FOLDERS) {
        let right = |name: &str| match &wish.session {
            Some(session) => name.ends_with(&format!("-{session}.jsonl")),
            None => name.starts_with("rollout-") && name.ends_with(".jsonl"),
        };
        for file in newest(&day, right) {
            if read == limits::DISCOVERY_FILES {
                return sights;
            }
            read += 1;
            sights.extend(sight(&file, wish));
        }
    }
    sights
}

/// The folders of days, the newest first; none is listed before it is asked for.
fn days(sessions: &Path) -> impl Iterator<Item = PathBuf> {
    below(sessions).into_iter().flat_map(|year| below(&year)).flat_map(|month| below(&month))
}

fn below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(limits::DISCOVERY_NAMES);
    let numbers = entries.filter_map(|entry| {
        let number: u32 = entry.file_name().to_str()?.parse().ok()?;
        Some((Reverse(number), entry.path()))
    });
    let mut numbers: Vec<_> = numbers.collect();
    numbers.sort_unstable();
    numbers.into_iter().map(|(_, path)| path).collect()
}

fn sight(file: &Aged, wish: &Wish) -> Option<Sight> {
    let origin = origin(&file.path)?;
    if !wish.admits(&origin.session, Some(&origin.cwd), origin.interactive) {
        return None;
    }
    let path = real_path(&file.path).ok()?;
    let modified = Some(file.modified);
    let here = wish.project.is_some();
    let candidate = Candidate { path: path.to_string(), modified, here, claim: None };
    let (session, project) = (Some(origin.session), Some(origin.cwd));
    Some(Sight { found: Found { path, agent: Agent::Codex, session, project, live: false, modified }, candidate })
}
