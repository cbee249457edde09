//! Transcripts as agents write them, found, followed and posted: real samples, files that are turned over, and one of a
//! gibibyte.

use std::fs;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use holdfast_testkit::discord::Seen;
use holdfast_testkit::home::Home;
use serde_json::Value;

use super::crew::Crew;
use super::stage::{SERVE, Stage};

const CLAUDE: &str = include_str!("../../crates/core/src/transcript/samples/claude-code-2.1.197.jsonl");
const CODEX: &str = include_str!("../../crates/core/src/transcript/samples/codex-0.171.0.jsonl");

/// The lines of a sample as they would be now, of a session that a person sits before in this project: those up to the one
/// that says so, and the others. What is older than half an hour would not be posted.
fn now(sample: &str, project: &Path) -> (String, String) {
    let project = project.canonicalize().expect("it is there");
    let sample = sample
        .replace("/home/ann/project", project.to_str().expect("text"))
        .replace("sdk-cli", "cli")
        .replace(r#""source":"exec""#, r#""source":"cli""#);
    let mut lines = sample.lines().map(|line| {
        let mut line: Value = serde_json::from_str(line).expect("JSON");
        line.as_object_mut().expect("an object").remove("timestamp");
        format!("{line}\n")
    });
    let says_so = |line: &String| line.contains("cwd");
    let mut first = String::new();
    for line in lines.by_ref() {
        first.push_str(&line);
        if says_so(&line) {
            break;
        }
    }
    (first, lines.collect())
}

fn append(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("its folder");
    let mut file = fs::OpenOptions::new().create(true).append(true).open(path).expect("the transcript");
    file.write_all(text.as_bytes()).expect("written");
}

fn said(text: &str) -> String {
    format!("{{\"type\":\"assistant\",\"message\":{{\"content\":\"{text}\"}}}}\n")
}

/// Waits until the binding follows this.
async fn follows(stage: &Stage, path: &Path) {
    let path = path.canonicalize().expect("it is there");
    let waiting = async {
        loop {
            let status = stage.home.json(&["status", "--json"]).await;
            if status["channels"]["bindings"][0]["transcript"].as_str() == path.to_str() {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    let waited = tokio::time::timeout(super::stage::PATIENCE, waiting).await;
    waited.unwrap_or_else(|_| panic!("{} is not followed: {}", path.display(), stage.process.log()));
}

/// Waits for the last of these, and checks that all stand in the channel in this order.
async fn is_told(stage: &Stage, expected: &[&str]) {
    let channel = stage.channel;
    let whole = |seen: &Seen| seen.texts(channel).join("\n");
    let in_order = |seen: &Seen| {
        let whole = whole(seen);
        let rest = expected.iter().try_fold(whole.as_str(), |rest, text| Some(rest.split_once(text)?.1));
        rest.is_some()
    };
    let seen = stage.discord.until("everything that was said", in_order).await;
    assert_eq!(seen.twice(), Vec::<&str>::new());
}

#[tokio::test]
async fn a_session_of_claude_code_in_the_project_is_found_and_its_channel_shows_what_a_person_saw() {
    let stage = Stage::with("").await;
    let project = stage.home.workspace().canonicalize().expect("it is there");
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let slug: String = project.to_str().expect("text").chars().map(plain).collect();
    let path = stage.path(&format!(".claude/projects/{slug}/07566a7d-7b45-45e4-b084-8b0389d294c1.jsonl"));
    let (first, rest) = now(CLAUDE, &project);
    append(&path, &first);
    follows(&stage, &path).await;
    append(&path, &rest);
    let expected = [
        "I will look at the project first.",
        "● **Explorer** (a.txt)",
        "Now the edit.",
        "● **Update** (a.txt)",
        "```diff\n- beta\n+ gamma\n+ delta\n```",
        "● **Run** (echo one echo two)",
        "● **Create** (b.txt)",
        "● **Plan**",
        "• words: 3",
        "• words: 3",
    ];
    is_told(&stage, &expected).await;
    // A newer session of the project takes its place after its last word.
    let next = path.with_file_name("next.jsonl");
    append(&path, &said("last words"));
    // By the calendar, in milliseconds.
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    append(&next, &first.replace("07566a7d-7b45-45e4-b084-8b0389d294c1", "next"));
    follows(&stage, &next).await;
    append(&path, &said("nobody hears this"));
    append(&next, &said("first words"));
    is_told(&stage, &["last words", "first words"]).await;
    assert!(!stage.discord.seen().texts(stage.channel).concat().contains("nobody"));
}

#[tokio::test]
async fn a_rollout_of_codex_in_the_project_is_found_and_its_channel_shows_what_a_person_saw() {
    let stage = Stage::with("").await;
    let day = stage.path(".codex/sessions/2026/12/01");
    let path = day.join("rollout-2026-12-01T02-28-15-01a22f6e-6de0-7791-bf62-8ad7b118a134.jsonl");
    let (first, rest) = now(CODEX, &stage.home.workspace());
    append(&path, &first);
    follows(&stage, &path).await;
    append(&path, &rest);
    let expected = [
        "I will look at the project first.",
        "● **Run** (cat a.txt)",
        "● **Create** (c.txt)",
        "● **MCP Server** (docs: search)",
        "● **Web Search** (holdfast knots)",
        "● **Run** (echo local)",
        "Done.",
        "Done.",
    ];
    is_told(&stage, &expected).await;
}

#[tokio::test]
async fn a_transcript_of_a_gibibyte_is_followed_from_its_end_in_little_memory() {
    let home = Home::new();
    let path = home.data().with_file_name("big.jsonl");
    let mut file = fs::File::create(&path).expect("a file");
    file.seek(SeekFrom::Start(1 << 30)).expect("so far");
    file.write_all(format!("\n{}", said("old")).as_bytes()).expect("written");
    let stage = Stage::in_home(home, "", "transcript = \"$HOME/big.jsonl\"").await;
    follows(&stage, &path).await;
    append(&path, &said("new"));
    is_told(&stage, &["new"]).await;
    assert!(!stage.discord.seen().texts(stage.channel).concat().contains("old"));
    let peak = peak(&stage);
    assert!(peak < 256 << 10, "{peak} KiB");
}

/// The most memory a process ever had, in KiB.
fn peak(stage: &Stage) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", stage.process.pid())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("its memory");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

fn turn_over(crew: &Crew, number: usize) {
    fs::rename(crew.transcript(), rotated(crew, number)).expect("renamed");
}

fn rotated(crew: &Crew, number: usize) -> PathBuf {
    crew.transcript().with_extension(format!("jsonl.{number}"))
}

#[tokio::test]
async fn a_transcript_that_is_turned_over_while_it_is_served_and_while_nobody_does_loses_and_repeats_nothing() {
    let mut crew = Crew::of(1).await;
    crew.takes(0).await;
    for number in 0..3 {
        crew.says(10);
        turn_over(&crew, number);
        crew.says(10);
        crew.is_told().await;
    }
    crew.members[0].process.kill_9().await;
    crew.says(5);
    turn_over(&crew, 3);
    crew.says(5);
    crew.members[0].process = crew.members[0].home.start(&SERVE).await;
    crew.takes(0).await;
    crew.is_told().await;
}
