//! XChaCha20-Poly1305 with one `HChaCha20` per epoch, its header protection, and ChaCha20-Poly1305 for handshakes.

use chacha20::cipher::{KeyIvInit, StreamCipherCore};
use chacha20::variants::Ietf;
use chacha20::{ChaChaCore, R20, hchacha};
use chacha20poly1305::{AeadInOut, ChaCha20Poly1305, KeyInit, Nonce, Tag};
use zeroize::Zeroizing;

use super::{BadTag, HeaderKey, KeyMaterial, PacketKey, TAG_LEN};

/// A key of ChaCha20-Poly1305, which the cipher wipes on drop.
pub(in crate::crypto) struct ChaChaKey {
    cipher: ChaCha20Poly1305,
}

impl ChaChaKey {
    pub(in crate::crypto) fn new(key: &[u8; 32]) -> Self {
        Self { cipher: ChaCha20Poly1305::new(key.into()) }
    }

    /// The key of one epoch after `HChaCha20`.
    ///
    /// The first 16 of the 24 nonce bytes are fixed for an epoch, and `XChaCha20` uses them for nothing but
    /// `HChaCha20` (draft-irtf-cfrg-xchacha §2.3). So that runs once here, and each packet costs what
    /// ChaCha20-Poly1305 costs.
    pub(in crate::crypto) fn extended(material: &KeyMaterial) -> Self {
        let subkey = hchacha::<R20>((&material.key).into(), (&material.prefix).into());
        Self::new(&Zeroizing::new(subkey.into()))
    }
}

impl PacketKey for ChaChaKey {
    fn seal_in_place(&self, packet_number: u64, header: &[u8], packet: &mut [u8]) {
        let (text, tag) = packet.split_at_mut(packet.len() - TAG_LEN);
        let made = self
            .cipher
            .encrypt_inout_detached(&nonce(packet_number), header, text.into())
            .expect("a packet is far below the 256 GiB of one ChaCha20 key stream");
        tag.copy_from_slice(&made);
    }

    fn open_in_place(&self, packet_number: u64, header: &[u8], packet: &mut [u8]) -> Result<usize, BadTag> {
        let (text, tag) = packet.split_last_chunk_mut::<TAG_LEN>().ok_or(BadTag)?;
        let tag = Tag::from(*tag);
        self.cipher
            .decrypt_inout_detached(&nonce(packet_number), header, (&mut *text).into(), &tag)
            .map_err(|_| BadTag)?;
        Ok(text.len())
    }
}

/// `ChaCha20` header protection (RFC 9001 §5.4.4).
pub(in crate::crypto) struct ChaChaHeaderKey {
    key: Zeroizing<[u8; 32]>,
}

impl ChaChaHeaderKey {
    pub(in crate::crypto) fn new(key: &[u8; 32]) -> Self {
        Self { key: Zeroizing::new(*key) }
    }
}

impl HeaderKey for ChaChaHeaderKey {
    fn mask(&self, sample: &[u8; 16]) -> [u8; 5] {
        let [c0, c1, c2, c3, nonce @ ..] = *sample;
        let mut block = ChaChaCore::<R20, Ietf>::new((&*self.key).into(), &nonce.into());
        block.set_block_pos(u32::from_le_bytes([c0, c1, c2, c3]));
        // The buffered cipher refuses the last counter value, which a packet can carry; the bare block does
        // not.
        let mut stream = [0; 64].into();
        block.write_keystream_block(&mut stream);
        let [m0, m1, m2, m3, m4, ..] = <[u8; 64]>::from(stream);
        [m0, m1, m2, m3, m4]
    }
}

/// The nonce of Noise (§12.3), and the rest of the nonce after `HChaCha20` (`PROTO §5.6`): four zero bytes and the number.
fn nonce(packet_number: u64) -> Nonce {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&packet_number.to_le_bytes());
    nonce.into()
}
