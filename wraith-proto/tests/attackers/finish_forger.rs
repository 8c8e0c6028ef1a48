//! The forger of FINISH sees a handshake and is faster than its third message.

use wraith_proto::wire::{FINISH_MAC_LEN, FinishPacket, HandshakeKind};
use wraith_proto::{DropReason, Outcome};
use wraith_sim::{LEFT, Pair, Rng, Side};

use crate::support::{
    Attacker, Budget, Reach, Sent, Stage, Toll, assert_nothing_grows, foreign, full, play, victims,
};

struct Forger {
    seen: usize,
    rng: Rng,
    /// X25519 operations of the responder.
    toll: &'static Toll,
    /// FINISH messages of the scene.
    genuine: Vec<Vec<u8>>,
    /// FINISH of another identity, in a handshake of its own with the same responder.
    mallory: Vec<u8>,
    /// Forged messages for each genuine one.
    forged: u32,
    refused: u64,
}

impl Forger {
    /// A third message for the handshake of `genuine` that the initiator did not make.
    fn forge(&mut self, genuine: &[u8]) -> Vec<u8> {
        let len = FinishPacket::parse(genuine).expect("a FINISH").len();
        let mut forged = genuine[..len].to_vec();
        match self.rng.below(6) {
            0 => self.rng.fill(&mut forged[len - FINISH_MAC_LEN..]),
            1 => forged[self.rng.below(len as u64) as usize] ^= 1 << self.rng.below(8),
            2 => forged[21..].copy_from_slice(&self.mallory[21..len]),
            3 => {
                let of = self.rng.below(self.genuine.len() as u64) as usize;
                let another = self.genuine[of].clone();
                forged[21..].copy_from_slice(&another[21..len]);
                if another[21..len] == genuine[21..len] {
                    forged[21] ^= 1;
                }
            }
            4 => forged.truncate(self.rng.below(len as u64) as usize),
            _ => self.extend(&mut forged),
        }
        forged
    }

    /// A longer message under the same MAC.
    fn extend(&mut self, forged: &mut Vec<u8>) {
        let at = forged.len() - FINISH_MAC_LEN;
        let more = 1 + self.rng.below(64) as usize;
        let mut bytes = vec![0; more];
        self.rng.fill(&mut bytes);
        forged.splice(at..at, bytes);
        let total = (at + more - 25) as u16;
        forged[23..25].copy_from_slice(&total.to_be_bytes());
    }

    fn attack(&mut self, reach: &mut Reach<'_>, sent: &Sent) {
        let before = self.toll.agreements();
        for round in 0..self.forged {
            let forged = self.forge(&sent.bytes);
            let from = if round.is_multiple_of(2) { LEFT } else { foreign(1, 1) };
            let Some(outcome) = reach.send(Side::Right, from, &forged) else { break };
            assert!(matches!(outcome, Outcome::Dropped(_)), "{outcome:?} of {forged:02x?}");
            self.refused += u64::from(outcome == Outcome::Dropped(DropReason::BadTag));
        }
        assert_eq!(self.toll.agreements(), before, "X25519 operations of forged messages");
    }
}

impl Attacker for Forger {
    fn act(&mut self, reach: &mut Reach<'_>) {
        if reach.stage != Stage::Dial {
            return;
        }
        let news = reach.news(&mut self.seen);
        let finishes: Vec<_> =
            news.iter().filter(|sent| sent.kind() == Some(HandshakeKind::Finish)).collect();
        self.genuine.extend(finishes.iter().map(|sent| sent.bytes.clone()));
        for sent in finishes {
            self.attack(reach, sent);
        }
    }
}

/// A FINISH of somebody else to the same identity.
fn finish_of_another(seed: u64) -> Vec<u8> {
    let mut config = victims(seed).with_recording();
    config.left.identity = wraith_proto::Identity::from_seed([0xee; 32]);
    let mut pair = Pair::new(config);
    pair.connect();
    let finish =
        pair.transcript().entries().find(|sent| HandshakeKind::of(sent.bytes) == Some(HandshakeKind::Finish));
    finish.expect("a FINISH").bytes.to_vec()
}

/// Budget: 10,000 datagrams (in full 1,000,000), the bytes of the handshakes; each forged message arrives before the
/// genuine one: random MACs, altered bits, another identity's message, that of another handshake, cut and extended ones.
/// It must not stop the dial, cost the responder one X25519, or be taken.
///
/// `PROTO §4.2, §4.3`
#[test]
fn forged_third_messages_cost_no_agreement_and_do_not_stop_the_genuine_one() {
    let datagrams = if full() { 1_000_000 } else { 10_000 };
    let toll = Toll::leak();
    assert_nothing_grows([datagrams / 10, datagrams], |datagrams| {
        let mut config = victims(5);
        config.right.crypto = toll;
        let mut forger = Forger {
            seen: 0,
            rng: Rng::new(6),
            toll,
            genuine: Vec::new(),
            mallory: finish_of_another(5),
            forged: datagrams as u32 / 2,
            refused: 0,
        };
        let aftermath = play(config, Budget { datagrams, bytes: 16_384 }, &mut forger);
        aftermath.assert_untouched();
        let stats = aftermath.stats(Side::Right);
        assert_eq!((stats.handshakes_answered, stats.handshakes_completed), (2, 2));
        assert_eq!(aftermath.spent.drops.values().sum::<u64>(), datagrams);
        assert!(forger.refused > datagrams / 2, "{:?}", aftermath.spent.drops);
        aftermath
    });
}
