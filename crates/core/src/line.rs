//! Words from outside on one line of ours.

/// `text` without characters that steer a terminal, hide, or reorder what stands beside them; each becomes a space. At most
/// `max` characters, at least one; a longer text ends in `…`.
pub fn one_line(text: &str, max: usize) -> String {
    let mut line = String::new();
    for (count, c) in text.chars().enumerate() {
        if count + 1 > max {
            line.pop();
            line.push('…');
            break;
        }
        line.push(if c.is_control() || reorders(c) { ' ' } else { c });
    }
    line
}

/// A text of several lines without such characters: those that steer become a space, except line ends and tabs; those that hide
/// or reorder are left out, except the two that join and part the letters of one word or sign.
pub fn lines(text: &str) -> String {
    let joins = |c| matches!(c, '\u{200c}' | '\u{200d}');
    let kept = text.replace("\r\n", "\n");
    kept.chars()
        .filter(|c| joins(*c) || !reorders(*c))
        .map(|c| if c.is_control() && !matches!(c, '\n' | '\t') { ' ' } else { c })
        .collect()
}

/// Characters that are invisible or change the direction of what follows.
fn reorders(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_hides_or_reorders_becomes_a_space() {
        assert_eq!(one_line("a\u{1b}[2Jb\u{202e}c\nd\u{200b}e\u{2066}f\u{e0041}", 40), "a [2Jb c d e f ");
    }

    #[test]
    fn a_text_of_lines_keeps_its_lines_and_what_joins_letters() {
        assert_eq!(lines("a\r\nb\tc\u{1b}[2Jd\u{202e}e\u{200b}f\rg"), "a\nb\tc [2Jdef g");
        assert_eq!(lines("👨\u{200d}👩 می\u{200c}خواهم"), "👨\u{200d}👩 می\u{200c}خواهم");
    }

    #[test]
    fn a_long_text_ends_in_an_ellipsis_within_the_bound() {
        assert_eq!(one_line("abcdef", 6), "abcdef");
        assert_eq!(one_line("abcdefg", 6), "abcde…");
        assert_eq!(one_line("ééééééé", 6), "ééééé…");
    }
}
