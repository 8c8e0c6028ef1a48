//! Pairs that search their paths.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use wraith_proto::{Dir, Instant, SessionHandle};
use wraith_sim::{LinkConfig, Pair, PairConfig, Side, Transparent, Verdict};

use crate::bulk::Bulk;

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const MINUTE: Duration = Duration::from_mins(1);

pub(crate) type BulkPair = Pair<Bulk, Bulk>;

/// 10 ms each way, with room for `mtu` bytes.
pub(crate) fn link(mtu: usize) -> LinkConfig {
    LinkConfig::perfect().with_latency(Duration::from_millis(10)).with_mtu(mtu)
}

/// The same at 50 Mbit/s.
pub(crate) fn line(mtu: usize) -> LinkConfig {
    link(mtu).with_rate(Some(50_000_000)).with_queue_bytes(250_000)
}

/// A pair of which both ends search, without encryption.
pub(crate) fn config(seed: u64, to_right: LinkConfig, to_left: LinkConfig) -> PairConfig {
    let mut config = PairConfig::new(seed).with_both(|config| {
        config.crypto = Transparent::CHECKED;
        config.transport = config.transport.with_mtu_search(true);
    });
    (config.to_right, config.to_left) = (to_right, to_left);
    config
}

pub(crate) fn connected(config: PairConfig) -> (BulkPair, SessionHandle, SessionHandle) {
    let mut pair = Pair::with_hosts(config, Bulk::default(), Bulk::default());
    let (left, right) = pair.connect();
    (pair, left, right)
}

/// The datagram size of one end.
pub(crate) fn size(pair: &mut BulkPair, side: Side, session: SessionHandle) -> u16 {
    let endpoint = match side {
        Side::Left => &mut pair.left.endpoint,
        Side::Right => &mut pair.right.endpoint,
    };
    endpoint.session(session).expect("the session lives").stats().datagram_size
}

/// Sends `len` bytes from left to right.
pub(crate) fn send(pair: &mut BulkPair, session: SessionHandle, len: u64) {
    let mut session = pair.left.endpoint.session(session).expect("the session lives");
    let stream = session.open(Dir::Uni).expect("the peer allows it");
    session.attach(stream, len).expect("the stream is new");
}

/// Sends `len` bytes and runs until all were delivered, at most `limit`; returns the time that it took.
pub(crate) fn transfer(pair: &mut BulkPair, session: SessionHandle, len: u64, limit: Duration) -> Duration {
    let (start, before) = (pair.now(), pair.right.host.received);
    let streams = pair.left.host.delivered();
    send(pair, session, len);
    let done = pair.run_until(|pair| pair.left.host.delivered() > streams, limit);
    assert!(done, "{} of {len} bytes after {limit:?}", pair.right.host.received - before);
    assert_eq!(pair.right.host.received - before, len, "each byte once");
    pair.now().saturating_since(start)
}

/// A datagram that was sent: by whom, when, and its size.
pub(crate) type Sent = Rc<RefCell<Vec<(u32, Instant, usize)>>>;

/// Keeps the sizes of all datagrams from now on.
pub(crate) fn watch(pair: &mut BulkPair) -> Sent {
    let sent = Sent::default();
    let keep = Rc::clone(&sent);
    pair.intercept(move |passing| {
        keep.borrow_mut().push((passing.sender, passing.at, passing.bytes.len()));
        Verdict::Pass
    });
    sent
}
