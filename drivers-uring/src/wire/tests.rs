use std::net::SocketAddrV4;

use super::*;

const V4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

/// A receive buffer as the kernel fills it.
fn buffer(from: SocketAddr, control: &[u8], payload: &[u8], arrived: usize) -> Vec<u8> {
    let name = Name::of(from);
    let mut bytes = vec![0; RX_PAYLOAD];
    for (at, value) in [name.bytes().len(), control.len(), arrived].into_iter().enumerate() {
        bytes[4 * at..][..4].copy_from_slice(&(value as u32).to_ne_bytes());
    }
    bytes[RX_HEADER..][..name.bytes().len()].copy_from_slice(name.bytes());
    bytes[RX_HEADER + RX_NAME_BYTES..][..control.len()].copy_from_slice(control);
    bytes.extend_from_slice(payload);
    bytes
}

fn message(level: i32, kind: i32, data: &[u8]) -> Vec<u8> {
    let mut control = Control::NONE;
    control.push(level, kind, data);
    control.bytes().to_vec()
}

#[test]
fn an_address_survives_the_kernels_layout() {
    let link_local = SocketAddrV6::new("fe80::1".parse().unwrap(), 9, 0x0102_0304, 7);
    for addr in [SocketAddr::from((V4, 4711)), SocketAddr::V6(link_local)] {
        assert_eq!(address(Name::of(addr).bytes()), Some(addr));
    }
    // struct sockaddr_in, field by field.
    let name = Name::of(SocketAddr::V4(SocketAddrV4::new(V4, 0x1234)));
    let family = (libc::AF_INET as u16).to_ne_bytes();
    assert_eq!(name.bytes(), [&family[..], &[0x12, 0x34, 192, 0, 2, 1], &[0; 8]].concat());
    assert_eq!(address(&[]), None);
    assert_eq!(address(&(libc::AF_UNIX as u16).to_ne_bytes()), None);
}

#[test]
fn a_send_carries_only_the_control_messages_that_it_needs() {
    let to = IpAddr::V4(V4);
    assert!(Control::of(to, None, Ecn::NotEct, None).bytes().is_empty());
    let control = Control::of(to, None, Ecn::Ect0, Some(1200));
    let tos = message(libc::IPPROTO_IP, libc::IP_TOS, &2i32.to_ne_bytes());
    let segment = message(libc::SOL_UDP, libc::UDP_SEGMENT, &1200u16.to_ne_bytes());
    assert_eq!(control.bytes(), [tos.clone(), segment].concat());
    // A mapped destination takes IPv4's option and IPv6's source address.
    let mapped = IpAddr::V6(V4.to_ipv6_mapped());
    let control = Control::of(mapped, Some(mapped), Ecn::Ect0, None);
    let info = [&V4.to_ipv6_mapped().octets()[..], &[0; 4]].concat();
    assert_eq!(control.bytes(), [tos, message(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &info)].concat());
}

#[test]
fn the_largest_set_of_control_messages_fits() {
    let v6 = IpAddr::V6(Ipv6Addr::LOCALHOST);
    let control = Control::of(v6, Some(v6), Ecn::Ce, Some(1));
    assert_eq!(control.bytes().len(), 24 + 40 + 24);
    assert!(control.bytes().len() <= Control::WORDS * 8);
}

#[test]
fn a_received_datagram_tells_its_sender_mark_and_local_address() {
    let from = SocketAddr::from((V4, 5));
    for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
        // Differentiated services stand in the six other bits.
        let tos = message(libc::IPPROTO_IP, libc::IP_TOS, &[0xb8 | ecn.bits()]);
        let info = [&[0; 8][..], &[127, 0, 0, 1]].concat();
        let control = [tos, message(libc::IPPROTO_IP, libc::IP_PKTINFO, &info)].concat();
        let bytes = buffer(from, &control, b"hello", 5);
        let expected = Received {
            from: Some(from),
            to: Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            ecn,
            payload: RX_PAYLOAD..RX_PAYLOAD + 5,
            segment: None,
            arrived: 5,
        };
        assert_eq!(received(&bytes, bytes.len()), Some(expected));
    }
}

#[test]
fn joined_datagrams_tell_their_size_and_a_cut_one_how_long_it_was() {
    let from = SocketAddr::from((Ipv6Addr::LOCALHOST, 5));
    let class = message(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, &3i32.to_ne_bytes());
    let size = message(libc::SOL_UDP, libc::UDP_GRO, &100i32.to_ne_bytes());
    let bytes = buffer(from, &[class, size].concat(), &[7; 250], 900);
    let received = received(&bytes, bytes.len()).unwrap();
    assert_eq!((received.segment, received.ecn, received.arrived), (Some(100), Ecn::Ce, 900));
    assert_eq!(received.payload.len(), 250);
}

#[test]
fn what_the_kernel_never_writes_is_refused_or_passed_over() {
    let from = SocketAddr::from((V4, 5));
    let whole = buffer(from, &[], b"x", 1);
    for len in [0, RX_HEADER, RX_PAYLOAD - 1, whole.len() + 1] {
        assert_eq!(received(&whole, len), None, "{len} bytes");
    }
    // Lengths beyond what was asked for, a control message of no length, one that is longer than all.
    let mut lengths = whole.clone();
    lengths[..8].fill(0xff);
    assert_eq!(received(&lengths, lengths.len()).unwrap().payload.len(), 1);
    for len in [0, 15, 17, 1000, usize::MAX] {
        let mut control = message(libc::IPPROTO_IP, libc::IP_TOS, &[1]);
        control[..8].copy_from_slice(&len.to_ne_bytes());
        let bytes = buffer(from, &control, b"x", 1);
        let expected = if len == 17 { Ecn::Ect1 } else { Ecn::NotEct };
        assert_eq!(received(&bytes, bytes.len()).unwrap().ecn, expected, "{len}");
    }
}
