use super::*;
use crate::crypto::{RustCrypto, TAG_LEN};

const NOW: Instant = Instant::from_nanos(1);
const LIFE: Lifetime = Lifetime { packets: 100, time: Duration::from_mins(2) };
const SUITE: Suite = Suite::XChaCha20Poly1305;

fn root() -> Root {
    Root::new(&[1; 32], &[2; 32], &[3; 32])
}

fn ends() -> (Keys, Keys) {
    let keys = |role| Keys::new(SUITE, role, root(), NOW);
    (keys(Role::Initiator), keys(Role::Responder))
}

fn secret(byte: u8) -> Zeroizing<[u8; 32]> {
    Zeroizing::new([byte; 32])
}

fn no_secret() -> Zeroizing<[u8; 32]> {
    panic!("there is a share already")
}

fn share(keys: &Keys) -> (u32, [u8; 32]) {
    keys.share().map(|(epoch, share)| (epoch, *share)).expect("a share")
}

/// A packet of `from` opens at `to`, if its key is there.
fn carries(from: &Keys, to: &mut Keys) -> bool {
    let mut packet = [7; 20 + TAG_LEN];
    RustCrypto.key(SUITE, from.sealing()).seal_in_place(9, b"header", &mut packet);
    let Some((epoch, key)) = to.opening(from.phase()) else { return false };
    assert_eq!(epoch, from.epoch());
    let opened = RustCrypto.key(SUITE, key).open_in_place(9, b"header", &mut packet) == Ok(20);
    if opened {
        to.on_opened(from.phase());
    }
    opened
}

/// Both ends move on to the next epoch; `left` begins.
fn exchange(left: &mut Keys, right: &mut Keys, byte: u8) {
    left.begin(&RustCrypto, &secret(byte));
    let (epoch, theirs) = share(left);
    assert_eq!(right.take_share(&RustCrypto, epoch, &theirs, || secret(byte + 1)), Ok(true));
    let (epoch, theirs) = share(right);
    assert_eq!(left.take_share(&RustCrypto, epoch, &theirs, no_secret), Ok(true));
    left.on_share_acked(epoch as u16);
    assert!(left.advance(50, NOW));
    assert!(carries(left, right));
    assert!(right.advance(60, NOW));
    assert!(carries(right, left));
}

/// `PROTO §5.15`
#[test]
fn both_ends_get_the_same_keys_whoever_begins() {
    for begins in [Role::Initiator, Role::Responder] {
        let (mut left, mut right) = ends();
        if begins == Role::Responder {
            core::mem::swap(&mut left, &mut right);
        }
        for epoch in 1..=9 {
            exchange(&mut left, &mut right, 10 * epoch as u8);
            assert_eq!((left.epoch(), right.epoch()), (epoch, epoch));
            assert_eq!(u32::from(left.phase()), epoch % 4);
            left.forget_former();
            right.forget_former();
        }
    }
}

/// `PROTO §5.14`: two ends that begin at the same time are in one exchange.
#[test]
fn starts_that_cross_make_one_epoch() {
    let (mut left, mut right) = ends();
    left.begin(&RustCrypto, &secret(1));
    right.begin(&RustCrypto, &secret(2));
    let (to_right, to_left) = (share(&left), share(&right));
    assert_eq!(right.take_share(&RustCrypto, 1, &to_right.1, no_secret), Ok(true));
    assert_eq!(left.take_share(&RustCrypto, 1, &to_left.1, no_secret), Ok(true));
    left.on_share_acked(1);
    assert!(left.advance(5, NOW));
    assert!(carries(&left, &mut right));
}

/// `PROTO §5.16`
#[test]
fn an_end_sends_with_new_keys_only_when_the_peer_has_them() {
    let (mut left, mut right) = ends();
    left.begin(&RustCrypto, &secret(1));
    assert_eq!(right.take_share(&RustCrypto, 1, &share(&left).1, || secret(2)), Ok(true));
    // Right has the keys, and its share has not arrived.
    assert!(!right.advance(5, NOW));
    right.on_share_acked(2);
    assert!(!right.advance(5, NOW), "another epoch's share was acknowledged");
    right.on_share_acked(1);
    assert!(right.advance(5, NOW));
    assert!(!right.advance(6, NOW), "once");
    assert!(!carries(&right, &mut left), "left does not have the share");
}

/// `PROTO §5.15`: retransmissions are byte-identical.
#[test]
fn a_repeated_share_changes_nothing_and_another_one_is_a_violation() {
    let (mut left, mut right) = ends();
    exchange(&mut left, &mut right, 1);
    let theirs = RustCrypto.x25519_base(&[1; 32]);
    assert_eq!(right.take_share(&RustCrypto, 1, &theirs, no_secret), Ok(false));
    assert_eq!(right.take_share(&RustCrypto, 1, &[9; 32], no_secret), Err(BadShare));
    assert_eq!(
        right.take_share(&RustCrypto, 0, &[9; 32], no_secret),
        Err(BadShare),
        "there is none for the first"
    );
    assert!(carries(&left, &mut right));
}

/// `PROTO §5.15`
#[test]
fn a_share_for_an_epoch_that_cannot_come_next_is_a_violation() {
    let (mut left, mut right) = ends();
    assert_eq!(right.take_share(&RustCrypto, 2, &[9; 32], no_secret), Err(BadShare));
    // Right has the keys of epoch 1, but nothing of it arrived: the peer cannot have begun another exchange.
    left.begin(&RustCrypto, &secret(1));
    assert_eq!(right.take_share(&RustCrypto, 1, &share(&left).1, || secret(2)), Ok(true));
    assert_eq!(right.take_share(&RustCrypto, 2, &[9; 32], no_secret), Err(BadShare));
}

/// `PROTO §3.3, §5.15`: every point of small order.
#[test]
fn a_share_that_gives_an_all_zero_result_is_a_violation() {
    let mut one = [0; 32];
    one[0] = 1;
    for point in [[0; 32], one] {
        let (_, mut right) = ends();
        assert_eq!(right.take_share(&RustCrypto, 1, &point, || secret(2)), Err(BadShare));
        assert_eq!(right.newest, 0);
    }
}

/// `PROTO §5.17`
#[test]
fn at_most_three_epochs_open_packets_at_a_time() {
    let (mut left, mut right) = ends();
    let phases =
        |keys: &Keys| (0..4).filter(|&phase| keys.opening(phase).is_some()).collect::<alloc::vec::Vec<_>>();
    exchange(&mut left, &mut right, 1);
    assert_eq!(phases(&right), [0, 1]);
    // The peer begins again although this end still waits for late packets of epoch 0.
    assert_eq!(right.take_share(&RustCrypto, 2, &[9; 32], || secret(5)), Ok(true));
    assert_eq!(phases(&right), [0, 1, 2]);
    right.on_opened(2);
    assert_eq!(phases(&right), [1, 2]);
    right.forget_former();
    assert_eq!(phases(&right), [2]);
}

/// `PROTO §5.15`: who learns the keys of an epoch and a former root, but no secret, learns no later key.
#[test]
fn an_epoch_depends_on_its_exchange() {
    let keys: alloc::vec::Vec<_> = [1, 2]
        .into_iter()
        .map(|byte| {
            let (mut left, mut right) = ends();
            exchange(&mut left, &mut right, 10 * byte);
            let mut packet = [0; 40];
            RustCrypto.key(SUITE, left.sealing()).seal_in_place(1, b"", &mut packet);
            packet
        })
        .collect();
    assert_ne!(keys[0], keys[1]);
}

#[test]
fn secrets_are_wiped_when_the_keys_are_made() {
    let (mut left, mut right) = ends();
    left.begin(&RustCrypto, &secret(1));
    assert!(left.schedule.exchange.as_ref().unwrap().secret.is_some());
    assert_eq!(right.take_share(&RustCrypto, 1, &share(&left).1, || secret(2)), Ok(true));
    assert!(right.schedule.exchange.as_ref().unwrap().secret.is_none());
    assert_ne!(right.schedule.root.secret(), root().secret());
}

/// `PROTO §5.14`
#[test]
fn an_exchange_begins_at_its_time_and_not_before_the_last_is_over() {
    let (mut left, _) = ends();
    let later = NOW.saturating_add(LIFE.time);
    let before = Instant::from_nanos(later.as_nanos() - 1);
    assert!(!left.is_due(99, Some(0), NOW, &LIFE));
    assert!(left.is_due(100, Some(0), NOW, &LIFE));
    assert!(!left.is_due(5, Some(0), before, &LIFE));
    assert!(left.is_due(5, Some(0), later, &LIFE));
    assert!(!left.is_due(100, None, NOW, &LIFE), "nothing arrived in this epoch");
    left.begin(&RustCrypto, &secret(9));
    assert!(!left.is_due(100, Some(0), NOW, &LIFE), "it is under way");

    let (mut left, mut right) = ends();
    exchange(&mut left, &mut right, 1);
    assert!(!left.is_due(150, Some(50), NOW, &LIFE), "packets of epoch 0 may be on the way");
    left.forget_former();
    assert!(!left.is_due(150, Some(49), NOW, &LIFE), "nothing arrived in this epoch");
    assert!(!left.is_due(149, Some(50), NOW, &LIFE));
    assert!(left.is_due(150, Some(50), NOW, &LIFE));
}

/// `PROTO §5.12`, `PROTO §5.14`
#[test]
fn a_key_seals_as_often_as_its_suite_allows() {
    let keys = |suite| {
        let mut keys = ends().0;
        keys.suite = suite;
        keys.first = 1000;
        keys
    };
    let aes = keys(Suite::Aes256Gcm);
    assert!(!aes.is_spent(1000 + (1 << 23) - 65));
    assert!(aes.is_spent(1000 + (1 << 23) - 64));
    let endless = Lifetime { packets: u64::MAX, time: Duration::MAX };
    assert!(!aes.is_due(1000 + (1 << 22) - 1, Some(1000), NOW, &endless));
    assert!(aes.is_due(1000 + (1 << 22), Some(1000), NOW, &endless));
    let chacha = keys(SUITE);
    assert!(!chacha.is_spent(varint::MAX - 65));
    assert!(chacha.is_spent(varint::MAX - 64));
}

/// `PROTO §3.9`
#[test]
fn both_ends_export_the_same_secret_for_a_label_in_every_epoch() {
    let (mut left, mut right) = ends();
    let secret = left.export("example.com 2026 login");
    assert_eq!(right.export("example.com 2026 login"), secret);
    assert_ne!(right.export("example.com 2026 backup"), secret);
    exchange(&mut left, &mut right, 1);
    assert_eq!(left.export("example.com 2026 login"), secret);
}

/// `PROTO §6.8`: epochs have 32 bits, and the last one has no next.
#[test]
fn the_last_epoch_is_like_any_other_and_stays() {
    let (mut left, mut right) = ends();
    for keys in [&mut left, &mut right] {
        let epoch = u32::MAX - 1;
        keys.open.swap(0, Keys::slot(epoch));
        (keys.epoch, keys.newest, keys.arrived) = (epoch, epoch, epoch);
    }
    assert!(left.is_due(100, Some(0), NOW, &LIFE));
    exchange(&mut left, &mut right, 1);
    assert_eq!((left.epoch(), right.epoch(), left.phase()), (u32::MAX, u32::MAX, 3));
    left.forget_former();
    right.forget_former();
    assert!(carries(&left, &mut right) && carries(&right, &mut left));
    assert!(!left.is_due(u64::MAX, Some(u64::MAX), NOW, &LIFE));
    assert_eq!(right.take_share(&RustCrypto, u32::MAX, &[9; 32], no_secret), Ok(false));
}
