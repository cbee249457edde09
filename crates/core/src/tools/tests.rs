use serde_json::json;
use serde_json::value::to_raw_value;

use super::*;
use crate::policy::Profile;

fn raw(value: serde_json::Value) -> Box<RawValue> {
    to_raw_value(&value).unwrap()
}

#[test]
fn names_are_unique_and_every_schema_is_a_closed_object_whose_required_fields_exist() {
    let mut seen = std::collections::BTreeSet::new();
    for tool in all() {
        assert!(seen.insert(tool.name), "{} twice", tool.name);
        assert!(tool.name.len() <= limits::TOOL_NAME_MAX);
        let schema = (tool.input)();
        assert_eq!(schema["type"], "object", "{}", tool.name);
        assert_eq!(schema["additionalProperties"], false, "{}", tool.name);
        for name in schema["required"].as_array().into_iter().flatten() {
            assert!(schema["properties"].get(name.as_str().unwrap()).is_some(), "{}: {name}", tool.name);
        }
        for (name, property) in schema["properties"].as_object().unwrap() {
            assert!(property["description"].is_string(), "{}.{name} has no description", tool.name);
        }
    }
    assert_eq!(seen.len(), 32);
}

#[test]
fn a_device_advertises_what_its_policy_allows_and_never_the_internal_or_the_relay_s_tools() {
    let names = |profile| advertised(&Policy::of(profile, "explicit")).map(|t| t.name).collect::<Vec<_>>();
    let (review, edit, agent, full) =
        (names(Profile::Review), names(Profile::Edit), names(Profile::Agent), names(Profile::Full));
    assert_eq!([review.len(), edit.len(), agent.len(), full.len()], [15, 18, 28, 29]);
    for names in [&review, &full] {
        assert!(!names.contains(&"server_info") && !names.contains(&"drill_wait"));
    }
    assert!(!review.contains(&"write_file") && edit.contains(&"write_file"));
    assert!(!edit.contains(&"run_process") && agent.contains(&"run_process"));
    assert!(!agent.contains(&"exec_command") && full.contains(&"exec_command"));
}

#[test]
fn a_role_allows_exactly_the_classes_of_its_profile() {
    use Availability::*;
    for device in Profile::ALL.map(|p| Policy::of(p, "explicit")) {
        for role in Role::ALL {
            let role_policy = Policy::of(role.profile(), "default");
            for class in [Always, Write, DirectExec, WriteAndDirectExec, ShellExec, Full] {
                let expected = device.intersect(&role_policy).allows(class);
                assert_eq!(allowed(class, role, &device).is_ok(), expected, "{class:?} {role:?} {}", device.profile);
            }
        }
    }
    let review = Policy::of(Profile::Review, "explicit");
    assert_eq!(allowed(Write, Role::Owner, &review), Err(Refusal::Policy));
    assert_eq!(allowed(Write, Role::Reviewer, &Policy::of(Profile::Full, "explicit")), Err(Refusal::Role));
}

#[test]
fn budgets_are_those_of_the_base_wire() {
    let ms = |name, arguments| budget(name, &raw(arguments)).as_millis();
    assert_eq!(ms("run_process", json!({"argv": ["x"], "timeout_seconds": 7})), 12_000);
    assert_eq!(ms("run_process", json!({"argv": ["x"]})), 125_000);
    assert_eq!(ms("exec_command", json!({"timeout_seconds": 100_000})), 605_000);
    assert_eq!(ms("exec_command", json!({"timeout_seconds": -3})), 6_000);
    assert_eq!(ms("exec_command", json!({"timeout_seconds": "soon"})), 125_000);
    assert_eq!(ms("list_dir", json!({"timeout_seconds": 7})), 60_000);
    assert_eq!(ms("session_bootstrap", json!({})), 10_000);
    assert_eq!(ms("drill_wait", json!({"wait_ms": 60_000})), 65_000);
    assert_eq!(ms("nobody knows", json!({})), 60_000);
}

#[test]
fn control_tools_are_those_that_ask_and_stop() {
    let control: Vec<_> = all().filter(|t| t.control).map(|t| t.name).collect();
    assert_eq!(control, ["diagnose_runtime", "read_result", "cancel_result", "read_process", "kill_process"]);
}

#[test]
fn a_summary_is_one_plain_bounded_line() {
    let line = |arguments| summary(&raw(arguments));
    assert_eq!(line(json!({"argv": ["npm", "test"], "cwd": "web"})), "npm test");
    assert_eq!(line(json!({"command": "make\n\u{1b}[31mall\u{202e}"})), "make  [31mall ");
    assert_eq!(line(json!({"path": "src/main.rs", "content": "secret"})), "src/main.rs");
    assert_eq!(line(json!({"query": "fn main", "path": "src"})), "fn main");
    assert_eq!(line(json!({"patch": "*** Begin Patch\n*** Add File: a.txt\n+x\n*** End Patch"})), "a.txt");
    assert_eq!(line(json!({})), "");
    assert_eq!(line(json!([1, 2])), "");
    let long = line(json!({"command": "x".repeat(500)}));
    assert_eq!(long.chars().count(), limits::SUMMARY_MAX);
    assert!(long.ends_with('…'));
}
