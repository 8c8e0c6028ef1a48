//! Deliberately wrong nodes: the cases have to reject every one, or they prove nothing.
//!
//! Each is this repository's node behind a fault, which sees what arrives first, and may answer itself.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use super::memory::CoreSubject;
use super::subject::{Doors, Subject, Target};
use crate::case::Verdict;
use crate::peer::dht::{Ask, Header, Held, LONGEST, NOTE, Node, Offer, Reply, Signed, open, seal};
use crate::peer::{Note, open_note};
use crate::protocol::Door;

/// A wrong node.
#[derive(Clone, Copy, Debug)]
pub struct Specimen {
    /// What is wrong with it.
    pub name: &'static str,
    /// A case that rejects it.
    pub rejected_by: &'static str,
    fault: Fault,
}

/// What goes out in place of what the node would do; [`None`] leaves the datagram to the node.
type Fault = fn(&mut Broken, Door, &[u8]) -> Option<Vec<Vec<u8>>>;

/// Every wrong node, and first one without a fault, which every case passes.
pub fn specimens() -> Vec<Specimen> {
    let list: [(&str, Fault, &str); 17] = [
        ("sound", |_, _, _| None, ""),
        ("answers short requests", short, "requests/a_request_without_a_token_has_1200_bytes"),
        ("takes any address token", any_token, "requests/a_token_is_good_at_its_address_alone"),
        ("passes over bytes behind", behind, "requests/malformed_requests_are_dropped"),
        ("answers what was altered", altered, "requests/an_altered_request_is_dropped"),
        ("takes 1,201 bytes", long, "requests/a_datagram_of_1201_bytes_is_dropped"),
        ("answers twice", twice, "requests/a_request_played_back_gets_no_more_bytes_than_it_has"),
        (
            "repeats a wrong transaction",
            transaction,
            "requests/a_ping_is_answered_with_its_transaction_and_a_token",
        ),
        ("takes any write token", write_token, "records/nothing_is_kept_without_a_write_token"),
        ("keeps lower numbers", lower, "records/a_signed_record_gives_way_to_a_higher_number_alone"),
        ("checks no signature", unsigned, "records/what_its_owner_did_not_sign_is_refused"),
        ("ignores conditions", condition, "records/a_condition_has_to_hold"),
        ("names who only asked", unproven, "contacts/who_only_asks_is_not_named_until_it_answers"),
        ("pings who may be forged", forged, "contacts/who_has_not_proven_its_address_is_not_pinged"),
        (
            "never comes back with a token",
            aloof,
            "contacts/who_answers_a_request_without_a_token_is_pinged_with_its_own",
        ),
        (
            "takes answers from anywhere",
            anywhere,
            "contacts/an_answer_from_elsewhere_or_of_another_makes_no_contact",
        ),
        ("names private addresses", unproven, "contacts/a_private_address_is_not_named_to_a_public_one"),
    ];
    list.map(|(name, fault, rejected_by)| Specimen { name, rejected_by, fault }).into()
}

impl Target for Specimen {
    fn name(&self) -> String {
        format!("a node that is broken: {}", self.name)
    }

    fn subject(&self, doors: Doors, seed: u64) -> Result<Box<dyn Subject>, Verdict> {
        Ok(Box::new(Broken {
            inner: CoreSubject::new(doors, seed),
            fault: self.fault,
            sent: VecDeque::new(),
            nodes: Vec::new(),
            numbers: BTreeMap::new(),
        }))
    }
}

/// A node behind its fault.
struct Broken {
    inner: CoreSubject,
    fault: Fault,
    sent: VecDeque<(Door, Vec<u8>)>,
    /// Who has asked.
    nodes: Vec<Node>,
    /// Sequence numbers of the records that were to be stored.
    numbers: BTreeMap<[u8; 32], u64>,
}

impl Broken {
    /// A request that opens: header, sender and what it asks.
    fn request(&self, datagram: &[u8]) -> Option<(Header, [u8; 32], Ask)> {
        let (header, from, message) = open(&self.inner.identity, datagram).ok()?;
        matches!(header, Header::Request { .. }).then_some(())?;
        Some((header, from, Ask::read(&message).ok()?))
    }

    fn answer(&self, header: &Header, to: [u8; 32], reply: &Reply) -> Vec<Vec<u8>> {
        let (Header::Request { transaction, .. }
        | Header::Answer { transaction }
        | Header::Token { transaction, .. }) = *header;
        let note = Note { seed: self.inner.identity, to, randomness: [5; 32] };
        let sealed = seal(&note, &Header::Answer { transaction }, &reply.to_bytes(&[9; 16]));
        sealed.into_iter().map(|(datagram, _)| datagram).collect()
    }

    /// Whether a signed record is to be stored, under which condition; with all that an answer takes.
    fn signed(&self, datagram: &[u8]) -> Option<(Header, [u8; 32], Option<u64>, Signed)> {
        match self.request(datagram)? {
            (header, from, Ask::Store { condition, offer: Offer::Signed(signed), .. }) => {
                Some((header, from, condition, signed))
            }
            _ => None,
        }
    }
}

impl Subject for Broken {
    fn peer_id(&self) -> [u8; 32] {
        self.inner.peer_id()
    }

    fn address(&self, door: Door) -> SocketAddr {
        self.inner.address(door)
    }

    fn send(&mut self, from: Door, datagram: &[u8]) -> io::Result<()> {
        let fault = self.fault;
        match fault(self, from, datagram) {
            Some(answers) => self.sent.extend(answers.into_iter().map(|answer| (from, answer))),
            None => self.inner.send(from, datagram)?,
        }
        Ok(())
    }

    fn receive(&mut self, patience: Duration) -> io::Result<Option<(Door, Vec<u8>)>> {
        match self.sent.pop_front() {
            Some(sent) => Ok(Some(sent)),
            None => self.inner.receive(patience),
        }
    }

    fn settle(&mut self) -> io::Result<()> {
        self.inner.settle()
    }

    fn now(&self) -> Duration {
        self.inner.now()
    }

    fn is_exact(&self) -> bool {
        true
    }
}

fn short(node: &mut Broken, _: Door, datagram: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (header, from, ask) = node.request(datagram)?;
    let nothing = Reply::Found { write_token: [1; 8], held: Held::Nothing, nodes: Vec::new() };
    matches!(ask, Ask::FindNode(_)).then(|| node.answer(&header, from, &nothing))
}

fn any_token(node: &mut Broken, _: Door, datagram: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (header, from, ask) = node.request(datagram)?;
    (ask == Ask::Ping && datagram.len() < LONGEST).then(|| node.answer(&header, from, &Reply::Pong))
}

fn behind(node: &mut Broken, _: Door, datagram: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (header, from, message) = open(&node.inner.identity, datagram).ok()?;
    (message.first() == Some(&1)).then(|| node.answer(&header, from, &Reply::Pong))
}

fn altered(node: &mut Broken, _: Door, datagram: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (header, _) = Header::read(datagram).ok()?;
    let Header::Request { transaction, .. } = header else { return None };
    let opens = open(&node.inner.identity, datagram).is_ok();
    (!opens).then(|| vec![Header::Token { transaction, token: [9; 16] }.to_bytes()])
}

fn long(node: &mut Broken, _: Door, datagram: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (prefix, note) = datagram.split_at_checked(25).filter(|_| datagram.len() > LONGEST)?;
    let (from, _) = open_note(&node.inner.identity, prefix, note).ok()?;
    let (header, _) = Header::read(prefix).ok()?;
    Some(node.answer(&header, from, &Reply::Pong))
}

fn twice(node: &mut Broken, door: Door, datagram: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (header, from, ask) = node.request(datagram)?;
    let Ask::FindNode(_) = ask else { return None };
    let near = vec![Node { address: node.address(door), peer: from }; 15];
    let reply = Reply::Found { write_token: [1; 8], held: Held::Nothing, nodes: near };
    Some([node.answer(&header, from, &reply), node.answer(&header, from, &reply)].concat())
}

fn transaction(node: &mut Broken, _: Door, datagram: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (_, from, ask) = node.request(datagram)?;
    let header = Header::Answer { transaction: [0; 8] };
    (ask == Ask::Ping).then(|| node.answer(&header, from, &Reply::Pong))
}

fn write_token(node: &mut Broken, _: Door, datagram: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (header, from, ask) = node.request(datagram)?;
    let stored = Reply::Stored { result: 0, seq: 0 };
    matches!(ask, Ask::Store { .. }).then(|| node.answer(&header, from, &stored))
}

fn lower(node: &mut Broken, _: Door, datagram: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (header, from, _, signed) = node.signed(datagram)?;
    let former = node.numbers.insert(signed.key(), signed.seq).filter(|&former| signed.seq < former);
    former.map(|_| node.answer(&header, from, &Reply::Stored { result: 0, seq: signed.seq }))
}

fn unsigned(node: &mut Broken, _: Door, datagram: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (header, from, _, signed) = node.signed(datagram)?;
    let stored = Reply::Stored { result: 0, seq: signed.seq };
    (!signed.is_genuine()).then(|| node.answer(&header, from, &stored))
}

fn condition(node: &mut Broken, _: Door, datagram: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (header, from, condition, signed) = node.signed(datagram)?;
    condition.map(|_| node.answer(&header, from, &Reply::Stored { result: 0, seq: signed.seq }))
}

/// To all who search.
fn unproven(node: &mut Broken, door: Door, datagram: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (header, from, ask) = node.request(datagram)?;
    node.nodes.push(Node { address: node.address(door), peer: from });
    let Ask::FindNode(_) = ask else { return None };
    let nodes = node.nodes.iter().filter(|other| other.peer != from).copied().take(20).collect();
    Some(node.answer(&header, from, &Reply::Found { write_token: [1; 8], held: Held::Nothing, nodes }))
}

/// A ping beside the answer.
fn forged(node: &mut Broken, door: Door, datagram: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (Header::Request { transaction, token: [0, ..] }, to, _) = node.request(datagram)? else {
        return None;
    };
    node.inner.send(door, datagram).ok()?;
    let mut ping = Ask::Ping.to_bytes();
    ping.resize(LONGEST - 25 - NOTE, 0);
    let note = Note { seed: node.inner.identity, to, randomness: [6; 32] };
    let sealed = seal(&note, &Header::Request { transaction, token: [0; 16] }, &ping);
    Some(sealed.into_iter().map(|(datagram, _)| datagram).collect())
}

/// From whom it is named, no answer to a search counts.
fn aloof(node: &mut Broken, door: Door, datagram: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (Header::Answer { .. }, _, message) = open(&node.inner.identity, datagram).ok()? else { return None };
    (door == Door::Back && message.get(16) == Some(&2)).then(Vec::new)
}

fn anywhere(node: &mut Broken, _: Door, datagram: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (header, _) = Header::read(datagram).ok()?;
    let Header::Answer { .. } = header else { return None };
    // As if it had come from where the request went.
    node.inner.send(Door::Front, datagram).ok()?;
    Some(Vec::new())
}
