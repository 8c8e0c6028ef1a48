//! The Noise XX handshake (`PROTO §3.4`, `§3.5`, `§4.2`): snow, guarded.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use core::fmt;

use snow::{Builder, HandshakeState};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use super::blank::blank_state;
use super::resolver::Resolver;
use super::{CryptoProvider, Identity, Root, TAG_LEN, X25519Key};

const PROTOCOL: &str = "Noise_XX_25519_ChaChaPoly_BLAKE2s";

/// What each message has besides its payload: e; e, sealed s, tag; sealed s, tag.
const OVERHEAD: [usize; 3] = [32, 32 + 32 + 2 * TAG_LEN, 32 + 2 * TAG_LEN];

/// Longest Noise message (Noise §3).
const MAX_MESSAGE: usize = 65_535;

/// Who sent the first handshake message of a session, and who answered (`PROTO §1.3`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// Sent the first message.
    Initiator,
    /// Answered it.
    Responder,
}

/// Why a handshake message was not written or read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NoiseError {
    /// Wrong length, turn, tag or point. A later genuine message is still read, except after a third message
    /// that was not checked by [`verify_finish_mac`] first.
    Rejected,
}

/// The Noise static key of an endpoint, prepared once for all its handshakes.
#[derive(Clone)]
pub(crate) struct StaticKey {
    crypto: &'static dyn CryptoProvider,
    key: Arc<dyn X25519Key>,
}

impl StaticKey {
    pub(crate) fn new(identity: &Identity, crypto: &'static dyn CryptoProvider) -> Self {
        Self { crypto, key: crypto.x25519_key(&identity.static_secret()).into() }
    }
}

/// One end of a running handshake.
///
/// Its secrets are boxed, so that moving it leaves no copies behind, and overwritten on drop.
pub(crate) struct Noise {
    state: Box<HandshakeState>,
    role: Role,
    /// Messages that were written or read with success.
    messages: usize,
}

impl Noise {
    /// A handshake before its first message. `ephemeral_seed` is drawn fresh for each.
    pub(crate) fn new(role: Role, static_key: &StaticKey, version: u32, ephemeral_seed: &[u8; 32]) -> Self {
        let StaticKey { crypto, key } = static_key.clone();
        let mut prologue = *b"WRAITH\0\0\0\0";
        prologue[6..].copy_from_slice(&version.to_be_bytes());
        // The resolver has the static key; snow only has to know that there is one.
        let resolver = Box::new(Resolver::new(crypto, Some(key), ephemeral_seed));
        let state = Builder::with_resolver(PROTOCOL.parse().expect("it is one that snow knows"), resolver)
            .local_private_key(&[0; 32])
            .and_then(|builder| builder.prologue(&prologue))
            .and_then(|builder| match role {
                Role::Initiator => builder.build_initiator(),
                Role::Responder => builder.build_responder(),
            })
            .expect("the protocol is fixed and the resolver has all of its primitives");
        Self { state: Box::new(state), role, messages: 0 }
    }

    /// Writes the next message around `payload` and returns its length.
    ///
    /// # Errors
    /// [`NoiseError::Rejected`] if it is not this end's turn, `out` is too short, or the peer's point is of
    /// small order.
    pub(crate) fn write(&mut self, payload: &[u8], out: &mut [u8]) -> Result<usize, NoiseError> {
        let len = self.overhead()? + payload.len();
        // snow finds out half-way, with part of its state advanced.
        if len > out.len() || len > MAX_MESSAGE {
            return Err(NoiseError::Rejected);
        }
        if self.messages == 0 {
            // The first payload is not encrypted, and yet snow asks for room for a tag.
            let mut roomy = vec![0; len + TAG_LEN];
            self.state.write_message(payload, &mut roomy).map_err(|_| NoiseError::Rejected)?;
            out[..len].copy_from_slice(&roomy[..len]);
        } else {
            self.state.write_message(payload, &mut out[..len]).map_err(|_| NoiseError::Rejected)?;
        }
        self.messages += 1;
        Ok(len)
    }

    /// Reads the peer's next message and returns the length of its payload in `payload_out`.
    ///
    /// The third message must have passed [`verify_finish_mac`]: snow does not recover from a false one
    /// (`PROTO §4.2`).
    ///
    /// # Errors
    /// [`NoiseError::Rejected`] if it is not the peer's turn, the message does not authenticate, or
    /// `payload_out` is too short.
    pub(crate) fn read(&mut self, message: &[u8], payload_out: &mut [u8]) -> Result<usize, NoiseError> {
        let len = message.len().checked_sub(self.overhead()?).ok_or(NoiseError::Rejected)?;
        if payload_out.len() < len {
            return Err(NoiseError::Rejected);
        }
        let room = payload_out.len().min(len + TAG_LEN);
        let payload = &mut payload_out[..room];
        self.state.read_message(message, payload).map_err(|_| NoiseError::Rejected)?;
        self.messages += 1;
        Ok(len)
    }

    /// The key of the outer MAC of FINISH (`PROTO §4.2`); only between the second and the third message, so
    /// the initiator takes it before it writes the third.
    pub(crate) fn finish_mac_key(&mut self) -> Option<[u8; 32]> {
        // Before the second message the split is a public constant, and snow does not mind.
        if self.messages != 2 {
            return None;
        }
        let (k1, k2) = self.split();
        let mut material = Zeroizing::new([0; 64]);
        material[..32].copy_from_slice(&*k1);
        material[32..].copy_from_slice(&*k2);
        Some(blake3::derive_key("WRAITH v1 finish mac", &*material))
    }

    /// The root of the session's keys (`PROTO §3.5`); only after the third message.
    pub(crate) fn root(&mut self) -> Option<Root> {
        if self.messages != 3 {
            return None;
        }
        let (k1, k2) = self.split();
        let h = self.state.get_handshake_hash().first_chunk()?;
        Some(Root::new(&k1, &k2, h))
    }

    /// The peer's Noise static key, once a message that holds it has authenticated.
    pub(crate) fn remote_static(&self) -> Option<[u8; 32]> {
        // snow keeps the key of a message whose payload turned out false.
        let known_after = match self.role {
            Role::Initiator => 2,
            Role::Responder => 3,
        };
        if self.messages < known_after {
            return None;
        }
        self.state.get_remote_static()?.first_chunk().copied()
    }

    fn overhead(&self) -> Result<usize, NoiseError> {
        OVERHEAD.get(self.messages).copied().ok_or(NoiseError::Rejected)
    }

    /// The only caller of the raw split, which snow computes in any state, even where the result is public.
    fn split(&mut self) -> (Zeroizing<[u8; 32]>, Zeroizing<[u8; 32]>) {
        let (k1, k2) = self.state.dangerously_get_raw_split();
        (Zeroizing::new(k1), Zeroizing::new(k2))
    }

    /// Puts a blank state over the chaining key, which snow would leave in freed memory. The boxed parts of
    /// the former state, keys and hash, wipe themselves.
    fn wipe(&mut self) {
        if let Ok(blank) = blank_state() {
            *self.state = blank;
            core::hint::black_box(&*self.state);
        }
    }
}

impl Drop for Noise {
    fn drop(&mut self) {
        self.wipe();
    }
}

impl fmt::Debug for Noise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Noise")
            .field("role", &self.role)
            .field("messages", &self.messages)
            .finish_non_exhaustive()
    }
}

/// The outer MAC of a FINISH datagram up to the end of its Noise message (`PROTO §4.2`).
pub(crate) fn finish_mac(key: &[u8; 32], datagram: &[u8]) -> [u8; 16] {
    let mut mac = [0; 16];
    mac.copy_from_slice(&blake3::keyed_hash(key, datagram).as_bytes()[..16]);
    mac
}

/// Whether `mac` is the outer MAC of `datagram`, in constant time.
pub(crate) fn verify_finish_mac(key: &[u8; 32], datagram: &[u8], mac: &[u8; 16]) -> bool {
    finish_mac(key, datagram).ct_eq(mac).into()
}

#[cfg(test)]
mod tests;
