//! Keys that nobody may have.

use curve25519_dalek::constants::EIGHT_TORSION;
use curve25519_dalek::edwards::{CompressedEdwardsY, EdwardsPoint};

use super::{Identity, KeyPair};

/// X25519 public keys whose shared secrets are all zero: every point of small order, and two more encodings.
pub(crate) fn low_order() -> Vec<[u8; 32]> {
    let mut points: Vec<[u8; 32]> =
        EIGHT_TORSION.iter().map(|point| point.to_montgomery().to_bytes()).collect();
    points.sort_unstable();
    points.dedup();
    // 2^255 − 19 and one more: zero and one in another form.
    for low in [0xed, 0xee] {
        let mut point = [0xff; 32];
        (point[0], point[31]) = (low, 0x7f);
        points.push(point);
    }
    points
}

/// The neutral element of the group, as a `PeerId` would be written.
pub(crate) fn neutral() -> [u8; 32] {
    EIGHT_TORSION[0].compress().0
}

/// Identities that are none, each with a key pair that fits it as if it was (`PROTO §3.2`).
pub(crate) fn bad_identities(good: &Identity) -> Vec<(String, Identity)> {
    let mut bad = Vec::new();
    let point = CompressedEdwardsY(good.id).decompress().unwrap_or_default();
    let secret = good.keys.secret;
    let identity = |id: [u8; 32], point: EdwardsPoint| {
        let public = point.to_montgomery().to_bytes();
        Identity { id, keys: KeyPair { secret, public } }
    };
    for (number, torsion) in EIGHT_TORSION.iter().enumerate() {
        if number > 0 {
            let mixed = point + torsion;
            bad.push((format!("a point with torsion part {number}"), identity(mixed.compress().0, mixed)));
        }
        bad.push((format!("point {number} of small order"), identity(torsion.compress().0, *torsion)));
    }
    // The encodings of y = 1 with the sign of x = 0 set, and of y = 2^255 − 18.
    let mut signed = [0; 32];
    (signed[0], signed[31]) = (1, 0x80);
    let mut large = [0xff; 32];
    (large[0], large[31]) = (0xee, 0x7f);
    for encoding in [signed, large] {
        bad.push(("an encoding that is not canonical".to_owned(), identity(encoding, EIGHT_TORSION[0])));
    }
    bad.push(("no point".to_owned(), identity(no_point(), point)));
    bad
}

/// 32 bytes that decode to no point.
fn no_point() -> [u8; 32] {
    let mut bytes = [0; 32];
    while CompressedEdwardsY(bytes).decompress().is_some() {
        bytes[0] += 1;
    }
    bytes
}
