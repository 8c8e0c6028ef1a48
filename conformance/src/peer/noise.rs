//! `Noise_XX_25519_ChaChaPoly_BLAKE2s` (Noise revision 34), and no other handshake.
//!
//! The core uses a library; this is written from the Noise specification, so that an error in one of the two shows. A
//! state can be cloned and asked for `Split()` at any time, which `PROTO §4.2` and `§4.19` need.

use blake2::{Blake2s256, Digest};
use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{ChaCha20Poly1305, KeyInit, Nonce};
use hmac::{Mac, SimpleHmac};

use super::identity::KeyPair;
use super::{Refused, TAG_LEN};

/// Who sent the first handshake message of a session, and who answered (`PROTO §1.3`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Sent the first message.
    Initiator,
    /// Answered it.
    Responder,
}

/// One end of a handshake (Noise §5.3).
#[derive(Clone, Debug)]
pub struct Noise {
    symmetric: Symmetric,
    role: Role,
    own_static: KeyPair,
    own_ephemeral: KeyPair,
    remote_static: Option<[u8; 32]>,
    remote_ephemeral: [u8; 32],
    messages: u8,
}

impl Noise {
    /// An end before the first message.
    pub fn new(role: Role, prologue: &[u8], own_static: KeyPair, own_ephemeral: KeyPair) -> Self {
        let mut symmetric = Symmetric::new(b"Noise_XX_25519_ChaChaPoly_BLAKE2s");
        symmetric.mix_hash(prologue);
        Self {
            symmetric,
            role,
            own_static,
            own_ephemeral,
            remote_static: None,
            remote_ephemeral: [0; 32],
            messages: 0,
        }
    }

    /// Writes the next message around `payload`.
    ///
    /// # Errors
    /// [`Refused`] if it is not this end's turn or a shared secret is zero.
    pub fn write(&mut self, payload: &[u8]) -> Result<Vec<u8>, Refused> {
        let mut out = Vec::new();
        match (self.messages, self.role) {
            (0, Role::Initiator) => self.write_ephemeral(&mut out),
            (1, Role::Responder) => {
                self.write_ephemeral(&mut out);
                self.mix_ee()?;
                out.extend(self.symmetric.encrypt(&self.own_static.public));
                self.mix_es()?;
            }
            (2, Role::Initiator) => {
                out.extend(self.symmetric.encrypt(&self.own_static.public));
                self.mix_se()?;
            }
            _ => return Err(OUT_OF_TURN),
        }
        out.extend(self.symmetric.encrypt(payload));
        self.messages += 1;
        Ok(out)
    }

    /// Reads the next message and returns its payload. After an error the state is as it was.
    ///
    /// # Errors
    /// [`Refused`] if it is not the other end's turn, the message is too short or does not authenticate, or a shared
    /// secret is zero.
    pub fn read(&mut self, message: &[u8]) -> Result<Vec<u8>, Refused> {
        let mut next = self.clone();
        let payload = next.read_on(message)?;
        *self = next;
        Ok(payload)
    }

    /// The two outputs of `Split()` in the present state.
    pub fn split(&self) -> [[u8; 32]; 2] {
        self.symmetric.split()
    }

    /// The handshake hash in the present state.
    pub fn hash(&self) -> [u8; 32] {
        self.symmetric.hash
    }

    /// The other end's static key, once a message with it was read.
    pub fn remote_static(&self) -> Option<[u8; 32]> {
        self.remote_static
    }

    fn read_on(&mut self, mut message: &[u8]) -> Result<Vec<u8>, Refused> {
        match (self.messages, self.role) {
            (0, Role::Responder) => self.read_ephemeral(&mut message)?,
            (1, Role::Initiator) => {
                self.read_ephemeral(&mut message)?;
                self.mix_ee()?;
                self.read_static(&mut message)?;
                self.mix_es()?;
            }
            (2, Role::Responder) => {
                self.read_static(&mut message)?;
                self.mix_se()?;
            }
            _ => return Err(OUT_OF_TURN),
        }
        self.messages += 1;
        self.symmetric.decrypt(message)
    }

    fn write_ephemeral(&mut self, out: &mut Vec<u8>) {
        out.extend(self.own_ephemeral.public);
        self.symmetric.mix_hash(&self.own_ephemeral.public);
    }

    fn read_ephemeral(&mut self, message: &mut &[u8]) -> Result<(), Refused> {
        let (key, rest) = message.split_first_chunk().ok_or(TOO_SHORT)?;
        (self.remote_ephemeral, *message) = (*key, rest);
        self.symmetric.mix_hash(key);
        Ok(())
    }

    fn read_static(&mut self, message: &mut &[u8]) -> Result<(), Refused> {
        let (sealed, rest) = message.split_at_checked(32 + TAG_LEN).ok_or(TOO_SHORT)?;
        let key = self.symmetric.decrypt(sealed)?;
        (self.remote_static, *message) = (key.first_chunk().copied(), rest);
        Ok(())
    }

    fn mix_ee(&mut self) -> Result<(), Refused> {
        self.symmetric.mix_key(&self.own_ephemeral.agree(&self.remote_ephemeral)?);
        Ok(())
    }

    /// The initiator's ephemeral with the responder's static key.
    fn mix_es(&mut self) -> Result<(), Refused> {
        let shared = match self.role {
            Role::Initiator => self.own_ephemeral.agree(&self.remote_static.ok_or(TOO_SHORT)?)?,
            Role::Responder => self.own_static.agree(&self.remote_ephemeral)?,
        };
        self.symmetric.mix_key(&shared);
        Ok(())
    }

    /// The initiator's static with the responder's ephemeral key.
    fn mix_se(&mut self) -> Result<(), Refused> {
        let shared = match self.role {
            Role::Initiator => self.own_static.agree(&self.remote_ephemeral)?,
            Role::Responder => self.own_ephemeral.agree(&self.remote_static.ok_or(TOO_SHORT)?)?,
        };
        self.symmetric.mix_key(&shared);
        Ok(())
    }
}

const OUT_OF_TURN: Refused = Refused("§4.1: a Noise message out of turn");
const TOO_SHORT: Refused = Refused("§3.4: a Noise message that is too short");
const BAD_TAG: Refused = Refused("§3.4: a Noise message that does not authenticate");

/// Noise §5.2, with the cipher state of §5.1 inside.
#[derive(Clone, Debug)]
pub(super) struct Symmetric {
    chaining_key: [u8; 32],
    pub(super) hash: [u8; 32],
    key: Option<[u8; 32]>,
    nonce: u64,
}

impl Symmetric {
    pub(super) fn new(protocol: &[u8]) -> Self {
        // A name longer than a hash is hashed, another one filled up with zeros (Noise §5.2).
        let mut hash = [0; 32];
        match hash.get_mut(..protocol.len()) {
            Some(place) => place.copy_from_slice(protocol),
            None => hash = Blake2s256::digest(protocol).into(),
        }
        Self { chaining_key: hash, hash, key: None, nonce: 0 }
    }

    pub(super) fn mix_hash(&mut self, data: &[u8]) {
        self.hash = Blake2s256::new().chain_update(self.hash).chain_update(data).finalize().into();
    }

    pub(super) fn mix_key(&mut self, material: &[u8; 32]) {
        let [chaining_key, key] = hkdf(&self.chaining_key, material);
        (self.chaining_key, self.key, self.nonce) = (chaining_key, Some(key), 0);
    }

    pub(super) fn encrypt(&mut self, plaintext: &[u8]) -> Vec<u8> {
        let out = match self.key {
            None => plaintext.to_vec(),
            Some(key) => {
                let (nonce, aad) = (self.next_nonce(), &self.hash);
                let payload = Payload { msg: plaintext, aad };
                let sealed = ChaCha20Poly1305::new((&key).into()).encrypt(&nonce, payload);
                sealed.expect("a handshake message is far below 256 GiB")
            }
        };
        self.mix_hash(&out);
        out
    }

    pub(super) fn decrypt(&mut self, ciphertext: &[u8]) -> Result<Vec<u8>, Refused> {
        let out = match self.key {
            None => ciphertext.to_vec(),
            Some(key) => {
                let (nonce, aad) = (self.next_nonce(), &self.hash);
                let payload = Payload { msg: ciphertext, aad };
                let opened = ChaCha20Poly1305::new((&key).into()).decrypt(&nonce, payload);
                opened.map_err(|_| BAD_TAG)?
            }
        };
        self.mix_hash(ciphertext);
        Ok(out)
    }

    pub(super) fn split(&self) -> [[u8; 32]; 2] {
        hkdf(&self.chaining_key, &[])
    }

    /// Noise §12.3: four zero bytes and the little-endian counter.
    fn next_nonce(&mut self) -> Nonce {
        let mut nonce = [0; 12];
        nonce[4..].copy_from_slice(&self.nonce.to_le_bytes());
        self.nonce += 1;
        nonce.into()
    }
}

/// Noise §4.3, with two outputs.
fn hkdf(chaining_key: &[u8; 32], material: &[u8]) -> [[u8; 32]; 2] {
    let temporary = hmac(chaining_key, &[material]);
    let first = hmac(&temporary, &[&[1]]);
    let second = hmac(&temporary, &[&first, &[2]]);
    [first, second]
}

fn hmac(key: &[u8; 32], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = SimpleHmac::<Blake2s256>::new_from_slice(key).expect("HMAC takes keys of any length");
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}
