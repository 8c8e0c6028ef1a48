//! Datagrams that a host of the simulation refuses to send.

use std::net::SocketAddr;

use wraith_sim::Side;

use crate::support::{SECOND, config, connected, line, size, transfer};

/// `PROTO §8.16`: it costs nothing but the size, and only those whom it concerns.
#[test]
fn a_refusal_reaches_the_sessions_of_its_address_and_no_others() {
    let (mut pair, left, _) = connected(config(1, line(1_472), line(1_472)));
    pair.run_for(5 * SECOND);
    let to = pair.left.endpoint.session(left).unwrap().remote();
    let elsewhere = [SocketAddr::new(to.ip(), to.port() + 1), "192.0.2.9:9".parse().unwrap()];
    for (other, len) in elsewhere.into_iter().zip([1_472, 1_472]).chain([(to, 1_473), (to, usize::MAX)]) {
        let now = pair.now();
        pair.left.endpoint.too_large(now, other, len);
        assert_eq!(size(&mut pair, Side::Left, left), 1_472, "{other}, {len}");
    }
    let now = pair.now();
    pair.left.endpoint.too_large(now, to, 1_472);
    assert_eq!(size(&mut pair, Side::Left, left), 1_200);
    assert_eq!(pair.left.endpoint.stats().datagrams_refused, 5);
    // The path itself is as it was: a minute later the size is asked for again.
    transfer(&mut pair, left, 100_000, 10 * SECOND);
    assert!((1_440..1_472).contains(&size(&mut pair, Side::Left, left)));
    for _ in 0..70 {
        transfer(&mut pair, left, 1_000, 10 * SECOND);
        pair.run_for(SECOND);
    }
    assert_eq!(size(&mut pair, Side::Left, left), 1_472);
}

/// Whose datagrams every path carries is not concerned, and is not looked at.
#[test]
fn a_session_that_sends_nothing_large_is_not_concerned() {
    let (mut pair, left, _) = connected(config(2, line(1_200), line(1_200)).with_both(|config| {
        config.transport = config.transport.with_mtu_search(false);
    }));
    transfer(&mut pair, left, 100_000, 10 * SECOND);
    let to = pair.left.endpoint.session(left).unwrap().remote();
    let now = pair.now();
    pair.left.endpoint.too_large(now, to, 1_200);
    assert_eq!(size(&mut pair, Side::Left, left), 1_200);
    let took = transfer(&mut pair, left, 100_000, 10 * SECOND);
    assert!(took < SECOND, "{took:?}");
}
