//! Random tokens, their hashes, and sealing one secret under another.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::aead;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// What the store keeps of a token: SHA-256 of a 256-bit random value needs no salt and no stretching.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TokenHash(pub(crate) [u8; 32]);

impl TokenHash {
    /// The hash of a token as it was presented.
    pub(crate) fn of(token: &str) -> Self {
        TokenHash(Sha256::digest(token.as_bytes()).into())
    }

    /// Compares without telling by its time where the two differ.
    pub(crate) fn same(&self, other: &TokenHash) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash(..)")
    }
}

impl rusqlite::ToSql for TokenHash {
    fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
        self.0.to_sql()
    }
}

impl rusqlite::types::FromSql for TokenHash {
    fn column_result(value: rusqlite::types::ValueRef<'_>) -> rusqlite::types::FromSqlResult<Self> {
        <[u8; 32]>::column_result(value).map(TokenHash)
    }
}

/// Random bytes from the operating system.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // Without randomness no secret can be made; there is nothing sensible to go on with.
    if getrandom::fill(&mut bytes).is_err() {
        std::process::abort();
    }
    bytes
}

/// A new token: the prefix says what it is, 256 random bits say whose.
pub(crate) fn mint(prefix: &str) -> String {
    format!("{prefix}{}", URL_SAFE_NO_PAD.encode(random::<32>()))
}

/// A short public name: the prefix and 96 random bits.
pub(crate) fn mint_name(prefix: &str) -> String {
    format!("{prefix}{}", URL_SAFE_NO_PAD.encode(random::<12>()))
}

/// `BYTES * 8 / 5` random base32 characters that a person can type.
pub(crate) fn typed_code<const BYTES: usize>() -> String {
    data_encoding::BASE32_NOPAD.encode(&random::<BYTES>())
}

/// A typed code as it was meant: upper case, without the blanks and dashes people add; `None` if it is not base32.
pub(crate) fn read_typed_code(text: &str, characters: usize) -> Option<String> {
    if text.len() > characters * 4 {
        return None;
    }
    let code: String =
        text.chars().filter(|c| !c.is_whitespace() && *c != '-').map(|c| c.to_ascii_uppercase()).collect();
    let base32 = |b: u8| b.is_ascii_uppercase() || (b'2'..=b'7').contains(&b);
    (code.len() == characters && code.bytes().all(base32)).then_some(code)
}

fn key(secret: &str, purpose: &'static str) -> Option<aead::LessSafeKey> {
    let digest = Sha256::new().chain_update(purpose).chain_update([0]).chain_update(secret).finalize();
    Some(aead::LessSafeKey::new(aead::UnboundKey::new(&aead::CHACHA20_POLY1305, &digest).ok()?))
}

/// Seals `text` so that only a holder of `secret` reads it. `secret` is a random token that seals one text in its life, which
/// is why the nonce may be constant.
pub(crate) fn seal(secret: &str, purpose: &'static str, text: &str) -> Option<Vec<u8>> {
    let mut bytes = text.as_bytes().to_vec();
    key(secret, purpose)?
        .seal_in_place_append_tag(aead::Nonce::assume_unique_for_key([0; 12]), aead::Aad::empty(), &mut bytes)
        .ok()?;
    Some(bytes)
}

/// Reads what [`seal`] sealed; `None` for another secret or changed bytes.
pub(crate) fn unseal(secret: &str, purpose: &'static str, sealed: &[u8]) -> Option<String> {
    let mut bytes = sealed.to_vec();
    let plain = key(secret, purpose)?
        .open_in_place(aead::Nonce::assume_unique_for_key([0; 12]), aead::Aad::empty(), &mut bytes)
        .ok()?;
    String::from_utf8(plain.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_secret_that_sealed_reads_it() {
        let sealed = seal("a", "pair", "text").unwrap();
        assert_eq!(unseal("a", "pair", &sealed).as_deref(), Some("text"));
        assert_eq!(unseal("b", "pair", &sealed), None);
        assert_eq!(unseal("a", "other", &sealed), None);
        let mut changed = sealed.clone();
        changed[0] ^= 1;
        assert_eq!(unseal("a", "pair", &changed), None);
        assert_eq!(unseal("a", "pair", b""), None);
    }

    #[test]
    fn a_typed_code_is_read_as_it_was_meant() {
        assert_eq!(typed_code::<5>().len(), 8);
        assert_eq!(read_typed_code(" abcd-efg2 ", 8).as_deref(), Some("ABCDEFG2"));
        for bad in ["", "ABCDEFG", "ABCDEFG1", "ABCDEFGHI", "ABCDEFG\u{e9}", &"A".repeat(1000)] {
            assert_eq!(read_typed_code(bad, 8), None, "{bad:?}");
        }
    }

    #[test]
    fn a_hash_is_never_printed() {
        assert_eq!(format!("{:?}", TokenHash::of("x")), "TokenHash(..)");
    }
}
