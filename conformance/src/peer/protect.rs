//! Packet and header protection of both suites (`PROTO §5.5` to `§5.7`).

use aes::Aes256;
use aes::cipher::BlockCipherEncrypt;
use aes_gcm::Aes256Gcm;
use chacha20::cipher::{KeyIvInit, StreamCipherCore};
use chacha20::variants::Ietf;
use chacha20::{ChaChaCore, R20};
use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305};

use super::Refused;
use super::keys::KeyMaterial;

/// The suite that every implementation offers (`PROTO §3.7`).
pub const XCHACHA20_POLY1305: u16 = 1;

/// The other suite (`PROTO §3.7`).
pub const AES_256_GCM: u16 = 2;

/// Bytes of the tag of either suite (`PROTO §5.1`).
pub const TAG_LEN: usize = 16;

/// Seals or opens the packets of one direction in one epoch.
#[derive(Clone, Copy, Debug)]
pub struct Keys {
    material: KeyMaterial,
    aes: bool,
}

impl Keys {
    /// Keys of a suite.
    ///
    /// # Errors
    /// [`Refused`] if the suite is unknown.
    pub fn new(suite: u16, material: KeyMaterial) -> Result<Self, Refused> {
        Ok(Self { material, aes: is_aes(suite)? })
    }

    /// Ciphertext and tag of a packet whose header before protection is `header` (`PROTO §5.5`).
    ///
    /// # Panics
    /// If it is longer than 64 GiB.
    pub fn seal(&self, number: u64, header: &[u8], plaintext: &[u8]) -> Vec<u8> {
        let payload = Payload { msg: plaintext, aad: header };
        let key = (&self.material.key).into();
        let sealed = if self.aes {
            Aes256Gcm::new(key).encrypt(&self.aes_nonce(number).into(), payload)
        } else {
            XChaCha20Poly1305::new(key).encrypt(&self.xchacha_nonce(number).into(), payload)
        };
        sealed.expect("a packet is far below the limits of the ciphers")
    }

    /// The plaintext of a packet.
    ///
    /// # Errors
    /// [`Refused`] if anything was altered.
    pub fn open(&self, number: u64, header: &[u8], ciphertext: &[u8]) -> Result<Vec<u8>, Refused> {
        let payload = Payload { msg: ciphertext, aad: header };
        let key = (&self.material.key).into();
        let opened = if self.aes {
            Aes256Gcm::new(key).decrypt(&self.aes_nonce(number).into(), payload)
        } else {
            XChaCha20Poly1305::new(key).decrypt(&self.xchacha_nonce(number).into(), payload)
        };
        opened.map_err(|_| Refused("§5.8: the tag is wrong"))
    }

    /// The nonce of XChaCha20-Poly1305: 16 bytes of prefix, then the number in little-endian (`PROTO §5.6`).
    pub fn xchacha_nonce(&self, number: u64) -> [u8; 24] {
        let mut nonce = [0; 24];
        nonce[..16].copy_from_slice(&self.material.prefix);
        nonce[16..].copy_from_slice(&number.to_le_bytes());
        nonce
    }

    /// The nonce of AES-256-GCM: 12 bytes of prefix, with the big-endian number on the last 8
    /// (`PROTO §5.6`).
    pub fn aes_nonce(&self, number: u64) -> [u8; 12] {
        let mut nonce = [0; 12];
        nonce.copy_from_slice(&self.material.prefix[..12]);
        nonce[4..].iter_mut().zip(number.to_be_bytes()).for_each(|(byte, number)| *byte ^= number);
        nonce
    }
}

/// Makes the header protection masks of one direction (`PROTO §5.7`).
#[derive(Clone, Copy, Debug)]
pub struct HeaderKey {
    key: [u8; 32],
    aes: bool,
}

impl HeaderKey {
    /// The header key of a suite.
    ///
    /// # Errors
    /// [`Refused`] if the suite is unknown.
    pub fn new(suite: u16, key: [u8; 32]) -> Result<Self, Refused> {
        Ok(Self { key, aes: is_aes(suite)? })
    }

    /// The mask for this sample (RFC 9001 §5.4.3, §5.4.4).
    pub fn mask(&self, sample: &[u8; 16]) -> [u8; 5] {
        let stream =
            if self.aes { self.aes_block(sample).to_vec() } else { self.chacha_block(sample).to_vec() };
        let mut mask = [0; 5];
        mask.copy_from_slice(&stream[..5]);
        mask
    }

    fn aes_block(&self, sample: &[u8; 16]) -> [u8; 16] {
        let mut block = (*sample).into();
        Aes256::new((&self.key).into()).encrypt_block(&mut block);
        block.into()
    }

    /// The first four bytes of the sample are the block number, the others the nonce.
    fn chacha_block(&self, sample: &[u8; 16]) -> [u8; 64] {
        let [c0, c1, c2, c3, nonce @ ..] = *sample;
        let mut core = ChaChaCore::<R20, Ietf>::new((&self.key).into(), &nonce.into());
        core.set_block_pos(u32::from_le_bytes([c0, c1, c2, c3]));
        let mut block = [0; 64].into();
        core.write_keystream_block(&mut block);
        block.into()
    }
}

fn is_aes(suite: u16) -> Result<bool, Refused> {
    match suite {
        XCHACHA20_POLY1305 => Ok(false),
        AES_256_GCM => Ok(true),
        _ => Err(Refused("§3.7: an unknown suite")),
    }
}
