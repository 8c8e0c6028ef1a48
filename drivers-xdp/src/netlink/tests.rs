use std::io;
use std::net::{IpAddr, UdpSocket};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::neighbour::{NeighbourAttribute, NeighbourMessage, NeighbourState};
use netlink_packet_route::route::{
    RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType, RouteVia,
};
use nix::sys::socket::SockProtocol;

use super::generic::turn_on;
use super::make::Maker;
use super::socket::Socket;
use super::{Interface, Neighbour, Route, Tables, family};
use crate::refusal::{Reason, Refusal, Step};
use crate::testing::hosts;
use crate::veth::{Options, Veth};
use crate::wire::Mac;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// Runs `work` on the left host, with its tables and the index of its device.
fn on_left(work: impl FnOnce(Tables, u32) + Send + 'static) {
    if let Some(veth) = hosts(&Options::default()) {
        run_on_left(&veth, work);
    }
}

fn run_on_left(veth: &Veth, work: impl FnOnce(Tables, u32) + Send + 'static) {
    veth.left().run(|| {
        let mut tables = Tables::open().unwrap();
        let index = tables.interface("wraith0").unwrap().index;
        work(tables, index);
    });
}

fn change(request: RouteNetlinkMessage) {
    Socket::open(SockProtocol::NetlinkRoute, 0).unwrap().change(request, NLM_F_CREATE | NLM_F_EXCL).unwrap();
}

/// Changes a device that there is.
fn set(index: u32, with: impl FnOnce(&mut LinkMessage)) {
    let mut link = LinkMessage::default();
    link.header.index = index;
    with(&mut link);
    Socket::open(SockProtocol::NetlinkRoute, 0)
        .unwrap()
        .change(RouteNetlinkMessage::SetLink(link), 0)
        .unwrap();
}

/// Adds a route to a network of `prefix_len` bits.
fn add_route(to: &str, prefix_len: u8, kind: RouteType, over: Option<RouteAttribute>) {
    let mut route = RouteMessage::default();
    route.header.address_family = family(ip(to));
    route.header.destination_prefix_length = prefix_len;
    route.header.table = RouteHeader::RT_TABLE_MAIN;
    route.header.protocol = RouteProtocol::Static;
    route.header.scope = RouteScope::Universe;
    route.header.kind = kind;
    route.attributes.push(RouteAttribute::Destination(ip(to).into()));
    route.attributes.extend(over);
    change(RouteNetlinkMessage::NewRoute(route));
}

fn add_neighbour(index: u32, to: &str, state: NeighbourState, mac: Mac) {
    let mut neighbour = NeighbourMessage::default();
    neighbour.header.family = family(ip(to));
    neighbour.header.ifindex = index;
    neighbour.header.state = state;
    neighbour.attributes.push(NeighbourAttribute::Destination(ip(to).into()));
    neighbour.attributes.push(NeighbourAttribute::LinkLayerAddress(mac.0.to_vec()));
    change(RouteNetlinkMessage::NewNeighbour(neighbour));
}

fn code(tables: &mut Tables, to: &str, from: Option<&str>) -> i32 {
    tables.route(ip(to), from.map(ip), None).unwrap_err().raw_os_error().unwrap()
}

#[test]
fn a_device_is_reported_with_what_frames_need() {
    let Some(veth) = hosts(&Options { mtu: 3498, queues: 2, ..Options::default() }) else { return };
    let mac = veth.left().mac();
    run_on_left(&veth, move |mut tables, index| {
        let expected = Interface {
            index,
            name: "wraith0".to_owned(),
            mac,
            mtu: 3498,
            up: true,
            rx_queues: 2,
            addresses: vec![(ip("10.77.0.1"), 24), (ip("fd77::1"), 64)],
        };
        assert_eq!(tables.interface("wraith0"), Ok(expected));
    });
}

#[test]
fn changes_of_a_device_are_seen() {
    on_left(|mut tables, index| {
        Maker::open().unwrap().address(index, ip("10.78.0.1"), 16).unwrap();
        set(index, |link| link.attributes.push(LinkAttribute::Mtu(1280)));
        let interface = tables.interface("wraith0").unwrap();
        assert_eq!((interface.mtu, interface.up), (1280, true));
        assert!(interface.addresses.contains(&(ip("10.78.0.1"), 16)), "{interface:?}");
        set(index, |link| link.header.change_mask = LinkFlags::Up);
        assert!(!tables.interface("wraith0").unwrap().up);
    });
}

#[test]
fn a_device_that_is_not_there_or_has_no_ethernet_is_refused() {
    on_left(|mut tables, _| {
        let refusal = |reason| Err(Refusal { step: Step::Interface, reason });
        for name in ["wraith1", "", "a name longer than any device's", "wraith0\0"] {
            assert_eq!(tables.interface(name), refusal(Reason::Missing), "{name:?}");
        }
        assert_eq!(tables.interface("lo"), refusal(Reason::Unsupported));
    });
}

#[test]
fn a_route_tells_the_next_hop_the_device_and_the_source() {
    on_left(|mut tables, index| {
        add_route("192.0.2.0", 24, RouteType::Unicast, Some(RouteAttribute::Gateway(ip("10.77.0.2").into())));
        add_route("2001:db8::", 32, RouteType::Unicast, Some(RouteAttribute::Gateway(ip("fd77::2").into())));
        let IpAddr::V6(gateway) = ip("fd77::2") else { unreachable!() };
        add_route(
            "198.51.100.0",
            24,
            RouteType::Unicast,
            Some(RouteAttribute::Via(RouteVia::Inet6(gateway))),
        );
        for (to, next, source) in [
            ("10.77.0.2", "10.77.0.2", "10.77.0.1"),
            ("10.77.0.9", "10.77.0.9", "10.77.0.1"),
            ("fd77::2", "fd77::2", "fd77::1"),
            ("192.0.2.1", "10.77.0.2", "10.77.0.1"),
            ("2001:db8::1", "fd77::2", "fd77::1"),
            ("198.51.100.1", "fd77::2", "10.77.0.1"),
        ] {
            let expected = Route { interface: index, next: ip(next), source: Some(ip(source)), direct: true };
            assert_eq!(tables.route(ip(to), None, None).unwrap(), expected, "{to}");
            assert_eq!(tables.route(ip(to), Some(ip(source)), None).unwrap(), expected, "{to}");
        }
    });
}

#[test]
fn a_link_local_destination_goes_by_the_device_that_was_named() {
    on_left(|mut tables, index| {
        Maker::open().unwrap().address(index, ip("fe80::1"), 64).unwrap();
        let route = tables.route(ip("fe80::2"), None, Some(index)).unwrap();
        let expected =
            Route { interface: index, next: ip("fe80::2"), source: Some(ip("fe80::1")), direct: true };
        assert_eq!(route, expected);
    });
}

#[test]
fn what_the_kernel_delivers_or_drops_itself_is_not_direct() {
    on_left(|mut tables, index| {
        add_route("0.0.0.0", 0, RouteType::Unicast, Some(RouteAttribute::Gateway(ip("10.77.0.2").into())));
        for to in ["10.77.0.1", "127.0.0.1", "10.77.0.255", "255.255.255.255", "224.0.0.9", "fd77::1", "::1"]
        {
            assert!(!tables.route(ip(to), None, None).unwrap().direct, "{to}");
        }
        assert!(!tables.route(ip("ff02::1"), None, Some(index)).unwrap().direct);
        assert!(tables.route(ip("192.0.2.1"), None, None).unwrap().direct);
        add_route("192.0.2.0", 24, RouteType::BlackHole, None);
        add_route("2001:db8::", 32, RouteType::Unreachable, Some(RouteAttribute::Oif(1)));
        assert_eq!(code(&mut tables, "192.0.2.1", None), libc::EINVAL);
        assert_eq!(code(&mut tables, "2001:db8::1", None), libc::EHOSTUNREACH);
    });
}

#[test]
fn a_destination_without_a_route_and_a_source_of_another_host_are_errors() {
    on_left(|mut tables, _| {
        assert_eq!(code(&mut tables, "192.0.2.1", None), libc::ENETUNREACH);
        assert_eq!(code(&mut tables, "2001:db8::1", None), libc::ENETUNREACH);
        assert_eq!(code(&mut tables, "10.77.0.2", Some("10.77.0.3")), libc::ENETUNREACH);
        // The socket is as good as before.
        assert_eq!(tables.route(ip("10.77.0.2"), None, None).unwrap().next, ip("10.77.0.2"));
    });
}

#[test]
fn a_neighbour_counts_when_the_kernel_would_use_it() {
    on_left(|mut tables, index| {
        let mac = Mac([2, 0, 0, 0, 0, 9]);
        let right = Neighbour { mac: Mac([2, 0x77, 0, 0, 0, 2]), stale: false };
        for to in ["10.77.0.2", "fd77::2"] {
            assert_eq!(tables.neighbour(index, ip(to)).unwrap(), Some(right), "{to}");
        }
        for to in ["10.77.0.7", "fd77::7"] {
            assert_eq!(tables.neighbour(index, ip(to)).unwrap(), None, "{to}");
            add_neighbour(index, to, NeighbourState::Stale, mac);
            assert_eq!(
                tables.neighbour(index, ip(to)).unwrap(),
                Some(Neighbour { mac, stale: true }),
                "{to}"
            );
            assert_eq!(tables.neighbour(1, ip(to)).unwrap(), None, "{to} on another device");
        }
        add_neighbour(index, "10.77.0.8", NeighbourState::Failed, mac);
        assert_eq!(tables.neighbour(index, ip("10.77.0.8")).unwrap(), None);
        // The kernel begins to ask for it, and nobody answers.
        UdpSocket::bind("10.77.0.1:0").unwrap().send_to(b"x", "10.77.0.9:9").unwrap();
        assert_eq!(tables.neighbour(index, ip("10.77.0.9")).unwrap(), None);
        assert_eq!(tables.neighbour(9999, ip("10.77.0.9")).unwrap_err().raw_os_error(), Some(libc::ENODEV));
    });
}

/// `DRV §8.1`
#[test]
fn a_look_up_allocates_nothing() {
    on_left(|mut tables, index| {
        for (to, from) in [("10.77.0.2", None), ("fd77::2", Some("fd77::1")), ("192.0.2.1", None)] {
            let (to, from) = (ip(to), from.map(ip));
            let look = || (tables.route(to, from, None).is_ok(), tables.neighbour(index, to).is_ok());
            let (found, counts) = wraith_sim::alloc::measure(look);
            assert_eq!((found, counts.allocations), ((to != ip("192.0.2.1"), true), 0), "{to}");
        }
    });
}

#[test]
fn tables_are_of_the_host_that_opened_them() {
    let Some(veth) = hosts(&Options::default()) else { return };
    let mut tables = veth.right().run(Tables::open).unwrap();
    let addresses = tables.interface("wraith1").unwrap().addresses;
    assert_eq!(addresses, [(ip("10.77.0.2"), 24), (ip("fd77::2"), 64)]);
}

#[test]
fn a_feature_is_turned_on_once_and_one_that_a_device_has_not_is_refused() {
    on_left(|_, _| {
        assert!(turn_on("wraith0", "rx-gro").unwrap());
        assert!(!turn_on("wraith0", "rx-gro").unwrap());
        // One that no veth has, and one that nothing has.
        for feature in ["rx-lro", "nothing"] {
            assert_eq!(
                turn_on("wraith0", feature).unwrap_err().kind(),
                io::ErrorKind::Unsupported,
                "{feature}"
            );
        }
        assert_eq!(turn_on("wraith1", "rx-gro").unwrap_err().raw_os_error(), Some(libc::ENODEV));
    });
}
