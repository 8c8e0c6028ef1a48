//! The vectors come from a separate implementation of BLAKE3.

use hex_literal::hex;

use super::*;

const XCHACHA: Suite = Suite::XChaCha20Poly1305;

fn root() -> Root {
    Root::new(&[1; 32], &[2; 32], &[3; 32])
}

#[test]
fn the_session_root_has_its_vector() {
    // PROTO §3.5
    assert_eq!(root().secret(), hex!("245877c76dc2b7d6b922c2d7b66132dd5e9e7a4e5f891bfbd247854f9f75c18a"));
}

#[test]
fn every_input_of_the_root_changes_it() {
    // PROTO §3.5: the handshake hash alone makes no key.
    let base = root().secret();
    for (k1, k2, h) in [(9, 2, 3), (1, 9, 3), (1, 2, 9)] {
        assert_ne!(Root::new(&[k1; 32], &[k2; 32], &[h; 32]).secret(), base);
    }
}

#[test]
fn the_root_of_the_next_epoch_has_its_vector() {
    // PROTO §5.15
    assert_eq!(
        root().next(&[4; 32], &[5; 32], &[6; 32], 1).secret(),
        hex!("24c393b5955782302ea326f847388695ec55104ba3eac35a623bbc62bb257d15")
    );
}

#[test]
fn every_input_of_the_next_root_changes_it() {
    // PROTO §5.15
    let base = root().next(&[4; 32], &[5; 32], &[6; 32], 1).secret();
    assert_ne!(Root::new(&[9; 32], &[2; 32], &[3; 32]).next(&[4; 32], &[5; 32], &[6; 32], 1).secret(), base);
    for (shared, initiator, responder, epoch) in
        [(9, 5, 6, 1), (4, 9, 6, 1), (4, 5, 9, 1), (4, 5, 6, 2), (4, 6, 5, 1)]
    {
        assert_ne!(root().next(&[shared; 32], &[initiator; 32], &[responder; 32], epoch).secret(), base);
    }
}

#[test]
fn the_exporter_secret_has_its_vector() {
    // PROTO §3.9
    assert_eq!(
        *root().exporter(XCHACHA),
        hex!("900f9fdbb23f7384e2b0d38c8a485a421f57f92405f20707f139d933e8d2e153")
    );
}

#[test]
fn packet_keys_and_prefixes_have_their_vectors() {
    // PROTO §3.6
    let vectors = [
        (
            root().packet(0, Direction::ToResponder, XCHACHA),
            hex!("5129cd1315ec97ee4249cf53ee74d17df7c914a79f80006631712944117901c7"),
            hex!("5d8d72fbc47cb53545e16fde4a2e3cea"),
        ),
        (
            root().packet(0, Direction::ToInitiator, XCHACHA),
            hex!("e0d3279718fe05b6fa4344f675bc41d1e6930a7a3b547f19505b88df1281acd0"),
            hex!("4c6cead8eb0b411fc5551106f65d5caa"),
        ),
        (
            root().packet(1, Direction::ToResponder, XCHACHA),
            hex!("64a5c2f74196f168a955c75d5e162183d76e68ce8b3e4f5c0c36bcec035fbd38"),
            hex!("dfb12f10f15e660b134ceae5796fbacf"),
        ),
        (
            root().packet(0x0102_0304, Direction::ToInitiator, Suite::Aes256Gcm),
            hex!("fffb718b2cb03099b3dfa5c569370dea4b2d93756c3bd2cd8ca31b08e86d91b9"),
            hex!("d256bd40790bb120ccfdbf7882f7b39a"),
        ),
    ];
    for (material, key, prefix) in vectors {
        assert_eq!(material.key, key);
        assert_eq!(material.prefix, prefix);
    }
}

#[test]
fn header_keys_have_their_vectors() {
    // PROTO §3.6
    assert_eq!(
        *root().header(Direction::ToResponder, XCHACHA),
        hex!("e2b33a6b27e75b59efa44f3c3b5a4a7ff0da39b9a8c01c1f5c9a1cec782bce69")
    );
    assert_eq!(
        *root().header(Direction::ToInitiator, XCHACHA),
        hex!("00afa4607c5817a46e782b31a2ec9b56d2e095a72c3d318d37fbf8907c57a8f0")
    );
    assert_eq!(
        *root().header(Direction::ToResponder, Suite::Aes256Gcm),
        hex!("4439ea97af5065e6eb77825cb1192a01a2857759efdbd3126be8d9c27b69c9c9")
    );
}

#[test]
fn no_two_keys_of_a_session_coincide() {
    let mut keys = alloc::collections::BTreeSet::new();
    for suite in [XCHACHA, Suite::Aes256Gcm] {
        for direction in [Direction::ToResponder, Direction::ToInitiator] {
            keys.insert(*root().header(direction, suite));
            for epoch in 0..3 {
                keys.insert(root().packet(epoch, direction, suite).key);
            }
        }
    }
    assert_eq!(keys.len(), 2 * 2 * 4);
}
