//! AES-256-GCM and its header protection.

use aes::Aes256Enc;
use aes::cipher::BlockCipherEncrypt;
use aes::cipher::consts::U12;
use aes_gcm::{AeadInOut, AesGcm, KeyInit, Nonce, Tag};
use zeroize::Zeroizing;

use super::{BadTag, HeaderKey, KeyMaterial, PacketKey, TAG_LEN};

/// The expanded key of one epoch. Counter mode never decrypts a block, so half of the round keys is enough.
pub(in crate::crypto) struct AesGcmKey {
    cipher: AesGcm<Aes256Enc, U12>,
    iv: Zeroizing<[u8; 12]>,
}

impl AesGcmKey {
    pub(in crate::crypto) fn new(material: &KeyMaterial) -> Self {
        let mut iv = Zeroizing::new([0; 12]);
        iv.copy_from_slice(&material.prefix[..12]);
        Self { cipher: AesGcm::new((&material.key).into()), iv }
    }

    /// The prefix, with the packet number in its last 8 bytes by XOR (`PROTO §5.6`).
    fn nonce(&self, packet_number: u64) -> Nonce<U12> {
        let mut nonce = *self.iv;
        for (byte, number) in nonce[4..].iter_mut().zip(packet_number.to_be_bytes()) {
            *byte ^= number;
        }
        nonce.into()
    }
}

impl PacketKey for AesGcmKey {
    fn seal_in_place(&self, packet_number: u64, header: &[u8], packet: &mut [u8]) {
        let (text, tag) = packet.split_at_mut(packet.len() - TAG_LEN);
        let made: Tag = self
            .cipher
            .encrypt_inout_detached(&self.nonce(packet_number), header, text.into())
            .expect("a packet is far below the 64 GiB of one nonce");
        tag.copy_from_slice(&made);
    }

    fn open_in_place(&self, packet_number: u64, header: &[u8], packet: &mut [u8]) -> Result<usize, BadTag> {
        let (text, tag) = packet.split_last_chunk_mut::<TAG_LEN>().ok_or(BadTag)?;
        let tag = Tag::from(*tag);
        self.cipher
            .decrypt_inout_detached(&self.nonce(packet_number), header, (&mut *text).into(), &tag)
            .map_err(|_| BadTag)?;
        Ok(text.len())
    }
}

/// `AES-256-ECB` header protection (RFC 9001 §5.4.3).
pub(in crate::crypto) struct AesHeaderKey {
    cipher: Aes256Enc,
}

impl AesHeaderKey {
    pub(in crate::crypto) fn new(key: &[u8; 32]) -> Self {
        Self { cipher: Aes256Enc::new(key.into()) }
    }
}

impl HeaderKey for AesHeaderKey {
    fn mask(&self, sample: &[u8; 16]) -> [u8; 5] {
        let mut block = (*sample).into();
        self.cipher.encrypt_block(&mut block);
        let [m0, m1, m2, m3, m4, ..] = <[u8; 16]>::from(block);
        [m0, m1, m2, m3, m4]
    }
}
