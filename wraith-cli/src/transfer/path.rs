//! Which datagrams a way to a peer carries: without being asked, and at most.
//!
//! Sessions begin with what is certain: what the interfaces of networks next to this machine carry, and the protocol's
//! minimum for everything behind a router. From there they search, if the driver never fragments; what an interface is
//! too narrow for is not asked for.

use std::net::{IpAddr, SocketAddr};

use wraith_drivers::Caps;
use wraith_proto::{MIN_DATAGRAM, Transport};

/// Within this machine: four of them fill a send of 64 KiB, and loopback interfaces of every system carry them.
/// Larger ones are no faster, and lose more when one is lost.
const LOOPBACK: u16 = 16_000;

/// What loopback interfaces carry at most.
const LOOPBACK_MOST: u16 = 65_507;

/// Headers of IPv4 and UDP.
const HEADERS_V4: u16 = 28;

/// Headers of IPv6 and UDP.
const HEADERS: u16 = 48;

/// Ethernet, whose packets have 1,500 bytes. Larger ones are not taken without asking even where an interface has
/// them: others on its network may not.
const ETHERNET: u16 = 1_500 - HEADERS;

/// Datagrams of a way, in bytes of UDP payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Way {
    /// It carries these for certain.
    surely: u16,
    /// It carries no larger ones.
    most: u16,
}

/// For a server on `local`, before its peers have said what they take. `fixed` is the size that was asked for.
pub(super) fn serving(transport: Transport, local: SocketAddr, caps: &Caps, fixed: Option<u16>) -> Transport {
    serving_on(&networks(), transport, local, caps, fixed)
}

fn serving_on(
    networks: &[Network],
    transport: Transport,
    local: SocketAddr,
    caps: &Caps,
    fixed: Option<u16>,
) -> Transport {
    let ip = local.ip().to_canonical();
    let its = networks.iter().filter(|network| ip.is_unspecified() || network.ip == ip);
    let surely = if ip.is_loopback() {
        LOOPBACK
    } else if caps.dont_fragment {
        MIN_DATAGRAM
    } else {
        its.map(|network| network.carries).min().unwrap_or(ETHERNET)
    };
    apply(transport, caps, Way { surely, most: u16::MAX }, fixed)
}

/// For a client of `peers`: what reaches all of them, both ways. `fixed` is the size that was asked for.
pub(super) fn dialling(
    transport: Transport,
    peers: impl Iterator<Item = SocketAddr>,
    caps: &Caps,
    fixed: Option<u16>,
) -> Transport {
    let networks = networks();
    let ways = peers.map(|peer| reach(&networks, peer.ip().to_canonical()));
    let nowhere = Way { surely: MIN_DATAGRAM, most: u16::MAX };
    let joined = ways.reduce(|a, b| Way { surely: a.surely.min(b.surely), most: a.most.max(b.most) });
    let mut way = joined.unwrap_or(nowhere);
    if !caps.dont_fragment {
        // Nobody would notice that the peer sends more than the way carries.
        way.most = way.surely;
    }
    apply(transport, caps, way, fixed)
}

fn apply(transport: Transport, caps: &Caps, way: Way, fixed: Option<u16>) -> Transport {
    let largest = u16::try_from(caps.max_datagram).unwrap_or(u16::MAX).min(transport.max_datagram);
    if let Some(size) = fixed {
        let size = size.min(largest);
        return transport.with_min_datagram(size).with_max_datagram(size);
    }
    let most = way.most.min(largest);
    let begin = way.surely.min(most);
    transport.with_min_datagram(begin).with_max_datagram(most).with_mtu_search(caps.dont_fragment)
}

/// An address of an interface, its prefix, and the longest datagrams that the interface carries whole: without asking
/// others on its network, and at all.
#[derive(Clone, Copy, Debug)]
struct Network {
    ip: IpAddr,
    mask: IpAddr,
    carries: u16,
    most: u16,
}

fn reach(networks: &[Network], peer: IpAddr) -> Way {
    if peer.is_loopback() || networks.iter().any(|network| network.ip == peer) {
        return Way { surely: LOOPBACK, most: LOOPBACK_MOST };
    }
    let joined = |ways: &mut dyn Iterator<Item = &Network>| {
        ways.map(|network| Way { surely: network.carries, most: network.most })
            .reduce(|a, b| Way { surely: a.surely.min(b.surely), most: a.most.max(b.most) })
    };
    if let Some(way) = joined(&mut networks.iter().filter(|network| network.holds(peer))) {
        return way;
    }
    // Through one of the interfaces to elsewhere, nobody says which.
    let elsewhere = |network: &&Network| !network.ip.is_loopback() && network.ip.is_ipv4() == peer.is_ipv4();
    let most = joined(&mut networks.iter().filter(elsewhere)).map_or(u16::MAX, |way| way.most);
    Way { surely: MIN_DATAGRAM, most }
}

/// The longest datagram for packets of `mtu` bytes that fits here and probably in the network behind.
fn datagram_of(mtu: u32) -> u16 {
    let packet = u16::try_from(mtu).unwrap_or(u16::MAX);
    packet.saturating_sub(HEADERS).clamp(MIN_DATAGRAM, ETHERNET)
}

/// The longest datagram for packets of `mtu` bytes that an interface with the address `ip` carries.
fn most_of(mtu: u32, ip: IpAddr) -> u16 {
    let headers = if ip.is_ipv4() { HEADERS_V4 } else { HEADERS };
    u16::try_from(mtu).unwrap_or(u16::MAX).saturating_sub(headers).max(MIN_DATAGRAM)
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
            let mtu = mtu(&interface.interface_name);
            let carries = mtu.map_or(unknown(interface.flags), datagram_of);
            let most = mtu.map_or(u16::MAX, |mtu| most_of(mtu, own));
            Some(Network { ip: own, mask: mask.unwrap_or(alone), carries, most })
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
    use wraith_drivers::Mode;

    use super::*;

    fn network(ip: &str, mask: &str, mtu: u32) -> Network {
        let ip: IpAddr = ip.parse().unwrap();
        Network { ip, mask: mask.parse().unwrap(), carries: datagram_of(mtu), most: most_of(mtu, ip) }
    }

    fn caps(dont_fragment: bool) -> Caps {
        let mut caps = Caps::new(Mode::Memory, 65_507, 1);
        caps.dont_fragment = dont_fragment;
        caps
    }

    fn sizes(transport: Transport) -> (u16, u16, bool) {
        (transport.min_datagram, transport.max_datagram, transport.mtu_search)
    }

    #[test]
    fn only_what_is_on_an_own_network_begins_with_more_than_the_minimum_and_none_gets_more_than_its_interface_carries()
     {
        let networks = [
            network("127.0.0.1", "255.0.0.0", 65_536),
            network("10.1.2.3", "255.255.0.0", 9_000),
            network("2001:db8::5", "ffff:ffff:ffff:ffff::", 1_500),
            network("10.9.0.1", "255.255.255.0", 1_420),
        ];
        for (peer, surely, most) in [
            ("127.0.0.1", LOOPBACK, LOOPBACK_MOST),
            ("::1", LOOPBACK, LOOPBACK_MOST),
            ("10.1.2.3", LOOPBACK, LOOPBACK_MOST),
            ("10.1.9.9", ETHERNET, 8_972),
            ("2001:db8::77", ETHERNET, ETHERNET),
            ("10.9.0.2", 1_372, 1_392),
            ("10.2.0.1", MIN_DATAGRAM, 8_972),
            ("2001:db8:1::77", MIN_DATAGRAM, ETHERNET),
        ] {
            assert_eq!(reach(&networks, peer.parse().unwrap()), Way { surely, most }, "{peer}");
        }
        let nobody = reach(&[], "10.2.0.1".parse().unwrap());
        assert_eq!(nobody, Way { surely: MIN_DATAGRAM, most: u16::MAX });
    }

    #[test]
    fn a_datagram_fits_its_interface_and_never_falls_below_the_protocols_minimum() {
        for (mtu, size, most) in [
            (576, MIN_DATAGRAM, MIN_DATAGRAM),
            (1_280, 1_232, 1_252),
            (1_420, 1_372, 1_392),
            (1_500, 1_452, 1_472),
            (9_000, 1_452, 8_972),
            (65_536, 1_452, 65_507),
        ] {
            assert_eq!(datagram_of(mtu), size, "{mtu}");
            assert_eq!(most_of(mtu, IpAddr::from([10, 0, 0, 1])), most, "{mtu}");
        }
    }

    #[test]
    fn a_server_begins_with_the_minimum_or_where_nobody_can_search_with_what_its_narrowest_interface_carries()
    {
        let networks = [
            network("127.0.0.1", "255.0.0.0", 65_536),
            network("10.1.2.3", "255.255.0.0", 1_500),
            network("10.9.0.1", "255.255.255.0", 1_420),
        ];
        for (local, searching, fixed) in [
            ("[::]:5", MIN_DATAGRAM, 1_372),
            ("10.9.0.1:5", MIN_DATAGRAM, 1_372),
            ("10.1.2.3:5", MIN_DATAGRAM, ETHERNET),
            ("127.0.0.1:5", LOOPBACK, LOOPBACK),
        ] {
            let of = |searches| {
                let local = local.parse().unwrap();
                sizes(serving_on(&networks, Transport::default(), local, &caps(searches), None))
            };
            assert_eq!(of(true), (searching, 65_507, true), "{local}");
            assert_eq!(of(false), (fixed, 65_507, false), "{local}");
        }
    }

    #[test]
    fn several_ways_begin_with_what_the_narrowest_carries() {
        let peers = ["127.0.0.1:1", "203.0.113.9:1"].map(|peer| peer.parse().unwrap());
        let of = |count, searches, fixed| {
            let peers = peers.into_iter().take(count);
            sizes(dialling(Transport::default(), peers, &caps(searches), fixed))
        };
        assert_eq!(of(2, true, None), (MIN_DATAGRAM, LOOPBACK_MOST, true));
        assert_eq!(of(2, false, None), (MIN_DATAGRAM, MIN_DATAGRAM, false));
        assert_eq!(of(1, true, None), (LOOPBACK, LOOPBACK_MOST, true));
        assert_eq!(of(1, false, None), (LOOPBACK, LOOPBACK, false));
        assert_eq!(of(1, true, Some(1_472)), (1_472, 1_472, false));
        assert_eq!(of(1, true, Some(65_535)), (65_507, 65_507, false));
    }
}
