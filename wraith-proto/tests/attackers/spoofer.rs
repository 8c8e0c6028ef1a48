//! The spoofer writes addresses of others on its datagrams.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use wraith_proto::wire::{ConnectionId, CookieRepr, HandshakeHeader, HandshakeKind, VERSION, VersionsRepr};
use wraith_proto::{Limits, Outcome};
use wraith_sim::{LEFT, Pair, RIGHT, Side};

use crate::support::{
    Attacker, Budget, Reach, Strangers, assert_nothing_grows, foreign, full, play, victims,
};

/// Sees nothing, and writes whatever a stranger can.
struct Blind {
    strangers: Strangers,
    /// Datagrams of each kind in one act.
    each: u32,
    sent: u64,
}

impl Blind {
    /// First messages in the name of a third party: fresh, repeated, with cookies that nobody gave, short, of unknown
    /// versions.
    fn pretend_to_be(&mut self, reach: &mut Reach<'_>, victim: SocketAddr) {
        let mut cookie = [0; 16];
        self.strangers.rng().fill(&mut cookie);
        let fresh = self.strangers.next(&[0; 16]);
        let guessed = self.strangers.next(&cookie);
        let mut unknown = self.strangers.next(&[0; 16]);
        unknown[1..5].copy_from_slice(&0x1a2a_3a4a_u32.to_be_bytes());
        let list = [&fresh[..], &fresh, &guessed, &fresh[..1199], &unknown, &unknown[..1199]];
        for datagram in list {
            self.sent += u64::from(reach.send(Side::Right, victim, datagram).is_some());
        }
    }

    /// Answers in the name of the responder, to a connection id that can only be guessed.
    fn answer_the_dial(&mut self, reach: &mut Reach<'_>) {
        let mut random = [0; 1200];
        self.strangers.rng().fill(&mut random);
        let destination = ConnectionId(self.strangers.rng().next_u64().to_be_bytes());
        let source = ConnectionId(self.strangers.rng().next_u64().to_be_bytes());
        let mut cookie = [0; 37];
        let repr = CookieRepr { version: VERSION, destination, cookie: [1; 16] };
        repr.emit(&mut cookie).expect("room");
        let repr = VersionsRepr { destination, versions: &[7] };
        let mut versions = vec![0; repr.buffer_len()];
        repr.emit(&mut versions).expect("room");
        let mut response = random;
        let header = HandshakeHeader { kind: HandshakeKind::Response, version: VERSION, destination, source };
        header.emit(&mut response).expect("room");
        response[21..25].copy_from_slice(&[0, 0, 4, 0x97]);
        let mut packet = random;
        packet[0] = 0x40 | packet[0] & 0x1f;
        packet[1..9].copy_from_slice(&destination.0);
        for datagram in [&cookie[..], &versions, &response, &packet] {
            let Some(outcome) = reach.send(Side::Left, RIGHT, datagram) else { return };
            assert!(matches!(outcome, Outcome::Dropped(_)), "{outcome:?}");
            self.sent += 1;
        }
    }
}

impl Attacker for Blind {
    fn act(&mut self, reach: &mut Reach<'_>) {
        if self.sent == 0 {
            // One first message in each name, which costs an answer and all that timers add to it.
            for host in 201..204 {
                let init = self.strangers.next(&[0; 16]);
                assert_eq!(reach.send(Side::Right, foreign(host, 9), &init), Some(Outcome::Handshaking));
            }
        }
        for _ in 0..self.each {
            let random = self.strangers.rng().next_u64();
            self.pretend_to_be(reach, foreign(random as u8 % 64, 9));
            self.answer_the_dial(reach);
        }
        self.pretend_to_be(reach, LEFT);
    }
}

/// Budget: 60,000 datagrams, no bytes. It must not make anybody send more than three times the bytes that came in the name
/// of an address, whatever timers do afterwards, and not delay a dial by more than the round trip of a cookie.
///
/// `PROTO §4.11, §4.13, §4.16`
#[test]
fn a_blind_spoofer_gets_at_most_three_times_its_bytes_sent_and_stops_no_dial() {
    let (datagrams, each) = if full() { (1_000_000, 100) } else { (60_000, 6) };
    assert_nothing_grows([1, each], |each| {
        let mut blind = Blind { strangers: Strangers::new(13), each, sent: 0 };
        let aftermath = play(victims(12), Budget { datagrams, bytes: 0 }, &mut blind);
        aftermath.assert_untouched();
        let stats = aftermath.stats(Side::Right);
        assert!(stats.cookies_sent > 300 && stats.version_answers_sent > 100, "{stats:?}");
        assert!(stats.handshakes_answered > 4, "RESPONSE and its timers: {stats:?}");
        assert!(aftermath.dialled_in.as_millis() <= 60, "{:?}", aftermath.dialled_in);
        assert!(aftermath.answered_strangers() > 30);
        aftermath
    });
}

/// Sees everything but the answers to its own, and sends copies of packets as if they came from elsewhere, before the genuine
/// ones arrive.
struct Relocator {
    seen: usize,
    copies: u8,
    sent: u16,
}

impl Attacker for Relocator {
    fn act(&mut self, reach: &mut Reach<'_>) {
        for sent in reach.news(&mut self.seen) {
            let (Some(to), None | Some(HandshakeKind::Finish)) = (sent.receiver(), sent.kind()) else {
                continue;
            };
            for copy in 0..self.copies {
                // An address for each, so that what one is asked can be held against one packet.
                let from = foreign(copy, 1024 + self.sent);
                self.sent += 1;
                reach.send(to, from, &sent.bytes);
            }
        }
    }
}

/// Budget: 20,000 datagrams, all bytes that go from one end to the other; three copies of each packet overtake it, each in
/// the name of another address. It must not move a session there: what the address is asked takes at most three times the
/// authentic bytes that came in its name, and everything else goes on as ever.
///
/// `PROTO §4.11, §13.1, §13.3, §13.4`
#[test]
fn authentic_packets_in_the_name_of_others_do_not_move_a_session() {
    let budget = Budget { datagrams: if full() { 200_000 } else { 20_000 }, bytes: u64::MAX };
    let copies = if full() { 30 } else { 3 };
    let aftermath = play(victims(14), budget, &mut Relocator { seen: 0, copies, sent: 0 });
    aftermath.assert_untouched();
    aftermath.assert_checks_were_small();
    // The first copy is the one that counts.
    assert!(aftermath.spent.authenticated > 300 && aftermath.spent.left() > 0);
    let begun = [Side::Left, Side::Right].map(|side| aftermath.stats(side).path_checks_begun);
    assert!(begun[0] > 0 && begun[1] > 0 && aftermath.answered_strangers() > 0, "{begun:?}");
}

/// Budget: a first message every millisecond for three seconds in the names of addresses beside the dialling end's, no
/// bytes. It must not delay a dial from there: strangers use up half of what a prefix may begin, and whoever answers a
/// cookie has the other half.
///
/// `PROTO §4.13, §4.15`
#[test]
fn a_blind_spoofer_does_not_use_up_the_share_of_a_prefix() {
    for seed in 0..8 {
        let mut config = victims(20 + seed);
        config.right.limits = Limits { handshakes: 8000, handshake_rate: 2000, ..config.right.limits };
        let mut pair = Pair::new(config);
        let mut strangers = Strangers::new(seed);
        let (mut dialled, mut done) = (None, None);
        for round in 0..3000_u32 {
            let ip = Ipv4Addr::new(192, 0, 2, round as u8);
            let init = strangers.next(&[0; 16]);
            pair.inject(Side::Right, SocketAddr::new(IpAddr::V4(ip), 2000), &init);
            if round == 1000 {
                pair.dial().expect("a free session");
                dialled = Some(round);
            }
            if done.is_none() && pair.left.connected() == 1 {
                done = Some(round);
            }
            pair.run_for(std::time::Duration::from_millis(1));
        }
        let took = done.expect("the dial was stopped") - dialled.expect("it dialled");
        assert!(took <= 50, "seed {seed}: {took} ms");
    }
}
