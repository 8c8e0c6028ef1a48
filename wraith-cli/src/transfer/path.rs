//! Which datagrams a way to a peer carries without being asked.
//!
//! The core does not probe paths yet, so only what is certain is used: the machine itself, networks that an
//! interface is on, and the protocol's minimum for everything behind a router.

use std::net::{IpAddr, SocketAddr};

use wraith_proto::{MIN_DATAGRAM, Transport};

/// Within this machine: four of them fill a send of 64 KiB, and loopback interfaces of every system carry them.
/// Larger ones are no faster, and lose more when one is lost.
const LOOPBACK: u16 = 16_000;

/// Ethernet: 1,500 bytes less the headers of IPv6 and UDP, which are the longer ones.
const ETHERNET: u16 = 1_452;

/// For a server on `local`, before its peers have said what they take.
pub(super) fn serving(transport: Transport, local: SocketAddr, most: usize) -> Transport {
    let size = if local.ip().is_loopback() { LOOPBACK } else { ETHERNET };
    let most = u16::try_from(most).unwrap_or(u16::MAX).min(transport.max_datagram);
    transport.with_min_datagram(size.min(most)).with_max_datagram(most)
}

/// For a client of `peers`: what reaches all of them, both ways.
pub(super) fn dialling(
    transport: Transport,
    peers: impl Iterator<Item = SocketAddr>,
    most: usize,
) -> Transport {
    let networks = networks();
    let size = peers.map(|peer| reach(&networks, peer.ip().to_canonical())).min().unwrap_or(MIN_DATAGRAM);
    let size = size.min(u16::try_from(most).unwrap_or(u16::MAX));
    transport.with_min_datagram(size).with_max_datagram(size)
}

/// An address of an interface and its prefix.
#[derive(Clone, Copy, Debug)]
struct Network {
    ip: IpAddr,
    mask: IpAddr,
}

fn reach(networks: &[Network], peer: IpAddr) -> u16 {
    if peer.is_loopback() || networks.iter().any(|network| network.ip == peer) {
        return LOOPBACK;
    }
    if networks.iter().any(|network| network.holds(peer)) { ETHERNET } else { MIN_DATAGRAM }
}

impl Network {
    fn holds(&self, peer: IpAddr) -> bool {
        match (self.ip, self.mask, peer) {
            (IpAddr::V4(own), IpAddr::V4(mask), IpAddr::V4(peer)) => own & mask == peer & mask,
            (IpAddr::V6(own), IpAddr::V6(mask), IpAddr::V6(peer)) => own & mask == peer & mask,
            _ => false,
        }
    }
}

#[cfg(unix)]
fn networks() -> Vec<Network> {
    use nix::sys::socket::SockaddrStorage;

    let ip = |address: SockaddrStorage| {
        let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
        v4.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
    };
    let Ok(interfaces) = nix::ifaddrs::getifaddrs() else { return Vec::new() };
    interfaces
        .filter_map(|interface| {
            let (own, mask) = (ip(interface.address?)?, interface.netmask.and_then(ip));
            // Without a mask the address stands for itself, as on a tunnel.
            let alone = if own.is_ipv4() { IpAddr::from([255; 4]) } else { IpAddr::from([255; 16]) };
            Some(Network { ip: own, mask: mask.unwrap_or(alone) })
        })
        .collect()
}

#[cfg(not(unix))]
fn networks() -> Vec<Network> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_on_an_own_network_gets_more_than_the_minimum() {
        let network = |ip: &str, mask: &str| Network { ip: ip.parse().unwrap(), mask: mask.parse().unwrap() };
        let networks = [network("10.1.2.3", "255.255.0.0"), network("2001:db8::5", "ffff:ffff:ffff:ffff::")];
        for (peer, size) in [
            ("127.0.0.1", LOOPBACK),
            ("::1", LOOPBACK),
            ("10.1.2.3", LOOPBACK),
            ("10.1.9.9", ETHERNET),
            ("2001:db8::77", ETHERNET),
            ("10.2.0.1", MIN_DATAGRAM),
            ("2001:db8:1::77", MIN_DATAGRAM),
        ] {
            assert_eq!(reach(&networks, peer.parse().unwrap()), size, "{peer}");
        }
    }

    #[test]
    fn several_ways_get_what_the_narrowest_carries() {
        let peers = ["127.0.0.1:1", "203.0.113.9:1"].map(|peer| peer.parse().unwrap());
        let transport = dialling(Transport::default(), peers.into_iter(), 65_507);
        assert_eq!((transport.min_datagram, transport.max_datagram), (MIN_DATAGRAM, MIN_DATAGRAM));
        let transport = dialling(Transport::default(), peers.into_iter().take(1), 65_507);
        assert_eq!(transport.max_datagram, LOOPBACK);
        let transport = serving(Transport::default(), "0.0.0.0:5".parse().unwrap(), 65_507);
        assert_eq!((transport.min_datagram, transport.max_datagram), (ETHERNET, 65_507));
    }
}
