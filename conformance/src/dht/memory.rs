//! This repository's node as a subject, in virtual time.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use wraith_dht_proto::{Limits, MAX_DATAGRAM, SealedDht};
use wraith_proto::crypto::RustCrypto;
use wraith_proto::{Identity, Instant};

use super::subject::{Doors, Subject, Target};
use crate::case::Verdict;
use crate::protocol::Door;

const START: Instant = Instant::from_nanos(1_000_000_000_000);

/// Secrets of so many peers are remembered.
const PEERS: u32 = 64;

/// The node of this repository, in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Core;

impl Target for Core {
    fn name(&self) -> String {
        "wraith-dht-proto in memory".to_owned()
    }

    fn subject(&self, doors: Doors, seed: u64) -> Result<Box<dyn Subject>, Verdict> {
        Ok(Box::new(CoreSubject::new(doors, seed)))
    }
}

/// A node that does what is due whenever somebody looks.
pub(super) struct CoreSubject {
    node: SealedDht,
    /// The seed of its identity.
    pub(super) identity: [u8; 32],
    doors: [SocketAddr; 2],
    now: Instant,
    sent: VecDeque<(Door, Vec<u8>)>,
}

impl CoreSubject {
    pub(super) fn new(doors: Doors, seed: u64) -> Self {
        let [identity, randomness] = ["identity", "node"].map(|purpose| {
            blake3::derive_key("WRAITH conformance dht", &[purpose.as_bytes(), &seed.to_be_bytes()].concat())
        });
        let me = Identity::from_seed(identity);
        let node = SealedDht::new(&Limits::default(), me, &RustCrypto, PEERS, &randomness, START);
        let front = match doors {
            Doors::Alike => [198, 51, 100, 7],
            Doors::PrivateFront => [10, 1, 2, 3],
        };
        let doors = [(front, 4001).into(), ([203, 0, 113, 9], 4002).into()];
        Self { node, identity, doors, now: START, sent: VecDeque::new() }
    }

    /// Does what is due now.
    fn turn(&mut self) {
        self.node.dht_mut().handle_timeout(self.now);
        while self.node.dht_mut().poll_event().is_some() {}
        let mut buffer = [0; MAX_DATAGRAM];
        while let Some((to, len)) = self.node.poll_transmit(self.now, &mut buffer) {
            // Who is named may be anywhere; the bench is at two places.
            let door = [Door::Front, Door::Back].into_iter().find(|&door| self.address(door) == to);
            self.sent.extend(door.map(|door| (door, buffer[..len].to_vec())));
        }
    }
}

impl Subject for CoreSubject {
    fn peer_id(&self) -> [u8; 32] {
        crate::peer::Identity::from_seed(&self.identity).id
    }

    fn address(&self, door: Door) -> SocketAddr {
        self.doors[usize::from(door == Door::Back)]
    }

    fn send(&mut self, from: Door, datagram: &[u8]) -> io::Result<()> {
        let from = self.address(from);
        // What comes of it shows in what it sends.
        let _ = self.node.handle(self.now, from, &mut datagram.to_vec());
        self.turn();
        Ok(())
    }

    fn receive(&mut self, patience: Duration) -> io::Result<Option<(Door, Vec<u8>)>> {
        let end = self.now.saturating_add(patience);
        loop {
            self.turn();
            if let Some(sent) = self.sent.pop_front() {
                return Ok(Some(sent));
            }
            let deadline = self.node.dht().poll_timeout();
            if deadline > end {
                self.now = end;
                return Ok(None);
            }
            self.now = deadline.max(self.now);
        }
    }

    fn settle(&mut self) -> io::Result<()> {
        self.turn();
        Ok(())
    }

    fn now(&self) -> Duration {
        self.now.saturating_since(Instant::MIN)
    }

    fn is_exact(&self) -> bool {
        true
    }
}
