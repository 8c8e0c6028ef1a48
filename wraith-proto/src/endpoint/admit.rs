//! The only place where a stranger meets state: cookies and rate limits (`PROTO §4.13` to `PROTO §4.15`).

use alloc::boxed::Box;
use alloc::vec;
use core::hash::Hasher;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

use siphasher::sip::SipHasher13;
use subtle::ConstantTimeEq;

use crate::config::Limits;
use crate::crypto::Identity;
use crate::time::Instant;
use crate::wire::{COOKIE_LEN, ConnectionId};

/// How long a cookie secret is fresh.
const PERIOD: Duration = Duration::from_secs(10);

/// Token buckets for address prefixes; prefixes that collide share one.
const PREFIXES: usize = 1024;

/// New handshakes that one prefix may begin at once.
const PREFIX_BURST: u32 = 32;

/// How many of these without a cookie: whoever forges addresses of a prefix cannot use up the rest.
const UNPROVEN_BURST: u32 = PREFIX_BURST / 2;

/// What to do with a first message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// Spend a slot and Diffie-Hellman operations on it.
    Proceed,
    /// Answer with a cookie.
    Cookie,
    /// Drop it.
    Limited,
}

/// Decides who may cost something.
pub(super) struct Admission {
    cookie_root: [u8; 32],
    /// Handshakes per second, all together.
    endpoint: Bucket,
    /// Half of that: beyond it cookies are asked for.
    threshold: Bucket,
    prefixes: Box<[Bucket]>,
    prefix_interval: Duration,
    hash_key: [u8; 16],
}

impl Admission {
    pub(super) const MEMORY: usize = PREFIXES * size_of::<Bucket>();

    pub(super) fn new(limits: &Limits, seed: &[u8; 32], identity: &Identity, hash_key: [u8; 16]) -> Self {
        let rate = limits.handshake_rate;
        let mut hasher = blake3::Hasher::new_derive_key("WRAITH v1 cookie");
        hasher.update(seed).update(identity.seed());
        Self {
            cookie_root: hasher.finalize().into(),
            endpoint: Bucket::default(),
            threshold: Bucket::default(),
            prefixes: vec![Bucket::default(); PREFIXES].into_boxed_slice(),
            prefix_interval: Duration::from_secs(1) / (rate / 8).max(4),
            hash_key,
        }
    }

    /// Judges a first message from `from`. `proven`: it carries a good cookie. `crowded`: a quarter of the
    /// handshake slots is occupied.
    pub(super) fn judge(
        &mut self,
        now: Instant,
        limits: &Limits,
        from: SocketAddr,
        proven: bool,
        crowded: bool,
    ) -> Verdict {
        let interval = Duration::from_secs(1) / limits.handshake_rate;
        let burst = (limits.handshake_rate / 8).max(4);
        let prefix = self.prefix(from.ip());
        if !proven {
            let calm = !crowded
                && self.prefixes[prefix].has(now, self.prefix_interval, UNPROVEN_BURST)
                && self.threshold.take(now, interval * 2, (burst / 2).max(2));
            if !calm {
                return Verdict::Cookie;
            }
        }
        if !self.prefixes[prefix].has(now, self.prefix_interval, PREFIX_BURST)
            || !self.endpoint.take(now, interval, burst)
        {
            return Verdict::Limited;
        }
        self.prefixes[prefix].take(now, self.prefix_interval, PREFIX_BURST);
        Verdict::Proceed
    }

    /// The cookie of the current period.
    pub(super) fn cookie(&self, now: Instant, from: SocketAddr, id: ConnectionId) -> [u8; COOKIE_LEN] {
        self.cookie_at(period(now), from, id)
    }

    /// Whether `cookie` was given to this address for this handshake in the current or previous period.
    pub(super) fn accepts(
        &self,
        now: Instant,
        from: SocketAddr,
        id: ConnectionId,
        cookie: &[u8; COOKIE_LEN],
    ) -> bool {
        let current = period(now);
        let fresh = self.cookie_at(current, from, id).ct_eq(cookie);
        let older = self.cookie_at(current.saturating_sub(1), from, id).ct_eq(cookie);
        bool::from(fresh | older)
    }

    fn cookie_at(&self, period: u64, from: SocketAddr, id: ConnectionId) -> [u8; COOKIE_LEN] {
        let secret = blake3::keyed_hash(&self.cookie_root, &period.to_be_bytes());
        let address = match from.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
            IpAddr::V6(ip) => ip.octets(),
        };
        let mut hasher = blake3::Hasher::new_keyed(secret.as_bytes());
        hasher
            .update(&address)
            .update(&from.port().to_be_bytes())
            .update(&id.0)
            .update(&period.to_be_bytes());
        let mut cookie = [0; COOKIE_LEN];
        hasher.finalize_xof().fill(&mut cookie);
        cookie
    }

    fn prefix(&self, ip: IpAddr) -> usize {
        let mut hasher = SipHasher13::new_with_key(&self.hash_key);
        match ip {
            IpAddr::V4(ip) => hasher.write(&ip.octets()[..3]),
            IpAddr::V6(ip) => hasher.write(&ip.octets()[..6]),
        }
        hasher.finish() as usize % PREFIXES
    }
}

fn period(now: Instant) -> u64 {
    now.as_nanos() / crate::time::nanos(PERIOD)
}

/// A token bucket as the time at which it will be full again (GCRA).
#[derive(Clone, Copy, Debug, Default)]
struct Bucket(u64);

impl Bucket {
    /// Whether a token is there; they come one each `interval`, and at most `burst` are kept.
    fn has(self, now: Instant, interval: Duration, burst: u32) -> bool {
        let room = crate::time::nanos(interval) * u64::from(burst - 1);
        self.0.saturating_sub(now.as_nanos()) <= room
    }

    /// Takes a token if there is one.
    fn take(&mut self, now: Instant, interval: Duration, burst: u32) -> bool {
        let has = self.has(now, interval, burst);
        if has {
            self.0 = self.0.max(now.as_nanos()).saturating_add(crate::time::nanos(interval));
        }
        has
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(1_000_000_000_000 + millis * 1_000_000)
    }

    fn admission() -> Admission {
        Admission::new(&Limits::client(), &[1; 32], &Identity::from_seed([2; 32]), [3; 16])
    }

    fn address(last: u8, port: u16) -> SocketAddr {
        SocketAddr::new(Ipv4Addr::new(192, 0, 2, last).into(), port)
    }

    /// `PROTO §4.14`
    #[test]
    fn a_cookie_is_good_for_its_address_its_id_and_two_periods() {
        let (admission, id) = (admission(), ConnectionId([5; 8]));
        let cookie = admission.cookie(at(0), address(1, 4), id);
        assert!(admission.accepts(at(0), address(1, 4), id, &cookie));
        assert!(admission.accepts(at(10_000), address(1, 4), id, &cookie));
        assert!(!admission.accepts(at(20_000), address(1, 4), id, &cookie));
        assert!(!admission.accepts(at(0), address(2, 4), id, &cookie));
        assert!(!admission.accepts(at(0), address(1, 5), id, &cookie));
        assert!(!admission.accepts(at(0), address(1, 4), ConnectionId([6; 8]), &cookie));
        assert!(!admission.accepts(at(0), address(1, 4), id, &[0; 16]));
    }

    #[test]
    fn a_bucket_gives_its_burst_and_then_its_rate() {
        let mut bucket = Bucket::default();
        let taken = (0..10).filter(|_| bucket.take(at(0), Duration::from_millis(10), 4)).count();
        assert_eq!(taken, 4);
        assert!(!bucket.take(at(9), Duration::from_millis(10), 4));
        assert!(bucket.take(at(10), Duration::from_millis(10), 4));
    }

    /// `PROTO §4.15`: a cookie buys no more than the prefix's share.
    #[test]
    fn a_proven_prefix_is_still_limited() {
        let (mut admission, limits) = (admission(), Limits::client());
        let verdicts = |admission: &mut Admission, last: u8| {
            let judge = |port| admission.judge(at(0), &limits, address(last, port), true, true);
            (0..100).map(judge).filter(|&verdict| verdict == Verdict::Proceed).count()
        };
        assert_eq!(verdicts(&mut admission, 1), PREFIX_BURST as usize);
        assert_eq!(verdicts(&mut admission, 2), 0, "the same /24");
    }

    /// `PROTO §4.13`
    #[test]
    fn strangers_are_asked_for_a_cookie_when_slots_are_scarce_or_the_rate_is_high() {
        let (mut admission, limits) = (admission(), Limits::client());
        let judge = |admission: &mut Admission, prefix: u8, crowded| {
            let from = SocketAddr::new(Ipv4Addr::new(192, 0, prefix, 1).into(), 1);
            admission.judge(at(0), &limits, from, false, crowded)
        };
        assert_eq!(judge(&mut admission, 0, true), Verdict::Cookie);
        let calm = (0..100).filter(|&prefix| judge(&mut admission, prefix, false) != Verdict::Cookie).count();
        assert_eq!(calm, 62);
    }

    /// `PROTO §4.15`: forged addresses leave half of a prefix to those who answer a cookie.
    #[test]
    fn strangers_of_one_prefix_are_asked_for_a_cookie_before_its_share_is_used_up() {
        let (mut admission, limits) = (admission(), Limits::client());
        let mut judge = |proven| admission.judge(at(0), &limits, address(1, 1), proven, false);
        assert_eq!((0..16).filter(|_| judge(false) == Verdict::Proceed).count(), 16);
        assert!((0..100).all(|_| judge(false) == Verdict::Cookie));
        assert_eq!((0..100).filter(|_| judge(true) == Verdict::Proceed).count(), 16);
    }
}
