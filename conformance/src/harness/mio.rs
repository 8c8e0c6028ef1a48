//! The portable driver over loopback.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use wraith_drivers_mio::{MioDriver, Options};

use super::{Harness, Link, Pair, Setup};

/// Pairs of [`MioDriver`] on 127.0.0.1, or on `::1` where a case asks for IPv6.
#[derive(Clone, Copy, Debug)]
pub struct Mio;

/// Pairs of [`MioDriver`] on `::1`.
#[derive(Clone, Copy, Debug)]
pub struct MioIpv6;

/// Longest payload over IPv6 on loopback, whose MTU is 65,536 on Linux: 40 bytes less for IP, 8 for UDP.
const LOOPBACK_V6: usize = 65_488;

impl Harness for Mio {
    type Driver = MioDriver;

    const NAME: &'static str = "mio";

    fn pair(link: &Link) -> Result<Pair<Self::Driver>, Setup> {
        let ip = if link.ipv6 { IpAddr::V6(Ipv6Addr::LOCALHOST) } else { IpAddr::V4(Ipv4Addr::LOCALHOST) };
        let addr = SocketAddr::new(ip, 0);
        if let Err(error) = UdpSocket::bind(addr) {
            return Err(Setup::Unavailable(format!("no socket on {addr}: {error}")));
        }
        let whole = Options::default();
        // Little memory, so that cases meet its end; the longest datagram must fit all the same.
        let small = Options { arena_bytes: link.tx_slots * usize::from(link.mtu), ..whole };
        let left = if link.tx_slots < Link::default().tx_slots { small } else { whole };
        let right = Options { slot_bytes: link.right_slot.unwrap_or(left.slot_bytes), ..left };
        Ok(Pair::new(MioDriver::bind(addr, &left)?, MioDriver::bind(addr, &right)?))
    }

    fn path_limit(link: &Link) -> Option<usize> {
        (link.ipv6 && cfg!(target_os = "linux")).then_some(LOOPBACK_V6)
    }
}

impl Harness for MioIpv6 {
    type Driver = MioDriver;

    const NAME: &'static str = "mio-ipv6";

    fn pair(link: &Link) -> Result<Pair<Self::Driver>, Setup> {
        Mio::pair(&Link { ipv6: true, ..*link })
    }

    fn path_limit(link: &Link) -> Option<usize> {
        Mio::path_limit(&Link { ipv6: true, ..*link })
    }
}
