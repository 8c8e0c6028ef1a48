//! What snow computes with: X25519 and ChaCha20-Poly1305 of the provider, BLAKE2s and the caller's randomness.

use alloc::boxed::Box;
use alloc::sync::Arc;

use blake3::OutputReader;
use snow::Error;
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::CryptoResolver;
use snow::types::{Cipher, Dh, Hash, Random};
use zeroize::{Zeroize, Zeroizing};

use super::blake2s::Blake2s;
use super::{CryptoProvider, PacketKey, TAG_LEN, X25519Key, agree};

/// Gives snow the primitives of `Noise_*_25519_ChaChaPoly_BLAKE2s` and no other.
pub(super) struct Resolver {
    crypto: &'static dyn CryptoProvider,
    static_key: Option<Arc<dyn X25519Key>>,
    seed: Zeroizing<[u8; 32]>,
}

impl Resolver {
    /// All randomness comes from `seed`, which has to be fresh for each handshake. `static_key` is what snow gets when
    /// it sets a local static key, whatever the bytes.
    pub(super) fn new(
        crypto: &'static dyn CryptoProvider,
        static_key: Option<Arc<dyn X25519Key>>,
        seed: &[u8; 32],
    ) -> Self {
        Self { crypto, static_key, seed: Zeroizing::new(*seed) }
    }
}

impl CryptoResolver for Resolver {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        let mut hasher = blake3::Hasher::new_derive_key("WRAITH v1 noise ephemeral");
        let stream = hasher.update(&*self.seed).finalize_xof();
        hasher.zeroize();
        Some(Box::new(SeededRandom(stream)))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        (*choice == DHChoice::Curve25519).then(|| -> Box<dyn Dh> {
            let static_key = self.static_key.clone();
            Box::new(X25519 { crypto: self.crypto, static_key, key: None, public: [0; 32] })
        })
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        (*choice == HashChoice::Blake2s).then(|| -> Box<dyn Hash> { Box::new(Blake2s::default()) })
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        (*choice == CipherChoice::ChaChaPoly)
            .then(|| -> Box<dyn Cipher> { Box::new(ChaChaPoly { crypto: self.crypto, key: None }) })
    }
}

struct SeededRandom(OutputReader);

impl Random for SeededRandom {
    fn try_fill_bytes(&mut self, dest: &mut [u8]) -> Result<(), Error> {
        self.0.fill(dest);
        Ok(())
    }
}

impl Drop for SeededRandom {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

struct X25519 {
    crypto: &'static dyn CryptoProvider,
    static_key: Option<Arc<dyn X25519Key>>,
    key: Option<Arc<dyn X25519Key>>,
    public: [u8; 32],
}

impl X25519 {
    fn take(&mut self, key: Arc<dyn X25519Key>) {
        self.public = key.public();
        self.key = Some(key);
    }
}

impl Dh for X25519 {
    fn name(&self) -> &'static str {
        "25519"
    }

    fn pub_len(&self) -> usize {
        32
    }

    fn priv_len(&self) -> usize {
        32
    }

    fn set(&mut self, privkey: &[u8]) {
        let key = self.static_key.take().unwrap_or_else(|| {
            let mut secret = Zeroizing::new([0; 32]);
            secret.copy_from_slice(privkey);
            self.crypto.x25519_key(&secret).into()
        });
        self.take(key);
    }

    fn generate(&mut self, rng: &mut dyn Random) -> Result<(), Error> {
        let mut secret = Zeroizing::new([0; 32]);
        rng.try_fill_bytes(&mut *secret)?;
        self.take(self.crypto.x25519_key(&secret).into());
        Ok(())
    }

    fn pubkey(&self) -> &[u8] {
        &self.public
    }

    /// Nothing: a handshake has no use for it.
    fn privkey(&self) -> &[u8] {
        &[]
    }

    /// A zero result is an error (`PROTO §3.3`).
    fn dh(&self, pubkey: &[u8], out: &mut [u8]) -> Result<(), Error> {
        // snow passes buffers sized for its longest curve.
        let public = pubkey.first_chunk::<32>().ok_or(Error::Dh)?;
        let out = out.first_chunk_mut::<32>().ok_or(Error::Dh)?;
        *out = *agree(&**self.key.as_ref().ok_or(Error::Dh)?, public).ok_or(Error::Dh)?;
        Ok(())
    }
}

/// Noise §12.3.
struct ChaChaPoly {
    crypto: &'static dyn CryptoProvider,
    key: Option<Box<dyn PacketKey>>,
}

impl Cipher for ChaChaPoly {
    fn name(&self) -> &'static str {
        "ChaChaPoly"
    }

    fn set(&mut self, key: &[u8; 32]) {
        self.key = Some(self.crypto.noise_key(key));
    }

    fn encrypt(&self, nonce: u64, authtext: &[u8], plaintext: &[u8], out: &mut [u8]) -> usize {
        let out = &mut out[..plaintext.len() + TAG_LEN];
        out[..plaintext.len()].copy_from_slice(plaintext);
        let key = self.key.as_ref().expect("snow sets a key before it uses it");
        key.seal_in_place(nonce, authtext, out);
        out.len()
    }

    fn decrypt(
        &self,
        nonce: u64,
        authtext: &[u8],
        ciphertext: &[u8],
        out: &mut [u8],
    ) -> Result<usize, Error> {
        let key = self.key.as_ref().ok_or(Error::Decrypt)?;
        // A payload has room for its tag (`Noise::read`), a static key has none.
        if let Some(packet) = out.get_mut(..ciphertext.len()) {
            packet.copy_from_slice(ciphertext);
            return key.open_in_place(nonce, authtext, packet).map_err(|_| Error::Decrypt);
        }
        let mut packet = Zeroizing::new(ciphertext.to_vec());
        let len = key.open_in_place(nonce, authtext, &mut packet).map_err(|_| Error::Decrypt)?;
        out.get_mut(..len).ok_or(Error::Decrypt)?.copy_from_slice(&packet[..len]);
        Ok(len)
    }
}

#[cfg(test)]
mod tests;
