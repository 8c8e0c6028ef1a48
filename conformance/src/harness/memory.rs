//! The in-memory driver.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use wraith_drivers::{MemoryDriver, MemoryOptions};

use super::{Harness, Link, Pair, Setup};

/// Pairs of [`MemoryDriver`].
#[derive(Clone, Copy, Debug)]
pub struct Memory;

/// Datagrams that wait at an end before it holds the other back: fewer than [`Link::WINDOW`], so that cases meet it.
const RX_SLOTS: usize = 32;

impl Harness for Memory {
    type Driver = MemoryDriver;

    const NAME: &'static str = "memory";

    fn pair(link: &Link) -> Result<Pair<Self::Driver>, Setup> {
        let ip = if link.ipv6 { IpAddr::V6(Ipv6Addr::LOCALHOST) } else { IpAddr::V4(Ipv4Addr::LOCALHOST) };
        let mtu = usize::from(link.mtu);
        let (left, right) = MemoryDriver::pair(&MemoryOptions {
            addrs: [SocketAddr::new(ip, 1), SocketAddr::new(ip, 2)],
            mtu,
            // Longer ones can be committed, so that the wire has something to refuse.
            max_datagram: mtu + 1,
            slot_bytes: [usize::MAX, link.right_slot.unwrap_or(usize::MAX)],
            tx_slots: link.tx_slots,
            rx_slots: RX_SLOTS,
            ..MemoryOptions::default()
        });
        Ok(Pair::new(left, right))
    }
}
