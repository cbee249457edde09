//! A bot's token: its id in base64, then a date and a signature.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use secrecy::{ExposeSecret as _, SecretString};

use crate::channel::BadChannel;

pub(super) const NO_TOKEN: &str =
    "this is no token of a Discord bot; it stands in the Developer Portal under Bot, behind Reset Token";
const AN_ID: &str =
    "this is an id, not a token; the token stands in the Developer Portal under Bot, behind Reset Token";

/// The token without a `Bot ` before it, and the bot's id.
pub(super) fn read(text: &SecretString) -> Result<(SecretString, String), BadChannel> {
    let text = text.expose_secret().trim();
    let token = text.strip_prefix("Bot ").unwrap_or(text).trim_start();
    if !token.is_empty() && token.bytes().all(|b| b.is_ascii_digit()) {
        return Err(BadChannel::Token(AN_ID));
    }
    let bot = bot_of(token).ok_or(BadChannel::Token(NO_TOKEN))?;
    Ok((token.into(), bot))
}

fn bot_of(token: &str) -> Option<String> {
    let mut parts = token.split('.');
    let (id, date, signature) = (parts.next()?, parts.next()?, parts.next()?);
    let good = parts.next().is_none()
        && (4..=16).contains(&date.len())
        && (20..=128).contains(&signature.len())
        && token.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
    let id = STANDARD_NO_PAD.decode(id).ok().and_then(|id| String::from_utf8(id).ok())?;
    let is_id = (1..=20).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_digit());
    (good && is_id).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_names_its_bot_with_or_without_the_word_before_it() {
        for text in ["MTIzNDU2.Gabcde.0123456789abcdefghijklm", " Bot MTIzNDU2.Gabcde.0123456789abcdefghijklm\n"] {
            let (token, bot) = read(&text.into()).unwrap();
            assert_eq!((token.expose_secret(), bot.as_str()), ("MTIzNDU2.Gabcde.0123456789abcdefghijklm", "123456"));
        }
    }

    #[test]
    fn an_id_is_told_from_a_token_and_anything_else_is_none() {
        assert_eq!(read(&"123456789012345678".into()).unwrap_err(), BadChannel::Token(AN_ID));
        for bad in
            ["", "Bot ", "MTIzNDU2", "MTIzNDU2.Gabcde.short", "bm9udW1i.Gabcde.0123456789abcdefghijklm", "a/b.c?d.e"]
        {
            assert_eq!(read(&bad.into()).unwrap_err(), BadChannel::Token(NO_TOKEN), "{bad}");
        }
    }
}
