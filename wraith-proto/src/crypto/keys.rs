//! The key schedule: from the handshake to the packet keys (`PROTO §3.5`, `§3.6`).

use zeroize::Zeroizing;

use super::{KeyMaterial, Suite};
use crate::wire::GROUP_X25519;

/// The root secret of one epoch, `root_e`; wiped on drop.
pub(crate) struct Root(Zeroizing<[u8; 32]>);

/// Which way a packet goes, by the roles of the handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Direction {
    /// From the initiator to the responder.
    ToResponder = 0,
    /// From the responder to the initiator.
    ToInitiator = 1,
}

impl Root {
    /// `root_0` from both outputs of Noise `Split()` and the handshake hash, all after the third message.
    pub(crate) fn new(k1: &[u8; 32], k2: &[u8; 32], h: &[u8; 32]) -> Self {
        let mut material = Zeroizing::new([0; 96]);
        material[..32].copy_from_slice(k1);
        material[32..64].copy_from_slice(k2);
        material[64..].copy_from_slice(h);
        Self(Zeroizing::new(blake3::derive_key("WRAITH v1 session root", &*material)))
    }

    /// Packet key and nonce prefix of `epoch`, whose root this is.
    pub(crate) fn packet(&self, epoch: u32, direction: Direction, suite: Suite) -> KeyMaterial {
        let prefix = self.derive("WRAITH v1 nonce prefix", epoch, direction, suite);
        let mut material = KeyMaterial {
            key: *self.derive("WRAITH v1 packet key", epoch, direction, suite),
            prefix: [0; 16],
        };
        material.prefix.copy_from_slice(&prefix[..16]);
        material
    }

    /// The root of the next epoch, `epoch`, from the X25519 result and both shares (`PROTO §5.15`).
    pub(crate) fn next(
        &self,
        shared: &[u8; 32],
        initiator: &[u8; 32],
        responder: &[u8; 32],
        epoch: u32,
    ) -> Self {
        let mut material = Zeroizing::new([0; 134]);
        for (part, bytes) in material.chunks_exact_mut(32).zip([&*self.0, shared, initiator, responder]) {
            part.copy_from_slice(bytes);
        }
        material[128..132].copy_from_slice(&epoch.to_be_bytes());
        material[132..].copy_from_slice(&GROUP_X25519.to_be_bytes());
        Self(Zeroizing::new(blake3::derive_key("WRAITH v1 next root", &*material)))
    }

    /// The secret behind what applications export; this has to be the root of epoch 0 (`PROTO §3.9`).
    pub(crate) fn exporter(&self, suite: Suite) -> Zeroizing<[u8; 32]> {
        self.derive("WRAITH v1 exporter", 0, Direction::ToResponder, suite)
    }

    /// The header protection key, which stays for the whole session: this has to be the root of epoch 0.
    pub(crate) fn header(&self, direction: Direction, suite: Suite) -> Zeroizing<[u8; 32]> {
        self.derive("WRAITH v1 header protection", 0, direction, suite)
    }

    fn derive(&self, context: &str, epoch: u32, direction: Direction, suite: Suite) -> Zeroizing<[u8; 32]> {
        let mut material = Zeroizing::new([0; 39]);
        material[..32].copy_from_slice(&*self.0);
        material[32..36].copy_from_slice(&epoch.to_be_bytes());
        material[36] = direction as u8;
        material[37..].copy_from_slice(&suite.to_wire().to_be_bytes());
        Zeroizing::new(blake3::derive_key(context, &*material))
    }
}

#[cfg(test)]
impl Root {
    /// The secret itself, for comparison in tests.
    pub(crate) fn secret(&self) -> [u8; 32] {
        *self.0
    }
}

#[cfg(test)]
mod tests;
