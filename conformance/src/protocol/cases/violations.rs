//! Frames that break a rule: the subject ends the session with CLOSE 1 (`PROTO §9.5`).

use wraith_proto::wire::{ConnectionId, Frame, KeyShare, frame_kind as kind};

use crate::case::Outcome;
use crate::protocol::bench::Bench;
use crate::protocol::talk::{Talk, ack_of, encode};

/// What breaks a rule: one or more packets, each frames and data.
type Packets = Vec<(Vec<u8>, Vec<u8>)>;

/// Each of these ends a session of its own.
fn each(bench: &mut Bench<'_>, breaches: impl FnOnce(&Talk) -> Vec<(String, Packets)>) -> Outcome {
    let mut talk = bench.session()?;
    let breaches = breaches(&talk);
    for (number, (what, packets)) in breaches.iter().enumerate() {
        if number > 0 {
            bench.pause()?;
            talk = bench.session()?;
        }
        for (frames, data) in packets {
            let (_, packet) = talk.seal_bytes(frames, data);
            bench.send(&packet)?;
        }
        bench.violation(&mut talk, what)?;
    }
    Ok(())
}

fn one(what: impl Into<String>, frames: Vec<u8>) -> (String, Packets) {
    (what.into(), vec![(frames, Vec::new())])
}

fn frame(what: &str, frame: Frame<'_>) -> (String, Packets) {
    (what.to_owned(), vec![(encode(&[frame]), vec![7; frame.data_len()])])
}

pub(super) fn unknown_frame_types_are_violations(bench: &mut Bench<'_>) -> Outcome {
    each(bench, |_| {
        let mut types = vec![vec![0x07], vec![0x80, 0, 0x40, 0], vec![0xbf, 0xff, 0xff, 0xff], vec![0xff; 8]];
        types.extend((0x18..0x40).map(|kind| vec![kind]));
        types.into_iter().map(|kind| one(format!("§6.2: frame type {kind:02x?}"), kind)).collect()
    })
}

/// One frame of each kind, with fields of two bytes where they can have them.
fn samples() -> Vec<Frame<'static>> {
    let (stream, code, credit) = (100, 500, 600);
    vec![
        Frame::Close { code },
        Frame::CloseApp { code },
        Frame::Datagram { len: 300 },
        Frame::Stream { stream, offset: 1000, len: 300, fin: false },
        Frame::Stream { stream, offset: 1000, len: 300, fin: true },
        Frame::ResetStream { stream, code, final_size: 1000 },
        Frame::StopSending { stream, code },
        Frame::MaxStreamData { stream, credit },
        Frame::StreamHoles { stream, report: 100, offset: 1000, len: 300 },
        Frame::StreamBlocked { stream, credit },
        Frame::HolesTaken { stream, report: 100 },
        Frame::MaxStreamsBi { count: 100 },
        Frame::MaxStreamsUni { count: 100 },
        Frame::NewConnectionId { sequence: 100, retire_prior_to: 99, id: ConnectionId([9; 8]) },
        Frame::RetireConnectionId { sequence: 100 },
        Frame::KeyShare(KeyShare::x25519(100, &[7; 32])),
        Frame::Extension { kind: 0x1234, body: &[1; 100] },
    ]
}

pub(super) fn frames_that_are_cut_off_are_violations(bench: &mut Bench<'_>) -> Outcome {
    each(bench, |_| {
        let mut breaches = Vec::new();
        for sample in samples() {
            let whole = encode(&[sample]);
            // The body of an extension is all alike.
            for len in (1..whole.len()).filter(|len| *len < 20 || *len + 2 > whole.len()) {
                breaches.push(one(format!("§6.1: {sample:?} of {len} bytes"), whole[..len].to_vec()));
            }
        }
        let ack = ack_of(&[(0, 0)]);
        let ecn = [&[kind::ACK_ECN as u8], &ack[1..], &[1, 1, 1]].concat();
        for whole in [ack, ecn] {
            for len in 1..whole.len() {
                breaches.push(one(format!("§6.4: an ACK of {len} bytes"), whole[..len].to_vec()));
            }
        }
        breaches
    })
}

/// Frames by their type, the number of their varints, and the bytes behind these.
const LAYOUTS: [(u64, usize, usize); 17] = [
    (kind::ACK, 4, 0),
    (kind::ACK_ECN, 7, 0),
    (kind::CLOSE, 1, 0),
    (kind::CLOSE_APP, 1, 0),
    (kind::STREAM, 2, 2),
    (kind::STREAM_FIN, 2, 2),
    (kind::RESET_STREAM, 3, 0),
    (kind::STOP_SENDING, 2, 0),
    (kind::MAX_STREAM_DATA, 2, 0),
    (kind::STREAM_HOLES, 4, 0),
    (kind::STREAM_BLOCKED, 2, 0),
    (kind::HOLES_TAKEN, 2, 0),
    (kind::MAX_STREAMS_BI, 1, 0),
    (kind::MAX_STREAMS_UNI, 1, 0),
    (kind::NEW_CONNECTION_ID, 2, 8),
    (kind::RETIRE_CONNECTION_ID, 1, 0),
    (kind::EXTENSION_FIRST, 1, 0),
];

pub(super) fn varints_that_are_too_long_are_violations(bench: &mut Bench<'_>) -> Outcome {
    each(bench, |_| {
        let mut breaches = vec![
            one("§1.1: PING in two bytes", vec![0x40, 0x01]),
            one("§1.1: PADDING in two bytes", vec![0x40, 0x00]),
            one("§1.1: PING in eight bytes", vec![0xc0, 0, 0, 0, 0, 0, 0, 1]),
            one("§1.1: an extension's type in four bytes", vec![0x80, 0, 0x12, 0x34, 0]),
        ];
        for (kind, varints, rest) in LAYOUTS {
            for long in 0..varints {
                let mut bytes = if kind < 0x40 { vec![kind as u8] } else { vec![0x40, kind as u8] };
                for field in 0..varints {
                    bytes.extend(if field == long { &[0x40, 0][..] } else { &[0] });
                }
                bytes.extend(vec![0; rest]);
                breaches.push(one(format!("§1.1: field {long} of frame {kind:#x} in two bytes"), bytes));
            }
        }
        breaches
    })
}

pub(super) fn codes_and_ids_over_32_bits_are_violations(bench: &mut Bench<'_>) -> Outcome {
    // 2^32 in eight bytes.
    const LARGE: [u8; 8] = [0xc0, 0, 0, 1, 0, 0, 0, 0];
    let with = |kind: u64, fields: &[&[u8]]| [&[kind as u8][..], &fields.concat()].concat();
    each(bench, |talk| {
        let own = [talk.own_stream(false, 0) as u8];
        let codes = [
            ("a code of CLOSE", with(kind::CLOSE, &[&LARGE])),
            ("a code of CLOSE_APP", with(kind::CLOSE_APP, &[&LARGE])),
            ("a code of RESET_STREAM", with(kind::RESET_STREAM, &[&own, &LARGE, &[0]])),
            ("a code of STOP_SENDING", with(kind::STOP_SENDING, &[&own, &LARGE])),
            ("a stream id in STREAM", with(kind::STREAM, &[&LARGE, &[0], &[0, 0]])),
            ("a stream id in RESET_STREAM", with(kind::RESET_STREAM, &[&LARGE, &[0], &[0]])),
            ("a stream id in STOP_SENDING", with(kind::STOP_SENDING, &[&LARGE, &[0]])),
            ("a stream id in MAX_STREAM_DATA", with(kind::MAX_STREAM_DATA, &[&LARGE, &[0]])),
            ("a stream id in STREAM_HOLES", with(kind::STREAM_HOLES, &[&LARGE, &[1], &[0], &[0]])),
            ("a stream id in STREAM_BLOCKED", with(kind::STREAM_BLOCKED, &[&LARGE, &[0]])),
            ("a stream id in HOLES_TAKEN", with(kind::HOLES_TAKEN, &[&LARGE, &[0]])),
        ];
        codes.map(|(what, bytes)| one(format!("§6.3, §6.5: {what} of 2^32"), bytes)).into()
    })
}

pub(super) fn offsets_over_62_bits_are_violations(bench: &mut Bench<'_>) -> Outcome {
    const LAST: [u8; 8] = [0xff; 8];
    each(bench, |talk| {
        let own = talk.own_stream(false, 0) as u8;
        let stream = [&[kind::STREAM as u8, own][..], &LAST, &[0, 1]].concat();
        let holes = [&[kind::STREAM_HOLES as u8, own, 1][..], &LAST, &[1]].concat();
        vec![
            ("§6.5: a STREAM that ends at 2^62".to_owned(), vec![(stream, vec![7])]),
            (
                "§6.5: a STREAM_HOLES that ends at 2^62".to_owned(),
                vec![
                    (encode(&[Frame::Stream { stream: own.into(), offset: 0, len: 1, fin: false }]), vec![7]),
                    (holes, Vec::new()),
                ],
            ),
        ]
    })
}

pub(super) fn impossible_acks_are_violations(bench: &mut Bench<'_>) -> Outcome {
    each(bench, |talk| {
        let newest = talk.channel.received().last().copied().unwrap_or(0) as u8;
        let numbers = |fields: &[u8]| [&[kind::ACK as u8][..], fields].concat();
        let many = [&[0x40, 0xff, 0, 0x40, 64, 0][..], &[0; 128]].concat();
        vec![
            one("§6.4: an ACK of a number that was not sent", ack_of(&[(5000, 5000)])),
            one("§6.4: an ACK of all and one more", ack_of(&[(0, 5000)])),
            one("§6.4: an ACK of the largest number", ack_of(&[((1 << 62) - 1, (1 << 62) - 1)])),
            one("§6.4: a first range below 0", numbers(&[newest, 0, 0, newest + 1])),
            one("§6.4: a gap below 0", numbers(&[newest, 0, 1, 0, newest.saturating_sub(1).min(62) + 1, 0])),
            one("§6.4: a further range below 0", numbers(&[newest, 0, 1, 0, 0, newest])),
            one("§6.4: 64 further ranges", numbers(&many)),
        ]
    })
}

pub(super) fn ids_against_the_rules_are_violations(bench: &mut Bench<'_>) -> Outcome {
    let new = |sequence: u64, retire_prior_to: u64, byte: u8| {
        encode(&[Frame::NewConnectionId { sequence, retire_prior_to, id: ConnectionId([byte; 8]) }])
    };
    // `Frame` writes no such thing as a retire-prior-to above the sequence number is, so by hand.
    let above = [&[kind::NEW_CONNECTION_ID as u8, 1, 2][..], &[5; 8]].concat();
    each(bench, |_| {
        vec![
            one("§6.6: a fifth id", [new(1, 0, 1), new(2, 0, 2), new(3, 0, 3), new(4, 0, 4)].concat()),
            one("§6.6: a sequence number with another id", [new(1, 0, 1), new(1, 0, 2)].concat()),
            one("§6.6: an id with another sequence number", [new(1, 0, 1), new(2, 0, 1)].concat()),
            one("§6.6: a retire-prior-to above the sequence number", above),
            one(
                "§6.6: an id retired that was not given",
                encode(&[Frame::RetireConnectionId { sequence: 1000 }]),
            ),
        ]
    })
}

pub(super) fn authorized_of_an_initiator_is_a_violation(bench: &mut Bench<'_>) -> Outcome {
    each(bench, |_| vec![frame("§6.7: AUTHORIZED of an initiator", Frame::Authorized)])
}

pub(super) fn streams_beyond_the_limits_are_violations(bench: &mut Bench<'_>) -> Outcome {
    each(bench, |talk| {
        let theirs = talk.channel.theirs();
        let limit = |count: u64| u32::try_from(count).unwrap_or(u32::MAX).min((1 << 30) - 1);
        let data = |stream| Frame::Stream { stream, offset: 0, len: 3, fin: false };
        let beyond = [
            talk.own_stream(false, limit(theirs.streams_bi)),
            talk.own_stream(true, limit(theirs.streams_uni)),
        ];
        let (own, its) = (talk.own_stream(true, 0), talk.its_stream(true, 0));
        let unopened = talk.its_stream(false, 0);
        let credit = 5;
        vec![
            frame("§7.1: a bidirectional stream beyond the limit", data(beyond[0])),
            frame("§7.1: a unidirectional stream beyond the limit", data(beyond[1])),
            frame("§7.1: data on the other end's unidirectional stream", data(its)),
            frame("§7.1: a reset of it", Frame::ResetStream { stream: its, code: 0, final_size: 0 }),
            frame("§7.1: STREAM_BLOCKED on it", Frame::StreamBlocked { stream: its, credit }),
            frame("§7.1: HOLES_TAKEN on it", Frame::HolesTaken { stream: its, report: 1 }),
            frame("§7.1: data on a stream that was not opened", data(unopened)),
            frame("§7.1: credit for it", Frame::MaxStreamData { stream: unopened, credit }),
            frame("§7.1: STOP_SENDING for it", Frame::StopSending { stream: unopened, code: 0 }),
            frame(
                "§7.1: credit for a stream that only this end sends on",
                Frame::MaxStreamData { stream: own, credit },
            ),
            frame("§7.1: STOP_SENDING for it", Frame::StopSending { stream: own, code: 0 }),
            frame(
                "§7.1: STREAM_HOLES for it",
                Frame::StreamHoles { stream: own, report: 1, offset: 0, len: 0 },
            ),
        ]
    })
}

pub(super) fn data_beyond_the_credit_are_a_violation(bench: &mut Bench<'_>) -> Outcome {
    each(bench, |talk| {
        let (stream, credit) = (talk.own_stream(true, 0), talk.channel.theirs().stream_credit);
        let other = talk.own_stream(false, 0);
        vec![
            frame(
                "§7.2: a byte beyond the credit",
                Frame::Stream { stream, offset: credit, len: 1, fin: false },
            ),
            frame(
                "§7.2: bytes beyond the credit",
                Frame::Stream { stream: other, offset: credit - 5, len: 6, fin: true },
            ),
            frame(
                "§7.2: an end beyond the credit",
                Frame::Stream { stream: other, offset: credit + 1, len: 0, fin: true },
            ),
            frame(
                "§7.2: a reset beyond the credit",
                Frame::ResetStream { stream, code: 0, final_size: credit + 1 },
            ),
        ]
    })
}

pub(super) fn contradictory_final_sizes_are_violations(bench: &mut Bench<'_>) -> Outcome {
    each(bench, |talk| {
        let stream = talk.own_stream(true, 0);
        let data = |offset, len, fin| Frame::Stream { stream, offset, len, fin };
        let reset = |final_size| Frame::ResetStream { stream, code: 0, final_size };
        let two = |what: &str, frames: [Frame<'_>; 2]| {
            let packet = |frame: Frame<'_>| (encode(&[frame]), vec![7; frame.data_len()]);
            (format!("§7.3: {what}"), frames.map(packet).into())
        };
        vec![
            two("an end behind an end", [data(10, 10, true), data(0, 21, true)]),
            two("an end before an end", [data(10, 10, true), data(0, 19, true)]),
            two("data beyond the end", [data(10, 10, true), data(19, 2, false)]),
            two("an end below data", [data(0, 20, false), data(0, 19, true)]),
            two("a reset below data", [data(0, 20, false), reset(19)]),
            two("a reset behind the end", [data(10, 10, true), reset(21)]),
            two("a reset before the end", [data(10, 10, true), reset(19)]),
        ]
    })
}

pub(super) fn data_before_authorized_are_a_violation(bench: &mut Bench<'_>) -> Outcome {
    each(bench, |talk| {
        let stream = talk.own_stream(false, 0);
        vec![
            frame("§6.7: data before AUTHORIZED", Frame::Stream { stream, offset: 0, len: 3, fin: false }),
            frame("§6.7: an empty STREAM", Frame::Stream { stream, offset: 0, len: 0, fin: true }),
            frame("§6.7: a datagram", Frame::Datagram { len: 3 }),
            frame("§6.7: an empty datagram", Frame::Datagram { len: 0 }),
            frame("§6.7: a reset", Frame::ResetStream { stream, code: 0, final_size: 0 }),
            frame("§6.7: STOP_SENDING", Frame::StopSending { stream, code: 0 }),
            frame("§6.7: credit", Frame::MaxStreamData { stream, credit: 0 }),
            frame("§6.7: STREAM_BLOCKED", Frame::StreamBlocked { stream, credit: 0 }),
            frame("§6.7: STREAM_HOLES", Frame::StreamHoles { stream, report: 1, offset: 0, len: 0 }),
            frame("§6.7: HOLES_TAKEN", Frame::HolesTaken { stream, report: 1 }),
        ]
    })
}

pub(super) fn an_ack_of_a_skipped_number_is_a_violation(bench: &mut Bench<'_>) -> Outcome {
    const MOST: u32 = 3000;
    let mut talk = bench.session()?;
    for round in 0..MOST {
        let (_, packet) = talk.seal(&[Frame::Datagram { len: 4 }], &round.to_be_bytes());
        bench.send(&packet)?;
        bench.hear(&mut talk, bench.patience)?;
        bench.alive(&mut talk)?;
        let received = talk.channel.received();
        let oldest = received.first().copied().unwrap_or(0);
        let gap =
            received.iter().rev().find(|number| **number > oldest && !received.contains(&(*number - 1)));
        // What is missing at the end may be on its way.
        let skipped =
            gap.map(|number| number - 1).filter(|gap| received.iter().any(|number| *number > gap + 3));
        if let Some(skipped) = skipped {
            let (_, packet) = talk.seal_bytes(&ack_of(&[(skipped, skipped)]), &[]);
            bench.send(&packet)?;
            return bench.violation(&mut talk, &format!("§8.7: an ACK of the skipped number {skipped}"));
        }
    }
    Err(crate::case::Verdict::NotClaimed(format!("it skips no number in {MOST} round trips")))
}
