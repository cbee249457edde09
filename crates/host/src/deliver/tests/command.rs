use super::*;

fn command(argv: &[&str]) -> BindingConfig {
    BindingConfig { command: argv.iter().map(|a| (*a).to_owned()).collect(), ..binding(Delivery::Command) }
}

#[tokio::test]
async fn the_program_reads_the_message_and_its_arguments_have_only_what_the_person_at_this_machine_wrote() {
    let bench = Bench::new();
    let project = bench.path("pro ject");
    std::fs::create_dir(&project).unwrap();
    let script = bench.script("agent", r#"cat > input; printf '%s\n' "$@" > args; pwd > where"#);
    let mut config = command(&[&script, "--resume", "{session}", "in={project}:{session}", "{other}"]);
    config.project = Some(project.to_str().unwrap().into());
    // A name that looks like a pattern is none.
    let session: Session = Arc::new(|| Some("{project}".into()));
    let agent = bench.courier.agent(&config, session).unwrap().unwrap();
    agent.deliver(&said(1, "rm -rf {session} $(x)"), &Prepared::default()).await.unwrap();
    assert_eq!(
        bench.read("pro ject/input"),
        "From: Ann (7)\nChannel: 100\nMessage: m1\nTime: 2026-12-01T04:00:00Z\n\nrm -rf {session} $(x)\n"
    );
    let place = project.to_str().unwrap();
    assert_eq!(bench.read("pro ject/args"), format!("--resume\n{{project}}\nin={place}:{{project}}\n{{other}}\n"));
    assert_eq!(bench.read("pro ject/where").trim(), place);
}

#[tokio::test]
async fn a_failed_program_is_a_failed_delivery_with_its_last_words() {
    let bench = Bench::new();
    let deliver = async |argv: &[&str]| bench.agent(&command(argv)).deliver(&said(1, "x"), &Prepared::default()).await;
    let why = deliver(&["sh", "-c", "echo first >&2; echo 'no such session' >&2; echo out; exit 3"]).await;
    assert_eq!(why, Err(Undelivered::Failed("sh ended with code 3: no such session".into())));
    assert_eq!(
        deliver(&["sh", "-c", "echo on stdout; exit 1"]).await,
        Err(Undelivered::Failed("sh ended with code 1: on stdout".into()))
    );
    assert_eq!(deliver(&["sh", "-c", "kill -9 $$"]).await, Err(Undelivered::Failed("sh was killed".into())));
    assert_eq!(deliver(&["/no/such/program"]).await, Err(Undelivered::Not("/no/such/program: no such program".into())));
    assert_eq!(
        deliver(&["sh", "-c", "x", "{session}"]).await,
        Err(Undelivered::Not("the agent has no session yet".into()))
    );
    // Nobody has to read all of it, and nobody waits for what it writes.
    assert_eq!(deliver(&["sh", "-c", "yes | head -c 10000000"]).await, Ok(()));
}

#[test]
fn a_binding_without_what_its_command_needs_is_refused() {
    let bench = Bench::new();
    let why = |config: &BindingConfig| bench.courier.agent(config, no_session()).unwrap_err();
    assert_eq!(why(&command(&[])), "`command` names no program");
    assert_eq!(why(&command(&["a", "{project}"])), "`command` needs `project`, which is not set");
    let mirror = BindingConfig { deliver: None, ..BindingConfig::default() };
    assert!(bench.courier.agent(&mirror, no_session()).unwrap().is_none());
}

#[tokio::test]
async fn stopping_ends_the_program_with_everything_it_started_and_the_message_counts_as_delivered() {
    let bench = Bench::new();
    let script = bench.script("agent", &format!("sleep 1000 & echo $! > {}; wait", bench.path("child").display()));
    let agent = bench.agent(&command(&[&script]));
    assert_eq!(agent.stop().await, Ok("Nothing is running.".into()));
    let (running, message) = (Arc::clone(&agent), said(1, "x"));
    let delivery = tokio::spawn(async move { running.deliver(&message, &Prepared::default()).await });
    until(|| std::fs::read_to_string(bench.path("child")).is_ok_and(|text| text.ends_with('\n'))).await;
    let child = bench.read("child").trim().to_owned();
    assert_eq!(agent.stop().await, Ok("Stopped.".into()));
    assert_eq!(delivery.await.unwrap(), Ok(()));
    assert!(!lives(&child), "the program's own child is gone too");
}

/// A delivery by this agent, once its script has named a process in `child`; and that process.
async fn begun(bench: &Bench, agent: &Arc<dyn Agent>) -> (tokio::task::JoinHandle<Result<(), Undelivered>>, String) {
    let (running, message) = (Arc::clone(agent), said(1, "x"));
    let delivery = tokio::spawn(async move { running.deliver(&message, &Prepared::default()).await });
    until(|| std::fs::read_to_string(bench.path("child")).is_ok_and(|text| text.ends_with('\n'))).await;
    (delivery, bench.read("child").trim().to_owned())
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn stopping_ends_what_the_agent_runs_in_groups_of_its_own() {
    let bench = Bench::new();
    let child = bench.path("child");
    let text = format!("setsid sh -c 'echo $$ > {0}.new; mv {0}.new {0}; exec sleep 1000' & wait", child.display());
    let agent = bench.agent(&command(&[&bench.script("agent", &text)]));
    let (delivery, child) = begun(&bench, &agent).await;
    assert_eq!(agent.stop().await, Ok("Stopped.".into()));
    assert_eq!(delivery.await.unwrap(), Ok(()));
    assert!(!lives(&child));
}

#[tokio::test]
async fn a_program_that_runs_is_stopped_whatever_its_binding_is_by_then() {
    for now in [command(&["true"]), binding(Delivery::Inbox), BindingConfig { deliver: None, ..command(&[]) }] {
        let bench = Bench::new();
        let script = bench.script("agent", &format!("echo $$ > {}; exec sleep 1000", bench.path("child").display()));
        let (delivery, child) = begun(&bench, &bench.agent(&command(&[&script]))).await;
        let agent = bench.courier.agent(&now, no_session()).unwrap();
        assert_eq!(bench.courier.stop("app", agent).await, Ok("Stopped.".into()));
        assert_eq!(delivery.await.unwrap(), Ok(()));
        assert!(!lives(&child));
    }
}

#[tokio::test]
async fn a_delivery_that_is_dropped_leaves_nothing_running() {
    let bench = Bench::new();
    let script = bench.script("agent", &format!("echo $$ > {}; exec sleep 1000", bench.path("child").display()));
    let agent = bench.agent(&command(&[&script]));
    let message = said(1, "x");
    let delivery = tokio::spawn(async move { agent.deliver(&message, &Prepared::default()).await });
    until(|| std::fs::read_to_string(bench.path("child")).is_ok_and(|text| text.ends_with('\n'))).await;
    let child = bench.read("child").trim().to_owned();
    delivery.abort();
    until(|| !lives(&child)).await;
}

#[cfg(target_os = "linux")]
fn lives(pid: &str) -> bool {
    holdfast_testkit::stand::alive(pid.parse().unwrap())
}

#[cfg(not(target_os = "linux"))]
fn lives(pid: &str) -> bool {
    // A dead one that nobody reaped yet is dead.
    let stat = std::process::Command::new("ps").args(["-o", "stat=", "-p", pid]).output().unwrap().stdout;
    !stat.is_empty() && !stat.starts_with(b"Z")
}

#[tokio::test]
async fn a_folder_whose_disk_does_not_answer_fails_the_delivery_and_keeps_nobody() {
    let bench = Bench::new();
    let (_open, hangs) = std::sync::mpsc::channel();
    let folders = &bench.courier.programs.folders;
    folders.ask(Path::new("/dead"), move |_| hangs.recv().unwrap_or_default()).await;
    let command = vec!["true".to_owned()];
    let config = BindingConfig { command, project: Some("/dead".into()), ..binding(Delivery::Command) };
    let given = bench.agent(&config).deliver(&said(1, "x"), &Prepared::default()).await;
    assert_eq!(given, Err(Undelivered::Not("/dead: the disk does not answer".into())));
}
