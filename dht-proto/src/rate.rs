//! How many requests are answered, in all and for one prefix.

use siphasher::sip::SipHasher13;
use wraith_proto::Instant;

use crate::node::Address;

/// Counters of prefixes. Prefixes that fall on one share its limit.
const CELLS: usize = 64;

/// Token buckets: one for all, one for each hash of a prefix (/24 of IPv4, /48 of IPv6).
#[derive(Debug)]
pub(crate) struct Rate {
    limits: RateLimits,
    all: Bucket,
    cells: [Bucket; CELLS],
    key: [u8; 16],
}

/// Requests that are answered per second; the burst is as many. 0 answers none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RateLimits {
    /// In all.
    pub all: u16,
    /// From one prefix: /24 of IPv4, /48 of IPv6.
    pub per_prefix: u16,
}

#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    /// Thousandths of a request that may still come.
    level: u32,
    /// Milliseconds of the last filling.
    filled: u32,
}

impl Rate {
    pub(crate) fn new(limits: RateLimits, key: [u8; 16], now: Instant) -> Self {
        let full = |limit: u16| Bucket { level: u32::from(limit) * 1_000, filled: millis(now) };
        Self { limits, all: full(limits.all), cells: [full(limits.per_prefix); CELLS], key }
    }

    /// Whether a request from `address` is to be answered, which counts it.
    pub(crate) fn admits(&mut self, address: &Address, now: Instant) -> bool {
        let now = millis(now);
        let cell = cell(&self.key, address, CELLS);
        // What one prefix has too much costs the others nothing. Private networks are all one prefix, and no strangers.
        let admitted = !address.is_public() || self.cells[cell].take(self.limits.per_prefix, now);
        admitted && self.all.take(self.limits.all, now)
    }
}

/// One of `cells` counters for the prefix of `address`. Who does not know `key` does not find prefixes that share one.
pub(crate) fn cell(key: &[u8; 16], address: &Address, cells: usize) -> usize {
    SipHasher13::new_with_key(key).hash(address.site()) as usize % cells
}

impl Bucket {
    fn take(&mut self, limit: u16, now: u32) -> bool {
        let limit = u32::from(limit);
        let filling = now.wrapping_sub(self.filled).saturating_mul(limit);
        self.level = self.level.saturating_add(filling).min(limit * 1_000);
        self.filled = now;
        let enough = self.level >= 1_000;
        if enough {
            self.level -= 1_000;
        }
        enough
    }
}

const fn millis(now: Instant) -> u32 {
    (now.as_nanos() / 1_000_000) as u32
}

#[cfg(test)]
mod tests {
    use core::net::SocketAddr;
    use core::time::Duration;

    use super::*;

    fn address(text: &str) -> Address {
        text.parse::<SocketAddr>().unwrap().into()
    }

    #[test]
    fn a_prefix_has_its_burst_and_then_its_rate() {
        let mut now = Instant::MIN;
        let mut rate = Rate::new(RateLimits { all: 100, per_prefix: 10 }, [7; 16], now);
        let mut admitted = |now, text| (0..200).filter(|_| rate.admits(&address(text), now)).count();
        assert_eq!(admitted(now, "9.8.7.1:1"), 10);
        assert_eq!(admitted(now, "9.8.7.2:1"), 0);
        assert_eq!(admitted(now, "9.8.8.1:1"), 10);
        now = now.saturating_add(Duration::from_millis(300));
        assert_eq!(admitted(now, "9.8.7.1:1"), 3);
        now = now.saturating_add(Duration::from_hours(1));
        assert_eq!(admitted(now, "9.8.7.1:1"), 10);
    }

    #[test]
    fn hosts_of_a_private_network_share_the_limit_of_all_alone() {
        let mut rate = Rate::new(RateLimits { all: 25, per_prefix: 10 }, [7; 16], Instant::MIN);
        let admitted = (0..100).filter(|_| rate.admits(&address("192.168.1.2:1"), Instant::MIN)).count();
        assert_eq!(admitted, 25);
    }

    #[test]
    fn all_prefixes_together_have_a_burst_and_a_rate() {
        let mut rate = Rate::new(RateLimits { all: 25, per_prefix: 10 }, [7; 16], Instant::MIN);
        let from = |at: u8| Address::v4([9, 8, at, 1], [0, 1]);
        let mut admitted = |millis| {
            let now = Instant::MIN.saturating_add(Duration::from_millis(millis));
            (0..100).filter(|&at| rate.admits(&from(at), now)).count()
        };
        assert_eq!([0, 200, 3_600_000].map(&mut admitted), [25, 5, 25]);
    }

    #[test]
    fn prefixes_spread_over_the_counters() {
        let mut seen = [0_u32; 128];
        for at in 0..12_800_u32 {
            let [_, a, b, c] = at.to_be_bytes();
            seen[cell(&[7; 16], &Address::v4([10 + a, b, c, 1], [0, 1]), 128)] += 1;
        }
        assert!(seen.iter().all(|&count| (40..200).contains(&count)), "{seen:?}");
    }
}
