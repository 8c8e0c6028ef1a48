//! Packet keys.

use aws_lc_rs::aead::{AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use chacha20::{R20, hchacha};
use wraith_proto::crypto::{BadTag, KeyMaterial, PacketKey, Suite, TAG_LEN};
use zeroize::Zeroizing;

/// Most bytes of frames behind a payload that is sealed from where it lies; they are copied.
const MAX_FRAMES: usize = 256;

/// The key of one epoch. AWS-LC wipes its part when it frees it.
pub(crate) struct Key {
    cipher: LessSafeKey,
    /// Goes into the nonce by XOR, with the packet number in the last 8 bytes (`PROTO §5.6`).
    iv: Zeroizing<[u8; 12]>,
    number: fn(u64) -> [u8; 8],
    /// Shorter payloads are faster copied and sealed in place.
    least_borrowed: usize,
}

impl Key {
    /// # Panics
    /// If the provider does not offer `suite`.
    pub(crate) fn new(suite: Suite, material: &KeyMaterial) -> Self {
        match suite {
            Suite::XChaCha20Poly1305 => Self::xchacha20_poly1305(material),
            Suite::Aes256Gcm => Self::aes_256_gcm(material),
            other => panic!("{other:?} was not offered"),
        }
    }

    fn aes_256_gcm(material: &KeyMaterial) -> Self {
        let mut iv = Zeroizing::new([0; 12]);
        iv.copy_from_slice(&material.prefix[..12]);
        Self { cipher: cipher(&AES_256_GCM, &material.key), iv, number: u64::to_be_bytes, least_borrowed: 0 }
    }

    /// ChaCha20-Poly1305 under the key that `HChaCha20` makes of the fixed 16 bytes of the nonce.
    fn xchacha20_poly1305(material: &KeyMaterial) -> Self {
        let subkey = hchacha::<R20>((&material.key).into(), (&material.prefix).into());
        Self::chacha20_poly1305(&Zeroizing::new(subkey.into()))
    }

    pub(crate) fn chacha20_poly1305(key: &[u8; 32]) -> Self {
        let cipher = cipher(&CHACHA20_POLY1305, key);
        Self { cipher, iv: Zeroizing::new([0; 12]), number: u64::to_le_bytes, least_borrowed: 4096 }
    }

    fn nonce(&self, packet_number: u64) -> Nonce {
        let mut nonce = *self.iv;
        for (byte, number) in nonce[4..].iter_mut().zip((self.number)(packet_number)) {
            *byte ^= number;
        }
        Nonce::assume_unique_for_key(nonce)
    }
}

impl PacketKey for Key {
    fn seal_in_place(&self, packet_number: u64, header: &[u8], packet: &mut [u8]) {
        let (text, tag) = packet.split_at_mut(packet.len() - TAG_LEN);
        let made = self
            .cipher
            .seal_in_place_separate_tag(self.nonce(packet_number), Aad::from(header), text)
            .expect("a packet is far below the 64 GiB of one nonce");
        tag.copy_from_slice(made.as_ref());
    }

    fn seal_from(&self, packet_number: u64, header: &[u8], payload: &[u8], packet: &mut [u8]) {
        let (text, rest) = packet.split_at_mut(payload.len());
        let frames = rest.len() - TAG_LEN;
        if payload.len() < self.least_borrowed || frames > MAX_FRAMES {
            text.copy_from_slice(payload);
            return self.seal_in_place(packet_number, header, packet);
        }
        let mut copy = [0; MAX_FRAMES];
        let copy = &mut copy[..frames];
        copy.copy_from_slice(&rest[..frames]);
        self.cipher
            .seal_out_of_place_scatter(
                self.nonce(packet_number),
                Aad::from(header),
                payload,
                text,
                copy,
                rest,
            )
            .expect("the lengths fit, and a packet is far below the 64 GiB of one nonce");
    }

    fn open_in_place(&self, packet_number: u64, header: &[u8], packet: &mut [u8]) -> Result<usize, BadTag> {
        let (text, tag) = packet.split_last_chunk_mut::<TAG_LEN>().ok_or(BadTag)?;
        let opened =
            self.cipher.open_in_place_separate_tag(self.nonce(packet_number), Aad::from(header), &*tag, text);
        opened.map(|text| text.len()).map_err(|_| BadTag)
    }

    /// AWS-LC has no context that takes another key: this one's 608 bytes of the C heap go back for as many that are asked for
    /// just before.
    fn rekey(&mut self, suite: Suite, material: &KeyMaterial) -> bool {
        *self = Self::new(suite, material);
        true
    }
}

fn cipher(algorithm: &'static Algorithm, key: &[u8; 32]) -> LessSafeKey {
    LessSafeKey::new(UnboundKey::new(algorithm, key).expect("the key has 32 bytes"))
}
