//! What the real tools wrote when a made-up model told them what to do, without what the tools put in of their own.

use super::pieces;
use crate::transcript::{Extraction, Turn};

const CLAUDE: &str = include_str!("../samples/claude-code-2.1.197.jsonl");
const SUBAGENT: &str = include_str!("../samples/claude-code-2.1.197-subagent.jsonl");
const CODEX: &str = include_str!("../samples/codex-0.171.0.jsonl");

fn texts(sample: &str) -> Vec<String> {
    pieces(&mut Extraction::default(), sample).into_iter().map(|piece| piece.text).filter(|t| !t.is_empty()).collect()
}

fn turns(sample: &str) -> Vec<Turn> {
    pieces(&mut Extraction::default(), sample).into_iter().filter_map(|piece| piece.turn).collect()
}

#[test]
fn a_session_of_claude_code_is_told_as_a_person_would_see_it() {
    assert_eq!(
        texts(CLAUDE),
        [
            "I will look at the project first.",
            "● **Explorer** (a.txt)",
            "Now the edit.",
            "● **Update** (a.txt)",
            "```diff\n- beta\n+ gamma\n+ delta\n```",
            "● **Run** (echo one echo two)\n```\necho one\necho two\n```",
            "● **Create** (b.txt)",
            "● **Agent** (Count the words)\n```\nCount the words of a.txt.\n```",
            "● **Plan**",
            "Done.\n\n**a.txt**\n• words: 3",
            "Done.\n\n**a.txt**\n• words: 3",
        ]
    );
    use Turn::*;
    assert_eq!(
        turns(CLAUDE),
        [Began, Speaks, Tools, Tools, Tools, Speaks, Tools, Tools, Tools, Tools, Tools, Ended, Began, Ended]
    );
}

#[test]
fn what_a_subagent_of_claude_code_wrote_is_not_said() {
    assert_eq!(texts(SUBAGENT), Vec::<String>::new());
}

#[test]
fn a_session_of_codex_is_told_once_although_its_events_say_it_again() {
    assert_eq!(
        texts(CODEX),
        [
            "I will look at the project first.",
            "● **Run** (cat a.txt)\n```\ncat a.txt\n```",
            "● **Run** (apply_patch <<'EOP' *** Begin Patch *** Update Fi…)\n```\napply_patch <<'EOP'\n*** Begin Patch\n*** \
             Update File: a.txt\n@@\n-beta …\n```",
            "● **Create** (c.txt)\n```diff\n*** Begin Patch\n*** Add File: c.txt\n+new\n*** End Patch\n```",
            "● **MCP Server** (docs: search)",
            "● **Web Search** (holdfast knots)",
            "● **Run** (echo local)\n```\necho local\n```",
            "Done.",
            "Done.",
        ]
    );
    use Turn::*;
    assert_eq!(
        turns(CODEX),
        [Began, Speaks, Tools, Tools, Tools, Tools, Tools, Tools, Speaks, Ended, Began, Speaks, Ended]
    );
}
