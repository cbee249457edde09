//! The digest that tells a repetition from a conflict.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::Operation;

/// SHA-256 over the canonical JSON of a request: object keys sorted, no white space, no transport fields (ids, times).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// The digest of an operation.
    pub fn of(operation: &Operation) -> Digest {
        // A request holds nothing that JSON cannot say.
        let asked = serde_json::to_value(&operation.request).unwrap_or(Value::Null);
        // The run that an operation starts is part of its identity, the one that input is for is part of what it asks.
        let run = operation.run_id.as_ref().filter(|_| operation.kind().is_input());
        Digest::of_json(&serde_json::json!({"request": asked, "run": run, "session": operation.session_id}))
    }

    /// The digest of any value.
    pub fn of_json(value: &Value) -> Digest {
        let mut canonical = String::new();
        write(value, &mut canonical);
        Digest(Sha256::digest(canonical.as_bytes()).into())
    }

    /// Lower-case hexadecimal.
    pub fn to_hex(self) -> String {
        data_encoding::HEXLOWER.encode(&self.0)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_hex()[..12])
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, ser: S) -> Result<S::Ok, S::Error> {
        ser.serialize_str(&self.to_hex())
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(de: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(de)?;
        let bytes = data_encoding::HEXLOWER.decode(text.as_bytes()).ok().and_then(|bytes| bytes.try_into().ok());
        bytes.map(Digest).ok_or_else(|| serde::de::Error::custom("not a SHA-256"))
    }
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<_> = map.keys().collect();
            keys.sort_unstable();
            out.push('{');
            for (at, key) in keys.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                write(&map[key], out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        plain => out.push_str(&plain.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{OperationId, RunId};
    use crate::policy::Role;

    fn operation(id: u8, run: u8, request: &str) -> Operation {
        Operation {
            request_id: OperationId::mint([id; 16]),
            run_id: Some(RunId::mint([run; 16])),
            session_id: None,
            role: Role::Operator,
            client: None,
            after: None,
            request: serde_json::from_str(request).unwrap(),
        }
    }

    #[test]
    fn the_same_request_has_the_same_digest_whatever_its_identity_and_spelling() {
        let one = operation(1, 1, r#"{"type":"exec","command":{"argv":["ls"]},"env":{"A":"1","B":"2"}}"#);
        let same =
            operation(2, 2, r#"{"env":{"B":"2","A":"1"},"type":"exec","command":{"argv":["ls"]},"stdin":false}"#);
        let other = operation(1, 1, r#"{"type":"exec","command":{"argv":["ls","-l"]},"env":{"A":"1","B":"2"}}"#);
        assert_eq!(Digest::of(&one), Digest::of(&same));
        assert_ne!(Digest::of(&one), Digest::of(&other));
    }

    #[test]
    fn input_for_another_run_is_another_request() {
        let one = operation(1, 1, r#"{"type":"pty_close"}"#);
        let other = operation(1, 2, r#"{"type":"pty_close"}"#);
        assert_ne!(Digest::of(&one), Digest::of(&other));
    }

    #[test]
    fn a_digest_reads_back_as_it_was_written() {
        let digest = Digest([0xab; 32]);
        assert_eq!(serde_json::from_value::<Digest>(serde_json::json!(digest)).unwrap(), digest);
        assert!(serde_json::from_str::<Digest>("\"ab\"").is_err());
    }
}
