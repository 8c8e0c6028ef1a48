//! Which public keys are peers (`PROTO §3.2`), and their X25519 forms (`PROTO §3.1`).
//!
//! On the Montgomery curve, since a point and its negative are both peers or neither is. Nothing here is secret.

use crrl::field::GF25519;

/// Of Curve25519 (RFC 7748 §4.1).
const A: u32 = 486_662;

/// The root of `A` + 2 for which 2 · `C` · (`C` − 2) is a square; for the other one it is not.
const C: GF25519 = GF25519::w64le(
    0xe9a2_48ef_9c88_4415,
    0x635a_11c7_284a_9363,
    0xc21f_a77a_d7f4_a6ef,
    0x6be4_f497_f9a9_c2af,
);

/// The X25519 form of the public key of a peer: (1 + y) / (1 − y).
pub(crate) fn static_public(public: &[u8; 32]) -> [u8; 32] {
    // Every peer has another y than 1.
    y_coordinate(public).map(|y| ((GF25519::ONE + y) / (GF25519::ONE - y)).encode()).unwrap_or_default()
}

/// Whether `public` is a peer's, and `form` its X25519 form.
pub(crate) fn is_peer(public: &[u8; 32], form: &[u8; 32]) -> bool {
    let (Some(y), Some(u)) = (y_coordinate(public), GF25519::decode(form)) else {
        return false;
    };
    let is_form = (u * (GF25519::ONE - y)).equals(GF25519::ONE + y) != 0;
    // Only with x = 0 is a sign too much, at y = 1, which has no form, and y = −1, whose order is 2.
    is_form && is_in_subgroup(u)
}

/// The y-coordinate of an encoded point if it is below the prime.
fn y_coordinate(public: &[u8; 32]) -> Option<GF25519> {
    let mut y = *public;
    y[31] &= 0x7f;
    GF25519::decode(&y)
}

/// Whether `u` is of a point on the curve, not on its twist, whose order is the large prime.
///
/// That is so if the point can be halved three times. One half is found; whether it can be halved twice is what its Tate pairing
/// with a point of order 4 says: `docs/decisions/019`, which proves each line.
fn is_in_subgroup(u: GF25519) -> bool {
    let (r, has_half) = (u.square() + u.mul_small(A) + GF25519::ONE).sqrt();
    if has_half == 0 || u.legendre() != 1 {
        return false;
    }
    // The half has the u-coordinates t and 1/t with t + 1/t = s.
    let s = (u + r).mul2();
    let (q, has_quarter) = ((s + GF25519::from_u32(2)) * (s + GF25519::from_u32(A))).sqrt();
    has_quarter != 0 && (s + C.mul2() - GF25519::from_u32(2) - q).mul2().legendre() == 1
}
