//! A crypto provider that hides nothing, so that tests can read and fuzzers can forge packets.

use wraith_proto::crypto::{
    BadTag, CryptoProvider, HeaderKey, KeyMaterial, PacketKey, RustCrypto, Suite, TAG_LEN, X25519Key,
};

/// Packet protection without encryption; X25519 is real. For tests only.
///
/// Both ends have to use it. Packets stay readable on the wire, header protection changes nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transparent {
    /// The tag is a checksum of key, packet number, header and plaintext: damage, replay under another number
    /// and the wrong key are noticed as with a real cipher, forgery is not prevented.
    Checked,
    /// The tag is zero and every tag is accepted, so that a fuzzer's bytes get behind it.
    AcceptAny,
}

impl Transparent {
    /// [`Transparent::Checked`], as a configuration takes it.
    pub const CHECKED: &'static dyn CryptoProvider = &Self::Checked;
    /// [`Transparent::AcceptAny`], as a configuration takes it.
    pub const ACCEPT_ANY: &'static dyn CryptoProvider = &Self::AcceptAny;
}

impl CryptoProvider for Transparent {
    fn suites(&self) -> &[Suite] {
        &[Suite::XChaCha20Poly1305]
    }

    fn key(&self, _: Suite, material: &KeyMaterial) -> Box<dyn PacketKey> {
        match self {
            Self::Checked => Box::new(ChecksumKey { key: fold(material) }),
            Self::AcceptAny => Box::new(AnyKey),
        }
    }

    fn header_key(&self, _: Suite, _: &[u8; 32]) -> Box<dyn HeaderKey> {
        Box::new(NoMask)
    }

    fn x25519_key(&self, secret: &[u8; 32]) -> Box<dyn X25519Key> {
        RustCrypto.x25519_key(secret)
    }
}

struct ChecksumKey {
    key: u64,
}

impl ChecksumKey {
    fn tag(&self, packet_number: u64, header: &[u8], plaintext: &[u8]) -> [u8; TAG_LEN] {
        let sum = mix(mix(mix(self.key, &packet_number.to_le_bytes()), header), plaintext);
        let mut tag = [0; TAG_LEN];
        tag[..8].copy_from_slice(&sum.to_le_bytes());
        tag[8..].copy_from_slice(&(!sum).to_le_bytes());
        tag
    }
}

impl PacketKey for ChecksumKey {
    fn seal_in_place(&self, packet_number: u64, header: &[u8], packet: &mut [u8]) {
        let (plaintext, tag) = packet.split_at_mut(packet.len() - TAG_LEN);
        tag.copy_from_slice(&self.tag(packet_number, header, plaintext));
    }

    fn open_in_place(&self, packet_number: u64, header: &[u8], packet: &mut [u8]) -> Result<usize, BadTag> {
        let len = packet.len().checked_sub(TAG_LEN).ok_or(BadTag)?;
        let (plaintext, tag) = packet.split_at(len);
        if tag == self.tag(packet_number, header, plaintext) { Ok(len) } else { Err(BadTag) }
    }

    fn rekey(&mut self, _: Suite, material: &KeyMaterial) -> bool {
        self.key = fold(material);
        true
    }
}

struct AnyKey;

impl PacketKey for AnyKey {
    fn seal_in_place(&self, _: u64, _: &[u8], packet: &mut [u8]) {
        let room = packet.len() - TAG_LEN;
        packet[room..].fill(0);
    }

    fn open_in_place(&self, _: u64, _: &[u8], packet: &mut [u8]) -> Result<usize, BadTag> {
        packet.len().checked_sub(TAG_LEN).ok_or(BadTag)
    }

    fn rekey(&mut self, _: Suite, _: &KeyMaterial) -> bool {
        true
    }
}

struct NoMask;

impl HeaderKey for NoMask {
    fn mask(&self, _: &[u8; 16]) -> [u8; 5] {
        [0; 5]
    }

    fn rekey(&mut self, _: Suite, _: &[u8; 32]) -> bool {
        true
    }
}

fn fold(material: &KeyMaterial) -> u64 {
    mix(mix(0, &material.key), &material.prefix)
}

/// Adds `bytes` and their length to a checksum, eight bytes at a time.
fn mix(sum: u64, bytes: &[u8]) -> u64 {
    // Odd, so that the multiplication loses nothing: a single changed word always changes the sum.
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut sum = (sum ^ bytes.len() as u64).wrapping_mul(ODD);
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        sum = (sum ^ u64::from_le_bytes(word)).wrapping_mul(ODD).rotate_left(29);
    }
    sum ^ (sum >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUITE: Suite = Suite::XChaCha20Poly1305;

    fn material(byte: u8) -> KeyMaterial {
        KeyMaterial { key: [byte; 32], prefix: [byte; 16] }
    }

    fn sealed(key: &dyn PacketKey) -> Vec<u8> {
        let mut packet = b"payload in the clear".to_vec();
        packet.resize(packet.len() + TAG_LEN, 0xff);
        key.seal_in_place(7, b"header", &mut packet);
        packet
    }

    #[test]
    fn a_packet_stays_readable_and_opens() {
        for provider in [Transparent::CHECKED, Transparent::ACCEPT_ANY] {
            let key = provider.key(SUITE, &material(1));
            let mut packet = sealed(&*key);
            assert_eq!(&packet[..20], b"payload in the clear");
            assert_eq!(key.open_in_place(7, b"header", &mut packet), Ok(20));
            assert_eq!(key.open_in_place(7, b"header", &mut packet[..15]), Err(BadTag));
            assert_eq!(provider.header_key(SUITE, &[1; 32]).mask(&[9; 16]), [0; 5]);
        }
    }

    #[test]
    fn a_key_becomes_another_in_place() {
        for provider in [Transparent::CHECKED, Transparent::ACCEPT_ANY] {
            let mut key = provider.key(SUITE, &material(1));
            assert!(key.rekey(SUITE, &material(2)));
            assert_eq!(sealed(&*key), sealed(&*provider.key(SUITE, &material(2))));
            assert!(provider.header_key(SUITE, &[1; 32]).rekey(SUITE, &[2; 32]));
        }
    }

    #[test]
    fn payload_from_elsewhere_gives_the_same_packet() {
        let key = Transparent::CHECKED.key(SUITE, &material(1));
        let mut packet = vec![0; 20 + TAG_LEN];
        packet[8..20].copy_from_slice(b"in the clear");
        key.seal_from(7, b"header", b"payload ", &mut packet);
        assert_eq!(packet, sealed(&*key));
    }

    #[test]
    fn any_changed_bit_number_header_or_key_is_noticed_when_checked() {
        let key = Transparent::CHECKED.key(SUITE, &material(1));
        let packet = sealed(&*key);
        for bit in 0..packet.len() * 8 {
            let mut damaged = packet.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(key.open_in_place(7, b"header", &mut damaged), Err(BadTag), "bit {bit}");
        }
        assert_eq!(key.open_in_place(8, b"header", &mut packet.clone()), Err(BadTag));
        assert_eq!(key.open_in_place(7, b"Header", &mut packet.clone()), Err(BadTag));
        let key = Transparent::CHECKED.key(SUITE, &material(2));
        assert_eq!(key.open_in_place(7, b"header", &mut packet.clone()), Err(BadTag));
    }

    #[test]
    fn a_forged_packet_is_accepted_when_any_is() {
        let key = Transparent::ACCEPT_ANY.key(SUITE, &material(1));
        assert_eq!(key.open_in_place(3, b"", &mut [0xab; 40]), Ok(24));
    }

    #[test]
    fn the_key_agreement_is_real() {
        let (ours, theirs) = ([5; 32], [6; 32]);
        let provider = Transparent::CHECKED;
        let shared = provider.x25519(&ours, &provider.x25519_base(&theirs));
        assert_eq!(shared, RustCrypto.x25519(&theirs, &RustCrypto.x25519_base(&ours)));
    }
}
