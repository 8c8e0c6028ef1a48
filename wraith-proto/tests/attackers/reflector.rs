//! The reflector gives each end its own words back.

use std::collections::BTreeSet;

use wraith_proto::Outcome;
use wraith_proto::wire::{HandshakeKind, visible_destination};
use wraith_sim::Side;

use crate::support::{
    Attacker, Budget, Reach, Sent, Stage, address, assert_nothing_grows, foreign, full, other, play, victims,
};

struct Reflector {
    seen: usize,
    kept: Vec<Sent>,
    /// Connection ids that the ends are addressed by.
    ids: [BTreeSet<[u8; 8]>; 2],
    copies: usize,
}

impl Reflector {
    /// Gives a packet back to its sender as if it was for one of the sender's sessions.
    fn under_own_ids(&self, reach: &mut Reach<'_>, sent: &Sent) {
        for id in &self.ids[sent.sender as usize] {
            let mut readdressed = sent.bytes.clone();
            readdressed[1..9].copy_from_slice(id);
            let outcome = reach.send(sent.sender, address(other(sent.sender)), &readdressed);
            assert!(matches!(outcome, None | Some(Outcome::Dropped(_))), "{outcome:?}");
        }
    }
}

impl Attacker for Reflector {
    fn act(&mut self, reach: &mut Reach<'_>) {
        for sent in reach.news(&mut self.seen) {
            reflect(reach, &sent);
            if let (Some(to), None, Some(id)) =
                (sent.receiver(), sent.kind(), visible_destination(&sent.bytes))
            {
                self.ids[to as usize].insert(id.0);
                self.under_own_ids(reach, &sent);
            }
            self.kept.push(sent);
        }
        if reach.stage == Stage::Transferred {
            for _ in 0..self.copies {
                self.kept.iter().for_each(|sent| reflect(reach, sent));
            }
        }
    }
}

/// Gives a datagram back to its sender.
fn reflect(reach: &mut Reach<'_>, sent: &Sent) {
    let to = sent.sender;
    for from in [address(other(to)), address(to), foreign(1, 1)] {
        let Some(outcome) = reach.send(to, from, &sent.bytes) else { return };
        // An end that has forgotten its session cannot know its own dial again.
        let forgotten = reach.stage == Stage::Close && sent.kind() == Some(HandshakeKind::Init);
        let dropped = matches!(outcome, Outcome::Dropped(_));
        assert!(dropped || forgotten, "{outcome:?} of {:?} at {:?}", sent.kind(), reach.stage);
    }
}

/// Budget: 20,000 datagrams, all bytes; each datagram at once, and all again when the data have arrived, from the peer's
/// address, the end's own, and a third, as it is and under the connection ids of the end. It must not reach one datagram
/// that is taken: an end knows its own dial again as long as it has the session.
///
/// `PROTO §4.12, §5.5`
#[test]
fn a_reflector_finds_no_end_that_takes_its_own_words() {
    let budget = Budget { datagrams: if full() { 500_000 } else { 20_000 }, bytes: u64::MAX };
    assert_nothing_grows([1, if full() { 100 } else { 8 }], |copies| {
        let mut reflector =
            Reflector { seen: 0, kept: Vec::new(), ids: [BTreeSet::new(), BTreeSet::new()], copies };
        let aftermath = play(victims(4), budget, &mut reflector);
        aftermath.assert_untouched();
        assert!(aftermath.spent.left() > 0);
        assert_eq!(aftermath.spent.authenticated, 0);
        assert!(aftermath.stats(Side::Left).dropped() > 500 * copies as u64);
        aftermath
    });
}
