//! What the worker works for.

use super::*;
use crate::worker::perform::workspace::{Workspace, put as take};

#[tokio::test]
async fn the_same_configuration_is_taken_once_and_another_takes_its_place() {
    let stage = Stage::new("https://relay.example");
    let put = |config: Value| stage.perform(json!({"type": "workspace_config", "config": config}));
    assert_eq!(kept(stage.data.path()), Workspace::default());
    let first = put(json!({"cwd": "app", "env": {"A": "1", "B": "2"}})).await.unwrap();
    assert_eq!(first["reused"], false);
    let same = put(json!({"env": {"B": "2", "A": "1"}, "cwd": "app"})).await.unwrap();
    assert_eq!(same, json!({"digest": first["digest"], "reused": true}));
    assert_eq!(kept(stage.data.path()).cwd.as_deref(), Some("app"));
    let other = put(json!({"env": {"A": "1"}})).await.unwrap();
    assert_eq!(other["reused"], false);
    assert_eq!(kept(stage.data.path()), Workspace { cwd: None, env: [("A".into(), "1".into())].into() });
    let renewed = take(stage.data.path(), &"another credential".into(), &json!({"env": {"A": "1"}})).await;
    assert_eq!(renewed.unwrap(), json!({"digest": other["digest"], "reused": false}));
}

#[tokio::test]
async fn a_configuration_that_says_something_else_changes_nothing() {
    let stage = Stage::new("https://relay.example");
    for config in [json!({"cwd": 1}), json!({"shell": "x"}), json!({"env": {"A=B": "1"}}), json!({"env": {"A": "\0"}})]
    {
        let refused = stage.perform(json!({"type": "workspace_config", "config": config.clone()})).await.unwrap_err();
        assert_eq!(refused.code, Code::InvalidRequest, "{config}");
    }
    assert_eq!(kept(stage.data.path()), Workspace::default());
}
