//! Ways of datagrams beside the straight one: neighbours that are not known, what the filter leaves to the kernel, other
//! addresses and devices.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};

use wraith_drivers::{Driver, Mode, TooLong};
use wraith_drivers_mio::MioDriver;
use wraith_drivers_xdp::Attach;
use wraith_proto::{TxMeta, TxQueue};

use crate::common::{
    PATIENCE, bind, command, commit, hosts, kernel_counts, receive, send, socket, to, try_bind,
};

#[test]
fn an_unknown_neighbour_is_found_through_the_kernel_and_then_reached_directly() {
    let Some(veth) = hosts(|options| options.neighbours = false) else { return };
    let mut left = bind(veth.left(), veth.left().ipv4());
    let right = socket(veth.right(), veth.right().ipv4());
    let meta = to(right.local_addr().unwrap());
    let (before, _) = kernel_counts(veth.left());
    send(&mut left, &meta, b"first");
    let mut buffer = [0; 100];
    assert_eq!(right.recv_from(&mut buffer).unwrap(), (5, left.local_addr()));
    assert_eq!(kernel_counts(veth.left()).0 - before, 1, "the first one asks for the neighbour");
    // An answer that is not known is asked for again after 50 ms.
    let until = std::time::Instant::now() + PATIENCE;
    loop {
        let (kernel, _) = kernel_counts(veth.left());
        send(&mut left, &meta, b"later");
        right.recv_from(&mut buffer).unwrap();
        if kernel_counts(veth.left()).0 == kernel {
            break;
        }
        assert!(std::time::Instant::now() < until, "datagrams still leave through the kernel");
        std::thread::yield_now();
    }
}

#[test]
fn an_answer_goes_where_the_question_came_from_without_the_kernel() {
    let Some(veth) = hosts(|options| options.neighbours = false) else { return };
    let mut left = bind(veth.left(), veth.left().ipv4());
    let right = socket(veth.right(), veth.right().ipv4());
    right.send_to(b"question", left.local_addr()).unwrap();
    let (asked, data) = receive(&mut left, 1).remove(0);
    assert_eq!((asked.from, data.as_slice()), (right.local_addr().unwrap(), b"question".as_slice()));
    assert_ne!(asked.via.0, 0);
    let (before, _) = kernel_counts(veth.left());
    send(&mut left, &TxMeta { to: asked.from, from: asked.to, via: asked.via, ecn: asked.ecn }, b"answer");
    let mut buffer = [0; 100];
    assert_eq!(right.recv_from(&mut buffer).unwrap(), (6, left.local_addr()));
    assert_eq!(kernel_counts(veth.left()).0, before);
}

#[test]
fn fragments_and_joined_datagrams_come_whole_and_cut() {
    for attach in [Attach::Native, Attach::Generic] {
        let Some(veth) = hosts(|_| {}) else { return };
        let mut left =
            try_bind(veth.left(), veth.left().ipv4(), 0, |options| options.attach = attach).unwrap();
        assert_eq!(left.caps().mode, Mode::Xdp { zero_copy: false, native: attach == Attach::Native });
        // The system's own socket cuts it into three pieces, which the filter leaves to the kernel.
        let right = socket(veth.right(), veth.right().ipv4());
        let long: Vec<u8> = (0..4000u32).map(|at| at as u8).collect();
        right.send_to(&long, left.local_addr()).unwrap();
        assert_eq!(receive(&mut left, 1)[0].1, long, "{attach:?}");
        // A batch leaves as one packet for as long as nothing on the way minds.
        let addr = SocketAddr::new(veth.right().ipv4().into(), 0);
        let mut batch =
            veth.right().run(move || MioDriver::bind(addr, &wraith_drivers_mio::Options::default()).unwrap());
        assert!(batch.caps().tx_segments > 1);
        let meta = to(left.local_addr());
        for number in 0..40u8 {
            batch.tx().reserve(&meta, 1200).unwrap().fill(number);
            batch.tx().commit(1200);
        }
        assert_eq!(batch.flush().unwrap().sent, 40);
        let arrivals = receive(&mut left, 40);
        for (number, (meta, data)) in (0..).zip(arrivals) {
            assert_eq!((meta.from, data), (batch.local_addr(), vec![number; 1200]), "{attach:?}");
        }
        assert_eq!(left.drops().malformed, 0);
    }
}

#[test]
fn what_arrives_in_a_queue_without_a_driver_comes_through_the_kernel() {
    let Some(veth) = hosts(|options| options.queues = 2) else { return };
    let mut left = bind(veth.left(), veth.left().ipv4());
    let (_, before) = kernel_counts(veth.left());
    // Each flow has its queue.
    let senders: Vec<_> = (0..32).map(|_| socket(veth.right(), veth.right().ipv4())).collect();
    for sender in &senders {
        sender.send_to(b"hello", left.local_addr()).unwrap();
    }
    let mut from: Vec<_> = receive(&mut left, 32).into_iter().map(|(meta, _)| meta.from).collect();
    let mut expected: Vec<_> = senders.iter().map(|sender| sender.local_addr().unwrap()).collect();
    from.sort();
    expected.sort();
    assert_eq!(from, expected);
    let kernel = kernel_counts(veth.left()).1 - before;
    assert!((1..32).contains(&kernel), "{kernel} of 32 came through the kernel");
}

#[test]
fn an_unspecified_address_receives_at_all_of_the_device_and_answers_from_the_right_one() {
    let Some(veth) = hosts(|_| {}) else { return };
    let mut left = bind(veth.left(), Ipv6Addr::UNSPECIFIED);
    let port = left.local_addr().port();
    let pairs: [(IpAddr, IpAddr); 2] = [
        (veth.left().ipv4().into(), veth.right().ipv4().into()),
        (veth.left().ipv6().into(), veth.right().ipv6().into()),
    ];
    let (_, before) = kernel_counts(veth.left());
    for (own, peer) in pairs {
        let right = socket(veth.right(), peer);
        right.send_to(b"question", SocketAddr::new(own, port)).unwrap();
        let (asked, _) = receive(&mut left, 1).remove(0);
        assert_eq!((asked.from, asked.to), (right.local_addr().unwrap(), Some(own)));
        let mut buffer = [0; 100];
        for meta in
            [TxMeta { to: asked.from, from: asked.to, via: asked.via, ecn: asked.ecn }, to(asked.from)]
        {
            send(&mut left, &meta, b"answer");
            assert_eq!(right.recv_from(&mut buffer).unwrap(), (6, SocketAddr::new(own, port)));
        }
    }
    assert_eq!(kernel_counts(veth.left()).1, before, "nothing came through the kernel");
}

#[test]
fn what_fits_over_ipv4_alone_is_dropped_over_ipv6_and_holds_up_nobody() {
    let Some(veth) = hosts(|_| {}) else { return };
    let mut left = bind(veth.left(), Ipv6Addr::UNSPECIFIED);
    assert_eq!(left.caps().max_datagram, 1472);
    let (v4, v6) = (socket(veth.right(), veth.right().ipv4()), socket(veth.right(), veth.right().ipv6()));
    for (socket, len) in [(&v6, 1453), (&v4, 1472), (&v6, 1472), (&v6, 1452)] {
        commit(&mut left, &to(socket.local_addr().unwrap()), &vec![7; len]);
    }
    let report = left.flush().unwrap();
    assert_eq!((report.sent, report.dropped, report.in_flight), (2, 2, 0));
    let told = TooLong { to: v6.local_addr().unwrap(), len: 1453 };
    assert_eq!(report.too_long, Some(told), "the shorter of the two");
    let mut buffer = [0; 2000];
    assert_eq!((v4.recv(&mut buffer).unwrap(), v6.recv(&mut buffer).unwrap()), (1472, 1452));
    assert!(left.tx().reserve(&to(v4.local_addr().unwrap()), 1473).is_none());
}

#[test]
fn a_driver_at_one_address_leaves_the_others_to_their_sockets() {
    let Some(veth) = hosts(|_| {}) else { return };
    let left = bind(veth.left(), veth.left().ipv4());
    let other = SocketAddr::new(veth.left().ipv6().into(), left.local_addr().port());
    let neighbour = veth.left().run(move || std::net::UdpSocket::bind(other).unwrap());
    neighbour.set_read_timeout(Some(PATIENCE)).unwrap();
    let right = socket(veth.right(), veth.right().ipv6());
    right.send_to(b"for the other", other).unwrap();
    let mut buffer = [0; 100];
    assert_eq!(neighbour.recv_from(&mut buffer).unwrap(), (13, right.local_addr().unwrap()));
}

#[test]
fn the_host_itself_is_reached_and_heard_through_the_kernel() {
    let Some(veth) = hosts(|_| {}) else { return };
    let mut left = bind(veth.left(), Ipv4Addr::UNSPECIFIED);
    let port = left.local_addr().port();
    let here = socket(veth.left(), Ipv4Addr::LOCALHOST);
    send(&mut left, &to(here.local_addr().unwrap()), b"to the host");
    let mut buffer = [0; 100];
    assert_eq!(here.recv_from(&mut buffer).unwrap(), (11, SocketAddr::from((Ipv4Addr::LOCALHOST, port))));
    here.send_to(b"from the host", (Ipv4Addr::LOCALHOST, port)).unwrap();
    assert_eq!(receive(&mut left, 1)[0].1, b"from the host");
}

#[test]
fn datagrams_by_both_ways_leave_in_the_order_of_their_commits() {
    let Some(veth) = hosts(|_| {}) else { return };
    let mut left = bind(veth.left(), Ipv4Addr::UNSPECIFIED);
    let right = socket(veth.right(), veth.right().ipv4());
    let near = socket(veth.left(), Ipv4Addr::LOCALHOST);
    let (far, near_addr) = (to(right.local_addr().unwrap()), to(near.local_addr().unwrap()));
    for number in 0..20 {
        let meta = if number % 3 == 0 { near_addr } else { far };
        commit(&mut left, &meta, &[number]);
    }
    let report = left.flush().unwrap();
    assert_eq!((report.sent, report.dropped, report.in_flight), (20, 0, 0));
    let mut buffer = [0; 100];
    for number in 0..20 {
        let receiver = if number % 3 == 0 { &near } else { &right };
        assert_eq!(receiver.recv(&mut buffer).unwrap(), 1);
        assert_eq!(buffer[0], number);
    }
}

#[test]
fn a_link_local_address_is_reached_on_the_link_that_it_names() {
    let Some(veth) = hosts(|_| {}) else { return };
    // The same address on two links: this host's own (1), and the line's, where nobody has it.
    for line in [
        "ip -6 address add fe80::5/64 dev lo nodad",
        "ip -6 address add fe80::6/64 dev wraith0 nodad",
        "ip -6 neighbour add fe80::5 lladdr 02:77:00:00:00:02 dev wraith0",
    ] {
        command(veth.left(), line);
    }
    let mut left = bind(veth.left(), Ipv6Addr::UNSPECIFIED);
    let addr = SocketAddrV6::new("fe80::5".parse().unwrap(), 0, 0, 1);
    let near = veth.left().run(move || UdpSocket::bind(addr).unwrap());
    near.set_read_timeout(Some(PATIENCE)).unwrap();
    send(&mut left, &to(near.local_addr().unwrap()), b"hello");
    let mut buffer = [0; 100];
    assert_eq!(near.recv(&mut buffer).unwrap(), 5);
}

#[test]
fn what_comes_through_the_kernel_does_not_wait_for_a_line_that_is_never_silent() {
    let Some(veth) = hosts(|_| {}) else { return };
    let mut left = bind(veth.left(), veth.left().ipv4());
    let right = socket(veth.right(), veth.right().ipv4());
    let addr = left.local_addr();
    let mut heard = false;
    let fragments = [0; 4000];
    for round in 0..1000 {
        // Two arrive for each that is received.
        right.send_to(b"short", addr).unwrap();
        right.send_to(b"short", addr).unwrap();
        if round == 100 {
            right.send_to(&fragments, addr).unwrap();
        }
        left.recv(1, |_, data| heard |= data == fragments).unwrap();
    }
    assert!(heard);
}
