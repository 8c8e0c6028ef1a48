//! The splicer puts pieces of genuine messages together.

use std::collections::BTreeMap;

use wraith_proto::crypto::{RustCrypto, TAG_LEN};
use wraith_proto::sealed::{
    HEAD_LEN, Letter, Mailbox, MessageId, OpenError, SEGMENT_HEADER_LEN, SEGMENT_LEN,
};
use wraith_proto::wire::{ConnectionId, HandshakeKind, PACKET_HEADER_LEN, visible_destination};
use wraith_proto::{Identity, Outcome};
use wraith_sim::{Rng, Side};

use crate::support::{Attacker, Budget, Reach, Sent, Stage, address, full, other, play, victims};

struct Splicer {
    seen: usize,
    /// Protected packets of each session and direction, in the order of sending and so over all epochs.
    packets: BTreeMap<[u8; 8], Vec<Sent>>,
    handshakes: Vec<Sent>,
    /// Packets of each of them that are cut into pieces in one round.
    samples: usize,
    acts: u32,
    tried: u64,
}

impl Splicer {
    fn try_out(&mut self, reach: &mut Reach<'_>, to: Side, spliced: &[u8]) {
        let Some(outcome) = reach.send(to, address(other(to)), spliced) else { return };
        assert!(matches!(outcome, Outcome::Dropped(_)), "{outcome:?} at {:?}", reach.stage);
        self.tried += 1;
    }

    /// Every combination of the pieces of two third or two second messages but the two themselves.
    fn splice_handshakes(&mut self, reach: &mut Reach<'_>, kind: HandshakeKind) {
        let of_kind = |sent: &&Sent| sent.kind() == Some(kind);
        let messages: Vec<_> = self.handshakes.iter().filter(of_kind).cloned().collect();
        let [first, second] = &messages[..] else { return };
        let to = first.receiver().expect("one of the victims");
        let pieces = [pieces(kind, &first.bytes), pieces(kind, &second.bytes)];
        let count = pieces[0].len();
        for choice in 1..(1_usize << count) - 1 {
            let mut spliced: Vec<u8> =
                (0..count).flat_map(|at| pieces[choice >> at & 1][at].to_vec()).collect();
            let mac = if kind == HandshakeKind::Finish { 16 } else { 0 };
            let total = (spliced.len() - 25 - mac) as u16;
            spliced[23..25].copy_from_slice(&total.to_be_bytes());
            self.try_out(reach, to, &spliced);
        }
    }

    /// Headers, bodies and tags of packets in all combinations, then connection ids, numbers and first bytes alone, and
    /// bodies in halves.
    fn splice_packets(&mut self, reach: &mut Reach<'_>) {
        let samples: Vec<Sent> = self.packets.values().flat_map(|sent| spread(sent, self.samples)).collect();
        for (a, header) in samples.iter().enumerate() {
            let to = header.receiver().expect("one of the victims");
            let header = &header.bytes;
            for (b, body) in samples.iter().enumerate() {
                let body = &body.bytes;
                for (c, tag) in samples.iter().enumerate() {
                    if a != b || b != c {
                        let end = body.len() - TAG_LEN;
                        let body = &body[PACKET_HEADER_LEN..end];
                        let tag = &tag.bytes[tag.bytes.len() - TAG_LEN..];
                        self.try_out(reach, to, &[&header[..PACKET_HEADER_LEN], body, tag].concat());
                    }
                }
                if a != b {
                    for piece in [0..1, 1..9, 9..13] {
                        // First bytes may be equal, and ids are within a session.
                        let mut spliced = body.clone();
                        spliced[piece.clone()].copy_from_slice(&header[piece]);
                        let to = side_of(&self.packets, &spliced);
                        if spliced != *body {
                            self.try_out(reach, to, &spliced);
                        }
                    }
                    let (half, rest) = (header.len() / 2, body.len() / 2);
                    self.try_out(reach, to, &[&header[..half], &body[rest..]].concat());
                }
            }
        }
    }
}

impl Attacker for Splicer {
    fn act(&mut self, reach: &mut Reach<'_>) {
        for sent in reach.news(&mut self.seen) {
            match (sent.kind(), visible_destination(&sent.bytes)) {
                (None, Some(ConnectionId(id))) => self.packets.entry(id).or_default().push(sent),
                (Some(HandshakeKind::Finish | HandshakeKind::Response), _) => {
                    let (kind, before) = (sent.kind(), self.handshakes.len());
                    self.handshakes.push(sent);
                    let both =
                        self.handshakes[..=before].iter().filter(|sent| sent.kind() == kind).count() == 2;
                    if both && reach.stage == Stage::Dial {
                        self.splice_handshakes(reach, kind.expect("it has one"));
                    }
                }
                _ => {}
            }
        }
        self.acts += u32::from(reach.stage == Stage::Transfer);
        // Early, when packets are on their way, in the middle, and when all epochs were seen.
        if [4, 25].contains(&self.acts) || reach.stage == Stage::Transferred {
            self.splice_packets(reach);
            self.acts += 1;
        }
    }
}

/// The pieces of a handshake message that mean something by themselves.
fn pieces(kind: HandshakeKind, message: &[u8]) -> Vec<&[u8]> {
    let mut cuts = match kind {
        HandshakeKind::Response => vec![21, 25 + 32, 25 + 80],
        _ => vec![21, 25 + 48],
    };
    let len = match kind {
        HandshakeKind::Finish => wraith_proto::wire::FinishPacket::parse(message).expect("a FINISH").len(),
        _ => message.len(),
    };
    if kind == HandshakeKind::Finish {
        cuts.push(len - 16);
    }
    cuts.push(len);
    let mut start = 0;
    let mut pieces = Vec::new();
    for cut in cuts {
        pieces.push(&message[start..cut]);
        start = cut;
    }
    pieces
}

/// `count` of them, the first and the last included.
fn spread(sent: &[Sent], count: usize) -> Vec<Sent> {
    let last = sent.len() - 1;
    let mut at: Vec<_> = (0..count).map(|number| number * last / (count - 1)).collect();
    at.dedup();
    at.into_iter().map(|at| sent[at].clone()).collect()
}

/// The end that the connection id of a packet belongs to.
fn side_of(packets: &BTreeMap<[u8; 8], Vec<Sent>>, packet: &[u8]) -> Side {
    let id = visible_destination(packet).expect("a packet").0;
    packets[&id][0].receiver().expect("one of the victims")
}

/// Budget: 40,000 datagrams, all bytes; two sessions, both directions, all epochs. It must not reach one datagram that is
/// taken.
///
/// `PROTO §4.2, §5.5, §5.8, §5.10`
#[test]
fn no_datagram_of_genuine_pieces_is_taken() {
    let samples = if full() { 12 } else { 5 };
    let mut splicer =
        Splicer { seen: 0, packets: BTreeMap::new(), handshakes: Vec::new(), samples, acts: 0, tried: 0 };
    let datagrams = if full() { 600_000 } else { 40_000 };
    let aftermath = play(victims(11), Budget { datagrams, bytes: u64::MAX }, &mut splicer);
    aftermath.assert_untouched();
    assert!(aftermath.spent.left() > 0);
    assert_eq!(splicer.packets.len(), 4, "two sessions in two directions");
    assert_eq!((aftermath.spent.authenticated, aftermath.spent.answered), (0, 0));
    let all = 3 * (4 * samples as u64).pow(3);
    assert!(splicer.tried > all && splicer.tried < datagrams, "{} tried", splicer.tried);
}

/// A sealed message in its pieces: the head, then segments.
fn sealed(from: &mut Mailbox, to: &Mailbox, body: &[u8], sign: bool) -> Vec<Vec<u8>> {
    let letter = Letter { to: to.peer_id(), id: MessageId([body[0]; 16]), time: 0, sign };
    let mut message = Vec::new();
    from.seal(&letter, &[body[0]; 32], body, &mut message).expect("it is sealed");
    let mut pieces = vec![message[..HEAD_LEN].to_vec()];
    let mut rest = &message[HEAD_LEN..];
    while !rest.is_empty() {
        let full = SEGMENT_HEADER_LEN + SEGMENT_LEN + TAG_LEN;
        let (segment, behind) = rest.split_at(full.min(rest.len()));
        pieces.push(segment.to_vec());
        rest = behind;
    }
    pieces
}

/// What an opener hands out of a message, and how it ends.
fn opened(mailbox: &mut Mailbox, pieces: &[&[u8]]) -> (Vec<u8>, Result<(), OpenError>) {
    let mut out = Vec::new();
    let mut stream = match mailbox.open_head(pieces[0].try_into().expect("a head")) {
        Ok(stream) => stream,
        Err(error) => return (out, Err(error)),
    };
    for piece in &pieces[1..] {
        let (header, sealed) = piece.split_first_chunk().expect("a header");
        match stream.segment(*header, &mut sealed.to_vec()) {
            Ok(body) => out.extend_from_slice(body),
            Err(error) => return (out, Err(error)),
        }
    }
    (out, stream.end().map(|_| ()))
}

/// Budget: the heads and segments of two messages of one sender to one recipient, in all orders of up to three segments (in
/// full four). It must not reach a message that ends well but the two themselves, nor an opener that hands out anything but
/// the beginning of a body.
///
/// `PROTO §12.7, §12.8`
#[test]
fn no_sealed_message_of_genuine_segments_opens_but_the_genuine_ones() {
    let mut from = Mailbox::new(Identity::from_seed([1; 32]), &RustCrypto, 2);
    let mut to = Mailbox::new(Identity::from_seed([2; 32]), &RustCrypto, 2);
    let bodies = [1_u8, 2].map(|byte| {
        let mut body = vec![byte; 2 * SEGMENT_LEN + 100];
        Rng::new(u64::from(byte)).fill(&mut body[1..]);
        body
    });
    let messages = [sealed(&mut from, &to, &bodies[0], false), sealed(&mut from, &to, &bodies[1], true)];
    let segments: Vec<&[u8]> =
        messages.iter().flat_map(|message| &message[1..]).map(|piece| &piece[..]).collect();
    assert_eq!(segments.len(), 6);
    let mut ended = 0;
    for (head, body) in messages.iter().zip(&bodies) {
        for len in 0..=if full() { 4 } else { 3 } {
            for order in 0..6_usize.pow(len) {
                let mut pieces = vec![&head[0][..]];
                pieces.extend((0..len).map(|at| segments[order / 6_usize.pow(at) % 6]));
                let (out, end) = opened(&mut to, &pieces);
                assert!(body.starts_with(&out), "{order} of {len}");
                assert!(out.len() == body.len() || out.len().is_multiple_of(SEGMENT_LEN));
                let whole = pieces.iter().eq(head.iter());
                assert_eq!(end.is_ok(), whole, "{order} of {len}: {end:?}");
                ended += u32::from(whole);
            }
        }
    }
    assert_eq!(ended, 2);
}

/// Budget: the ephemeral keys, static keys and payloads of two sealed datagrams in all combinations. It must not reach one
/// that opens.
///
/// `PROTO §12.5`
#[test]
fn no_sealed_datagram_of_genuine_pieces_opens() {
    let mut from = Mailbox::new(Identity::from_seed([1; 32]), &RustCrypto, 2);
    let mut to = Mailbox::new(Identity::from_seed([2; 32]), &RustCrypto, 2);
    let datagrams = [3_u8, 4].map(|byte| {
        let letter = Letter { to: to.peer_id(), id: MessageId([byte; 16]), time: 0, sign: byte == 4 };
        let mut datagram = vec![0; 400];
        let len = from.seal_datagram(&letter, &[byte; 32], &[byte; 90], &mut datagram).expect("room");
        datagram.truncate(len);
        datagram
    });
    for choice in 0..8 {
        let ends = |of: usize| [0, 33, 81, datagrams[of].len()];
        let mut spliced: Vec<u8> = (0..3)
            .flat_map(|at| {
                let of = choice >> at & 1;
                datagrams[of][ends(of)[at]..ends(of)[at + 1]].to_vec()
            })
            .collect();
        assert_eq!(to.open_datagram(&mut spliced).is_ok(), [0, 7].contains(&choice), "{choice}");
    }
}
