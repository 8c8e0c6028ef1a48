//! Ethernet, IP and UDP, as they stand in front of a datagram. Pure: bytes in, values out.

mod checksum;
mod ipv4;
mod ipv6;
#[cfg(test)]
mod tests;
mod udp;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;

use wraith_proto::Ecn;

/// The address of a network device on its link.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Mac(pub [u8; 6]);

/// What stands in the headers of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flow {
    /// The device that sends the frame.
    pub source: Mac,
    /// The device that the frame is for.
    pub destination: Mac,
    /// The sender of the datagram. A link-local address comes without its scope, which no header holds.
    pub from: SocketAddr,
    /// The receiver of the datagram.
    pub to: SocketAddr,
    /// The mark of the IP header.
    pub ecn: Ecn,
}

/// How the UDP checksums of received frames are judged. The one of the IPv4 header is always verified.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Checksums {
    /// They have to be whole.
    Verify,
    /// Also those that the peer's host left to its device: the field holds the sum of the pseudo-header alone. On one
    /// machine (veth, virtio) no device ever completes it.
    AcceptPartial,
    /// They are not looked at.
    Ignore,
}

/// Why a frame holds no datagram that can be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Malformed {
    /// It ends within the header of Ethernet or IP.
    TooShort,
    /// Neither IPv4 nor IPv6 follows Ethernet's header.
    NotIp,
    /// A part of a packet.
    Fragment,
    /// Options of IPv4 or extension headers of IPv6.
    Options,
    /// Another protocol than UDP.
    NotUdp,
    /// A length that is below that of its header, or beyond what holds it.
    Length,
    /// The checksum of the IPv4 header is wrong.
    IpChecksum,
    /// The checksum of UDP is wrong, or missing over IPv6 (RFC 8200 §8.1).
    UdpChecksum,
}

/// Length of all headers over IPv4.
pub const IPV4_HEADERS: usize = ETHERNET_HEADER + ipv4::HEADER + udp::HEADER;
/// Length of all headers over IPv6.
pub const IPV6_HEADERS: usize = ETHERNET_HEADER + ipv6::HEADER + udp::HEADER;

pub(crate) const ETHERNET_HEADER: usize = 14;
/// `EtherType` (RFC 9542 appendix B.1).
const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];

/// Length of all headers in front of a datagram between addresses of the family of `ip`.
pub const fn header_bytes(ip: IpAddr) -> usize {
    match ip {
        IpAddr::V4(_) => IPV4_HEADERS,
        IpAddr::V6(_) => IPV6_HEADERS,
    }
}

/// Writes all headers for `payload`, checksums included. It follows them in the frame.
///
/// # Panics
///
/// If `flow.from` and `flow.to` are of two families, `headers` is not [`header_bytes`] long, or `payload` is longer than
/// UDP can carry: 65,507 bytes over IPv4, 65,527 over IPv6.
pub fn write(flow: &Flow, headers: &mut [u8], payload: &[u8]) {
    let udp_length = u16::try_from(udp::HEADER + payload.len()).expect("a payload that UDP can carry");
    let (ethernet, rest) = headers.split_at_mut(ETHERNET_HEADER);
    let (ip, udp) = rest.split_at_mut(rest.len() - udp::HEADER);
    ethernet[..6].copy_from_slice(&flow.destination.0);
    ethernet[6..12].copy_from_slice(&flow.source.0);
    let addresses = match (flow.from.ip(), flow.to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            ethernet[12..].copy_from_slice(&IPV4);
            let header = ipv4::header(from, to, flow.ecn.bits(), udp_length);
            ip.copy_from_slice(&header);
            ipv4::sum_of_addresses(&header)
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            ethernet[12..].copy_from_slice(&IPV6);
            let header = ipv6::header(from, to, flow.ecn.bits(), udp_length);
            ip.copy_from_slice(&header);
            ipv6::sum_of_addresses(&header)
        }
        (from, to) => panic!("{from} and {to} are of two families"),
    };
    let header = udp::header(flow.from.port(), flow.to.port(), udp_length, addresses, payload);
    udp.copy_from_slice(&header);
}

/// Reads the headers of a frame, and says where its payload lies.
///
/// What follows the payload is cut off: the padding of a short frame, and what a packet holds behind the length that UDP
/// states (RFC 9868), as the kernel does it.
///
/// # Errors
///
/// What keeps the frame from being a whole datagram over UDP.
#[inline] // with its parts: what they return is larger than what they do
pub fn read(frame: &[u8], checksums: Checksums) -> Result<(Flow, Range<usize>), Malformed> {
    let (ethernet, packet) = frame.split_first_chunk::<ETHERNET_HEADER>().ok_or(Malformed::TooShort)?;
    let [d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5, kind @ ..] = *ethernet;
    let ip = match kind {
        IPV4 => ipv4::read(packet)?,
        IPV6 => ipv6::read(packet)?,
        _ => return Err(Malformed::NotIp),
    };
    let udp = udp::read(&ip, checksums)?;
    let flow = Flow {
        source: Mac([s0, s1, s2, s3, s4, s5]),
        destination: Mac([d0, d1, d2, d3, d4, d5]),
        from: SocketAddr::new(ip.from, udp.from),
        to: SocketAddr::new(ip.to, udp.to),
        ecn: Ecn::from_bits(ip.traffic_class),
    };
    let start = header_bytes(ip.from);
    Ok((flow, start..start + udp.payload_length))
}

/// What an IP header says, and what it heads.
struct Ip<'a> {
    from: IpAddr,
    to: IpAddr,
    traffic_class: u8,
    /// Both addresses, for UDP's checksum.
    sum_of_addresses: u64,
    body: &'a [u8],
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, rest @ ..] = &self.0;
        write!(f, "{first:02x}")?;
        rest.iter().try_for_each(|byte| write!(f, ":{byte:02x}"))
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooShort => "ends within its headers",
            Self::NotIp => "neither IPv4 nor IPv6",
            Self::Fragment => "a fragment",
            Self::Options => "options or extension headers",
            Self::NotUdp => "not UDP",
            Self::Length => "lengths that do not fit",
            Self::IpChecksum => "a wrong checksum of IPv4",
            Self::UdpChecksum => "a wrong checksum of UDP",
        })
    }
}

impl std::error::Error for Malformed {}
