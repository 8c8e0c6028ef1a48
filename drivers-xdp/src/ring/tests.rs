//! The rings on a device of their own.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use wraith_proto::Ecn;

use super::*;
use crate::refusal::{Reason, Refusal, Step};
use crate::testing::hosts;
use crate::veth::{Side, Veth};
use crate::wire::{self, Flow};

const PORT: u16 = 4000;
const PATIENCE: Duration = Duration::from_secs(20);

fn setup(side: &Side) -> Setup {
    Setup {
        interface: side.interface().to_owned(),
        queue: 0,
        chunk_bytes: 2048,
        receive_chunks: 16,
        slots: 4,
        slot_chunks: 1,
        zero_copy: false,
        several_chunks: false,
    }
}

/// Opens rings on a host.
fn opened(side: &Side, setup: Setup) -> Result<(Transmit, Receive), Refusal> {
    side.run(move || open(&setup))
}

/// A socket on the other host that shall hear what is sent.
fn listener(side: &Side) -> (UdpSocket, SocketAddr) {
    let addr = SocketAddr::new(side.ipv4().into(), PORT);
    let socket = side.run(move || UdpSocket::bind(addr).unwrap());
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    (socket, addr)
}

/// Writes a datagram with its headers into a slot, and puts it into the ring.
fn push(transmit: &mut Transmit, mut slot: Slot, veth: &Veth, payload: &[u8]) {
    let (left, right) = (veth.left(), veth.right());
    let flow = Flow {
        source: left.mac(),
        destination: right.mac(),
        from: SocketAddr::new(left.ipv4().into(), PORT),
        to: SocketAddr::new(right.ipv4().into(), PORT),
        ecn: Ecn::NotEct,
    };
    let end = wire::IPV4_HEADERS + payload.len();
    let bytes = &mut transmit.bytes(&mut slot)[..end];
    let (headers, room) = bytes.split_at_mut(wire::IPV4_HEADERS);
    room.copy_from_slice(payload);
    wire::write(&flow, headers, payload);
    transmit.push(slot, 0..end);
}

/// The next slot that comes back.
fn reclaimed(transmit: &mut Transmit) -> Slot {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(slot) = transmit.reclaim() {
            return slot;
        }
        assert!(Instant::now() < until, "no slot comes back");
        std::thread::yield_now();
    }
}

#[test]
fn packets_leave_whole_and_their_slots_come_back() {
    let Some(veth) = hosts(&crate::veth::Options::default()) else { return };
    let (socket, _) = listener(veth.right());
    let (mut transmit, _receive) = opened(veth.left(), setup(veth.left())).unwrap();
    let mut slots = transmit.take_slots();
    assert_eq!((slots.len(), transmit.take_slots().len()), (4, 0));
    assert!(transmit.reclaim().is_none());
    let mut buffer = [0; 2048];
    // More than the ring's size, so that it wraps.
    for round in 0..10u8 {
        for index in 0..4 {
            push(&mut transmit, slots.remove(0), &veth, &[round, index, 7]);
        }
        assert_eq!(transmit.waiting(), 4);
        let kicked = transmit.kick(false).unwrap();
        assert_eq!((kicked.taken, transmit.waiting()), (4, 0));
        assert!((1..=4).contains(&kicked.syscalls), "{kicked:?}");
        for index in 0..4 {
            let len = socket.recv(&mut buffer).unwrap();
            assert_eq!(&buffer[..len], [round, index, 7]);
        }
        slots.extend((0..4).map(|_| reclaimed(&mut transmit)));
        assert!(transmit.reclaim().is_none());
    }
}

#[test]
fn a_packet_may_lie_in_several_chunks() {
    let mtu = crate::veth::Options { mtu: 9000, ..Default::default() };
    let Some(veth) = hosts(&mtu) else { return };
    let (socket, _) = listener(veth.right());
    let several = Setup { chunk_bytes: 4096, slot_chunks: 3, several_chunks: true, ..setup(veth.left()) };
    let (mut transmit, _receive) = opened(veth.left(), several).unwrap();
    let mut slots = transmit.take_slots();
    let mut buffer = [0; 9000];
    for len in [1, 4053, 4054, 4055, 8149, 8150, 8151, 8972, 5] {
        let payload: Vec<u8> = (0..len).map(|at: u32| at as u8).collect();
        push(&mut transmit, slots.remove(0), &veth, &payload);
        assert_eq!(transmit.kick(false).unwrap().taken, 1);
        let received = socket.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..received], payload);
        slots.push(reclaimed(&mut transmit));
    }
}

#[test]
fn a_queue_is_for_one_socket_and_free_soon_after_it() {
    let Some(veth) = hosts(&crate::veth::Options::default()) else { return };
    let left = veth.left();
    let first = opened(left, setup(left)).unwrap();
    let again = opened(left, setup(left)).map(|_| ());
    assert_eq!(again, Err(Refusal { step: Step::Bind, reason: Reason::Busy }));
    drop(first);
    opened(left, setup(left)).unwrap();
}

#[test]
fn what_does_not_exist_or_cannot_be_is_refused_with_its_step() {
    let Some(veth) = hosts(&crate::veth::Options::default()) else { return };
    let left = veth.left();
    for (wrong, step, reason) in [
        (Setup { interface: "nothing0".into(), ..setup(left) }, Step::Interface, Reason::Missing),
        (Setup { interface: "no\0thing".into(), ..setup(left) }, Step::Interface, Reason::Missing),
        (Setup { queue: 1, ..setup(left) }, Step::Bind, Reason::Invalid),
        (Setup { zero_copy: true, ..setup(left) }, Step::Bind, Reason::Unsupported),
    ] {
        assert_eq!(opened(left, wrong).map(|_| ()), Err(Refusal { step, reason }));
    }
}
