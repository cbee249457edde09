//! Git projects, with bare repositories as remotes.

use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

use super::super::git::AtWork;
use super::super::locks::{Note, Place};
use super::*;

fn git(dir: &Path, arguments: &[&str]) -> String {
    let out = Command::new("git").args(arguments).current_dir(dir).output().unwrap();
    assert!(out.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap().trim_end().to_owned()
}

/// A project with one commit, its remote, and a colleague's clone of that.
struct Team {
    stage: Stage,
    remote: TempDir,
    colleague: TempDir,
}

fn named(dir: &Path) {
    git(dir, &["config", "user.name", "A U Thor"]);
    git(dir, &["config", "user.email", "a@example.com"]);
    git(dir, &["config", "commit.gpgsign", "false"]);
}

impl Team {
    fn new() -> Team {
        Team::with(Profile::Agent)
    }

    fn with(profile: Profile) -> Team {
        let team = Team {
            stage: Stage::with("https://relay.example", profile),
            remote: TempDir::new().unwrap(),
            colleague: TempDir::new().unwrap(),
        };
        git(team.remote.path(), &["init", "-q", "--bare", "-b", "main"]);
        let url = format!("file://{}", team.remote.path().display());
        let project = team.project();
        std::fs::create_dir(&project).unwrap();
        git(&project, &["init", "-q", "-b", "main"]);
        named(&project);
        git(&project, &["remote", "add", "origin", &url]);
        std::fs::write(project.join("a"), "1\n").unwrap();
        git(&project, &["add", "."]);
        git(&project, &["commit", "-q", "-m", "First"]);
        git(&project, &["push", "-q", "origin", "main"]);
        git(team.colleague.path(), &["clone", "-q", &url, "."]);
        named(team.colleague.path());
        team
    }

    fn project(&self) -> PathBuf {
        self.stage.path("app")
    }

    fn write(&self, name: &str, content: &str) {
        std::fs::write(self.project().join(name), content).unwrap();
    }

    /// The colleague commits a file to a branch and pushes it.
    fn colleague_pushes(&self, branch: &str, name: &str, content: &str) -> String {
        let dir = self.colleague.path();
        git(dir, &["checkout", "-q", "-B", branch]);
        std::fs::write(dir.join(name), content).unwrap();
        git(dir, &["add", "."]);
        git(dir, &["commit", "-q", "-m", "Theirs"]);
        git(dir, &["push", "-q", "origin", branch]);
        git(dir, &["rev-parse", "HEAD"])
    }

    async fn sync(&self, more: Value) -> Result<Value, Failure> {
        let mut project = json!({"path": "app"});
        project.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let done = self.stage.perform(json!({"type": "sync_workspace", "projects": [project]})).await?;
        Ok(done["projects"][0].clone())
    }

    async fn commit(&self) -> Result<Value, Failure> {
        self.sync(json!({"commit": "Ours"})).await
    }

    /// Everything of the project that a step may have changed.
    fn state(&self) -> [String; 4] {
        let project = self.project();
        [
            git(&project, &["rev-parse", "HEAD"]),
            git(&project, &["status", "--porcelain"]),
            git(&project, &["diff", "--cached"]),
            git(&project, &["symbolic-ref", "HEAD"]),
        ]
    }

    fn head(&self) -> String {
        git(&self.project(), &["rev-parse", "HEAD"])
    }

    fn theirs(&self, branch: &str) -> String {
        git(self.remote.path(), &["rev-parse", branch])
    }
}

#[tokio::test]
async fn a_project_that_is_behind_is_fast_forwarded() {
    let team = Team::new();
    let before = team.head();
    let pushed = team.colleague_pushes("main", "b", "2\n");
    team.write("unrelated", "mine\n");
    let done = team.sync(json!({})).await.unwrap();
    assert_eq!(done, json!({"path": "app", "branch": "main", "state": "updated", "before": before, "after": pushed}));
    assert_eq!((team.head(), team.stage.read("app/b")), (pushed.clone(), "2\n".into()));
    assert_eq!(team.stage.read("app/unrelated"), "mine\n");
    assert_eq!(team.sync(json!({})).await.unwrap()["state"], "current");
    git(&team.project(), &["commit", "-q", "--allow-empty", "-m", "Mine"]);
    assert_eq!(team.sync(json!({})).await.unwrap()["state"], "ahead");
}

#[tokio::test]
async fn what_a_fast_forward_would_overwrite_is_a_conflict_and_stays() {
    let team = Team::new();
    team.colleague_pushes("main", "a", "theirs\n");
    team.colleague_pushes("main", "ignored", "theirs\n");
    std::fs::write(team.project().join(".git/info/exclude"), "ignored\n").unwrap();
    team.write("a", "mine\n");
    let before = team.state();
    let failure = team.sync(json!({})).await.unwrap_err();
    assert_eq!(failure.code, Code::Conflict);
    assert!(failure.message.starts_with("app: error: Your local changes"), "{}", failure.message);
    assert_eq!((team.state(), team.stage.read("app/a")), (before, "mine\n".into()));
    team.write("a", "1\n");
    team.write("ignored", "mine\n");
    assert_eq!(team.sync(json!({})).await.unwrap_err().code, Code::Conflict);
    assert_eq!(team.stage.read("app/ignored"), "mine\n");
}

#[tokio::test]
async fn branches_that_diverged_are_a_conflict_either_way() {
    let team = Team::new();
    team.colleague_pushes("main", "b", "2\n");
    team.colleague_pushes("main", "b", "3\n");
    team.write("c", "mine\n");
    git(&team.project(), &["add", "."]);
    git(&team.project(), &["commit", "-q", "-m", "Mine"]);
    team.write("d", "more\n");
    let before = team.state();
    let why = "app: it has diverged, 1 commits here and 2 at `origin`: merge or rebase in the project, then sync again";
    assert_eq!(team.sync(json!({})).await, Err(Failure::new(Code::Conflict, why)));
    assert_eq!(team.commit().await, Err(Failure::new(Code::Conflict, why)));
    assert_eq!(team.state(), before);
}

#[tokio::test]
async fn a_branch_that_is_not_checked_out_is_moved_without_touching_files() {
    let team = Team::new();
    let pushed = team.colleague_pushes("other", "b", "2\n");
    let here = team.head();
    let ask = || team.sync(json!({"branch": "other"}));
    let done = ask().await.unwrap();
    assert_eq!((&done["state"], &done["before"], &done["after"]), (&json!("updated"), &Value::Null, &json!(pushed)));
    assert_eq!(git(&team.project(), &["rev-parse", "other"]), pushed);
    assert_eq!((team.head(), team.project().join("b").exists()), (here, false));
    let moved = team.colleague_pushes("other", "b", "3\n");
    git(&team.project(), &["worktree", "add", "-q", "../second", "other"]);
    assert_eq!(ask().await.unwrap_err().code, Code::Conflict);
    git(&team.project(), &["worktree", "remove", "../second"]);
    assert_eq!(ask().await.unwrap()["after"], json!(moved));
    assert_eq!(team.sync(json!({"branch": "none"})).await.unwrap_err().code, Code::NotFound);
}

#[tokio::test]
async fn everything_that_changed_is_committed_and_pushed() {
    let team = Team::new();
    let before = team.head();
    team.write("a", "changed\n");
    team.write("new", "new\n");
    let done = team.commit().await.unwrap();
    assert_eq!(
        (&done["state"], &done["before"], &done["after"]),
        (&json!("pushed"), &json!(before), &json!(team.head()))
    );
    assert_eq!(team.theirs("main"), team.head());
    assert_eq!(git(&team.project(), &["log", "-1", "--format=%an %s", "--", "new"]), "A U Thor Ours");
    assert_eq!(git(&team.project(), &["status", "--porcelain"]), "");
    let again = team.commit().await.unwrap();
    assert_eq!((&again["state"], &again["after"]), (&json!("nothing_to_do"), &json!(team.head())));
    // What was committed and never arrived only needs to be pushed.
    git(&team.project(), &["commit", "-q", "--allow-empty", "-m", "Mine"]);
    assert_eq!(team.commit().await.unwrap()["state"], "pushed");
    assert_eq!(team.theirs("main"), team.head());
    git(&team.project(), &["checkout", "-q", "-b", "fresh"]);
    assert_eq!(team.commit().await.unwrap()["state"], "pushed");
    assert_eq!(team.theirs("fresh"), team.head());
    assert_eq!(team.sync(json!({"branch": "main", "commit": "Ours"})).await.unwrap_err().code, Code::Conflict);
}

#[tokio::test]
async fn what_a_crash_left_of_our_own_writes_is_not_committed() {
    let team = Team::new();
    std::fs::create_dir(team.project().join("sub")).unwrap();
    for name in [".holdfast-x.part", "sub/.holdfast-y", "sub/new"] {
        team.write(name, "x\n");
    }
    assert_eq!(team.commit().await.unwrap()["state"], "pushed");
    assert_eq!(git(&team.project(), &["ls-files"]), "a\nsub/new");
}

#[tokio::test]
async fn one_operation_works_in_a_project_at_a_time() {
    let team = Team::new();
    let (first, second) = tokio::join!(team.sync(json!({})), team.sync(json!({})));
    assert_eq!(first.unwrap()["state"], "current");
    assert_eq!(second.unwrap_err().code, Code::Busy);
    assert_eq!(team.sync(json!({})).await.unwrap()["state"], "current");
}

#[tokio::test]
async fn a_push_that_is_refused_leaves_the_project_as_it_was() {
    let team = Team::new();
    let hook = team.remote.path().join("hooks/pre-receive");
    std::fs::write(&hook, "#!/bin/sh\necho main is protected >&2\nexit 1\n").unwrap();
    std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    team.write("a", "staged\n");
    git(&team.project(), &["add", "a"]);
    team.write("a", "changed\n");
    team.write("new", "new\n");
    let before = team.state();
    let failure = team.commit().await.unwrap_err();
    assert_eq!(failure.code, Code::ExecutionFailed);
    assert!(failure.message.contains("pre-receive hook declined"), "{}", failure.message);
    assert_eq!((team.state(), team.stage.read("app/a")), (before, "changed\n".into()));
}

#[tokio::test]
async fn what_the_remote_has_and_the_project_has_not_comes_first() {
    let team = Team::new();
    team.colleague_pushes("main", "b", "2\n");
    team.write("new", "new\n");
    let before = team.state();
    let why = "app: `origin` has 1 commits that are not here: fast-forward first";
    assert_eq!(team.commit().await, Err(Failure::new(Code::Conflict, why)));
    assert_eq!(team.state(), before);
    assert_eq!(team.sync(json!({})).await.unwrap()["state"], "updated");
    assert_eq!(team.commit().await.unwrap()["state"], "pushed");
}

#[tokio::test]
async fn a_merge_under_way_and_files_in_conflict_are_left_to_their_owner() {
    let team = Team::new();
    let project = team.project();
    git(&project, &["checkout", "-q", "-b", "side"]);
    team.write("a", "side\n");
    git(&project, &["commit", "-q", "-am", "Side"]);
    git(&project, &["checkout", "-q", "main"]);
    team.write("a", "main\n");
    git(&project, &["commit", "-q", "-am", "Main"]);
    let _ = Command::new("git").args(["merge", "-q", "side"]).current_dir(&project).output().unwrap();
    assert_eq!(git(&project, &["status", "--porcelain"]), "UU a");
    let failure = team.commit().await.unwrap_err();
    assert_eq!(failure.message, "app: a merge is not finished: finish or abort it, then sync again");
    std::fs::remove_file(project.join(".git/MERGE_HEAD")).unwrap();
    let failure = team.commit().await.unwrap_err();
    assert_eq!(failure.message, "app: files are in conflict: resolve them, then sync again");
    assert_eq!(git(&project, &["status", "--porcelain"]), "UU a");
}

#[tokio::test]
async fn nobody_commits_without_a_name() {
    let team = Team::new();
    git(&team.project(), &["config", "--unset", "user.email"]);
    team.write("new", "new\n");
    let before = team.state();
    assert_eq!(team.commit().await.unwrap_err().code, Code::ExecutionFailed);
    assert_eq!(team.state(), before);
}

#[tokio::test]
async fn nothing_that_the_repository_names_is_run() {
    let team = Team::new();
    let (project, marker) = (team.project(), team.stage.path("ran"));
    for hook in
        ["pre-commit", "commit-msg", "post-commit", "pre-push", "post-merge", "post-checkout", "reference-transaction"]
    {
        let path = project.join(".git/hooks").join(hook);
        std::fs::write(&path, format!("#!/bin/sh\ntouch {}\n", marker.display())).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    let touch = format!("touch {}", marker.display());
    for key in [
        "core.fsmonitor",
        "core.sshCommand",
        "core.editor",
        "gpg.program",
        "remote.origin.uploadpack",
        "remote.origin.receivepack",
    ] {
        git(&project, &["config", key, &touch]);
    }
    git(&project, &["config", "commit.gpgsign", "true"]);
    team.write("new", "new\n");
    assert_eq!(team.commit().await.unwrap()["state"], "pushed");
    team.colleague_pushes("next", "b", "2\n");
    assert_eq!(team.sync(json!({"branch": "next"})).await.unwrap()["state"], "updated");
    let branch = json!({"type": "create_project_branch", "path": "app", "branch": "mine"});
    team.stage.perform(branch).await.unwrap();
    assert!(!marker.exists());
    for key in ["filter.x.clean", "credential.helper", "credential.https://h.example.helper"] {
        git(&project, &["config", key, &touch]);
        let failure = team.sync(json!({})).await.unwrap_err();
        assert_eq!(failure.code, Code::PolicyDenied, "{key}");
        git(&project, &["config", "--unset", key]);
    }
    assert!(!marker.exists());
}

#[tokio::test]
async fn only_projects_of_the_workspace_are_touched_and_only_where_programs_may_run() {
    let team = Team::new();
    std::fs::create_dir(team.project().join("sub")).unwrap();
    let path = |path: &str| team.stage.perform(json!({"type": "sync_workspace", "projects": [{"path": path}]}));
    assert_eq!(path("app/sub").await.unwrap_err().code, Code::NotFound);
    assert_eq!(path("none").await.unwrap_err().code, Code::NotFound);
    let colleague = team.colleague.path().to_str().unwrap();
    assert_eq!(path(colleague).await.unwrap_err().code, Code::PathBoundary);
    assert_eq!(team.sync(json!({"remote": "none"})).await.unwrap_err().code, Code::NotFound);
    git(&team.project(), &["config", "core.worktree", colleague]);
    assert_eq!(path("app").await.unwrap_err().code, Code::PathBoundary);
    let edit = Team::with(Profile::Edit);
    assert_eq!(edit.sync(json!({})).await.unwrap_err().code, Code::PolicyDenied);
}

#[tokio::test]
async fn a_remote_on_this_machine_s_disk_is_none() {
    let mut team = Team::new();
    team.stage.performer.transports = "https:ssh";
    assert_eq!(team.sync(json!({})).await.unwrap_err().code, Code::PolicyDenied);
}

#[tokio::test]
async fn a_remote_that_cannot_be_reached_is_tried_until_the_operation_stops() {
    let mut team = Team::new();
    team.stage.performer.transports = "https";
    // Nobody listens there.
    git(&team.project(), &["remote", "set-url", "origin", "https://127.0.0.1:1/x.git"]);
    let stop = async {
        tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
        team.stage.stop.cancel();
    };
    let (done, ()) = tokio::join!(team.sync(json!({})), stop);
    assert_eq!(done.unwrap_err().code, Code::Cancelled);
}

#[tokio::test]
async fn a_branch_is_made_and_checked_out() {
    let team = Team::new();
    let branch = |branch: &str, from: Option<&str>| {
        let mut request = json!({"type": "create_project_branch", "path": "app", "branch": branch});
        if let Some(from) = from {
            request["from"] = json!(from);
        }
        team.stage.perform(request)
    };
    let first = team.head();
    team.write("a", "changed\n");
    assert_eq!(branch("one", None).await.unwrap(), json!({"path": "app", "branch": "one", "from": first}));
    assert_eq!((&*team.state()[3], team.stage.read("app/a")), ("refs/heads/one", "changed\n".into()));
    assert_eq!(branch("one", None).await.unwrap_err().code, Code::Conflict);
    assert_eq!(branch("two", Some("none")).await.unwrap_err().code, Code::NotFound);
    assert_eq!(branch("a..b", None).await.unwrap_err().code, Code::InvalidRequest);
    git(&team.project(), &["commit", "-q", "-am", "Changed"]);
    team.write("a", "mine\n");
    let before = team.state();
    assert_eq!(branch("two", Some("main")).await.unwrap_err().code, Code::Conflict, "it would overwrite a change");
    assert_eq!(team.state(), before);
    team.write("a", "changed\n");
    assert_eq!(branch("two", Some("main")).await.unwrap()["from"], first);
}

/// As a git that was killed leaves it.
fn lock(project: &Path, name: &str) -> PathBuf {
    let lock = project.join(".git").join(name);
    std::fs::write(&lock, "").unwrap();
    lock
}

#[tokio::test]
async fn what_somebody_else_locked_stays_and_the_error_says_what_to_do() {
    let team = Team::new();
    team.colleague_pushes("main", "b", "2\n");
    let index = lock(&team.project(), "index.lock");
    let failure = team.sync(json!({})).await.unwrap_err();
    let why =
        "app: .git/index.lock exists: another git works in this project, or was killed in it; if none does, remove it";
    assert_eq!((failure.code, failure.retryable, &*failure.message), (Code::Busy, true, why));
    assert!(index.exists());
    std::fs::remove_file(index).unwrap();
    let branch = lock(&team.project(), "refs/heads/main.lock");
    let failure = team.sync(json!({})).await.unwrap_err();
    assert_eq!(failure.code, Code::Busy);
    assert!(failure.message.contains(".git/refs/heads/main.lock exists"), "{}", failure.message);
    std::fs::remove_file(branch).unwrap();
    assert_eq!(team.sync(json!({})).await.unwrap()["state"], "updated");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_a_killed_step_of_ours_left_locked_is_unlocked_by_the_next_process() {
    let mut team = Team::new();
    let project = team.project().canonicalize().unwrap();
    team.colleague_pushes("main", "b", "2\n");
    let place = Place { project: project.clone(), own: project.join(".git"), shared: project.join(".git") };
    let notes = team.stage.data.path().join("git");
    // Killed: it never comes to its end.
    std::mem::forget(Note::put(&notes, place, SystemTime::now()).unwrap());
    let note = std::fs::read_dir(&notes).unwrap().next().unwrap().unwrap().path();
    let began = SystemTime::now() - Duration::from_secs(10);
    std::fs::File::options().write(true).open(note).unwrap().set_modified(began).unwrap();
    let left = ["index.lock", "HEAD.lock", "refs/heads/main.lock"].map(|name| lock(&project, name));
    // Not git's.
    let other = lock(&project, "description.lock");
    team.stage.performer.at_work = AtWork::new(notes.clone());
    assert_eq!(team.sync(json!({})).await.unwrap()["state"], "updated");
    assert!(!left.iter().any(|lock| lock.exists()));
    assert!(other.exists());
    assert_eq!(std::fs::read_dir(notes).unwrap().count(), 0);
}
