//! The only source of randomness: a stream that its seed fixes.

use zeroize::Zeroizing;

/// Bytes of one block of the stream.
const BLOCK: usize = 64;

/// Random numbers that who does not know the seed cannot foretell.
pub(crate) struct Random {
    key: Zeroizing<[u8; 32]>,
    counter: u64,
    block: [u8; BLOCK],
    used: usize,
}

impl Random {
    /// The stream of `seed` for the node `public`, so that a seed given to two does not repeat.
    pub(crate) fn new(seed: &[u8; 32], public: &[u8; 32]) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("WRAITH v1 dht random");
        hasher.update(seed).update(public);
        Self {
            key: Zeroizing::new(*hasher.finalize().as_bytes()),
            counter: 0,
            block: [0; BLOCK],
            used: BLOCK,
        }
    }

    pub(crate) fn array<const N: usize>(&mut self) -> [u8; N] {
        const { assert!(N <= BLOCK) };
        if self.used + N > BLOCK {
            let mut hasher = blake3::Hasher::new_keyed(&self.key);
            hasher.update(&self.counter.to_be_bytes());
            hasher.finalize_xof().fill(&mut self.block);
            self.counter += 1;
            self.used = 0;
        }
        let mut out = [0; N];
        out.copy_from_slice(&self.block[self.used..][..N]);
        self.used += N;
        out
    }

    pub(crate) fn next_u64(&mut self) -> u64 {
        u64::from_be_bytes(self.array())
    }

    /// A number below `bound`, which is not 0.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        // A bias of 2^-32 decides nothing here: no secret is drawn this way.
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_has_one_stream_and_each_node_its_own() {
        let mut random = Random::new(&[1; 32], &[2; 32]);
        let first: [[u8; 8]; 20] = core::array::from_fn(|_| random.array());
        let mut random = Random::new(&[1; 32], &[2; 32]);
        assert_eq!(first, core::array::from_fn(|_| random.array()));
        for (at, value) in first.iter().enumerate() {
            assert!(!first[..at].contains(value));
        }
        for (seed, public) in [([9; 32], [2; 32]), ([1; 32], [9; 32])] {
            assert_ne!(Random::new(&seed, &public).array::<8>(), first[0]);
        }
    }

    #[test]
    fn numbers_below_a_bound_cover_it() {
        let mut random = Random::new(&[1; 32], &[2; 32]);
        let mut seen = [0; 4];
        for _ in 0..4_000 {
            seen[random.below(4) as usize] += 1;
        }
        assert!(seen.iter().all(|count| (850..1_150).contains(count)), "{seen:?}");
    }
}
