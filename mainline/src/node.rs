//! A node of the `BitTorrent` DHT, and what WRAITH asks of it.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, ToSocketAddrs as _};

use futures_lite::{Stream, StreamExt as _};
use mainline::async_dht::AsyncDht;
use mainline::errors::{ConcurrencyError, PutMutableError, PutQueryError};
use mainline::{Dht, Id, MutableItem};
use wraith_proto::{Identity, PeerId};

use crate::addresses::{Tally, is_private};
use crate::error::{FindError, GetError, PublishError, PutError, StartError};
use crate::record::{Record, decode, encode, item_salt, signing_key};
use crate::wait::{Cut, Limit};

/// What info hashes of contents are derived with.
const CONTENT: &str = "WRAITH v1 mainline content";

/// What info hashes of peers are derived with.
const PEER: &str = "WRAITH v1 mainline peer";

/// A node that asks and publishes. It has a thread and a UDP socket of its own, which end with it.
pub struct Mainline {
    dht: AsyncDht,
    /// Whether its network is a private one.
    private: bool,
}

impl fmt::Debug for Mainline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mainline").field("private", &self.private).finish_non_exhaustive()
    }
}

/// What became of a record that was put.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stored {
    /// The key that it is found under, with its salt.
    pub key: [u8; 32],
    /// Nodes that have confirmed.
    pub nodes: u32,
}

impl Mainline {
    /// Makes a node on `bind`, with a port of its own. It enters the network by the `bootstrap` nodes, `host:port` each,
    /// or by the known public ones if there are none. If all that are named are in private networks, so is the DHT, and
    /// it may name addresses there.
    ///
    /// Names are looked up here, which takes as long as the system takes.
    ///
    /// # Errors
    /// [`StartError`]
    pub fn start(bind: Ipv4Addr, bootstrap: &[String]) -> Result<Self, StartError> {
        let mut builder = Dht::builder();
        builder.bind_address(bind).port(0);
        let mut private = false;
        if !bootstrap.is_empty() {
            let nodes = resolve(bootstrap);
            if nodes.is_empty() {
                return Err(StartError::NoBootstrap);
            }
            private = nodes.iter().all(|node| is_private(*node.ip()));
            builder.bootstrap(&nodes);
        }
        let dht = builder.build().map_err(StartError::Io)?.as_async();
        Ok(Self { dht, private })
    }

    /// Says that this machine serves the content with this id on UDP `port`. It is forgotten after a while (BEP 5 nodes
    /// keep it for half an hour or so), so it wants to be said again.
    ///
    /// # Errors
    /// [`PublishError`]
    pub fn publish_content(&self, hash: &[u8; 32], port: u16, limit: Limit<'_>) -> Result<(), PublishError> {
        self.publish(info_hash(CONTENT, hash), port, limit)
    }

    /// Where somebody says to serve the content with this id, the likeliest first. Nothing says who that is: the bytes
    /// alone can prove it.
    ///
    /// # Errors
    /// [`FindError`]
    pub fn find_content(&self, hash: &[u8; 32], limit: Limit<'_>) -> Result<Vec<SocketAddrV4>, FindError> {
        self.find(info_hash(CONTENT, hash), limit)
    }

    /// Says that this peer is on this machine at UDP `port`, as [`Mainline::publish_content`] does for a content.
    ///
    /// # Errors
    /// [`PublishError`]
    pub fn publish_peer(&self, peer: &PeerId, port: u16, limit: Limit<'_>) -> Result<(), PublishError> {
        self.publish(info_hash(PEER, peer.as_bytes()), port, limit)
    }

    /// Where this peer is said to be, the likeliest first. A session has to prove it.
    ///
    /// # Errors
    /// [`FindError`]
    pub fn find_peer(&self, peer: &PeerId, limit: Limit<'_>) -> Result<Vec<SocketAddrV4>, FindError> {
        self.find(info_hash(PEER, peer.as_bytes()), limit)
    }

    /// Stores the record `salt` of `identity`, in the place of one with a lower sequence number.
    ///
    /// # Errors
    /// [`PutError`]
    pub fn put_record(
        &self,
        identity: &Identity,
        salt: u64,
        seq: u64,
        value: &[u8],
        limit: Limit<'_>,
    ) -> Result<Stored, PutError> {
        self.put(identity, salt, None, seq, value, limit)
    }

    /// The same in the place of the record with sequence number `expected` alone: nodes that have another one refuse it. Nodes
    /// that have none take it, as BEP 44 has it, so it says nothing where the record is not known.
    ///
    /// # Errors
    /// [`PutError`]
    pub fn replace_record(
        &self,
        identity: &Identity,
        salt: u64,
        expected: u64,
        seq: u64,
        value: &[u8],
        limit: Limit<'_>,
    ) -> Result<Stored, PutError> {
        self.put(identity, salt, Some(expected), seq, value, limit)
    }

    fn put(
        &self,
        identity: &Identity,
        salt: u64,
        expected: Option<u64>,
        seq: u64,
        value: &[u8],
        limit: Limit<'_>,
    ) -> Result<Stored, PutError> {
        // There is no record with a higher one.
        let expected = expected.map(i64::try_from).transpose().map_err(|_| PutError::Conflict)?;
        let (item_seq, item) = encode(identity, salt, seq, value)?;
        let item = MutableItem::new(signing_key(identity), &item, item_seq, Some(&item_salt(salt)));
        let key = *item.key();
        match limit.wait(self.dht.put_mutable(item, expected))? {
            Ok(outcome) => Ok(Stored { key, nodes: outcome.stored_at }),
            Err(PutMutableError::Concurrency(ConcurrencyError::NotMostRecent)) => Err(PutError::Outdated),
            Err(PutMutableError::Concurrency(ConcurrencyError::CasFailed)) => Err(PutError::Conflict),
            Err(PutMutableError::Query(PutQueryError::NoClosestNodes)) => Err(PutError::NoNodes),
            Err(_) => Err(PutError::NotStored),
        }
    }

    /// The record `salt` under `key`, which is what [`record_key`](crate::record_key) gives its owner: of all that nodes
    /// have, the one with the highest sequence number that the owner made. Whose it is, the record says; compare
    /// [`Record::peer`] with the peer that you mean.
    ///
    /// # Errors
    /// [`GetError`]
    pub fn get_record(&self, key: &[u8; 32], salt: u64, limit: Limit<'_>) -> Result<Record, GetError> {
        let items = self.dht.get_mutable(key, Some(&item_salt(salt)), None);
        let mut newest: Option<Record> = None;
        let mut forged = false;
        let cut = each(items, limit, |item| {
            let record = decode(key, salt, item.seq(), item.value());
            forged |= record.is_none();
            newest = newest.take().max_by_seq(record);
        });
        match (newest, cut) {
            (_, Err(Cut::Stopped)) => Err(GetError::Stopped),
            (Some(record), _) => Ok(record),
            (None, _) if forged => Err(GetError::Forged),
            (None, Err(Cut::Deadline)) => Err(GetError::Deadline),
            (None, Ok(())) if self.knows_nobody(limit)? => Err(GetError::NoNodes),
            (None, Ok(())) => Err(GetError::NotFound),
        }
    }

    fn publish(&self, info_hash: Id, port: u16, limit: Limit<'_>) -> Result<(), PublishError> {
        match limit.wait(self.dht.announce_peer(info_hash, Some(port)))? {
            Ok(_) => Ok(()),
            Err(PutQueryError::NoClosestNodes) => Err(PublishError::NoNodes),
            Err(_) => Err(PublishError::NotStored),
        }
    }

    fn find(&self, info_hash: Id, limit: Limit<'_>) -> Result<Vec<SocketAddrV4>, FindError> {
        let mut tally = Tally::new(self.private);
        let cut = each(self.dht.get_peers(info_hash), limit, |answer| tally.count(&answer));
        match cut {
            Err(Cut::Deadline) if !tally.is_empty() => {}
            Ok(()) if tally.is_empty() && self.knows_nobody(limit)? => return Err(FindError::NoNodes),
            _ => cut?,
        }
        Ok(tally.best())
    }

    /// Whether no node has answered yet.
    fn knows_nobody(&self, limit: Limit<'_>) -> Result<bool, Cut> {
        limit.wait(self.dht.to_bootstrap()).map(|nodes| nodes.is_empty())
    }
}

/// Hands over what comes out of a stream, until its end.
fn each<T>(
    mut stream: impl Stream<Item = T> + Unpin,
    limit: Limit<'_>,
    mut take: impl FnMut(T),
) -> Result<(), Cut> {
    while let Some(item) = limit.wait(stream.next())? {
        take(item);
    }
    Ok(())
}

/// The newer of two records.
trait Newest {
    fn max_by_seq(self, other: Self) -> Self;
}

impl Newest for Option<Record> {
    fn max_by_seq(self, other: Self) -> Self {
        match (self, other) {
            (Some(known), Some(new)) if new.seq > known.seq => Some(new),
            (known, new) => known.or(new),
        }
    }
}

/// Where to announce what, and to look for it: 20 bytes, which stand for nothing else.
fn info_hash(context: &str, of: &[u8; 32]) -> Id {
    let [first @ .., _, _, _, _, _, _, _, _, _, _, _, _] = blake3::derive_key(context, of);
    Id::from(first)
}

/// The IPv4 addresses of nodes.
fn resolve(nodes: &[String]) -> Vec<SocketAddrV4> {
    let addrs = nodes.iter().filter_map(|node| node.to_socket_addrs().ok()).flatten();
    addrs
        .filter_map(|addr| match addr {
            SocketAddr::V4(addr) => Some(addr),
            SocketAddr::V6(_) => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn info_hashes_of_contents_and_peers_are_derived_and_differ() {
        let bytes = [7; 32];
        let expected = blake3::derive_key("WRAITH v1 mainline content", &bytes);
        assert_eq!(info_hash(CONTENT, &bytes).as_bytes(), expected.first_chunk::<20>().unwrap());
        let expected = blake3::derive_key("WRAITH v1 mainline peer", &bytes);
        assert_eq!(info_hash(PEER, &bytes).as_bytes(), expected.first_chunk::<20>().unwrap());
    }

    #[test]
    fn a_bootstrap_node_without_an_ipv4_address_is_no_way_in() {
        for wrong in ["[::1]:6881", "127.0.0.1", ""] {
            let started = Mainline::start(Ipv4Addr::LOCALHOST, &[wrong.to_owned()]);
            assert!(matches!(started, Err(StartError::NoBootstrap)), "{wrong}");
        }
        let named = ["127.0.0.1:5".to_owned(), "[::1]:6".to_owned()];
        assert_eq!(resolve(&named), ["127.0.0.1:5".parse().unwrap()]);
    }
}
