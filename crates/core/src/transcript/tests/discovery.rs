use crate::limits;
use crate::transcript::discovery::{Candidate, Claim, Origin, Process, SessionRecord, best, session, slugs};
use crate::transcript::is_session;

const NOW: u64 = 1_796_092_000_000;

fn file(path: &str, seconds_ago: u64, here: bool) -> Candidate {
    Candidate { path: path.into(), modified: Some(NOW - seconds_ago * 1000), here, claim: None }
}

fn claimed(mut candidate: Candidate, process: Process) -> Candidate {
    candidate.claim = Some(Claim { pid: 7, process, written: NOW - 1000, started: NOW - 60_000, above: false });
    candidate
}

fn above(mut candidate: Candidate) -> Candidate {
    candidate.claim = candidate.claim.map(|claim| Claim { above: true, ..claim });
    candidate
}

fn missing(mut candidate: Candidate) -> Candidate {
    candidate.modified = None;
    candidate
}

const LIVE: Process = Process::Runs(None);

#[test]
fn the_transcript_that_is_most_likely_meant_wins_in_either_order() {
    let table = [
        ("nothing", vec![], None),
        (
            "a living session above, although another one lives here",
            vec![above(claimed(missing(file("a", 0, false)), LIVE)), claimed(file("b", 0, true), LIVE)],
            Some("a"),
        ),
        (
            "a dead session above counts for nothing",
            vec![above(claimed(file("a", 90, false), Process::Gone)), claimed(file("b", 900, false), LIVE)],
            Some("b"),
        ),
        (
            "a living session here before a living one elsewhere that wrote later",
            vec![claimed(file("a", 500, true), LIVE), claimed(file("b", 0, false), LIVE)],
            Some("a"),
        ),
        (
            "a living session elsewhere before a file here that was written later",
            vec![claimed(file("a", 500, false), LIVE), file("b", 0, true)],
            Some("a"),
        ),
        (
            "of two living sessions here the one that has a file",
            vec![claimed(missing(file("a", 0, true)), LIVE), claimed(file("b", 900, true), LIVE)],
            Some("b"),
        ),
        ("by time, if it differs by 30 s", vec![file("a", 30, true), file("b", 0, false)], Some("b")),
        ("by project, if it differs by less", vec![file("a", 29, true), file("b", 0, false)], Some("a")),
        ("the newest here", vec![file("a", 9, true), file("b", 3, true)], Some("b")),
        ("a file before none", vec![missing(file("a", 0, true)), file("b", 9000, false)], Some("b")),
        (
            "a chain of small differences does not make an old one new",
            vec![file("a", 58, true), file("b", 29, false), file("c", 0, false)],
            Some("c"),
        ),
        (
            "the record decides where files do not",
            vec![claimed(file("a", 0, true), Process::Gone), file("b", 0, true)],
            Some("a"),
        ),
    ];
    for (why, mut candidates, expected) in table {
        for _ in 0..2 {
            let path = best(&candidates).map(|at| candidates[at].path.as_str());
            assert_eq!(path, expected, "{why}");
            candidates.reverse();
        }
    }
}

#[test]
fn a_process_that_began_long_after_the_record_was_written_is_another_one_with_its_number() {
    let began = |seconds: u64| claimed(file("a", 0, true), Process::Runs(Some(NOW - 1000 + seconds * 1000)));
    for (candidate, live) in [
        (began(121), false),
        (began(120), true),
        (began(0), true),
        (claimed(file("a", 0, true), LIVE), true),
        (claimed(file("a", 0, true), Process::Gone), false),
        (file("a", 0, true), false),
    ] {
        assert_eq!(candidate.is_live(), live, "{candidate:?}");
    }
    // A dead transcript whose number lives on loses to the one that is written.
    let stale = Candidate { modified: Some(NOW - 600_000), ..began(500) };
    assert_eq!(best(&[stale, file("b", 0, true)]), Some(1));
}

#[test]
fn records_of_claude_code_and_of_the_generic_kind_are_read() {
    // As Claude Code 2.1.197 wrote it.
    let real = br#"{"pid":15908,"sessionId":"063d10f7","cwd":"/home/ann/project","startedAt":1796092098652,
        "procStart":"3065413","version":"2.1.197","peerProtocol":1,"kind":"interactive","entrypoint":"sdk-cli",
        "name":"proj-88","nameSource":"derived"}"#;
    let record = SessionRecord::read(real).unwrap();
    assert_eq!((record.pid, record.session_id.as_str(), record.is_interactive()), (Some(15908), "063d10f7", true));
    assert_eq!((record.started_at, record.updated_at, record.transcript_path), (Some(1_796_092_098_652), None, None));
    for (text, interactive) in [
        (r#"{"sessionId":"s","entrypoint":"cli","transcriptPath":"/t","updatedAt":5}"#, Some(true)),
        (r#"{"sessionId":"s","kind":"background","entrypoint":"cli"}"#, Some(false)),
        (r#"{"sessionId":"s"}"#, Some(false)),
        (r#"{"pid":1}"#, None),
        ("", None),
    ] {
        assert_eq!(SessionRecord::read(text.as_bytes()).map(|r| r.is_interactive()), interactive, "{text}");
    }
}

#[test]
fn the_folder_of_a_project_is_named_as_its_agent_names_it() {
    assert_eq!(slugs("/home/ann/my.project_1"), ["-home-ann-my-project-1", "-home-ann-my.project_1"]);
    assert_eq!(slugs("C:\\Users\\ann"), ["C--Users-ann", "C--Users-ann"]);
    assert_eq!(slugs("é"), ["-", "é"]);
}

#[test]
fn the_first_line_of_a_rollout_names_its_session_and_who_began_it() {
    let real = include_str!("../samples/codex-0.171.0.jsonl").lines().next().unwrap();
    let session = "01a22f6e-6de0-7791-bf62-8ad7b118a134".to_owned();
    let script = Origin { session, cwd: "/home/ann/project".into(), interactive: false };
    assert_eq!(Origin::read(real.as_bytes()), Some(script.clone()));
    for (source, interactive) in [(r#""cli""#, true), (r#""vscode""#, true), (r#"{"subagent":"review"}"#, false)] {
        let line = real.replace(r#""source":"exec""#, &format!("\"source\":{source}"));
        assert_eq!(Origin::read(line.as_bytes()), Some(Origin { interactive, ..script.clone() }));
    }
    assert_eq!(Origin::read(br#"{"type":"response_item","payload":{"id":"x","cwd":"/"}}"#), None);
}

#[test]
fn the_first_line_of_claude_code_that_says_where_it_works_names_its_session_and_who_began_it() {
    let real = include_str!("../samples/claude-code-2.1.197.jsonl");
    let said = real.lines().find_map(|line| Origin::read(line.as_bytes())).unwrap();
    let session = "07566a7d-7b45-45e4-b084-8b0389d294c1".to_owned();
    let script = Origin { session, cwd: "/home/ann/project".into(), interactive: false };
    assert_eq!(said, script);
    let person = real.replace("sdk-cli", "cli");
    let said = person.lines().find_map(|line| Origin::read(line.as_bytes()));
    assert_eq!(said, Some(Origin { interactive: true, ..script.clone() }));
    let agent = person.replace(r#""isSidechain":false"#, r#""isSidechain":true"#);
    assert_eq!(agent.lines().find_map(|line| Origin::read(line.as_bytes())), Some(script));
    assert_eq!(Origin::read(br#"{"type":"user","message":{"content":"hello"}}"#), None);
}

#[test]
fn what_a_program_would_take_for_an_option_is_no_session() {
    let long = "a".repeat(limits::CHAT_ID_MAX + 1);
    for id in ["", "-x", "--dangerously-skip-permissions", "_x", "a b", "../a", "a\0", &long] {
        assert!(!is_session(id), "{id:?}");
        let line = serde_json::json!({"sessionId": id, "cwd": "/w", "type": "user"}).to_string();
        assert_eq!((Origin::read(line.as_bytes()), SessionRecord::read(line.as_bytes())), (None, None), "{id:?}");
        let meta = serde_json::json!({"type": "session_meta", "payload": {"id": id, "cwd": "/w"}}).to_string();
        assert_eq!(Origin::read(meta.as_bytes()), None, "{id:?}");
        let said = serde_json::json!({"type": "user", "sessionId": id, "message": {"content": "hi"}});
        assert_eq!(crate::transcript::claude::read(&said).session, None, "{id:?}");
    }
    for id in ["s1", "5f0c1c1e-3d2b-4c59-9b43-2c6f2a1c7f10", "A_b-"] {
        assert!(is_session(id), "{id}");
    }
}

#[test]
fn the_session_of_a_line_is_what_its_agent_says_of_itself() {
    let table = [
        (r#"{"type":"assistant","sessionId":"s-1","isSidechain":false}"#, Some("s-1")),
        (r#"{"type":"user","sessionId":"s-1"}"#, Some("s-1")),
        (r#"{"type":"assistant","sessionId":"s-1","isSidechain":true}"#, None),
        (r#"{"type":"session_meta","payload":{"id":"c-1","cwd":"/srv"}}"#, Some("c-1")),
        (r#"{"type":"response_item","payload":{"id":"c-1"}}"#, None),
        (r#"{"type":"user","sessionId":"--resume"}"#, None),
        (r#"{"type":"user","sessionId":"s-1""#, None),
        ("", None),
    ];
    for (line, expected) in table {
        assert_eq!(session(line.as_bytes()).as_deref(), expected, "{line}");
    }
}
