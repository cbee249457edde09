//! Every process tree of this executor: started under one lock, noted on disk, killed as a group.
//!
//! A tree is a process group (a job object on Windows). `<data>/calls/` has one note per living tree, so that the next
//! process of this data folder can end what a killed one left running. A program that leaves its group on purpose
//! escapes; it carries a mark in its environment, by which it is found and reported.

use std::collections::HashSet;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use holdfast_core::code::{Code, ToolError};
use holdfast_core::limits;
use holdfast_core::run::Signal;
use parking_lot::Mutex;
use process_wrap::tokio::{ChildWrapper, CommandWrap};
use serde::{Deserialize, Serialize};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::exec::call::{invalid, io_error, random_name};
use crate::group::{self, MARK};
use crate::identity;

/// How often a dying group is looked at: its end is no event.
const LOOK: Duration = Duration::from_millis(20);

pub(crate) struct Trees {
    notes: PathBuf,
    boot: String,
    state: Mutex<State>,
    /// Told whenever a tree is gone.
    gone: Notify,
    closing: CancellationToken,
}

#[derive(Default)]
struct State {
    closed: bool,
    /// Programs that are being started.
    starting: usize,
    /// Process groups that may have living members.
    living: HashSet<u32>,
    escaped: u64,
    leftovers: usize,
}

impl State {
    fn is_idle(&self) -> bool {
        self.living.is_empty() && self.starting == 0
    }
}

/// What the executor's processes are doing, for `diagnose_runtime`.
#[derive(Serialize)]
pub(in crate::exec) struct TreeCounts {
    running: usize,
    /// Programs that left their group and outlived their call, since the start.
    escaped: u64,
    /// Trees of a killed predecessor that were ended at the start.
    leftovers_ended: usize,
}

/// A living tree as `<data>/calls/` notes it.
#[derive(Serialize, Deserialize)]
struct Note {
    /// The leader; nothing in the moment before it is known.
    pid: Option<u32>,
    started: Option<String>,
    boot: String,
    mark: String,
}

/// A running tree. Dropped before it ended, it is killed at once.
pub(in crate::exec) struct Tree {
    trees: Arc<Trees>,
    child: Box<dyn ChildWrapper>,
    group: u32,
    mark: String,
}

impl Trees {
    /// Ends the trees that the notes of a predecessor name, and starts with none.
    pub(crate) fn open(notes: PathBuf) -> io::Result<Arc<Trees>> {
        let boot = identity::boot();
        let mut state = State::default();
        for entry in std::fs::read_dir(&notes)? {
            let path = entry?.path();
            // The last line that is whole says the most.
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            let note = text.lines().rev().find_map(|line| serde_json::from_str::<Note>(line).ok());
            if note.is_some_and(|note| note.boot == boot && end_leftover(&note)) {
                state.leftovers += 1;
            }
            std::fs::remove_file(&path)?;
        }
        Ok(Arc::new(Trees {
            notes,
            boot,
            state: Mutex::new(state),
            gone: Notify::new(),
            closing: CancellationToken::new(),
        }))
    }

    /// Starts a program as the leader of a new tree, its output piped. Blocks until its folder and its file were found.
    pub(in crate::exec) fn spawn(self: &Arc<Self>, mut command: Command, stdin: Stdio) -> Result<Tree, ToolError> {
        let mark = random_name("run_")?;
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).env(MARK, &mark);
        let mut wrapped = CommandWrap::from(command);
        #[cfg(unix)]
        wrapped.wrap(process_wrap::tokio::ProcessGroup::leader());
        #[cfg(windows)]
        wrapped.wrap(process_wrap::tokio::JobObject);
        wrapped.wrap(process_wrap::tokio::KillOnDrop);

        // Without a note the tree would outlive a killed daemon; then it must not run at all.
        self.write_note(&mark, None).map_err(|e| not_started("the process cannot be noted", &e))?;
        {
            // No tree may start behind the back of `close`.
            let mut state = self.state.lock();
            if state.closed {
                let _ = std::fs::remove_file(self.notes.join(&mark));
                return Err(stopping());
            }
            state.starting += 1;
        }
        // Not under the lock: what hangs here, on a folder whose disk does not answer, hangs alone.
        let spawned = wrapped.spawn().map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => ToolError::new(Code::NotFound, "no such program"),
            io::ErrorKind::InvalidInput => invalid("the program cannot be started with these arguments"),
            _ => not_started("the program cannot be started", &e),
        });
        let group = spawned.as_ref().ok().and_then(|child| child.id());
        let closed = {
            let mut state = self.state.lock();
            state.starting -= 1;
            state.living.extend(group);
            state.closed
        };
        self.gone.notify_waiters();
        let child = spawned.inspect_err(|_| drop(std::fs::remove_file(self.notes.join(&mark))))?;
        let group = group.unwrap_or_default();
        let tree = Tree { trees: Arc::clone(self), child, group, mark };
        if closed {
            // Dropped, it is ended.
            return Err(stopping());
        }
        self.write_note(&tree.mark, Some(group)).map_err(|e| io_error("the process cannot be noted", &e))?;
        Ok(tree)
    }

    /// Adds a line to a tree's note; what stood there stays, for a crash in the middle.
    fn write_note(&self, mark: &str, pid: Option<u32>) -> io::Result<()> {
        let started = pid.and_then(identity::started);
        let note = Note { pid, started, boot: self.boot.clone(), mark: mark.to_owned() };
        let mut options = std::fs::OpenOptions::new();
        options.append(true).create(true);
        serde_json::to_string(&note)
            .map_err(io::Error::other)
            .and_then(|line| options.open(self.notes.join(mark))?.write_all((line + "\n").as_bytes()))
    }

    /// Lets no tree start any more, tells every owner of one to end it, and waits until all are gone.
    pub(crate) async fn close(&self) {
        self.state.lock().closed = true;
        self.closing.cancel();
        let all_gone = async {
            loop {
                let told = self.gone.notified();
                if self.state.lock().is_idle() {
                    break;
                }
                told.await;
            }
        };
        // Asking, killing and reaping take TREE_KILL_WAIT each at most. A process that the kernel does not let go must not
        // hold the stop up.
        let _ = tokio::time::timeout(3 * limits::TREE_KILL_WAIT, all_gone).await;
    }

    /// Tells when no tree may live any longer.
    pub(super) fn closing(&self) -> &CancellationToken {
        &self.closing
    }

    pub(in crate::exec) fn counts(&self) -> TreeCounts {
        let state = self.state.lock();
        TreeCounts { running: state.living.len(), escaped: state.escaped, leftovers_ended: state.leftovers }
    }
}

/// Kills what left its tree, wherever environments can be seen. Those it may have started meanwhile are killed too.
pub(crate) async fn end_escaped(mark: &str) {
    let end = async {
        loop {
            let left = identity::marked(&format!("{MARK}={mark}"));
            if left.is_empty() {
                return;
            }
            left.iter().for_each(|process| group::kill_one(process.pid));
            tokio::time::sleep(LOOK).await;
        }
    };
    // One that the kernel does not let go is not waited for.
    let _ = tokio::time::timeout(limits::TREE_KILL_WAIT, end).await;
}

impl Tree {
    /// What everything that it starts carries in its environment.
    pub(super) fn mark(&self) -> &str {
        &self.mark
    }

    pub(super) fn stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin().take()
    }

    pub(super) fn output(&mut self) -> (Option<ChildStdout>, Option<ChildStderr>) {
        (self.child.stdout().take(), self.child.stderr().take())
    }

    /// Waits for the program itself. What it started may live on until [`Tree::end`].
    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Whether the group still has a living member.
    pub(super) fn lives(&self) -> bool {
        group::lives(self.group)
    }

    /// Asks the tree to end and waits a while for it, or until `now`. Returns the program's exit if it came.
    pub(super) async fn ask(&mut self, now: &CancellationToken) -> Option<ExitStatus> {
        if now.is_cancelled() {
            return None;
        }
        group::signal(self.group, Signal::Term);
        tokio::select! {
            gone = tokio::time::timeout(limits::TREE_KILL_WAIT, self.until_gone()) => gone.ok().flatten(),
            () = now.cancelled() => None,
        }
    }

    /// Ends what still lives: kills, and waits until it is gone. Returns the program's exit and the escaped processes.
    pub(super) async fn end(mut self) -> (Option<ExitStatus>, Vec<u32>) {
        // The group may outlive its leader; the signal goes to whoever is left.
        group::signal(self.group, Signal::Kill);
        let _ = self.child.start_kill();
        let status = tokio::time::timeout(limits::TREE_KILL_WAIT, self.until_gone()).await;
        (status.ok().flatten(), self.escaped())
    }

    async fn until_gone(&mut self) -> Option<ExitStatus> {
        let status = self.child.wait().await.ok();
        while self.lives() {
            tokio::time::sleep(LOOK).await;
        }
        status
    }

    /// Living processes with this tree's mark outside its group.
    fn escaped(&self) -> Vec<u32> {
        let marked = identity::marked(&format!("{MARK}={}", self.mark));
        let escaped: Vec<u32> = marked.iter().filter(|p| p.group != self.group).map(|p| p.pid).collect();
        self.trees.state.lock().escaped += escaped.len() as u64;
        escaped
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if self.lives() {
            group::signal(self.group, Signal::Kill);
        }
        let _ = std::fs::remove_file(self.trees.notes.join(&self.mark));
        self.trees.state.lock().living.remove(&self.group);
        self.trees.gone.notify_waiters();
    }
}

/// Ends a tree of a killed predecessor, if its note still means the same processes.
fn end_leftover(note: &Note) -> bool {
    let marked = identity::marked(&format!("{MARK}={}", note.mark));
    let Some(group) = note.pid else {
        // It was killed while it started a program: only the mark tells which.
        marked.iter().filter(|p| p.pid == p.group).for_each(|p| group::signal(p.group, Signal::Kill));
        return !marked.is_empty();
    };
    let leader = note.started.is_some() && identity::started(group) == note.started;
    let ours = leader || marked.iter().any(|p| p.group == group);
    if ours {
        group::signal(group, Signal::Kill);
    }
    ours
}

fn stopping() -> ToolError {
    ToolError::nothing_done(Code::Unavailable, "this device is stopping")
}

/// The error of a program that did not start. Where only a resource is short, the same call may be sent again.
fn not_started(what: &str, error: &io::Error) -> ToolError {
    let told = io_error(what, error);
    #[cfg(unix)]
    let no_descriptor = matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE));
    #[cfg(not(unix))]
    let no_descriptor = false;
    match error.kind() {
        _ if no_descriptor => ToolError::nothing_done(Code::Unavailable, told.message),
        io::ErrorKind::WouldBlock | io::ErrorKind::OutOfMemory => {
            ToolError::nothing_done(Code::Unavailable, told.message)
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ToolError::nothing_done(told.code, told.message),
        _ => told,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_program_that_lacked_a_resource_may_be_started_again_and_one_that_cannot_run_may_not() {
        for (errno, code, retryable) in [
            (libc::EMFILE, Code::Unavailable, true),
            (libc::ENFILE, Code::Unavailable, true),
            (libc::EAGAIN, Code::Unavailable, true),
            (libc::ENOSPC, Code::StorageFull, true),
            (libc::ENOEXEC, Code::ExecutionFailed, false),
            (libc::EACCES, Code::PermissionDenied, false),
        ] {
            let error = not_started("x", &io::Error::from_raw_os_error(errno));
            assert_eq!((error.code, error.retryable), (code, retryable), "{errno}");
        }
    }
}
