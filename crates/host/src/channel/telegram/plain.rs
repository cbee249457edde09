//! Words of which Telegram makes a mention, which notifies, or a command, which is sent where somebody touches it. It does so by
//! itself, and leaves alone only what is code.

use serde_json::{Value, json};

/// Further ones do not count.
const ENTITIES: usize = 100;

/// What keeps a text as it is: entities of a message with this text.
pub(super) fn entities(text: &str) -> Vec<Value> {
    // In UTF-16 units, as Telegram counts: where each word begins and ends.
    let (mut at, mut words) = (0, Vec::new());
    for piece in text.split_inclusive(char::is_whitespace) {
        let word = piece.trim_end();
        if speaks(word) {
            words.push((at, at + units(word)));
        }
        at += units(piece);
    }
    if words.len() > ENTITIES
        && let Some(&(_, end)) = words.last()
    {
        words.truncate(ENTITIES);
        words[ENTITIES - 1].1 = end;
    }
    words.into_iter().map(|(from, to)| json!({"type": "code", "offset": from, "length": to - from})).collect()
}

fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

/// Whether a sign in it makes something of the letters behind it.
fn speaks(word: &str) -> bool {
    let letter = |c: char| c.is_alphanumeric() || c == '_';
    word.char_indices().filter(|(_, sign)| matches!(sign, '@' | '/')).any(|(at, sign)| {
        let before = word[..at].chars().next_back();
        let alone = before.is_none_or(|c| !letter(c) && c != '/');
        alone && word[at + sign.len_utf8()..].starts_with(letter)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_that_telegram_would_make_something_of_become_code() {
        for word in ["@ann", "(@ann)", "/stop", "\"/stop\"", "/usr/bin", "x:@ann", "cc/@ann,/x"] {
            assert!(speaks(word), "{word}");
        }
        for word in ["ann", "ann@example.com", "https://example.com/a", "a/b", "@", "/", "@-", "1/2"] {
            assert!(!speaks(word), "{word}");
        }
    }

    #[test]
    fn places_are_told_in_utf_16_units_and_the_last_of_too_many_covers_the_rest() {
        let code = |offset: usize, length: usize| json!({"type": "code", "offset": offset, "length": length});
        assert_eq!(entities("🛠️ hey @ann\n/stop"), [code(8, 4), code(13, 5)]);
        assert_eq!(entities("nobody"), [Value::Null; 0]);
        let many = entities(&"@ann ".repeat(150));
        assert_eq!((many.len(), &many[98], &many[99]), (100, &code(490, 4), &code(495, 254)));
    }
}
