//! The header of IPv4 (RFC 791).

use std::net::Ipv4Addr;

use super::{Ip, Malformed, checksum, udp};

pub(super) const HEADER: usize = 20;

/// Version 4, five words of header.
const VERSION_AND_LENGTH: u8 = 0x45;
const DONT_FRAGMENT: u8 = 0x40;
const MORE_FRAGMENTS_AND_OFFSET: u16 = 0x3fff;
const TIME_TO_LIVE: u8 = 64;

/// A header in front of `udp_length` bytes. It has no identification: a packet that nobody may fragment needs none
/// (RFC 6864 §4.1).
///
/// # Panics
///
/// If the packet is longer than 65,535 bytes.
pub(super) fn header(from: Ipv4Addr, to: Ipv4Addr, traffic_class: u8, udp_length: u16) -> [u8; HEADER] {
    let length = udp_length.checked_add(HEADER as u16).expect("a payload that IPv4 can carry");
    let mut header = [0; HEADER];
    header[0] = VERSION_AND_LENGTH;
    header[1] = traffic_class;
    header[2..4].copy_from_slice(&length.to_be_bytes());
    header[6] = DONT_FRAGMENT;
    header[8] = TIME_TO_LIVE;
    header[9] = udp::PROTOCOL;
    header[12..16].copy_from_slice(&from.octets());
    header[16..].copy_from_slice(&to.octets());
    let checksum = !checksum::fold(checksum::sum(&header));
    header[10..12].copy_from_slice(&checksum.to_ne_bytes());
    header
}

pub(super) fn sum_of_addresses(header: &[u8; HEADER]) -> u64 {
    checksum::sum(&header[12..])
}

#[inline]
pub(super) fn read(packet: &[u8]) -> Result<Ip<'_>, Malformed> {
    let header = packet.first_chunk::<HEADER>().ok_or(Malformed::TooShort)?;
    let [version_and_length, traffic_class, l0, l1, _, _, f0, f1, _, protocol, _, _, addresses @ ..] =
        *header;
    match version_and_length {
        VERSION_AND_LENGTH => {}
        0x46..=0x4f => return Err(Malformed::Options),
        0x40..=0x44 => return Err(Malformed::Length),
        _ => return Err(Malformed::NotIp),
    }
    if checksum::fold(checksum::sum(header)) != 0xffff {
        return Err(Malformed::IpChecksum);
    }
    if u16::from_be_bytes([f0, f1]) & MORE_FRAGMENTS_AND_OFFSET != 0 {
        return Err(Malformed::Fragment);
    }
    if protocol != udp::PROTOCOL {
        return Err(Malformed::NotUdp);
    }
    let end = usize::from(u16::from_be_bytes([l0, l1]));
    let [s0, s1, s2, s3, d0, d1, d2, d3] = addresses;
    Ok(Ip {
        from: Ipv4Addr::new(s0, s1, s2, s3).into(),
        to: Ipv4Addr::new(d0, d1, d2, d3).into(),
        traffic_class,
        sum_of_addresses: sum_of_addresses(header),
        body: packet.get(HEADER..end).ok_or(Malformed::Length)?,
    })
}
