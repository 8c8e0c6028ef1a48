//! BLAKE2s and its HMAC, as Noise wants them (Noise §4.3, RFC 2104).

use blake2::digest::block_api::{Block, Buffer, UpdateCore, VariableOutputCore};
use blake2::{Blake2s256, Blake2sVarCore, Digest};
use snow::types::Hash;
use zeroize::Zeroizing;

const BLOCK: usize = 64;
const LEN: usize = 32;

/// The hash wipes its state on drop.
#[derive(Default)]
pub(super) struct Blake2s(Blake2s256);

impl Hash for Blake2s {
    fn name(&self) -> &'static str {
        "BLAKE2s"
    }

    fn block_len(&self) -> usize {
        BLOCK
    }

    fn hash_len(&self) -> usize {
        LEN
    }

    fn reset(&mut self) {
        self.0 = Blake2s256::new();
    }

    fn input(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    fn result(&mut self, out: &mut [u8]) {
        let hash = core::mem::take(&mut self.0).finalize();
        out[..LEN].copy_from_slice(&hash);
    }

    /// All outputs have one key, whose two blocks are compressed once.
    fn hkdf(
        &mut self,
        chaining_key: &[u8],
        input_key_material: &[u8],
        outputs: usize,
        out1: &mut [u8],
        out2: &mut [u8],
        out3: &mut [u8],
    ) {
        let mut key = Zeroizing::new([0; LEN]);
        self.hmac(chaining_key, input_key_material, &mut *key);
        Hmac::new(&key).expand(&mut [out1, out2, out3][..outputs]);
    }
}

/// HMAC with one key: the two hashes, behind their padded keys. They wipe themselves on drop.
///
/// The buffered hash cannot be had in that state: it keeps a whole block until it knows that another follows.
#[derive(Clone)]
pub(super) struct Hmac {
    inner: Blake2sVarCore,
    outer: Blake2sVarCore,
}

impl Hmac {
    pub(super) fn new(key: &[u8; LEN]) -> Self {
        let [inner, outer] = [0x36, 0x5c].map(|pad| {
            let mut block = Zeroizing::new([pad; BLOCK]);
            block.iter_mut().zip(key).for_each(|(pad, key)| *pad ^= key);
            let mut hash = Blake2sVarCore::new(LEN).expect("BLAKE2s has 32 bytes");
            hash.update_blocks(core::slice::from_ref(<&Block<Blake2sVarCore>>::from(&*block)));
            hash
        });
        Self { inner, outer }
    }

    /// Of a message that is not empty, nor longer than a block.
    pub(super) fn of(&self, message: &[u8]) -> Zeroizing<[u8; LEN]> {
        finished(&self.outer, &*finished(&self.inner, message))
    }

    /// The second half of HKDF, with the key that the first half gave.
    pub(super) fn expand(&self, outputs: &mut [&mut [u8]]) {
        // The output before, of which there is none at first, and the number of this one.
        let mut message = Zeroizing::new([0; LEN + 1]);
        let mut begin = LEN;
        for (number, output) in (1..).zip(outputs) {
            message[LEN] = number;
            let mac = self.of(&message[begin..]);
            output[..LEN].copy_from_slice(&*mac);
            message[..LEN].copy_from_slice(&*mac);
            begin = 0;
        }
    }
}

/// The hash of what `hash` has seen and the last block.
fn finished(hash: &Blake2sVarCore, last: &[u8]) -> Zeroizing<[u8; LEN]> {
    let mut out = Zeroizing::new([0; LEN]);
    hash.clone().finalize_variable_core(&mut Buffer::<Blake2sVarCore>::new(last), (&mut *out).into());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What snow makes of the hash, which pads the key for each output.
    struct Plain(Blake2s);

    impl Hash for Plain {
        fn name(&self) -> &'static str {
            self.0.name()
        }

        fn block_len(&self) -> usize {
            self.0.block_len()
        }

        fn hash_len(&self) -> usize {
            self.0.hash_len()
        }

        fn reset(&mut self) {
            self.0.reset();
        }

        fn input(&mut self, data: &[u8]) {
            self.0.input(data);
        }

        fn result(&mut self, out: &mut [u8]) {
            self.0.result(out);
        }
    }

    #[test]
    fn keys_are_those_that_snow_derives() {
        for seed in 0..50_u8 {
            let (chaining_key, material) = ([seed; 32], [!seed; 64]);
            for len in [0, 1, 31, 32, 33, 64] {
                for outputs in 1..=3 {
                    // Buffers of snow are longer than what it uses of them.
                    let (mut ours, mut theirs) = ([[0; 64]; 3], [[0; 64]; 3]);
                    let [a, b, c] = &mut ours;
                    Blake2s::default().hkdf(&chaining_key, &material[..len], outputs, a, b, c);
                    let [a, b, c] = &mut theirs;
                    Plain(Blake2s::default()).hkdf(&chaining_key, &material[..len], outputs, a, b, c);
                    assert_eq!(ours, theirs);
                    assert!(
                        ours[outputs - 1] != [0; 64] && ours[outputs..].iter().all(|out| *out == [0; 64])
                    );
                }
            }
        }
    }
}
