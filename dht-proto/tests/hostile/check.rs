//! What holds for any bytes that come to a node of the DHT, though their seal is good. `fuzz/` takes this file, too.

use std::net::SocketAddr;
use std::time::Duration;

use wraith_dht_proto::{
    Ask, Dht, Header, Held, Id, Kind, Limits, MAX_NODES, MAX_UNSEALED, NodeRef, RateLimits, Record, Reply,
    Transaction, value_key, write_ask,
};
use wraith_proto::wire::Writer;
use wraith_proto::{Identity, Instant};

const START: Instant = Instant::from_nanos(1_000_000_000_000);

/// Requests that wait for an answer, pings and answers that wait to be sent: no node has more to send at once.
const MOST: usize = 64;

const LIMITS: Limits = Limits {
    contacts: 40,
    queries: 2,
    records: 6,
    record_bytes: 4 << 10,
    rate: RateLimits { all: 200, per_prefix: 100 },
    strangers: RateLimits { all: 100, per_prefix: 50 },
};

/// What a run has seen, so that a test can tell whether the seeds get anywhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Seen {
    /// Datagrams that changed something.
    pub(crate) taken: usize,
    /// Datagrams that were dropped.
    pub(crate) dropped: usize,
    /// Datagrams that the node sent: requests, answers, tokens.
    pub(crate) sent: [usize; 3],
    /// Contacts and records at the end.
    pub(crate) kept: [usize; 2],
}

/// Asserts that headers and messages are read without harm, and that a node that is told these bytes stays within its
/// limits and sends nothing malformed.
pub(crate) fn check(bytes: &[u8]) -> Seen {
    read(bytes);
    let mut run = Run::new();
    let mut rest = bytes;
    while let Some((step, behind)) = Step::read(rest) {
        rest = behind;
        run.step(&step);
        run.settle();
    }
    run.seen.kept = [run.node.contact_count(), run.node.record_count()];
    run.seen
}

/// Reads the bytes as each thing that they may be. What a request says is written again as it stood there.
fn read(bytes: &[u8]) {
    if let Ok((header, len)) = Header::parse(bytes) {
        let mut copy = [0; 25];
        let mut w = Writer::new(&mut copy);
        header.write(&mut w).unwrap();
        assert_eq!(w.written(), &bytes[..len]);
    }
    if let Ok(ask) = Ask::parse(bytes) {
        let mut copy = [0; MAX_UNSEALED];
        let mut w = Writer::new(&mut copy);
        write_ask(&mut w, &ask).unwrap();
        let (said, zeros) = bytes.split_at(w.len());
        assert!(w.written() == said && zeros.iter().all(|&byte| byte == 0));
    }
    if let Ok((_, Reply::Found { record, nodes, .. })) = Reply::parse(bytes) {
        assert!(nodes.len() <= MAX_NODES && nodes.iter().count() == nodes.len());
        if let Held::Providers(nodes) = record {
            assert!(nodes.len() <= MAX_NODES && nodes.iter().count() == nodes.len());
        }
    }
}

/// One thing that happens, of two bytes and as many as these say.
struct Step<'a> {
    what: u8,
    bytes: &'a [u8],
}

impl<'a> Step<'a> {
    /// The first byte is what, the second one of how many bytes: up to 127 of so many, above that of 16 for each more.
    fn read(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (&[what, len], rest) = bytes.split_first_chunk()?;
        let len = if len < 128 { usize::from(len) } else { usize::from(len - 127) * 16 };
        let (bytes, rest) = rest.split_at(len.min(rest.len()));
        Some((Self { what, bytes }, rest))
    }
}

/// A request of the node that nobody has answered.
#[derive(Clone, Copy)]
struct Open {
    to: NodeRef,
    transaction: Transaction,
}

/// A node among hostile ones.
struct Run {
    node: Dht,
    now: Instant,
    open: Vec<Open>,
    /// Tokens that it gave, with the address that they are for.
    tokens: Vec<(SocketAddr, [u8; 16])>,
    /// Write tokens that it gave, with whom they are for.
    write_tokens: Vec<(NodeRef, [u8; 8])>,
    seen: Seen,
}

impl Run {
    fn new() -> Self {
        let me = Identity::from_seed([1; 32]).peer_id();
        let node = Dht::new(&LIMITS, &me, &[2; 32], START);
        Self {
            node,
            now: START,
            open: Vec::new(),
            tokens: Vec::new(),
            write_tokens: Vec::new(),
            seen: Seen::default(),
        }
    }

    fn step(&mut self, step: &Step<'_>) {
        let Step { what, bytes } = *step;
        match what >> 5 {
            // A datagram as it is.
            0 => self.deliver(somebody(what), bytes),
            // A request without a token, as long as it has to be.
            1 => {
                let mut datagram = request([0; 16], bytes);
                datagram.resize(datagram.len().max(MAX_UNSEALED), 0);
                self.deliver(somebody(what), &datagram);
            }
            // A request with the latest token that there is for its address, and to store with the latest write token.
            2 => {
                let from = somebody(what);
                let known = self.tokens.iter().rev().find(|(address, _)| *address == from.address);
                let token = known.map_or([3; 16], |(_, token)| *token);
                let mut datagram = request(token, bytes);
                let known = self.write_tokens.iter().rev().find(|(node, _)| *node == from);
                if let (Some(&4), Some((_, write_token)), Some(place)) =
                    (bytes.first(), known, datagram.get_mut(26..34))
                {
                    place.copy_from_slice(write_token);
                }
                self.deliver(from, &datagram);
            }
            // An answer, or a token, to one of the requests that wait.
            3 | 4 if !self.open.is_empty() => {
                let Open { to, transaction } = self.open[usize::from(what & 31) % self.open.len()];
                let first = if what >> 5 == 3 { 0x63 } else { 0x64 };
                self.deliver(to, &[&[first], &transaction[..], bytes].concat());
            }
            // Time.
            5 => {
                let wait = bytes.iter().fold(u64::from(what & 31), |wait, byte| wait << 4 | u64::from(*byte));
                self.now = self.now.saturating_add(Duration::from_millis(wait.min(10_000_000)));
                self.node.handle_timeout(self.now);
            }
            // Something to be known of the network: whom to begin with.
            6 => self.node.bootstrap(somebody(what), self.now),
            // What its own application wants. It may be too much.
            _ => self.wish(what & 31, bytes),
        }
    }

    fn wish(&mut self, what: u8, bytes: &[u8]) {
        let mut target = [what; 32];
        target.iter_mut().zip(bytes).for_each(|(place, byte)| *place = *byte);
        let (target, now) = (Id::from_bytes(target), self.now);
        let _ = match what % 6 {
            0 => self.node.find(target, now),
            1 => self.node.get(target, Kind::Signed, now),
            2 => self.node.get(target, Kind::Providers, now),
            3 => self.node.announce(target, now),
            4 => self.node.get(value_key(bytes), Kind::Value, now),
            _ => self.node.put(&Record::Value(bytes), None, now),
        };
    }

    fn deliver(&mut self, from: NodeRef, datagram: &[u8]) {
        match self.node.handle_unsealed(self.now, from, datagram) {
            Ok(()) => self.seen.taken += 1,
            Err(_) => self.seen.dropped += 1,
        }
    }

    /// Takes all that the node has to say, and looks whether it has grown beyond its limits.
    fn settle(&mut self) {
        let mut buffer = [0; MAX_UNSEALED];
        for sent in 0.. {
            let Some(transmit) = self.node.poll_transmit(self.now, &mut buffer) else { break };
            assert!(sent < MOST, "it sends without end");
            let datagram = &buffer[..transmit.len];
            let (header, len) = Header::parse(datagram).unwrap();
            assert!(len == transmit.header && transmit.to.port() != 0);
            let to = NodeRef { key: transmit.key.unwrap_or_default(), address: transmit.to };
            match header {
                Header::Request { transaction, token } => {
                    Ask::parse(&datagram[len..]).unwrap();
                    assert!(token != [0; 16] || datagram.len() == MAX_UNSEALED);
                    assert!(!self.open.iter().any(|open| open.transaction == transaction));
                    self.open.push(Open { to, transaction });
                    self.seen.sent[0] += 1;
                }
                Header::Answer { .. } => {
                    let (token, reply) = Reply::parse(&datagram[len..]).unwrap();
                    self.tokens.push((to.address, token));
                    if let Reply::Found { write_token, .. } = reply {
                        self.write_tokens.push((to, write_token));
                    }
                    self.seen.sent[1] += 1;
                }
                Header::Token { token, .. } => {
                    assert!(token != [0; 16] && transmit.key.is_none());
                    self.tokens.push((to.address, token));
                    self.seen.sent[2] += 1;
                }
            }
        }
        // At most as many as there are slots, and one that says that it has joined.
        let mut news = 0;
        while self.node.poll_event().is_some() {
            news += 1;
            assert!(news <= LIMITS.queries + 1);
        }
        assert!(self.node.contact_count() <= usize::from(LIMITS.contacts));
        assert_eq!(self.node.contacts().count(), self.node.contact_count());
        assert!(self.node.record_count() <= LIMITS.records as usize);
        self.open.drain(..self.open.len().saturating_sub(32));
    }
}

fn request(token: [u8; 16], message: &[u8]) -> Vec<u8> {
    [&[0x62], &[4; 8][..], &token, message].concat()
}

/// One of 32 nodes: of IPv4, most of them public, or of IPv6.
pub(crate) fn somebody(what: u8) -> NodeRef {
    let at = what & 31;
    let address = match at % 4 {
        0 => SocketAddr::from(([10, 0, 0, at], 5)),
        1 => SocketAddr::from(([0x2001, 0xdb8, u16::from(at), 0, 0, 0, 0, 1], 5)),
        _ => SocketAddr::from(([60, at, 1, 1], 5)),
    };
    NodeRef { key: [at.wrapping_mul(7); 32], address }
}
