//! Connection ids, and packets that break the rules: forged behind a provider that accepts any tag.

use wraith_proto::wire::{
    ConnectionId, Frame, Frames, PacketHeader, Writer, split_body, visible_destination,
};
use wraith_proto::{CloseReason, Endpoint, Event, Outcome, SessionHandle, Shard};
use wraith_sim::{LEFT, Pair, RIGHT, Side, Transparent};

use crate::common::{ONE_WAY, SECOND, Seen, assert_carries, events, pair_with, watch};

/// A session whose packets anybody can read and forge, and what it sent.
fn open(seed: u64) -> (Pair, SessionHandle, SessionHandle, Seen) {
    let mut pair = pair_with(seed, |config| config.crypto = Transparent::ACCEPT_ANY);
    let seen = watch(&mut pair, |_| false);
    let (left, right) = pair.connect();
    pair.run_for(2 * SECOND);
    (pair, left, right, seen)
}

/// Calls `with` for every frame of a packet.
fn each_frame(packet: &[u8], mut with: impl FnMut(Frame<'_>)) {
    let mut body = packet[13..packet.len() - 16].to_vec();
    let (_, frames) = split_body(&mut body).expect("a body");
    Frames::new(frames).for_each(|frame| with(frame.expect("a frame")));
}

/// The ids that a sender gave out, with their numbers.
fn given(seen: &Seen, sender: u32) -> Vec<(u64, ConnectionId)> {
    let mut given = Vec::new();
    for sent in seen.borrow().iter().filter(|sent| sent.sender == sender) {
        let packet = match sent.kind() {
            None => &sent.bytes[..],
            Some(wraith_proto::wire::HandshakeKind::Finish) => {
                let finish = wraith_proto::wire::FinishPacket::parse(&sent.bytes).expect("a FINISH");
                &sent.bytes[finish.len()..]
            }
            Some(_) => continue,
        };
        if !packet.is_empty() {
            each_frame(packet, |frame| {
                if let Frame::NewConnectionId { sequence, id, .. } = frame
                    && !given.contains(&(sequence, id))
                {
                    given.push((sequence, id));
                }
            });
        }
    }
    given
}

/// The id that the last packet of a sender went to.
fn destination(seen: &Seen, sender: u32) -> ConnectionId {
    let seen = seen.borrow();
    let packet = seen.iter().rev().find(|sent| sent.sender == sender && sent.kind().is_none());
    visible_destination(&packet.expect("a packet").bytes).expect("a packet")
}

fn forge(destination: ConnectionId, number: u32, frames: &[Frame<'_>]) -> Vec<u8> {
    let mut packet = PacketHeader { phase: 0, ignored: false, destination, number }.to_bytes().to_vec();
    let mut room = [0; 512];
    let mut writer = Writer::new(&mut room);
    for frame in frames {
        frame.emit(&mut writer).expect("room");
    }
    packet.extend_from_slice(writer.written());
    packet.extend_from_slice(&(writer.len() as u16).to_be_bytes());
    packet.extend_from_slice(&[0; 16]);
    packet
}

/// `PROTO §5.11, §6.6`
#[test]
fn each_end_gives_the_other_four_ids() {
    let (pair, _, _, seen) = open(1);
    for sender in [0, 1] {
        let mut sequences: Vec<_> = given(&seen, sender).iter().map(|(sequence, _)| *sequence).collect();
        sequences.sort_unstable();
        assert_eq!(sequences, [1, 2, 3], "0 is the one of the handshake");
    }
    assert_eq!(pair.left.endpoint.stats().dropped() + pair.right.endpoint.stats().dropped(), 0);
}

/// `PROTO §5.11`
#[test]
fn ids_belong_to_the_shard_of_their_receiver() {
    let mut pair = pair_with(2, |config| {
        config.crypto = Transparent::ACCEPT_ANY;
        config.shard = Shard { index: 2, count: 5 };
    });
    let seen = watch(&mut pair, |_| false);
    pair.connect();
    pair.run_for(SECOND);
    let all = [given(&seen, 0), given(&seen, 1)].concat();
    assert_eq!(all.len(), 6);
    for (_, id) in all {
        assert_eq!((u16::from(id.0[0]) * 5) >> 8, 2);
        assert_eq!(Endpoint::shard_of(&forge(id, 0, &[]), 5), Some(2));
    }
    let init = &seen.borrow()[0].bytes;
    assert_eq!(Endpoint::shard_of(init, 5), None, "handshakes stay where they arrive");
    let mut foreign = forge(ConnectionId([0xff; 8]), 0, &[]);
    let outcome = pair.inject(Side::Left, RIGHT, &foreign);
    assert_eq!(outcome, Outcome::Dropped(wraith_proto::DropReason::WrongShard));
    foreign.truncate(5);
    assert_eq!(Endpoint::shard_of(&foreign, 5), None);
}

/// `PROTO §6.6`: every id in use reaches its session.
#[test]
fn a_packet_to_any_of_the_four_ids_is_taken() {
    let (mut pair, _, right, seen) = open(3);
    pair.intercept(|_| wraith_sim::Verdict::Drop);
    for (number, (_, id)) in given(&seen, 1).into_iter().enumerate() {
        let packet = forge(id, 1000 + number as u32, &[Frame::Ping]);
        assert_eq!(pair.inject(Side::Right, LEFT, &packet), Outcome::Authenticated(right));
    }
}

/// `PROTO §6.6`
#[test]
fn an_id_that_the_peer_retires_is_replaced() {
    let (mut pair, _, right, seen) = open(4);
    let current = destination(&seen, 0);
    let next = given(&seen, 1)[0].1;
    let from_now = watch(&mut pair, |_| true);
    let retire = forge(next, 1000, &[Frame::RetireConnectionId { sequence: 0 }]);
    assert_eq!(pair.inject(Side::Right, LEFT, &retire), Outcome::Authenticated(right));
    pair.run_for(ONE_WAY * 3);
    let replaced = given(&from_now, 1);
    assert_eq!(replaced.iter().map(|(sequence, _)| *sequence).collect::<Vec<_>>(), [4]);
    let unknown = Outcome::Dropped(wraith_proto::DropReason::UnknownSession);
    assert_eq!(pair.inject(Side::Right, LEFT, &forge(current, 1001, &[Frame::Ping])), unknown);
    let taken = pair.inject(Side::Right, LEFT, &forge(replaced[0].1, 1002, &[Frame::Ping]));
    assert_eq!(taken, Outcome::Authenticated(right));
}

/// `PROTO §6.6`
#[test]
fn ids_below_retire_prior_to_are_retired_and_used_no_more() {
    let (mut pair, _, right, seen) = open(5);
    let from_now = watch(&mut pair, |_| true);
    let fresh = ConnectionId([0x42; 8]);
    let new = Frame::NewConnectionId { sequence: 4, retire_prior_to: 4, id: fresh };
    let to = given(&seen, 1)[0].1;
    assert_eq!(pair.inject(Side::Right, LEFT, &forge(to, 1000, &[new])), Outcome::Authenticated(right));
    pair.run_for(ONE_WAY * 3);
    assert_eq!(destination(&from_now, 1), fresh);
    let mut retired = Vec::new();
    for sent in from_now.borrow().iter() {
        each_frame(&sent.bytes, |frame| {
            if let Frame::RetireConnectionId { sequence } = frame
                && !retired.contains(&sequence)
            {
                retired.push(sequence);
            }
        });
    }
    retired.sort_unstable();
    assert_eq!(retired, [0, 1, 2, 3]);
}

/// Delivers a packet with `frames` to the right end; both ends have to learn that it was a violation.
fn assert_violation(seed: u64, frames: &[Frame<'_>]) {
    let (mut pair, left, right, seen) = open(seed);
    let to = destination(&seen, 0);
    assert_eq!(pair.inject(Side::Right, LEFT, &forge(to, 1000, frames)), Outcome::Authenticated(right));
    let violation = Event::Closed(CloseReason::Violation);
    assert_eq!(events(&pair.right, right).last(), Some(&violation), "{frames:?}");
    pair.run_for(ONE_WAY);
    assert_eq!(events(&pair.left, left).last(), Some(&violation), "{frames:?}");
    pair.run_for(10 * SECOND);
    assert_eq!((pair.left.endpoint.sessions(), pair.right.endpoint.sessions()), (0, 0));
}

/// `PROTO §6.6, §9.5`
#[test]
fn breaking_the_rules_of_ids_ends_the_session_with_close() {
    let id = |byte| ConnectionId([byte; 8]);
    assert_violation(6, &[Frame::NewConnectionId { sequence: 4, retire_prior_to: 0, id: id(1) }]);
    assert_violation(7, &[Frame::NewConnectionId { sequence: 1, retire_prior_to: 0, id: id(1) }]);
    assert_violation(8, &[Frame::NewConnectionId { sequence: 4, retire_prior_to: 5, id: id(1) }]);
    assert_violation(9, &[Frame::RetireConnectionId { sequence: 4 }]);
}

/// `PROTO §9.5, §6.7`
#[test]
fn frames_that_no_honest_peer_sends_end_the_session_with_close() {
    // The left end is the initiator: only a responder authorises.
    assert_violation(10, &[Frame::Authorized]);
    assert_violation(11, &[Frame::Ping, Frame::MaxStreamData { stream: 3, credit: 1 }]);
}

/// `PROTO §6.7`: what comes before AUTHORIZED is a violation.
#[test]
fn data_before_authorisation_end_the_session() {
    let mut pair = Pair::new({
        let mut config = crate::common::small(12).with_both(|config| config.crypto = Transparent::ACCEPT_ANY);
        config.right.policy = wraith_proto::Policy::Ask;
        config
    });
    pair.right.host.ask = true;
    let seen = watch(&mut pair, |_| false);
    let left = pair.dial().expect("a free session");
    pair.run_for(SECOND);
    let right = pair.right.host.events[0].0;
    let mut early =
        PacketHeader { phase: 0, ignored: false, destination: destination(&seen, 0), number: 1000 }
            .to_bytes()
            .to_vec();
    early.extend_from_slice(b"now\x06\x00\x03\x00\x03");
    early.extend_from_slice(&[0; 16]);
    assert_eq!(pair.inject(Side::Right, LEFT, &early), Outcome::Authenticated(right));
    assert!(pair.right.host.datagrams.is_empty());
    assert_eq!(events(&pair.right, right), [Event::Authorize, Event::Closed(CloseReason::Violation)]);
    pair.run_for(ONE_WAY);
    assert_eq!(events(&pair.left, left), [Event::Closed(CloseReason::Violation)]);
}

/// `PROTO §5.4, §9.5`
#[test]
fn a_body_whose_lengths_do_not_add_up_ends_the_session() {
    let (mut pair, _, right, seen) = open(13);
    let mut packet = forge(destination(&seen, 0), 1000, &[Frame::Ping]);
    packet.insert(13, 0xaa);
    assert_eq!(pair.inject(Side::Right, LEFT, &packet), Outcome::Authenticated(right));
    assert_eq!(events(&pair.right, right).last(), Some(&Event::Closed(CloseReason::Violation)));
}

/// `PROTO §5.2, §5.8`: reserved bits count once the tag was good.
#[test]
fn a_reserved_bit_in_an_authentic_packet_ends_the_session() {
    let (mut pair, _, right, seen) = open(14);
    let mut packet = forge(destination(&seen, 0), 1000, &[Frame::Ping]);
    packet[0] |= 0b1000;
    assert!(matches!(pair.inject(Side::Right, LEFT, &packet), Outcome::Dropped(_)));
    assert_eq!(events(&pair.right, right).last(), Some(&Event::Closed(CloseReason::Violation)));
}

/// `PROTO §5.4`
#[test]
fn an_empty_packet_means_nothing() {
    let (mut pair, left, right, seen) = open(15);
    pair.inject(Side::Right, LEFT, &forge(destination(&seen, 0), 40, &[]));
    assert_eq!(events(&pair.right, right), [Event::Connected]);
    assert!(pair.left.endpoint.session(left).is_some());
    assert_eq!(pair.right.closed(), 0);
}

/// `PROTO §5.11`: ids differ between sessions and ends.
#[test]
fn no_id_is_given_twice() {
    let mut all = Vec::new();
    for seed in 20..30 {
        let (mut pair, left, right, seen) = open(seed);
        all.extend(given(&seen, 0).into_iter().chain(given(&seen, 1)).map(|(_, id)| id));
        assert_carries(&mut pair, left, right);
    }
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!((all.len(), count), (60, 60));
}
