//! Which datagrams a way to a peer carries without being asked.
//!
//! The core does not probe paths yet, so only what is certain is used: the machine itself, what the interfaces of
//! networks next to it carry, and the protocol's minimum for everything behind a router.

use std::net::{IpAddr, SocketAddr};

use wraith_proto::{MIN_DATAGRAM, Transport};

/// Within this machine: four of them fill a send of 64 KiB, and loopback interfaces of every system carry them.
/// Larger ones are no faster, and lose more when one is lost.
const LOOPBACK: u16 = 16_000;

/// Headers of IPv6 and UDP, which are longer than those of IPv4 and UDP.
const HEADERS: u16 = 48;

/// Ethernet, whose packets have 1,500 bytes. Larger ones are not taken even where an interface has them: others on
/// its network may not.
const ETHERNET: u16 = 1_500 - HEADERS;

/// For a server on `local`, before its peers have said what they take: what each of its interfaces carries.
pub(super) fn serving(transport: Transport, local: SocketAddr, most: usize) -> Transport {
    serving_on(&networks(), transport, local, most)
}

fn serving_on(networks: &[Network], transport: Transport, local: SocketAddr, most: usize) -> Transport {
    let ip = local.ip().to_canonical();
    let size = if ip.is_loopback() {
        LOOPBACK
    } else {
        let its = networks.iter().filter(|network| ip.is_unspecified() || network.ip == ip);
        its.map(|network| network.carries).min().unwrap_or(ETHERNET)
    };
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

/// An address of an interface, its prefix, and the longest datagram that the interface carries whole.
#[derive(Clone, Copy, Debug)]
struct Network {
    ip: IpAddr,
    mask: IpAddr,
    carries: u16,
}

fn reach(networks: &[Network], peer: IpAddr) -> u16 {
    if peer.is_loopback() || networks.iter().any(|network| network.ip == peer) {
        return LOOPBACK;
    }
    let its = networks.iter().filter(|network| network.holds(peer));
    its.map(|network| network.carries).min().unwrap_or(MIN_DATAGRAM)
}

/// The longest datagram for packets of `mtu` bytes that fits here and probably in the network behind.
fn datagram_of(mtu: u32) -> u16 {
    let packet = u16::try_from(mtu).unwrap_or(u16::MAX);
    packet.saturating_sub(HEADERS).clamp(MIN_DATAGRAM, ETHERNET)
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
    use crate::address::ip_of;

    let Ok(interfaces) = nix::ifaddrs::getifaddrs() else { return Vec::new() };
    interfaces
        .filter_map(|interface| {
            let (own, mask) = (ip_of(interface.address?)?, interface.netmask.and_then(ip_of));
            // Without a mask the address stands for itself, as on a tunnel.
            let alone = if own.is_ipv4() { IpAddr::from([255; 4]) } else { IpAddr::from([255; 16]) };
            let carries = mtu(&interface.interface_name).map_or(unknown(interface.flags), datagram_of);
            Some(Network { ip: own, mask: mask.unwrap_or(alone), carries })
        })
        .collect()
}

/// What an interface of unknown size carries: tunnels take room for themselves.
#[cfg(unix)]
fn unknown(flags: nix::net::if_::InterfaceFlags) -> u16 {
    if flags.contains(nix::net::if_::InterfaceFlags::IFF_POINTOPOINT) { MIN_DATAGRAM } else { ETHERNET }
}

/// The longest packet of an interface, bytes, where the system tells it in a file.
#[cfg(unix)]
fn mtu(interface: &str) -> Option<u32> {
    let text = std::fs::read_to_string(format!("/sys/class/net/{interface}/mtu")).ok()?;
    text.trim_end().parse().ok()
}

#[cfg(not(unix))]
fn networks() -> Vec<Network> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(ip: &str, mask: &str, carries: u16) -> Network {
        Network { ip: ip.parse().unwrap(), mask: mask.parse().unwrap(), carries }
    }

    #[test]
    fn only_what_is_on_an_own_network_gets_more_than_the_minimum_and_no_more_than_its_interface_carries() {
        let networks = [
            network("10.1.2.3", "255.255.0.0", ETHERNET),
            network("2001:db8::5", "ffff:ffff:ffff:ffff::", ETHERNET),
            network("10.9.0.1", "255.255.255.0", datagram_of(1_420)),
        ];
        for (peer, size) in [
            ("127.0.0.1", LOOPBACK),
            ("::1", LOOPBACK),
            ("10.1.2.3", LOOPBACK),
            ("10.1.9.9", ETHERNET),
            ("2001:db8::77", ETHERNET),
            ("10.9.0.2", 1_372),
            ("10.2.0.1", MIN_DATAGRAM),
            ("2001:db8:1::77", MIN_DATAGRAM),
        ] {
            assert_eq!(reach(&networks, peer.parse().unwrap()), size, "{peer}");
        }
    }

    #[test]
    fn a_datagram_fits_its_interface_and_never_falls_below_the_protocols_minimum() {
        for (mtu, size) in
            [(576, MIN_DATAGRAM), (1_280, 1_232), (1_420, 1_372), (1_500, 1_452), (9_000, 1_452)]
        {
            assert_eq!(datagram_of(mtu), size, "{mtu}");
        }
        assert_eq!(datagram_of(65_536), ETHERNET);
    }

    #[test]
    fn a_server_begins_with_what_the_narrowest_of_its_interfaces_carries() {
        let networks = [
            network("127.0.0.1", "255.0.0.0", ETHERNET),
            network("10.1.2.3", "255.255.0.0", ETHERNET),
            network("10.9.0.1", "255.255.255.0", 1_372),
        ];
        let begin = |local: &str| {
            serving_on(&networks, Transport::default(), local.parse().unwrap(), 65_507).min_datagram
        };
        assert_eq!(begin("[::]:5"), 1_372);
        assert_eq!(begin("10.9.0.1:5"), 1_372);
        assert_eq!(begin("10.1.2.3:5"), ETHERNET);
        assert_eq!(begin("127.0.0.1:5"), LOOPBACK);
    }

    #[test]
    fn several_ways_get_what_the_narrowest_carries() {
        let peers = ["127.0.0.1:1", "203.0.113.9:1"].map(|peer| peer.parse().unwrap());
        let transport = dialling(Transport::default(), peers.into_iter(), 65_507);
        assert_eq!((transport.min_datagram, transport.max_datagram), (MIN_DATAGRAM, MIN_DATAGRAM));
        let transport = dialling(Transport::default(), peers.into_iter().take(1), 65_507);
        assert_eq!(transport.max_datagram, LOOPBACK);
        let transport = serving_on(&[], Transport::default(), "0.0.0.0:5".parse().unwrap(), 65_507);
        assert_eq!((transport.min_datagram, transport.max_datagram), (ETHERNET, 65_507));
    }
}
