//! Unreliable datagrams of a session whose path changes.

use bytes::Bytes;
use wraith_proto::{DatagramError, Event};
use wraith_sim::Side;

use crate::support::{MINUTE, SECOND, config, connected, line, send, size};

/// `PROTO §7.9`, `PROTO §8.16`: queued ones that no longer fit are dropped and counted, and hold nothing up.
#[test]
fn datagrams_follow_the_path_and_those_that_no_longer_fit_are_counted() {
    let (mut pair, left, _) = connected(config(1, line(1_472), line(1_472)));
    pair.run_for(5 * SECOND);
    let mut session = pair.left.endpoint.session(left).unwrap();
    assert_eq!(session.max_datagram(), 1_472 - 34);
    for len in [1_438, 100, 1_438, 1_200, 200] {
        session.send_datagram(Bytes::from(vec![7; len])).unwrap();
    }
    let now = pair.now();
    pair.left.endpoint.session(left).unwrap().path_mtu_hint(now, 1_234);
    let mut session = pair.left.endpoint.session(left).unwrap();
    assert_eq!(session.max_datagram(), 1_200);
    let refused = session.send_datagram(Bytes::from(vec![7; 1_201]));
    assert_eq!(refused, Err(DatagramError::TooLarge { max: 1_200 }));
    pair.run_for(SECOND);
    assert_eq!(pair.right.host.datagrams, [100, 1_200, 200]);
    assert_eq!(pair.left.endpoint.stats().datagrams_unfit, 2);
    assert_eq!(pair.left.host.count(Event::MaxDatagramChanged), 2);
}

/// A black hole, too, ends in datagrams that fit.
#[test]
fn datagrams_arrive_again_behind_a_black_hole() {
    let (mut pair, left, _) = connected(config(2, line(1_472), line(1_472)));
    pair.run_for(5 * SECOND);
    send(&mut pair, left, 10_000_000);
    pair.run_for(SECOND / 2);
    pair.set_link(Side::Right, line(1_252));
    let done = pair.run_until(|pair| pair.right.host.received == 10_000_000, MINUTE);
    assert!(done, "{} bytes", pair.right.host.received);
    let max = pair.left.endpoint.session(left).unwrap().max_datagram();
    assert_eq!(max, usize::from(size(&mut pair, Side::Left, left)) - 34);
    pair.left.endpoint.session(left).unwrap().send_datagram(Bytes::from(vec![7; max])).unwrap();
    pair.run_for(SECOND);
    assert_eq!(pair.right.host.datagrams, [max]);
}
