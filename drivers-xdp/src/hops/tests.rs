use std::net::{SocketAddr, UdpSocket};

use super::*;
use crate::testing::hosts;
use crate::veth::Options;

const INDEX: u32 = 7;
const OWN: &str = "10.77.0.1";
const PEER: &str = "10.77.0.2";
const PEER_MAC: Mac = Mac([2, 0, 0, 0, 0, 2]);
const ROUTER_MAC: Mac = Mac([2, 0, 0, 0, 0, 0xfe]);
const STRANGER_MAC: Mac = Mac([2, 0, 0, 0, 0, 0x66]);

/// A kernel: `10.77.0.0/16` and `fd77::/16` are on the link, `10.99.0.0/16` is elsewhere, the rest is behind a router.
#[derive(Debug, Default)]
struct Kernel {
    neighbours: Vec<(IpAddr, Neighbour)>,
    questions: usize,
    broken: bool,
}

impl Ask for Kernel {
    fn route(&mut self, to: IpAddr, from: Option<IpAddr>, interface: Option<u32>) -> io::Result<Route> {
        self.questions += 1;
        if self.broken {
            return Err(io::ErrorKind::TimedOut.into());
        }
        assert_eq!(interface, is_link_local(to).then_some(INDEX));
        let on_link = share(to, ip("10.77.0.0"), 16) || share(to, ip("fd77::"), 16) || interface.is_some();
        let next = if on_link { to } else { ip("10.77.0.254") };
        let interface = if share(to, ip("10.99.0.0"), 16) { INDEX + 1 } else { INDEX };
        let source = from.or_else(|| to.is_ipv4().then(|| ip(OWN)));
        Ok(Route { interface, next, source, direct: to != ip("10.77.255.255") })
    }

    fn neighbour(&mut self, interface: u32, ip: IpAddr) -> io::Result<Option<Neighbour>> {
        assert_eq!(interface, INDEX);
        Ok(self.neighbours.iter().find(|(known, _)| *known == ip).map(|(_, neighbour)| *neighbour))
    }
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn at(millis: u64) -> Instant {
    Instant::from_nanos(1).saturating_add(Duration::from_millis(millis))
}

fn interface() -> Interface {
    let addresses = vec![(ip("fe80::1"), 64), (ip(OWN), 16), (ip("10.88.0.1"), 24), (ip("fd77::1"), 64)];
    let mac = Mac([2, 0, 0, 0, 0, 1]);
    Interface { index: INDEX, name: "eth0".to_owned(), mac, mtu: 1500, up: true, rx_queues: 1, addresses }
}

/// A table, with a kernel that knows the peer and the router.
fn hops() -> Hops<Kernel> {
    let neighbours = [(PEER, PEER_MAC), ("10.77.0.254", ROUTER_MAC)];
    let neighbours = neighbours.map(|(known, mac)| (ip(known), Neighbour { mac, stale: false }));
    Hops::new(&interface(), Kernel { neighbours: neighbours.to_vec(), ..Kernel::default() })
}

fn device(mac: Mac, source: &str) -> Hop {
    Hop::Device { mac, source: ip(source) }
}

#[test]
fn a_reply_goes_back_where_the_frame_came_from_without_a_question() {
    let mut hops = hops();
    let via = hops.learn(at(0), ip("192.0.2.1"), PEER_MAC);
    assert_ne!(via, Via(0));
    assert_eq!(hops.hop(at(1), ip("192.0.2.1"), Some(ip(OWN)), via), device(PEER_MAC, OWN));
    assert_eq!(hops.hop(at(1), ip("192.0.2.1"), Some(ip("10.88.0.1")), via), device(PEER_MAC, "10.88.0.1"));
    assert_eq!(hops.tables.questions, 0);
    assert_eq!(hops.hop(at(1), ip("192.0.2.1"), Some(ip(OWN)), Via(0)), device(ROUTER_MAC, OWN));
    assert_eq!(hops.tables.questions, 1);
}

#[test]
fn a_source_of_the_other_family_goes_nowhere_directly() {
    let mut hops = hops();
    for (to, from) in [("192.0.2.1", "fd77::1"), ("2001:db8::1", OWN)] {
        let via = hops.learn(at(0), ip(to), PEER_MAC);
        assert_eq!(hops.hop(at(1), ip(to), Some(ip(from)), via), Hop::Kernel, "to {to} from {from}");
    }
}

#[test]
fn a_token_ends_half_a_minute_after_the_last_frame() {
    let mut hops = hops();
    let via = hops.learn(at(0), ip("192.0.2.1"), PEER_MAC);
    assert_eq!(hops.learn(at(20_000), ip("192.0.2.1"), PEER_MAC), via, "the same while frames come");
    assert_eq!(hops.hop(at(49_999), ip("192.0.2.1"), None, via), device(PEER_MAC, OWN));
    assert_eq!(hops.hop(at(50_000), ip("192.0.2.1"), None, via), device(ROUTER_MAC, OWN));
    assert_eq!(hops.learn(at(50_000), ip("192.0.2.1"), PEER_MAC), via);
    assert_eq!(hops.hop(at(50_001), ip("192.0.2.1"), None, via), device(PEER_MAC, OWN));
}

#[test]
fn a_strangers_frames_in_a_peers_name_divert_nobody() {
    let mut hops = hops();
    let via = hops.learn(at(0), ip(PEER), PEER_MAC);
    let strangers = hops.learn(at(1), ip(PEER), STRANGER_MAC);
    assert_ne!(strangers, via);
    assert_eq!(hops.hop(at(2), ip(PEER), None, via), device(PEER_MAC, OWN));
    assert_eq!(hops.hop(at(2), ip(PEER), None, Via(0)), device(PEER_MAC, OWN));
    // Only who got its token sends there, and only to that address.
    assert_eq!(hops.hop(at(2), ip(PEER), None, strangers), device(STRANGER_MAC, OWN));
    assert_eq!(hops.hop(at(2), ip("192.0.2.1"), None, strangers), device(ROUTER_MAC, OWN));
}

#[test]
fn a_flood_of_strangers_takes_no_memory_and_no_datagram() {
    let mut hops = hops();
    let via = hops.learn(at(0), ip(PEER), PEER_MAC);
    let slots =
        (0..LEARNT).map(|index| std::ptr::from_ref(hops.learnt.slot(index).unwrap())).collect::<Vec<_>>();
    for stranger in 0..100_000_u32 {
        let from = IpAddr::V4((0x0b00_0000 + stranger).into());
        let token = hops.learn(at(1 + u64::from(stranger) / 10), from, STRANGER_MAC);
        assert_eq!(hops.hop(at(1 + u64::from(stranger) / 10), from, None, token), device(STRANGER_MAC, OWN));
        // What became of the peer's entry: its datagrams go to it, if need be as the kernel says.
        assert_eq!(hops.hop(at(1 + u64::from(stranger) / 10), ip(PEER), None, via), device(PEER_MAC, OWN));
    }
    assert!(hops.learnt.slot(LEARNT).is_none());
    assert!((0..LEARNT).all(|index| std::ptr::eq(slots[index], hops.learnt.slot(index).unwrap())));
    // For ten seconds of flood, not one question for each datagram.
    assert!((1..=6).contains(&hops.tables.questions), "{}", hops.tables.questions);
}

#[test]
fn a_token_of_a_former_entry_of_its_slot_is_not_believed() {
    let mut hops = hops();
    let via = hops.learn(at(0), ip(PEER), PEER_MAC);
    let index = via.0 as usize % LEARNT;
    // Strangers until one has the slot, then the same address with another link address until it is there again.
    let mut stranger = 0x0b00_0000_u32;
    while hops.learnt.slot(index).unwrap().entry == Some(((ip(PEER), PEER_MAC), ())) {
        stranger += 1;
        hops.learn(at(1), IpAddr::V4(stranger.into()), STRANGER_MAC);
    }
    let holds_peer = |hops: &Hops<Kernel>| {
        hops.learnt.slot(index).unwrap().entry.is_some_and(|((held, _), ())| held == ip(PEER))
    };
    let mut number = 0_u32;
    while !holds_peer(&hops) {
        number += 1;
        let [a, b, c, d] = number.to_be_bytes();
        hops.learn(at(2 + u64::from(number)), ip(PEER), Mac([2, 1, a, b, c, d]));
    }
    assert_eq!(
        hops.hop(at(2 + u64::from(number)), ip(PEER), None, via),
        device(PEER_MAC, OWN),
        "as the kernel says"
    );
    assert_eq!(hops.tables.questions, 1);
}

#[test]
fn what_cannot_be_one_hosts_is_not_learnt() {
    let mut hops = hops();
    for from in
        ["0.0.0.0", "127.0.0.1", "224.0.0.1", "255.255.255.255", OWN, "::", "::1", "ff02::1", "fd77::1"]
    {
        assert_eq!(hops.learn(at(0), ip(from), PEER_MAC), Via(0), "{from}");
    }
    for mac in [Mac([0xff; 6]), Mac([1, 0, 0x5e, 0, 0, 1]), Mac([0; 6])] {
        assert_eq!(hops.learn(at(0), ip(PEER), mac), Via(0), "{mac}");
    }
}

#[test]
fn a_source_of_another_device_is_the_kernels_even_with_a_token() {
    let mut hops = hops();
    let via = hops.learn(at(0), ip(PEER), PEER_MAC);
    for from in ["192.0.2.9", "127.0.0.1", "fd77::9"] {
        assert_eq!(hops.hop(at(1), ip(PEER), Some(ip(from)), via), Hop::Kernel);
        assert_eq!(hops.hop(at(1), ip(PEER), Some(ip(from)), Via(0)), Hop::Kernel);
    }
    assert_eq!(hops.tables.questions, 0);
}

#[test]
fn the_source_is_of_the_destinations_network_and_scope() {
    let mut hops = hops();
    for (to, source) in [
        ("10.88.0.9", "10.88.0.1"),
        ("10.77.3.9", OWN),
        ("192.0.2.1", OWN),
        ("fd77::9", "fd77::1"),
        ("2001:db8::1", "fd77::1"),
        ("fe80::9", "fe80::1"),
    ] {
        let via = hops.learn(at(0), ip(to), PEER_MAC);
        assert_eq!(hops.hop(at(0), ip(to), None, via), device(PEER_MAC, source), "{to}");
    }
    // Where the kernel names none.
    hops.tables.neighbours.push((ip("fe80::7"), Neighbour { mac: PEER_MAC, stale: false }));
    assert_eq!(hops.hop(at(0), ip("fe80::7"), None, Via(0)), device(PEER_MAC, "fe80::1"));
    // None of that family: the kernel says so.
    let mut without = interface();
    without.addresses.retain(|(own, _)| own.is_ipv4());
    let mut hops = Hops::new(&without, Kernel::default());
    let via = hops.learn(at(0), ip("fd77::9"), PEER_MAC);
    assert_eq!(hops.hop(at(0), ip("fd77::9"), None, via), Hop::Kernel);
}

#[test]
fn what_is_not_one_neighbours_is_the_kernels() {
    let mut hops = hops();
    for to in ["10.99.0.1", "10.77.255.255", "255.255.255.255", "224.0.0.1", "ff02::1", "127.0.0.1", "::"] {
        assert_eq!(hops.hop(at(0), ip(to), None, Via(0)), Hop::Kernel, "{to}");
    }
    hops.tables.broken = true;
    assert_eq!(hops.hop(at(0), ip(PEER), None, Via(0)), Hop::Kernel);
}

#[test]
fn an_answer_holds_for_two_seconds_and_a_neighbour_that_is_missing_for_fifty_milliseconds() {
    let mut hops = hops();
    let unresolved = ip("10.77.0.3");
    assert_eq!(hops.hop(at(0), ip(PEER), None, Via(0)), device(PEER_MAC, OWN));
    assert_eq!(hops.hop(at(0), unresolved, None, Via(0)), Hop::Kernel);
    let moved = Neighbour { mac: STRANGER_MAC, stale: false };
    hops.tables.neighbours = vec![(ip(PEER), moved), (unresolved, moved)];
    assert_eq!(hops.hop(at(49), unresolved, None, Via(0)), Hop::Kernel);
    assert_eq!(hops.tables.questions, 2);
    assert_eq!(hops.hop(at(50), unresolved, None, Via(0)), device(STRANGER_MAC, OWN));
    assert_eq!(hops.tables.questions, 3);
    assert_eq!(hops.hop(at(1999), ip(PEER), None, Via(0)), device(PEER_MAC, OWN));
    assert_eq!(hops.tables.questions, 3);
    assert_eq!(hops.hop(at(2000), ip(PEER), None, Via(0)), device(STRANGER_MAC, OWN));
    assert_eq!(hops.tables.questions, 4);
}

#[test]
fn the_kernel_sends_once_to_a_neighbour_that_was_silent_and_so_asks_for_it() {
    let mut hops = hops();
    hops.tables.neighbours = vec![(ip(PEER), Neighbour { mac: PEER_MAC, stale: true })];
    assert_eq!(hops.hop(at(0), ip(PEER), None, Via(0)), Hop::Kernel);
    assert_eq!(hops.hop(at(0), ip(PEER), None, Via(0)), device(PEER_MAC, OWN));
    assert_eq!(hops.tables.questions, 1);
}

#[test]
fn a_neighbour_of_a_real_kernel_is_found_when_its_socket_resolved_it() {
    let Some(veth) = hosts(&Options { neighbours: false, ..Options::default() }) else { return };
    let mut tables = veth.left().run(Tables::open).unwrap();
    let interface = tables.interface("wraith0").unwrap();
    let mut hops = Hops::new(&interface, tables);
    let (left, right, mac) = (veth.left().ipv4(), veth.right().ipv4(), veth.right().mac());
    assert_eq!(hops.hop(at(0), right.into(), None, Via(0)), Hop::Kernel);
    let bind = |ip| move || UdpSocket::bind(SocketAddr::new(ip, 0)).unwrap();
    let (here, there) = (veth.left().run(bind(left.into())), veth.right().run(bind(right.into())));
    there.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    here.send_to(b"x", there.local_addr().unwrap()).unwrap();
    assert_eq!(there.recv(&mut [0; 9]).unwrap(), 1);
    assert_eq!(hops.hop(at(49), right.into(), None, Via(0)), Hop::Kernel);
    let resolved = Hop::Device { mac, source: left.into() };
    assert_eq!(hops.hop(at(50), right.into(), None, Via(0)), resolved);
    assert_eq!(hops.hop(at(50), right.into(), Some(left.into()), Via(0)), resolved);
}
