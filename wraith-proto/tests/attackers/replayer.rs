//! The replayer sends copies of what it saw.

use wraith_proto::wire::HandshakeKind;
use wraith_proto::{DropReason, Outcome};
use wraith_sim::{Pair, RIGHT, Side};

use crate::support::{
    Attacker, Budget, Reach, Sent, Stage, address, assert_nothing_grows, foreign, full, other, play, victims,
};

/// Copies of everything: two of each datagram before it arrives, from its sender's address and from another, and all of
/// them again after fresh keys, after the ends, and 30 s later.
struct Replayer {
    seen: usize,
    kept: Vec<Sent>,
    /// Copies of all that was seen, in each late round.
    late: u32,
    acts_behind: u32,
}

impl Replayer {
    fn new(late: u32) -> Self {
        Self { seen: 0, kept: Vec::new(), late, acts_behind: 0 }
    }

    fn repeat_all(&self, reach: &mut Reach<'_>) {
        for round in 0..self.late {
            for sent in &self.kept {
                let Some(to) = sent.receiver() else { continue };
                let from = if round.is_multiple_of(2) { address(other(to)) } else { foreign(2, 7) };
                reach.send(to, from, &sent.bytes);
            }
        }
    }
}

impl Attacker for Replayer {
    fn act(&mut self, reach: &mut Reach<'_>) {
        let news = reach.news(&mut self.seen);
        if matches!(reach.stage, Stage::Dial | Stage::Transfer | Stage::Close) {
            for sent in &news {
                if let Some(to) = sent.receiver() {
                    reach.send(to, foreign(1, 7), &sent.bytes);
                    reach.send(to, address(other(to)), &sent.bytes);
                }
            }
        }
        // What its own copies call forth is of no use to it.
        if reach.stage != Stage::Over {
            self.kept.extend(news);
        }
        self.acts_behind += u32::from(reach.stage == Stage::Over);
        if reach.stage == Stage::Transferred || [1, 30].contains(&self.acts_behind) {
            self.repeat_all(reach);
        }
    }
}

/// Budget: 60,000 datagrams (in full a million), all bytes. It must not reach a second delivery, a second session, or an end, and what is
/// held does not grow with the copies.
///
/// `PROTO §4.12, §5.9, §5.10, §7.4, §7.9, §9.4`
#[test]
fn a_replayer_reaches_no_second_delivery_no_second_session_and_no_end() {
    let budget = Budget { datagrams: if full() { 1_000_000 } else { 60_000 }, bytes: u64::MAX };
    assert_nothing_grows([2, if full() { 200 } else { 20 }], |late| {
        let aftermath = play(victims(1), budget, &mut Replayer::new(late));
        aftermath.assert_untouched();
        assert!(aftermath.spent.left() > 0);
        let replayed = aftermath.drops(DropReason::Replayed);
        assert!(replayed > 180 * u64::from(late), "{:?}", aftermath.spent.drops);
        // Keys of former epochs are gone, and so are the sessions at last.
        assert!(aftermath.drops(DropReason::BadTag) > 100, "{:?}", aftermath.spent.drops);
        assert!(aftermath.drops(DropReason::UnknownSession) > 800, "{:?}", aftermath.spent.drops);
        aftermath
    });
}

/// Budget: every datagram of the scene, once to each of two endpoints that were begun anew. It must not reach a session,
/// news or an authentic packet: nothing that an endpoint has said before is of any use to the next one.
///
/// `PROTO §9.4`
#[test]
fn a_replayer_finds_nothing_to_say_to_endpoints_that_were_begun_anew() {
    let budget = Budget { datagrams: 0, bytes: u64::MAX };
    let aftermath = play(victims(2), budget, &mut Replayer::new(0));
    let mut config = victims(2);
    config.seed = 3;
    let mut fresh = Pair::new(config);
    fresh.dial().expect("a free session");
    let mut answered = 0;
    for sent in &aftermath.seen {
        let to = sent.receiver().expect("nobody else was there");
        match fresh.inject(to, address(other(to)), &sent.bytes) {
            Outcome::Dropped(_) => {}
            outcome => {
                assert_eq!((outcome, sent.kind()), (Outcome::Handshaking, Some(HandshakeKind::Init)));
                answered += 1;
            }
        }
    }
    assert!(aftermath.seen.len() > 300 && answered >= 1, "{} and {answered}", aftermath.seen.len());
    assert_eq!(fresh.right.endpoint.sessions(), 0);
    assert!(fresh.left.host.events.is_empty() && fresh.right.host.events.is_empty());
    assert_eq!(fresh.left.endpoint.stats().packets_opened, 0);
    assert_eq!(fresh.right.endpoint.stats().packets_opened, 0);
    assert!(matches!(fresh.inject(Side::Left, RIGHT, &[]), Outcome::Dropped(DropReason::Malformed)));
}
