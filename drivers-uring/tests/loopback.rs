//! Real sockets and rings on loopback. Every wait has a deadline; nothing sleeps.
#![cfg(target_os = "linux")]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::thread;
use std::time::Duration;

use wraith_drivers::{Caps, Driver, Limit, Mode, Park, RxReport, TooLong, TxReport, Unpark, Wake};
use wraith_drivers_uring::{Options, UringDriver};
use wraith_proto::{Ecn, RxMeta, TxMeta, TxQueue, Via};

const V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const V6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);
const PATIENCE: Duration = Duration::from_secs(10);

fn bind(ip: IpAddr) -> UringDriver {
    bind_with(ip, &Options::default())
}

fn bind_with(ip: IpAddr, options: &Options) -> UringDriver {
    UringDriver::bind(SocketAddr::new(ip, 0), options).unwrap()
}

fn meta_to(to: SocketAddr) -> TxMeta {
    TxMeta { to, from: None, via: Via(0), ecn: Ecn::NotEct }
}

fn commit(driver: &mut UringDriver, meta: &TxMeta, bytes: &[u8]) {
    driver.tx().reserve(meta, bytes.len()).unwrap()[..bytes.len()].copy_from_slice(bytes);
    driver.tx().commit(bytes.len());
}

fn sent(datagrams: usize, syscalls: usize) -> TxReport {
    TxReport { sent: datagrams, syscalls, ..TxReport::default() }
}

/// Receives `count` datagrams, at most `budget` a call.
fn receive(driver: &mut UringDriver, count: usize, budget: usize) -> Vec<(RxMeta, Vec<u8>)> {
    let until = driver.now().saturating_add(PATIENCE);
    let mut datagrams = Vec::new();
    while datagrams.len() < count {
        let before = datagrams.len();
        let report = driver.recv(budget, |meta, data| datagrams.push((*meta, data.to_vec()))).unwrap();
        assert_eq!(report.datagrams, datagrams.len() - before);
        assert!(report.datagrams <= budget);
        if datagrams.len() < count && !report.budget_hit {
            assert_eq!(driver.park(Some(until)).unwrap(), Wake::Traffic, "got {before} of {count}");
        }
    }
    datagrams
}

/// Different bytes for different lengths and positions.
fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|index| (index * 7 + len) as u8).collect()
}

#[test]
fn datagrams_cross_with_addresses_and_ecn_marks_over_ipv4_and_ipv6() {
    for ip in [V4, V6] {
        let (mut left, mut right) = (bind(ip), bind(ip));
        for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
            commit(&mut left, &TxMeta { ecn, ..meta_to(right.local_addr()) }, b"ping");
            assert_eq!(left.flush().unwrap(), sent(1, 1));
            let (meta, data) = receive(&mut right, 1, 9).remove(0);
            let expected = RxMeta { from: left.local_addr(), to: Some(ip), via: Via(0), ecn };
            assert_eq!((meta, data), (expected, b"ping".to_vec()));
        }
        commit(&mut right, &meta_to(left.local_addr()), b"pong");
        assert_eq!(right.flush().unwrap(), sent(1, 1));
        assert_eq!(receive(&mut left, 1, 9)[0].1, b"pong");
    }
}

#[test]
fn an_ipv4_peer_of_a_dual_stack_socket_has_a_plain_address_both_ways() {
    let mut dual = bind(IpAddr::V6(Ipv6Addr::UNSPECIFIED));
    let port = dual.local_addr().port();
    for ip in [V4, V6] {
        let mut peer = bind(ip);
        let meta = TxMeta { ecn: Ecn::Ect0, ..meta_to(SocketAddr::new(ip, port)) };
        commit(&mut peer, &meta, b"hello");
        assert_eq!(peer.flush().unwrap(), sent(1, 1));
        let (meta, _) = receive(&mut dual, 1, 9).remove(0);
        let expected = RxMeta { from: peer.local_addr(), to: Some(ip), via: Via(0), ecn: Ecn::Ect0 };
        assert_eq!(meta, expected);

        let reply = TxMeta { to: meta.from, from: meta.to, via: meta.via, ecn: Ecn::Ect1 };
        commit(&mut dual, &reply, b"a");
        commit(&mut dual, &reply, b"b");
        assert_eq!(dual.flush().unwrap(), sent(2, 1));
        let answers = receive(&mut peer, 2, 9);
        let expected = RxMeta { from: SocketAddr::new(ip, port), to: Some(ip), via: Via(0), ecn: Ecn::Ect1 };
        assert_eq!(answers, [(expected, b"a".to_vec()), (expected, b"b".to_vec())]);
    }
}

#[test]
fn a_mapped_address_to_bind_is_the_ipv4_address_that_it_maps() {
    let mut left = bind(IpAddr::V6(Ipv4Addr::LOCALHOST.to_ipv6_mapped()));
    assert_eq!(left.local_addr().ip(), V4);
    let mut right = bind(V4);
    commit(&mut left, &meta_to(right.local_addr()), b"hello");
    assert_eq!(left.flush().unwrap(), sent(1, 1));
    assert_eq!(receive(&mut right, 1, 9)[0].0.from, left.local_addr());
}

#[test]
fn the_source_address_is_the_one_that_is_asked_for() {
    let mut left = bind(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    let mut right = bind(V4);
    let second = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
    commit(&mut left, &TxMeta { from: Some(second), ..meta_to(right.local_addr()) }, b"x");
    assert_eq!(left.flush().unwrap(), sent(1, 1));
    let (meta, _) = receive(&mut right, 1, 9).remove(0);
    assert_eq!(meta.from, SocketAddr::new(second, left.local_addr().port()));
}

#[test]
fn a_foreign_source_address_costs_its_datagrams_and_nothing_else() {
    let mut left = bind(V4);
    let mut right = bind(V4);
    let foreign = Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 9)));
    let good = TxMeta { ecn: Ecn::Ect0, ..meta_to(right.local_addr()) };
    let caps = left.caps();
    commit(&mut left, &TxMeta { from: foreign, ..good }, b"x");
    commit(&mut left, &TxMeta { from: foreign, ..good }, b"y");
    let report = left.flush().unwrap();
    assert_eq!((report.sent, report.dropped, report.in_flight), (0, 2, 0));
    assert_eq!(left.caps(), caps);
    commit(&mut left, &good, b"a");
    commit(&mut left, &good, b"b");
    assert_eq!(left.flush().unwrap(), sent(2, 1));
    let datagrams = receive(&mut right, 2, 9);
    assert!(datagrams.iter().all(|(meta, _)| meta.ecn == Ecn::Ect0), "the mark survives the refusal");
}

#[test]
fn every_size_crosses() {
    // Over IPv6 the MTU of loopback is the limit: 65,536 less 40 bytes of IP and 8 of UDP header.
    for (ip, max, caps) in [(V4, 65_507, 65_507), (V6, 65_488, 65_527)] {
        let (mut left, mut right) = (bind(ip), bind(ip));
        assert_eq!(left.caps().max_datagram, caps);
        let meta = meta_to(right.local_addr());
        for len in (0..=1500).chain([4096, 8972, 32_768, 65_000, max - 1, max]) {
            commit(&mut left, &meta, &pattern(len));
            assert_eq!(left.flush().unwrap(), sent(1, 1), "{len} bytes");
            assert_eq!(receive(&mut right, 1, 9)[0].1, pattern(len), "{len} bytes");
        }
    }
}

#[test]
fn a_datagram_longer_than_the_path_or_ip_carries_is_dropped_and_counted() {
    for (ip, len) in [(V4, 65_508), (V6, 65_489)] {
        let (mut left, mut right) = (bind(ip), bind(ip));
        let meta = meta_to(right.local_addr());
        commit(&mut left, &meta, &vec![1; len]);
        let too_long = Some(TooLong { to: meta.to, len });
        let report = TxReport { dropped: 1, syscalls: 1, too_long, ..TxReport::default() };
        assert_eq!(left.flush().unwrap(), report);
        commit(&mut left, &meta, b"still here");
        assert_eq!(left.flush().unwrap(), sent(1, 1));
        assert_eq!(receive(&mut right, 1, 9)[0].1, b"still here");
        assert_eq!(left.caps().mode, Mode::Uring);
    }
}

#[test]
fn equal_datagrams_leave_in_one_system_call_and_arrive_one_by_one() {
    for ip in [V4, V6] {
        let (mut left, mut right) = (bind(ip), bind(ip));
        assert_eq!(left.caps().mode, Mode::Uring);
        let meta = meta_to(right.local_addr());
        for index in 0..40u8 {
            commit(&mut left, &meta, &[index; 1200]);
        }
        commit(&mut left, &meta, &[40; 7]);
        assert_eq!(left.flush().unwrap(), sent(41, 1));
        let datagrams = receive(&mut right, 41, 99);
        for (index, (meta, data)) in datagrams.iter().enumerate() {
            assert_eq!(meta.from, left.local_addr());
            assert_eq!(data, &vec![index as u8; if index == 40 { 7 } else { 1200 }]);
        }
    }
}

#[test]
fn a_budget_of_one_splits_a_joined_buffer_and_loses_no_wake_up() {
    let (mut left, mut right) = (bind(V4), bind(V4));
    let meta = meta_to(right.local_addr());
    for index in 0..20u8 {
        commit(&mut left, &meta, &[index; 100]);
    }
    assert_eq!(left.flush().unwrap(), sent(20, 1));
    for index in 0..20u8 {
        // No time passes between the calls: a park must know by itself that there is more.
        assert_eq!(right.park(None).unwrap(), Wake::Traffic);
        let mut data = Vec::new();
        let report = right.recv(1, |_, datagram| data.extend_from_slice(datagram)).unwrap();
        assert_eq!(report.datagrams, 1);
        assert_eq!(data, [index; 100]);
    }
    assert_eq!(right.recv(1, |_, _| {}).unwrap(), RxReport::default());
    let now = right.now();
    assert_eq!(right.park(Some(now)).unwrap(), Wake::Deadline);
}

#[test]
fn a_budget_spent_on_separate_datagrams_loses_no_wake_up() {
    let options = Options { gro: false, ..Options::default() };
    let (mut left, mut right) = (bind(V4), bind_with(V4, &options));
    let meta = meta_to(right.local_addr());
    for index in 0..9u8 {
        commit(&mut left, &meta, &[index; 100]);
    }
    left.flush().unwrap();
    let mut received = Vec::new();
    while received.len() < 9 {
        assert_eq!(right.park(None).unwrap(), Wake::Traffic);
        let report = right.recv(4, |_, datagram| received.push(datagram[0])).unwrap();
        assert!(report.datagrams <= 4);
    }
    assert_eq!(received, (0..9).collect::<Vec<_>>());
}

#[test]
fn unequal_sizes_and_changing_destinations_keep_their_order() {
    let mut left = bind(V4);
    let mut peers = [bind(V4), bind(V4), bind(V4)];
    let metas = peers.each_ref().map(|peer| meta_to(peer.local_addr()));
    let mut expected = [vec![], vec![], vec![]];
    for index in 0..120 {
        let (peer, len) = ((index * index / 3) % 3, 1 + (index * 37) % 400);
        commit(&mut left, &metas[peer], &pattern(len));
        expected[peer].push(pattern(len));
    }
    let report = left.flush().unwrap();
    assert_eq!((report.sent, report.dropped, report.in_flight), (120, 0, 0));
    for (peer, expected) in peers.iter_mut().zip(expected) {
        let datagrams = receive(peer, expected.len(), 5);
        assert_eq!(datagrams.into_iter().map(|(_, data)| data).collect::<Vec<_>>(), expected);
    }
}

#[test]
fn without_offloads_every_datagram_has_its_own_send_and_all_enter_together() {
    let options = Options { gso: false, gro: false, ..Options::default() };
    let (mut left, mut right) = (bind_with(V4, &options), bind_with(V4, &options));
    let caps = left.caps();
    assert_eq!((caps.mode, caps.tx_segments, caps.rx_segments), (Mode::Uring, 1, 1));
    assert_eq!(caps.limited_by, Some(Limit::Options));
    let meta = meta_to(right.local_addr());
    for index in 0..10u8 {
        commit(&mut left, &meta, &[index; 300]);
    }
    assert_eq!(left.flush().unwrap(), sent(10, 1));
    let datagrams = receive(&mut right, 10, 99);
    assert!(datagrams.iter().enumerate().all(|(index, (_, data))| *data == [index as u8; 300]));
}

#[test]
fn without_coalescing_a_batch_arrives_the_same() {
    let options = Options { gro: false, ..Options::default() };
    let (mut left, mut right) = (bind(V4), bind_with(V4, &options));
    let meta = meta_to(right.local_addr());
    for index in 0..10u8 {
        commit(&mut left, &meta, &[index; 300]);
    }
    assert_eq!(left.flush().unwrap(), sent(10, 1));
    let datagrams = receive(&mut right, 10, 99);
    assert!(datagrams.iter().enumerate().all(|(index, (_, data))| *data == [index as u8; 300]));
}

#[test]
fn a_datagram_longer_than_a_receive_buffer_is_counted_and_not_lent() {
    let options = Options { buffer_bytes: 1000, ..Options::default() };
    let (mut left, mut right) = (bind(V4), bind_with(V4, &options));
    let caps = right.caps();
    assert_eq!((caps.max_datagram, caps.rx_segments), (1000, 1));
    let meta = meta_to(right.local_addr());
    for len in [1000, 1001, 5000, 1] {
        commit(&mut left, &meta, &pattern(len));
    }
    assert_eq!(left.flush().unwrap().sent, 4);
    let mut total = RxReport::default();
    let mut lens = Vec::new();
    let until = right.now().saturating_add(PATIENCE);
    while total.datagrams + total.truncated < 4 {
        assert_eq!(right.park(Some(until)).unwrap(), Wake::Traffic);
        let report = right.recv(99, |_, datagram| lens.push(datagram.len())).unwrap();
        total.datagrams += report.datagrams;
        total.truncated += report.truncated;
    }
    assert_eq!((total.truncated, lens), (2, vec![1000, 1]));
}

#[test]
fn a_closed_port_is_never_fatal() {
    let (mut left, mut right) = (bind(V4), bind(V4));
    let closed = UdpSocket::bind((V4, 0)).unwrap().local_addr().unwrap();
    for round in 0..10u8 {
        commit(&mut left, &meta_to(closed), b"nobody");
        assert_eq!(left.flush().unwrap().in_flight, 0);
        assert_eq!(left.recv(9, |_, _| {}).unwrap(), RxReport::default());
        commit(&mut left, &meta_to(right.local_addr()), &[round]);
        assert_eq!(left.flush().unwrap(), sent(1, 1));
    }
    let rounds: Vec<_> = receive(&mut right, 10, 9).into_iter().map(|(_, data)| data[0]).collect();
    assert_eq!(rounds, (0..10).collect::<Vec<_>>());
}

#[test]
fn a_destination_of_the_wrong_family_is_dropped_and_counted() {
    let mut left = bind(V4);
    commit(&mut left, &meta_to(SocketAddr::new(V6, 9)), b"x");
    assert_eq!(left.flush().unwrap(), TxReport { dropped: 1, syscalls: 1, ..TxReport::default() });
}

#[test]
fn a_park_ends_at_its_deadline_and_not_before() {
    let mut driver = bind(V4);
    for micros in [0, 1, 300, 999, 1000, 1001, 2700] {
        let until = driver.now().saturating_add(Duration::from_micros(micros));
        assert_eq!(driver.park(Some(until)).unwrap(), Wake::Deadline);
        assert!(driver.now() >= until);
    }
}

#[test]
fn an_unpark_ends_the_running_or_the_next_park_once() {
    let mut driver = bind(V4);
    let unparker = driver.unparker();
    unparker.unpark().unwrap();
    unparker.unpark().unwrap();
    assert_eq!(driver.park(None).unwrap(), Wake::Unparked);
    let now = driver.now();
    assert_eq!(driver.park(Some(now)).unwrap(), Wake::Deadline, "two unparks count once");
    let other = thread::spawn(move || unparker.unpark().unwrap());
    assert_eq!(driver.park(None).unwrap(), Wake::Unparked);
    other.join().unwrap();
}

#[test]
fn traffic_and_an_unpark_at_once_are_both_reported() {
    let (mut left, mut right) = (bind(V4), bind(V4));
    commit(&mut left, &meta_to(right.local_addr()), b"x");
    left.flush().unwrap();
    right.unparker().unpark().unwrap();
    let wakes = [right.park(None).unwrap(), right.park(None).unwrap()];
    assert!(wakes.contains(&Wake::Traffic) && wakes.contains(&Wake::Unparked), "{wakes:?}");
}

#[test]
fn traffic_from_another_thread_ends_every_park() {
    let mut left = bind(V4);
    let mut right = bind(V4);
    let (to_left, to_right) = (meta_to(left.local_addr()), meta_to(right.local_addr()));
    let echo = thread::spawn(move || {
        for _ in 0..500 {
            let (_, data) = receive(&mut right, 1, 1).remove(0);
            commit(&mut right, &to_left, &data);
            right.flush().unwrap();
        }
    });
    for round in 0..500u16 {
        commit(&mut left, &to_right, &round.to_be_bytes());
        left.flush().unwrap();
        assert_eq!(receive(&mut left, 1, 1)[0].1, round.to_be_bytes());
    }
    echo.join().unwrap();
}

#[test]
fn the_caps_and_buffers_are_what_the_system_granted() {
    let small = Options { recv_buffer_bytes: 64 << 10, send_buffer_bytes: 32 << 10, ..Options::default() };
    let driver = bind_with(V4, &small);
    assert_eq!(driver.buffer_bytes(), (64 << 10, 32 << 10));
    let Caps { ecn, local_ip, dont_fragment, limited_by, .. } = driver.caps();
    assert!(ecn && local_ip && dont_fragment);
    assert_eq!(limited_by, None);
    assert_eq!(driver.caps().tx_segments, 64);
    assert_eq!(driver.caps().rx_segments, 64);

    let greedy = Options { recv_buffer_bytes: 1 << 30, ..Options::default() };
    let driver = bind_with(V4, &greedy);
    assert!(driver.buffer_bytes().0 < 1 << 30);
    assert_eq!(driver.caps().limited_by, Some(Limit::SocketBuffer));
}

#[test]
fn a_privilege_passes_by_the_cap_on_receive_buffers() {
    use nix::sys::socket::{setsockopt, sockopt};
    let cap: usize = std::fs::read_to_string("/proc/sys/net/core/rmem_max").unwrap().trim().parse().unwrap();
    let wanted = cap + (1 << 20);
    let privileged = setsockopt(&UdpSocket::bind((V4, 0)).unwrap(), sockopt::RcvBufForce, &wanted).is_ok();
    let driver = bind_with(V4, &Options { recv_buffer_bytes: wanted, ..Options::default() });
    assert_eq!(driver.buffer_bytes().0, if privileged { wanted } else { cap });
}

#[test]
fn a_slot_bounds_what_can_be_committed_between_two_flushes() {
    let options = Options { slot_bytes: 3000, ..Options::default() };
    let (mut left, mut right) = (bind_with(V4, &options), bind(V4));
    assert_eq!(left.caps().max_datagram, 3000);
    let meta = meta_to(right.local_addr());
    let mut committed = 0;
    while left.tx().reserve(&meta, 1000).is_some() {
        left.tx().commit(900);
        committed += 1;
    }
    assert_eq!(committed, 3);
    assert_eq!(left.flush().unwrap(), sent(3, 1));
    assert!(left.tx().reserve(&meta, 3000).is_some());
    assert_eq!(receive(&mut right, 3, 9).len(), 3);
}

#[test]
fn a_slow_application_gets_everything_in_order_and_resumes_by_itself() {
    let options = Options { gro: false, buffers: 2, ..Options::default() };
    let (mut left, mut right) = (bind(V4), bind_with(V4, &options));
    let (there, back) = (meta_to(right.local_addr()), meta_to(left.local_addr()));
    let mut received = Vec::new();
    for round in 0..100u8 {
        for part in 0..3 {
            commit(&mut left, &there, &[round, part]);
        }
        assert_eq!(left.flush().unwrap().sent, 3);
        // It sends and waits all the time, and takes one datagram a round.
        commit(&mut right, &back, b"busy");
        assert_eq!(right.flush().unwrap(), sent(1, 1));
        assert_eq!(right.park(None).unwrap(), Wake::Traffic);
        right.recv(1, |_, data| received.push([data[0], data[1]])).unwrap();
    }
    assert_eq!(received.len(), 100);
    received.extend(receive(&mut right, 200, 7).iter().map(|(_, data)| [data[0], data[1]]));
    let expected: Vec<_> = (0..100).flat_map(|round| [[round, 0], [round, 1], [round, 2]]).collect();
    assert_eq!(received, expected);
    let now = right.now();
    assert_eq!(right.park(Some(now)).unwrap(), Wake::Deadline);
}

#[test]
fn an_empty_datagram_ends_no_receive() {
    let (mut left, mut right) = (bind(V4), bind(V4));
    let meta = meta_to(right.local_addr());
    for bytes in [&b""[..], b"", b"x", b"", b"y"] {
        commit(&mut left, &meta, bytes);
    }
    assert_eq!(left.flush().unwrap().sent, 5);
    let datagrams: Vec<_> = receive(&mut right, 5, 2).into_iter().map(|(_, data)| data).collect();
    assert_eq!(datagrams, [&b""[..], b"", b"x", b"", b"y"]);
    commit(&mut left, &meta, b"more");
    assert_eq!(left.flush().unwrap().sent, 1);
    assert_eq!(receive(&mut right, 1, 2)[0].1, b"more");
}
