//! The libraries behind one interface.

use ring::aead::quic::{self, HeaderProtectionKey};
use ring::aead::{AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ring::agreement::{EphemeralPrivateKey, UnparsedPublicKey, X25519, agree_ephemeral};
use ring::rand::SystemRandom;
use wraith_crypto_accel::Accel;
use wraith_proto::crypto::{
    BadTag, CryptoProvider, HeaderKey, KeyMaterial, PacketKey, RustCrypto, Suite, TAG_LEN,
};

/// All that are compared.
pub(crate) const LIBRARIES: [Library; 3] = [Library::PureRust, Library::Ring, Library::AwsLc];

/// Where keys come from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Library {
    PureRust,
    Ring,
    AwsLc,
}

impl Library {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::PureRust => "pure Rust",
            Self::Ring => "ring",
            Self::AwsLc => "aws-lc",
        }
    }

    pub(crate) fn key(self, suite: Suite, material: &KeyMaterial) -> Box<dyn PacketKey> {
        match self {
            Self::PureRust => RustCrypto.key(suite, material),
            Self::Ring => Box::new(RingKey::new(suite, material)),
            Self::AwsLc => Accel.key(suite, material),
        }
    }

    pub(crate) fn header_key(self, suite: Suite, key: &[u8; 32]) -> Box<dyn HeaderKey> {
        match self {
            Self::PureRust => RustCrypto.header_key(suite, key),
            Self::Ring => Box::new(RingHeaderKey::new(suite, key)),
            Self::AwsLc => Accel.header_key(suite, key),
        }
    }

    /// X25519 with given secrets.
    pub(crate) fn x25519(self) -> Option<&'static dyn CryptoProvider> {
        match self {
            Self::PureRust => Some(&RustCrypto),
            Self::Ring => None,
            Self::AwsLc => Some(&Accel),
        }
    }
}

/// ring's cipher. Its XChaCha20-Poly1305 would have HChaCha20 before it, once for each key: left out here, for it costs
/// no packet anything.
struct RingKey {
    cipher: LessSafeKey,
    iv: [u8; 12],
}

impl RingKey {
    fn new(suite: Suite, material: &KeyMaterial) -> Self {
        let algorithm = if suite == Suite::Aes256Gcm { &AES_256_GCM } else { &CHACHA20_POLY1305 };
        let cipher = LessSafeKey::new(UnboundKey::new(algorithm, &material.key).expect("32 bytes"));
        Self { cipher, iv: *material.prefix.first_chunk().expect("16 bytes") }
    }

    fn nonce(&self, packet_number: u64) -> Nonce {
        let mut nonce = self.iv;
        for (byte, number) in nonce[4..].iter_mut().zip(packet_number.to_be_bytes()) {
            *byte ^= number;
        }
        Nonce::assume_unique_for_key(nonce)
    }
}

impl PacketKey for RingKey {
    fn seal_in_place(&self, packet_number: u64, header: &[u8], packet: &mut [u8]) {
        let (text, tag) = packet.split_at_mut(packet.len() - TAG_LEN);
        let nonce = self.nonce(packet_number);
        let made = self.cipher.seal_in_place_separate_tag(nonce, Aad::from(header), text).expect("short");
        tag.copy_from_slice(made.as_ref());
    }

    fn open_in_place(&self, packet_number: u64, header: &[u8], packet: &mut [u8]) -> Result<usize, BadTag> {
        let opened = self.cipher.open_in_place(self.nonce(packet_number), Aad::from(header), packet);
        opened.map(|text| text.len()).map_err(|_| BadTag)
    }
}

struct RingHeaderKey(HeaderProtectionKey);

impl RingHeaderKey {
    fn new(suite: Suite, key: &[u8; 32]) -> Self {
        let algorithm = if suite == Suite::Aes256Gcm { &quic::AES_256 } else { &quic::CHACHA20 };
        Self(HeaderProtectionKey::new(algorithm, key).expect("32 bytes"))
    }
}

impl HeaderKey for RingHeaderKey {
    fn mask(&self, sample: &[u8; 16]) -> [u8; 5] {
        self.0.new_mask(sample).expect("16 bytes")
    }
}

/// One secret of ring's own making, and an agreement with it.
pub(crate) fn ring_generates_and_agrees() {
    const NINE: [u8; 32] = [9; 32];
    let secret = EphemeralPrivateKey::generate(&X25519, &SystemRandom::new()).expect("random bytes");
    let agreed = agree_ephemeral(secret, &UnparsedPublicKey::new(&X25519, NINE), |shared| shared[0]);
    std::hint::black_box(agreed.expect("not of small order"));
}
