//! Packets allocate nothing, and keys give back all that they take, on the Rust heap and on the C heap.

use wraith_crypto_accel::Accel;
use wraith_proto::crypto::{CryptoProvider, KeyMaterial, Suite, TAG_LEN};
use wraith_sim::alloc::{Counting, c_heap_bytes, measure};

#[global_allocator]
static ALLOCATOR: Counting = Counting::new();

const SUITES: [Suite; 2] = [Suite::XChaCha20Poly1305, Suite::Aes256Gcm];
const MATERIAL: KeyMaterial = KeyMaterial { key: [3; 32], prefix: [4; 16] };

/// What `work` adds to the C heap, in bytes, if it does so each time: the thread that runs the tests allocates, too.
fn growth(mut work: impl FnMut()) -> u64 {
    let grown = |_| {
        let before = c_heap_bytes();
        work();
        c_heap_bytes().zip(before).map_or(0, |(after, before)| after.saturating_sub(before))
    };
    (0..5).map(grown).min().expect("five")
}

/// Everything that keys do with packets.
fn exchange(suite: Suite, packets: u64) {
    let (key, header_key) = (Accel.key(suite, &MATERIAL), Accel.header_key(suite, &[5; 32]));
    let payload = [7; 8000];
    let mut packet = [0; 8000 + 24 + TAG_LEN];
    let mut work = || {
        for number in 0..packets {
            let len = 1 + number as usize % payload.len();
            let packet = &mut packet[..len + 24 + TAG_LEN];
            key.seal_from(2 * number, b"header", &payload[..len], packet);
            assert_eq!(key.open_in_place(2 * number, b"header", packet), Ok(len + 24));
            key.seal_in_place(2 * number + 1, b"header", packet);
            assert_ne!(header_key.mask(packet.first_chunk().expect("16 bytes")), [0; 5]);
            packet[0] ^= 1;
            assert!(key.open_in_place(2 * number + 1, b"header", packet).is_err());
        }
    };
    // The first failure makes AWS-LC's list of errors of this thread.
    assert!(key.open_in_place(0, b"header", &mut [0; 40]).is_err());
    let ((), counts) = measure(&mut work);
    assert_eq!((counts.allocations, counts.deallocations), (0, 0), "{suite:?}");
    assert_eq!(growth(work), 0, "{suite:?}");
}

/// One test, for the C heap has one count for all threads.
#[test]
fn packets_take_no_memory_and_keys_give_theirs_back() {
    for suite in SUITES {
        exchange(suite, 2000);
    }
    let renew = |times| {
        for _ in 0..times {
            for suite in SUITES {
                drop(Accel.key(suite, &MATERIAL));
                drop(Accel.header_key(suite, &[5; 32]));
            }
            let key = Accel.x25519_key(&[9; 32]);
            assert_ne!(key.agree(&key.public()), [0; 32]);
            assert_eq!(key.agree(&[0; 32]), [0; 32]);
        }
    };
    renew(10);
    assert_eq!(growth(|| renew(200)), 0);
    // The count sees keys that stay.
    let mut kept = Vec::with_capacity(100);
    assert!(
        c_heap_bytes().is_none()
            || growth(|| kept.extend((0..20).map(|_| Accel.key(Suite::Aes256Gcm, &MATERIAL)))) >= 20 * 600
    );
}
