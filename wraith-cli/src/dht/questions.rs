//! What clients ask.

use std::net::SocketAddr;

use wraith_dht_proto::{
    Conflict, Dht, Id, Kind, Outcome, QueryId, Record, Signed, StartError, sign, signed_key,
};
use wraith_proto::{Identity, Instant, PeerId};

use super::client::Question;
use super::whereabouts::{self, SALT};
use crate::address::Target;

type Begun = Result<Vec<QueryId>, StartError>;

/// A value to be stored, or one that its owner signs.
pub(crate) struct Put {
    pub(super) value: Vec<u8>,
    pub(super) signer: Option<Signer>,
    pub(super) expected: Option<u64>,
    /// Nodes that keep it, and what others refused it for.
    pub(super) stored: Option<(u8, Option<Conflict>)>,
}

/// Who signs a record, and which.
pub(crate) struct Signer {
    pub(super) identity: Identity,
    pub(super) salt: u64,
    pub(super) seq: u64,
}

impl Put {
    /// Lends the record; [`None`] if the value is too long.
    pub(super) fn with<T>(&self, take: impl FnOnce(&Record<'_>) -> T) -> Option<T> {
        let value = &self.value[..];
        let Some(Signer { identity, salt, seq }) = &self.signer else {
            return (value.len() <= Kind::Value.max_value()).then(|| take(&Record::Value(value)));
        };
        let signature = sign(identity, *salt, *seq, value)?;
        let peer = identity.peer_id();
        let signed = Signed { peer: peer.as_bytes(), salt: *salt, seq: *seq, signature: &signature, value };
        Some(take(&Record::Signed(signed)))
    }
}

impl Question for Put {
    fn begin(&mut self, dht: &mut Dht, now: Instant) -> Begun {
        let put = self.with(|record| dht.put(record, self.expected, now));
        put.unwrap_or(Err(StartError::Busy)).map(|id| vec![id])
    }

    fn take(&mut self, outcome: &Outcome<'_>) -> bool {
        if let Outcome::Stored { nodes, conflict } = outcome {
            self.stored = Some((*nodes, *conflict));
        }
        true
    }
}

/// A record that was found; it is genuine.
pub(super) struct Found {
    pub(super) value: Vec<u8>,
    /// Who signed it, which record of that peer it is, and its sequence number.
    pub(super) signed: Option<(PeerId, u64, u64)>,
    pub(super) hops: u8,
}

/// The record under a key, of whichever of these kinds.
pub(super) struct Get {
    pub(super) key: Id,
    pub(super) kinds: &'static [Kind],
    pub(super) found: Option<Found>,
}

impl Question for Get {
    fn begin(&mut self, dht: &mut Dht, now: Instant) -> Begun {
        self.kinds.iter().map(|&kind| dht.get(self.key, kind, now)).collect()
    }

    fn take(&mut self, outcome: &Outcome<'_>) -> bool {
        let Outcome::Found { record, hops } = outcome else { return false };
        let signed = match record {
            Record::Value(_) => None,
            // Whoever signed has a valid key.
            Record::Signed(signed) => {
                PeerId::from_bytes(*signed.peer).ok().map(|peer| (peer, signed.salt, signed.seq))
            }
        };
        self.found = Some(Found { value: record.value().to_vec(), signed, hops: *hops });
        true
    }
}

/// To tell the nodes nearest to a content that this one has it.
pub(super) struct Announce {
    pub(super) key: Id,
    /// Nodes that keep that.
    pub(super) nodes: u8,
}

impl Question for Announce {
    fn begin(&mut self, dht: &mut Dht, now: Instant) -> Begun {
        Ok(vec![dht.announce(self.key, now)?])
    }

    fn take(&mut self, outcome: &Outcome<'_>) -> bool {
        if let Outcome::Stored { nodes, .. } = outcome {
            self.nodes = *nodes;
        }
        true
    }
}

/// Who provides a content.
pub(crate) struct FindProviders {
    pub(crate) key: Id,
    pub(crate) providers: Vec<Target>,
}

impl Question for FindProviders {
    fn begin(&mut self, dht: &mut Dht, now: Instant) -> Begun {
        Ok(vec![dht.get(self.key, Kind::Providers, now)?])
    }

    fn take(&mut self, outcome: &Outcome<'_>) -> bool {
        if let Outcome::Providers { providers, .. } = outcome {
            // What is no key provides nothing.
            let valid = |node: wraith_dht_proto::NodeRef| {
                Some(Target { id: PeerId::from_bytes(node.key).ok()?, addr: node.address })
            };
            self.providers = providers.iter().filter_map(valid).collect();
        }
        true
    }
}

/// Where a peer is: the node of that key, and what the peer says of itself.
pub(super) struct FindPeer {
    pub(super) peer: PeerId,
    /// Where it has just answered as a node.
    pub(super) answered: Option<SocketAddr>,
    /// What its newest record says.
    pub(super) said: Vec<SocketAddr>,
}

impl Question for FindPeer {
    fn begin(&mut self, dht: &mut Dht, now: Instant) -> Begun {
        let node = dht.find(Id::of_node(self.peer.as_bytes()), now)?;
        let record = dht.get(signed_key(&self.peer, SALT), Kind::Signed, now)?;
        Ok(vec![node, record])
    }

    fn take(&mut self, outcome: &Outcome<'_>) -> bool {
        match outcome {
            Outcome::Nodes(closest) => {
                let mut nodes = closest.iter();
                let node = nodes.find(|node| node.key == *self.peer.as_bytes());
                self.answered = node.map(|node| node.address);
            }
            Outcome::Found { record, .. } => self.said = whereabouts::parse(record.value()),
            _ => {}
        }
        false
    }
}
