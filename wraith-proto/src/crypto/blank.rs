//! A snow handshake without content, to be put over one that held secrets. None of its parts takes memory of its own.

use alloc::boxed::Box;

use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::CryptoResolver;
use snow::types::{Cipher, Dh, Hash, Random};
use snow::{Builder, Error, HandshakeState};

/// A state that starts no handshake: its hash is constant, and everything else is refused.
pub(super) fn blank_state() -> Result<HandshakeState, Error> {
    let protocol = "Noise_NN_25519_ChaChaPoly_BLAKE2s".parse()?;
    Builder::with_resolver(protocol, Box::new(Blank)).build_initiator()
}

struct Blank;

impl CryptoResolver for Blank {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(Self))
    }

    fn resolve_dh(&self, _: &DHChoice) -> Option<Box<dyn Dh>> {
        Some(Box::new(Self))
    }

    fn resolve_hash(&self, _: &HashChoice) -> Option<Box<dyn Hash>> {
        Some(Box::new(Self))
    }

    fn resolve_cipher(&self, _: &CipherChoice) -> Option<Box<dyn Cipher>> {
        Some(Box::new(Self))
    }
}

impl Random for Blank {
    fn try_fill_bytes(&mut self, _: &mut [u8]) -> Result<(), Error> {
        Err(Error::Rng)
    }
}

impl Dh for Blank {
    fn name(&self) -> &'static str {
        "blank"
    }

    fn pub_len(&self) -> usize {
        32
    }

    fn priv_len(&self) -> usize {
        32
    }

    fn set(&mut self, _: &[u8]) {}

    fn generate(&mut self, _: &mut dyn Random) -> Result<(), Error> {
        Err(Error::Dh)
    }

    fn pubkey(&self) -> &[u8] {
        &[]
    }

    fn privkey(&self) -> &[u8] {
        &[]
    }

    fn dh(&self, _: &[u8], _: &mut [u8]) -> Result<(), Error> {
        Err(Error::Dh)
    }
}

impl Hash for Blank {
    fn name(&self) -> &'static str {
        "blank"
    }

    fn block_len(&self) -> usize {
        64
    }

    fn hash_len(&self) -> usize {
        32
    }

    fn reset(&mut self) {}

    fn input(&mut self, _: &[u8]) {}

    fn result(&mut self, out: &mut [u8]) {
        out.fill(0);
    }
}

impl Cipher for Blank {
    fn name(&self) -> &'static str {
        "blank"
    }

    fn set(&mut self, _: &[u8; 32]) {}

    fn encrypt(&self, _: u64, _: &[u8], _: &[u8], _: &mut [u8]) -> usize {
        0
    }

    fn decrypt(&self, _: u64, _: &[u8], _: &[u8], _: &mut [u8]) -> Result<usize, Error> {
        Err(Error::Decrypt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blank_state_is_made_and_starts_no_handshake() {
        let mut state = blank_state().unwrap();
        assert_eq!(state.get_handshake_hash(), [0; 32]);
        assert!(state.write_message(&[], &mut [0; 64]).is_err());
    }
}
