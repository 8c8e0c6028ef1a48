//! What holds for any bytes that come as a frame. `fuzz/` takes this file, too.

use std::net::{IpAddr, SocketAddr};

use etherparse::checksum::Sum16BitWords;
use etherparse::{IpEcn, LinkSlice, NetSlice, SlicedPacket, TransportSlice, UdpSlice};
use wraith_drivers_xdp::wire::{self, Checksums, Flow, Mac, Malformed};
use wraith_proto::Ecn;

/// Checks `frame` as it is, and with checksums that are right, which chance seldom finds.
///
/// # Panics
///
/// If `wire` says anything else than etherparse, or than itself.
pub(crate) fn check(frame: &[u8]) {
    check_as_it_is(frame);
    check_as_it_is(&with_ip_checksum(frame));
    check_as_it_is(&with_udp_checksum(&with_ip_checksum(frame)));
}

fn check_as_it_is(frame: &[u8]) {
    let [ignored, partial, verified] = [Checksums::Ignore, Checksums::AcceptPartial, Checksums::Verify]
        .map(|setting| wire::read(frame, setting));
    // A stricter setting refuses for the checksum alone, and changes nothing else.
    for (looser, stricter) in [(ignored.clone(), &partial), (partial.clone(), &verified)] {
        assert!(*stricter == looser || *stricter == Err(Malformed::UdpChecksum), "{looser:?}, {stricter:?}");
    }
    let expected = etherparse_reads(frame);
    match (&ignored, &expected) {
        (Err(_), None) => {}
        (Ok((flow, range)), Some(expected)) => {
            assert_eq!(*flow, expected.flow);
            let payload = &frame[range.clone()];
            assert_eq!(payload.as_ptr_range(), expected.payload.as_ptr_range());
            assert_eq!(verified.is_ok(), expected.checksum_is_right, "{expected:?}");
            let may_pass = expected.checksum_is_right || expected.checksum_is_partial;
            assert_eq!(partial.is_ok(), may_pass, "{expected:?}");
            writes_and_reads_the_same(flow, payload);
        }
        other => panic!("{other:?}"),
    }
}

fn writes_and_reads_the_same(flow: &Flow, payload: &[u8]) {
    let headers = wire::header_bytes(flow.from.ip());
    let mut frame = vec![0; headers];
    wire::write(flow, &mut frame, payload);
    frame.extend_from_slice(payload);
    assert_eq!(wire::read(&frame, Checksums::Verify), Ok((*flow, headers..frame.len())));
    assert!(
        etherparse_reads(&frame)
            .is_some_and(|reading| reading.checksum_is_right && reading.payload == payload)
    );
}

/// A whole datagram as etherparse finds it.
#[derive(Debug)]
struct Reading<'a> {
    flow: Flow,
    payload: &'a [u8],
    checksum_is_right: bool,
    checksum_is_partial: bool,
}

/// Nothing for what `wire` has to refuse whatever the setting.
fn etherparse_reads(frame: &[u8]) -> Option<Reading<'_>> {
    let packet = SlicedPacket::from_ethernet(frame).ok()?;
    let (Some(LinkSlice::Ethernet2(ethernet)), true) = (packet.link, packet.link_exts.is_empty()) else {
        return None;
    };
    let Some(TransportSlice::Udp(udp)) = packet.transport else { return None };
    // A length of zero says "as long as it is" to etherparse: RFC 2675, which is for longer packets than an MTU.
    if udp.length() == 0 {
        return None;
    }
    let (from, to, ecn, whole_sum) = match packet.net? {
        NetSlice::Ipv4(ip) => {
            let header = ip.header();
            let plain = ip.extensions().is_empty() && header.options().is_empty();
            if !plain || complement_of_sum(header.slice()) != 0 {
                return None;
            }
            let sum = udp.to_header().calc_checksum_ipv4(&header.to_header(), udp.payload()).unwrap();
            let (from, to) = (IpAddr::from(header.source_addr()), IpAddr::from(header.destination_addr()));
            (from, to, header.ecn(), sum)
        }
        NetSlice::Ipv6(ip) => {
            let header = ip.header();
            if !ip.extensions().is_empty() || header.payload_length() == 0 {
                return None;
            }
            let sum = udp.to_header().calc_checksum_ipv6(&header.to_header(), udp.payload()).unwrap();
            let (from, to) = (IpAddr::from(header.source_addr()), IpAddr::from(header.destination_addr()));
            (from, to, header.ecn(), sum)
        }
        NetSlice::Arp(_) => return None,
    };
    let flow = Flow {
        source: Mac(ethernet.source()),
        destination: Mac(ethernet.destination()),
        from: SocketAddr::new(from, udp.source_port()),
        to: SocketAddr::new(to, udp.destination_port()),
        ecn: ecn_of(ecn),
    };
    let checksum_is_right = is_right(&udp, from.is_ipv4(), whole_sum);
    let checksum_is_partial = udp.checksum() == sum_of_pseudo_header(from, to, udp.length());
    Some(Reading { flow, payload: udp.payload(), checksum_is_right, checksum_is_partial })
}

fn is_right(udp: &UdpSlice<'_>, may_be_missing: bool, sum: u16) -> bool {
    if udp.checksum() == 0 { may_be_missing } else { udp.checksum() == sum }
}

fn sum_of_pseudo_header(from: IpAddr, to: IpAddr, length: u16) -> u16 {
    let mut sum = Sum16BitWords::new().add_2bytes([0, 17]).add_2bytes(length.to_be_bytes());
    for address in [from, to] {
        sum = match address {
            IpAddr::V4(address) => sum.add_4bytes(address.octets()),
            IpAddr::V6(address) => sum.add_16bytes(address.octets()),
        };
    }
    !u16::from_be(sum.ones_complement())
}

/// Of the bytes as they are: `Ipv4Header` has no place for the reserved flag.
fn complement_of_sum(bytes: &[u8]) -> u16 {
    u16::from_be(Sum16BitWords::new().add_slice(bytes).ones_complement())
}

fn ecn_of(ecn: IpEcn) -> Ecn {
    match ecn.value() {
        0 => Ecn::NotEct,
        1 => Ecn::Ect1,
        2 => Ecn::Ect0,
        _ => Ecn::Ce,
    }
}

fn with_ip_checksum(frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    if frame.len() >= 34 && frame[12..14] == [0x08, 0x00] {
        frame[24..26].fill(0);
        let sum = complement_of_sum(&frame[14..34]);
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
    }
    frame
}

fn with_udp_checksum(frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    if let Ok((flow, range)) = wire::read(&frame, Checksums::Ignore) {
        let mut headers = vec![0; range.start];
        wire::write(&flow, &mut headers, &frame[range.clone()]);
        let checksum = range.start - 2..range.start;
        frame[checksum.clone()].copy_from_slice(&headers[checksum]);
    }
    frame
}
