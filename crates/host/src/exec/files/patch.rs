//! apply_patch: every file is staged and checked before the first is changed, and what was changed is put back when a
//! later one fails.

use std::ffi::OsString;

use cap_std::fs::Dir;
use holdfast_core::code::{Code, ToolError};
use holdfast_core::limits;
use holdfast_core::tools::patch::{self, Action};
use serde::Deserialize;
use serde_json::{Value, json};

use super::workspace::{Access, Spot};
use super::write::{Expect, check, commit, conflict, current, digest, remove};
use crate::exec::call::{Call, bounded_text, invalid};
use crate::exec::env::Env;

/// One file before and after; `None` is no file.
struct Step {
    spot: Spot,
    before: Option<Vec<u8>>,
    after: Option<Vec<u8>>,
}

pub(in crate::exec) fn apply_patch(env: &Env, call: &Call) -> Result<Value, ToolError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Arguments {
        patch: String,
    }
    let args: Arguments = call.arguments()?;
    bounded_text("patch", &args.patch, 1, limits::FILE_BYTES_MAX)?;
    let changes = patch::parse(&args.patch).map_err(|e| invalid(e.to_string()))?;
    let mut steps: Vec<Step> = Vec::new();
    let mut told = Vec::new();
    let mut work = patch::Steps::default();
    for change in changes {
        call.check()?;
        let spot = env.files.find(&change.path, &call.policy, Access::Write)?;
        let before = read(env, &spot)?;
        let shown = spot.shown.clone();
        let absent = || ToolError::new(Code::NotFound, format!("{shown}: no such file"));
        match change.action {
            Action::Add(text) => {
                if before.is_some() {
                    return Err(conflict(&format!("{shown}: the file exists")));
                }
                told.push(json!({"path": shown, "action": "added", "sha256": digest(text.as_bytes())}));
                steps.push(Step { spot, before, after: Some(text.into_bytes()) });
            }
            Action::Delete => {
                let before = Some(before.ok_or_else(absent)?);
                told.push(json!({"path": shown, "action": "deleted"}));
                steps.push(Step { spot, before, after: None });
            }
            Action::Update { to, hunks } => {
                let before = before.ok_or_else(absent)?;
                let text = std::str::from_utf8(&before).map_err(|_| invalid(format!("{shown}: no UTF-8 text")))?;
                let text = patch::apply(text, &hunks, &mut work).map_err(|e| conflict(&format!("{shown}: {e}")))?;
                let sha256 = digest(text.as_bytes());
                match to {
                    None => {
                        told.push(json!({"path": shown, "action": "updated", "sha256": sha256}));
                        steps.push(Step { spot, before: Some(before), after: Some(text.into_bytes()) });
                    }
                    Some(to) => {
                        let target = env.files.find(&to, &call.policy, Access::Write)?;
                        if read(env, &target)?.is_some() {
                            return Err(conflict(&format!("{}: the file exists", target.shown)));
                        }
                        told.push(json!({"path": shown, "action": "moved", "to": target.shown, "sha256": sha256}));
                        steps.push(Step { spot: target, before: None, after: Some(text.into_bytes()) });
                        steps.push(Step { spot, before: Some(before), after: None });
                    }
                }
            }
        }
        let size = |bytes: &Option<Vec<u8>>| bytes.as_ref().map_or(0, Vec::len);
        if steps.iter().map(|step| size(&step.before) + size(&step.after)).sum::<usize>() > limits::PATCH_BYTES_MAX {
            return Err(ToolError::new(Code::LimitExceeded, "the patch changes too many bytes at once"));
        }
    }
    for (at, step) in steps.iter().enumerate() {
        if steps[..at].iter().any(|earlier| earlier.spot.real == step.spot.real) {
            return Err(invalid(format!("{}: two changes of the patch concern this file", step.spot.shown)));
        }
    }
    carry_out(env, &steps)?;
    Ok(json!({"files": told}))
}

fn read(env: &Env, spot: &Spot) -> Result<Option<Vec<u8>>, ToolError> {
    match env.files.parent(spot, false) {
        Ok((dir, name)) => Ok(current(&dir, &name)?.map(|current| current.bytes)),
        // Its folder is made when the patch is carried out.
        Err(e) if e.code == Code::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

fn carry_out(env: &Env, steps: &[Step]) -> Result<(), ToolError> {
    // Every precondition once more, before the first change.
    let mut places: Vec<(Dir, OsString)> = Vec::new();
    for step in steps {
        let (dir, name) = env.files.parent(&step.spot, step.after.is_some())?;
        check(current(&dir, &name)?.as_ref(), &expect(step.before.as_deref()))?;
        places.push((dir, name));
    }
    for (at, (step, place)) in steps.iter().zip(&places).enumerate() {
        let Err(mut error) = change(place, step.before.as_deref(), step.after.as_deref()) else { continue };
        let back = steps[..at].iter().zip(&places[..at]).rev();
        let stuck: Vec<&str> = back
            .filter(|(step, place)| change(place, step.after.as_deref(), step.before.as_deref()).is_err())
            .map(|(step, _)| step.spot.shown.as_str())
            .collect();
        error.message = format!("{}: {}; ", step.spot.shown, error.message);
        error.message += if stuck.is_empty() { "nothing was changed" } else { "some files could not be put back" };
        return Err(if stuck.is_empty() { error } else { error.with_details(&json!({"changed": stuck})) });
    }
    Ok(())
}

fn expect(before: Option<&[u8]>) -> Expect {
    before.map_or(Expect::Absent, |bytes| Expect::Digest(digest(bytes)))
}

fn change((dir, name): &(Dir, OsString), from: Option<&[u8]>, to: Option<&[u8]>) -> Result<(), ToolError> {
    match to {
        Some(content) => commit(dir, name, content, &expect(from)),
        None => remove(dir, name, &expect(from)),
    }
}
