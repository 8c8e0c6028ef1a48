//! A small deterministic generator: one printable seed, one sequence, on every machine.

use std::time::Duration;

/// `SplitMix64` (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
///
/// For simulations only: its output is predictable.
#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
}

impl Rng {
    /// The generator of `seed`.
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    pub const fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; 0 for a bound of 0.
    pub const fn below(&mut self, bound: u64) -> u64 {
        ((self.next_u64() as u128 * bound as u128) >> 64) as u64
    }

    /// True with a probability of `ppm` millionths.
    pub const fn chance(&mut self, ppm: u32) -> bool {
        self.below(1_000_000) < ppm as u64
    }

    /// A duration from zero to `longest`, both included.
    pub fn up_to(&mut self, longest: Duration) -> Duration {
        let nanos = u64::try_from(longest.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(self.below(nanos.saturating_add(1)))
    }

    /// Fills `buffer`.
    pub fn fill(&mut self, buffer: &mut [u8]) {
        for chunk in buffer.chunks_mut(8) {
            chunk.copy_from_slice(&self.next_u64().to_le_bytes()[..chunk.len()]);
        }
    }

    /// 32 bytes, such as the seed of an endpoint or an identity.
    pub fn bytes32(&mut self) -> [u8; 32] {
        let mut bytes = [0; 32];
        self.fill(&mut bytes);
        bytes
    }

    /// An independent generator for one purpose, so that purposes do not disturb each other.
    #[must_use]
    pub const fn fork(&mut self) -> Self {
        Self::new(self.next_u64())
    }
}

/// Prints its seed when a panic passes by, so that the failing run can be repeated.
#[derive(Debug)]
pub struct SeedGuard {
    seed: u64,
}

impl SeedGuard {
    /// Guards the scope of a run of `seed`.
    pub const fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The seed.
    pub const fn seed(&self) -> u64 {
        self.seed
    }
}

impl Drop for SeedGuard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("simulation seed: {}", self.seed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_of_a_seed_is_the_published_one() {
        // First outputs of the reference implementation for seed 1234567.
        let mut rng = Rng::new(1_234_567);
        assert_eq!(rng.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(rng.next_u64(), 3_203_168_211_198_807_973);
        assert_eq!(rng.next_u64(), 9_817_491_932_198_370_423);
    }

    #[test]
    fn bounds_hold_at_their_edges() {
        let mut rng = Rng::new(1);
        assert_eq!(rng.below(0), 0);
        assert_eq!(rng.below(1), 0);
        assert!((0..1000).all(|_| rng.below(3) < 3));
        assert!((0..1000).all(|_| !rng.chance(0)));
        assert!((0..1000).all(|_| rng.chance(1_000_000)));
        assert_eq!(rng.up_to(Duration::ZERO), Duration::ZERO);
    }

    #[test]
    fn a_fork_leaves_the_parent_one_step_further() {
        let (mut parent, mut twin) = (Rng::new(9), Rng::new(9));
        let mut child = parent.fork();
        twin.next_u64();
        assert_ne!(child.next_u64(), parent.clone().next_u64());
        assert_eq!(parent.next_u64(), twin.next_u64());
    }

    #[test]
    fn a_tail_shorter_than_a_word_is_filled() {
        let mut bytes = [0; 11];
        Rng::new(5).fill(&mut bytes);
        assert!(bytes[8..].iter().any(|&byte| byte != 0));
    }
}
