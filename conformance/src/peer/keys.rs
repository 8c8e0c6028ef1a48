//! The key schedule (`PROTO §3.5`, `§3.6`, `§4.2`).

use super::noise::Noise;

/// Which way a packet goes (`PROTO §3.6`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the initiator to the responder, 0.
    ToResponder,
    /// From the responder to the initiator, 1.
    ToInitiator,
}

/// The root secret of an epoch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Root(pub [u8; 32]);

/// What one direction of one epoch is protected with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyMaterial {
    /// The packet key.
    pub key: [u8; 32],
    /// The nonce prefix.
    pub prefix: [u8; 16],
}

impl Root {
    /// `root_0`, from the state after the third message (`PROTO §3.5`).
    pub fn new(noise: &Noise) -> Self {
        let [k1, k2] = noise.split();
        Self::from_parts(&k1, &k2, &noise.hash())
    }

    /// `root_0` from the outputs of `Split()` and the handshake hash.
    pub fn from_parts(k1: &[u8; 32], k2: &[u8; 32], hash: &[u8; 32]) -> Self {
        Self(blake3::derive_key("WRAITH v1 session root", &[*k1, *k2, *hash].concat()))
    }

    /// Packet key and nonce prefix of an epoch, whose root this is.
    pub fn packet(&self, epoch: u32, direction: Direction, suite: u16) -> KeyMaterial {
        let key = self.derive("WRAITH v1 packet key", epoch, direction, suite);
        let mut prefix = [0; 16];
        prefix.copy_from_slice(&self.derive("WRAITH v1 nonce prefix", epoch, direction, suite)[..16]);
        KeyMaterial { key, prefix }
    }

    /// The header protection key, if this is `root_0`.
    pub fn header(&self, direction: Direction, suite: u16) -> [u8; 32] {
        self.derive("WRAITH v1 header protection", 0, direction, suite)
    }

    /// The root of the next epoch, `epoch`, from the X25519 result and both shares (`PROTO §5.15`).
    #[must_use]
    pub fn next(&self, shared: &[u8; 32], initiator: &[u8; 32], responder: &[u8; 32], epoch: u32) -> Self {
        const GROUP: u16 = 1;
        let mut material = [self.0, *shared, *initiator, *responder].concat();
        material.extend(epoch.to_be_bytes());
        material.extend(GROUP.to_be_bytes());
        Self(blake3::derive_key("WRAITH v1 next root", &material))
    }

    /// The exporter secret, if this is `root_0` (`PROTO §3.9`).
    pub fn exporter(&self, suite: u16) -> [u8; 32] {
        self.derive("WRAITH v1 exporter", 0, Direction::ToResponder, suite)
    }

    fn derive(&self, context: &str, epoch: u32, direction: Direction, suite: u16) -> [u8; 32] {
        let mut material = self.0.to_vec();
        material.extend(epoch.to_be_bytes());
        material.push(direction as u8);
        material.extend(suite.to_be_bytes());
        blake3::derive_key(context, &material)
    }
}

/// The key of the outer MAC of FINISH, from the state after the second message (`PROTO §4.2`).
pub fn finish_mac_key(noise: &Noise) -> [u8; 32] {
    blake3::derive_key("WRAITH v1 finish mac", &noise.split().concat())
}

/// The outer MAC of FINISH over all bytes before it (`PROTO §4.2`).
pub fn finish_mac(key: &[u8; 32], datagram: &[u8]) -> [u8; 16] {
    let mut mac = [0; 16];
    mac.copy_from_slice(&blake3::keyed_hash(key, datagram).as_bytes()[..16]);
    mac
}
