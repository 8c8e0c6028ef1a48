//! Sessions whose expanded keys make room for each other's take memory on neither heap.

use std::time::Duration;

use bytes::Bytes;
use wraith_crypto_accel::Accel;
use wraith_proto::crypto::Suite;
use wraith_proto::{Endpoint, Event, Instant, Payload, SessionHandle, Source, StreamId};
use wraith_sim::alloc::{Counting, Counts, c_heap_bytes, measure};
use wraith_sim::{Host, LinkConfig, Pair, PairConfig};

#[global_allocator]
static ALLOCATOR: Counting = Counting::new();

const SESSIONS: usize = 6;

/// Sends datagrams on all sessions in turn.
struct Turns {
    sessions: Vec<SessionHandle>,
    data: Bytes,
    turn: usize,
    received: u64,
}

impl Turns {
    fn new() -> Self {
        let data = Bytes::from(vec![7; 200]);
        // The first clone makes the reference count.
        drop(data.clone());
        Self { sessions: Vec::with_capacity(SESSIONS), data, turn: 0, received: 0 }
    }
}

impl Host for Turns {
    fn on_payload(&mut self, _: Instant, payload: Payload<'_>) {
        if let Payload::Datagram { data, .. } = payload {
            assert_eq!(data, &self.data[..]);
            self.received += 1;
        }
    }

    fn on_event(&mut self, _: Instant, _: &mut Endpoint, session: SessionHandle, event: Event) {
        if event == Event::Connected {
            self.sessions.push(session);
        }
    }

    fn on_turn(&mut self, _: Instant, endpoint: &mut Endpoint) {
        if self.sessions.len() == SESSIONS {
            self.turn += 1;
            let session = self.sessions[self.turn % SESSIONS];
            let _ = endpoint.session(session).expect("it goes on").send_datagram(self.data.clone());
        }
    }
}

impl Source for Turns {
    fn fill(&mut self, _: SessionHandle, _: StreamId, _: u64, _: &mut [u8]) -> usize {
        0
    }
}

/// One test, for the C heap has one count for all threads.
#[test]
fn sessions_in_turn_whose_keys_make_room_for_each_other_grow_neither_heap() {
    for suite in [&[Suite::XChaCha20Poly1305], &[Suite::Aes256Gcm]] {
        let link = LinkConfig::perfect()
            .with_latency(Duration::from_millis(4))
            .with_rate(Some(20_000_000))
            .with_queue_bytes(200_000)
            .with_slots(4096);
        let config = PairConfig::new(1).with_link(link).with_both(|config| {
            config.crypto = &Accel;
            config.limits.expanded_keys = 2;
            config.transport = config.transport.with_suites(suite);
        });
        let mut pair = Pair::with_hosts(config, Turns::new(), Turns::new());
        for _ in 0..SESSIONS {
            pair.connect();
        }
        pair.run_for(Duration::from_secs(2));
        let mut grown = Vec::with_capacity(5);
        for _ in 0..5 {
            let missed = pair.right.endpoint.stats().keys_missed;
            let (goal, before) = (pair.right.host.received + 2000, c_heap_bytes());
            let enough = |pair: &Pair<Turns, Turns>| pair.right.host.received >= goal;
            let (done, counts) = measure(|| pair.run_until(enough, Duration::from_mins(10)));
            assert!(done, "{suite:?}: {} datagrams", pair.right.host.received);
            assert_eq!(counts, Counts::default(), "{suite:?}");
            grown.push(c_heap_bytes().zip(before).map_or(0, |(after, before)| after.saturating_sub(before)));
            assert!(pair.right.endpoint.stats().keys_missed - missed > 1000, "{suite:?}");
        }
        // The thread that runs the tests allocates, too, but not each time.
        assert_eq!(grown.iter().min(), Some(&0), "{suite:?}: {grown:?}");
    }
}
