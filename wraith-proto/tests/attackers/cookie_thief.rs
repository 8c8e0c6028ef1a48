//! The thief of cookies wants agreements for cookies that were given to others.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use wraith_proto::wire::{CookiePacket, INIT_COOKIE_OFFSET, InitPacket};
use wraith_proto::{DropReason, Instant, Outcome, Shard};
use wraith_sim::{LEFT, Pair, Side};

use crate::support::{Attacker, Budget, Reach, Sent, Stage, Strangers, Toll, foreign, full, play, victims};

/// From here the thief keeps a handshake of its own open, so that cookies are demanded all the time.
const OWN: SocketAddr = foreign(77, 77);

/// When the cookies of the dials are good no longer: the scene begins with a period of ten seconds.
const EXPIRED: Instant = Instant::from_nanos((3600 + 20) * 1_000_000_000);

/// A cookie, and the connection id that it was given for.
type Cookie = ([u8; 8], [u8; 16]);

struct Thief {
    seen: usize,
    strangers: Strangers,
    toll: &'static Toll,
    /// The connection ids of the dials.
    dials: BTreeSet<[u8; 8]>,
    /// Their cookies.
    stolen: Vec<Cookie>,
    /// The thief's own first message.
    own: Vec<u8>,
    /// Cookies that another endpoint of the same identity gave to the same address.
    elsewhere: Vec<Cookie>,
    tries: u32,
    refused: u64,
    /// Cookies that it tried when they had expired.
    expired: u64,
}

impl Thief {
    /// Opens the thief's own handshake again, which it may: its cookie is its own.
    fn crowd(&mut self, reach: &mut Reach<'_>) {
        for _ in 0..3 {
            let outcome = reach.send(Side::Right, OWN, &self.own);
            if outcome != Some(Outcome::Dropped(DropReason::RateLimited)) {
                return;
            }
            for sent in reach.news(&mut self.seen) {
                if let (OWN, Ok(cookie)) = (sent.to, CookiePacket::parse(&sent.bytes)) {
                    self.own[INIT_COOKIE_OFFSET..INIT_COOKIE_OFFSET + 16].copy_from_slice(cookie.cookie());
                }
                self.look(&sent);
            }
        }
        panic!("the thief's own cookie is good");
    }

    /// Keeps the first cookies of the dials, not those that its own attempts call forth.
    fn look(&mut self, sent: &Sent) {
        if let (Side::Left, Ok(init)) = (sent.sender, InitPacket::parse(&sent.bytes)) {
            self.dials.insert(init.source().0);
        }
        if let (LEFT, Ok(cookie)) = (sent.to, CookiePacket::parse(&sent.bytes)) {
            let id = cookie.destination().0;
            if self.dials.contains(&id) && !self.stolen.iter().any(|(of, _)| *of == id) {
                self.stolen.push((id, *cookie.cookie()));
            }
        }
    }

    /// A first message that must not cost an agreement.
    fn try_out(&mut self, reach: &mut Reach<'_>, from: SocketAddr, init: &[u8], what: &str) {
        let before = self.toll.agreements();
        let Some(outcome) = reach.send(Side::Right, from, init) else { return };
        assert!(matches!(outcome, Outcome::Dropped(_)), "{what}: {outcome:?}");
        assert_eq!(self.toll.agreements(), before, "{what}");
        self.refused += u64::from(outcome == Outcome::Dropped(DropReason::RateLimited));
    }

    fn spend(&mut self, reach: &mut Reach<'_>, (id, cookie): Cookie, expired: bool) {
        let port = SocketAddr::new(LEFT.ip(), LEFT.port() + 1);
        for from in [foreign(1, LEFT.port()), port, OWN] {
            let init = self.strangers.with_id(id, &cookie);
            self.try_out(reach, from, &init, "another address");
        }
        let init = self.strangers.next(&cookie);
        self.try_out(reach, LEFT, &init, "another connection id");
        for kept in 0..16 {
            let mut cut = [0; 16];
            cut[..kept].copy_from_slice(&cookie[..kept]);
            let init = self.strangers.with_id(id, &cut);
            self.try_out(reach, LEFT, &init, "cut");
        }
        let init = self.strangers.with_id(id, &cookie);
        self.try_out(reach, LEFT, &init[..1199], "a short datagram");
        if expired {
            self.try_out(reach, LEFT, &init, "another time");
            self.expired += 1;
        }
        for (id, cookie) in self.elsewhere.clone() {
            let init = self.strangers.with_id(id, &cookie);
            self.try_out(reach, LEFT, &init, "another endpoint");
        }
    }
}

impl Attacker for Thief {
    fn act(&mut self, reach: &mut Reach<'_>) {
        for sent in reach.news(&mut self.seen) {
            self.look(&sent);
        }
        self.crowd(reach);
        let expired = reach.stage == Stage::Over && reach.now() > EXPIRED;
        for _ in 0..self.tries {
            for cookie in self.stolen.clone() {
                self.spend(reach, cookie, expired);
            }
        }
    }
}

/// Cookies that an endpoint with the responder's identity and another seed, which is another shard, gives to the address
/// of the dialling end at the time of the scene.
fn cookies_of_another_endpoint() -> Vec<Cookie> {
    let mut config = victims(7).with_recording();
    config.right.limits.handshakes = 1;
    config.right.shard = Shard { index: 1, count: 2 };
    config.seed = 8;
    let mut pair = Pair::new(config);
    let mut strangers = Strangers::new(9);
    for _ in 0..4 {
        let init = strangers.next(&[0; 16]);
        pair.inject(Side::Right, LEFT, &init);
    }
    let answers = pair.transcript().entries().filter_map(|sent| CookiePacket::parse(sent.bytes).ok());
    answers.map(|cookie| (cookie.destination().0, *cookie.cookie())).collect()
}

/// Budget: 30,000 datagrams, all bytes. Cookies are taken to other addresses and ports, for other connection ids, when they
/// have expired, cut, and from another endpoint of the same identity. It must not reach one Diffie-Hellman operation while
/// cookies are demanded, and not stop a dial.
///
/// `PROTO §4.13, §4.14`
#[test]
fn a_stolen_cookie_buys_no_agreement() {
    let toll = Toll::leak();
    let mut config = victims(7);
    config.right.crypto = toll;
    // One open handshake is a quarter.
    config.right.limits.handshakes = 4;
    let elsewhere = cookies_of_another_endpoint();
    assert_eq!(elsewhere.len(), 3, "the first was answered");
    let mut strangers = Strangers::new(10);
    let own = strangers.next(&[0; 16]);
    let tries = if full() { 30 } else { 1 };
    let mut thief = Thief {
        seen: 0,
        strangers,
        toll,
        dials: BTreeSet::new(),
        stolen: Vec::new(),
        own,
        elsewhere,
        tries,
        refused: 0,
        expired: 0,
    };
    let budget = Budget { datagrams: 30_000 * u64::from(tries), bytes: u64::MAX };
    let aftermath = play(config, budget, &mut thief);
    aftermath.assert_untouched();
    assert!(aftermath.spent.left() > 0, "it tried all that it had to the end");
    assert_eq!((thief.dials.len(), thief.stolen.len()), (2, 2), "both dials were asked");
    assert!(thief.expired > 0);
    assert!(thief.refused > 5000 * u64::from(tries), "{}", thief.refused);
    assert!(aftermath.stats(Side::Right).cookies_sent > 5000);
}
