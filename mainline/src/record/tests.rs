use super::*;

const SALT: u64 = 0x0102_0304_0506_0708;

fn identity(seed: u8) -> Identity {
    Identity::from_seed([seed; 32])
}

#[test]
fn a_record_comes_out_as_it_was_signed_and_is_one_of_our_own_dht() {
    let identity = identity(7);
    let (seq, item) = encode(&identity, SALT, 42, b"here").unwrap();
    let record = decode(&record_key(&identity), SALT, seq, &item).unwrap();
    assert_eq!((record.peer, record.salt, record.seq), (identity.peer_id(), SALT, 42));
    assert_eq!(record.value, b"here");
    assert_eq!(record.signature, sign(&identity, SALT, 42, b"here").unwrap());
    let key = wraith_dht_proto::signed_key(&identity.peer_id(), SALT);
    assert!(DhtRecord::Signed(record.signed()).is_genuine(&key));
}

#[test]
fn the_longest_value_fills_what_bep_44_allows_and_one_byte_more_is_refused() {
    let identity = identity(7);
    let value = vec![0xaa; MAX_VALUE + 1];
    let (_, item) = encode(&identity, SALT, 0, &value[1..]).unwrap();
    assert_eq!(format!("{}:", item.len()).len() + item.len(), 1_000);
    assert_eq!(decode(&record_key(&identity), SALT, 0, &item).unwrap().value, value[1..]);
    assert_eq!(encode(&identity, SALT, 0, &value), Err(PutError::TooLong));
    assert_eq!(MAX_VALUE, 835);
}

#[test]
fn an_empty_value_is_a_record_and_what_is_shorter_is_none() {
    let identity = identity(7);
    let (seq, item) = encode(&identity, SALT, 1, b"").unwrap();
    assert_eq!(item.len(), HEADER);
    assert_eq!(decode(&record_key(&identity), SALT, seq, &item).unwrap().value, b"");
    for len in 0..HEADER {
        assert_eq!(decode(&record_key(&identity), SALT, seq, &item[..len]), None, "{len}");
    }
}

#[test]
fn the_highest_sequence_number_is_that_of_bep_44() {
    let identity = identity(7);
    let (seq, item) = encode(&identity, SALT, MAX_SEQ, b"last").unwrap();
    assert_eq!(seq, i64::MAX);
    assert_eq!(decode(&record_key(&identity), SALT, seq, &item).unwrap().seq, MAX_SEQ);
    assert_eq!(encode(&identity, SALT, MAX_SEQ + 1, b"last"), Err(PutError::SeqTooHigh));
    assert_eq!(decode(&record_key(&identity), SALT, -1, &item), None);
}

#[test]
fn a_bit_of_the_item_its_key_its_salt_or_its_sequence_number_changed_makes_it_no_record() {
    let identity = identity(7);
    let key = record_key(&identity);
    let (seq, item) = encode(&identity, SALT, 42, b"here").unwrap();
    for at in 0..item.len() {
        let mut changed = item.clone();
        changed[at] ^= 1;
        assert_eq!(decode(&key, SALT, seq, &changed), None, "byte {at}");
    }
    assert_eq!(decode(&key, SALT + 1, seq, &item), None, "a foreign salt");
    assert_eq!(decode(&key, SALT, seq + 1, &item), None, "another sequence number");
    assert_eq!(decode(&record_key(&self::identity(8)), SALT, seq, &item), None, "under another's key");
}

#[test]
fn a_certificate_of_another_identity_or_purpose_is_none() {
    let (owner, thief) = (identity(7), identity(8));
    let (seq, item) = encode(&owner, SALT, 1, b"mine").unwrap();
    let (_, others) = encode(&thief, SALT, 1, b"mine").unwrap();
    // The owner's record under the thief's key, which the thief has certified for itself.
    let spliced = [&item[..33], &others[33..97], &item[97..]].concat();
    assert_eq!(decode(&record_key(&thief), SALT, seq, &spliced), None);
    // Signed by the owner, without the domain.
    let bare = SigningKey::from_bytes(owner.seed()).sign(&record_key(&owner)).to_bytes();
    let spliced = [&item[..33], &bare, &item[97..]].concat();
    assert_eq!(decode(&record_key(&owner), SALT, seq, &spliced), None);
}

#[test]
fn the_derived_key_is_not_the_identitys_and_every_domain_ends_in_a_zero_byte() {
    let identity = identity(7);
    assert_ne!(&record_key(&identity), identity.peer_id().as_bytes());
    let secret = blake3::derive_key("WRAITH v1 mainline", &[7; 32]);
    assert_eq!(record_key(&identity), SigningKey::from_bytes(&secret).verifying_key().to_bytes());
    assert_eq!(certified(&[9; 32])[..19], *b"WRAITH v1 mainline\0");
}
