//! Payloads of handshake messages that a receiver has to refuse, or has to take (`PROTO §4.4`).

use wraith_proto::wire::{HandshakeKind, parameter_id as id};

use crate::peer::Parameters;

/// Parameters of fixed length with a value of that length.
const FIXED: [(u64, usize); 6] = [
    (id::FIRST_VERSION, 4),
    (id::INITIATOR_ID, 8),
    (id::RESPONDER_ID, 8),
    (id::SUITE, 2),
    (id::PEER, 32),
    (id::INSTANCE, 16),
];

/// Parameters that are varints.
const NUMBERS: [u64; 6] = [
    id::IDLE_TIMEOUT,
    id::MAX_DATAGRAM,
    id::STREAM_CREDIT,
    id::STREAMS_BI,
    id::STREAMS_UNI,
    id::MAX_ACK_DELAY,
];

/// Payloads of a message that break one rule each, from one that keeps to all; `len` is what they are padded to.
pub(crate) fn malformed(good: &Parameters, message: HandshakeKind, len: usize) -> Vec<(String, Vec<u8>)> {
    let mut bad = Vec::new();
    let mut add = |what: String, parameters: &Parameters| bad.push((what, parameters.to_bytes(len)));
    for (known, value) in good.iter() {
        let mut without = good.clone();
        without.remove(known);
        add(format!("without parameter {known}"), &without);
        let mut twice = good.clone();
        twice.add(known, value);
        add(format!("with parameter {known} twice"), &twice);
    }
    for (what, parameters) in wrong_values(good) {
        add(what, &parameters);
    }
    for (known, value) in strangers(good, message) {
        let mut stray = good.clone();
        stray.add(known, value);
        add(format!("with parameter {known} outside its column"), &stray);
    }
    let mut high = good.clone();
    (0..33).for_each(|number| high.add(1000 + number, []));
    add("with 33 ids of 64 and above".to_owned(), &high);
    let mut high = good.clone();
    high.add(1000, []);
    high.add(1000, []);
    add("with an unknown id twice".to_owned(), &high);
    bad.extend(broken(good, len));
    bad
}

/// Payloads with unknown and reserved parameters, which a receiver has to ignore.
pub(super) fn unusual(good: &Parameters, len: usize) -> Vec<(String, Vec<u8>)> {
    let mut high = good.clone();
    (0..32).for_each(|number| high.add(64 + 31 * number, vec![number as u8; number as usize % 4]));
    let mut low = good.clone();
    for number in [12, 23, 27, 58, 63] {
        low.add(number, *b"whatever");
    }
    let mut reversed = Parameters::default();
    good.iter().collect::<Vec<_>>().into_iter().rev().for_each(|(known, value)| reversed.add(known, value));
    let mut largest = good.clone();
    largest.add((1 << 62) - 1, []);
    [
        ("with 32 unknown ids of 64 and above", high),
        ("with unknown ids below 64", low),
        ("in reversed order", reversed),
        ("with the largest id", largest),
    ]
    .map(|(what, parameters)| (what.to_owned(), parameters.to_bytes(len)))
    .into()
}

/// Parameters with one value of a wrong length or form.
fn wrong_values(good: &Parameters) -> Vec<(String, Parameters)> {
    let mut bad = Vec::new();
    let mut set = |known: u64, value: Vec<u8>| {
        let mut parameters = good.clone();
        if parameters.get(known).is_some() {
            parameters.set(known, value.clone());
            bad.push((format!("with {value:02x?} as parameter {known}"), parameters));
        }
    };
    for (known, len) in FIXED {
        let value = good.get(known).unwrap_or_default().to_vec();
        set(known, value[..len.min(value.len()).saturating_sub(1)].to_vec());
        set(known, [&value[..], &[0]].concat());
        set(known, Vec::new());
    }
    for known in NUMBERS {
        for value in [&[][..], &[0x40, 0x3f], &[0x80, 0, 0, 5], &[0x49], &[0x44, 0xb0, 0]] {
            set(known, value.to_vec());
        }
    }
    set(id::MAX_DATAGRAM, vec![0x44, 0xaf]);
    for value in [&[][..], &[0, 0, 1], &[0, 0, 0, 1, 0]] {
        set(id::VERSIONS, value.to_vec());
        set(id::SUITES, value.to_vec());
    }
    let long = [&[33][..], &[b'n'; 33]].concat();
    for value in [&[][..], &[0], &[2, b'a'], &long, &b"\x01a".repeat(9), b"\x01a\x00"] {
        set(id::PROTOCOLS, value.to_vec());
    }
    set(id::PROTOCOL, Vec::new());
    set(id::PROTOCOL, vec![b'n'; 33]);
    bad
}

/// Known parameters that a message does not have, with values that would be right elsewhere.
fn strangers(good: &Parameters, message: HandshakeKind) -> Vec<(u64, Vec<u8>)> {
    let mut all: Vec<(u64, Vec<u8>)> = FIXED.iter().map(|&(known, len)| (known, vec![1; len])).collect();
    all.extend(NUMBERS.map(|known| (known, vec![0x44, 0xb0])));
    all.extend([(id::PROTOCOLS, b"\x01a".to_vec()), (id::PROTOCOL, b"a".to_vec()), (id::ASK, Vec::new())]);
    if message != HandshakeKind::Response {
        all.push((id::REFUSAL, vec![1]));
    }
    all.retain(|&(known, _)| {
        good.get(known).is_none() && !(message == HandshakeKind::Response && known == id::ASK)
    });
    all
}

/// Payloads that are no list.
fn broken(good: &Parameters, len: usize) -> Vec<(String, Vec<u8>)> {
    let bytes = good.to_bytes(0);
    let padded = good.to_bytes(len.max(bytes.len() + 2));
    let mut stained = padded.clone();
    if let Some(last) = stained.last_mut() {
        *last = 1;
    }
    // The id 0x1b, which is reserved, in two bytes.
    let mut long_id = [&bytes[..], &[0x40, 0x1b, 0]].concat();
    let mut long_len = [&bytes[..], &[0x1b, 0x40, 0]].concat();
    long_id.resize(long_id.len().max(len), 0);
    long_len.resize(long_len.len().max(len), 0);
    let room = (padded.len() - bytes.len()) as u16;
    let mut beyond = [&bytes[..], &[0x1b], &(0x4000 | (room + 64)).to_be_bytes()].concat();
    beyond.resize(beyond.len().max(len), 0);
    [
        ("with a byte behind id 0", stained),
        ("with an id that is encoded too long", long_id),
        ("with a length that is encoded too long", long_len),
        ("with a value that is cut off", beyond),
    ]
    .map(|(what, payload)| (what.to_owned(), payload))
    .into()
}
