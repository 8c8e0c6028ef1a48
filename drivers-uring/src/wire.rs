//! Socket addresses and control messages in the kernel's layout, without pointers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::ops::Range;

use wraith_proto::Ecn;

/// Bytes of the longest address of a socket, `sockaddr_in6`.
pub(crate) const NAME_BYTES: usize = 28;
/// Room for the sender's address in a receive buffer, in bytes.
pub(crate) const RX_NAME_BYTES: usize = 32;
/// Room for control messages in a receive buffer, in bytes: local address, ECN mark and segment size need 112.
pub(crate) const RX_CONTROL_BYTES: usize = 144;
/// Where the payload stands in a receive buffer: behind the lengths, the sender's address and control messages.
pub(crate) const RX_PAYLOAD: usize = RX_HEADER + RX_NAME_BYTES + RX_CONTROL_BYTES;

/// Bytes of `struct io_uring_recvmsg_out`.
const RX_HEADER: usize = 16;
/// Bytes of `struct cmsghdr`, and the boundary that control messages are laid on.
const CMSG_HEADER: usize = size_of::<libc::cmsghdr>();
const CMSG_ALIGN: usize = size_of::<usize>();

/// The address of a destination as the kernel reads it; empty for a connected socket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name {
    bytes: [u8; NAME_BYTES],
    len: usize,
}

impl Name {
    /// No address.
    pub(crate) const NONE: Self = Self { bytes: [0; NAME_BYTES], len: 0 };

    pub(crate) fn of(addr: SocketAddr) -> Self {
        let mut bytes = [0; NAME_BYTES];
        bytes[2..4].copy_from_slice(&addr.port().to_be_bytes());
        match addr {
            SocketAddr::V4(addr) => {
                bytes[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
                bytes[4..8].copy_from_slice(&addr.ip().octets());
                Self { bytes, len: size_of::<libc::sockaddr_in>() }
            }
            SocketAddr::V6(addr) => {
                bytes[..2].copy_from_slice(&(libc::AF_INET6 as u16).to_ne_bytes());
                bytes[4..8].copy_from_slice(&addr.flowinfo().to_be_bytes());
                bytes[8..24].copy_from_slice(&addr.ip().octets());
                bytes[24..28].copy_from_slice(&addr.scope_id().to_ne_bytes());
                Self { bytes, len: size_of::<libc::sockaddr_in6>() }
            }
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Control messages of a send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Control {
    bytes: [u8; Self::WORDS * 8],
    len: usize,
}

impl Control {
    /// Room for an ECN mark, a source address and a segment size, in words of 8 bytes.
    pub(crate) const WORDS: usize = 12;

    /// No control messages.
    pub(crate) const NONE: Self = Self { bytes: [0; Self::WORDS * 8], len: 0 };

    /// What goes with a datagram, or a batch of datagrams of `segment` bytes, that leaves to `to`.
    pub(crate) fn of(to: IpAddr, from: Option<IpAddr>, ecn: Ecn, segment: Option<u16>) -> Self {
        let mut control = Self::NONE;
        if ecn != Ecn::NotEct {
            let bits = i32::from(ecn.bits()).to_ne_bytes();
            if to.to_canonical().is_ipv4() {
                control.push(libc::IPPROTO_IP, libc::IP_TOS, &bits);
            } else {
                control.push(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, &bits);
            }
        }
        match from {
            Some(IpAddr::V4(ip)) => {
                // struct in_pktinfo: interface, source address, and one that only a receive fills.
                let mut info = [0; 12];
                info[4..8].copy_from_slice(&ip.octets());
                control.push(libc::IPPROTO_IP, libc::IP_PKTINFO, &info);
            }
            Some(IpAddr::V6(ip)) => {
                // struct in6_pktinfo: source address, interface.
                let mut info = [0; 20];
                info[..16].copy_from_slice(&ip.octets());
                control.push(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &info);
            }
            None => {}
        }
        if let Some(segment) = segment {
            control.push(libc::SOL_UDP, libc::UDP_SEGMENT, &segment.to_ne_bytes());
        }
        control
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn push(&mut self, level: i32, kind: i32, data: &[u8]) {
        let space = CMSG_HEADER + data.len().next_multiple_of(CMSG_ALIGN);
        let Some(place) = self.bytes.get_mut(self.len..self.len + space) else { return };
        let (header, rest) = place.split_at_mut(CMSG_HEADER);
        let (len, names) = header.split_at_mut(size_of::<usize>());
        len.copy_from_slice(&(CMSG_HEADER + data.len()).to_ne_bytes());
        names[..4].copy_from_slice(&level.to_ne_bytes());
        names[4..8].copy_from_slice(&kind.to_ne_bytes());
        rest[..data.len()].copy_from_slice(data);
        self.len += space;
    }
}

/// What stands in a receive buffer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Received {
    /// The sender, unless the socket has no such addresses.
    pub(crate) from: Option<SocketAddr>,
    /// The local address that it was sent to.
    pub(crate) to: Option<IpAddr>,
    pub(crate) ecn: Ecn,
    /// Where the payload stands in the buffer.
    pub(crate) payload: Range<usize>,
    /// Bytes of each of the joined datagrams but the last, if there are several.
    pub(crate) segment: Option<usize>,
    /// Bytes that arrived; more than stand in the buffer if it was too short.
    pub(crate) arrived: usize,
}

/// Reads a buffer that a multishot receive has filled with `len` bytes.
pub(crate) fn received(buffer: &[u8], len: usize) -> Option<Received> {
    let buffer = buffer.get(..len)?;
    let header = buffer.get(..RX_HEADER)?;
    let name = buffer.get(RX_HEADER..RX_HEADER + RX_NAME_BYTES)?;
    let control = buffer.get(RX_HEADER + RX_NAME_BYTES..RX_PAYLOAD)?;
    let (name_len, control_len) = (u32_at(header, 0)? as usize, u32_at(header, 4)? as usize);
    let mut received = Received {
        from: address(name.get(..name_len.min(RX_NAME_BYTES))?),
        to: None,
        ecn: Ecn::NotEct,
        payload: RX_PAYLOAD..len,
        segment: None,
        arrived: u32_at(header, 8)? as usize,
    };
    received.note(control.get(..control_len.min(RX_CONTROL_BYTES))?);
    Some(received)
}

/// Writes what stands first in a receive buffer, as the ring does: bytes of the address and of control messages, and of the
/// datagram, which may be more than the buffer holds.
pub(crate) fn write_header(buffer: &mut [u8], name_len: u32, control_len: u32, arrived: u32) {
    let Some(header) = buffer.first_chunk_mut::<RX_HEADER>() else { return };
    for (part, number) in header.chunks_exact_mut(4).zip([name_len, control_len, arrived, 0]) {
        part.copy_from_slice(&number.to_ne_bytes());
    }
}

impl Received {
    fn note(&mut self, mut control: &[u8]) {
        while let Some((level, kind, data, rest)) = next_control(control) {
            match (level, kind) {
                (libc::IPPROTO_IP, libc::IP_TOS) => {
                    self.ecn = data.first().map_or(Ecn::NotEct, |tos| Ecn::from_bits(*tos));
                }
                (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                    self.ecn = u32_at(data, 0).map_or(Ecn::NotEct, |class| Ecn::from_bits(class as u8));
                }
                (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                    self.to = data.get(8..12).and_then(v4).or(self.to);
                }
                (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                    self.to = data.get(..16).and_then(v6).or(self.to);
                }
                (libc::SOL_UDP, libc::UDP_GRO) => {
                    self.segment = u32_at(data, 0).map(|size| size as usize).filter(|size| *size > 0);
                }
                _ => {}
            }
            control = rest;
        }
    }
}

/// The first of some control messages: level, type, data, and the others.
fn next_control(control: &[u8]) -> Option<(i32, i32, &[u8], &[u8])> {
    let len = usize::from_ne_bytes(control.get(..size_of::<usize>())?.try_into().ok()?);
    let names = control.get(size_of::<usize>()..CMSG_HEADER)?;
    let data = control.get(CMSG_HEADER..len)?;
    // The last one may stand without its padding.
    let rest = control.get(len.next_multiple_of(CMSG_ALIGN)..).unwrap_or_default();
    Some((u32_at(names, 0)?.cast_signed(), u32_at(names, 4)?.cast_signed(), data, rest))
}

fn address(name: &[u8]) -> Option<SocketAddr> {
    let family = i32::from(u16::from_ne_bytes(name.get(..2)?.try_into().ok()?));
    let port = u16::from_be_bytes(name.get(2..4)?.try_into().ok()?);
    match family {
        libc::AF_INET => Some(SocketAddr::new(v4(name.get(4..8)?)?, port)),
        libc::AF_INET6 => {
            let flow = u32::from_be_bytes(name.get(4..8)?.try_into().ok()?);
            let ip: [u8; 16] = name.get(8..24)?.try_into().ok()?;
            Some(SocketAddrV6::new(ip.into(), port, flow, u32_at(name, 24)?).into())
        }
        _ => None,
    }
}

fn v4(bytes: &[u8]) -> Option<IpAddr> {
    let bytes: [u8; 4] = bytes.try_into().ok()?;
    Some(Ipv4Addr::from(bytes).into())
}

fn v6(bytes: &[u8]) -> Option<IpAddr> {
    let bytes: [u8; 16] = bytes.try_into().ok()?;
    Some(Ipv6Addr::from(bytes).into())
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests;
