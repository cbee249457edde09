//! Notices that the way out of this machine changed: another network, a VPN, a cable pulled and put back.
//!
//! Asks the kernel which source address it would use for an address nobody has. Connecting a UDP socket sends nothing, works on
//! every system, and costs less than listening to each system's own stream of interface news.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// Documentation addresses (RFC 5737, RFC 3849): routed like any other, answered by nobody.
const NOBODY: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1))];

/// The source addresses of the default routes, as they were last seen.
#[derive(Debug, Default)]
pub(crate) struct WayOut(Option<[Option<IpAddr>; 2]>);

impl WayOut {
    /// Whether there is another way out than at the last question. Losing one is no news: nothing can be tried then.
    pub(crate) fn changed(&mut self) -> bool {
        self.became(NOBODY.map(source))
    }

    fn became(&mut self, now: [Option<IpAddr>; 2]) -> bool {
        let before = self.0.replace(now);
        before.is_some_and(|before| before.iter().zip(&now).any(|(before, now)| now.is_some() && now != before))
    }
}

fn source(to: IpAddr) -> Option<IpAddr> {
    let any: IpAddr = if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0)).ok()?;
    socket.connect(SocketAddr::new(to, 9)).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_address_is_a_change_and_a_lost_one_is_not() {
        let home = Some(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)));
        let train = Some(IpAddr::V4(Ipv4Addr::new(10, 9, 0, 1)));
        let mut way = WayOut::default();
        assert!(!way.became([home, None]), "the first look");
        assert!(!way.became([home, None]));
        assert!(!way.became([None, None]));
        assert!(way.became([train, None]));
        assert!(way.became([train, home]));
    }
}
