//! Cutting a long text into messages.

use std::ops::Range;

use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation as _};

use super::fences::FENCE;
use crate::limits;

/// One message of a longer text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// What is sent. An open code block is closed at its end and opened again in the next chunk.
    pub text: String,
    /// The bytes of the whole text that it carries. Ranges follow each other; only line ends and spaces lie between them.
    pub range: Range<usize>,
}

/// Cuts a text, as [`super::fences`] left it, into messages of at most `limit` UTF-16 units each, which is never less than
/// code points. A limit below [`limits::CHUNK_MIN`] counts as that. Cuts, in this order, if they lie in the second half of a
/// message: after a code block, at an empty line, at a line end, at a space; else between two graphemes.
pub fn chunks(text: &str, limit: usize) -> Vec<Chunk> {
    let limit = limit.max(limits::CHUNK_MIN);
    let mut all = Vec::new();
    let mut open: Option<String> = None;
    let mut at = blank_lines(text, 0);
    while at < text.len() {
        // A single grapheme of the opening line may be longer than a message.
        let head =
            open.as_ref().map_or_else(String::new, |line| format!("{}\n", &line[..hard_cut(line, 0, limit / 3)]));
        let room = limit - units(&head);
        let end = cut(text, at, room, open.is_some());
        let body = &text[at..end];
        let after = state_after(body, open.take());
        let tail = match &after {
            Some(_) if body.ends_with('\n') => FENCE.to_owned(),
            Some(_) => format!("\n{FENCE}"),
            None => String::new(),
        };
        let kept = if after.is_some() { body } else { body.trim_end() };
        all.push(Chunk { text: format!("{head}{kept}{tail}"), range: at..at + kept.len() });
        at = if after.is_some() { line_end(text, end) } else { blank_lines(text, end) };
        // What the cut left of a code block may be its closing line alone: that is said already.
        if after.is_some() && text[at..].lines().next().is_some_and(|line| line.trim_end() == FENCE) {
            at = blank_lines(text, line_end(text, at + text[at..].find('\n').unwrap_or(text.len() - at)));
        } else {
            open = after;
        }
    }
    all.retain(|chunk| !is_hollow(&chunk.text));
    all
}

/// Nothing but the frame of a code block, or nothing at all.
fn is_hollow(text: &str) -> bool {
    text.lines().all(|line| line.trim().is_empty() || line.starts_with(FENCE))
}

fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

/// Past a line end, if one stands here.
fn line_end(text: &str, at: usize) -> usize {
    if text[at..].starts_with('\n') { at + 1 } else { at }
}

/// Past everything that is invisible between two messages.
fn blank_lines(text: &str, at: usize) -> usize {
    let rest = &text[at..];
    let lines = rest.len() - rest.trim_start().len();
    // The indentation of the next line stays.
    let skipped = &rest[..lines];
    at + skipped.rfind('\n').map_or(if lines == rest.len() { lines } else { 0 }, |line| line + 1)
}

/// The opening line of the code block that is open after `body`, cut so that it leaves room for what it frames.
fn state_after(body: &str, mut open: Option<String>) -> Option<String> {
    for line in body.lines().filter(|line| line.starts_with(FENCE)) {
        open = match open {
            Some(_) => None,
            None => Some(line.graphemes(true).take(limits::CHUNK_INFO_MAX).collect()),
        };
    }
    open
}

/// Where a message that begins at `at` ends: at most `room` units, its closing fence included.
fn cut(text: &str, at: usize, room: usize, open: bool) -> usize {
    let rest = &text[at..];
    if rest.encode_utf16().nth(room).is_none() && state_after(rest, open.then(String::new)).is_none() {
        return text.len();
    }
    // A closing fence and its line end take four.
    let hard = hard_cut(text, at, room - FENCE.len() - 1);
    let body = &text[at..hard];
    let half = hard_cut(text, at, room / 2) - at;
    let late = |end: usize| (end > half).then_some(at + end);
    after_block(body, open)
        .and_then(late)
        .or_else(|| body.rfind("\n\n").map(|line| line + 1).and_then(late))
        .or_else(|| body.rfind('\n').map(|line| line + 1).and_then(late))
        .or_else(|| body.rfind(' ').map(|space| space + 1).and_then(late))
        .unwrap_or(hard)
}

/// The end of the last code block that ends in `body`.
fn after_block(body: &str, mut open: bool) -> Option<usize> {
    let mut end = None;
    let mut at = 0;
    for line in body.split_inclusive('\n') {
        at += line.len();
        if line.starts_with(FENCE) && line.ends_with('\n') {
            open = !open;
            if !open {
                end = Some(at);
            }
        }
    }
    end
}

/// The last grapheme border within `room` units; a grapheme that is longer than that is cut between characters.
fn hard_cut(text: &str, at: usize, room: usize) -> usize {
    let mut used = 0;
    let mut end = at;
    for c in text[at..].chars() {
        used += c.len_utf16();
        if used > room {
            break;
        }
        end += c.len_utf8();
    }
    if end == text.len() {
        return end;
    }
    let mut cursor = GraphemeCursor::new(end, text.len(), true);
    let whole = match cursor.is_boundary(text, 0) {
        Ok(true) => Some(end),
        // The whole text is at hand, so the cursor never asks for more.
        _ => cursor.prev_boundary(text, 0).ok().flatten(),
    };
    match whole {
        Some(border) if border > at => border,
        _ => end,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::chat::fences;

    fn texts(text: &str, limit: usize) -> Vec<String> {
        chunks(text, limit).into_iter().map(|chunk| chunk.text).collect()
    }

    #[test]
    fn a_short_text_is_one_message_and_nothing_is_none() {
        assert_eq!(texts("hello\n", 100), ["hello"]);
        assert_eq!(texts(" \n\n", 100), Vec::<String>::new());
    }

    #[test]
    fn a_text_is_cut_at_an_empty_line_rather_than_at_a_line_end_or_a_space() {
        let text = format!("{}\n\n{}\n{} {}", "a".repeat(60), "b".repeat(10), "c".repeat(20), "d".repeat(60));
        assert_eq!(
            texts(&text, 100),
            ["a".repeat(60), format!("{}\n{} {}", "b".repeat(10), "c".repeat(20), "d".repeat(60))]
        );
    }

    #[test]
    fn a_code_block_that_is_cut_is_closed_and_opened_again_with_its_own_language() {
        let lines = |from: usize, to: usize| (from..to).map(|n| format!("line number {n:02}\n")).collect::<String>();
        let text = format!("```js\nx\n```\n```rust\n{}```\nafter", lines(0, 8));
        let cut = texts(&text, 100);
        assert_eq!(cut[0], format!("```js\nx\n```\n```rust\n{}```", lines(0, 5)));
        assert_eq!(cut[1], format!("```rust\n{}```\nafter", lines(5, 8)));
    }

    #[test]
    fn a_code_block_with_a_long_first_line_does_not_push_a_message_over_the_limit() {
        let text = format!("```{}\n{}\n```", "info ".repeat(60), "x".repeat(900));
        for text in texts(&text, 200) {
            assert!(units(&text) <= 200, "{}", units(&text));
        }
    }

    #[test]
    fn a_code_block_whose_first_line_is_one_endless_letter_is_cut_like_any_other() {
        for marks in [1000, 1900, 1985, 1990, 1991, 1992, 1993, 3000] {
            let text = format!("```e{}\n{}\n```", "\u{301}".repeat(marks), "x ".repeat(3000));
            let cut = texts(&text, 2000);
            assert!(cut.iter().all(|text| units(text) <= 2000), "{marks}");
            assert!(cut.len() <= 6, "{marks}: each of {} carries its part", cut.len());
        }
    }

    #[test]
    fn a_message_ends_after_a_block_rather_than_inside_the_next() {
        let text = format!("{}\n```\ncode\n```\n{}", "a".repeat(50), "b ".repeat(40));
        assert_eq!(texts(&text, 100)[0], format!("{}\n```\ncode\n```", "a".repeat(50)));
    }

    #[test]
    fn no_grapheme_is_cut_unless_it_is_longer_than_a_message() {
        let family = "👨‍👩‍👧‍👦";
        for text in texts(&family.repeat(60), 100) {
            assert_eq!(text.len() % family.len(), 0);
        }
        let zalgo = format!("e{}", "\u{301}".repeat(500));
        assert!(texts(&zalgo, 100).iter().all(|text| units(text) <= 100));
    }

    /// What chats are made of, often at a place where a cut falls.
    fn piece() -> impl Strategy<Value = String> {
        prop_oneof![
            "[a-z ]{0,40}",
            Just("\n".to_owned()),
            Just("\n\n".to_owned()),
            Just("\n```rust\n".to_owned()),
            Just("\n```\n".to_owned()),
            Just("\n````md extra\n".to_owned()),
            Just("```".to_owned()),
            Just(format!("\n```e{}\n", "\u{301}".repeat(400))),
            Just("| a | b |\n|---|---|\n| 1 | 2 |\n".to_owned()),
            Just("👨‍👩‍👧‍👦🇩🇪".to_owned()),
            Just("a\u{301}\u{302}\u{303}".to_owned()),
            "[あ-ん]{0,30}",
            "[a-z]{90,130}",
            any::<String>(),
        ]
    }

    proptest! {
        #[test]
        fn every_message_is_within_the_limit_and_its_blocks_are_closed_and_nothing_visible_is_missing(
            pieces in proptest::collection::vec(piece(), 0..30),
            limit in 1usize..400,
        ) {
            let text = fences(&pieces.concat());
            let cut = chunks(&text, limit);
            let mut at = 0;
            for Chunk { text: message, range } in &cut {
                prop_assert!(units(message) <= limit.max(limits::CHUNK_MIN), "{}", units(message));
                prop_assert!(state_after(message, None).is_none(), "{message:?}");
                prop_assert!(!message.trim().is_empty());
                prop_assert!(range.start >= at);
                prop_assert!(is_hollow(&text[at..range.start]), "{:?} is missing", &text[at..range.start]);
                prop_assert!(message.contains(&text[range.clone()]), "{:?} is not in {message:?}", &text[range.clone()]);
                at = range.end;
            }
            prop_assert!(is_hollow(&text[at..]), "{:?} is missing", &text[at..]);
        }
    }
}
