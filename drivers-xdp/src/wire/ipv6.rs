//! The header of IPv6 (RFC 8200).

use std::net::Ipv6Addr;

use super::{Ip, Malformed, checksum, udp};

pub(super) const HEADER: usize = 40;

const VERSION: u8 = 6;
const HOP_LIMIT: u8 = 64;

/// A header in front of `udp_length` bytes. It has no flow label: that one is for routers that spread load (RFC 6437), and
/// ports and addresses stand at fixed places here.
pub(super) fn header(from: Ipv6Addr, to: Ipv6Addr, traffic_class: u8, udp_length: u16) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[0] = VERSION << 4 | traffic_class >> 4;
    header[1] = traffic_class << 4;
    header[4..6].copy_from_slice(&udp_length.to_be_bytes());
    header[6] = udp::PROTOCOL;
    header[7] = HOP_LIMIT;
    header[8..24].copy_from_slice(&from.octets());
    header[24..].copy_from_slice(&to.octets());
    header
}

pub(super) fn sum_of_addresses(header: &[u8; HEADER]) -> u64 {
    checksum::sum(&header[8..])
}

#[inline]
pub(super) fn read(packet: &[u8]) -> Result<Ip<'_>, Malformed> {
    let (header, rest) = packet.split_first_chunk::<HEADER>().ok_or(Malformed::TooShort)?;
    let [b0, b1, _, _, l0, l1, next_header, _, addresses @ ..] = *header;
    if b0 >> 4 != VERSION {
        return Err(Malformed::NotIp);
    }
    match next_header {
        udp::PROTOCOL => {}
        44 => return Err(Malformed::Fragment),
        // IANA's registry of extension headers: hop-by-hop and destination options, routing, ESP, AH, mobility, HIP, shim6,
        // two for experiments.
        0 | 43 | 50 | 51 | 60 | 135 | 139 | 140 | 253 | 254 => return Err(Malformed::Options),
        _ => return Err(Malformed::NotUdp),
    }
    let (&from, to) = addresses.split_first_chunk::<16>().expect("16 of 32 bytes");
    let to = <[u8; 16]>::try_from(to).expect("the other 16 bytes");
    Ok(Ip {
        from: Ipv6Addr::from_octets(from).into(),
        to: Ipv6Addr::from_octets(to).into(),
        traffic_class: b0 << 4 | b1 >> 4,
        sum_of_addresses: sum_of_addresses(header),
        body: rest.get(..usize::from(u16::from_be_bytes([l0, l1]))).ok_or(Malformed::Length)?,
    })
}
