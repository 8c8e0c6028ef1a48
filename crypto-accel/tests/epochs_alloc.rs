//! Sessions with accelerated keys take memory at the handshake and for each epoch, and give it back, on both heaps.

use std::time::Duration;

use bytes::Bytes;
use wraith_crypto_accel::Accel;
use wraith_proto::crypto::Suite;
use wraith_proto::{Endpoint, Event, Instant, Payload, SessionHandle, Source, StreamId};
use wraith_sim::alloc::{Counting, c_heap_bytes, measure};
use wraith_sim::{Host, LinkConfig, Pair, PairConfig};

#[global_allocator]
static ALLOCATOR: Counting = Counting::new();

/// Blocks of the Rust heap that an epoch makes, both ends together: four more than with pure Rust.
const PER_EPOCH: u64 = 10;

/// Sends a datagram as often as the session takes one.
struct Chatter {
    session: Option<SessionHandle>,
    data: Bytes,
}

impl Chatter {
    fn new() -> Self {
        let data = Bytes::from(vec![7; 200]);
        // The first clone makes the reference count.
        drop(data.clone());
        Self { session: None, data }
    }
}

impl Host for Chatter {
    fn on_payload(&mut self, _: Instant, _: Payload<'_>) {}

    fn on_event(&mut self, _: Instant, _: &mut Endpoint, session: SessionHandle, event: Event) {
        if event == Event::Connected {
            self.session = Some(session);
        }
    }

    fn on_turn(&mut self, _: Instant, endpoint: &mut Endpoint) {
        let Some(mut session) = self.session.and_then(|session| endpoint.session(session)) else { return };
        while session.send_datagram(self.data.clone()).is_ok() {}
    }
}

impl Source for Chatter {
    fn fill(&mut self, _: SessionHandle, _: StreamId, _: u64, _: &mut [u8]) -> usize {
        0
    }
}

type Duo = Pair<Chatter, Chatter>;

fn pair(suites: &'static [Suite]) -> Duo {
    let link = LinkConfig::perfect()
        .with_latency(Duration::from_millis(4))
        .with_rate(Some(20_000_000))
        .with_queue_bytes(200_000)
        .with_slots(4096);
    let config = PairConfig::new(1).with_link(link).with_both(|config| {
        config.crypto = &Accel;
        config.transport = config.transport.with_suites(suites).with_rekey_packets(4096);
    });
    Pair::with_hosts(config, Chatter::new(), Chatter::new())
}

/// Lets `epochs` more begin, and the last exchange come to its end.
fn renew(pair: &mut Duo, session: SessionHandle, epochs: u32) {
    let epoch = |pair: &mut Duo| pair.left.endpoint.session(session).expect("it goes on").stats().epoch;
    let end = epoch(pair) + epochs;
    while epoch(pair) < end {
        pair.step();
    }
    pair.run_for(Duration::from_millis(250));
    assert_eq!(epoch(pair), end, "an epoch takes longer than that");
}

/// `PROTO §5.13`. One test, for the C heap has one count for all threads.
#[test]
fn epochs_give_back_the_keys_of_former_ones_on_both_heaps() {
    for suite in [&[Suite::XChaCha20Poly1305], &[Suite::Aes256Gcm]] {
        let mut pair = pair(suite);
        let (left, _) = pair.connect();
        renew(&mut pair, left, 3);
        let mut grown = Vec::with_capacity(5);
        for _ in 0..5 {
            let before = c_heap_bytes();
            let ((), counts) = measure(|| renew(&mut pair, left, 4));
            assert_eq!(
                (counts.allocations, counts.deallocations),
                (4 * PER_EPOCH, 4 * PER_EPOCH),
                "{suite:?}"
            );
            grown.push(c_heap_bytes().zip(before).map_or(0, |(after, before)| after.saturating_sub(before)));
        }
        // The thread that runs the tests allocates, too, but not each time.
        assert_eq!(grown.iter().min(), Some(&0), "{suite:?}: {grown:?}");
    }
}
