//! The header of UDP (RFC 768).

use super::{Checksums, Ip, Malformed, checksum};

pub(super) const HEADER: usize = 8;
/// UDP's number in IP headers.
pub(super) const PROTOCOL: u8 = 17;

/// What a UDP header says.
pub(super) struct Udp {
    pub(super) from: u16,
    pub(super) to: u16,
    pub(super) payload_length: usize,
}

/// A header in front of `payload`; `length` is that of both.
pub(super) fn header(from: u16, to: u16, length: u16, sum_of_addresses: u64, payload: &[u8]) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..2].copy_from_slice(&from.to_be_bytes());
    header[2..4].copy_from_slice(&to.to_be_bytes());
    header[4..6].copy_from_slice(&length.to_be_bytes());
    let pseudo = sum_of_pseudo_header(sum_of_addresses, length);
    let checksum = match !checksum::fold(pseudo + checksum::sum(&header) + checksum::sum(payload)) {
        0 => 0xffff, // zero stands for none
        checksum => checksum,
    };
    header[6..].copy_from_slice(&checksum.to_ne_bytes());
    header
}

#[inline]
pub(super) fn read(ip: &Ip<'_>, checksums: Checksums) -> Result<Udp, Malformed> {
    let header = ip.body.first_chunk::<HEADER>().ok_or(Malformed::Length)?;
    let [f0, f1, t0, t1, l0, l1, c0, c1] = *header;
    let length = u16::from_be_bytes([l0, l1]);
    let datagram = ip.body.get(..usize::from(length)).ok_or(Malformed::Length)?;
    let payload_length = datagram.len().checked_sub(HEADER).ok_or(Malformed::Length)?;
    if !is_right(ip, datagram, u16::from_ne_bytes([c0, c1]), length, checksums) {
        return Err(Malformed::UdpChecksum);
    }
    Ok(Udp { from: u16::from_be_bytes([f0, f1]), to: u16::from_be_bytes([t0, t1]), payload_length })
}

/// Judges the checksum of a datagram, header and payload. `field` is of the machine's byte order, as sums are.
fn is_right(ip: &Ip<'_>, datagram: &[u8], field: u16, length: u16, checksums: Checksums) -> bool {
    if checksums == Checksums::Ignore {
        return true;
    }
    if field == 0 {
        return ip.from.is_ipv4();
    }
    let pseudo = sum_of_pseudo_header(ip.sum_of_addresses, length);
    if checksums == Checksums::AcceptPartial && field == checksum::fold(pseudo) {
        return true;
    }
    checksum::fold(pseudo + checksum::sum(datagram)) == 0xffff
}

/// RFC 768, RFC 8200 §8.1: addresses, protocol and length; where they stand among zeros is the same to a sum.
fn sum_of_pseudo_header(sum_of_addresses: u64, length: u16) -> u64 {
    let [l0, l1] = length.to_be_bytes();
    sum_of_addresses + checksum::sum(&[0, PROTOCOL, l0, l1])
}
