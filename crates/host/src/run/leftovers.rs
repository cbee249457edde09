//! Ending what a runner left behind when it was killed.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use holdfast_core::run::Identity;
use serde::Serialize;

/// What was done about the processes of a run whose runner is gone: evidence.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Leftovers {
    /// Its whole control group was ended: nothing can have escaped.
    pub scope_ended: bool,
    /// The program's process group was ended.
    pub group_ended: bool,
    /// Processes known to be the run's that were ended.
    pub ended: BTreeSet<u32>,
    /// Processes known to be the run's that still live.
    pub living: BTreeSet<u32>,
    /// A process that left the program's group and the run's mark behind would not have been found.
    pub may_have_escaped: bool,
}

/// Ends what the runner of a folder left running, and waits until it is gone, at most
/// [`TREE_KILL_WAIT`](holdfast_core::limits::TREE_KILL_WAIT). Only for a run whose runner is gone. Without a control group of
/// its own, a process that left the program's group and the run's mark behind is not found.
pub async fn kill_leftovers(folder: &Path, identity: &Identity) -> io::Result<Leftovers> {
    #[cfg(unix)]
    {
        // It looks through all processes, again and again.
        let (folder, identity) = (folder.to_path_buf(), identity.clone());
        let killing = tokio::task::spawn_blocking(move || unix::kill(&folder, &identity));
        killing.await.unwrap_or_else(|lost| Err(io::Error::other(lost)))
    }
    // A job object ends with the runner that has it.
    #[cfg(windows)]
    {
        let _ = (folder, identity);
        Ok(Leftovers::default())
    }
}

#[cfg(unix)]
mod unix {
    use std::path::PathBuf;
    use std::time::{Duration, Instant};

    use holdfast_core::limits;
    use holdfast_core::run::{Leader, Signal};

    use super::*;
    use crate::group::{self, MARK};
    use crate::identity::{self, Marked};
    use crate::run::folder::{LEADER, read};
    use crate::run::start::SCOPE;

    /// How often the dying are looked at.
    const LOOK: Duration = Duration::from_millis(20);

    pub(super) fn kill(folder: &Path, identity: &Identity) -> io::Result<Leftovers> {
        let mut left = Leftovers::default();
        // Nothing outlives a boot.
        if identity.boot != identity::boot() {
            return Ok(left);
        }
        let deadline = Instant::now() + limits::TREE_KILL_WAIT;
        let scope = scope(folder, identity);
        let mut groups = groups(folder, identity)?;
        left.group_ended = !groups.is_empty();
        loop {
            left.living = living(identity, scope.as_deref());
            // The number of one that is gone may be somebody else's soon.
            groups.retain(|group| group::lives(*group));
            groups.iter().for_each(|group| group::signal(*group, Signal::Kill));
            left.living.iter().for_each(|pid| group::kill_one(*pid));
            left.ended.extend(&left.living);
            if (left.living.is_empty() && groups.is_empty()) || Instant::now() >= deadline {
                break;
            }
            std::thread::sleep(LOOK);
        }
        left.ended.retain(|pid| !left.living.contains(pid));
        left.scope_ended = scope.is_some() && left.living.is_empty();
        left.may_have_escaped = !left.scope_ended;
        Ok(left)
    }

    /// The groups of the program, if its number still means it.
    fn groups(folder: &Path, identity: &Identity) -> io::Result<Vec<u32>> {
        // One that a killed runner wrote in part says nothing.
        let leader: Option<Leader> = match read(&folder.join(LEADER)) {
            Err(e) if e.kind() != io::ErrorKind::InvalidData => return Err(e),
            read => read.ok().flatten(),
        };
        let Some(Leader { pid, started }) = leader else { return Ok(Vec::new()) };
        let leads = started.is_some() && identity::started(pid) == started;
        let mut groups = match leads || marked(identity).iter().any(|process| process.group == pid) {
            true => identity::groups_of_session(pid),
            false => Vec::new(),
        };
        groups.retain(|group| group::lives(*group));
        Ok(groups)
    }

    /// The folder of the run's own control group.
    fn scope(folder: &Path, identity: &Identity) -> Option<PathBuf> {
        let path = Path::new(identity.scope.as_deref()?);
        let name = format!("{SCOPE}{}.scope", folder.file_name()?.to_str()?);
        (path.file_name()?.to_str()? == name).then_some(())?;
        let scope = Path::new("/sys/fs/cgroup").join(path.strip_prefix("/").ok()?);
        scope.is_dir().then_some(scope)
    }

    /// Living processes of the run.
    fn living(identity: &Identity, scope: Option<&Path>) -> BTreeSet<u32> {
        let mut all: BTreeSet<u32> = marked(identity).iter().map(|process| process.pid).collect();
        if let Some(scope) = scope {
            // Ends everything in it at once, also what is being forked; older kernels cannot.
            let _ = std::fs::write(scope.join("cgroup.kill"), "1");
            let members = std::fs::read_to_string(scope.join("cgroup.procs")).unwrap_or_default();
            all.extend(members.lines().filter_map(|line| line.parse::<u32>().ok()));
        }
        all
    }

    /// Living processes that carry the run's mark, if that is known.
    fn marked(identity: &Identity) -> Vec<Marked> {
        match identity.mark.as_str() {
            "" => Vec::new(),
            mark => identity::marked(&format!("{MARK}={mark}")),
        }
    }
}
