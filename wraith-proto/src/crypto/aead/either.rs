//! Keys of either suite in memory that holds both, so that a key of any session takes the place of one of any other.

use super::{
    AesGcmKey, AesHeaderKey, BadTag, ChaChaHeaderKey, ChaChaKey, HeaderKey, KeyMaterial, PacketKey, Suite,
};

/// A packet key of either suite. Both wipe themselves on drop, and so when another takes their place.
#[expect(clippy::large_enum_variant, reason = "each has to fit where the other was")]
pub(in crate::crypto) enum SuiteKey {
    ChaCha(ChaChaKey),
    AesGcm(AesGcmKey),
}

impl SuiteKey {
    pub(in crate::crypto) fn new(suite: Suite, material: &KeyMaterial) -> Self {
        match suite {
            Suite::XChaCha20Poly1305 => Self::ChaCha(ChaChaKey::extended(material)),
            Suite::Aes256Gcm => Self::AesGcm(AesGcmKey::new(material)),
        }
    }
}

impl PacketKey for SuiteKey {
    fn seal_in_place(&self, packet_number: u64, header: &[u8], packet: &mut [u8]) {
        match self {
            Self::ChaCha(key) => key.seal_in_place(packet_number, header, packet),
            Self::AesGcm(key) => key.seal_in_place(packet_number, header, packet),
        }
    }

    fn open_in_place(&self, packet_number: u64, header: &[u8], packet: &mut [u8]) -> Result<usize, BadTag> {
        match self {
            Self::ChaCha(key) => key.open_in_place(packet_number, header, packet),
            Self::AesGcm(key) => key.open_in_place(packet_number, header, packet),
        }
    }

    fn rekey(&mut self, suite: Suite, material: &KeyMaterial) -> bool {
        *self = Self::new(suite, material);
        true
    }
}

/// A header protection key of either suite.
#[expect(clippy::large_enum_variant, reason = "each has to fit where the other was")]
pub(in crate::crypto) enum SuiteHeaderKey {
    ChaCha(ChaChaHeaderKey),
    Aes(AesHeaderKey),
}

impl SuiteHeaderKey {
    pub(in crate::crypto) fn new(suite: Suite, key: &[u8; 32]) -> Self {
        match suite {
            Suite::XChaCha20Poly1305 => Self::ChaCha(ChaChaHeaderKey::new(key)),
            Suite::Aes256Gcm => Self::Aes(AesHeaderKey::new(key)),
        }
    }
}

impl HeaderKey for SuiteHeaderKey {
    fn mask(&self, sample: &[u8; 16]) -> [u8; 5] {
        match self {
            Self::ChaCha(key) => key.mask(sample),
            Self::Aes(key) => key.mask(sample),
        }
    }

    fn rekey(&mut self, suite: Suite, key: &[u8; 32]) -> bool {
        *self = Self::new(suite, key);
        true
    }
}
