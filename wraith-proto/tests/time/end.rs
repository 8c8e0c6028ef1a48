//! The last seconds of the clock, 584 years after its origin.

use std::time::Duration;

use bytes::Bytes;
use wraith_proto::{
    Budget, Config, Ecn, Endpoint, Event, Identity, Instant, NoSource, OneShot, Peer, Progress, RxMeta,
    SessionHandle, Via,
};
use wraith_sim::{LEFT, RIGHT};

use crate::common::{SMALL, millis};

/// More than any turn here takes.
const BUDGET: Budget = Budget(10_000);

fn endpoint(seed: u8, now: Instant) -> Endpoint {
    let mut config = Config::new(Identity::from_seed([seed; 32]), b"end");
    config.limits = SMALL;
    config.transport = config
        .transport
        .with_keep_alive(Some(Duration::from_secs(1)))
        .with_redial(true)
        .with_rekey_interval(Duration::ZERO)
        .with_mtu_search(true);
    Endpoint::new(config, [seed + 100; 32], now).expect("it fits")
}

/// All that an end has to do and to say.
fn turn(endpoint: &mut Endpoint, now: Instant) -> (Vec<Vec<u8>>, Vec<(SessionHandle, Event)>) {
    assert_eq!(endpoint.handle_timeout(now, BUDGET), Progress::Done, "timers without end");
    let (mut sent, mut events) = (Vec::new(), Vec::new());
    while let Some(event) = endpoint.poll_event() {
        events.push(event);
    }
    loop {
        let mut buffer = [0; 9000];
        let mut queue = OneShot::new(&mut buffer);
        let _ = endpoint.poll_transmit(now, &mut queue, &mut NoSource, Budget(1));
        let Some((_, datagram)) = queue.take() else { return (sent, events) };
        sent.push(datagram.to_vec());
        assert!(sent.len() < 10_000, "datagrams without end");
    }
}

/// `PROTO §8.9` does not say what comes then; nothing panics, and no timer fires for ever.
#[test]
fn times_stop_at_the_end_of_the_clock() {
    let end = Instant::from_nanos(u64::MAX);
    for ahead in [millis(0), millis(15), millis(100), millis(3_000), millis(40_000)] {
        let mut now = end.saturating_sub(ahead);
        let (mut left, mut right) = (endpoint(1, now), endpoint(2, now));
        let peer = Peer { addr: RIGHT, id: Some(right.config().identity.peer_id()) };
        let session = left.connect(now, peer, Via::default()).expect("room");
        let mut connected = 0;
        for round in 0..600 {
            let (from_left, mut events) = turn(&mut left, now);
            let (from_right, more) = turn(&mut right, now);
            events.extend(more);
            connected += events.iter().filter(|(_, event)| *event == Event::Connected).count();
            now = now.saturating_add(millis(100));
            // From time to time nothing arrives, and the last rounds are all at the end.
            if round % 7 != 6 {
                deliver(&mut right, LEFT, from_left, now);
                deliver(&mut left, RIGHT, from_right, now);
            }
            if let Some(mut session) = left.session(session) {
                // Blocked, or over.
                let _ = session.send_datagram(Bytes::from_static(b"to the end"));
            }
        }
        assert_eq!(now, end);
        assert!(connected >= 2, "{ahead:?} before the end");
        for endpoint in [left, right] {
            let late = endpoint.poll_timeout().is_none_or(|deadline| deadline.at >= end);
            assert!(late, "{:?}", endpoint.poll_timeout());
        }
    }
}

fn deliver(endpoint: &mut Endpoint, from: std::net::SocketAddr, datagrams: Vec<Vec<u8>>, now: Instant) {
    for mut datagram in datagrams {
        let meta = RxMeta { from, to: None, via: Via::default(), ecn: Ecn::NotEct };
        let mut received = endpoint.handle(now, &meta, &mut datagram);
        while received.next().is_some() {}
    }
}
