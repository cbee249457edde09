//! What the owner of this machine allows.

use holdfast_core::ask::AskRule;
use holdfast_core::code::Code;
use holdfast_core::tools::Effect;
use serde_json::json;

use super::*;

/// What the worker refuses an operation with, if it does.
async fn refusal(peer: &mut Peer, operation: Operation) -> Option<Code> {
    let id = operation.request_id.clone();
    peer.ask(operation).await;
    match peer.answer().await {
        WorkerFrame::OperationRejected { request_id, failure } if request_id == id => Some(failure.code),
        WorkerFrame::OperationReceived { request_id } if request_id == id => None,
        other => panic!("{other:?}"),
    }
}

fn shell(n: u8, role: Role) -> Operation {
    Operation { role, ..operation(n, json!({"type": "exec", "command": {"shell": "true"}})) }
}

#[tokio::test]
async fn the_policy_of_the_device_and_the_role_of_the_account_decide_together() {
    let mut stage = Stage::new().await;
    stage.policy = Policy::of(Profile::Full, "explicit");
    let (worker, mut peer) = stage.live().await;
    assert_eq!(refusal(&mut peer, shell(1, Role::Operator)).await, Some(Code::AuthorizationDenied));
    assert_eq!(refusal(&mut peer, shell(2, Role::Owner)).await, None);
    peer.end(2).await;
    let over =
        |s: &Arc<WorkerStatus>| s.results_waiting == 0 && s.operations.iter().any(|row| row.state == State::Completed);
    status(&worker, over).await;
    worker.end().await;

    stage.policy = Policy::of(Profile::Edit, "explicit");
    let _worker = stage.worker().await;
    let mut peer = stage.relay.live(&[], BTreeMap::new()).await;
    assert_eq!(refusal(&mut peer, sh(3, "true")).await, Some(Code::PolicyDenied));
    // A refused one is as if it had never been asked for.
    assert_eq!(refusal(&mut peer, sh(3, "true")).await, Some(Code::PolicyDenied));
    let (_, outcome) = (peer.ask(sh(2, "true")).await, peer.answer().await);
    assert!(matches!(outcome, WorkerFrame::OperationRejected { failure, .. } if failure.code == Code::Conflict));
}

#[tokio::test]
async fn what_would_ask_the_person_is_refused_because_nobody_may_be_there() {
    let stage = Stage::new().await;
    let ask = AskRule { clients: vec!["c".into()], least: Effect::Runs };
    let _worker = stage.worker_at(stage.relay.address(), |options| options.ask = ask).await;
    let mut peer = stage.relay.live(&[], BTreeMap::new()).await;
    assert_eq!(refusal(&mut peer, sh(1, "true")).await, Some(Code::PolicyDenied));
    let other = Operation { client: Some("d".into()), ..sh(2, "true") };
    assert_eq!(refusal(&mut peer, other).await, None);
}

#[tokio::test]
async fn ports_are_reached_only_when_they_are_listed() {
    let mut stage = Stage::new().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    stage.forward = serde_json::from_value(json!({"allow_ports": [port]})).unwrap();
    let (_worker, mut peer) = stage.live().await;
    let connect = |n, port: u16| operation(n, json!({"type": "port_forward_connect", "port": port}));
    assert_eq!(refusal(&mut peer, connect(1, port ^ 1)).await, Some(Code::PolicyDenied));
    assert_eq!(refusal(&mut peer, connect(2, port)).await, None);
    let (mut connection, _) = soon(listener.accept()).await.unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut connection, b"hello").await.unwrap();
    drop(connection);
    peer.end(2).await;
    assert_eq!(peer.output(2, Stream::Stdout), b"hello");
}

#[tokio::test]
async fn where_the_relay_of_this_process_listens_later_is_reached_no_more() {
    let mut stage = Stage::new().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    stage.forward = serde_json::from_value(json!({"allow_ports": [port]})).unwrap();
    let (_worker, mut peer) = stage.live().await;
    let connect = |n| operation(n, json!({"type": "port_forward_connect", "port": port}));
    assert_eq!(refusal(&mut peer, connect(1)).await, None);
    drop(soon(listener.accept()).await.unwrap());
    peer.end(1).await;
    stage.relay_port.send_replace(Some(port));
    assert_eq!(refusal(&mut peer, connect(2)).await, Some(Code::PolicyDenied));
    stage.relay_port.send_replace(Some(port ^ 1));
    assert_eq!(refusal(&mut peer, connect(3)).await, None);
}

#[tokio::test]
async fn a_run_gets_the_environment_of_a_tool_call_and_what_was_asked_on_top() {
    let stage = Stage::new().await;
    let (_worker, mut peer) = stage.live().await;
    let argv = ["sh", "-c", "echo $HOME; echo $MORE; env | grep -c CARGO"];
    let exec = json!({"type": "exec", "command": {"argv": argv}, "env": {"MORE": "1"}, "cwd": "."});
    assert_eq!(refusal(&mut peer, operation(1, exec)).await, None);
    peer.end(1).await;
    let home = stage.data().join("home");
    let out = String::from_utf8_lossy(peer.output(1, Stream::Stdout)).into_owned();
    assert_eq!(out, format!("{}\n1\n0\n", home.display()));
    let outside = json!({"type": "exec", "command": {"argv": ["true"]}, "cwd": ".."});
    assert_eq!(refusal(&mut peer, operation(2, outside)).await, None);
    match peer.end(2).await.0 {
        Outcome::Failed { error, started: false, .. } => assert_eq!(error.code, Code::PathBoundary),
        other => panic!("{other:?}"),
    }
}
