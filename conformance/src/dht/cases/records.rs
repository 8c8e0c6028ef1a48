//! What is kept, and for whom.

use super::super::bench::{Bench, Voice};
use crate::case::{Outcome, Verdict, ensure, ensure_eq};
use crate::peer::dht::{Ask, Held, Kind, Offer, Reply, Signed, signed_text, value_key};
use crate::peer::{points, sign_with};
use crate::protocol::Door;
use curve25519_dalek::scalar::Scalar;

const STORED: u8 = 0;
const BAD_TOKEN: u8 = 1;
const NOT_GENUINE: u8 = 2;
const OUTDATED: u8 = 3;
const CONFLICT: u8 = 4;

/// What is there, and the write token of `voice` for it.
fn find(bench: &mut Bench, voice: Voice, key: [u8; 32], kind: Kind) -> Outcome<([u8; 8], Held)> {
    match bench.ask(voice, &Ask::FindValue(key, kind))? {
        Reply::Found { write_token, held, .. } => Ok((write_token, held)),
        other => Err(Verdict::Fail(format!("§14.4: find-value is answered by {other:?}"))),
    }
}

/// Stores with a write token that fits; result and sequence number.
fn put(bench: &mut Bench, voice: Voice, condition: Option<u64>, offer: &Offer) -> Outcome<(u8, u64)> {
    let kind = match offer {
        Offer::Value(_) => Kind::Value,
        Offer::Signed(_) => Kind::Signed,
        Offer::Provider(_) => Kind::Providers,
    };
    let (write_token, _) = find(bench, voice, offer.key(), kind)?;
    store(bench, voice, write_token, condition, offer)
}

fn store(
    bench: &mut Bench,
    voice: Voice,
    write_token: [u8; 8],
    condition: Option<u64>,
    offer: &Offer,
) -> Outcome<(u8, u64)> {
    match bench.ask(voice, &Ask::Store { write_token, condition, offer: offer.clone() })? {
        Reply::Stored { result, seq } => Ok((result, seq)),
        other => Err(Verdict::Fail(format!("§14.4: store is answered by {other:?}"))),
    }
}

/// Bytes that no case has stored before.
fn fresh(bench: &mut Bench, len: usize) -> Vec<u8> {
    let mut value = bench.rng.bytes32().repeat(len.div_ceil(32));
    value.truncate(len);
    value
}

pub(super) fn a_value_is_stored_and_found(bench: &mut Bench) -> Outcome {
    let (front, back) = (bench.front, bench.back);
    for len in [11, 1_000] {
        let value = fresh(bench, len);
        let (key, offer) = (value_key(&value), Offer::Value(value.clone()));
        let (write_token, before) = find(bench, front, key, Kind::Value)?;
        ensure_eq!(before, Held::Nothing, "what is there before a value is stored");
        let stored = store(bench, front, write_token, None, &offer)?;
        ensure_eq!(stored, (STORED, 0), "result and number of a value of {len} bytes");
        for voice in [front, back] {
            let (_, held) = find(bench, voice, key, Kind::Value)?;
            ensure_eq!(held, Held::Value(value.clone()), "what is found of a value of {len} bytes");
        }
        let (_, held) = find(bench, front, key, Kind::Signed)?;
        ensure_eq!(held, Held::Nothing, "the signed record under the key of a value");
    }
    Ok(())
}

pub(super) fn nothing_is_kept_without_a_write_token(bench: &mut Bench) -> Outcome {
    let (front, back, somebody) = (bench.front, bench.back, bench.voice(Door::Front));
    let (value, other) = (fresh(bench, 20), fresh(bench, 20));
    let (key, offer) = (value_key(&value), Offer::Value(value.clone()));
    let (right, _) = find(bench, front, key, Kind::Value)?;
    let (of_another_key, _) = find(bench, front, value_key(&other), Kind::Value)?;
    let mut altered = right;
    altered[7] ^= 1;
    for (what, voice, write_token) in [
        ("no write token", front, [0; 8]),
        ("an altered write token", front, altered),
        ("the write token of another key", front, of_another_key),
        ("the write token of another address and PeerId", back, right),
        ("the write token of another PeerId at the same address", somebody, right),
    ] {
        let (result, _) = store(bench, voice, write_token, None, &offer)?;
        ensure_eq!(result, BAD_TOKEN, "the result of {what}");
    }
    let moved = Voice { door: Door::Back, ..front };
    bench.overhear(front, Door::Back);
    let (result, _) = store(bench, moved, right, None, &offer)?;
    ensure_eq!(result, BAD_TOKEN, "the result of the write token of another address");
    let provider = Offer::Provider(key);
    let (result, _) = store(bench, front, [0; 8], None, &provider)?;
    ensure_eq!(result, BAD_TOKEN, "the result of a provider without a write token");
    for kind in [Kind::Value, Kind::Providers] {
        let (_, held) = find(bench, front, key, kind)?;
        ensure_eq!(held, Held::Nothing, "what is kept without a write token");
    }
    ensure_eq!(store(bench, front, right, None, &offer)?.0, STORED, "the result of the right one");
    Ok(())
}

pub(super) fn a_signed_record_gives_way_to_a_higher_number_alone(bench: &mut Bench) -> Outcome {
    let (front, owner, salt) = (bench.front, bench.rng.bytes32(), bench.rng.next_u64());
    let record = |seq, value: &[u8]| Offer::Signed(Signed::new(&owner, salt, seq, value));
    let key = record(0, b"").key();
    for (what, seq, value, result, there) in [
        ("the first", 5, &b"first"[..], STORED, 5),
        ("a lower number", 4, b"lower", OUTDATED, 5),
        ("another with the same number", 5, b"other", OUTDATED, 5),
        ("the very same", 5, b"first", STORED, 5),
        ("a higher number", 6, b"higher", STORED, 6),
        ("the former one", 5, b"first", OUTDATED, 6),
        ("the highest number", u64::MAX, b"highest", STORED, u64::MAX),
    ] {
        let found = put(bench, front, None, &record(seq, value))?;
        ensure_eq!(found, (result, there), "result and number of {what}");
    }
    let (_, held) = find(bench, bench.back, key, Kind::Signed)?;
    let Offer::Signed(highest) = record(u64::MAX, b"highest") else { unreachable!("it is signed") };
    ensure_eq!(held, Held::Signed(highest), "the signed record that is found");
    let other = Offer::Signed(Signed::new(&owner, salt.wrapping_add(1), 1, &[7; 900]));
    ensure_eq!(put(bench, front, None, &other)?, (STORED, 1), "result and number of another salt");
    Ok(())
}

pub(super) fn what_its_owner_did_not_sign_is_refused(bench: &mut Bench) -> Outcome {
    let (front, owner, salt) = (bench.front, bench.rng.bytes32(), bench.rng.next_u64());
    let good = Signed::new(&owner, salt, 7, b"value");
    let mut altered = good.signature;
    altered[0] ^= 1;
    let text = signed_text(salt, 7, b"value");
    let forged = sign_with(&owner, &text, Scalar::ONE);
    let anybody: Vec<u8> = [&forged[..32], &Scalar::ONE.to_bytes()].concat();
    let records = [
        ("an altered signature", Signed { signature: altered, ..good.clone() }),
        ("another value", Signed { value: b"other".to_vec(), ..good.clone() }),
        ("another number", Signed { seq: 8, ..good.clone() }),
        ("another salt", Signed { salt: salt ^ 1, ..good.clone() }),
        ("another owner", Signed { peer: front.peer(), ..good.clone() }),
        (
            "a signature with R of small order",
            Signed { signature: sign_with(&owner, &text, Scalar::ZERO), ..good.clone() },
        ),
        (
            "a key of small order",
            Signed {
                peer: points::neutral(),
                signature: anybody.try_into().expect("64 bytes"),
                ..good.clone()
            },
        ),
    ];
    for (what, record) in records {
        let key = record.key();
        let found = put(bench, front, None, &Offer::Signed(record))?;
        ensure_eq!(found, (NOT_GENUINE, 0), "result and number of {what}");
        let (_, held) = find(bench, front, key, Kind::Signed)?;
        ensure_eq!(held, Held::Nothing, "what is there after {what}");
    }
    ensure_eq!(put(bench, front, None, &Offer::Signed(good))?, (STORED, 7), "result of the genuine one");
    Ok(())
}

pub(super) fn a_condition_has_to_hold(bench: &mut Bench) -> Outcome {
    let (front, owner, salt) = (bench.front, bench.rng.bytes32(), bench.rng.next_u64());
    let record = |seq| Offer::Signed(Signed::new(&owner, salt, seq, &[7; 9]));
    for (what, condition, seq, expected) in [
        ("a condition where nothing is", Some(0), 3, (CONFLICT, 0)),
        ("none", None, 3, (STORED, 3)),
        ("a lower number than is there", Some(2), 4, (CONFLICT, 3)),
        ("a higher number than is there", Some(4), 4, (CONFLICT, 3)),
        ("the number that is there", Some(3), 4, (STORED, 4)),
        ("a condition of an outdated record", Some(3), 2, (CONFLICT, 4)),
    ] {
        let found = put(bench, front, condition, &record(seq))?;
        ensure_eq!(found, expected, "result and number of {what}");
    }
    let value = Offer::Value(fresh(bench, 30));
    ensure_eq!(put(bench, front, Some(9), &value)?.0, STORED, "the result of a value with a condition");
    Ok(())
}

pub(super) fn a_provider_is_named_as_it_asked(bench: &mut Bench) -> Outcome {
    let (front, back, key) = (bench.front, bench.back, bench.rng.bytes32());
    let (_, before) = find(bench, back, key, Kind::Providers)?;
    ensure_eq!(before, Held::Nothing, "the providers before one says so");
    ensure_eq!(put(bench, front, None, &Offer::Provider(key))?.0, STORED, "the result of a provider");
    let (_, held) = find(bench, back, key, Kind::Providers)?;
    ensure_eq!(held, Held::Providers(vec![bench.node(front)]), "the providers");
    let (_, held) = find(bench, back, key, Kind::Value)?;
    ensure!(held == Held::Nothing, "a value under the key of providers: {held:?}");
    Ok(())
}
