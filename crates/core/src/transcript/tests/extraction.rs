use serde_json::{Value, json};

use super::pieces;
use crate::transcript::{Extraction, join};

fn line(value: &Value) -> String {
    format!("{value}\n")
}

fn said(text: &str) -> Value {
    json!({"type": "assistant", "message": {"content": [{"type": "text", "text": text}]}})
}

fn used(tool: &str, input: Value) -> Value {
    json!({"type": "assistant", "message": {"content": [{"type": "tool_use", "name": tool, "input": input}]}})
}

fn asked(text: &str) -> Value {
    json!({"type": "user", "message": {"content": text}})
}

fn changed(old: &str, new: &str) -> Value {
    let content = json!([{"type": "tool_result", "content": ""}]);
    json!({"type": "user", "message": {"content": content}, "toolUseResult": {"oldString": old, "newString": new}})
}

fn texts_of(extraction: &mut Extraction, values: &[Value]) -> Vec<String> {
    let transcript: String = values.iter().map(line).collect();
    pieces(extraction, &transcript).into_iter().map(|piece| piece.text).filter(|text| !text.is_empty()).collect()
}

fn texts(values: &[Value]) -> Vec<String> {
    texts_of(&mut Extraction::default(), values)
}

#[test]
fn two_equal_replies_are_two_and_each_has_its_own_bytes() {
    let transcript = [line(&said("Done.")), line(&said("Done."))].concat();
    let both = pieces(&mut Extraction::default(), &transcript);
    assert_eq!((both[0].text.as_str(), both[1].text.as_str()), ("Done.", "Done."));
    assert_eq!((both[0].range.end, both[1].range.start), (both[1].range.start, transcript.len() as u64 / 2));
}

#[test]
fn pieces_of_one_message_have_an_empty_line_between_them() {
    assert_eq!(join(["I look.", " ", "● **Run** (ls)", "Done."]), "I look.\n\n● **Run** (ls)\n\nDone.");
}

#[test]
fn parts_of_one_line_follow_each_other_and_a_tool_stands_apart() {
    let content = json!([
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "First."},
        {"type": "text", "text": "```rust\nnot closed"},
        {"type": "tool_use", "name": "WebFetch", "input": {"url": "https://example.org"}},
        {"type": "text", "text": "Last."},
    ]);
    assert_eq!(
        texts(&[json!({"type": "assistant", "message": {"content": content}})]),
        ["First.\n```rust\nnot closed\n```\n\n● **Web Fetch** (https://example.org)\nLast."]
    );
}

#[test]
fn plumbing_is_hidden_also_behind_the_name_of_a_server_and_ends_no_series() {
    let read = || used("Read", json!({"file_path": "/a/b.rs"}));
    let hidden = ["ToolSearch", "TaskUpdate", "reply", "mcp__holdfast__reply", "mcp__plugin_x_discord__fetch"];
    let hidden = hidden.into_iter().chain(["mcp__mixdog__activate_channel_bridge", "rebind_current_transcript"]);
    let mut lines = vec![read()];
    lines.extend(hidden.map(|name| used(name, json!({"query": "x"}))));
    lines.push(read());
    assert_eq!(texts(&lines), ["● **Explorer** (b.rs)"]);
}

#[test]
fn a_series_of_looking_is_one_line_until_something_else_is_said_used_or_asked_even_over_a_restart() {
    let read = || used("Read", json!({"file_path": "a.rs"}));
    let grep = || used("Grep", json!({"pattern": "fn main", "path": "/x"}));
    let memory = || used("mcp__memory__search", json!({"query": "x"}));
    let mut extraction = Extraction::default();
    assert_eq!(texts_of(&mut extraction, &[read(), grep()]), ["● **Explorer** (a.rs)"]);
    let stored = serde_json::to_string(&extraction).unwrap();
    let mut again: Extraction = serde_json::from_str(&stored).unwrap();
    assert_eq!(again, extraction);
    assert_eq!(texts_of(&mut again, &[grep(), said("No response requested."), grep()]), Vec::<String>::new());
    assert_eq!(
        texts_of(&mut again, &[memory(), memory(), grep(), said("Found."), grep(), asked("go on"), read()]),
        [
            "● **Memory**",
            "● **Explorer** (\"fn main\")",
            "Found.",
            "● **Explorer** (\"fn main\")",
            "● **Explorer** (a.rs)"
        ]
    );
}

#[test]
fn a_tool_is_told_by_its_label_what_it_was_given_and_the_beginning_of_it() {
    let seven = (1..=7).map(|n| format!("echo {n}")).collect::<Vec<_>>().join("\n");
    let table = [
        (used("Bash", json!({"command": "ls"})), "● **Run** (ls)\n```\nls\n```".to_owned()),
        (
            used("Bash", json!({"command": seven})),
            "● **Run** (echo 1 echo 2 echo 3 echo 4 echo 5 echo 6 echo 7)\n```\necho 1\necho 2\necho 3\necho 4\necho 5 \
             …\n```"
                .to_owned(),
        ),
        (
            used("shell", json!({"command": ["bash", "-lc", "make test"]})),
            "● **Run** (make test)\n```\nmake test\n```".to_owned(),
        ),
        (
            used("Bash", json!({"command": "echo '```'"})),
            "● **Run** (echo '```')\n````\necho '```'\n````".to_owned(),
        ),
        (
            used("Bash", json!({"command": "curl -H 'Authorization: Bearer abcdefgh12345' x"})),
            "● **Run** (curl -H 'Authorization: [hidden]' x)\n```\ncurl -H 'Authorization: [hidden]' x\n```".to_owned(),
        ),
        (
            used("Task", json!({"description": "Look", "prompt": "p".repeat(300)})),
            format!("● **Task** (Look)\n```\n{}…\n```", "p".repeat(199)),
        ),
        (used("Write", json!({"file_path": "C:\\x\\y.rs", "content": "z"})), "● **Create** (y.rs)".to_owned()),
        (used("Skill", json!({"skill": "pdf"})), "● **Skill** (pdf)".to_owned()),
        (used("mcp__docs__get_page", json!({"id": 1})), "● **MCP Server** (docs: get_page)".to_owned()),
        (used("some_new_tool", json!(null)), "● **some new tool**".to_owned()),
        (used("**x**\n`y`", json!([])), "● **x y**".to_owned()),
    ];
    for (line, expected) in table {
        assert_eq!(texts(std::slice::from_ref(&line)), [expected], "{line}");
    }
    let long = texts(&[used("Bash", json!({"command": "é".repeat(9000)}))]).remove(0);
    assert_eq!(long, format!("● **Run** ({}…)\n```\n{}…\n```", "é".repeat(49), "é".repeat(499)));
}

#[test]
fn a_change_is_shown_by_fifteen_lines_and_one_of_an_agents_own_notes_is_not() {
    let edit = |path: &str| used("Edit", json!({"file_path": path}));
    let many = (1..=12).map(|n| n.to_string()).collect::<Vec<_>>().join("\n");
    let shown = texts(&[edit("/a/b.rs"), changed(&many, "x\ny\nz\nlast")]);
    let old: String = (1..=12).map(|n| format!("- {n}\n")).collect();
    assert_eq!(shown[1], format!("```diff\n{old}+ x\n+ y\n+ z\n... +1 lines\n```"));
    for own in ["/home/a/.mixdog/projects/p/memory/x.md", "/b/MEMORY.md", "C:\\u\\.claude\\projects\\p\\memory\\x.md"] {
        assert_eq!(texts(&[edit(own), changed("a", "b")]).len(), 1, "{own}");
    }
    // No edit came before.
    assert_eq!(texts(&[changed("a", "b")]), Vec::<String>::new());
    assert_eq!(texts(&[edit("a"), changed("password = hunter2", "")])[1], "```diff\n- password = [hidden]\n```");
}

#[test]
fn what_a_host_put_in_and_what_means_nothing_is_not_said() {
    for silent in
        ["No response requested.", "no response requested", "Waiting for user response.", "(no content)", " \n"]
    {
        assert_eq!(texts(&[said(silent)]), Vec::<String>::new(), "{silent}");
    }
    let reminder =
        "<system-reminder>secret plan</system-reminder>\nHello\u{202e}\u{1b}[31m\n<channel source=\"x\">hi</channel>";
    assert_eq!(texts(&[said(reminder)]), ["Hello [31m"]);
    assert_eq!(
        texts(&[said("key ghp_0123456789abcdefghij and\n\n| a | b |\n|---|---|\n| 1 | 2 |")]),
        ["key [hidden] and\n\n**1**\n• b: 2"]
    );
}

#[test]
fn other_sessions_sidechains_and_what_was_copied_from_an_older_one_are_passed_over() {
    let by = |session: &str, text: &str| {
        let mut line = said(text);
        line["sessionId"] = session.into();
        line
    };
    let mut aside = by("x", "aside");
    aside["isSidechain"] = true.into();
    assert_eq!(texts(&[aside.clone(), by("a", "1"), by("b", "2"), said("3"), by("a", "4")]), ["1", "3", "4"]);
    let mut only_b = Extraction::new(Some("b".into()), None);
    assert_eq!(texts_of(&mut only_b, &[by("a", "1"), by("b", "2")]), ["2"]);
    let at = |time: &str, text: &str| {
        let mut line = said(text);
        line["timestamp"] = time.into();
        line
    };
    let mut copy = Extraction::new(None, Some(1_796_092_010_000));
    let lines = [at("2026-12-01T02:26:49Z", "copied"), at("2026-12-01T02:26:50Z", "new"), said("undated")];
    assert_eq!(texts_of(&mut copy, &lines), ["new", "undated"]);
}

#[test]
fn a_text_of_any_length_is_bounded() {
    let text = texts(&[said(&"é".repeat(400_000))]).remove(0);
    assert_eq!(text.len(), crate::limits::TRANSCRIPT_TEXT_MAX + "\n…".len());
}

proptest::proptest! {
    #[test]
    fn any_line_that_is_an_entry_becomes_some_text(tool in "\\PC{0,20}", key in "command|cmd|input|prompt|file_path|path|pattern",
        text in "[\\PC\n\t`<>/*-]{0,600}") {
        let lines = [used(&tool, json!({ key: &text })), said(&text), used("apply_patch", json!({"input": &text})),
            used("Edit", json!({"file_path": "x"})), changed(&text, &text)];
        for text in texts(&lines) {
            proptest::prop_assert!(text.chars().count() < 4000);
        }
    }
}

#[test]
fn where_other_text_stands_at_the_path_its_first_session_counts_unless_somebody_decided() {
    let by = |session: &str, text: &str| {
        let mut line = said(text);
        line["sessionId"] = session.into();
        line
    };
    for (named, then) in [(None, "b"), (Some("s1"), "c")] {
        let mut extraction = Extraction::new(named.map(str::to_owned), None);
        assert_eq!(texts_of(&mut extraction, &[by("s1", "a"), by("s2", "other")]), ["a"]);
        extraction.begin_anew();
        assert_eq!(texts_of(&mut extraction, &[by("s2", "b"), by("s1", "c")]), [then]);
    }
}

#[test]
fn a_time_that_lies_ahead_because_the_calendar_was_set_back_silences_nobody() {
    let mut extraction = Extraction::new(None, Some(2_000_000));
    let mut at = |now, text: &str| {
        let mut line = said(text);
        line["timestamp"] = "1970-01-01T00:20:00Z".into();
        extraction.at(now);
        texts_of(&mut extraction, &[line])
    };
    assert_eq!((at(2_000_000, "old"), at(1_200_500, "new")), (vec![], vec!["new".to_owned()]));
}
