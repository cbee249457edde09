//! Hiding what looks like a secret in a text that a person will read. It goes by names and shapes, so it finds what is
//! usual, not everything: what must stay secret for certain must not be kept at all.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

/// Stands where a secret was.
pub const HIDDEN: &str = "[hidden]";

/// Part of a name whose value is a secret, in lower case without `-` and `_`.
const NAMES: [&str; 13] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "accesskey",
    "privatekey",
    "credential",
    "cookie",
    "authorization",
    "signature",
    "otp",
];

/// How tokens of well-known services, and ours, begin.
const BEGINNINGS: [&str; 28] = [
    "hf_",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "sk-",
    "sk_live_",
    "sk_test_",
    "rk_live_",
    "pk_live_",
    "xoxa-",
    "xoxb-",
    "xoxp-",
    "xoxr-",
    "xoxs-",
    "xapp-",
    "AKIA",
    "ASIA",
    "AIza",
    "ya29.",
    "eyJ",
    "npm_",
    "pypi-",
    "dop_v1_",
    "SG.",
];

/// A token of a known beginning is at least this long.
const TOKEN_MIN: usize = 16;

/// Stands before number and secret of a webhook.
const WEBHOOK: &str = "/webhooks/";

const KEY_BEGIN: &str = "-----BEGIN ";
const KEY_END: &str = "-----END ";
const KEY_NAME: &str = "PRIVATE KEY";

/// The text with [`HIDDEN`] in place of private keys, values of telling names, `Bearer` and `Basic` credentials, tokens of
/// known shapes, and names and passwords in addresses. JSON stays readable, escaped JSON inside of it too.
pub fn redact(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let (kept, hidden) = if rest.starts_with(KEY_BEGIN) {
            private_key(rest)
        } else if is_word(c) {
            word(rest)
        } else if let Some(after) = rest.strip_prefix("://") {
            (3, user(after))
        } else if let Some(secret) = webhook(rest) {
            secret
        } else {
            (c.len_utf8(), 0)
        };
        out.push_str(&rest[..kept]);
        if hidden > 0 {
            out.push_str(HIDDEN);
        }
        rest = &rest[kept + hidden..];
    }
    out
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// Length of what `pick` says belongs together.
fn run(text: &str, pick: impl Fn(char) -> bool) -> usize {
    text.find(|c| !pick(c)).unwrap_or(text.len())
}

/// How much of a text that begins with a PEM header is kept, and how much after it hidden.
fn private_key(text: &str) -> (usize, usize) {
    let header = text[KEY_BEGIN.len()..].find("-----").map(|at| KEY_BEGIN.len() + at);
    match header {
        Some(end) if text[..end].ends_with(KEY_NAME) => {
            // A block that is cut off is hidden to where it is cut.
            let whole = text
                .find(KEY_END)
                .and_then(|at| Some(at + KEY_END.len() + text[at + KEY_END.len()..].find("-----")? + 5));
            (0, whole.unwrap_or(text.len()))
        }
        _ => (KEY_BEGIN.len(), 0),
    }
}

/// The same for a text that begins with a word.
fn word(text: &str) -> (usize, usize) {
    let name = &text[..run(text, is_word)];
    if name.len() >= TOKEN_MIN && BEGINNINGS.iter().any(|b| name.starts_with(b)) {
        return (0, run(text, |c| is_word(c) || matches!(c, '+' | '/' | '=')));
    }
    if let Some(secret) = discord_token(name) {
        return (0, secret);
    }
    let after = &text[name.len()..];
    if let Some(secret) = bot_token(name, after) {
        return (name.len() + 1, secret);
    }
    if matches!(name, "Bearer" | "bearer" | "Basic" | "basic") && after.starts_with(' ') {
        let value = run(&after[1..], |c| is_word(c) || matches!(c, '+' | '/' | '=' | '~'));
        // Base64 comes in fours; a word of prose seldom does.
        let likely = value >= 8 && (name.ends_with("earer") || value.is_multiple_of(4));
        return if likely { (name.len() + 1, value) } else { (name.len(), 0) };
    }
    if !is_telling(name) {
        return (name.len(), 0);
    }
    match separator(after, name.starts_with("--")) {
        Some(gap) => {
            let value = value(&after[..gap], &after[gap..], name);
            if value > 0 { (name.len() + gap, value) } else { (name.len(), 0) }
        }
        None => (name.len(), 0),
    }
}

fn is_telling(name: &str) -> bool {
    let plain: Cow<'_, str> =
        name.chars().filter(|c| !matches!(c, '_' | '-')).map(|c| c.to_ascii_lowercase()).collect();
    // `max_tokens` counts them.
    !plain.ends_with("tokens") && NAMES.iter().any(|n| plain.contains(n) && (*n != "otp" || plain == "otp"))
}

/// Length of what stands between a name and its value: `=`, `":"`, `","` of an argument vector, or a blank after a flag.
/// Quotes may be escaped once or more.
fn separator(text: &str, flag: bool) -> Option<usize> {
    let quoted = |text: &str| run(text, |c| matches!(c, '\\' | '"' | '\''));
    let blank = |text: &str| run(text, |c| c == ' ');
    let closed = quoted(text);
    let at = closed + blank(&text[closed..]);
    let sign = text[at..].chars().next()?;
    let next = match sign {
        ':' | '=' => at + 1,
        ',' if closed > 0 && flag => at + 1,
        _ if flag && at > closed && closed == 0 => at,
        _ => return None,
    };
    let next = next + blank(&text[next..]);
    Some(next + quoted(&text[next..]))
}

/// Length of the secret in a token of Telegram's: a number, a colon and that. In an address, `bot` stands before it.
fn bot_token(name: &str, after: &str) -> Option<usize> {
    let id = name.strip_prefix("bot").unwrap_or(name);
    let secret = run(after.strip_prefix(':')?, |c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    (id.len() >= 6 && id.bytes().all(|b| b.is_ascii_digit()) && secret >= 30).then_some(secret)
}

/// Length of a token of Discord's: the bot's id in base64, a date, and a signature. A full stop may follow.
fn discord_token(name: &str) -> Option<usize> {
    let token = name.trim_end_matches('.');
    let mut parts = token.split('.');
    let (id, date, signature) = (parts.next()?, parts.next()?, parts.next()?);
    let shape =
        (20..=30).contains(&id.len()) && (4..=16).contains(&date.len()) && (20..=128).contains(&signature.len());
    let id = STANDARD_NO_PAD.decode(id).ok().filter(|_| shape && parts.next().is_none())?;
    id.iter().all(u8::is_ascii_digit).then_some(token.len())
}

/// The address of a webhook, from `/webhooks/` on: how much of it is kept, the number of it, and how long the secret behind is.
fn webhook(text: &str) -> Option<(usize, usize)> {
    let after = text.strip_prefix(WEBHOOK)?;
    let id = run(after, |c| c.is_ascii_digit());
    let secret = run(after[id..].strip_prefix('/')?, is_word);
    (id > 0 && secret >= TOKEN_MIN).then_some((WEBHOOK.len() + id + 1, secret))
}

/// Length of a value: to the quote that closes it, or to where a word ends. An authorization has a word before it.
fn value(before: &str, text: &str, name: &str) -> usize {
    if let Some(length) = quoted_value(before, text) {
        return length;
    }
    let ends =
        |c: char| matches!(c, '"' | '\'' | '\\' | '\n' | '\r' | ',' | ';' | '&' | '}' | ']' | ')' | '>' | '{' | '[');
    let header = name.to_ascii_lowercase().ends_with("authorization") || name.to_ascii_lowercase().ends_with("cookie");
    let length = run(text, |c| !ends(c) && (header || c != ' '));
    match &text[..length] {
        "true" | "false" | "null" | "None" => 0,
        _ => length,
    }
}

/// Length of a value that begins after one opening quote, escaped as often as JSON stands in JSON; one that is cut off goes
/// to where it is cut.
fn quoted_value(before: &str, text: &str) -> Option<usize> {
    let opening = &before[before.trim_end_matches(['\\', '"', '\'']).len()..];
    let escapes = opening.bytes().take_while(|b| *b == b'\\').count();
    let quote = Some(&opening[escapes..]).filter(|quote| quote.len() == 1 && (escapes + 1).is_power_of_two())?;
    // `"the token:","n":1`: this quote closes what the name stands in.
    if !before.starts_with(['\\', '"', '\'']) && text.starts_with([',', '}', ']', ':', ')']) {
        return Some(0);
    }
    // One more escape, or an escaped escape, stands before a quote that belongs to the value.
    let closing = text.match_indices(quote).map(|(at, _)| at).find(|at| {
        let before = text[..*at].bytes().rev().take_while(|b| *b == b'\\').count();
        before % (2 * (escapes + 1)) == escapes
    });
    Some(closing.map_or(text.len(), |at| at - escapes))
}

/// Length of name and password at the beginning of an address.
fn user(text: &str) -> usize {
    let host = run(text, |c| !c.is_whitespace() && !matches!(c, '/' | '?' | '#' | '"' | '\'' | '\\'));
    text[..host].rfind('@').unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_a_secret_is_hidden_and_the_rest_stays() {
        let table = [
            ("npm test -- --watch=false", "npm test -- --watch=false"),
            (r#"{"password":"hunter2","user":"ann"}"#, r#"{"password":"[hidden]","user":"ann"}"#),
            (r#"{"body":"{\"api_key\": \"abc\", \"n\": 1}"}"#, r#"{"body":"{\"api_key\": \"[hidden]\", \"n\": 1}"}"#),
            (
                r#"["curl","-H","Authorization: Bearer abc.def-ghi","x"]"#,
                r#"["curl","-H","Authorization: [hidden]","x"]"#,
            ),
            (r#"["mysql","--password","hunter2","db"]"#, r#"["mysql","--password","[hidden]","db"]"#),
            ("mysql --password hunter2 db", "mysql --password [hidden] db"),
            ("Basic information, then Basic YW5uOnB3", "Basic information, then Basic [hidden]"),
            ("GITHUB_TOKEN=abc make", "GITHUB_TOKEN=[hidden] make"),
            ("echo ghp_0123456789abcdefghij!", "echo [hidden]!"),
            ("hf_pat_AAAABBBBCCCCDDDD-_x", "[hidden]"),
            ("ask-me-for-a-risky-business-thing", "ask-me-for-a-risky-business-thing"),
            ("jwt eyJhbGciOi.eyJzdWIi.c2ln/x= end", "jwt [hidden] end"),
            ("https://ann:pw@host/a@b", "https://[hidden]@host/a@b"),
            (r#"{"max_tokens":100,"token":null,"secret":true}"#, r#"{"max_tokens":100,"token":null,"secret":true}"#),
            ("the password is long; tokens expire", "the password is long; tokens expire"),
            ("Set-Cookie: a=b; Path=/", "Set-Cookie: [hidden]; Path=/"),
            (r#"{"password":"a, b}c;d&e","user":"ann"}"#, r#"{"password":"[hidden]","user":"ann"}"#),
            (r#"{"password":"a\"b","user":"ann"}"#, r#"{"password":"[hidden]","user":"ann"}"#),
            (r#"{"password":"a\\","user":"ann"}"#, r#"{"password":"[hidden]","user":"ann"}"#),
            (r#"{"b":"{\"secret\": \"a, b\\\"c\", \"n\": 1}"}"#, r#"{"b":"{\"secret\": \"[hidden]\", \"n\": 1}"}"#),
            ("PASSWORD='correct horse' make", "PASSWORD='[hidden]' make"),
            (r#"{"password":"cut off, he"#, r#"{"password":"[hidden]"#),
            (r#"{"ask":"what is the token:","n":"1"}"#, r#"{"ask":"what is the token:","n":"1"}"#),
            (r#"{"password":"","user":"ann"}"#, r#"{"password":"","user":"ann"}"#),
            (
                "https://t.example/bot123456:AAF-abcdefghijklmnopqrstuvwxyz01234x/getMe",
                "https://t.example/bot123456:[hidden]/getMe",
            ),
            ("use MTIzNDU2Nzg5MDEyMzQ1Njc4.Gabcde.0123456789abcdefghijklm-_x.", "use [hidden]."),
            ("a.b.c MTIzNDU2Nzg5MDEyMzQ1Njc4.Gabcde.short", "a.b.c MTIzNDU2Nzg5MDEyMzQ1Njc4.Gabcde.short"),
            (
                "https://discord.com/api/webhooks/123456789012345678/AbC-dEf_0123456789abcdef?wait=true",
                "https://discord.com/api/webhooks/123456789012345678/[hidden]?wait=true",
            ),
            ("see /webhooks/123 and /webhooks/new/page", "see /webhooks/123 and /webhooks/new/page"),
            ("at 12:30:00 port 123456:80", "at 12:30:00 port 123456:80"),
            ("é token=ä:ö ü", "é token=[hidden] ü"),
            ("-----BEGIN CERTIFICATE-----\\nMII", "-----BEGIN CERTIFICATE-----\\nMII"),
        ];
        for (text, expected) in table {
            assert_eq!(redact(text), expected);
        }
    }

    #[test]
    fn a_private_key_is_hidden_as_a_block_even_when_its_end_is_cut_off() {
        let key = "-----BEGIN RSA PRIVATE KEY-----\\nMIIabc/+=\\n-----END RSA PRIVATE KEY-----";
        assert_eq!(redact(&format!("{{\"content\":\"{key}\\n\"}}")), "{\"content\":\"[hidden]\\n\"}");
        assert_eq!(redact(&key[..45]), HIDDEN);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_to_its_end_and_nothing_is_made_up(text in "\\PC{0,200}") {
            let shown = redact(&text);
            let mut rest = text.as_str();
            for piece in shown.split(HIDDEN) {
                let at = rest.find(piece);
                proptest::prop_assert!(at.is_some() || text.contains(HIDDEN));
                rest = &rest[at.unwrap_or(0) + if at.is_some() { piece.len() } else { 0 }..];
            }
        }
    }
}
