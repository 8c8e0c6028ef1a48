//! Captures, read back by hand and, where it is installed, by tcpdump.

use std::io::{self, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::process::{Command, Stdio};
use std::time::{Duration, UNIX_EPOCH};

use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use wraith_drivers::{Driver, ManualClock, MemoryDriver, MemoryOptions, Pcap};
use wraith_proto::{Ecn, Instant, TxMeta, TxQueue, Via};

fn pair(options: &MemoryOptions) -> (ManualClock, Pcap<MemoryDriver, Vec<u8>>, MemoryDriver) {
    let clock = ManualClock::new(Instant::from_nanos(77));
    let (left, right) = MemoryDriver::pair(&MemoryOptions { clock: Some(clock.clone()), ..options.clone() });
    let start = UNIX_EPOCH + Duration::from_secs(1_000_000);
    (clock, Pcap::starting_at(left, Vec::new(), start), right)
}

fn send(from: &mut impl Driver, to: &impl Driver, ecn: Ecn, data: &[u8]) {
    let meta = TxMeta { to: to.local_addr(), from: None, via: Via(0), ecn };
    from.tx().reserve(&meta, data.len()).unwrap()[..data.len()].copy_from_slice(data);
    from.tx().commit(data.len());
    from.flush().unwrap();
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// Seconds, nanoseconds and packet of each record.
fn records(capture: &[u8]) -> Vec<(u32, u32, &[u8])> {
    assert_eq!((word(capture, 0), word(capture, 4), word(capture, 20)), (0xa1b2_3c4d, 0x0004_0002, 101));
    let (mut rest, mut records) = (&capture[24..], Vec::new());
    while !rest.is_empty() {
        let len = word(rest, 8) as usize;
        assert_eq!(word(rest, 12) as usize, len);
        records.push((word(rest, 0), word(rest, 4), &rest[16..16 + len]));
        rest = &rest[16 + len..];
    }
    records
}

/// Ports and payload, after a look at the checksums.
fn udp(packet: &[u8]) -> (u16, u16, Vec<u8>) {
    let sliced = SlicedPacket::from_ip(packet).unwrap();
    let Some(TransportSlice::Udp(udp)) = sliced.transport else { panic!("no UDP") };
    let header = udp.to_header();
    let sum = match sliced.net.unwrap() {
        NetSlice::Ipv4(ip) => {
            let ip = ip.header().to_header();
            assert_eq!(ip.header_checksum, ip.calc_header_checksum());
            header.calc_checksum_ipv4(&ip, udp.payload()).unwrap()
        }
        NetSlice::Ipv6(ip) => header.calc_checksum_ipv6(&ip.header().to_header(), udp.payload()).unwrap(),
        NetSlice::Arp(_) => panic!("no IP"),
    };
    assert_eq!(header.checksum, sum);
    (header.source_port, header.destination_port, udp.payload().to_vec())
}

#[test]
fn both_directions_are_captured_with_addresses_marks_and_the_time_of_the_driver() {
    let (clock, mut left, mut right) = pair(&MemoryOptions::default());
    send(&mut left, &right, Ecn::Ect0, b"ping");
    clock.advance(Duration::from_nanos(2_000_000_009));
    send(&mut right, &left, Ecn::Ce, b"pong");
    let mut lent = Vec::new();
    left.recv(9, |_, data| lent.push(data.to_vec())).unwrap();
    assert_eq!(lent, [b"pong"]);

    let (_, capture) = left.into_parts();
    let records = records(&capture);
    assert_eq!((records[0].0, records[0].1), (1_000_000, 0));
    assert_eq!((records[1].0, records[1].1), (1_000_002, 9));
    assert_eq!(udp(records[0].2), (1, 2, b"ping".to_vec()));
    assert_eq!(udp(records[1].2), (2, 1, b"pong".to_vec()));
    let marks: Vec<_> = records.iter().map(|(_, _, packet)| packet[1] & 3).collect();
    assert_eq!((records.len(), marks), (2, vec![2, 3]));
}

#[test]
fn ipv6_and_the_longest_datagram_are_captured() {
    let ip = IpAddr::V6(Ipv6Addr::LOCALHOST);
    let addrs = [SocketAddr::new(ip, 1), SocketAddr::new(ip, 2)];
    let options = MemoryOptions { addrs, mtu: 65_527, ..MemoryOptions::default() };
    let (_, mut left, right) = pair(&options);
    let longest = vec![7; 65_527];
    send(&mut left, &right, Ecn::Ect1, &longest);
    let (_, capture) = left.into_parts();
    let records = records(&capture);
    assert_eq!(udp(records[0].2), (1, 2, longest));
    assert_eq!(records[0].2[1] >> 4, 1, "the mark is in the traffic class");
}

#[test]
fn a_full_network_is_captured_once_and_in_order() {
    let options = MemoryOptions { tx_slots: 2, rx_slots: 3, ..MemoryOptions::default() };
    let (_, mut left, mut right) = pair(&options);
    let meta = TxMeta { to: right.local_addr(), from: None, via: Via(0), ecn: Ecn::NotEct };
    let (mut committed, mut sent, mut received) = (0u8, 0, Vec::new());
    while received.len() < 20 {
        while committed < 20 && left.tx().reserve(&meta, 1).map(|room| room[0] = committed).is_some() {
            left.tx().commit(1);
            committed += 1;
        }
        let report = left.flush().unwrap();
        sent += report.sent;
        assert_eq!(usize::from(committed), sent + report.in_flight);
        right.recv(1, |_, data| received.push(data[0])).unwrap();
    }
    assert_eq!(received, (0..20).collect::<Vec<_>>());
    let (_, capture) = left.into_parts();
    let captured: Vec<_> = records(&capture).iter().map(|(_, _, packet)| udp(packet).2[0]).collect();
    assert_eq!(captured, received);
}

#[test]
fn a_sink_that_fails_ends_the_capture_and_not_the_driver() {
    #[derive(Debug)]
    struct Full(usize);
    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let (left, mut right) = MemoryDriver::pair(&MemoryOptions::default());
    let mut left = Pcap::new(left, Full(24 + 100));
    let mut arrived = 0;
    for _ in 0..3 {
        send(&mut left, &right, Ecn::NotEct, b"0123456789");
        arrived += right.recv(9, |_, data| assert_eq!(data, b"0123456789")).unwrap().datagrams;
    }
    assert_eq!(arrived, 3);
    assert_eq!(left.error().map(io::Error::kind), Some(io::ErrorKind::StorageFull));
}

#[test]
fn tcpdump_reads_a_capture() {
    let (_, mut left, mut right) = pair(&MemoryOptions::default());
    send(&mut left, &right, Ecn::Ect0, b"ping");
    send(&mut right, &left, Ecn::NotEct, b"answer");
    left.recv(9, |_, _| {}).unwrap();
    let (_, capture) = left.into_parts();
    let tcpdump = Command::new("tcpdump")
        .args(["-n", "-vv", "-tt", "-r", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut tcpdump) = tcpdump else {
        println!("not tested here: tcpdump is not installed");
        return;
    };
    tcpdump.stdin.take().unwrap().write_all(&capture).unwrap();
    let text = String::from_utf8(tcpdump.wait_with_output().unwrap().stdout).unwrap();
    assert!(text.contains("127.0.0.1.1 > 127.0.0.1.2: [udp sum ok] UDP, length 4"), "{text}");
    assert!(text.contains("127.0.0.1.2 > 127.0.0.1.1: [udp sum ok] UDP, length 6"), "{text}");
    assert!(text.contains("1000000.000000") && text.contains("tos 0x2,ECT(0)"), "{text}");
}
