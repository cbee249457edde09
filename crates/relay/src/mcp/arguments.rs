//! The arguments of a call: read once, bounded, and digested in canonical form.

use std::fmt;

use holdfast_core::limits;
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

/// Reads arguments into a tree for the schema check. Refuses more than [`limits::ARGUMENT_VALUES_MAX`] values before they
/// are built, and a key that stands twice: relay and daemon must not read different values out of one text.
pub(super) fn read(raw: &RawValue) -> Result<Value, String> {
    let mut left = limits::ARGUMENT_VALUES_MAX;
    let mut de = serde_json::Deserializer::from_str(raw.get());
    Bounded(&mut left).deserialize(&mut de).map_err(|error| {
        let text = error.to_string();
        // Without the position: it counts from the start of the arguments, which the client does not see.
        text.split_once(" at line ").map_or(text.clone(), |(what, _)| what.to_owned())
    })
}

struct Bounded<'a>(&'a mut usize);

impl Bounded<'_> {
    fn count<E: serde::de::Error>(&mut self) -> Result<(), E> {
        *self.0 = self.0.checked_sub(1).ok_or_else(|| E::custom("arguments hold too many values"))?;
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Bounded<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(mut self, de: D) -> Result<Value, D::Error> {
        self.count()?;
        de.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Bounded<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut out = Vec::new();
        while let Some(item) = items.next_element_seed(Bounded(&mut *self.0))? {
            out.push(item);
        }
        Ok(Value::Array(out))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut out = Map::new();
        while let Some(key) = fields.next_key::<String>()? {
            let value = fields.next_value_seed(Bounded(&mut *self.0))?;
            if out.insert(key, value).is_some() {
                return Err(A::Error::custom("a key stands twice in the arguments"));
            }
        }
        Ok(Value::Object(out))
    }
}

/// SHA-256 of tool and arguments in canonical form (as RFC 8785: sorted keys, no white space, numbers as doubles print).
pub(super) fn digest(arguments: &Value) -> [u8; 32] {
    let mut hasher = Sha256::new();
    feed(&mut hasher, arguments);
    hasher.finalize().into()
}

fn feed(hasher: &mut Sha256, value: &Value) {
    match value {
        Value::Object(fields) => {
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_unstable_by_key(|(key, _)| *key);
            hasher.update(b"{");
            for (key, value) in sorted {
                feed_text(hasher, key);
                hasher.update(b":");
                feed(hasher, value);
                hasher.update(b",");
            }
            hasher.update(b"}");
        }
        Value::Array(items) => {
            hasher.update(b"[");
            for item in items {
                feed(hasher, item);
                hasher.update(b",");
            }
            hasher.update(b"]");
        }
        Value::String(text) => feed_text(hasher, text),
        // 1 and 1.0 are the same number.
        Value::Number(number) => match number.as_f64().filter(|f| f.fract() == 0.0 && f.abs() < 9e15) {
            #[expect(clippy::cast_possible_truncation, reason = "whole and below 2^53")]
            Some(whole) => hasher.update((whole as i64).to_string()),
            None => hasher.update(number.to_string()),
        },
        Value::Bool(true) => hasher.update(b"true"),
        Value::Bool(false) => hasher.update(b"false"),
        Value::Null => hasher.update(b"null"),
    }
}

/// A text by its length and bytes: unambiguous without escaping.
fn feed_text(hasher: &mut Sha256, text: &str) {
    hasher.update(b"\"");
    hasher.update((text.len() as u64).to_be_bytes());
    hasher.update(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Value, String> {
        read(&RawValue::from_string(text.into()).unwrap())
    }

    #[test]
    fn arguments_are_read_as_serde_json_reads_them() {
        let text = r#"{"a":[1,-2,3.5,null,true,"x\u00e9"],"b":{},"c":18446744073709551615}"#;
        assert_eq!(parse(text).unwrap(), serde_json::from_str::<Value>(text).unwrap());
    }

    #[test]
    fn a_flood_of_small_values_and_a_repeated_key_are_refused() {
        let flood = format!("{{\"a\":[{}1]}}", "1,".repeat(limits::ARGUMENT_VALUES_MAX));
        assert_eq!(parse(&flood), Err("arguments hold too many values".into()));
        let most = format!("[{}1]", "1,".repeat(limits::ARGUMENT_VALUES_MAX - 2));
        assert!(parse(&most).is_ok());
        assert_eq!(parse(r#"{"a":{"b":1,"b":2}}"#), Err("a key stands twice in the arguments".into()));
        assert!(parse(&format!("{}{}", "[".repeat(200), "]".repeat(200))).is_err(), "too deep to be read");
    }

    #[test]
    fn the_digest_sees_meaning_and_not_spelling() {
        let of = |text: &str| digest(&parse(text).unwrap());
        assert_eq!(of(r#"{"a":1,"b":"x"}"#), of("{ \"b\":\"\\u0078\", \"a\":1.0 }"));
        for other in
            [r#"{"a":1,"b":"y"}"#, r#"{"a":"1","b":"x"}"#, r#"{"a":1}"#, r#"{"a":[1],"b":"x"}"#, r#"{"a":2,"b":"x"}"#]
        {
            assert_ne!(of(r#"{"a":1,"b":"x"}"#), of(other), "{other}");
        }
        assert_ne!(of(r#"["a","b"]"#), of(r#"["ab",""]"#));
        assert_ne!(of(r#"{"a":9007199254740993}"#), of(r#"{"a":9007199254740992}"#));
    }
}
