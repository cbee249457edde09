//! sync_workspace and create_project_branch: fast-forward, or commit and push; never a merge, never with force. What cannot be
//! done so is a conflict, and the project is as it was.

use std::path::Path;
use std::sync::Arc;

use holdfast_core::code::Code;
use holdfast_core::limits;
use holdfast_core::operation::{Failure, Project};
use holdfast_core::policy::Policy;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::file_sync::about;
use super::git::{AtWork, Tree, refusal, words};
use crate::exec::Env;
use crate::exec::git::{Git, find};

/// Files of a project change only by what is committed: a submodule is a project of its own.
const ALONE: [&str; 2] = ["-c", "submodule.recurse=false"];

/// What git projects are worked with.
pub(super) struct Projects<'a> {
    pub(super) env: &'a Arc<Env>,
    pub(super) policy: &'a Policy,
    pub(super) stop: &'a CancellationToken,
    pub(super) transports: &'a str,
    pub(super) at_work: &'a AtWork,
}

/// What happened to a branch.
struct Moved {
    state: &'static str,
    branch: String,
    before: Option<String>,
    after: Option<String>,
}

impl Projects<'_> {
    /// Brings projects up to date, or commits and pushes them, one after the other; the first that cannot be ends it.
    pub(super) async fn sync(&self, projects: &[Project]) -> Result<Value, Failure> {
        let mut done = Vec::new();
        for project in projects {
            let moved = self.one(project).await.map_err(|failure| {
                let failure = about(&project.path, failure);
                match done.len() {
                    0 => failure,
                    // Something was done, even if it may be asked again.
                    n => Failure {
                        message: format!("{} ({n} of {} done before)", failure.message, projects.len()),
                        ..failure
                    },
                }
            })?;
            let Moved { state, branch, before, after } = moved;
            done.push(
                json!({"path": project.path, "branch": branch, "state": state, "before": before, "after": after}),
            );
        }
        Ok(json!({"projects": done}))
    }

    async fn one(&self, project: &Project) -> Result<Moved, Failure> {
        let root = self.root(&project.path)?;
        let tree = Tree::open(self.git(&root), self.at_work).await?;
        let here = tree.ask(&["symbolic-ref", "--quiet", "--short", "HEAD"]).await?;
        let branch =
            project.branch.clone().or_else(|| here.clone()).ok_or_else(|| conflict("no branch is checked out"))?;
        if tree.ask(&["config", "--get", &format!("remote.{}.url", project.remote)]).await?.is_none() {
            return Err(Failure::new(Code::NotFound, format!("there is no remote `{}`", project.remote)));
        }
        let checked_out = here.as_deref() == Some(&*branch);
        let step = Step { tree: &tree, remote: &project.remote, branch: &branch };
        let moved = match &project.commit {
            Some(_) if !checked_out => Err(conflict("this branch is not the one that is checked out")),
            Some(message) => step.push(message).await,
            None => step.fast_forward(checked_out).await,
        };
        let (state, before, after) = moved?;
        Ok(Moved { state, branch, before, after })
    }

    /// Makes a branch and checks it out.
    pub(super) async fn branch(&self, path: &str, branch: &str, from: Option<&str>) -> Result<Value, Failure> {
        let root = self.root(path)?;
        let tree = Tree::open(self.git(&root), self.at_work).await?;
        if tree.ask(&["check-ref-format", "--branch", branch]).await?.as_deref() != Some(branch) {
            return Err(Failure::new(Code::InvalidRequest, "this is no name for a branch"));
        }
        if tree.commit(&format!("refs/heads/{branch}")).await?.is_some() {
            return Err(conflict("there is a branch with this name already"));
        }
        let start =
            match from {
                None => tree.commit("HEAD").await?,
                Some(from) => {
                    let start = tree.commit(from).await?;
                    Some(start.ok_or_else(|| {
                        Failure::new(Code::NotFound, "what the branch is to start from does not exist")
                    })?)
                }
            };
        let mut arguments =
            [&ALONE[..], &["switch", "--quiet", "--no-track", "--no-guess", "--create", branch]].concat();
        arguments.extend(start.as_deref());
        tree.must(&arguments, Code::Conflict).await?;
        Ok(json!({"path": path, "branch": branch, "from": start}))
    }

    /// The working tree that a path names: itself, not one around it.
    fn root(&self, path: &str) -> Result<std::path::PathBuf, Failure> {
        let found = find(self.env, self.policy, path)?;
        match found.below.as_os_str().is_empty() {
            true => Ok(found.root),
            false => Err(Failure::new(Code::NotFound, "this folder is no git project of its own")),
        }
    }

    fn git<'a>(&'a self, folder: &'a Path) -> Git<'a> {
        let Projects { env, policy, stop, transports, .. } = self;
        Git { env, policy, stop, folder, transports: Some(transports), timeout: limits::SYNC_GIT_TRY }
    }
}

impl Tree<'_> {
    /// The commit of a name.
    async fn commit(&self, name: &str) -> Result<Option<String>, Failure> {
        let name = format!("{name}^{{commit}}");
        self.ask(&["rev-parse", "--verify", "--quiet", "--end-of-options", &name]).await
    }

    /// How many commits are only here, and how many only there.
    async fn apart(&self, here: &str, there: &str) -> Result<(u64, u64), Failure> {
        let both = format!("{here}...{there}");
        let counts = self.must(&["rev-list", "--left-right", "--count", &both, "--"], Code::ExecutionFailed).await?;
        let mut counts = counts.split_whitespace().map(|count| count.parse().unwrap_or(0));
        Ok((counts.next().unwrap_or(0), counts.next().unwrap_or(0)))
    }
}

/// State, before, after.
type Done = (&'static str, Option<String>, Option<String>);

/// A branch of a project and its counterpart at a remote.
struct Step<'a> {
    tree: &'a Tree<'a>,
    remote: &'a str,
    branch: &'a str,
}

impl Step<'_> {
    /// The remote's branch as it is now; nothing if it has none.
    async fn fetch(&self) -> Result<Option<String>, Failure> {
        let Step { tree, remote, branch } = self;
        let tracking = format!("refs/remotes/{remote}/{branch}");
        let refspec = format!("+refs/heads/{branch}:{tracking}");
        let output = tree
            .talk(&[
                "fetch",
                "--quiet",
                "--no-tags",
                "--no-prune",
                "--no-recurse-submodules",
                "--upload-pack=git-upload-pack",
                "--",
                remote,
                &refspec,
            ])
            .await?;
        match output.status.success() {
            true => tree.commit(&tracking).await,
            false if output.said.contains("couldn't find remote ref") => Ok(None),
            false => Err(refusal(&output.said)),
        }
    }

    async fn fast_forward(&self, checked_out: bool) -> Result<Done, Failure> {
        let Step { tree, branch, remote } = self;
        let missing = || Failure::new(Code::NotFound, format!("`{remote}` has no branch `{branch}`"));
        let theirs = self.fetch().await?.ok_or_else(missing)?;
        let name = format!("refs/heads/{branch}");
        let ours = tree.commit(&name).await?;
        if let Some(ours) = &ours {
            match tree.apart(ours, &theirs).await? {
                (_, 0) if *ours == theirs => return Ok(("current", Some(ours.clone()), Some(theirs))),
                (_, 0) => return Ok(("ahead", Some(ours.clone()), Some(ours.clone()))),
                (0, _) => {}
                (here, there) => return Err(diverged(remote, here, there)),
            }
        }
        if checked_out {
            let merge =
                ["merge", "--quiet", "--ff-only", "--no-autostash", "--no-overwrite-ignore", "--no-verify-signatures"];
            let merge = [&ALONE[..], &merge, &[&theirs]].concat();
            tree.must(&merge, Code::Conflict).await?;
        } else {
            let elsewhere = tree.must(&["worktree", "list", "--porcelain"], Code::ExecutionFailed).await?;
            if elsewhere.lines().any(|line| line.strip_prefix("branch ") == Some(&name)) {
                return Err(conflict("this branch is checked out in another working tree"));
            }
            let was = ours.clone().unwrap_or_else(|| "0".repeat(theirs.len()));
            tree.must(&["update-ref", "-m", "fast-forward", &name, &theirs, &was], Code::Conflict).await?;
        }
        Ok(("updated", ours, Some(theirs)))
    }

    /// Commits everything that changed, and pushes.
    async fn push(&self, message: &str) -> Result<Done, Failure> {
        let Step { tree, branch, remote } = self;
        for unfinished in ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD"] {
            if tree.commit(unfinished).await?.is_some() {
                return Err(conflict("a merge is not finished: finish or abort it, then sync again"));
            }
        }
        let before = tree.commit("HEAD").await?;
        let theirs = self.fetch().await?;
        match (&before, &theirs) {
            (_, None) => {}
            (None, Some(_)) => return Err(conflict("nothing is committed here yet, but there: fast-forward first")),
            (Some(ours), Some(theirs)) => match tree.apart(ours, theirs).await? {
                (_, 0) => {}
                (0, there) => {
                    return Err(conflict(format!(
                        "`{remote}` has {there} commits that are not here: fast-forward first"
                    )));
                }
                (here, there) => return Err(diverged(remote, here, there)),
            },
        }
        let staged = tree.ask(&["write-tree"]).await?;
        let staged = staged.ok_or_else(|| conflict("files are in conflict: resolve them, then sync again"))?;
        let committed = match self.commit(message, before.as_deref()).await {
            Ok(committed) => committed,
            Err(failure) => {
                let _ = tree.ask(&["read-tree", "-m", &staged]).await;
                return Err(failure);
            }
        };
        let after = committed.clone().or_else(|| before.clone());
        if after.is_none() || after == theirs {
            return Ok(("nothing_to_do", before, after));
        }
        let refspec = format!("refs/heads/{branch}:refs/heads/{branch}");
        // What the network swallowed may have arrived: then the commit stays, and the same again only pushes it.
        let output = tree
            .talk(&[
                "push",
                "--quiet",
                "--porcelain",
                "--no-verify",
                "--no-signed",
                "--no-follow-tags",
                "--recurse-submodules=no",
                "--receive-pack=git-receive-pack",
                "--",
                remote,
                &refspec,
            ])
            .await
            .map_err(|failure| match committed {
                Some(_) if failure.code == Code::NetworkError => {
                    let message = format!("{}; the commit stays, and the same again pushes it", failure.message);
                    Failure { message, ..failure }
                }
                _ => failure,
            })?;
        if output.status.success() {
            return Ok(("pushed", before, after));
        }
        if committed.is_some() {
            self.undo(before.as_deref(), &staged).await?;
        }
        let answer = String::from_utf8_lossy(&output.bytes);
        let Some(rejected) = answer.lines().find(|line| line.starts_with('!')) else {
            return Err(refusal(&output.said));
        };
        Err(match rejected.contains("[remote rejected]") {
            true => Failure::new(Code::ExecutionFailed, format!("`{remote}` refused it: {}", words(rejected))),
            false => conflict(format!("`{remote}` has moved meanwhile: fast-forward, then sync again")),
        })
    }

    /// A commit of everything that changed; nothing if nothing did.
    async fn commit(&self, message: &str, before: Option<&str>) -> Result<Option<String>, Failure> {
        let tree = self.tree;
        // What a crash left of a write of ours is nobody's file.
        tree.must(&["add", "--all", "--", ":/", ":(exclude,top,glob)**/.holdfast-*"], Code::ExecutionFailed).await?;
        let now = tree.must(&["write-tree"], Code::Conflict).await?;
        let unchanged = match before {
            Some(before) => {
                tree.ask(&["rev-parse", "--verify", &format!("{before}^{{tree}}")]).await?.as_deref() == Some(&*now)
            }
            None => tree.ask(&["ls-tree", "--name-only", &now]).await?.is_none_or(|names| names.is_empty()),
        };
        if unchanged {
            return Ok(None);
        }
        let message = format!("--message={message}");
        let commit = ["commit", "--quiet", "--no-verify", "--no-gpg-sign", "--cleanup=whitespace", &message];
        // Nobody commits under a name that git made up.
        let commit = [&["-c", "user.useConfigOnly=true"][..], &commit].concat();
        tree.must(&commit, Code::ExecutionFailed).await?;
        tree.commit("HEAD").await
    }

    /// Takes a commit back that went nowhere; files are as they are, and what was staged is staged.
    async fn undo(&self, before: Option<&str>, staged: &str) -> Result<(), Failure> {
        let tree = self.tree;
        match before {
            Some(before) => tree.must(&["reset", "--quiet", "--soft", before], Code::ExecutionFailed).await?,
            None => tree.must(&["update-ref", "-d", "HEAD"], Code::ExecutionFailed).await?,
        };
        tree.must(&["read-tree", "-m", staged], Code::ExecutionFailed).await.map(drop)
    }
}

fn conflict(why: impl Into<String>) -> Failure {
    Failure::new(Code::Conflict, why)
}

fn diverged(remote: &str, here: u64, there: u64) -> Failure {
    conflict(format!(
        "it has diverged, {here} commits here and {there} at `{remote}`: merge or rebase in the project, then sync again"
    ))
}
