//! Noise X, the handshake of a single message (`PROTO §12.2`), over the primitives that snow gets.
//!
//! Written out, since snow computes every Diffie-Hellman result anew: here that of the two static keys is the caller's,
//! who may remember it. Tests hold it to snow.

use core::fmt;

use snow::types::Hash;
use zeroize::Zeroizing;

use super::blake2s::{Blake2s, Hmac};
use super::{CryptoProvider, TAG_LEN, X25519Key, agree};

/// As long as a hash, so Noise takes it as the first hash itself (Noise §5.2).
const PROTOCOL: &[u8; 32] = b"Noise_X_25519_ChaChaPoly_BLAKE2s";

/// Where the sealed static key begins in a message; before it stands the ephemeral key.
const STATIC_AT: usize = 32;

/// Where the sealed payload begins in a message.
pub(crate) const PAYLOAD_AT: usize = STATIC_AT + 32 + TAG_LEN;

/// What all messages begin with: HMAC with the first chaining key, which is the name of the protocol.
pub(crate) struct Beginning(Hmac);

impl Beginning {
    pub(crate) fn new() -> Self {
        Self(Hmac::new(PROTOCOL))
    }
}

/// The state of one message that is being written or read. Wipes its secrets on drop.
pub(crate) struct NoiseX {
    crypto: &'static dyn CryptoProvider,
    hasher: Blake2s,
    /// HMAC with the first chaining key, until that is mixed.
    beginning: Option<Hmac>,
    chaining_key: Zeroizing<[u8; 32]>,
    hash: [u8; 32],
    /// Each key encrypts once, with nonce 0.
    key: Zeroizing<[u8; 32]>,
}

/// A message that was written, without the hash of its payload.
pub(crate) struct Written(NoiseX);

/// A message that was written, or read and found genuine: only now the split is a secret of both ends.
pub(crate) struct Finished(NoiseX);

impl NoiseX {
    /// A message to the holder of the static key `recipient`.
    pub(crate) fn new(
        crypto: &'static dyn CryptoProvider,
        Beginning(beginning): &Beginning,
        prologue: &[u8],
        recipient: &[u8; 32],
    ) -> Self {
        let mut state = Self {
            crypto,
            hasher: Blake2s::default(),
            beginning: Some(beginning.clone()),
            chaining_key: Zeroizing::new(*PROTOCOL),
            hash: *PROTOCOL,
            key: Zeroizing::new([0; 32]),
        };
        state.mix_hash(prologue);
        state.mix_hash(recipient);
        state
    }

    /// Writes the message around the payload that stands in `message` at [`PAYLOAD_AT`], with [`TAG_LEN`] bytes of room
    /// behind it. `shared` is X25519 of the two static keys, of which `own` is the sender's. `None` if the recipient's
    /// key is of small order (`PROTO §3.3`). What it returns is for keys, if any follow: [`Written::finish`].
    ///
    /// # Panics
    /// If `message` is shorter than [`PAYLOAD_AT`] and [`TAG_LEN`] together.
    pub(crate) fn write(
        mut self,
        ephemeral: &[u8; 32],
        recipient: &[u8; 32],
        own: &[u8; 32],
        shared: &[u8; 32],
        message: &mut [u8],
    ) -> Option<Written> {
        let ephemeral = self.crypto.x25519_key(ephemeral);
        let (head, payload) = message.split_at_mut(PAYLOAD_AT);
        head[..STATIC_AT].copy_from_slice(&ephemeral.public());
        head[STATIC_AT..STATIC_AT + 32].copy_from_slice(own);
        self.mix_hash(&ephemeral.public());
        self.mix_key(&*agree(&*ephemeral, recipient)?);
        self.encrypt(&mut head[STATIC_AT..]);
        self.mix_hash(&head[STATIC_AT..]);
        self.mix_key(shared);
        self.encrypt(payload);
        Some(Written(self))
    }

    /// Reads the sender's static key out of the first [`PAYLOAD_AT`] bytes of a message, with one X25519. `None` if it does
    /// not authenticate: altered, or for somebody else.
    pub(crate) fn read_static(
        &mut self,
        key: &dyn X25519Key,
        message: &[u8; PAYLOAD_AT],
    ) -> Option<[u8; 32]> {
        let (ephemeral, sealed) = message.split_first_chunk()?;
        self.mix_hash(ephemeral);
        self.mix_key(&*agree(key, ephemeral)?);
        let mut opened = *sealed.first_chunk::<{ 32 + TAG_LEN }>()?;
        let before = self.hash;
        self.mix_hash(&opened);
        self.decrypt(&before, &mut opened)?;
        opened.first_chunk().copied()
    }

    /// Opens the payload behind the static key where it lies and returns its length; `shared` is as in
    /// [`write`](Self::write). What `sealed` holds after a failure is undefined.
    pub(crate) fn read_payload(mut self, shared: &[u8; 32], sealed: &mut [u8]) -> Option<(usize, ())> {
        self.mix_key(shared);
        let hash = self.hash;
        Some((self.decrypt(&hash, sealed)?, ()))
    }

    /// As [`read_payload`](Self::read_payload), of a message that keys follow.
    pub(crate) fn read_payload_and_finish(
        mut self,
        shared: &[u8; 32],
        sealed: &mut [u8],
    ) -> Option<(usize, Finished)> {
        self.mix_key(shared);
        let before = self.hash;
        self.mix_hash(sealed);
        let len = self.decrypt(&before, sealed)?;
        Some((len, Finished(self)))
    }

    fn mix_hash(&mut self, data: &[u8]) {
        self.hasher.reset();
        self.hasher.input(&self.hash);
        self.hasher.input(data);
        self.hasher.result(&mut self.hash);
    }

    fn mix_key(&mut self, material: &[u8; 32]) {
        let chain = self.beginning.take().unwrap_or_else(|| Hmac::new(&self.chaining_key));
        let key = chain.of(material);
        Hmac::new(&key).expand(&mut [&mut *self.chaining_key, &mut *self.key]);
    }

    fn encrypt(&self, packet: &mut [u8]) {
        self.crypto.noise_key(&self.key).seal_in_place(0, &self.hash, packet);
    }

    fn decrypt(&self, hash: &[u8; 32], packet: &mut [u8]) -> Option<usize> {
        self.crypto.noise_key(&self.key).open_in_place(0, hash, packet).ok()
    }
}

impl Written {
    /// The end of the handshake, for the keys that follow; `sealed` is what stands in the message at [`PAYLOAD_AT`].
    ///
    /// A datagram has no such keys, and its payload may be long: hashing it would be for nothing.
    pub(crate) fn finish(mut self, sealed: &[u8]) -> Finished {
        self.0.mix_hash(sealed);
        Finished(self.0)
    }
}

impl Finished {
    /// `derive_key(context, k1 ‖ k2 ‖ h)` of both outputs of Noise `Split()` and the handshake hash.
    pub(crate) fn derive(mut self, context: &str) -> Zeroizing<[u8; 32]> {
        let state = &mut self.0;
        let mut material = Zeroizing::new([0; 96]);
        let (k1, rest) = material.split_at_mut(32);
        let (k2, h) = rest.split_at_mut(32);
        state.hasher.hkdf(&*state.chaining_key, &[], 2, k1, k2, &mut []);
        h.copy_from_slice(&state.hash);
        Zeroizing::new(blake3::derive_key(context, &*material))
    }
}

impl fmt::Debug for NoiseX {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NoiseX").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
