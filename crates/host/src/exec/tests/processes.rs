use std::time::Instant;

use holdfast_core::limits;
use serde_json::json;

use super::*;

fn alive(pid: &str) -> bool {
    holdfast_testkit::stand::alive(pid.trim().parse().unwrap())
}

/// A pipe in the workspace by which a program says something.
fn pipe(bench: &Bench, name: &str) -> std::path::PathBuf {
    let path = bench.path(name);
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    path
}

/// What it says until it closes the pipe; a minute of silence is failure.
async fn said(pipe: std::path::PathBuf) -> String {
    let reading = tokio::time::timeout(Duration::from_secs(120), tokio::fs::read_to_string(pipe));
    reading.await.unwrap().unwrap()
}

#[tokio::test]
async fn a_program_runs_in_the_workspace_and_its_output_and_code_come_back() {
    let bench = Bench::new(Profile::Agent);
    bench.write("sub/x", "");
    let result = bench.ok("run_process", json!({"argv": ["sh", "-c", "ls; echo oops >&2"], "cwd": "sub"})).await;
    assert_eq!(
        result,
        json!({"code": 0, "stdout": "x\n", "stderr": "oops\n", "stdout_truncated_bytes": 0, "stderr_truncated_bytes": 0})
    );
    let error = bench.call("run_process", json!({"argv": ["sh", "-c", "echo out; exit 3"]})).await.unwrap_err();
    assert_eq!(error.code, Code::ExecutionFailed);
    assert_eq!(error.message, "the program exited with code 3");
    assert_eq!((&details(&error)["code"], &details(&error)["stdout"]), (&json!(3), &json!("out\n")));
    let error = bench.call("run_process", json!({"argv": ["sh", "-c", "kill -9 $$"]})).await.unwrap_err();
    assert_eq!((&details(&error)["code"], &details(&error)["signal"]), (&json!(null), &json!(9)));
}

#[tokio::test]
async fn a_shell_command_runs_in_the_shell() {
    let bench = Bench::new(Profile::Full);
    let result = bench.ok("exec_command", json!({"command": "echo a | tr a b && pwd"})).await;
    let workspace = bench.workspace.path().canonicalize().unwrap();
    assert_eq!(result["stdout"], format!("b\n{}\n", workspace.display()));
}

#[tokio::test]
async fn malformed_arguments_are_refused_with_a_reason() {
    let bench = Bench::new(Profile::Full);
    let long = "x".repeat(limits::ARGV_BYTES_MAX + 1);
    let many = vec!["x"; limits::ARGV_MAX + 1];
    for (tool, arguments) in [
        ("run_process", json!({})),
        ("run_process", json!({"argv": []})),
        ("run_process", json!({"argv": [""]})),
        ("run_process", json!({"argv": "ls"})),
        ("run_process", json!({"argv": ["a\u{0}b"]})),
        ("run_process", json!({"argv": [1]})),
        ("run_process", json!({"argv": ["true", long]})),
        ("run_process", json!({"argv": many})),
        ("run_process", json!({"argv": ["true"], "shell": true})),
        ("run_process", json!({"argv": ["true"], "timeout_seconds": 0})),
        ("run_process", json!({"argv": ["true"], "timeout_seconds": 601})),
        ("run_process", json!({"argv": ["true"], "timeout_seconds": 1.5})),
        ("run_process", json!(["true"])),
        ("exec_command", json!({"command": ""})),
        ("exec_command", json!({"command": "x".repeat(limits::COMMAND_MAX + 1)})),
        ("exec_command", json!({"command": "true", "cwd": "."})),
        ("start_process", json!({"argv": ["cat"], "env": {}})),
        ("read_process", json!({"session_id": 3})),
        ("read_process", json!({"session_id": "proc_x", "max_bytes": 0})),
        ("read_process", json!({"session_id": "proc_x", "wait_ms": 30_001})),
        ("read_process", json!({"session_id": "proc_x", "stdout_offset": -1})),
        ("write_process", json!({"session_id": "proc_x", "data": "x".repeat(limits::STDIN_WRITE_MAX + 1)})),
        ("kill_process", json!({"session_id": "proc_x", "force": "yes"})),
        ("read_result", json!({})),
        ("read_result", json!({"handle": "res_x", "max_bytes": limits::RESULT_PAGE_MAX + 1})),
    ] {
        let error = bench.call(tool, arguments.clone()).await.unwrap_err();
        assert_eq!(error.code, Code::InvalidRequest, "{tool} {arguments:.60}");
        assert!(!error.message.is_empty() && !error.message.contains(" at line "), "{}", error.message);
    }
    assert_eq!(bench.code("run_process", json!({"argv": ["no-such-program"]})).await, Code::NotFound);
    assert_eq!(bench.code("run_process", json!({"argv": ["true"], "cwd": "nowhere"})).await, Code::NotFound);
    for tool in ["read_process", "kill_process"] {
        assert_eq!(bench.code(tool, json!({"session_id": "proc_x"})).await, Code::NotFound);
    }
}

#[tokio::test]
async fn below_full_a_program_gets_a_minimal_environment_and_a_home_of_its_own() {
    let bench = Bench::new(Profile::Agent);
    let out = bench.ok("run_process", json!({"argv": ["env"]})).await["stdout"].as_str().unwrap().to_owned();
    let home = bench.data.path().join("home");
    assert!(out.lines().any(|l| l == format!("HOME={}", home.display())), "{out}");
    for line in out.lines() {
        let name = line.split('=').next().unwrap();
        let known = [
            "PATH",
            "LANG",
            "LANGUAGE",
            "TZ",
            "TERM",
            "USER",
            "LOGNAME",
            "SHELL",
            "HOME",
            "TMPDIR",
            "XDG_CACHE_HOME",
            "HOLDFAST_RUN",
        ];
        assert!(known.contains(&name) || name.starts_with("LC_"), "{name}");
    }
    // An owner on a full device gets the parent's environment, an operator there does not.
    let bench = Bench::new(Profile::Full);
    let home = format!("HOME={}\n", std::env::home_dir().unwrap().display());
    let shown = |v: &Value| v["stdout"].as_str().unwrap().contains(&home);
    assert!(shown(&bench.ok("run_process", json!({"argv": ["env"]})).await));
    let operator = client(1, "c", Role::Operator);
    assert!(!shown(&bench.call_as(operator, "run_process", json!({"argv": ["env"]})).await.unwrap()));
}

#[tokio::test]
async fn long_output_keeps_head_and_tail_and_counts_the_rest() {
    let bench = Bench::new(Profile::Agent);
    let result = bench.ok("run_process", json!({"argv": ["sh", "-c", "seq 1 200000"]})).await;
    let out = result["stdout"].as_str().unwrap();
    assert!(out.starts_with("1\n2\n3\n") && out.ends_with("199999\n200000\n"));
    let whole: usize = (1..=200_000).map(|n: u32| n.to_string().len() + 1).sum();
    let omitted = result["stdout_truncated_bytes"].as_u64().unwrap() as usize;
    assert_eq!(omitted, whole - limits::OUTPUT_KEPT);
    assert!(out.contains(&format!("[... {omitted} bytes omitted ...]")));
}

#[tokio::test]
async fn output_that_is_no_utf8_comes_as_base64_too() {
    let bench = Bench::new(Profile::Agent);
    let result = bench.ok("run_process", json!({"argv": ["printf", "a\\377b"]})).await;
    assert_eq!((&result["stdout"], &result["stdout_base64"]), (&json!("a\u{fffd}b"), &json!("Yf9i")));
}

#[tokio::test]
async fn a_gigabyte_of_output_takes_bounded_memory() {
    let resident = || {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
    };
    let bench = Bench::new(Profile::Agent);
    bench.ok("run_process", json!({"argv": ["head", "-c", "2M", "/dev/zero"]})).await;
    let before = resident();
    let result = bench.ok("run_process", json!({"argv": ["head", "-c", "1G", "/dev/zero"]})).await;
    assert_eq!(result["stdout_truncated_bytes"], (1usize << 30) - limits::OUTPUT_KEPT);
    assert!(resident() < before + (64 << 20), "{} MiB more", (resident() - before) >> 20);
}

#[tokio::test]
async fn the_tool_s_own_timeout_kills_the_tree_and_keeps_the_output() {
    let bench = Bench::new(Profile::Agent);
    // Enough for its first word on any machine.
    let error = bench
        .call("run_process", json!({"argv": ["sh", "-c", "echo before; sleep 1000"], "timeout_seconds": 10}))
        .await
        .unwrap_err();
    assert_eq!((error.code, error.retryable), (Code::Timeout, false));
    assert_eq!(details(&error)["stdout"], "before\n");
}

#[tokio::test]
async fn cancelling_kills_grandchildren_that_ignore_sigterm() {
    let bench = Bench::new(Profile::Agent);
    let grandchild = pipe(&bench, "grandchild");
    let script = "trap '' TERM; (trap '' TERM; echo $$ > leader; sh -c 'echo $$ > grandchild; exec sleep 1000') & wait; sleep 1000";
    let call = bench.start("run_process", json!({"argv": ["sh", "-c", script]}));
    let grandchild = said(grandchild).await;
    let leader = bench.read("leader");
    assert!(alive(&leader) && alive(&grandchild));
    let start = Instant::now();
    bench.executor.cancel(&call.id, CancelReason::Caller);
    let error = call.end().await.unwrap_err();
    assert_eq!(error.code, Code::Cancelled);
    assert!(start.elapsed() >= limits::TREE_KILL_WAIT);
    // The word comes after the deed.
    assert!(!alive(&leader) && !alive(&grandchild));
    assert_eq!(std::fs::read_dir(bench.data.path().join("calls")).unwrap().count(), 0);
}

#[tokio::test]
async fn what_a_program_leaves_running_ends_with_it() {
    let bench = Bench::new(Profile::Agent);
    let result = bench.ok("run_process", json!({"argv": ["sh", "-c", "sleep 1000 & echo $!"]})).await;
    assert_eq!(result["background_ended"], true);
    assert!(!alive(result["stdout"].as_str().unwrap()));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_process_that_left_the_group_is_reported() {
    let bench = Bench::new(Profile::Agent);
    let escaped = pipe(&bench, "escaped");
    let script = "setsid sh -c 'echo $$ > escaped; exec sleep 1000' & sleep 1000";
    let call = bench.start("run_process", json!({"argv": ["sh", "-c", script]}));
    let pid: i32 = said(escaped).await.trim().parse().unwrap();
    bench.executor.cancel(&call.id, CancelReason::Timeout);
    let error = call.end().await.unwrap_err();
    assert_eq!(details(&error)["escaped_pids"], json!([pid]));
    assert_eq!(bench.ok("diagnose_runtime", json!({})).await["processes"]["escaped"], 1);
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL).unwrap();
    let argv = json!(["sh", "-c", "setsid sleep 1000 & sleep 1000"]);
    let error = bench.call("run_process", json!({"argv": argv, "timeout_seconds": 10})).await.unwrap_err();
    assert_eq!(error.message, "the program did not end within 10 s and was killed with what still belonged to it");
    let pid = details(&error)["escaped_pids"][0].as_i64().unwrap();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid as i32), nix::sys::signal::Signal::SIGKILL).unwrap();
}

#[tokio::test]
async fn a_session_is_written_to_read_by_offset_and_ends_when_its_input_does() {
    let bench = Bench::new(Profile::Agent);
    let id = bench.ok("start_process", json!({"argv": ["cat"]})).await["session_id"].clone();
    assert!(id.as_str().unwrap().starts_with("proc_"));
    bench.ok("write_process", json!({"session_id": id, "data": "one\n"})).await;
    let read = bench.ok("read_process", json!({"session_id": id, "wait_ms": 30_000})).await;
    assert_eq!((&read["stdout"]["text"], &read["running"]), (&json!("one\n"), &json!(true)));
    let next = read["stdout"]["next_offset"].clone();
    assert_eq!(next, 4);
    let read = bench.ok("read_process", json!({"session_id": id, "stdout_offset": next})).await;
    assert_eq!(read["stdout"]["text"], "");
    bench.ok("write_process", json!({"session_id": id, "data": "two\n", "close_stdin": true})).await;
    let read = bench
        .ok("read_process", json!({"session_id": id, "stdout_offset": next, "wait_ms": 30_000, "wait_for_exit": true}))
        .await;
    assert_eq!((&read["stdout"]["text"], &read["running"], &read["code"]), (&json!("two\n"), &json!(false), &json!(0)));
    let again = bench.call("write_process", json!({"session_id": id, "data": "x"})).await.unwrap_err();
    assert_eq!(again.code, Code::Conflict);
}

#[tokio::test]
async fn a_session_keeps_the_last_mebibyte_and_says_what_is_gone() {
    let bench = Bench::new(Profile::Agent);
    let id = bench.ok("start_process", json!({"argv": ["head", "-c", "3M", "/dev/zero"]})).await["session_id"].clone();
    let read = bench
        .ok("read_process", json!({"session_id": id, "wait_ms": 30_000, "wait_for_exit": true, "max_bytes": 10}))
        .await;
    let out = &read["stdout"];
    assert_eq!(
        (&out["dropped_bytes"], &out["offset"], &out["next_offset"]),
        (&json!(2 << 20), &json!(2 << 20), &json!((2 << 20) + 10))
    );
    assert_eq!(out["more"], true);
}

#[tokio::test]
async fn a_session_that_prints_no_utf8_is_read_as_base64_too() {
    let bench = Bench::new(Profile::Agent);
    let id = bench.ok("start_process", json!({"argv": ["printf", "\\303\\251\\377"]})).await["session_id"].clone();
    let read = bench.ok("read_process", json!({"session_id": id, "wait_ms": 30_000, "wait_for_exit": true})).await;
    assert_eq!(read["stdout"]["base64"], "w6n/");
}

#[tokio::test]
async fn a_session_belongs_to_the_account_and_client_that_started_it() {
    let bench = Bench::new(Profile::Agent);
    let id = bench.ok("start_process", json!({"argv": ["cat"]})).await["session_id"].clone();
    for who in [client(1, "other", Role::Owner), client(2, "client", Role::Owner)] {
        for (tool, arguments) in [
            ("read_process", json!({"session_id": id})),
            ("write_process", json!({"session_id": id, "data": "x"})),
            ("kill_process", json!({"session_id": id})),
        ] {
            assert_eq!(bench.call_as(who.clone(), tool, arguments).await.unwrap_err().code, Code::NotFound);
        }
    }
    assert_eq!(bench.ok("read_process", json!({"session_id": id})).await["running"], true);
}

#[tokio::test]
async fn a_session_is_killed_with_everything_it_started() {
    let bench = Bench::new(Profile::Agent);
    let script = "trap '' TERM; sleep 1000 & echo $!; wait; sleep 1000";
    let id = bench.ok("start_process", json!({"argv": ["sh", "-c", script]})).await["session_id"].clone();
    let read = bench.ok("read_process", json!({"session_id": id, "wait_ms": 30_000})).await;
    let child = read["stdout"]["text"].as_str().unwrap().to_owned();
    let killed = bench.ok("kill_process", json!({"session_id": id, "force": true})).await;
    assert_eq!((&killed["running"], &killed["signal"]), (&json!(false), &json!(9)));
    assert!(!alive(&child));
}

#[tokio::test]
async fn the_ninth_session_is_refused_until_one_has_ended() {
    let bench = Bench::new(Profile::Agent);
    let mut ids = Vec::new();
    for _ in 0..limits::PROC_SESSIONS_MAX {
        ids.push(bench.ok("start_process", json!({"argv": ["cat"]})).await["session_id"].clone());
    }
    let full = bench.call("start_process", json!({"argv": ["cat"]})).await.unwrap_err();
    assert_eq!((full.code, full.retryable), (Code::LimitExceeded, true));
    bench.ok("kill_process", json!({"session_id": ids[3]})).await;
    bench.ok("start_process", json!({"argv": ["cat"]})).await;
    assert_eq!(bench.code("read_process", json!({"session_id": ids[3]})).await, Code::NotFound);
    assert_eq!(bench.ok("read_process", json!({"session_id": ids[0]})).await["running"], true);
}

#[tokio::test]
async fn a_restart_ends_what_a_killed_process_left_and_nothing_else() {
    use std::os::unix::process::CommandExt as _;
    let bench = Bench::new(Profile::Agent);
    bench.executor.shutdown().await;
    let spawn = |mark: &str| {
        std::process::Command::new("sleep").arg("1000").env("HOLDFAST_RUN", mark).process_group(0).spawn().unwrap()
    };
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().trim().to_owned();
    let started = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap().to_owned()
    };
    let note = |pid: Option<u32>, started: &str, boot: &str, mark: &str| {
        let note = json!({"pid": pid, "started": started, "boot": boot, "mark": mark});
        std::fs::write(bench.data.path().join("calls").join(mark), note.to_string()).unwrap();
    };
    let (mut ours, mut orphan, mut reused, mut old_boot) = (spawn("a"), spawn("run_b"), spawn("c"), spawn("d"));
    let mut starting = spawn("run_e");
    note(Some(ours.id()), &started(ours.id()), &boot, "run_a");
    note(Some(orphan.id()), "1", &boot, "run_b");
    note(Some(reused.id()), "1", &boot, "run_c");
    note(Some(old_boot.id()), &started(old_boot.id()), "another boot", "run_d");
    note(None, "", &boot, "run_e");
    std::fs::write(bench.data.path().join("calls/garbage"), "{").unwrap();
    let executor = open(bench.workspace.path(), bench.data.path(), Profile::Agent, Vec::new());
    use std::os::unix::process::ExitStatusExt as _;
    assert_eq!(ours.wait().unwrap().signal(), Some(9));
    assert_eq!(orphan.wait().unwrap().signal(), Some(9));
    assert_eq!(starting.wait().unwrap().signal(), Some(9));
    for spared in [&mut reused, &mut old_boot] {
        assert_eq!(spared.try_wait().unwrap(), None);
        spared.kill().unwrap();
        spared.wait().unwrap();
    }
    assert_eq!(std::fs::read_dir(bench.data.path().join("calls")).unwrap().count(), 0);
    executor.shutdown().await;
}
