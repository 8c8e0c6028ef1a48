//! Altered, repeated and reflected handshake messages change nothing that the genuine ones achieve.

use wraith_proto::wire::{FinishPacket, HandshakeKind, RESPONSE_MESSAGE_OFFSET};
use wraith_proto::{DropReason, Outcome};
use wraith_sim::{LEFT, Pair, RIGHT, Side};

use crate::common::{ONE_WAY, SMALL, assert_carries, both_connected, full, of_kind, small, watch};

/// A pair in the middle of a handshake: the first message of one type was sent and kept back.
struct Stopped {
    pair: Pair,
    message: Vec<u8>,
    receiver: Side,
}

impl Stopped {
    fn before(kind: HandshakeKind) -> Self {
        let mut pair = Pair::new(small(7));
        let mut kept = false;
        let seen = watch(&mut pair, move |sent| {
            let first = !kept && sent.kind() == Some(kind);
            kept |= first;
            first
        });
        pair.dial().expect("a free session");
        let (steps, receiver) = match kind {
            HandshakeKind::Init => (0, Side::Right),
            HandshakeKind::Response => (1, Side::Left),
            _ => (2, Side::Right),
        };
        pair.run_for(ONE_WAY * steps);
        let message = of_kind(&seen, kind).pop().expect("the message was sent");
        pair.run_for(ONE_WAY);
        Self { pair, message, receiver }
    }

    fn deliver(&mut self, message: &[u8]) -> Outcome {
        let from = if self.receiver == Side::Left { RIGHT } else { LEFT };
        self.pair.inject(self.receiver, from, message)
    }

    fn dropped(&self) -> u64 {
        let node = if self.receiver == Side::Left { &self.pair.left } else { &self.pair.right };
        node.endpoint.stats().dropped()
    }

    fn events(&self) -> (usize, usize) {
        (self.pair.left.host.events.len(), self.pair.right.host.events.len())
    }

    /// Delivers `message`, which is not genuine, and checks that it did nothing.
    fn deliver_false(&mut self, message: &[u8], what: &str) {
        let (dropped, sessions) = (self.dropped(), self.pair.right.endpoint.sessions());
        let events = self.events();
        let outcome = self.deliver(message);
        let counted = u64::from(matches!(outcome, Outcome::Dropped(_)));
        assert_eq!(self.dropped() - dropped, counted, "{what}");
        // Nobody can tell yet which INIT is genuine, so that each may get an answer (§4.12).
        assert!(counted == 1 || self.message[0] == 0x81, "{what}: {outcome:?}");
        assert_eq!(self.pair.right.endpoint.sessions(), sessions, "{what}");
        assert_eq!(self.events(), events, "{what}");
    }

    /// Delivers the genuine message; both ends connect without any repetition.
    fn finish(&mut self, what: &str) {
        let message = self.message.clone();
        // With FINISH comes a packet.
        let outcome = self.deliver(&message);
        assert!(matches!(outcome, Outcome::Handshaking | Outcome::Authenticated(_)), "{what}: {outcome:?}");
        assert!(self.pair.run_until(both_connected, ONE_WAY * 5), "{what}");
        assert_eq!(
            (self.pair.left.endpoint.sessions(), self.pair.right.endpoint.sessions()),
            (1, 1),
            "{what}"
        );
    }
}

/// The positions and bits to flip: all bits of the first 48 bytes, one bit of the others or, on a short budget, of
/// every seventh.
fn flips(len: usize) -> impl Iterator<Item = (usize, u8)> {
    let step = if full() { 1 } else { 7 };
    let header = (0..48).flat_map(|at| (0..8).map(move |bit| (at, 1 << bit)));
    header.chain((48..len).step_by(step).map(|at| (at, 1 << (at % 8)))).filter(move |(at, _)| *at < len)
}

fn survives_any_altered_copy(kind: HandshakeKind) {
    let len = match kind {
        HandshakeKind::Finish => FinishPacket::parse(&Stopped::before(kind).message).expect("a FINISH").len(),
        _ => 1200,
    };
    for (at, bit) in flips(len) {
        let mut stopped = Stopped::before(kind);
        let mut altered = stopped.message.clone();
        altered[at] ^= bit;
        let what = format!("{kind:?}, byte {at}, bit {bit:#04x}");
        stopped.deliver_false(&altered, &what);
        stopped.finish(&what);
    }
}

/// `PROTO §4.3, §4.12`
#[test]
fn an_init_altered_anywhere_does_not_stop_the_genuine_one() {
    survives_any_altered_copy(HandshakeKind::Init);
}

/// `PROTO §4.3, §4.6`: a responder id altered in the outer header does not fit the one inside.
#[test]
fn a_response_altered_anywhere_does_not_stop_the_genuine_one() {
    survives_any_altered_copy(HandshakeKind::Response);
}

/// `PROTO §4.2, §4.3`
#[test]
fn a_finish_altered_anywhere_does_not_stop_the_genuine_one() {
    survives_any_altered_copy(HandshakeKind::Finish);
}

/// `PROTO §4.3`: many altered copies are no worse than one.
#[test]
fn a_response_with_altered_ids_is_no_impostor_however_often_it_comes() {
    let mut stopped = Stopped::before(HandshakeKind::Response);
    for bit in 0..64 {
        let mut altered = stopped.message.clone();
        altered[13 + bit / 8] ^= 1 << (bit % 8);
        stopped.deliver_false(&altered, &format!("bit {bit} of the responder's id"));
    }
    assert_eq!(stopped.pair.left.endpoint.stats().drops(DropReason::Malformed), 64);
    stopped.pair.run_for(ONE_WAY * 20);
    stopped.finish("after 64 altered copies");
}

#[test]
fn the_packet_behind_finish_may_be_altered_and_finish_counts_all_the_same() {
    let whole = Stopped::before(HandshakeKind::Finish).message;
    let start = FinishPacket::parse(&whole).expect("a FINISH").len();
    assert!(start < whole.len(), "a packet travels with FINISH");
    for at in start..whole.len() {
        let mut stopped = Stopped::before(HandshakeKind::Finish);
        let mut altered = whole.clone();
        altered[at] ^= 1;
        assert_eq!(stopped.deliver(&altered), Outcome::Handshaking, "byte {at}");
        assert_eq!(stopped.pair.right.endpoint.stats().packets_opened, 0, "byte {at}");
        let genuine = stopped.deliver(&whole);
        assert!(matches!(genuine, Outcome::Authenticated(_)), "byte {at}: {genuine:?}");
        assert!(stopped.pair.run_until(both_connected, ONE_WAY * 5), "byte {at}");
    }
}

/// `PROTO §2.5`: what is cut to less than 1,200 bytes is dropped before anything else.
#[test]
fn a_handshake_message_cut_to_any_length_is_dropped() {
    for kind in [HandshakeKind::Init, HandshakeKind::Response, HandshakeKind::Finish] {
        let mut stopped = Stopped::before(kind);
        let end = match kind {
            HandshakeKind::Finish => FinishPacket::parse(&stopped.message).expect("a FINISH").len(),
            _ => stopped.message.len(),
        };
        for len in 0..end {
            let cut = stopped.message[..len].to_vec();
            assert!(matches!(stopped.deliver(&cut), Outcome::Dropped(_)), "{kind:?} of {len} bytes");
        }
        assert_eq!(stopped.dropped(), end as u64);
        let sent = stopped.pair.right.endpoint.stats().datagrams_sent;
        assert_eq!(sent, u64::from(kind != HandshakeKind::Init), "only RESPONSE was sent");
        stopped.finish("after all cuts");
    }
}

/// `PROTO §2.5`
#[test]
fn a_short_init_is_dropped_even_if_its_lengths_fit() {
    let mut stopped = Stopped::before(HandshakeKind::Init);
    let mut short = stopped.message[..1199].to_vec();
    short[39..41].copy_from_slice(&(1199_u16 - 41).to_be_bytes());
    assert_eq!(stopped.deliver(&short), Outcome::Dropped(DropReason::Malformed));
    let mut short = stopped.message.clone();
    short[39..41].copy_from_slice(&(1199_u16 - 41).to_be_bytes());
    assert_eq!(stopped.deliver(&short), Outcome::Dropped(DropReason::Malformed));
    assert_eq!(stopped.pair.right.endpoint.stats().dh_operations, 0);
}

/// `PROTO §2.5`
#[test]
fn a_short_response_is_dropped_even_if_its_lengths_fit() {
    let mut stopped = Stopped::before(HandshakeKind::Response);
    let before = stopped.pair.left.endpoint.stats().dh_operations;
    let mut short = stopped.message[..1199].to_vec();
    let len = (short.len() - RESPONSE_MESSAGE_OFFSET) as u16;
    short[RESPONSE_MESSAGE_OFFSET - 2..RESPONSE_MESSAGE_OFFSET].copy_from_slice(&len.to_be_bytes());
    assert_eq!(stopped.deliver(&short), Outcome::Dropped(DropReason::Malformed));
    assert_eq!(stopped.pair.left.endpoint.stats().dh_operations, before, "nothing was paid for it");
    stopped.finish("after a short RESPONSE");
}

/// `PROTO §4.12`: an own INIT that comes back is dropped.
#[test]
fn an_end_that_is_sent_its_own_messages_drops_them() {
    for pinned in [true, false] {
        let mut pair = Pair::new(small(8));
        let seen = watch(&mut pair, |_| true);
        let id = pinned.then(|| pair.right.peer_id());
        let peer = wraith_proto::Peer { addr: RIGHT, id };
        let now = pair.now();
        pair.left.endpoint.connect(now, peer, wraith_proto::Via::default()).expect("a free session");
        pair.run_for(ONE_WAY);
        let init = of_kind(&seen, HandshakeKind::Init).remove(0);
        let before = pair.left.endpoint.stats().dh_operations;
        for _ in 0..3 {
            assert_eq!(pair.inject(Side::Left, RIGHT, &init), Outcome::Dropped(DropReason::Replayed));
        }
        assert_eq!(pair.left.endpoint.stats().dh_operations, before);
        assert_eq!(pair.left.endpoint.stats().datagrams_sent, 1, "no answer");
        assert!(pair.left.host.events.is_empty());
    }
}

#[test]
fn a_replayed_finish_opens_no_second_session() {
    let mut pair = Pair::new(small(10));
    let seen = watch(&mut pair, |_| false);
    let (left, right) = pair.connect();
    pair.run_for(ONE_WAY * 5);
    let finish = of_kind(&seen, HandshakeKind::Finish).remove(0);
    let alone = FinishPacket::parse(&finish).expect("a FINISH").len();
    for message in [&finish[..], &finish[..alone]] {
        assert_eq!(pair.inject(Side::Right, LEFT, message), Outcome::Dropped(DropReason::Replayed));
    }
    assert_eq!(pair.right.endpoint.sessions(), 1);
    assert_carries(&mut pair, left, right);
    let now = pair.now();
    pair.right.endpoint.session(right).expect("open").close(now, 0);
    pair.run_for(ONE_WAY * 1000);
    assert_eq!(pair.inject(Side::Right, LEFT, &finish), Outcome::Dropped(DropReason::UnknownSession));
    assert_eq!(pair.right.endpoint.sessions(), 0);
}

/// `PROTO §4.12`
#[test]
fn the_same_init_is_one_handshake_and_costs_no_second_agreement() {
    let mut stopped = Stopped::before(HandshakeKind::Init);
    let seen = watch(&mut stopped.pair, |_| true);
    let message = stopped.message.clone();
    for _ in 0..10 {
        assert_eq!(stopped.deliver(&message), Outcome::Handshaking);
    }
    let stats = stopped.pair.right.endpoint.stats();
    assert_eq!((stats.handshakes_answered, stats.dh_operations), (1, 3));
    let answers = of_kind(&seen, HandshakeKind::Response);
    assert_eq!(answers.len(), 10);
    assert!(answers.iter().all(|answer| *answer == answers[0]));
    assert_eq!(SMALL.handshakes, 16, "ten handshakes would have found room");
}
