//! The only source of randomness in the core: a stream that its seed fixes.

use alloc::boxed::Box;

use blake3::{Hasher, OutputReader};
use zeroize::{Zeroize, Zeroizing};

use super::Identity;

/// The random stream of one endpoint (`PROTO §3.8`), wiped on drop.
///
/// The identity and the shard enter the key, so that one seed given to several shards, or a weak one, does
/// not repeat values that have to differ.
pub(crate) struct Rng {
    stream: OutputReader,
    /// One block of the stream: each read of it costs a compression, however short it is.
    block: [u8; BLOCK],
    /// Bytes of the block that were given out.
    used: usize,
    /// What the next secret follows from, and no former one: the stream, which can be read again from its start, does
    /// not give them away. Boxed, so that moving an endpoint leaves no copies behind.
    chain: Box<Zeroizing<[u8; 32]>>,
}

const BLOCK: usize = 64;

impl Rng {
    pub(crate) fn new(seed: &[u8; 32], identity: &Identity, shard: u8) -> Self {
        let output = |context| {
            let mut hasher = Hasher::new_derive_key(context);
            hasher.update(seed).update(identity.seed()).update(&[shard]);
            let output = hasher.finalize_xof();
            hasher.zeroize();
            output
        };
        let mut chain = Box::new(Zeroizing::new([0; 32]));
        let mut first = output("WRAITH v1 secret chain");
        first.fill(&mut **chain);
        first.zeroize();
        Self { stream: output("WRAITH v1 endpoint rng"), block: [0; BLOCK], used: BLOCK, chain }
    }

    /// A secret that nobody can find later, not even who has all that this holds by then.
    pub(crate) fn secret(&mut self) -> Zeroizing<[u8; 32]> {
        let mut fresh = Zeroizing::new([0; 32]);
        self.fill(&mut *fresh);
        let mut hasher = Hasher::new_derive_key("WRAITH v1 next secret");
        hasher.update(&**self.chain).update(&*fresh);
        let mut output = hasher.finalize_xof();
        hasher.zeroize();
        output.fill(&mut **self.chain);
        output.fill(&mut *fresh);
        output.zeroize();
        fresh
    }

    /// Fills `out` with the next bytes.
    pub(crate) fn fill(&mut self, out: &mut [u8]) {
        let mut rest = out;
        while !rest.is_empty() {
            if self.used == BLOCK {
                self.stream.fill(&mut self.block);
                self.used = 0;
            }
            let ready = &mut self.block[self.used..];
            let len = ready.len().min(rest.len());
            let (now, later) = rest.split_at_mut(len);
            now.copy_from_slice(&ready[..len]);
            // What was given out may be a secret.
            ready[..len].fill(0);
            self.used += len;
            rest = later;
        }
    }

    /// The next `N` bytes.
    pub(crate) fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.fill(&mut bytes);
        bytes
    }

    /// The next 8 bytes as a number.
    pub(crate) fn next_u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    /// A number below `n`, each equally likely; 0 if `n` is 0.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        if n <= 1 {
            return 0;
        }
        // The multiples of `n` do not fill 64 bits evenly: of the low halves, 2^64 mod n values are one too
        // many.
        let surplus = n.wrapping_neg() % n;
        loop {
            let product = u128::from(self.next_u64()) * u128::from(n);
            if product as u64 >= surplus {
                return (product >> 64) as u64;
            }
        }
    }
}

impl Drop for Rng {
    fn drop(&mut self) {
        self.stream.zeroize();
        self.block.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rng(seed: u8, identity: u8, shard: u8) -> Rng {
        Rng::new(&[seed; 32], &Identity::from_seed([identity; 32]), shard)
    }

    #[test]
    fn the_stream_is_the_extended_output_of_derive_key() {
        // PROTO §3.8
        let mut expected = [0; 100];
        let mut hasher = Hasher::new_derive_key("WRAITH v1 endpoint rng");
        hasher.update(&[&[1; 32][..], &[2; 32], &[3]].concat());
        hasher.finalize_xof().fill(&mut expected);
        let mut rng = rng(1, 2, 3);
        assert_eq!(rng.array::<7>(), expected[..7]);
        assert_eq!(rng.next_u64().to_le_bytes(), expected[7..15]);
        assert_eq!(rng.array::<85>(), expected[15..]);
    }

    /// `PROTO §3.8`
    #[test]
    fn each_secret_takes_the_place_of_what_it_follows_from() {
        let mut chain = [0; 32];
        let mut hasher = Hasher::new_derive_key("WRAITH v1 secret chain");
        hasher.update(&[&[1; 32][..], &[2; 32], &[3]].concat());
        hasher.finalize_xof().fill(&mut chain);
        let (mut rng, mut stream) = (rng(1, 2, 3), rng(1, 2, 3));
        for _ in 0..3 {
            let mut output = [0; 64];
            let mut hasher = Hasher::new_derive_key("WRAITH v1 next secret");
            hasher.update(&chain).update(&stream.array::<32>());
            hasher.finalize_xof().fill(&mut output);
            assert_eq!(*rng.secret(), output[32..]);
            chain.copy_from_slice(&output[..32]);
            assert_eq!(**rng.chain, chain);
        }
    }

    #[test]
    fn seed_identity_and_shard_each_change_the_secrets() {
        let base = rng(1, 2, 3).secret();
        assert_eq!(rng(1, 2, 3).secret(), base);
        for mut other in [rng(9, 2, 3), rng(1, 9, 3), rng(1, 2, 9)] {
            assert_ne!(other.secret(), base);
        }
    }

    #[test]
    fn seed_identity_and_shard_each_change_the_stream() {
        let base = rng(1, 2, 3).array::<32>();
        assert_eq!(rng(1, 2, 3).array::<32>(), base);
        for other in [rng(9, 2, 3), rng(1, 9, 3), rng(1, 2, 9)] {
            let mut other = other;
            assert_ne!(other.array::<32>(), base);
        }
    }

    #[test]
    fn numbers_below_a_bound_are_in_range_and_even() {
        let mut rng = rng(1, 2, 3);
        for n in [0, 1] {
            assert_eq!(rng.below(n), 0);
        }
        let mut seen = [0_u32; 6];
        for _ in 0..60_000 {
            seen[rng.below(6) as usize] += 1;
        }
        // 10,000 expected in each, standard deviation 91.
        assert!(seen.iter().all(|count| (9_500..10_500).contains(count)), "{seen:?}");
        // Half of all draws have to be thrown away here: a plain remainder would favour the low third.
        let n = (1 << 63) + (1 << 62);
        let low = (0..9_000).filter(|_| rng.below(n) < n / 3).count();
        assert!((2_700..3_300).contains(&low), "{low}");
    }
}
