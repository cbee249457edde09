//! Code blocks, made so that a chat service and the chunker see the same ones.

/// What a code block begins and ends with, at the start of a line.
pub(super) const FENCE: &str = "```";

/// Between backticks that shall not end a block.
const JOINT: char = '\u{200b}';

/// Every code block begins and ends with a line of exactly three backticks and is closed; backticks that would end it early,
/// and those outside of blocks that would begin one, are kept apart by an invisible character.
pub fn fences(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    // Character and length of the fence that is open.
    let mut open: Option<(char, usize)> = None;
    for line in text.split_inclusive('\n') {
        let bare = line.trim_end_matches(['\n', '\r']);
        match (open, fence(bare)) {
            (None, Some((mark, length, info))) => {
                open = Some((mark, length));
                out.push_str(FENCE);
                out.push_str(&apart(info.trim_end()));
            }
            (Some((mark, length)), Some((closing, closes, ""))) if mark == closing && closes >= length => {
                open = None;
                out.push_str(FENCE);
            }
            _ => out.push_str(&apart(bare)),
        }
        if line.ends_with('\n') {
            out.push('\n');
        }
    }
    if open.is_some() {
        if !out.ends_with('\n') {
            out.push('\n');
        }
        out.push_str(FENCE);
    }
    out
}

/// A line that opens or closes a block: its character, how many, and what follows.
fn fence(line: &str) -> Option<(char, usize, &str)> {
    let bare = line.trim_start_matches(' ');
    let mark = bare.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let rest = bare.trim_start_matches(mark);
    let length = bare.len() - rest.len();
    let info = rest.trim();
    let opens = length >= 3 && line.len() - bare.len() <= 3 && !(mark == '`' && info.contains('`'));
    opens.then_some((mark, length, info))
}

fn apart(line: &str) -> String {
    if !line.contains(FENCE) {
        return line.to_owned();
    }
    let mut out = String::with_capacity(line.len() + 3);
    let mut run = 0;
    for c in line.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        if run == 3 {
            out.push(JOINT);
            run = 1;
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_fence_becomes_a_plain_one_and_what_it_protected_is_kept_apart() {
        assert_eq!(fences("````md\n```rust\nx\n```\n````\n"), "```md\n``\u{200b}`rust\nx\n``\u{200b}`\n```\n");
        assert_eq!(fences("~~~\n```\n~~~"), "```\n``\u{200b}`\n```");
    }

    #[test]
    fn a_block_that_is_not_closed_is_closed_at_the_end() {
        assert_eq!(fences("```rust\nx"), "```rust\nx\n```");
    }

    #[test]
    fn backticks_inside_a_line_begin_no_block() {
        assert_eq!(fences("use ```x``` here"), "use ``\u{200b}`x``\u{200b}` here");
        assert_eq!(fences("``x`` and `y`"), "``x`` and `y`");
    }

    #[test]
    fn text_without_blocks_stays_as_it_is() {
        assert_eq!(fences("a\n\n- b\n"), "a\n\n- b\n");
    }
}
