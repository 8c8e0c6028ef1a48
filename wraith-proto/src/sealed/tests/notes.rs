//! Notes: what another protocol seals (`PROTO §12.14`).

use super::*;

const PREFIX: [u8; 25] = [0x62; 25];

/// From 1 to 2.
fn note(prefix: &[u8], body: &[u8]) -> Vec<u8> {
    let mut note = vec![0; body.len() + NOTE_OVERHEAD];
    note[NOTE_BODY_AT..][..body.len()].copy_from_slice(body);
    mailbox(1).seal_note(prefix, &name(2), &RANDOM, &mut note).unwrap();
    note
}

fn open_note(seed: u8, prefix: &[u8], note: &[u8]) -> Result<(PeerId, Vec<u8>), OpenError> {
    let mut note = note.to_vec();
    mailbox(seed).open_note(prefix, &mut note).map(|(from, body)| (from, body.to_vec()))
}

/// `PROTO §12.14`
#[test]
fn a_note_opens_for_its_recipient_with_its_prefix() {
    for body in [&b""[..], b"x", &bytes(1_000)] {
        for prefix in [&PREFIX[..], &[], &[7; MAX_NOTE_PREFIX]] {
            let note = note(prefix, body);
            assert_eq!(open_note(2, prefix, &note), Ok((name(1), body.to_vec())));
            assert_eq!(open_note(3, prefix, &note), Err(OpenError::NotForUs));
        }
    }
    assert_eq!((NOTE_BODY_AT, NOTE_OVERHEAD), (112, 128));
}

/// `PROTO §12.14`
#[test]
fn a_note_is_spoilt_by_any_altered_or_missing_byte_and_by_another_prefix() {
    let whole = note(&PREFIX, b"body");
    for at in 0..whole.len() {
        let mut altered = whole.clone();
        altered[at] ^= 1;
        assert!(open_note(2, &PREFIX, &altered).is_err(), "{at}");
        assert!(open_note(2, &PREFIX, &whole[..at]).is_err(), "{at}");
    }
    for at in 0..PREFIX.len() {
        let mut prefix = PREFIX;
        prefix[at] ^= 1;
        assert_eq!(open_note(2, &prefix, &whole), Err(OpenError::NotForUs));
    }
    assert_eq!(open_note(2, &PREFIX[..24], &whole), Err(OpenError::NotForUs));
    assert_eq!(open_note(2, &PREFIX, &[&whole[..], &[0]].concat()), Err(OpenError::NotForUs));
}

/// `PROTO §12.14`
#[test]
fn a_note_is_no_sealed_datagram_and_no_sealed_datagram_a_note() {
    let sealed = datagram(false, b"body");
    assert!(
        matches!(open_note(2, &sealed[..1], &sealed[1..]), Ok((from, body)) if from == name(1) && body.len() == 29)
    );
    // The first byte tells them apart, and it is sealed in.
    assert_eq!(open_note(2, &[0x62], &sealed[1..]), Err(OpenError::NotForUs));
    let mut note = note(&[0x62], &bytes(60));
    note.insert(0, 0x61);
    assert_eq!(open_datagram(2, &note), Err(OpenError::NotForUs));
}

/// `PROTO §12.14`
#[test]
fn limits_of_notes_hold_at_their_edges() {
    let mut mailbox = mailbox(1);
    let mut room = vec![0; NOTE_OVERHEAD];
    assert_eq!(mailbox.seal_note(&[0; 33], &name(2), &RANDOM, &mut room), Err(SealError::Length));
    assert_eq!(mailbox.seal_note(&[0; 32], &name(2), &RANDOM, &mut room[1..]), Err(SealError::Room));
    assert_eq!(mailbox.seal_note(&[0; 32], &name(2), &RANDOM, &mut room), Ok(()));
    assert_eq!(open_note(2, &[0; 33], &room), Err(OpenError::Malformed));
    assert_eq!(open_note(2, &[0; 32], &room), Ok((name(1), vec![])));
}

/// `PROTO §12.10, §12.14`
#[test]
fn equal_randomness_gives_another_ephemeral_key_for_another_body_or_prefix() {
    let ephemeral = |prefix: &[u8], body: &[u8]| note(prefix, body)[..32].to_vec();
    let first = ephemeral(&PREFIX, b"a");
    assert_eq!(first, ephemeral(&PREFIX, b"a"));
    assert_ne!(first, ephemeral(&PREFIX, b"b"));
    assert_ne!(first, ephemeral(&PREFIX[1..], b"a"));
}

#[test]
fn a_peer_is_recognised_whether_it_is_remembered_or_not() {
    let mut mailbox = mailbox(2);
    let (peer, no_point) = (name(1), [2; 32]);
    assert_eq!(PeerId::from_bytes(no_point).ok(), None);
    for remembered in [0, 1] {
        assert_eq!(mailbox.known_peers(), remembered);
        assert_eq!(mailbox.recognise(peer.as_bytes()), Some(peer));
        assert_eq!(mailbox.recognise(&no_point), None);
        let mut note = note(&PREFIX, b"body");
        mailbox.open_note(&PREFIX, &mut note).unwrap();
    }
}
