//! Datagrams that nobody sent.

use proptest::prelude::*;
use wraith_proto::wire::{HandshakeKind, ProtectedPacket};
use wraith_proto::{CloseReason, DropReason, Event, Outcome, SessionHandle};
use wraith_sim::{LEFT, Pair, RIGHT, Rng, Side};

use bytes::Bytes;

use crate::common::{ONE_WAY, SECOND, assert_carries, events, small, watch};

/// A quiet session, and a packet from left to right that has not arrived.
fn with_packet(seed: u64) -> (Pair, SessionHandle, SessionHandle, Vec<u8>) {
    let mut pair = Pair::new(small(seed));
    let (left, right) = pair.connect();
    pair.run_for(2 * SECOND);
    let seen = watch(&mut pair, |sent| sent.sender == 0);
    pair.left
        .endpoint
        .session(left)
        .expect("open")
        .send_datagram(Bytes::from_static(b"genuine"))
        .expect("room");
    pair.run_for(ONE_WAY);
    let packet = seen.borrow()[0].bytes.clone();
    (pair, left, right, packet)
}

/// `PROTO §5.8`: whatever is altered, nothing changes, and the genuine packet is taken afterwards.
#[test]
fn a_packet_altered_in_any_bit_is_a_counted_drop() {
    let (mut pair, _, right, packet) = with_packet(1);
    let before = *pair.right.endpoint.stats();
    let deadline = pair.right.endpoint.poll_timeout();
    for bit in 0..packet.len() * 8 {
        let mut altered = packet.clone();
        altered[bit / 8] ^= 1 << (bit % 8);
        let outcome = pair.inject(Side::Right, LEFT, &altered);
        assert!(matches!(outcome, Outcome::Dropped(_)), "bit {bit}: {outcome:?}");
    }
    let after = *pair.right.endpoint.stats();
    assert_eq!(after.dropped() - before.dropped(), packet.len() as u64 * 8);
    assert_eq!((after.packets_opened, after.datagrams_sent), (before.packets_opened, before.datagrams_sent));
    assert_eq!(pair.right.endpoint.poll_timeout(), deadline, "no timer moved");
    assert_eq!(pair.inject(Side::Right, LEFT, &packet), Outcome::Authenticated(right));
    assert_eq!(pair.right.host.datagrams, [(right, b"genuine".to_vec())]);
    assert_eq!(pair.inject(Side::Right, LEFT, &packet), Outcome::Dropped(DropReason::Replayed));
    assert_eq!(pair.right.host.datagrams.len(), 1);
}

#[test]
fn a_packet_cut_to_any_length_is_a_counted_drop() {
    let (mut pair, _, right, packet) = with_packet(2);
    for len in 0..packet.len() {
        let outcome = pair.inject(Side::Right, LEFT, &packet[..len]);
        assert!(matches!(outcome, Outcome::Dropped(_)), "{len} bytes: {outcome:?}");
    }
    let mut longer = packet.clone();
    longer.push(0);
    assert_eq!(pair.inject(Side::Right, LEFT, &longer), Outcome::Dropped(DropReason::BadTag));
    assert_eq!(pair.inject(Side::Right, LEFT, &packet), Outcome::Authenticated(right));
}

/// `PROTO §5.8`: what does not authenticate keeps no session alive.
#[test]
fn false_packets_do_not_postpone_the_idle_timeout() {
    let (mut pair, _, right, packet) = with_packet(3);
    let mut altered = packet;
    altered[20] ^= 1;
    for _ in 0..35 {
        pair.run_for(SECOND);
        pair.inject(Side::Right, LEFT, &altered);
    }
    assert_eq!(events(&pair.right, right), [Event::Connected, Event::Closed(CloseReason::IdleTimeout)]);
}

/// `PROTO §5.8`: nor does it move the replay window.
#[test]
fn false_packets_with_far_numbers_do_not_push_the_window() {
    let (mut pair, _, right, packet) = with_packet(4);
    let mut rng = Rng::new(4);
    for _ in 0..10_000 {
        let mut altered = packet.clone();
        // The number is masked: any four bytes stand for some number.
        rng.fill(&mut altered[9..13]);
        if altered != packet {
            assert_eq!(pair.inject(Side::Right, LEFT, &altered), Outcome::Dropped(DropReason::BadTag));
        }
    }
    assert_eq!(pair.inject(Side::Right, LEFT, &packet), Outcome::Authenticated(right));
}

/// `PROTO §9.4`
#[test]
fn packets_for_nobody_are_dropped_and_not_answered() {
    let (mut pair, _, _, mut packet) = with_packet(5);
    let sent = pair.right.endpoint.stats().datagrams_sent;
    packet[1..9].copy_from_slice(b"nobody's");
    assert!(ProtectedPacket::parse(&packet).is_ok());
    assert_eq!(pair.inject(Side::Right, LEFT, &packet), Outcome::Dropped(DropReason::UnknownSession));
    assert_eq!(pair.right.endpoint.stats().datagrams_sent, sent);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Whatever comes, at whatever stage, nothing panics, every drop is counted, and the session goes on.
    #[test]
    fn garbage_at_any_stage_is_dropped(
        garbage in prop::collection::vec((any::<u8>(), prop::collection::vec(any::<u8>(), 0..1300)), 1..40),
        stage in 0_u64..50,
    ) {
        let mut pair = Pair::new(small(6));
        let seen = watch(&mut pair, |_| false);
        pair.dial().expect("a free session");
        pair.run_for(std::time::Duration::from_millis(stage));
        for (choice, mut bytes) in garbage {
            // Often with a true beginning, so that it gets further.
            let sent = seen.borrow();
            let genuine = &sent[usize::from(choice) % sent.len()].bytes;
            if choice % 4 != 0 {
                let keep = genuine.len().min(bytes.len()).min(usize::from(choice) / 2);
                bytes[..keep].copy_from_slice(&genuine[..keep]);
            }
            drop(sent);
            for (side, from) in [(Side::Right, LEFT), (Side::Left, RIGHT)] {
                let node = if side == Side::Right { &pair.right } else { &pair.left };
                let before = node.endpoint.stats().dropped();
                let outcome = pair.inject(side, from, &bytes);
                let node = if side == Side::Right { &pair.right } else { &pair.left };
                let counted = node.endpoint.stats().dropped() - before;
                prop_assert_eq!(counted, u64::from(matches!(outcome, Outcome::Dropped(_))));
                let may_count = HandshakeKind::of(&bytes) == Some(HandshakeKind::Init);
                prop_assert!(counted == 1 || may_count, "{:?}", outcome);
            }
        }
        prop_assert!(pair.run_until(crate::common::both_connected, 5 * SECOND));
        let (left, right) = (pair.left.last_connected().expect("connected"), pair.right.last_connected().expect("connected"));
        assert_carries(&mut pair, left, right);
    }
}

#[test]
fn lone_datagrams_travel_in_packets_of_their_own() {
    for (lone, packets) in [(false, 1), (true, 4)] {
        let config = small(3).with_both(|config| config.transport.lone_datagrams = lone);
        let mut pair = Pair::new(config);
        let (left, right) = pair.connect();
        pair.run_for(2 * SECOND);
        let before = pair.right.endpoint.stats().packets_opened;
        for byte in 0..4 {
            let mut session = pair.left.endpoint.session(left).expect("open");
            session.send_datagram(Bytes::from(vec![byte; 100])).expect("room");
        }
        pair.run_for(ONE_WAY + ONE_WAY);
        assert_eq!(pair.right.endpoint.stats().packets_opened - before, packets);
        let arrived = (0..4).map(|byte| (right, vec![byte; 100])).collect::<Vec<_>>();
        assert_eq!(pair.right.host.datagrams, arrived);
    }
}
