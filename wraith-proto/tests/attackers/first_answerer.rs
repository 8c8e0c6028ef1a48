//! Who answers first: it sees a first message, and answers before the peer can.

use wraith_proto::wire::{HandshakeHeader, HandshakeKind, VersionsRepr};
use wraith_proto::{
    Budget as Work, Config, DropReason, Ecn, Endpoint, Identity, NoSource, OneShot, Outcome, RxMeta, Via,
};
use wraith_sim::{LEFT, RIGHT, Side};

use crate::support::{Attacker, Budget, Reach, play, victims};

/// Impostors who answer one INIT; four of them are read.
const IMPOSTORS: u8 = 6;

/// Answers the first INIT of each dial, as other peers and by lists of versions.
#[derive(Default)]
struct FirstAnswerer {
    seen: usize,
    answered: Vec<[u8; 8]>,
}

/// What another peer says to `init`.
fn impostor(seed: u8, reach: &Reach<'_>, init: &[u8]) -> Vec<u8> {
    let config = Config::new(Identity::from_seed([seed; 32]), b"wraith-sim");
    let mut endpoint = Endpoint::new(config, [seed; 32], reach.now()).expect("the configuration is good");
    let meta = RxMeta { from: LEFT, to: None, via: Via::default(), ecn: Ecn::NotEct };
    let outcome = endpoint.handle(reach.now(), &meta, &mut init.to_vec()).outcome();
    assert_eq!(outcome, Outcome::Handshaking);
    let mut buffer = [0; 2048];
    let mut queue = OneShot::new(&mut buffer);
    let _ = endpoint.poll_transmit(reach.now(), &mut queue, &mut NoSource, Work::UNLIMITED);
    queue.take().expect("an answer").1.to_vec()
}

impl Attacker for FirstAnswerer {
    fn act(&mut self, reach: &mut Reach<'_>) {
        for sent in reach.news(&mut self.seen) {
            if sent.kind() != Some(HandshakeKind::Init) {
                continue;
            }
            let destination = HandshakeHeader::parse(&sent.bytes).expect("an INIT").source;
            if self.answered.contains(&destination.0) {
                continue;
            }
            self.answered.push(destination.0);
            let repr = VersionsRepr { destination, versions: &[7, 0x0a0a_0a0a] };
            let mut versions = vec![0; repr.buffer_len()];
            repr.emit(&mut versions).expect("room");
            for seed in 1..=IMPOSTORS {
                assert_eq!(reach.send(Side::Left, RIGHT, &versions), Some(Outcome::Handshaking));
                let reason = if seed <= 4 { DropReason::Refused } else { DropReason::RateLimited };
                let response = impostor(seed, reach, &sent.bytes);
                assert_eq!(reach.send(Side::Left, RIGHT, &response), Some(Outcome::Dropped(reason)));
            }
        }
    }
}

/// Budget: to see everything, and to answer one first message of each dial, before its peer does, with twelve datagrams. It
/// must not end a dial, nor delay it beyond the answer to the next INIT.
///
/// `PROTO §4.16, §4.19`
#[test]
fn whoever_answers_one_init_before_the_peer_stops_no_dial() {
    let mut first = FirstAnswerer::default();
    let aftermath = play(victims(21), Budget { datagrams: 24, bytes: 1 << 24 }, &mut first);
    aftermath.assert_untouched();
    assert_eq!((first.answered.len(), aftermath.spent.left()), (2, 0));
    assert!(aftermath.dialled_in.as_millis() <= 300, "{:?}", aftermath.dialled_in);
    // Its answers, and the genuine ones that came behind four of them.
    assert!(aftermath.stats(Side::Left).drops(DropReason::RateLimited) >= 2 * 3);
}
