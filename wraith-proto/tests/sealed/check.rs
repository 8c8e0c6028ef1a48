//! What holds for any bytes that come as a sealed message. `fuzz/` takes this file, too.

use std::sync::OnceLock;

use wraith_proto::Identity;
use wraith_proto::crypto::{
    BadTag, CryptoProvider, HeaderKey, KeyMaterial, PacketKey, RustCrypto, Suite, TAG_LEN, X25519Key,
};
use wraith_proto::sealed::{Letter, Mailbox, MessageId, OpenError, Opened, SEGMENT_LEN};

/// Real but for the cipher, which hides nothing and takes every tag: any bytes get behind it.
#[derive(Debug)]
pub(crate) struct Readable;

struct AnyKey;

/// Asserts that they are read without harm, and that a genuine message altered by them opens no further than it should.
pub(crate) fn check(bytes: &[u8]) {
    let read = pieces(&Readable, bytes);
    let mut body = Vec::new();
    let whole = mailbox(2, &Readable).open(bytes, &mut body);
    assert_eq!(whole.is_ok(), read.1.is_ok());
    if whole.is_ok() {
        assert_eq!((whole, &body), (read.1, &read.0));
    } else {
        assert!(body.is_empty());
    }
    if let Ok((_, body)) = mailbox(2, &Readable).open_datagram(&mut bytes.to_vec()) {
        assert!(body.len() < bytes.len());
    }
    altered(bytes);
}

/// What comes out piece by piece, and how it ended.
pub(crate) fn pieces(
    crypto: &'static dyn CryptoProvider,
    message: &[u8],
) -> (Vec<u8>, Result<Opened, OpenError>) {
    let mut out = Vec::new();
    let outcome = (|| {
        let (head, mut rest) = message.split_first_chunk().ok_or(OpenError::Truncated)?;
        let mut stream = mailbox(2, crypto).open_head(head)?;
        while !rest.is_empty() {
            let (header, behind) = rest.split_first_chunk().ok_or(OpenError::Truncated)?;
            let (sealed, behind) =
                behind.split_at_checked(stream.expects(*header)?).ok_or(OpenError::Truncated)?;
            out.extend_from_slice(stream.segment(*header, &mut sealed.to_vec())?);
            rest = behind;
        }
        stream.end()
    })();
    (out, outcome)
}

/// Each five bytes of `edits` are a place and what is put there; the last ones cut the message.
fn altered(edits: &[u8]) {
    static GENUINE: OnceLock<(Vec<u8>, Vec<u8>)> = OnceLock::new();
    let (body, genuine) = GENUINE.get_or_init(|| {
        let body = vec![0x5a; SEGMENT_LEN + 100];
        (body.clone(), message(&RustCrypto, true, &body))
    });
    let mut message = genuine.clone();
    let edits = edits.chunks_exact(5);
    let end = edits.remainder().iter().fold(0, |end, byte| end << 8 | usize::from(*byte));
    for edit in edits {
        let place = u32::from_be_bytes([edit[0], edit[1], edit[2], edit[3]]) as usize % message.len();
        message[place] = edit[4];
    }
    message.truncate(message.len() - end % (message.len() + 1));
    let (out, outcome) = pieces(&RustCrypto, &message);
    assert_eq!(outcome.is_ok(), message == *genuine);
    assert!(body.starts_with(&out), "{} bytes", out.len());
    assert!(outcome.is_ok() || out.len() % SEGMENT_LEN == 0);
}

/// A message from 1 to 2.
pub(crate) fn message(crypto: &'static dyn CryptoProvider, sign: bool, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    mailbox(1, crypto).seal(&letter(sign), &[3; 32], body, &mut out).expect("a good recipient");
    out
}

/// Whom the bytes are for, and who seals.
pub(crate) fn mailbox(seed: u8, crypto: &'static dyn CryptoProvider) -> Mailbox {
    Mailbox::new(Identity::from_seed([seed; 32]), crypto, 1)
}

pub(crate) fn letter(sign: bool) -> Letter {
    let to = Identity::from_seed([2; 32]).peer_id();
    Letter { to, id: MessageId([7; 16]), time: 1_764_547_200_123, sign }
}

impl CryptoProvider for Readable {
    fn suites(&self) -> &[Suite] {
        RustCrypto.suites()
    }

    fn key(&self, suite: Suite, material: &KeyMaterial) -> Box<dyn PacketKey> {
        RustCrypto.key(suite, material)
    }

    fn header_key(&self, suite: Suite, key: &[u8; 32]) -> Box<dyn HeaderKey> {
        RustCrypto.header_key(suite, key)
    }

    fn noise_key(&self, _: &[u8; 32]) -> Box<dyn PacketKey> {
        Box::new(AnyKey)
    }

    fn x25519_key(&self, secret: &[u8; 32]) -> Box<dyn X25519Key> {
        RustCrypto.x25519_key(secret)
    }
}

impl PacketKey for AnyKey {
    fn seal_in_place(&self, _: u64, _: &[u8], packet: &mut [u8]) {
        let room = packet.len() - TAG_LEN;
        packet[room..].fill(0);
    }

    fn open_in_place(&self, _: u64, _: &[u8], packet: &mut [u8]) -> Result<usize, BadTag> {
        packet.len().checked_sub(TAG_LEN).ok_or(BadTag)
    }
}
