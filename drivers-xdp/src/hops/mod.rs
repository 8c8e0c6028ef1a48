//! Who is the next hop of a datagram, without a question to the kernel for each.
//!
//! Two tables of fixed size answer. One holds the link addresses that frames came from: a reply goes back where its
//! question came from. It answers a datagram that carries the token of such a frame, and no other. The core hands a token
//! back to whoever it answers, and for a session only after the datagram that brought it was authenticated; so a stranger on
//! the link, who can send frames in anybody's name, diverts the answers to these frames and no session's datagrams. The other
//! table holds what the kernel said about destinations.

mod cache;

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use wraith_proto::{Instant, Via};

use crate::netlink::{Interface, Neighbour, Route, Tables};
use crate::wire::Mac;
use cache::Cache;

/// Senders that are remembered, in 160 KiB. One that was forgotten costs questions to the kernel.
const LEARNT: usize = 1 << INDEX_BITS;
const INDEX_BITS: u32 = 12;

/// Destinations that the kernel was asked about.
const RESOLVED: usize = 1024;

/// A sender's link address holds for so long after its last frame, as it does with the kernel
/// (`base_reachable_time_ms`, RFC 4861 `REACHABLE_TIME`).
const LEARNT_FOR: Duration = Duration::from_secs(30);

/// A kernel's answer holds for so long. Two questions take some 3 us; a change of routes or of a neighbour's link address is
/// seen within a few round trips of a session, long before it is given up.
const ANSWER_FOR: Duration = Duration::from_secs(2);

/// A neighbour that is not resolved is asked for again so soon: on a link it takes the kernel a millisecond, and all that goes
/// there is slower meanwhile.
const UNRESOLVED_FOR: Duration = Duration::from_millis(50);

/// Where a datagram goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hop {
    /// Straight out of the device, to this link address and from this IP address.
    Device { mac: Mac, source: IpAddr },
    /// The kernel's business, through the UDP socket: another device, the host itself, many receivers, a source that is not
    /// of this device, no route, or a neighbour that the kernel must ask for, which it does when the socket sends to it.
    Kernel,
}

/// What the kernel is asked.
pub(crate) trait Ask {
    fn route(&mut self, to: IpAddr, from: Option<IpAddr>, interface: Option<u32>) -> io::Result<Route>;
    fn neighbour(&mut self, interface: u32, ip: IpAddr) -> io::Result<Option<Neighbour>>;
}

/// The next hops of one device.
#[derive(Debug)]
pub(crate) struct Hops<T = Tables> {
    tables: T,
    interface: u32,
    addresses: Vec<(IpAddr, u8)>,
    learnt: Cache<(IpAddr, Mac), ()>,
    resolved: Cache<(IpAddr, Option<IpAddr>), Answer>,
}

#[derive(Clone, Copy, Debug)]
struct Answer {
    hop: Hop,
    holds_for: Duration,
}

impl<T: Ask> Hops<T> {
    /// Takes all its memory now. Addresses that the device gets later are not of this table.
    pub(crate) fn new(interface: &Interface, tables: T) -> Self {
        Self {
            tables,
            interface: interface.index,
            addresses: interface.addresses.clone(),
            learnt: Cache::new(LEARNT),
            resolved: Cache::new(RESOLVED),
        }
    }

    /// A frame from `mac` brought a datagram from `from`: gives the token for replies, `Via(0)` if none may go back.
    pub(crate) fn learn(&mut self, now: Instant, from: IpAddr, mac: Mac) -> Via {
        let nobody = mac.0[0] & 1 == 1 || mac == Mac([0; 6]);
        if nobody || !is_one_host(from) || self.is_own(from) {
            return Via(0);
        }
        // The same address from two devices is two entries: nobody's frames change what an earlier token means.
        let index = self.learnt.put(now, (from, mac), ());
        self.learnt.slot(index).map_or(Via(0), |slot| token(index, slot.generation))
    }

    /// Where a datagram to `to` goes, with the source `from` if it must have one. IPv4 addresses are no mapped ones, and a
    /// link-local `to` is one of this device's link.
    pub(crate) fn hop(&mut self, now: Instant, to: IpAddr, from: Option<IpAddr>, via: Via) -> Hop {
        // What no header can hold is refused there, too.
        if from.is_some_and(|from| !self.is_own(from) || from.is_ipv4() != to.is_ipv4()) {
            return Hop::Kernel;
        }
        if let Some(mac) = self.learnt_from(now, to, via) {
            return match from.or_else(|| self.source(to)) {
                Some(source) => Hop::Device { mac, source },
                None => Hop::Kernel,
            };
        }
        if !is_one_host(to) {
            return Hop::Kernel;
        }
        let found = self.resolved.find(&(to, from)).and_then(|index| self.resolved.slot(index));
        if let Some(slot) = found
            && let Some((_, answer)) = slot.entry
            && now.saturating_since(slot.at) < answer.holds_for
        {
            return answer.hop;
        }
        self.resolve(now, to, from)
    }

    /// Asks the kernel, and remembers what it said.
    fn resolve(&mut self, now: Instant, to: IpAddr, from: Option<IpAddr>) -> Hop {
        let (answer, to_be_confirmed) = self.ask(to, from);
        self.resolved.put(now, (to, from), answer);
        if to_be_confirmed { Hop::Kernel } else { answer.hop }
    }

    /// What the kernel says, and whether it shall send once itself: it asks a neighbour that was silent for long whether it is
    /// still there, but only when it uses it, and of what leaves by the device directly it knows nothing.
    fn ask(&mut self, to: IpAddr, from: Option<IpAddr>) -> (Answer, bool) {
        let kernel = Answer { hop: Hop::Kernel, holds_for: ANSWER_FOR };
        let on_link = is_link_local(to).then_some(self.interface);
        // On an error the socket is tried, and gives the true one.
        let Ok(route) = self.tables.route(to, from, on_link) else { return (kernel, false) };
        if !route.direct || route.interface != self.interface {
            return (kernel, false);
        }
        let source = from.or(route.source).or_else(|| self.source(to)).filter(|source| self.is_own(*source));
        let Some(source) = source else { return (kernel, false) };
        match self.tables.neighbour(self.interface, route.next) {
            Ok(Some(neighbour)) => {
                let hop = Hop::Device { mac: neighbour.mac, source };
                (Answer { hop, holds_for: ANSWER_FOR }, neighbour.stale)
            }
            Ok(None) => (Answer { hop: Hop::Kernel, holds_for: UNRESOLVED_FOR }, false),
            Err(_) => (kernel, false),
        }
    }

    /// The link address that a token stands for, if it still does and was given for `to`.
    fn learnt_from(&self, now: Instant, to: IpAddr, via: Via) -> Option<Mac> {
        let index = via.0 as usize % LEARNT;
        let slot = self.learnt.slot(index)?;
        let ((ip, mac), ()) = slot.entry?;
        let fresh = now.saturating_since(slot.at) < LEARNT_FOR;
        (fresh && ip == to && via == token(index, slot.generation)).then_some(mac)
    }

    /// The device's address for datagrams to `to`: of its network if there is one, else the first of its family and scope.
    fn source(&self, to: IpAddr) -> Option<IpAddr> {
        let same = |ip: IpAddr| ip.is_ipv4() == to.is_ipv4() && is_link_local(ip) == is_link_local(to);
        let near = self.addresses.iter().find(|(ip, prefix_len)| share(*ip, to, *prefix_len));
        near.or_else(|| self.addresses.iter().find(|(ip, _)| same(*ip))).map(|(ip, _)| *ip)
    }

    fn is_own(&self, ip: IpAddr) -> bool {
        self.addresses.iter().any(|(own, _)| *own == ip)
    }
}

impl Ask for Tables {
    fn route(&mut self, to: IpAddr, from: Option<IpAddr>, interface: Option<u32>) -> io::Result<Route> {
        self.route(to, from, interface)
    }

    fn neighbour(&mut self, interface: u32, ip: IpAddr) -> io::Result<Option<Neighbour>> {
        self.neighbour(interface, ip)
    }
}

/// A slot's index below its generation, of which 0 is left out: `Via(0)` is no token.
fn token(index: usize, generation: u32) -> Via {
    const GENERATIONS: u32 = (1 << (32 - INDEX_BITS)) - 1;
    Via((generation % GENERATIONS + 1) << INDEX_BITS | index as u32)
}

/// Whether an address can be one host's on a link.
fn is_one_host(ip: IpAddr) -> bool {
    !(ip.is_unspecified()
        || ip.is_loopback()
        || ip.is_multicast()
        || ip == IpAddr::V4(std::net::Ipv4Addr::BROADCAST))
}

/// Whether an address means nothing without a device. IPv4's are routed like others.
fn is_link_local(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local())
}

/// Whether two addresses begin with the same `prefix_len` bits.
fn share(a: IpAddr, b: IpAddr, prefix_len: u8) -> bool {
    match (a, b) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros() >= prefix_len.into(),
        (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros() >= prefix_len.into(),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
