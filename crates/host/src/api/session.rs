//! Codes that open the window in a browser, and the tokens they are traded for. A code stands in an address, so it is worth
//! something once and for a minute; a token never does.

use std::collections::VecDeque;
use std::time::Duration;

use holdfast_core::limits;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// What is kept of a code or a token.
struct Hash([u8; 32]);

impl Hash {
    fn of(text: &str) -> Hash {
        Hash(Sha256::digest(text).into())
    }

    fn same(&self, other: &Hash) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

/// All that are worth something now. Times are boot time.
#[derive(Default)]
pub(super) struct Sessions {
    codes: VecDeque<(Hash, Duration)>,
    tokens: VecDeque<Hash>,
    wrong: VecDeque<Duration>,
}

/// Why a code buys nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It is wrong, was used, or is too old.
    Wrong,
    /// It is wrong, as too many were lately.
    TooMany,
}

impl Sessions {
    /// This code may be traded once.
    pub(super) fn offer(&mut self, now: Duration, code: &str) {
        if self.codes.len() == limits::OPEN_CODES_MAX {
            self.codes.pop_front();
        }
        self.codes.push_back((Hash::of(code), now));
    }

    /// Trades a code: from now on `token` lets in. The oldest token makes room.
    pub(super) fn trade(&mut self, now: Duration, code: &str, token: &str) -> Result<(), Refusal> {
        let lately = |at: Duration| now < at + limits::OPEN_CODE_TTL;
        self.codes.retain(|(_, since)| lately(*since));
        self.wrong.retain(|at| lately(*at));
        let code = Hash::of(code);
        let Some(at) = self.codes.iter().position(|(known, _)| known.same(&code)) else {
            // A right code has 256 random bits: guesses must not keep its owner out.
            if self.wrong.len() >= limits::OPEN_TRIES {
                return Err(Refusal::TooMany);
            }
            self.wrong.push_back(now);
            return Err(Refusal::Wrong);
        };
        self.codes.remove(at);
        if self.tokens.len() == limits::SESSION_TOKENS_MAX {
            self.tokens.pop_front();
        }
        self.tokens.push_back(Hash::of(token));
        Ok(())
    }

    /// Whether this token was traded for a code.
    pub(super) fn knows(&self, token: &str) -> bool {
        let token = Hash::of(token);
        self.tokens.iter().any(|known| known.same(&token))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    #[test]
    fn a_code_buys_one_token_once() {
        let mut sessions = Sessions::default();
        sessions.offer(S, "code");
        assert!(!sessions.knows("a"));
        assert_eq!(sessions.trade(S, "code", "a"), Ok(()));
        assert_eq!(sessions.trade(S, "code", "b"), Err(Refusal::Wrong));
        assert!(sessions.knows("a") && !sessions.knows("b") && !sessions.knows("code"));
    }

    #[test]
    fn a_code_lapses_after_a_minute() {
        let mut sessions = Sessions::default();
        sessions.offer(S, "in time");
        sessions.offer(S, "late");
        assert_eq!(sessions.trade(S * 60, "in time", "a"), Ok(()));
        assert_eq!(sessions.trade(S * 61, "late", "b"), Err(Refusal::Wrong));
    }

    #[test]
    fn who_guesses_is_told_so_and_a_right_code_is_taken_all_the_same() {
        let mut sessions = Sessions::default();
        sessions.offer(S, "code");
        for _ in 0..limits::OPEN_TRIES {
            assert_eq!(sessions.trade(S, "guess", "a"), Err(Refusal::Wrong));
        }
        assert_eq!(sessions.trade(S, "guess", "a"), Err(Refusal::TooMany));
        assert_eq!(sessions.trade(S, "code", "b"), Ok(()));
        assert!(!sessions.knows("a") && sessions.knows("b"));
        assert_eq!(sessions.trade(S * 61, "guess", "a"), Err(Refusal::Wrong));
    }

    #[test]
    fn codes_and_tokens_are_bounded_and_the_oldest_goes() {
        let mut sessions = Sessions::default();
        for n in 0..=limits::OPEN_CODES_MAX {
            sessions.offer(S, &n.to_string());
        }
        assert_eq!(sessions.trade(S, "0", "a"), Err(Refusal::Wrong));
        for n in 0..=limits::SESSION_TOKENS_MAX {
            sessions.offer(S, "code");
            assert_eq!(sessions.trade(S, "code", &n.to_string()), Ok(()));
        }
        assert!(!sessions.knows("0") && sessions.knows("1"));
    }
}
