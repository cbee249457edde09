//! Names of things on the wire, checked once where they enter.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};

/// Why a text is not an id of its kind. Carries no part of the text, which may be hostile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a valid {0}")]
pub struct BadId(pub &'static str);

fn is_id(text: &str, prefix: &str, min: usize, max: usize) -> bool {
    text.strip_prefix(prefix).is_some_and(|rest| {
        (min..=max).contains(&rest.len()) && rest.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
    })
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal, $min:literal..=$max:literal, $bytes:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[cfg_attr(feature = "ts", derive(ts_rs::TS))]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// What every id of this kind starts with.
            pub const PREFIX: &'static str = $prefix;
            /// Random bytes in an id that we mint.
            pub const RANDOM_BYTES: usize = $bytes;

            /// Checks a text from outside: the prefix, then base64url characters within the wire's bounds.
            pub fn parse(text: &str) -> Result<Self, BadId> {
                if is_id(text, $prefix, $min, $max) { Ok($name(text.into())) } else { Err(BadId(stringify!($name))) }
            }

            /// Mints an id from random bytes the caller drew.
            pub fn mint(random: [u8; $bytes]) -> Self {
                use base64::Engine as _;
                let tail = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(random);
                $name(format!("{}{tail}", $prefix).into())
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(de: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(de)?;
                $name::parse(&text).map_err(serde::de::Error::custom)
            }
        }
    };
}

id!(
    /// One call on the link. Base wire: `^call_[A-Za-z0-9_-]{8,240}$`; ours have 32 random bytes.
    CallId, "call_", 8..=240, 32
);
id!(
    /// One readiness probe. Base wire: `^probe_[A-Za-z0-9_-]{8,240}$`.
    ProbeId, "probe_", 8..=240, 32
);
id!(
    /// One process life of a daemon. Base wire: `^daemon_[A-Za-z0-9_-]{16,96}$`; ours have 18 random bytes.
    InstanceId, "daemon_", 16..=96, 18
);
id!(
    /// One process life that wants a bot's seat.
    SeatId, "seat_", 16..=64, 18
);
id!(
    /// One enrolled machine, as the relay names it.
    DeviceId, "dev_", 8..=64, 12
);
id!(
    /// What a client reads and stops a call by that outlives its request.
    KeptId, "kept_", 16..=96, 18
);
id!(
    /// One account of the relay. Base wire: `^acct_[A-Za-z0-9_-]{20,96}$`.
    AccountId, "acct_", 20..=96, 18
);

id!(
    /// One durable operation; `requestId` on the wire. Minted by the relay.
    OperationId, "op_", 22..=64, 16
);
id!(
    /// One run: what an operation that runs something is called in its output. Minted by the relay.
    RunId, "run_", 22..=64, 16
);
id!(
    /// One life of a ledger. A new one means that what was sent to the old one is unknown.
    LedgerId, "ledger_", 16..=64, 16
);
id!(
    /// One process life of a worker.
    RuntimeId, "runtime_", 16..=64, 16
);
id!(
    /// One recovery: from an open socket of a worker until it is live.
    RecoveryId, "recovery_", 16..=64, 16
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_needs_its_prefix_and_base64url_characters_within_bounds() {
        assert!(CallId::parse("call_abcdefgh").is_ok());
        for bad in ["call_abcdefg", "abcdefgh", "call_abcd efgh", "call_abcdefg\u{e9}", "", "call_"] {
            assert_eq!(CallId::parse(bad), Err(BadId("CallId")), "{bad:?}");
        }
        assert!(CallId::parse(&format!("call_{}", "a".repeat(240))).is_ok());
        assert!(CallId::parse(&format!("call_{}", "a".repeat(241))).is_err());
    }

    #[test]
    fn minted_ids_have_the_lengths_of_the_base_wire() {
        assert_eq!(CallId::mint([7; 32]).as_str().len(), "call_".len() + 43);
        assert_eq!(InstanceId::mint([7; 18]).as_str().len(), "daemon_".len() + 24);
        assert!(CallId::parse(CallId::mint([255; 32]).as_str()).is_ok());
    }
}
