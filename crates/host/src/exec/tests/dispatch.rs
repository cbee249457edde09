use holdfast_core::limits;
use holdfast_core::policy::Availability;
use holdfast_core::tools::{self, Effect, Place, Timing, Tool};
use serde_json::json;

use super::*;

/// A tool that returns what it is given, or waits until it is stopped.
fn echo() -> Extra {
    let tool = Tool {
        name: "bench_echo",
        title: "Echo",
        description: "Returns its arguments.",
        input: || json!({"type": "object"}),
        class: Availability::Always,
        effect: Effect::Reads,
        timing: Timing::Fixed(Duration::from_secs(60)),
        control: false,
        place: Place::Device,
    };
    Extra {
        tool,
        run: Arc::new(|arguments| {
            Box::pin(async move {
                match arguments.get() {
                    "{\"wait\":true}" => std::future::pending().await,
                    "{\"panic\":true}" => panic!("on purpose"),
                    _ => Ok(arguments),
                }
            })
        }),
    }
}

#[tokio::test]
async fn the_gate_is_the_device_s_policy_and_the_account_s_role() {
    let bench = Bench::new(Profile::Agent);
    let as_role = |role| client(1, "c", role);
    let shell = json!({"command": "true"});
    assert_eq!(
        bench.call_as(as_role(Role::Owner), "exec_command", shell.clone()).await.unwrap_err().code,
        Code::PolicyDenied
    );
    let run = json!({"argv": ["true"]});
    assert_eq!(
        bench.call_as(as_role(Role::Editor), "run_process", run.clone()).await.unwrap_err().code,
        Code::AuthorizationDenied
    );
    assert_eq!(bench.call_as(as_role(Role::Operator), "run_process", run).await.unwrap()["code"], 0);
    assert_eq!(bench.code("server_info", json!({})).await, Code::NotFound);
    assert_eq!(bench.code("no_such_tool", json!({})).await, Code::NotFound);
    bench.executor.set_policy(Policy::of(Profile::Review, "explicit"));
    assert_eq!(bench.code("run_process", json!({"argv": ["true"]})).await, Code::PolicyDenied);
}

#[tokio::test]
async fn what_is_advertised_is_what_the_policy_allows_and_the_extras() {
    let bench = Bench::with(Profile::Review, vec![echo()]);
    let advertised = bench.executor.advertised();
    let expected: Vec<_> =
        tools::advertised(&Policy::of(Profile::Review, "explicit")).map(|t| t.name).chain(["bench_echo"]).collect();
    assert_eq!(advertised.tools, expected);
    assert_eq!(advertised.policy["profile"], "review");
}

#[tokio::test]
async fn control_tools_find_a_place_when_ordinary_ones_are_busy_and_a_probe_needs_none() {
    let bench = Bench::with(Profile::Full, vec![echo()]);
    let ordinary = limits::DAEMON_CALLS_MAX - limits::CONTROL_RESERVE;
    let held: Vec<_> = (0..ordinary).map(|_| bench.start("bench_echo", json!({"wait": true}))).collect();
    let busy = bench.call("bench_echo", json!({})).await.unwrap_err();
    assert_eq!((busy.code, busy.retryable), (Code::Busy, true));
    assert!(bench.call("diagnose_runtime", json!({})).await.is_ok());
    let (proven, probe) = oneshot::channel();
    bench.executor.probe(ProbeSink::new(move || proven.send(()).unwrap()));
    probe.await.unwrap();
    for call in held {
        bench.executor.cancel(&call.id, CancelReason::Caller);
        assert_eq!(call.end().await.unwrap_err().code, Code::Cancelled);
    }
    assert_eq!(bench.executor.running(), 0);
    assert_eq!(bench.ok("bench_echo", json!({"a": 1})).await, json!({"a": 1}));
}

#[tokio::test]
async fn a_timeout_says_so_and_is_retryable_only_for_a_tool_that_only_reads() {
    let bench = Bench::with(Profile::Full, vec![echo()]);
    let call = bench.start("drill_wait", json!({"wait_ms": 60_000}));
    bench.executor.cancel(&call.id, CancelReason::Timeout);
    bench.executor.cancel(&call.id, CancelReason::Caller);
    let error = call.end().await.unwrap_err();
    assert_eq!((error.code, error.retryable), (Code::Timeout, true));
    let call = bench.start("run_process", json!({"argv": ["sleep", "60"]}));
    bench.executor.cancel(&call.id, CancelReason::Timeout);
    let error = call.end().await.unwrap_err();
    assert_eq!((error.code, error.retryable), (Code::Timeout, false));
}

#[tokio::test]
async fn a_tool_that_panics_fails_one_call_and_gives_its_place_back() {
    let bench = Bench::with(Profile::Full, vec![echo()]);
    assert_eq!(bench.code("bench_echo", json!({"panic": true})).await, Code::InternalError);
    assert_eq!(bench.executor.running(), 0);
}

#[tokio::test]
async fn an_id_that_is_running_does_not_run_again() {
    let bench = Bench::with(Profile::Full, vec![echo()]);
    let first = bench.start("bench_echo", json!({"wait": true}));
    let (to, mut updates) = tokio::sync::mpsc::unbounded_channel();
    let run = Run {
        id: first.id.clone(),
        tool: "bench_echo".into(),
        arguments: to_raw_value(&json!({})).unwrap(),
        budget: Duration::from_secs(60),
        authorization: owner(),
        progress: false,
    };
    let sink = CallSink::new(first.id.clone(), Arc::new(move |_, update| drop(to.send(update))));
    bench.executor.start(run, sink);
    let Some(Update::Finished(Err(error))) = updates.recv().await else { panic!("it ran") };
    assert_eq!(error.code, Code::Conflict);
    assert_eq!(bench.executor.running(), 1);
}

#[tokio::test]
async fn a_sink_that_is_dropped_still_answers() {
    let (to, mut updates) = tokio::sync::mpsc::unbounded_channel();
    let to: Arc<dyn Fn(CallId, Update) + Send + Sync> = Arc::new(move |id, update| to.send((id, update)).unwrap());
    let id = CallId::parse("call_abcdefgh").unwrap();
    drop(CallSink::new(id.clone(), to));
    let (heard, update) = updates.recv().await.unwrap();
    assert_eq!(heard, id);
    let Update::Finished(Err(error)) = update else { panic!("{update:?}") };
    assert_eq!(error.code, Code::InternalError);
}

#[tokio::test(start_paused = true)]
async fn a_call_reports_progress_only_to_somebody_who_listens() {
    let bench = Bench::new(Profile::Agent);
    for (listens, wait_ms) in [(true, 4500), (false, 2100)] {
        let (to, mut updates) = tokio::sync::mpsc::unbounded_channel();
        let to: Arc<dyn Fn(CallId, Update) + Send + Sync> = Arc::new(move |_, update| drop(to.send(update)));
        let id = CallId::parse("call_progress").unwrap();
        let run = Run {
            id: id.clone(),
            tool: "drill_wait".into(),
            arguments: to_raw_value(&json!({"wait_ms": wait_ms})).unwrap(),
            budget: Duration::from_secs(65),
            authorization: owner(),
            progress: listens,
        };
        bench.executor.start(run, CallSink::new(id, to));
        let mut heard = Vec::new();
        loop {
            match updates.recv().await.unwrap() {
                Update::Progress(progress) => {
                    assert_eq!(progress.total, Some(4500.0));
                    heard.push(progress.progress);
                }
                Update::Finished(outcome) => break assert!(outcome.is_ok()),
            }
        }
        assert_eq!(heard.is_empty(), !listens);
        assert!(heard.is_sorted() && heard.iter().all(|ms| (2000.0..4500.0).contains(ms)), "{heard:?}");
    }
}

#[tokio::test]
async fn a_workspace_inside_holdfast_s_own_folder_is_refused() {
    let data = TempDir::new().unwrap();
    std::fs::create_dir(data.path().join("work")).unwrap();
    let options = ExecOptions::new(data.path().join("work"), data.path().into(), Policy::of(Profile::Full, "explicit"));
    assert!(matches!(LocalExecutor::open(options), Err(OpenError::Workspace(_))));
    let nowhere = ExecOptions::new(data.path().join("none"), data.path().into(), Policy::of(Profile::Full, "explicit"));
    assert!(matches!(LocalExecutor::open(nowhere), Err(OpenError::Workspace(_))));
}

#[tokio::test]
async fn a_stopped_executor_refuses_calls_and_probes_and_leaves_no_process() {
    let bench = Bench::new(Profile::Full);
    let session = bench.ok("start_process", json!({"argv": ["sleep", "1000"]})).await;
    let call = bench.start("run_process", json!({"argv": ["sleep", "1000"]}));
    bench.executor.shutdown().await;
    assert_eq!(call.end().await.unwrap_err().code, Code::Cancelled);
    let refused = bench.call("read_process", json!({"session_id": session["session_id"]})).await.unwrap_err();
    assert_eq!((refused.code, refused.retryable), (Code::Unavailable, true));
    let (proven, probe) = oneshot::channel::<()>();
    bench.executor.probe(ProbeSink::new(move || proven.send(()).unwrap()));
    assert!(probe.await.is_err());
    assert_eq!(std::fs::read_dir(bench.data.path().join("calls")).unwrap().count(), 0);
}

#[tokio::test]
async fn a_result_too_big_for_the_link_is_kept_for_its_owner_and_read_in_pages() {
    let big = "é".repeat(limits::RESULT_MAX / 2);
    let bench = Bench::with(Profile::Full, vec![echo()]);
    let error = bench.call("bench_echo", json!({"text": big})).await.unwrap_err();
    assert_eq!((error.code, error.retryable), (Code::ResultTooLarge, false));
    let details = details(&error);
    let preview = details["preview"].as_str().unwrap();
    assert!(preview.starts_with("{\"text\":\"éé") && preview.ends_with("é\"}"));
    assert!(preview.len() <= limits::RESULT_PREVIEW + 64);
    let handle = details["handle"].as_str().unwrap();
    let file = bench.data.path().join("results").join(handle);
    #[cfg(unix)]
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&file.metadata().unwrap().permissions()) & 0o777, 0o600);
    assert!(file.is_file());

    let stranger = bench.call_as(client(1, "other", Role::Owner), "read_result", json!({"handle": handle})).await;
    assert_eq!(stranger.unwrap_err().code, Code::NotFound);
    let stranger = bench.call_as(client(2, "client", Role::Owner), "read_result", json!({"handle": handle})).await;
    assert_eq!(stranger.unwrap_err().code, Code::NotFound);

    let (mut text, mut offset) = (String::new(), 0);
    loop {
        let page = bench
            .ok("read_result", json!({"handle": handle, "offset": offset, "max_bytes": limits::RESULT_PAGE_MAX - 1}))
            .await;
        text += page["text"].as_str().unwrap();
        offset = page["next_offset"].as_u64().unwrap();
        if page["done"] == true {
            break;
        }
    }
    assert_eq!(text, json!({"text": big}).to_string());
    assert_eq!(bench.code("read_result", json!({"handle": "res_../../etc/passwd"})).await, Code::NotFound);
}

#[tokio::test]
async fn the_drill_s_call_waits_and_hands_back_its_echo() {
    let bench = Bench::new(Profile::Review);
    assert_eq!(bench.ok("drill_wait", json!({"wait_ms": 1, "echo": "x"})).await, json!({"waited_ms": 1, "echo": "x"}));
    assert_eq!(bench.code("drill_wait", json!({"wait_ms": 60_001})).await, Code::InvalidRequest);
}
