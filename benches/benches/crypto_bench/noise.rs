//! What one end of Noise XX hashes and encrypts, apart from its Diffie-Hellman operations.

use blake2::{Blake2s256, Digest};
use wraith_proto::crypto::{CryptoProvider, PacketKey, TAG_LEN};

/// Lengths of the payloads of the three messages.
pub(crate) type Payloads = [usize; 3];

/// Works through the symmetric operations of one end (Noise §5.2, §7.5), with zeros for keys and payloads.
///
/// Decryption costs what encryption costs, so both ends do the same.
pub(crate) fn symmetric_operations(crypto: &dyn CryptoProvider, payloads: Payloads) -> [u8; 32] {
    let [first, second, third] = payloads;
    let mut state = Symmetric::new(crypto, b"Noise_XX_25519_ChaChaPoly_BLAKE2s");
    state.mix_hash(&[0; 10]); // the prologue
    state.mix_hash(&[0; 32]); // -> e
    state.mix_hash(&vec![0; first]);
    state.mix_hash(&[0; 32]); // <- e, ee, s, es
    state.mix_key();
    state.encrypt_and_hash(32);
    state.mix_key();
    state.encrypt_and_hash(second);
    state.hkdf(); // the key of the outer MAC of the third message (PROTO §4.2)
    state.encrypt_and_hash(32); // -> s, se
    state.mix_key();
    state.encrypt_and_hash(third);
    state.hkdf(); // Split
    state.hash
}

struct Symmetric<'a> {
    crypto: &'a dyn CryptoProvider,
    chaining_key: [u8; 32],
    hash: [u8; 32],
    cipher: Box<dyn PacketKey>,
}

impl<'a> Symmetric<'a> {
    fn new(crypto: &'a dyn CryptoProvider, name: &[u8]) -> Self {
        let hash = Blake2s256::digest(name).into();
        Self { crypto, chaining_key: hash, hash, cipher: crypto.noise_key(&[0; 32]) }
    }

    fn mix_hash(&mut self, data: &[u8]) {
        self.hash = Blake2s256::new().chain_update(self.hash).chain_update(data).finalize().into();
    }

    fn mix_key(&mut self) {
        let (chaining_key, key) = self.hkdf();
        self.chaining_key = chaining_key;
        self.cipher = self.crypto.noise_key(&key);
    }

    fn encrypt_and_hash(&mut self, len: usize) {
        let mut text = vec![0; len + TAG_LEN];
        self.cipher.seal_in_place(0, &self.hash, &mut text);
        self.mix_hash(&text);
    }

    /// Noise §4.3 with two outputs.
    fn hkdf(&self) -> ([u8; 32], [u8; 32]) {
        let temp = hmac(&self.chaining_key, &[&[0; 32]]);
        let first = hmac(&temp, &[&[1]]);
        let second = hmac(&temp, &[&first, &[2]]);
        (first, second)
    }
}

/// HMAC-BLAKE2s (RFC 2104).
fn hmac(key: &[u8; 32], parts: &[&[u8]]) -> [u8; 32] {
    let pad = |byte: u8| {
        let mut block = [byte; 64];
        block.iter_mut().zip(key).for_each(|(pad, key)| *pad ^= key);
        block
    };
    let inner = parts.iter().fold(Blake2s256::new().chain_update(pad(0x36)), Digest::chain_update);
    Blake2s256::new().chain_update(pad(0x5c)).chain_update(inner.finalize()).finalize().into()
}
