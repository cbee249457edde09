//! Calls that ask first, in virtual time.

use holdfast_core::ask::{AskRule, EVERY_CLIENT};
use holdfast_core::limits;
use holdfast_core::status::Question;
use holdfast_core::tools::Effect;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::Instant;

use super::*;

/// An executor that asks about every client, and what waits.
fn asking() -> (Bench, watch::Receiver<Vec<Question>>) {
    let (told, waiting) = watch::channel(Vec::new());
    let bench = Bench::adjusted(Profile::Full, |options| {
        options.ask = AskRule { clients: vec![EVERY_CLIENT.into()], least: Effect::Writes };
        options.questions = Arc::new(move |questions| drop(told.send_replace(questions)));
    });
    (bench, waiting)
}

fn write(name: &str) -> Value {
    json!({"path": name, "content": "x"})
}

async fn count(waiting: &mut watch::Receiver<Vec<Question>>, count: usize) -> Vec<Question> {
    waiting.wait_for(|questions| questions.len() == count).await.unwrap().clone()
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_a_yes_and_nothing_is_done_before() {
    let (bench, mut waiting) = asking();
    let call = bench.start("write_file", write("a"));
    let question = count(&mut waiting, 1).await.remove(0);
    assert_eq!(
        (&*question.id, &*question.tool, question.client.as_deref()),
        (call.id.as_str(), "write_file", Some("client"))
    );
    assert_eq!((question.summary.as_deref(), question.expires_at - question.at), (Some("a"), 50_000));
    tokio::time::sleep(Duration::from_secs(49)).await;
    assert!(!bench.path("a").exists());
    assert!(bench.executor.answer(&question.id, true, false));
    call.end().await.unwrap();
    assert_eq!(bench.read("a"), "x");
    assert!(!bench.executor.answer(&question.id, true, false), "it is answered");
    count(&mut waiting, 0).await;
}

#[tokio::test(start_paused = true)]
async fn a_no_is_policy_denied_and_silence_says_that_nobody_answered() {
    let (bench, mut waiting) = asking();
    let call = bench.start("write_file", write("a"));
    let question = count(&mut waiting, 1).await.remove(0);
    bench.executor.answer(&question.id, false, false);
    let error = call.end().await.unwrap_err();
    assert_eq!((error.code, error.retryable), (Code::PolicyDenied, false));
    assert_eq!(details(&error), json!({"asked": true, "answer": "no"}));

    let began = Instant::now();
    let error = bench.call("write_file", write("a")).await.unwrap_err();
    assert_eq!(began.elapsed().as_secs(), 50);
    assert_eq!((error.code, error.retryable), (Code::Unavailable, true));
    assert_eq!(details(&error), json!({"asked": true, "answer": null}));
    assert_eq!(
        error.message,
        "this machine asks its person before it runs this, and nobody answered within 50 s; nothing was done"
    );
    count(&mut waiting, 0).await;
    assert!(!bench.path("a").exists());
    assert_eq!(bench.executor.running(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_became_stronger_while_a_question_waits_is_not_answered_away() {
    let (bench, mut waiting) = asking();
    let call = bench.start("write_file", write("a"));
    let question = count(&mut waiting, 1).await.remove(0);
    bench.executor.set_policy(Policy::of(Profile::Review, "stronger"));
    assert!(bench.executor.answer(&question.id, true, false));
    assert_eq!(call.end().await.unwrap_err().code, Code::PolicyDenied);
    assert!(!bench.path("a").exists());
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_takes_its_question_along() {
    let (bench, mut waiting) = asking();
    let calls = [CancelReason::Caller, CancelReason::Timeout].map(|why| (why, bench.start("write_file", write("a"))));
    count(&mut waiting, 2).await;
    for ((why, call), code) in calls.into_iter().zip([Code::Cancelled, Code::Timeout]) {
        bench.executor.cancel(&call.id, why);
        assert_eq!(call.end().await.unwrap_err().code, code);
    }
    count(&mut waiting, 0).await;
    assert!(!bench.path("a").exists());
}

#[tokio::test(start_paused = true)]
async fn a_remembered_answer_is_for_every_call_of_that_client_until_the_rule_changes() {
    let (bench, mut waiting) = asking();
    let calls = ["a", "b"].map(|name| bench.start("write_file", write(name)));
    let other = bench.start_as(client(1, "other", Role::Owner), "write_file", write("c"));
    let questions = count(&mut waiting, 3).await;
    assert!(bench.executor.answer(&questions[0].id, true, true));
    for call in calls {
        call.end().await.unwrap();
    }
    bench.ok("write_file", write("d")).await;
    let left = count(&mut waiting, 1).await.remove(0);
    assert_eq!(left.id, other.id.as_str());
    bench.executor.answer(&left.id, false, true);
    assert_eq!(other.end().await.unwrap_err().code, Code::PolicyDenied);
    let again = bench.call_as(client(1, "other", Role::Owner), "write_file", write("c")).await;
    assert_eq!(again.unwrap_err().code, Code::PolicyDenied);
    bench.executor.set_ask(AskRule::default());
    bench.call_as(client(1, "other", Role::Owner), "write_file", write("c")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn with_every_question_taken_a_further_call_is_busy_and_control_tools_go_on() {
    let (bench, mut waiting) = asking();
    let _held: Vec<_> = (0..limits::ASKS_MAX).map(|_| bench.start("write_file", write("a"))).collect();
    count(&mut waiting, limits::ASKS_MAX).await;
    let error = bench.call("write_file", write("a")).await.unwrap_err();
    assert_eq!((error.code, error.retryable), (Code::Busy, true));
    bench.ok("diagnose_runtime", json!({})).await;
    bench.ok("list_dir", json!({"path": "."})).await;
    bench.executor.shutdown().await;
    count(&mut waiting, 0).await;
}

#[tokio::test(start_paused = true)]
async fn who_listens_hears_what_a_call_waits_for() {
    let (bench, mut waiting) = asking();
    let (to, mut updates) = tokio::sync::mpsc::unbounded_channel();
    let run = Run {
        id: CallId::parse("call_listened").unwrap(),
        tool: "write_file".into(),
        arguments: to_raw_value(&write("a")).unwrap(),
        budget: Duration::from_secs(60),
        authorization: owner(),
        progress: true,
    };
    bench.executor.start(run.clone(), CallSink::new(run.id, Arc::new(move |_, update| drop(to.send(update)))));
    count(&mut waiting, 1).await;
    let Some(Update::Progress(progress)) = updates.recv().await else { panic!("no progress") };
    assert_eq!(progress.message.as_deref(), Some("waits for the person at the machine to allow it"));
    assert!(progress.progress < 1.0, "what the tool reports is more");
}

#[cfg(unix)]
#[tokio::test]
async fn what_a_question_took_is_taken_from_the_program_s_time() {
    let (bench, mut waiting) = asking();
    let (to, mut updates) = tokio::sync::mpsc::unbounded_channel();
    let run = Run {
        id: CallId::parse("call_shortened").unwrap(),
        tool: "run_process".into(),
        arguments: to_raw_value(&json!({"argv": ["/bin/sh", "-c", "echo early; sleep 60"]})).unwrap(),
        budget: limits::SETTLEMENT + Duration::from_secs(13),
        authorization: owner(),
        progress: false,
    };
    bench.executor.start(run.clone(), CallSink::new(run.id, Arc::new(move |_, update| drop(to.send(update)))));
    let question = count(&mut waiting, 1).await.remove(0);
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(3)).await;
    tokio::time::resume();
    assert!(bench.executor.answer(&question.id, true, false));
    let Some(Update::Finished(Err(error))) = updates.recv().await else { panic!("it ended well") };
    assert_eq!((error.code, &details(&error)["stdout"]), (Code::Timeout, &json!("early\n")));
    let seconds = error.message.strip_prefix("the program did not end within ");
    let seconds = seconds.and_then(|rest| rest.strip_suffix(" s and was killed with everything it started")).unwrap();
    // The question took three seconds, and what this machine needed besides.
    assert!((1..=10).contains(&seconds.parse::<u64>().unwrap()), "{seconds}");
}
