use std::net::{Ipv4Addr, Ipv6Addr};

use etherparse::{
    IpHeaders, IpNumber, Ipv4Extensions, Ipv4Header, Ipv6Extensions, Ipv6Header, NetSlice, PacketBuilder,
    SlicedPacket, TransportSlice,
};
use proptest::prelude::*;

use super::*;

const MACS: (Mac, Mac) = (Mac([2, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 2]));
const V4: [&str; 2] = ["192.0.2.1:4433", "198.51.100.7:53000"];
const V6: [&str; 2] = ["[2001:db8::1]:4433", "[2001:db8:ffff::7]:53000"];

fn flow([from, to]: [&str; 2], ecn: Ecn) -> Flow {
    let (source, destination) = MACS;
    Flow { source, destination, from: from.parse().unwrap(), to: to.parse().unwrap(), ecn }
}

fn frame(flow: &Flow, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0xaa; header_bytes(flow.from.ip())];
    write(flow, &mut frame, payload);
    frame.extend_from_slice(payload);
    frame
}

/// Bytes that no short period repeats in.
fn payload(length: usize) -> Vec<u8> {
    (0..length as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// What of IP's header a receiver leaves aside.
#[derive(Clone, Copy, Debug)]
struct Rest {
    time_to_live: u8,
    dscp: u8,
    flow_label: u32,
    identification: u16,
}

/// What `write` gives them.
const OURS: Rest = Rest { time_to_live: 64, dscp: 0, flow_label: 0, identification: 0 };

/// The frame as etherparse builds it.
fn etherparse_frame(flow: &Flow, rest: Rest, payload: &[u8]) -> Vec<u8> {
    let ecn = flow.ecn.bits();
    let ip = match (flow.from.ip(), flow.to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let mut header =
                Ipv4Header::new(0, rest.time_to_live, IpNumber::UDP, from.octets(), to.octets()).unwrap();
            header.dscp = rest.dscp.try_into().unwrap();
            header.ecn = ecn.try_into().unwrap();
            header.identification = rest.identification;
            IpHeaders::Ipv4(header, Ipv4Extensions::default())
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let header = Ipv6Header {
                traffic_class: rest.dscp << 2 | ecn,
                flow_label: rest.flow_label.try_into().unwrap(),
                payload_length: 0,
                next_header: IpNumber::UDP,
                hop_limit: rest.time_to_live,
                source: from.octets(),
                destination: to.octets(),
            };
            IpHeaders::Ipv6(header, Ipv6Extensions::default())
        }
        _ => unreachable!("both of one family"),
    };
    let builder = PacketBuilder::ethernet2(flow.source.0, flow.destination.0)
        .ip(ip)
        .udp(flow.from.port(), flow.to.port());
    let mut frame = Vec::new();
    builder.write(&mut frame, payload).unwrap();
    frame
}

/// The payload of a frame as etherparse finds it, and whether both checksums are right to it.
fn etherparse_reads(frame: &[u8]) -> (Vec<u8>, bool) {
    let packet = SlicedPacket::from_ethernet(frame).unwrap();
    let Some(TransportSlice::Udp(udp)) = packet.transport else { panic!("not UDP: {packet:?}") };
    let header = udp.to_header();
    let (ip, expected) = match packet.net {
        Some(NetSlice::Ipv4(ip)) => {
            let ip = ip.header();
            let whole = ip.to_header().calc_header_checksum() == ip.header_checksum();
            (whole, header.calc_checksum_ipv4(&ip.to_header(), udp.payload()).unwrap())
        }
        Some(NetSlice::Ipv6(ip)) => {
            (true, header.calc_checksum_ipv6(&ip.header().to_header(), udp.payload()).unwrap())
        }
        other => panic!("not IP: {other:?}"),
    };
    (udp.payload().to_vec(), ip && expected == header.checksum)
}

fn rest() -> impl Strategy<Value = Rest> {
    (any::<u8>(), 0..64_u8, 0..1_u32 << 20, any::<u16>()).prop_map(
        |(time_to_live, dscp, flow_label, identification)| Rest {
            time_to_live,
            dscp,
            flow_label,
            identification,
        },
    )
}

fn flows() -> impl Strategy<Value = Flow> {
    let addresses = prop_oneof![
        any::<[[u8; 4]; 2]>().prop_map(|pair| pair.map(|octets| IpAddr::from(Ipv4Addr::from(octets)))),
        any::<[[u8; 16]; 2]>().prop_map(|pair| pair.map(|octets| IpAddr::from(Ipv6Addr::from(octets)))),
    ];
    let ecn = prop::sample::select(vec![Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce]);
    (any::<[[u8; 6]; 2]>(), addresses, any::<[u16; 2]>(), ecn).prop_map(|(macs, [from, to], ports, ecn)| {
        Flow {
            source: Mac(macs[0]),
            destination: Mac(macs[1]),
            from: SocketAddr::new(from, ports[0]),
            to: SocketAddr::new(to, ports[1]),
            ecn,
        }
    })
}

proptest! {
    #[test]
    fn frames_are_those_of_etherparse(flow in flows(), payload in prop::collection::vec(any::<u8>(), 0..9_000)) {
        let frame = frame(&flow, &payload);
        prop_assert_eq!(&frame, &etherparse_frame(&flow, OURS, &payload));
        prop_assert_eq!(etherparse_reads(&frame), (payload.clone(), true));
        prop_assert_eq!(read(&frame, Checksums::Verify), Ok((flow, header_bytes(flow.from.ip())..frame.len())));
    }

    #[test]
    fn frames_of_etherparse_are_read(
        flow in flows(),
        rest in rest(),
        payload in prop::collection::vec(any::<u8>(), 0..2_000),
        padding in 0..64_usize,
    ) {
        let mut frame = etherparse_frame(&flow, rest, &payload);
        let range = header_bytes(flow.from.ip())..frame.len();
        frame.resize(frame.len() + padding, 0x5a);
        prop_assert_eq!(read(&frame, Checksums::Verify), Ok((flow, range)));
    }

    #[test]
    fn any_bytes_are_read_or_refused(
        kind in prop::sample::select(vec![IPV4, IPV6]),
        bytes in prop::collection::vec(any::<u8>(), 0..120),
        version in prop::sample::select(vec![0x45, 0x60]),
    ) {
        let frame = [&[0; 12], &kind[..], &[version], &bytes].concat();
        if let Ok((_, range)) = read(&frame, Checksums::Ignore) {
            prop_assert!(range.end <= frame.len());
        }
    }
}

/// Which bits of the headers no checksum covers: those of MACs, and of IPv6's traffic class, flow label and hop limit.
fn is_uncovered(frame: &[u8], byte: usize) -> bool {
    byte < 12 || (frame[12..14] == IPV6 && matches!(byte, 14..=17 | 21))
}

#[test]
fn a_changed_bit_of_the_headers_is_noticed_or_harmless() {
    for (addresses, length) in
        [V4, V6].into_iter().flat_map(|family| [0, 1, 18, 512, 1_472, 8_958].map(|n| (family, n)))
    {
        let flow = flow(addresses, Ecn::Ect0);
        let sent = frame(&flow, &payload(length));
        let headers = header_bytes(flow.from.ip());
        for bit in 0..headers * 8 {
            let mut changed = sent.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            match read(&changed, Checksums::Verify) {
                Err(_) => {}
                Ok((got, range)) => {
                    assert!(
                        is_uncovered(&sent, bit / 8),
                        "bit {bit} of {addresses:?} with {length} bytes: {got:?}"
                    );
                    assert_eq!((got.from, got.to, range), (flow.from, flow.to, headers..sent.len()));
                }
            }
        }
        let mut changed = sent;
        changed[headers - 2..headers].fill(0);
        let none = read(&changed, Checksums::Verify).map(|_| ());
        assert_eq!(none, if flow.from.is_ipv4() { Ok(()) } else { Err(Malformed::UdpChecksum) });
        assert_eq!(read(&changed, Checksums::Ignore), Ok((flow, headers..headers + length)));
    }
}

#[test]
fn a_checksum_of_zero_is_sent_as_ones() {
    for addresses in [V4, V6] {
        let flow = flow(addresses, Ecn::NotEct);
        let headers = header_bytes(flow.from.ip());
        // With the complement of all else as its payload, a datagram sums up to ones, whose complement is zero.
        let rest = frame(&flow, &[0, 0]);
        let sent = frame(&flow, &rest[headers - 2..headers]);
        assert_eq!(sent[headers - 2..headers], [0xff, 0xff]);
        assert!(etherparse_reads(&sent).1);
        assert_eq!(read(&sent, Checksums::Verify), Ok((flow, headers..headers + 2)));
    }
}

#[test]
fn a_partial_checksum_is_accepted_where_the_setting_says_so() {
    for addresses in [V4, V6] {
        let flow = flow(addresses, Ecn::Ce);
        let headers = header_bytes(flow.from.ip());
        let mut sent = frame(&flow, &payload(100));
        // The sum of addresses, protocol and length, not complemented, as Linux leaves it to a device.
        let start = if flow.from.is_ipv4() { 26 } else { 22 };
        let words =
            sent[start..headers - 8].chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
        let sum = words.sum::<u32>() + 17 + 108;
        let partial = ((sum & 0xffff) + (sum >> 16)) as u16;
        sent[headers - 2..headers].copy_from_slice(&partial.to_be_bytes());

        assert_eq!(read(&sent, Checksums::Verify), Err(Malformed::UdpChecksum));
        assert_eq!(read(&sent, Checksums::AcceptPartial), Ok((flow, headers..sent.len())));
        assert_eq!(read(&sent, Checksums::Ignore), Ok((flow, headers..sent.len())));
        sent[headers - 1] ^= 1;
        assert_eq!(read(&sent, Checksums::AcceptPartial), Err(Malformed::UdpChecksum));
        assert_eq!(read(&sent, Checksums::Ignore), Ok((flow, headers..sent.len())));
    }
    for setting in [Checksums::Verify, Checksums::AcceptPartial, Checksums::Ignore] {
        let flow = flow(V6, Ecn::NotEct);
        assert_eq!(read(&frame(&flow, b"whole"), setting), Ok((flow, IPV6_HEADERS..IPV6_HEADERS + 5)));
    }
}

/// `frame` with other bytes at `at`; the checksum of IPv4 is renewed.
fn altered(frame: &[u8], at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    frame[at..at + bytes.len()].copy_from_slice(bytes);
    if frame[12..14] == IPV4 {
        frame[24..26].fill(0);
        let checksum = !checksum::fold(checksum::sum(&frame[14..34]));
        frame[24..26].copy_from_slice(&checksum.to_ne_bytes());
    }
    frame
}

#[test]
fn each_way_to_be_malformed_has_its_name() {
    let (v4, v6) = (frame(&flow(V4, Ecn::Ect0), &payload(20)), frame(&flow(V6, Ecn::Ect0), &payload(20)));
    for (frame, at, bytes, malformed) in [
        (&v4, 12, &[0x08, 0x06][..], Malformed::NotIp), // ARP
        (&v4, 12, &[0x81, 0x00], Malformed::NotIp),     // a VLAN's tag
        (&v4, 14, &[0x65], Malformed::NotIp),
        (&v6, 14, &[0x40], Malformed::NotIp),
        (&v6, 20, &[44], Malformed::Fragment),
        (&v4, 14, &[0x46], Malformed::Options),
        (&v6, 20, &[0], Malformed::Options),
        (&v6, 20, &[60], Malformed::Options),
        (&v4, 23, &[6], Malformed::NotUdp),
        (&v6, 20, &[58], Malformed::NotUdp),
        (&v4, 14, &[0x44], Malformed::Length),
        (&v4, 16, &[0, 49], Malformed::Length), // IP: a byte more than there is
        (&v4, 16, &[0, 47], Malformed::Length), // a byte less than UDP's
        (&v4, 16, &[0, 27], Malformed::Length),
        (&v4, 16, &[0, 19], Malformed::Length),
        (&v6, 18, &[0, 29], Malformed::Length),
        (&v6, 18, &[0, 27], Malformed::Length),
        (&v6, 18, &[0, 0], Malformed::Length),  // a jumbogram
        (&v4, 38, &[0, 29], Malformed::Length), // UDP: a byte more than IP's
        (&v4, 38, &[0, 7], Malformed::Length),
        (&v6, 58, &[0, 0], Malformed::Length),
        (&v4, 61, &[0x00], Malformed::UdpChecksum),
        (&v6, 60, &[0, 0], Malformed::UdpChecksum),
        (&v6, 81, &[0x00], Malformed::UdpChecksum),
    ] {
        assert_eq!(
            read(&altered(frame, at, bytes), Checksums::Verify),
            Err(malformed),
            "{bytes:02x?} at {at}"
        );
    }
    for bit in 0..14 {
        let fragment = altered(&v4, 20, &(1_u16 << bit).to_be_bytes());
        assert_eq!(read(&fragment, Checksums::Verify), Err(Malformed::Fragment), "bit {bit}");
    }
    let mut changed = v4.clone();
    changed[22] -= 1; // a router that forgot the checksum
    assert_eq!(read(&changed, Checksums::Ignore), Err(Malformed::IpChecksum));
    for length in 0..34 {
        assert_eq!(read(&v4[..length], Checksums::Ignore), Err(Malformed::TooShort));
    }
    for length in 34..v4.len() {
        assert_eq!(read(&v4[..length], Checksums::Ignore), Err(Malformed::Length));
    }
    for length in 0..54 {
        assert_eq!(read(&v6[..length], Checksums::Ignore), Err(Malformed::TooShort));
    }
    for length in 54..v6.len() {
        assert_eq!(read(&v6[..length], Checksums::Ignore), Err(Malformed::Length));
    }
}

#[test]
fn what_follows_the_length_of_udp_is_cut_off() {
    let flow = flow(V4, Ecn::NotEct);
    let mut sent = frame(&flow, &[]);
    sent.resize(60, 0);
    assert_eq!(read(&sent, Checksums::Verify), Ok((flow, 42..42)));
    // A surplus within the packet, as RFC 9868 puts its options there.
    let surplus = altered(&sent, 16, &46_u16.to_be_bytes());
    assert_eq!(read(&surplus, Checksums::Verify), Ok((flow, 42..42)));
}

#[test]
fn a_frame_is_laid_out_as_the_rfcs_draw_it() {
    let flow = Flow {
        source: Mac([0x02, 0, 0, 0, 0, 0xa1]),
        destination: Mac([0x02, 0, 0, 0, 0, 0xb2]),
        from: "10.9.0.1:40000".parse().unwrap(),
        to: "10.9.0.2:5000".parse().unwrap(),
        ecn: Ecn::Ect0,
    };
    assert_eq!(flow.source.to_string(), "02:00:00:00:00:a1");
    assert_eq!(
        frame(&flow, b"ping"),
        hex_literal::hex!(
            "0200000000b2 0200000000a1 0800"
            "4502 0020 0000 4000 4011 26b7 0a090001 0a090002"
            "9c40 1388 000c 5d28 70696e67"
        )
    );
}

#[test]
#[should_panic(expected = "of two families")]
fn two_families_in_one_frame_are_the_callers_fault() {
    write(&flow([V4[0], V6[1]], Ecn::NotEct), &mut [0; IPV4_HEADERS], &[]);
}

#[test]
fn the_longest_payloads_fit_and_longer_ones_panic() {
    for (addresses, longest) in [(V4, 65_507), (V6, 65_527)] {
        let flow = flow(addresses, Ecn::NotEct);
        let headers = header_bytes(flow.from.ip());
        let sent = frame(&flow, &vec![0xff; longest]);
        assert_eq!(read(&sent, Checksums::Verify), Ok((flow, headers..headers + longest)));
        assert!(std::panic::catch_unwind(|| frame(&flow, &vec![0; longest + 1])).is_err());
    }
}
