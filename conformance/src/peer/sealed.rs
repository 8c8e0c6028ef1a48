//! Sealed messages and notes (`PROTO §12`), whole in memory.

use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{ChaCha20Poly1305, KeyInit, Nonce};
use curve25519_dalek::edwards::{CompressedEdwardsY, EdwardsPoint};
use curve25519_dalek::scalar::Scalar;
use sha2::{Digest, Sha512};

use super::identity::{Identity, KeyPair, x25519_form};
use super::noise::Symmetric;
use super::{Refused, TAG_LEN, prologue};

/// `PROTO §12.5`.
const DATAGRAM: &[u8] = &[0x61];
/// `PROTO §12.6`.
const MESSAGE: &[u8] = b"WRAITHS\x01";

/// `k1`, `k2` and `h` of the Noise message.
type Outputs = [[u8; 32]; 3];

const FIELDS: usize = 57;
const SIGNATURE: usize = 64;
const SEGMENT: usize = 65_536;
const LAST: u32 = 1 << 31;

const SHORT: Refused = Refused("§12.3: too short");

/// All that a sealed message follows from, besides its body.
#[derive(Clone, Copy, Debug)]
pub struct Letter {
    /// The sender's seed.
    pub seed: [u8; 32],
    /// The recipient's `PeerId`.
    pub to: [u8; 32],
    /// The id of the message.
    pub id: [u8; 16],
    /// Milliseconds since 1970.
    pub time: u64,
    /// Whether it is signed.
    pub sign: bool,
    /// `r` of `PROTO §12.10`.
    pub randomness: [u8; 32],
}

/// What is computed on the way to a sealed message.
#[derive(Clone, Copy, Debug)]
pub struct Making {
    /// `PROTO §12.10`.
    pub ephemeral: [u8; 32],
    /// Of the Noise message, as `k1`, `k2` and `h`.
    pub outputs: [[u8; 32]; 3],
    /// `PROTO §12.9`, if it is signed.
    pub signature: Option<[u8; SIGNATURE]>,
}

/// All that a note follows from, besides its prefix and body (`PROTO §12.14`).
#[derive(Clone, Copy, Debug)]
pub struct Note {
    /// The sender's seed.
    pub seed: [u8; 32],
    /// The recipient's `PeerId`.
    pub to: [u8; 32],
    /// `r` of `PROTO §12.10`.
    pub randomness: [u8; 32],
}

/// What a sealed message says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Opened {
    /// The sender's `PeerId`.
    pub from: [u8; 32],
    /// The id of the message.
    pub id: [u8; 16],
    /// Milliseconds since 1970.
    pub time: u64,
    /// Whether it carries a good signature.
    pub signed: bool,
    /// Its body.
    pub body: Vec<u8>,
}

/// A sealed datagram.
///
/// # Errors
/// [`Refused`] if the recipient's `PeerId` is not acceptable.
pub fn seal_datagram(letter: &Letter, body: &[u8]) -> Result<(Vec<u8>, Making), Refused> {
    let signature = letter.sign.then(|| letter.signature(body));
    let rest = [signature.as_ref().map_or(&[][..], |signature| signature), body].concat();
    let (datagram, ephemeral, outputs) = letter.noise(DATAGRAM, body, &rest)?;
    Ok((datagram, Making { ephemeral, outputs, signature }))
}

/// A message.
///
/// # Errors
/// [`Refused`] if the recipient's `PeerId` is not acceptable.
pub fn seal_message(letter: &Letter, body: &[u8]) -> Result<(Vec<u8>, Making), Refused> {
    let first = &body[..body.len().min(SEGMENT)];
    let (mut message, ephemeral, outputs) = letter.noise(MESSAGE, first, &[])?;
    let signature = letter.sign.then(|| letter.signature(body));
    let cipher = segment_cipher(&outputs);
    let count = body.len().div_ceil(SEGMENT).max(1);
    for at in 0..count {
        let piece = &body[at * SEGMENT..body.len().min((at + 1) * SEGMENT)];
        let is_last = at + 1 == count;
        let header = (piece.len() as u32 | if is_last { LAST } else { 0 }).to_be_bytes();
        let behind = signature.as_ref().filter(|_| is_last).map_or(&[][..], |signature| signature);
        let text = [piece, behind].concat();
        let sealed = cipher.encrypt(&nonce(at, is_last), Payload { msg: &text, aad: &header });
        message.extend(header);
        message.extend(sealed.map_err(|_| Refused("§12.8: a segment that is too long"))?);
    }
    Ok((message, Making { ephemeral, outputs, signature }))
}

/// Opens a datagram for the holder of a seed.
///
/// # Errors
/// [`Refused`], with the rule that is broken.
pub fn open_datagram(seed: &[u8; 32], datagram: &[u8]) -> Result<Opened, Refused> {
    let message = datagram.strip_prefix(DATAGRAM).ok_or(Refused("§12.5: another first byte"))?;
    let (mut opened, rest, _) = read(seed, DATAGRAM, message)?;
    if opened.signed {
        let (signature, body) = rest.split_first_chunk().ok_or(Refused("§12.3: too short"))?;
        opened.body = body.to_vec();
        verify(&opened, &Identity::from_seed(seed).id, signature)?;
    } else {
        opened.body = rest;
    }
    Ok(opened)
}

/// Opens a message for the holder of a seed.
///
/// # Errors
/// [`Refused`], with the rule that is broken.
pub fn open_message(seed: &[u8; 32], message: &[u8]) -> Result<Opened, Refused> {
    const CUT: Refused = Refused("§12.7: no last segment");
    let rest = message.strip_prefix(MESSAGE).ok_or(Refused("§12.6: another prefix"))?;
    let (head, mut rest) = rest.split_at_checked(96 + FIELDS).ok_or(CUT)?;
    let (mut opened, none, outputs) = read(seed, MESSAGE, head)?;
    if !none.is_empty() {
        return Err(Refused("§12.6: the payload is more than the fields"));
    }
    let cipher = segment_cipher(&outputs);
    for at in 0.. {
        let (header, behind) = rest.split_first_chunk().ok_or(CUT)?;
        let value = u32::from_be_bytes(*header);
        let (len, is_last) = ((value & !LAST) as usize, value & LAST != 0);
        if len > SEGMENT || !is_last && len != SEGMENT {
            return Err(Refused("§12.7: a segment of wrong length"));
        }
        let signature = if is_last && opened.signed { SIGNATURE } else { 0 };
        let (sealed, behind) = behind.split_at_checked(len + signature + TAG_LEN).ok_or(CUT)?;
        let text = cipher
            .decrypt(&nonce(at, is_last), Payload { msg: sealed, aad: header })
            .map_err(|_| Refused("§12.8: a segment that does not authenticate"))?;
        opened.body.extend(&text[..len]);
        rest = behind;
        if is_last {
            if let Some(signature) = text[len..].first_chunk() {
                verify(&opened, &Identity::from_seed(seed).id, signature)?;
            }
            break;
        }
    }
    if rest.is_empty() { Ok(opened) } else { Err(Refused("§12.7: bytes behind the last segment")) }
}

/// A note, without its prefix, and its ephemeral secret.
///
/// # Errors
/// [`Refused`] if the recipient's `PeerId` is not acceptable.
pub fn seal_note(note: &Note, prefix: &[u8], body: &[u8]) -> Result<(Vec<u8>, [u8; 32]), Refused> {
    let from = Identity::from_seed(&note.seed).id;
    let (message, ephemeral, _) = noise(note, prefix, &from, body, body)?;
    Ok((message[prefix.len()..].to_vec(), ephemeral))
}

/// Opens a note for the holder of a seed: the sender's `PeerId`, and the body.
///
/// # Errors
/// [`Refused`], with the rule that is broken.
pub fn open_note(seed: &[u8; 32], prefix: &[u8], note: &[u8]) -> Result<([u8; 32], Vec<u8>), Refused> {
    let (sender, payload, _) = decrypt(seed, prefix, note)?;
    let (from, body) = payload.split_first_chunk().ok_or(SHORT)?;
    matches_key(from, &sender)?;
    Ok((*from, body.to_vec()))
}

impl Letter {
    /// The `PROTO §12.3` fields.
    fn fields(&self) -> Vec<u8> {
        let from = Identity::from_seed(&self.seed).id;
        [&from[..], &self.id, &self.time.to_be_bytes(), &[u8::from(self.sign)]].concat()
    }

    /// Prefix and Noise message, the ephemeral secret and what follows from the message.
    fn noise(
        &self,
        prefix: &[u8],
        hedge: &[u8],
        rest: &[u8],
    ) -> Result<(Vec<u8>, [u8; 32], Outputs), Refused> {
        let Self { seed, to, randomness, .. } = *self;
        noise(&Note { seed, to, randomness }, prefix, &self.fields(), hedge, rest)
    }

    fn signature(&self, body: &[u8]) -> [u8; SIGNATURE] {
        let from = Identity::from_seed(&self.seed).id;
        sign(&self.seed, &signed_text(&from, &self.to, &self.id, self.time, body))
    }
}

/// Prefix and Noise message, the ephemeral secret and what follows from the message.
fn noise(
    note: &Note,
    prefix: &[u8],
    fields: &[u8],
    hedge: &[u8],
    rest: &[u8],
) -> Result<(Vec<u8>, [u8; 32], Outputs), Refused> {
    let hash = *blake3::hash(&[prefix, fields, hedge].concat()).as_bytes();
    let material = [note.randomness, note.seed, note.to, hash].concat();
    let secret = blake3::derive_key("WRAITH v1 sealed ephemeral", &material);
    let (own, ephemeral) = (Identity::from_seed(&note.seed).keys, KeyPair::new(secret));
    let recipient = x25519_form(&note.to)?;

    let mut state = begun(prefix, &note.to, &recipient);
    state.mix_hash(&ephemeral.public);
    state.mix_key(&ephemeral.agree(&recipient)?);
    let sealed_static = state.encrypt(&own.public);
    state.mix_key(&own.agree(&recipient)?);
    let payload = state.encrypt(&[fields, rest].concat());
    let out = [prefix, &ephemeral.public, &sealed_static, &payload].concat();
    let [k1, k2] = state.split();
    Ok((out, secret, [k1, k2, state.hash]))
}

/// RFC 8032 §5.1.6.
pub(crate) fn sign(seed: &[u8; 32], text: &[u8]) -> [u8; SIGNATURE] {
    let digest: [u8; 64] = Sha512::digest(seed).into();
    sign_with(seed, text, hash_to_scalar(&[&digest[32..], text]))
}

/// With `r` for the secret scalar that is drawn from the text. 0 makes an R of small order.
pub(crate) fn sign_with(seed: &[u8; 32], text: &[u8], r: Scalar) -> [u8; SIGNATURE] {
    let Identity { id, keys } = Identity::from_seed(seed);
    let secret = Scalar::from_bytes_mod_order(keys.secret);
    let commitment = EdwardsPoint::mul_base(&r).compress().to_bytes();
    let s = r + hash_to_scalar(&[&commitment, &id, text]) * secret;
    let mut signature = [0; SIGNATURE];
    signature[..32].copy_from_slice(&commitment);
    signature[32..].copy_from_slice(&s.to_bytes());
    signature
}

/// Sender, id, time and flag; the rest of the payload; `k1`, `k2`, `h`.
fn read(seed: &[u8; 32], prefix: &[u8], message: &[u8]) -> Result<(Opened, Vec<u8>, Outputs), Refused> {
    let (sender, payload, outputs) = decrypt(seed, prefix, message)?;
    let (fields, rest) = payload.split_first_chunk::<FIELDS>().ok_or(SHORT)?;
    let from: [u8; 32] = fields[..32].try_into().map_err(|_| SHORT)?;
    matches_key(&from, &sender)?;
    if fields[56] > 1 {
        return Err(Refused("§12.3: an unknown flag"));
    }
    let opened = Opened {
        from,
        id: fields[32..48].try_into().map_err(|_| SHORT)?,
        time: u64::from_be_bytes(fields[48..56].try_into().map_err(|_| SHORT)?),
        signed: fields[56] == 1,
        body: Vec::new(),
    };
    Ok((opened, rest.to_vec(), outputs))
}

/// The sender's static key; the payload; `k1`, `k2`, `h`.
fn decrypt(seed: &[u8; 32], prefix: &[u8], message: &[u8]) -> Result<([u8; 32], Vec<u8>, Outputs), Refused> {
    let Identity { id, keys } = Identity::from_seed(seed);
    let mut state = begun(prefix, &id, &keys.public);
    let (ephemeral, rest) = message.split_first_chunk().ok_or(SHORT)?;
    let (sealed_static, payload) = rest.split_at_checked(32 + TAG_LEN).ok_or(SHORT)?;
    state.mix_hash(ephemeral);
    state.mix_key(&keys.agree(ephemeral)?);
    let sender: [u8; 32] = state.decrypt(sealed_static)?.try_into().map_err(|_| SHORT)?;
    state.mix_key(&keys.agree(&sender)?);
    let payload = state.decrypt(payload)?;
    let [k1, k2] = state.split();
    Ok((sender, payload, [k1, k2, state.hash]))
}

fn matches_key(from: &[u8; 32], sender: &[u8; 32]) -> Result<(), Refused> {
    if x25519_form(from)? == *sender {
        Ok(())
    } else {
        Err(Refused("§12.4: the PeerId is not that of the static key"))
    }
}

/// The Noise state before the message.
fn begun(prefix: &[u8], to: &[u8; 32], recipient: &[u8; 32]) -> Symmetric {
    let mut state = Symmetric::new(b"Noise_X_25519_ChaChaPoly_BLAKE2s");
    state.mix_hash(&[&prologue(1)[..], prefix, to].concat());
    state.mix_hash(recipient);
    state
}

fn segment_cipher(outputs: &Outputs) -> ChaCha20Poly1305 {
    let key = blake3::derive_key("WRAITH v1 sealed segments", &outputs.concat());
    ChaCha20Poly1305::new((&key).into())
}

fn nonce(segment: usize, is_last: bool) -> Nonce {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&(2 * segment as u64 + u64::from(is_last)).to_le_bytes());
    nonce.into()
}

fn signed_text(from: &[u8; 32], to: &[u8; 32], id: &[u8; 16], time: u64, body: &[u8]) -> Vec<u8> {
    let hash = *blake3::hash(body).as_bytes();
    [b"WRAITH v1 sealed\0", &from[..], to, id, &time.to_be_bytes(), &hash].concat()
}

fn hash_to_scalar(parts: &[&[u8]]) -> Scalar {
    let digest = parts.iter().fold(Sha512::new(), Digest::chain_update).finalize();
    Scalar::from_bytes_mod_order_wide(&digest.into())
}

/// `PROTO §12.9`.
fn verify(opened: &Opened, to: &[u8; 32], signature: &[u8; SIGNATURE]) -> Result<(), Refused> {
    let text = signed_text(&opened.from, to, &opened.id, opened.time, &opened.body);
    if verifies(&opened.from, &text, signature) { Ok(()) } else { Err(Refused("§12.9: a wrong signature")) }
}

/// RFC 8032 §5.1.7, without the cofactor; neither key nor R is of small order.
pub(crate) fn verifies(key: &[u8; 32], text: &[u8], signature: &[u8; SIGNATURE]) -> bool {
    verified(key, text, signature).is_some()
}

fn verified(key: &[u8; 32], text: &[u8], signature: &[u8; SIGNATURE]) -> Option<()> {
    let (commitment, s) = signature.split_at(32);
    let s: [u8; 32] = s.try_into().ok()?;
    let s = Option::<Scalar>::from(Scalar::from_canonical_bytes(s))?;
    let point = CompressedEdwardsY(*key).decompress()?;
    let k = hash_to_scalar(&[commitment, key, text]);
    let expected = EdwardsPoint::mul_base(&s) - point * k;
    let strong = !point.is_small_order() && !expected.is_small_order();
    (strong && expected.compress().as_bytes() == commitment).then_some(())
}
