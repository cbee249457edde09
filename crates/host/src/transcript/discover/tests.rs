use std::time::{Duration, SystemTime};

use super::*;

/// Homes of three agents, and a project.
struct World {
    dir: tempfile::TempDir,
    homes: Homes,
}

impl World {
    fn new() -> World {
        let dir = tempfile::tempdir().unwrap();
        let home = |name: &str| Some(dir.path().join(name));
        let homes = Homes { claude: home("claude"), codex: home("codex"), generic: home("generic") };
        fs::create_dir_all(dir.path().join("my.project")).unwrap();
        World { dir, homes }
    }

    fn project(&self) -> String {
        real(&self.dir.path().join("my.project")).to_str().unwrap().to_owned()
    }

    fn write(&self, path: &str, seconds_ago: u64, text: &str) -> String {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        let then = SystemTime::now() - Duration::from_secs(seconds_ago);
        File::options().append(true).open(&path).unwrap().set_modified(then).unwrap();
        real(&path).to_str().unwrap().to_owned()
    }

    /// A transcript of Claude Code, in the folder of a project.
    fn claude(&self, project: &str, session: &str, seconds_ago: u64, entrypoint: &str) -> String {
        let [slug, _] = holdfast_core::transcript::discovery::slugs(project);
        let line =
            format!(r#"{{"type":"user","cwd":"{project}","sessionId":"{session}","entrypoint":"{entrypoint}"}}"#);
        let text = format!("{{\"type\":\"summary\"}}\nnot JSON\n{line}\n");
        self.write(&format!("claude/projects/{slug}/{session}.jsonl"), seconds_ago, &text)
    }

    fn record(&self, home: &str, pid: u32, session: &str, project: &str, more: &str) {
        let text = format!(r#"{{"pid":{pid},"sessionId":"{session}","cwd":"{project}","kind":"interactive"{more}}}"#);
        self.write(&format!("{home}/sessions/{pid}.json"), 0, &text);
    }

    fn rollout(&self, day: &str, session: &str, project: &str, seconds_ago: u64, source: &str) -> String {
        let text = format!(
            r#"{{"type":"session_meta","payload":{{"id":"{session}","cwd":"{project}","source":"{source}","x":"{}"}}}}"#,
            "instructions ".repeat(4000)
        );
        self.write(&format!("codex/sessions/{day}/rollout-2026-12-01T02-00-00-{session}.jsonl"), seconds_ago, &text)
    }

    async fn found(&self, wanted: Wanted) -> Vec<Found> {
        discover(self.homes.clone(), wanted).await
    }

    async fn here(&self) -> Vec<(String, bool)> {
        let wanted = Wanted { project: Some(self.dir.path().join("my.project")), ..Wanted::default() };
        self.found(wanted).await.into_iter().map(|found| (found.path.to_string(), found.live)).collect()
    }

    async fn session(&self, session: &str) -> Vec<String> {
        let wanted = Wanted { session: Some(session.to_owned()), ..Wanted::default() };
        self.found(wanted).await.into_iter().map(|found| found.path.to_string()).collect()
    }
}

#[tokio::test]
async fn of_a_project_all_sessions_with_a_person_are_found_the_living_one_first_and_then_the_newest() {
    let world = World::new();
    assert_eq!(world.here().await, []);
    let here = world.project();
    let living = world.claude(&here, "living", 500, "cli");
    let old = world.claude(&here, "old", 300, "cli");
    world.record("claude", std::process::id(), "living", &here, "");
    let rollout = world.rollout("2026/12/01", "r1", &here, 100, "cli");
    let generic = world.write(&format!("generic/projects/{}/g1.jsonl", here.replace('/', "-")), 200, "{}\n");
    // A script, an agent of an agent, another project whose folder has the same name, and one elsewhere.
    world.claude(&here, "script", 0, "sdk-cli");
    world.claude(&here, "agent-1", 0, "cli");
    world.claude(&here.replace("my.project", "my-project"), "other", 0, "cli");
    world.claude("/elsewhere", "elsewhere", 0, "cli");
    world.rollout("2026/12/01", "r2", &here, 0, "exec");
    world.rollout("2026/12/01", "r3", "/elsewhere", 0, "cli");
    let expected = [(living, true), (rollout, false), (generic, false), (old, false)];
    assert_eq!(world.here().await, expected);
}

#[tokio::test]
async fn a_dead_or_inherited_number_makes_nothing_live_and_a_script_stays_hidden_though_it_runs() {
    let world = World::new();
    let here = world.project();
    let mut child = std::process::Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    let dead = world.claude(&here, "dead", 200, "cli");
    world.record("claude", child.id(), "dead", &here, "");
    let mut sleeper = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let inherited = world.claude(&here, "inherited", 100, "cli");
    world.record("claude", sleeper.id(), "inherited", &here, r#","updatedAt":1000"#);
    let folder = world.dir.path().join("claude/sessions");
    let record = File::options().append(true).open(folder.join(format!("{}.json", sleeper.id()))).unwrap();
    record.set_modified(SystemTime::now() - Duration::from_secs(1000)).unwrap();
    let background = world.write("generic/sessions/1.json", 0, r#"{"sessionId":"b","cwd":"/","kind":"background"}"#);
    assert_eq!(world.here().await, [(inherited, false), (dead, false)], "{background}");
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
}

#[tokio::test]
async fn a_living_session_that_wrote_nothing_yet_is_found_by_its_record_and_one_above_the_asker_before_all() {
    let world = World::new();
    let here = world.project();
    let other = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let written = world.claude(&here, "written", 0, "cli");
    world.record("claude", other.id(), "written", &here, "");
    let path = real(world.dir.path()).join("generic/named.jsonl").to_str().unwrap().to_owned();
    world.record("generic", std::process::id(), "g", &here, &format!(r#","transcriptPath":"{path}""#));
    assert_eq!(world.here().await, [(written.clone(), true), (path.clone(), true)]);
    // A child of this process asks.
    let child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let found = world.found(Wanted { asker: Some(child.id()), ..Wanted::default() }).await;
    let first = Found {
        path: path.into(),
        agent: Agent::Generic,
        session: Some("g".into()),
        project: Some(here),
        live: true,
        modified: None,
    };
    assert_eq!(found.first(), Some(&first));
    assert_eq!(found.last().map(|found| found.path.to_string()), Some(written));
    for mut process in [other, child] {
        process.kill().unwrap();
        process.wait().unwrap();
    }
}

#[tokio::test]
async fn a_session_is_found_by_its_name_wherever_it_works_and_whoever_began_it() {
    let world = World::new();
    let claude = world.claude("/elsewhere", "abc-1", 0, "sdk-cli");
    let rollout = world.rollout("2025/01/09", "0199-aa", "/elsewhere", 100_000, "exec");
    assert_eq!(world.session("abc-1").await, [claude]);
    assert_eq!(world.session("0199-aa").await, [rollout]);
    for none in ["abc", "aa", "", "../elsewhere/abc-1", "abc-1/.", "*"] {
        assert_eq!(world.session(none).await, Vec::<String>::new(), "{none}");
    }
}

#[tokio::test]
async fn what_is_looked_at_is_bounded_and_the_newest_days_come_first() {
    let world = World::new();
    let here = world.project();
    for number in 0..limits::DISCOVERY_FILES as u64 + 10 {
        world.claude(&here, &format!("s{number}"), 1000 + number, "cli");
    }
    for (number, day) in ["2024/09/30", "2024/10/02", "2025/01/01", "2024/10/1"].into_iter().enumerate() {
        world.rollout(day, &format!("r{number}"), &here, 1, "cli");
    }
    let days: Vec<String> = rollouts_of(&world).iter().map(|s| s.found.session.clone().unwrap()).collect();
    assert_eq!(days, ["r2", "r1", "r3", "r0"]);
    assert_eq!(world.here().await.len(), limits::DISCOVERY_FOUND);
    let all = world.found(Wanted::default()).await;
    assert_eq!(all.len(), limits::DISCOVERY_FOUND);
    assert!(all.iter().all(|found| found.project.as_deref() == Some(&here)));
}

fn rollouts_of(world: &World) -> Vec<Sight> {
    rollouts::look(world.homes.codex.as_deref().unwrap(), &Wish::new(&Wanted::default()))
}

#[tokio::test]
async fn nothing_is_found_where_nothing_can_be_read() {
    let mut world = World::new();
    assert_eq!(world.found(Wanted::default()).await, []);
    world.write("claude/sessions/1.json", 0, "{");
    world.write("claude/projects/-x/empty.jsonl", 0, "");
    world.write("codex/sessions/2026/12/01/rollout-x.jsonl", 0, "{}\n");
    world.write("codex/sessions/2026/12/31", 0, "a file");
    std::os::unix::fs::symlink("/etc/passwd", world.dir.path().join("claude/projects/-x/link.jsonl")).unwrap();
    let found = world.found(Wanted::default()).await;
    let sessions: Vec<Option<&str>> = found.iter().map(|found| found.session.as_deref()).collect();
    assert_eq!(sessions, [Some("empty")], "it may have begun a moment ago");
    world.homes = Homes::default();
    assert_eq!(world.found(Wanted::default()).await, []);
}
