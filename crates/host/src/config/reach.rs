//! What operations may reach beyond this machine and its relay. Nothing, unless it is listed.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error as _, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// From where files may be fetched.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct SyncConfig {
    /// Hosts beside the relay, as `files.example.com` or `files.example.com:8443`; always by https, and never an address
    /// within a private network. A reload may take some away, never add any.
    #[cfg_attr(feature = "ts", ts(type = "Array<string>"))]
    pub allow_hosts: Vec<AllowedHost>,
}

impl SyncConfig {
    /// What both allow, in the order of `self`.
    #[must_use]
    pub fn common(&self, other: &SyncConfig) -> SyncConfig {
        let both = self.allow_hosts.iter().filter(|host| other.allow_hosts.contains(host));
        SyncConfig { allow_hosts: both.cloned().collect() }
    }

    /// Whether a host is listed, as it stands in a URL, with the port that is meant.
    pub fn allows(&self, host: &str, port: u16) -> bool {
        self.allow_hosts.iter().any(|allowed| allowed.port == port && allowed.host == host)
    }
}

/// A host and its port, 443 unless it is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedHost {
    host: String,
    port: u16,
}

impl TryFrom<&str> for AllowedHost {
    type Error = &'static str;

    fn try_from(text: &str) -> Result<AllowedHost, &'static str> {
        let wrong = "a host is given as `files.example.com` or `files.example.com:8443`";
        // As a URL has it: lower case, and names beyond ASCII in their ASCII form.
        let url = url::Url::parse(&format!("https://{text}/")).map_err(|_| wrong)?;
        let plain = url.path() == "/" && url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
        match (url.host_str(), url.port_or_known_default()) {
            (Some(host), Some(port)) if plain && !text.contains(['/', '*']) => {
                Ok(AllowedHost { host: host.to_owned(), port })
            }
            _ => Err(wrong),
        }
    }
}

impl fmt::Display for AllowedHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            443 => f.write_str(&self.host),
            port => write!(f, "{}:{port}", self.host),
        }
    }
}

/// To which ports of this machine connections may be opened for clients.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct ForwardConfig {
    /// Ports on 127.0.0.1, as `3000` or `"5000-5009"`; Holdfast's own never count. A reload may take some away, never add
    /// any.
    #[cfg_attr(feature = "ts", ts(type = "Array<number | string>"))]
    pub allow_ports: Vec<Ports>,
}

impl ForwardConfig {
    /// What both allow, in the order of `self`.
    #[must_use]
    pub fn common(&self, other: &ForwardConfig) -> ForwardConfig {
        let meet = |a: &Ports, b: &Ports| {
            let (first, last) = (a.first.max(b.first), a.last.min(b.last));
            (first <= last).then_some(Ports { first, last })
        };
        let pairs = self.allow_ports.iter().flat_map(|a| other.allow_ports.iter().filter_map(move |b| meet(a, b)));
        ForwardConfig { allow_ports: pairs.collect() }
    }

    /// Whether a port is listed.
    pub fn allows(&self, port: u16) -> bool {
        self.allow_ports.iter().any(|ports| (ports.first..=ports.last).contains(&port))
    }
}

/// One port, or all from one to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ports {
    first: u16,
    last: u16,
}

const PORTS: &str = "a port from 1 to 65535, or two of them as in \"5000-5009\"";

impl Ports {
    fn new(first: u64, last: u64) -> Option<Ports> {
        let (first, last) = (u16::try_from(first).ok()?, u16::try_from(last).ok()?);
        (first > 0 && first <= last).then_some(Ports { first, last })
    }
}

impl TryFrom<&str> for Ports {
    type Error = &'static str;

    fn try_from(text: &str) -> Result<Ports, &'static str> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let number = |text: &str| text.trim().parse().map_err(|_| PORTS);
        Ports::new(number(first)?, number(last)?).ok_or(PORTS)
    }
}

impl Serialize for AllowedHost {
    fn serialize<S: Serializer>(&self, ser: S) -> Result<S::Ok, S::Error> {
        ser.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for AllowedHost {
    fn deserialize<D: Deserializer<'de>>(de: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(de)?;
        AllowedHost::try_from(&*text).map_err(D::Error::custom)
    }
}

impl Serialize for Ports {
    fn serialize<S: Serializer>(&self, ser: S) -> Result<S::Ok, S::Error> {
        match self.first == self.last {
            true => ser.serialize_u16(self.first),
            false => ser.collect_str(&format_args!("{}-{}", self.first, self.last)),
        }
    }
}

impl<'de> Deserialize<'de> for Ports {
    fn deserialize<D: Deserializer<'de>>(de: D) -> Result<Self, D::Error> {
        struct Read;
        impl Visitor<'_> for Read {
            type Value = Ports;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(PORTS)
            }

            fn visit_u64<E: serde::de::Error>(self, port: u64) -> Result<Ports, E> {
                Ports::new(port, port).ok_or_else(|| E::custom(PORTS))
            }

            fn visit_i64<E: serde::de::Error>(self, port: i64) -> Result<Ports, E> {
                self.visit_u64(u64::try_from(port).unwrap_or(0))
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Ports, E> {
                Ports::try_from(text).map_err(E::custom)
            }
        }
        de.deserialize_any(Read)
    }
}

impl JsonSchema for AllowedHost {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "AllowedHost".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string"})
    }
}

impl JsonSchema for Ports {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Ports".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"anyOf": [
            {"type": "integer", "minimum": 1, "maximum": 65535},
            {"type": "string", "pattern": "^[0-9]+(-[0-9]+)?$"},
        ]})
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn hosts(list: &[&str]) -> SyncConfig {
        SyncConfig { allow_hosts: list.iter().map(|text| AllowedHost::try_from(*text).unwrap()).collect() }
    }

    fn ports(list: serde_json::Value) -> ForwardConfig {
        serde_json::from_value(json!({"allow_ports": list})).unwrap()
    }

    #[test]
    fn a_host_is_a_name_and_a_port_and_nothing_else() {
        let listed =
            hosts(&["Files.Example.com", "b.example:8443", "192.0.2.1", "[2001:db8::1]:444", "bücher.example"]);
        assert!(listed.allows("files.example.com", 443) && !listed.allows("files.example.com", 8443));
        assert!(listed.allows("b.example", 8443) && !listed.allows("b.example", 443));
        assert!(listed.allows("[2001:db8::1]", 444) && listed.allows("xn--bcher-kva.example", 443));
        assert!(!listed.allows("x.files.example.com", 443));
        let text =
            json!(["files.example.com", "b.example:8443", "192.0.2.1", "[2001:db8::1]:444", "xn--bcher-kva.example"]);
        assert_eq!(json!(listed)["allow_hosts"], text);
        for wrong in
            ["", "https://a.example", "a.example/", "a.example/x", "u@a.example", "a.example:0x", "*.a.example", "a b"]
        {
            assert!(AllowedHost::try_from(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn ports_are_numbers_and_ranges() {
        let listed = ports(json!([3000, "5000-5009", "80"]));
        assert_eq!(
            [80, 3000, 4999, 5000, 5009, 5010].map(|port| listed.allows(port)),
            [true, true, false, true, true, false]
        );
        assert_eq!(json!(listed), json!({"allow_ports": [3000, "5000-5009", 80]}));
        for wrong in [json!(0), json!(-1), json!(65536), json!("9-8"), json!("0-1"), json!("a"), json!(true)] {
            assert!(serde_json::from_value::<Ports>(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn common_is_what_both_allow() {
        assert_eq!(
            hosts(&["a.example", "b.example"]).common(&hosts(&["b.example", "c.example"])),
            hosts(&["b.example"])
        );
        assert_eq!(ports(json!(["10-20", 30])).common(&ports(json!(["15-40"]))), ports(json!(["15-20", 30])));
        assert_eq!(ports(json!([1])).common(&ports(json!([2]))), ports(json!([])));
    }
}
