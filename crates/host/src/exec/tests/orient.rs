use holdfast_core::limits;
use serde_json::json;

use super::*;

#[tokio::test]
async fn instructions_are_found_outermost_first_and_skills_with_their_descriptions() {
    let bench = Bench::new(Profile::Review);
    bench.write("AGENTS.md", "root rules");
    bench.write("app/CLAUDE.md", "app rules");
    bench.write("app/src/x.rs", "");
    bench.write(".claude/skills/deploy/SKILL.md", "---\nname: deploy\ndescription: Ships it\n---\nbody");
    bench.write("app/skills/plain/SKILL.md", "no header");
    let context = bench.ok("agent_context", json!({"path": "app/src/x.rs"})).await;
    assert_eq!(
        context,
        json!({
            "instructions": [
                {"path": "AGENTS.md", "size_bytes": 10, "content": "root rules", "truncated": false},
                {"path": "app/CLAUDE.md", "size_bytes": 9, "content": "app rules", "truncated": false},
            ],
            "skills": [
                {"name": "deploy", "path": ".claude/skills/deploy/SKILL.md", "description": "Ships it"},
                {"name": "plain", "path": "app/skills/plain/SKILL.md"},
            ],
            "skills_truncated": false,
        })
    );
    let names = bench.ok("agent_context", json!({"include_instruction_content": false, "max_skills": 1})).await;
    assert_eq!(names["instructions"], json!([{"path": "AGENTS.md", "size_bytes": 10, "truncated": false}]));
    let start = bench.ok("session_bootstrap", json!({"path": "app"})).await;
    let text = start["instructions"].as_str().unwrap();
    assert!(text.contains("may read but not change") && text.contains("--- AGENTS.md ---\nroot rules"));
    assert!(text.contains("- deploy: Ships it (.claude/skills/deploy/SKILL.md)"));
}

#[tokio::test]
async fn instructions_are_bounded_and_links_to_the_outside_are_not_read() {
    let bench = Bench::new(Profile::Review);
    bench.write("AGENTS.md", "x".repeat(limits::INSTRUCTION_FILE_MAX + 1));
    #[cfg(unix)]
    {
        let outside = TempDir::new().unwrap();
        std::fs::write(outside.path().join("s"), "secret").unwrap();
        std::os::unix::fs::symlink(outside.path().join("s"), bench.path("CLAUDE.md")).unwrap();
        std::os::unix::fs::symlink("AGENTS.md", bench.path("GEMINI.md")).unwrap();
        let files = bench.ok("agent_context", json!({})).await["instructions"].clone();
        assert_eq!(files.as_array().unwrap().len(), 1);
        assert_eq!(files[0]["content"].as_str().unwrap().len(), limits::INSTRUCTION_FILE_MAX);
        assert_eq!(files[0]["truncated"], true);
    }
}

#[tokio::test]
async fn the_overview_names_entries_build_files_branch_and_rights() {
    let bench = Bench::new(Profile::Agent);
    bench.write("Cargo.toml", "");
    bench.write("src/main.rs", "");
    bench.write(".git/HEAD", "ref: refs/heads/topic/x\n");
    let overview = bench.ok("project_overview", json!({})).await;
    assert_eq!(overview["entries"], json!([".git/", "Cargo.toml", "src/"]));
    assert_eq!(overview["build"], json!([{"file": "Cargo.toml", "with": "cargo"}]));
    assert_eq!(overview["git"], json!({"branch": "topic/x"}));
    assert_eq!(overview["policy"]["profile"], "agent");
    assert_eq!(overview["tools"].as_array().unwrap().len(), 28);
}

#[tokio::test]
async fn diagnosis_shows_the_groups_of_link_and_executor_and_no_path() {
    let (workspace, data) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let mut options =
        ExecOptions::new(workspace.path().into(), data.path().into(), Policy::of(Profile::Agent, "default"));
    options.diagnose = Arc::new(|| json!({"relay": {"ready": true}, "policy": "not ours to say"}));
    let executor = LocalExecutor::open(options).unwrap();
    let bench = Bench { workspace, data, executor };
    let shown = bench.ok("diagnose_runtime", json!({})).await;
    assert_eq!(shown["relay"], json!({"ready": true}));
    assert_eq!(shown["policy"]["profile"], "agent");
    assert_eq!(shown["calls"], json!({"running": 1, "maximum": 64, "reserved_for_control": 4}));
    assert_eq!(shown["sessions"], json!({"open": 0, "running": 0, "maximum": 8}));
    assert_eq!(shown["processes"], json!({"running": 0, "escaped": 0, "leftovers_ended": 0}));
    assert!(!shown.to_string().contains(bench.data.path().to_str().unwrap()));
}
