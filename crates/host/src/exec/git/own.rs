//! Our own reader: gix with the repository's configuration distrusted, so that no filter, monitor, hook or converter of
//! it exists.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gix::bstr::{BStr, BString, ByteSlice as _};
use gix::diff::index::ChangeRef;
use gix::revision::walk::Sorting;
use gix::status::index_worktree::iter::Summary;
use gix::status::tree_index::TrackRenames;
use gix::status::{Item, UntrackedFiles};
use gix::traverse::commit::simple::CommitTimeOrder;
use gix::{ObjectId, Repository};
use holdfast_core::code::{Code, ToolError};
use holdfast_core::limits;

use super::diff::{Side, Text};
use super::repository::{Found, contained};
use super::{Commit, Diff, Entry, Log, Shown, Status};
use crate::exec::call::{Call, stopped};
use crate::exec::env::Env;
use crate::exec::files::Access;

/// A repository that cannot be read. What gix says may name paths and is not repeated.
fn unreadable<E>(what: &'static str) -> impl FnOnce(E) -> ToolError {
    move |_| ToolError::new(Code::ExecutionFailed, format!("the repository cannot be read: {what}"))
}

fn open(env: &Env, call: &Call, found: &Found) -> Result<Repository, ToolError> {
    let options = gix::open::Options::isolated()
        .with(gix::sec::Trust::Reduced)
        // No section counts as trusted: drivers of filters, diffs and merges are read from none.
        .filter_config_section(|_| false);
    let repository = gix::open_opts(&found.root, options).map_err(unreadable("not a repository"))?;
    contained(env, call, repository.git_dir(), repository.common_dir())?;
    let tree = repository.workdir().and_then(|tree| tree.canonicalize().ok());
    if tree.as_deref() != Some(&*found.root) {
        return Err(ToolError::new(Code::PathBoundary, "the repository's working tree is not where it stands"));
    }
    Ok(repository)
}

/// Passes the call's stop on to gix, which wants a flag.
fn interrupt(call: &Call) -> (Arc<AtomicBool>, tokio_util::sync::DropGuard) {
    let flag = Arc::new(AtomicBool::new(false));
    let over = call.stop.child_token();
    let (raised, stop) = (Arc::clone(&flag), over.clone());
    tokio::spawn(async move {
        stop.cancelled().await;
        raised.store(true, Ordering::Relaxed);
    });
    (flag, over.drop_guard())
}

pub(super) fn status(env: &Env, call: &Call, found: &Found) -> Result<Status, ToolError> {
    let repository = open(env, call, found)?;
    let head = repository.head().map_err(unreadable("its head"))?;
    let branch = head.referent_name().map(|name| name.shorten().to_string());
    let id = head.id().map(|id| id.to_string());
    let mut entries: BTreeMap<BString, Entry> = BTreeMap::new();
    for (path, item) in changes(call, &repository, found, UntrackedFiles::Collapsed)? {
        let entry = entries.entry(path).or_default();
        match item {
            Item::TreeIndex(change) => {
                entry.staged = Some(match change {
                    ChangeRef::Addition { .. } => "added",
                    ChangeRef::Deletion { .. } => "deleted",
                    ChangeRef::Modification { .. } => "modified",
                    ChangeRef::Rewrite { .. } => "renamed",
                });
            }
            Item::IndexWorktree(item) => {
                entry.unstaged = item.summary().map(|summary| match summary {
                    Summary::Removed => "deleted",
                    Summary::Added => "untracked",
                    Summary::Modified => "modified",
                    Summary::TypeChange => "type_changed",
                    Summary::Renamed => "renamed",
                    Summary::Copied => "copied",
                    Summary::IntentToAdd => "intent_to_add",
                    Summary::Conflict => "conflicted",
                });
            }
        }
    }
    let entries = entries
        .into_iter()
        .map(|(path, entry)| Entry { path: path.to_string(), ..entry })
        .filter(|entry| entry.staged.is_some() || entry.unstaged.is_some())
        .collect();
    Ok(Status::new(found, branch, id, entries))
}

/// What differs between head, index and working tree below what was asked for, in order of paths.
fn changes(
    call: &Call,
    repository: &Repository,
    found: &Found,
    untracked: UntrackedFiles,
) -> Result<Vec<(BString, Item)>, ToolError> {
    let (flag, _over) = interrupt(call);
    let items = repository
        .status(gix::progress::Discard)
        .map_err(unreadable("its status"))?
        .untracked_files(untracked)
        // A submodule is a repository with a configuration of its own.
        .index_worktree_submodules(gix::status::Submodule::Given {
            ignore: gix::submodule::config::Ignore::All,
            check_dirty: false,
        })
        .index_worktree_rewrites(None)
        .tree_index_track_renames(TrackRenames::Disabled)
        .should_interrupt_owned(flag)
        .into_iter(None)
        .map_err(unreadable("its status"))?;
    let below = below(&found.below);
    let mut all = Vec::new();
    for item in items {
        call.check()?;
        let item = item.map_err(unreadable("its status"))?;
        if within(item.location(), below.as_bstr()) {
            all.push((item.location().to_owned(), item));
        }
        // One more than is shown, for either column.
        if all.len() > 2 * limits::GIT_STATUS_MAX {
            break;
        }
    }
    call.check()?;
    all.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(all)
}

fn below(path: &Path) -> BString {
    let path = gix::path::into_bstr(path).unwrap_or_default();
    gix::path::to_unix_separators_on_windows(path).into_owned()
}

fn within(path: &BStr, below: &BStr) -> bool {
    below.is_empty() || path.strip_prefix(&**below).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}

pub(super) fn diff(env: &Env, call: &Call, found: &Found, staged: bool, max: usize) -> Result<Diff, ToolError> {
    let repository = open(env, call, found)?;
    let mut text = Text::bounded(max);
    if staged {
        let head = repository.head_tree_id_or_empty().map_err(unreadable("its head"))?.detach();
        let index = repository.index_or_empty().map_err(unreadable("its index"))?;
        trees(call, &repository, head, &index, below(&found.below).as_bstr(), &mut text)?;
    } else {
        let (mut filters, index) = repository.filter_pipeline(None).map_err(unreadable("its attributes"))?;
        for (path, item) in changes(call, &repository, found, UntrackedFiles::None)? {
            use gix::status::index_worktree::Item as Change;
            let Item::IndexWorktree(Change::Modification { entry, .. }) = item else { continue };
            if text.is_full() || entry.mode.is_submodule() {
                continue;
            }
            let old = blob(&repository, entry.mode, entry.id)?;
            let name = gix::path::from_bstr(path.as_bstr()).map_err(unreadable("a path"))?;
            let new = worktree(env, call, &found.root.join(&name))?.map(|side| {
                // Line ends as git would store them.
                let mut bytes = Vec::new();
                let stored = filters
                    .convert_to_git(&side.bytes[..], &name, &index)
                    .is_ok_and(|mut stored| stored.read_to_end(&mut bytes).is_ok());
                if stored { Side { bytes, ..side } } else { side }
            });
            text.push(&path.to_str_lossy(), Some(&old), new.as_ref());
        }
    }
    let (diff, truncated) = text.end();
    Ok(Diff { repository: found.shown.clone(), staged, diff, truncated })
}

/// A file of the working tree as a side of a diff; nothing if it is gone.
fn worktree(env: &Env, call: &Call, real: &Path) -> Result<Option<Side>, ToolError> {
    let Ok(meta) = real.symlink_metadata() else { return Ok(None) };
    if meta.is_symlink() {
        let target = std::fs::read_link(real).map_err(unreadable("a link"))?;
        let target = gix::path::into_bstr(target).map_err(unreadable("a link"))?.into_owned();
        return Ok(Some(Side { mode: 0o120_000, bytes: target.into(), too_large: false }));
    }
    // Through the same door as every other file: a folder may be a link by now.
    let spot = env.files.check(real.to_path_buf(), &call.policy, Access::Read)?;
    let Ok(file) = env.files.file(&spot) else { return Ok(None) };
    let mut bytes = Vec::new();
    file.take(limits::FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(unreadable("a file"))?;
    #[cfg(unix)]
    let executable = std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o100 != 0;
    #[cfg(not(unix))]
    let executable = false;
    let too_large = bytes.len() > limits::FILE_BYTES_MAX;
    Ok(Some(Side { mode: if executable { 0o100_755 } else { 0o100_644 }, bytes, too_large }))
}

fn blob(repository: &Repository, mode: gix::index::entry::Mode, id: ObjectId) -> Result<Side, ToolError> {
    let mode_bits = mode.bits();
    let side = |bytes: Vec<u8>| Side { mode: mode_bits, bytes, too_large: false };
    // A submodule's id is a commit of another repository.
    if mode.is_submodule() {
        return Ok(side(format!("Subproject commit {id}\n").into()));
    }
    if id.is_null() {
        return Ok(side(Vec::new()));
    }
    let header = repository.find_header(id).map_err(unreadable("an object"))?;
    if header.size() > limits::FILE_BYTES_MAX as u64 {
        return Ok(Side { too_large: true, ..side(Vec::new()) });
    }
    let mut object = repository.find_object(id).map_err(unreadable("an object"))?;
    Ok(side(std::mem::take(&mut object.data)))
}

/// Adds the difference between a tree and an index.
fn trees(
    call: &Call,
    repository: &Repository,
    old: ObjectId,
    new: &gix::index::State,
    below: &BStr,
    text: &mut Text,
) -> Result<(), ToolError> {
    let mut failed = None;
    let walked = repository.tree_index_status(&old, new, None, TrackRenames::Disabled, |change, _, _| {
        let path = change.location().to_owned();
        if text.is_full() || call.stop.is_cancelled() {
            return Ok(ControlFlow::Break(()));
        }
        let side = |mode, id: &gix::oid| blob(repository, mode, id.into());
        let sides = match &change {
            ChangeRef::Addition { entry_mode, id, .. } => side(*entry_mode, id).map(|new| (None, Some(new))),
            ChangeRef::Deletion { entry_mode, id, .. } => side(*entry_mode, id).map(|old| (Some(old), None)),
            ChangeRef::Modification { previous_entry_mode, previous_id, entry_mode, id, .. } => {
                side(*previous_entry_mode, previous_id).and_then(|old| Ok((Some(old), Some(side(*entry_mode, id)?))))
            }
            ChangeRef::Rewrite { .. } => Ok((None, None)),
        };
        match sides {
            Ok((old, new)) if within(path.as_bstr(), below) => {
                text.push(&path.to_str_lossy(), old.as_ref(), new.as_ref())
            }
            Ok(_) => (),
            Err(e) => {
                failed = Some(e);
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    });
    walked.map_err(unreadable("its trees"))?;
    call.check()?;
    failed.map_or(Ok(()), Err)
}

pub(super) fn log(env: &Env, call: &Call, found: &Found, max: usize, email: bool) -> Result<Log, ToolError> {
    let repository = open(env, call, found)?;
    let mut commits = Vec::new();
    if let Some(head) = repository.head().map_err(unreadable("its head"))?.id() {
        let walk = repository
            .rev_walk([head.detach()])
            .sorting(Sorting::ByCommitTime(CommitTimeOrder::NewestFirst))
            .all()
            .map_err(unreadable("its history"))?;
        for info in walk.take(max) {
            call.check()?;
            let commit = info.and_then(|info| info.object()).map_err(unreadable("a commit"))?;
            commits.push(describe(&commit, email)?);
        }
    }
    Ok(Log { repository: found.shown.clone(), commits })
}

fn describe(commit: &gix::Commit<'_>, email: bool) -> Result<Commit, ToolError> {
    let author = commit.author().map_err(unreadable("an author"))?;
    let time = author.time().unwrap_or_default();
    let date = jiff::Timestamp::from_second(time.seconds).ok().and_then(|at| {
        let offset = jiff::tz::Offset::from_seconds(time.offset).ok()?;
        Some(at.display_with_offset(offset).to_string())
    });
    Ok(Commit {
        id: commit.id.to_string(),
        parents: commit.parent_ids().map(|id| id.to_string()).collect(),
        author: author.name.to_string(),
        author_email: email.then(|| author.email.to_string()),
        date: date.unwrap_or_default(),
        subject: commit.message().map_err(unreadable("a message"))?.summary().to_string(),
    })
}

pub(super) fn show(env: &Env, call: &Call, found: &Found, revision: &str, max: usize) -> Result<Shown, ToolError> {
    let repository = open(env, call, found)?;
    let unknown = || ToolError::new(Code::NotFound, "no such commit");
    let commit = repository
        .rev_parse_single(revision)
        .ok()
        .and_then(|id| id.object().ok())
        .and_then(|object| object.peel_to_kind(gix::object::Kind::Commit).ok())
        .ok_or_else(unknown)?
        .into_commit();
    let tree = |commit: &gix::Commit<'_>| commit.tree_id().map(gix::Id::detach).map_err(unreadable("a tree"));
    let before = match commit.parent_ids().next() {
        None => ObjectId::empty_tree(repository.object_hash()),
        Some(parent) => tree(&parent.object().map_err(unreadable("a parent"))?.into_commit())?,
    };
    let after = repository.index_from_tree(&tree(&commit)?).map_err(unreadable("a tree"))?;
    let mut text = Text::bounded(max);
    trees(call, &repository, before, &after, b"".as_bstr(), &mut text)?;
    let (diff, truncated) = text.end();
    if call.stop.is_cancelled() {
        return Err(stopped());
    }
    Ok(Shown {
        repository: found.shown.clone(),
        commit: describe(&commit, false)?,
        message: commit.message_raw().map_err(unreadable("a message"))?.to_str_lossy().into_owned(),
        diff,
        truncated,
    })
}
