//! Bytes as base64 text in JSON: output and input are never assumed to be UTF-8.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize as _, Deserializer, Serializer};

/// Writes them.
pub fn serialize<S: Serializer>(bytes: &Bytes, ser: S) -> Result<S::Ok, S::Error> {
    ser.collect_str(&base64::display::Base64Display::new(bytes, &STANDARD))
}

/// Reads them.
pub fn deserialize<'de, D: Deserializer<'de>>(de: D) -> Result<Bytes, D::Error> {
    let text = std::borrow::Cow::<'de, str>::deserialize(de)?;
    STANDARD.decode(text.as_bytes()).map(Bytes::from).map_err(|_| serde::de::Error::custom("not base64"))
}
