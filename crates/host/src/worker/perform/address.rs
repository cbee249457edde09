//! From where a file may be fetched: the relay itself, and listed hosts on the public network.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use holdfast_core::code::Code;
use holdfast_core::operation::Failure;
use url::Url;

use crate::config::SyncConfig;
use crate::http_client;

/// Whose an address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// The relay's own origin.
    Relay,
    /// A listed host.
    Listed,
}

/// Whose a URL is; refused when it is nobody's from whom files may come. The first address and each redirect are asked about.
pub(super) fn source(url: &Url, relay: &Url, listed: &SyncConfig) -> Result<Source, Failure> {
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refused("an address must name no user"));
    }
    if url.origin() == relay.origin() && http_client::may_carry_secrets(url) {
        return Ok(Source::Relay);
    }
    if url.scheme() != "https" {
        return Err(refused("files are fetched by https only"));
    }
    match (url.host_str(), url.port_or_known_default()) {
        (Some(host), Some(port)) if listed.allows(host, port) => Ok(Source::Listed),
        _ => Err(refused("files are fetched from the relay and from hosts in sync.allow_hosts only")),
    }
}

/// Lets addresses pass of which every one is public: a name that leads into a private network leads nowhere.
pub(super) fn all_public(addresses: &[SocketAddr], public: fn(IpAddr) -> bool) -> Result<(), Failure> {
    match addresses.iter().all(|address| public(address.ip())) {
        true => Ok(()),
        false => Err(refused("the host has an address within a private network")),
    }
}

pub(super) fn refused(why: &str) -> Failure {
    Failure::new(Code::PolicyDenied, why)
}

/// Whether an address is one of the public network's, and of no special kind.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => is_public_v6(v6),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !matches!(
        (a, b, c),
        // This network, private, loopback, multicast and reserved.
        (0 | 10 | 127 | 224..=255, ..)
            // Carrier-grade NAT, link-local, private.
            | (100, 64..=127, _) | (169, 254, _) | (172, 16..=31, _) | (192, 168, _)
            // Protocol assignments, documentation, 6to4 relays, benchmarks.
            | (192, 0, 0 | 2) | (192, 88, 99) | (198, 18 | 19, _) | (198, 51, 100) | (203, 0, 113)
    )
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    match address.segments() {
        // What a network without IPv4 makes of an IPv4 address.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
            is_public_v4(Ipv4Addr::new(a, b, c, d))
        }
        // Protocol assignments with Teredo, documentation, 6to4.
        [0x2001, 0..0x200, ..] | [0x2001, 0xdb8, ..] | [0x2002, ..] | [0x3fff, 0..0x1000, ..] => false,
        // Global unicast; with it fall loopback, mapped, unique local, link-local and multicast addresses.
        [first, ..] => (0x2000..0x4000).contains(&first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::AllowedHost;

    fn of(url: &str, relay: &str) -> Result<Source, String> {
        let listed = SyncConfig { allow_hosts: vec![AllowedHost::try_from("files.example").unwrap()] };
        source(&url.parse().unwrap(), &relay.parse().unwrap(), &listed).map_err(|failure| failure.message)
    }

    #[test]
    fn files_come_from_the_relay_and_from_listed_hosts_by_https() {
        let relay = "https://relay.example";
        assert_eq!(of("https://relay.example/a?b", relay), Ok(Source::Relay));
        assert_eq!(of("https://RELAY.example:443/a", relay), Ok(Source::Relay));
        assert_eq!(of("https://files.example/a", relay), Ok(Source::Listed));
        for url in [
            "http://relay.example/a",
            "https://relay.example:444/a",
            "http://files.example/a",
            "https://files.example:8443/a",
            "https://files.example./a",
            "https://other.example/a",
            "https://relay.example@other.example/a",
            "https://u:p@files.example/a",
            "file:///etc/passwd",
            "https://127.0.0.1/a",
        ] {
            assert!(of(url, relay).is_err(), "{url}");
        }
    }

    #[test]
    fn plain_http_is_for_a_relay_on_this_machine() {
        assert_eq!(of("http://127.0.0.1:8787/a", "http://127.0.0.1:8787"), Ok(Source::Relay));
        assert!(of("http://127.0.0.1:8788/a", "http://127.0.0.1:8787").is_err());
        assert!(of("http://192.0.2.1/a", "http://192.0.2.1").is_err());
    }

    #[test]
    fn only_addresses_of_the_public_network_are_public() {
        for address in ["1.1.1.1", "100.63.0.1", "172.32.0.1", "198.20.0.1", "2606:4700::1111", "64:ff9b::101:101"] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
        for address in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.168.1.1",
            "198.18.0.1",
            "203.0.113.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:1.1.1.1",
            "::ffff:10.0.0.1",
            "::1.1.1.1",
            "64:ff9b::a00:1",
            "64:ff9b:1::1",
            "2001::1",
            "2001:db8::1",
            "2002:0a00:0001::1",
            "3fff::1",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
    }
}
