//! Where a request comes from: the address failures are counted under.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use holdfast_core::limits;
use http::HeaderMap;
use ipnet::IpNet;

/// The other end of the connection a request came on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// The address a request is counted under: a whole /64 of IPv6, because one customer has at least that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Source(pub IpAddr);

impl Source {
    fn of(address: IpAddr) -> Source {
        match address.to_canonical() {
            IpAddr::V6(v6) => Source(Ipv6Addr::from(u128::from(v6) >> 64 << 64).into()),
            v4 => Source(v4),
        }
    }
}

/// The source of a request: the peer, or, if the peer is a trusted proxy, the last address in `X-Forwarded-For` that is not one.
pub(crate) fn source(peer: IpAddr, proxies: &[IpNet], headers: &HeaderMap) -> Source {
    let peer = peer.to_canonical();
    if !trusted(peer, proxies) {
        return Source::of(peer);
    }
    let forwarded: Vec<&str> =
        headers.get_all("x-forwarded-for").iter().filter_map(|v| v.to_str().ok()).flat_map(|v| v.split(',')).collect();
    let mut nearest = peer;
    for hop in forwarded.iter().rev().take(limits::FORWARDED_HOPS_MAX) {
        // An entry that is no address ends what can be believed.
        let Some(address) = read_hop(hop.trim()) else { break };
        nearest = address;
        if !trusted(nearest, proxies) {
            break;
        }
    }
    Source::of(nearest)
}

/// Whether this address is one of the proxies whose headers are believed.
pub(crate) fn trusted(address: IpAddr, proxies: &[IpNet]) -> bool {
    let address = address.to_canonical();
    proxies.iter().any(|net| net.contains(&address))
}

fn read_hop(text: &str) -> Option<IpAddr> {
    let address = text.parse::<IpAddr>().or_else(|_| text.parse::<SocketAddr>().map(|a| a.ip()));
    address.ok().map(|a| a.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(peer: &str, proxies: &[&str], forwarded: &[&str]) -> String {
        let proxies: Vec<IpNet> = proxies.iter().map(|p| p.parse().unwrap()).collect();
        let mut headers = HeaderMap::new();
        for value in forwarded {
            headers.append("x-forwarded-for", value.parse().unwrap());
        }
        source(peer.parse().unwrap(), &proxies, &headers).0.to_string()
    }

    #[test]
    fn forwarded_addresses_are_believed_only_from_a_trusted_proxy_and_from_the_right() {
        for (peer, proxies, forwarded, expected) in [
            ("203.0.113.9", &[][..], &["198.51.100.1"][..], "203.0.113.9"),
            ("203.0.113.9", &["10.0.0.0/8"], &["198.51.100.1"], "203.0.113.9"),
            ("10.0.0.2", &["10.0.0.0/8"], &["6.6.6.6, 198.51.100.1"], "198.51.100.1"),
            ("10.0.0.2", &["10.0.0.0/8"], &["6.6.6.6", "198.51.100.1, 10.9.9.9"], "198.51.100.1"),
            ("10.0.0.2", &["10.0.0.0/8"], &["198.51.100.1, nonsense"], "10.0.0.2"),
            ("10.0.0.2", &["10.0.0.0/8"], &["198.51.100.1:443"], "198.51.100.1"),
            ("::ffff:10.0.0.2", &["10.0.0.0/8"], &["2001:db8:1:2:3:4:5:6"], "2001:db8:1:2::"),
            ("10.0.0.2", &["10.0.0.0/8"], &[], "10.0.0.2"),
        ] {
            assert_eq!(seen(peer, proxies, forwarded), expected, "{peer} {forwarded:?}");
        }
    }
}
