//! What a driver asks while packets flow. Nothing is allocated: requests are built on the stack, answers read where they
//! lie.

use std::io;
use std::net::IpAddr;

use netlink_packet_core::{NLM_F_REQUEST, NlasIterator};

use super::tables::Tables;
use crate::wire::Mac;

/// How the kernel would send a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Route {
    /// The index of the device that it leaves by.
    pub(crate) interface: u32,
    /// The next hop: the gateway, or the destination itself. A gateway may be of the other family (RFC 5549).
    pub(crate) next: IpAddr,
    /// The source address that it would carry.
    pub(crate) source: Option<IpAddr>,
    /// Whether the packet leaves as it is for one neighbour. Not so: the host itself, broadcast, multicast, a tunnel of the
    /// route's, a black hole.
    pub(crate) direct: bool,
}

/// A neighbour whose link address the kernel would use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Neighbour {
    pub(crate) mac: Mac,
    /// Nothing was heard of it for long. When the kernel sends to it next, it asks whether it is still there.
    pub(crate) stale: bool,
}

/// Bytes of `struct nlmsghdr`, and of `struct rtmsg` and `struct ndmsg` behind it (`linux/netlink.h`,
/// `linux/rtnetlink.h`, `linux/neighbour.h`).
const HEADER: usize = 16;
const BODY: usize = 12;
/// A header, a body, two addresses and a number with their own headers of four bytes each.
const REQUEST: usize = HEADER + BODY + 2 * (4 + 16) + (4 + 4);

/// Where fields stand in these.
const FAMILY: usize = HEADER;
const DESTINATION_BITS: usize = HEADER + 1;
const SOURCE_BITS: usize = HEADER + 2;
const ROUTE_TYPE: usize = 7;
const NEIGHBOUR_INTERFACE: usize = HEADER + 4;
const NEIGHBOUR_STATE: usize = 8;

/// `NDA_DST`, `NDA_LLADDR` (`linux/neighbour.h`), `RTA_VIA`, `RTA_ENCAP_TYPE` (`linux/rtnetlink.h`).
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
const RTA_VIA: u16 = 18;
const RTA_ENCAP_TYPE: u16 = 21;

impl Tables {
    /// How the kernel would send a packet to `to`, with the source `from` if there is one already. A link-local `to` means
    /// nothing without the index of its `interface`.
    ///
    /// # Errors
    /// ENETUNREACH and the like: there is no route, or `from` is no IPv4 address of this host. EINVAL: a black hole.
    pub(crate) fn route(
        &mut self,
        to: IpAddr,
        from: Option<IpAddr>,
        interface: Option<u32>,
    ) -> io::Result<Route> {
        let mut request = Request::new(libc::RTM_GETROUTE, to);
        request.bytes[DESTINATION_BITS] = bits(to);
        request.address(libc::RTA_DST, to);
        if let Some(from) = from {
            request.bytes[SOURCE_BITS] = bits(from);
            request.address(libc::RTA_SRC, from);
        }
        if let Some(interface) = interface {
            request.attribute(libc::RTA_OIF, &interface.to_ne_bytes());
        }
        match self.socket.ask_for_one(request.message())? {
            (libc::RTM_NEWROUTE, answer) => route(answer, to, from).ok_or_else(not_asked_for),
            _ => Err(not_asked_for()),
        }
    }

    /// A neighbour on a device, if the kernel has a link address that it would use itself. Needs Linux 5.0.
    pub(crate) fn neighbour(&mut self, interface: u32, ip: IpAddr) -> io::Result<Option<Neighbour>> {
        let mut request = Request::new(libc::RTM_GETNEIGH, ip);
        request.bytes[NEIGHBOUR_INTERFACE..][..4].copy_from_slice(&interface.to_ne_bytes());
        request.address(NDA_DST, ip);
        match self.socket.ask_for_one(request.message()) {
            Ok((libc::RTM_NEWNEIGH, answer)) => Ok(neighbour(answer)),
            Ok(_) => Err(not_asked_for()),
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// A message that grows.
struct Request {
    bytes: [u8; REQUEST],
    len: usize,
}

impl Request {
    fn new(kind: u16, of: IpAddr) -> Self {
        let mut bytes = [0; REQUEST];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&NLM_F_REQUEST.to_ne_bytes());
        bytes[FAMILY] = if of.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 } as u8;
        Self { bytes, len: HEADER + BODY }
    }

    fn address(&mut self, kind: u16, ip: IpAddr) {
        match ip {
            IpAddr::V4(ip) => self.attribute(kind, &ip.octets()),
            IpAddr::V6(ip) => self.attribute(kind, &ip.octets()),
        }
    }

    /// Adds an attribute, whose length is a multiple of four.
    fn attribute(&mut self, kind: u16, value: &[u8]) {
        let (header, end) = (self.len + 4, self.len + 4 + value.len());
        self.bytes[self.len..self.len + 2].copy_from_slice(&(4 + value.len() as u16).to_ne_bytes());
        self.bytes[self.len + 2..header].copy_from_slice(&kind.to_ne_bytes());
        self.bytes[header..end].copy_from_slice(value);
        self.len = end;
    }

    /// The message, with its length.
    fn message(&mut self) -> &mut [u8] {
        self.bytes[..4].copy_from_slice(&(self.len as u32).to_ne_bytes());
        &mut self.bytes[..self.len]
    }
}

/// Attributes behind a body: type and value each; what is malformed ends them.
fn attributes(answer: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let attributes = NlasIterator::new(answer.get(BODY..).unwrap_or_default());
    attributes.map_while(Result::ok).map(|attribute| {
        let (kind, len) = (attribute.kind(), attribute.value_length());
        (kind, attribute.into_inner().get(4..4 + len).unwrap_or_default())
    })
}

fn route(answer: &[u8], to: IpAddr, from: Option<IpAddr>) -> Option<Route> {
    let mut interface = None;
    let unicast = *answer.get(ROUTE_TYPE)? == libc::RTN_UNICAST;
    let mut route = Route { interface: 0, next: to, source: from, direct: unicast };
    for (kind, value) in attributes(answer) {
        match kind {
            libc::RTA_OIF => interface = number(value),
            libc::RTA_PREFSRC => route.source = address(value).or(route.source),
            // A gateway of the other family stands behind the number of that.
            libc::RTA_GATEWAY | RTA_VIA => {
                let value = if kind == RTA_VIA { value.get(2..)? } else { value };
                match address(value) {
                    Some(next) => route.next = next,
                    None => route.direct = false,
                }
            }
            // The packet would be wrapped.
            RTA_ENCAP_TYPE => route.direct = false,
            _ => {}
        }
    }
    route.interface = interface?;
    Some(route)
}

fn neighbour(answer: &[u8]) -> Option<Neighbour> {
    const USABLE: u16 =
        libc::NUD_REACHABLE | libc::NUD_DELAY | libc::NUD_PROBE | libc::NUD_NOARP | libc::NUD_PERMANENT;
    let state = answer.get(NEIGHBOUR_STATE..NEIGHBOUR_STATE + 2)?;
    let state = u16::from_ne_bytes(state.try_into().ok()?);
    let stale = state & libc::NUD_STALE != 0;
    if !stale && state & USABLE == 0 {
        return None;
    }
    let (_, address) = attributes(answer).find(|&(kind, _)| kind == NDA_LLADDR)?;
    Some(Neighbour { mac: Mac(address.try_into().ok()?), stale })
}

fn number(value: &[u8]) -> Option<u32> {
    value.try_into().ok().map(u32::from_ne_bytes)
}

/// An address of either family, told by its length.
fn address(value: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(value).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(value).map(IpAddr::from)).ok()
}

fn bits(ip: IpAddr) -> u8 {
    if ip.is_ipv4() { 32 } else { 128 }
}

pub(super) fn not_asked_for() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "an answer to another question")
}
