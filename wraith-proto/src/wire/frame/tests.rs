use super::*;
use crate::wire::{AckRepr, EcnCounts};
use proptest::prelude::*;
use std::{boxed::Box, format, vec, vec::Vec};

const MAX: u64 = varint::MAX;

fn emit(frame: &Frame<'_>) -> Vec<u8> {
    let mut buf = vec![0xaa; frame.encoded_len()];
    let mut w = Writer::new(&mut buf);
    frame.emit(&mut w).unwrap();
    assert_eq!(w.remaining(), 0, "encoded_len is exact");
    buf
}

fn parse(bytes: &[u8]) -> Result<Frame<'_>, FrameError> {
    let mut reader = Reader::new(bytes);
    let frame = Frame::parse(&mut reader)?;
    assert!(reader.is_empty());
    Ok(frame)
}

/// `PROTO §6.1`: types and fields of the table.
#[test]
fn known_frames_have_these_bytes() {
    let cases: [(Frame<'_>, &[u8]); 24] = [
        (Frame::Padding { len: 3 }, &[0, 0, 0]),
        (Frame::Ping, &[0x01]),
        (Frame::Close { code: 7 }, &[0x04, 7]),
        (Frame::CloseApp { code: 70 }, &[0x05, 0x40, 70]),
        (Frame::Datagram { len: 0x0102 }, &[0x06, 1, 2]),
        (Frame::Stream { stream: 4, offset: 15_293, len: 9, fin: false }, &[0x08, 4, 0x7b, 0xbd, 0, 9]),
        (Frame::Stream { stream: 4, offset: 0, len: 0, fin: true }, &[0x09, 4, 0, 0, 0]),
        (Frame::ResetStream { stream: 1, code: 2, final_size: 3 }, &[0x0a, 1, 2, 3]),
        (Frame::StopSending { stream: 1, code: 2 }, &[0x0b, 1, 2]),
        (Frame::MaxStreamData { stream: 1, credit: 2 }, &[0x0c, 1, 2]),
        (Frame::StreamBlocked { stream: 1, credit: 2 }, &[0x0e, 1, 2]),
        (Frame::HolesTaken { stream: 1, report: 2 }, &[0x0f, 1, 2]),
        (Frame::MaxStreamsBi { count: 5 }, &[0x10, 5]),
        (Frame::MaxStreamsUni { count: 5 }, &[0x11, 5]),
        (
            Frame::NewConnectionId { sequence: 2, retire_prior_to: 1, id: ConnectionId([9; 8]) },
            &[0x12, 2, 1, 9, 9, 9, 9, 9, 9, 9, 9],
        ),
        (Frame::RetireConnectionId { sequence: 2 }, &[0x13, 2]),
        (Frame::Authorized, &[0x14]),
        (Frame::PathChallenge { token: [7; 8] }, &[0x16, 7, 7, 7, 7, 7, 7, 7, 7]),
        (Frame::PathResponse { token: *b"response" }, b"\x17response"),
        (Frame::Extension { kind: 0x40, body: b"ab" }, &[0x40, 0x40, 2, b'a', b'b']),
        (Frame::Extension { kind: 0x3fff, body: b"" }, &[0x7f, 0xff, 0]),
        (parse(&[0x02, 5, 0, 0, 5]).unwrap(), &[0x02, 5, 0, 0, 5]),
        (parse(&[0x03, 5, 0, 0, 5, 1, 2, 3]).unwrap(), &[0x03, 5, 0, 0, 5, 1, 2, 3]),
        (parse(&[0x0d, 5, 1, 9, 1]).unwrap(), &[0x0d, 5, 1, 9, 1]),
    ];
    for (frame, bytes) in cases {
        assert_eq!(emit(&frame), bytes, "{frame:?}");
        assert_eq!(parse(bytes), Ok(frame));
    }
}

/// `PROTO §6.1 and §6.2`: all but ACK, `ACK_ECN`, CLOSE, `CLOSE_APP` and PADDING ask for an acknowledgement.
#[test]
fn five_types_ask_for_no_acknowledgement() {
    for bytes in [&[0][..], &[2, 0, 0, 0, 0], &[3, 0, 0, 0, 0, 0, 0, 0], &[4, 0], &[5, 0]] {
        assert!(!parse(bytes).unwrap().is_ack_eliciting());
    }
    for bytes in [&[1][..], &[6, 0, 0], &[8, 0, 0, 0, 0], &[0x14], &[0x40, 0x40, 0], &[0x13, 0]] {
        assert!(parse(bytes).unwrap().is_ack_eliciting());
    }
}

#[test]
fn only_stream_and_datagram_have_data() {
    assert_eq!(Frame::Datagram { len: 9 }.data_len(), 9);
    assert_eq!(Frame::Stream { stream: 0, offset: 0, len: u16::MAX, fin: true }.data_len(), 65_535);
    assert_eq!(Frame::Extension { kind: 0x40, body: b"abc" }.data_len(), 0);
    assert_eq!(Frame::Padding { len: 9 }.data_len(), 0);
}

/// `PROTO §6.2`: unknown types of the extension range MUST be ignored, so they are read; any other
/// unknown type is a violation.
#[test]
fn unknown_types_outside_the_extension_range_are_errors() {
    for kind in [0x07, 0x18, 0x3f, 0x4000, MAX] {
        let mut buf = [0; 16];
        varint::write(kind, &mut buf).unwrap();
        assert_eq!(Frame::parse(&mut Reader::new(&buf)), Err(FrameError::UnknownType(kind)));
    }
    assert_eq!(parse(&[0x5b, 0x07, 1, 9]), Ok(Frame::Extension { kind: 0x1b07, body: &[9] }));
    assert_eq!(parse(&[0x40, 0x40, 0x80, 1, 0, 0, 0]), Err(FrameError::Malformed));
    assert_eq!(format!("{}", FrameError::UnknownType(0x3f)), "unknown frame type 0x3f");
}

/// `PROTO §1.1` holds for frame types, too.
#[test]
fn a_type_longer_than_needed_is_malformed() {
    assert_eq!(Frame::parse(&mut Reader::new(&[0x40, 0x01])), Err(FrameError::Malformed));
}

/// `PROTO §6.3`, `§6.5`: codes and stream ids are below 2^32.
#[test]
fn codes_and_stream_ids_of_2_to_the_32_are_malformed() {
    const LAST: [u8; 8] = [0xc0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff];
    const OVER: [u8; 8] = [0xc0, 0, 0, 1, 0, 0, 0, 0];
    let cases: [(&[u8], &[u8]); 11] = [
        (&[4], &[]),
        (&[5], &[]),
        (&[8], &[0, 0, 0]),
        (&[9], &[0, 0, 0]),
        (&[0x0a], &[0, 0]),
        (&[0x0a, 0], &[0]),
        (&[0x0b], &[0]),
        (&[0x0b, 0], &[]),
        (&[0x0c], &[0]),
        (&[0x0d], &[1, 0, 1]),
        (&[0x0e], &[0]),
    ];
    for (before, behind) in cases {
        let last = [before, &LAST, behind].concat();
        assert_eq!(emit(&parse(&last).unwrap()), last);
        assert_eq!(parse(&[before, &OVER, behind].concat()), Err(FrameError::Malformed));
    }
}

#[test]
fn stream_bytes_past_the_largest_offset_are_malformed() {
    let frame = Frame::Stream { stream: 0, offset: MAX - 5, len: 5, fin: true };
    let mut bytes = emit(&frame);
    assert_eq!(parse(&bytes), Ok(frame));
    *bytes.last_mut().unwrap() = 6;
    assert_eq!(parse(&bytes), Err(FrameError::Malformed));
    let over = Frame::Stream { stream: 0, offset: MAX - 5, len: 6, fin: true };
    assert_eq!(over.emit(&mut Writer::new(&mut [0; 32])), Err(Full));
}

#[test]
fn retire_prior_to_beyond_the_sequence_number_is_malformed() {
    let mut bytes = [0x12, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0];
    assert!(parse(&bytes).is_ok());
    bytes[2] = 4;
    assert_eq!(parse(&bytes), Err(FrameError::Malformed));
}

#[test]
fn a_frame_that_does_not_fit_leaves_the_writer_as_it_was() {
    let mut buf = [0; 64];
    let mut w = Writer::new(&mut buf);
    w.u8(1).unwrap();
    for frame in [
        Frame::MaxStreamsBi { count: MAX + 1 },
        Frame::Extension { kind: 0x3f, body: b"" },
        Frame::Extension { kind: 0x4000, body: b"" },
        Frame::Extension { kind: 0x40, body: &[0; 64] },
        Frame::Padding { len: 64 },
    ] {
        assert_eq!(frame.emit(&mut w), Err(Full), "{frame:?}");
        assert_eq!(w.written(), [1]);
    }
}

#[test]
fn frames_come_in_order_and_end_at_the_first_error() {
    let region = [0x01, 0, 0, 0, 0x10, 9, 0x3f, 0x01];
    let frames: Vec<_> = Frames::new(&region).collect();
    assert_eq!(
        frames,
        [
            Ok(Frame::Ping),
            Ok(Frame::Padding { len: 3 }),
            Ok(Frame::MaxStreamsBi { count: 9 }),
            Err(FrameError::UnknownType(0x3f)),
        ]
    );
    assert_eq!(Frames::new(&[]).next(), None);
}

#[test]
fn a_run_of_padding_longer_than_a_u16_is_read_as_several() {
    let region = vec![0; 65_535 + 2];
    let frames: Vec<_> = Frames::new(&region).collect();
    assert_eq!(frames, [Ok(Frame::Padding { len: u16::MAX }), Ok(Frame::Padding { len: 2 })]);
}

/// Frames are passed by value on the hot path; ACK with its counters is the largest.
#[test]
fn a_frame_is_at_most_80_bytes() {
    assert!(size_of::<Frame<'_>>() <= 80, "{}", size_of::<Frame<'_>>());
}

/// Numbers of every encoded length, small ones as often as large ones.
fn number() -> impl Strategy<Value = u64> {
    (0u32..=62, any::<u64>()).prop_map(|(bits, raw)| raw & ((1 << bits) - 1))
}

fn leak(bytes: Vec<u8>) -> &'static [u8] {
    Box::leak(bytes.into_boxed_slice())
}

fn any_frame() -> impl Strategy<Value = Frame<'static>> {
    let stream = any::<u32>;
    let code = any::<u32>;
    prop_oneof![
        (1..400u16).prop_map(|len| Frame::Padding { len }),
        Just(Frame::Ping),
        Just(Frame::Authorized),
        (0u64..1 << 40, 0u64..1 << 20, number(), proptest::option::of(number())).prop_map(ack),
        code().prop_map(|code| Frame::Close { code }),
        code().prop_map(|code| Frame::CloseApp { code }),
        any::<u16>().prop_map(|len| Frame::Datagram { len }),
        (stream(), number(), any::<u16>(), any::<bool>()).prop_map(|(stream, offset, len, fin)| {
            Frame::Stream { stream, offset: offset.min(MAX - u64::from(len)), len, fin }
        }),
        (stream(), code(), number()).prop_map(|(stream, code, final_size)| Frame::ResetStream {
            stream,
            code,
            final_size
        }),
        (stream(), code()).prop_map(|(stream, code)| Frame::StopSending { stream, code }),
        (stream(), number()).prop_map(|(stream, credit)| Frame::MaxStreamData { stream, credit }),
        (stream(), number()).prop_map(|(stream, credit)| Frame::StreamBlocked { stream, credit }),
        (stream(), number()).prop_map(|(stream, report)| Frame::HolesTaken { stream, report }),
        (stream(), 0u64..1 << 50, 1u64..1 << 50).prop_map(|(stream, offset, len)| Frame::StreamHoles {
            stream,
            report: len % 9,
            offset,
            len
        }),
        number().prop_map(|count| Frame::MaxStreamsBi { count }),
        number().prop_map(|count| Frame::MaxStreamsUni { count }),
        (number(), number(), any::<[u8; 8]>()).prop_map(|(a, b, id)| Frame::NewConnectionId {
            sequence: a.max(b),
            retire_prior_to: a.min(b),
            id: ConnectionId(id)
        }),
        number().prop_map(|sequence| Frame::RetireConnectionId { sequence }),
        any::<[u8; 8]>().prop_map(|token| Frame::PathChallenge { token }),
        any::<[u8; 8]>().prop_map(|token| Frame::PathResponse { token }),
        (0x40u16..=0x3fff, proptest::collection::vec(any::<u8>(), 0..80))
            .prop_map(|(kind, body)| Frame::Extension { kind, body: leak(body) }),
    ]
}

fn ack((low, size, delay_micros, ect0): (u64, u64, u64, Option<u64>)) -> Frame<'static> {
    let mut buf = vec![0; 100];
    let mut w = Writer::new(&mut buf);
    let ranges = [(low + 10, low + 10 + size), (low, low + 8)];
    let ecn = ect0.map(|ect0| EcnCounts { ect0, ect1: 0, ce: 1 });
    AckRepr { ranges, delay_micros, ecn }.emit(&mut w).unwrap();
    parse(leak(w.written().to_vec())).unwrap()
}

proptest! {
    #[test]
    fn every_frame_comes_back_and_every_truncation_is_malformed(frame in any_frame()) {
        let bytes = emit(&frame);
        prop_assert_eq!(parse(&bytes), Ok(frame));
        for len in 0..bytes.len() {
            prop_assert_eq!(frame.emit(&mut Writer::new(&mut vec![0; len])), Err(Full));
            if matches!(frame, Frame::Padding { .. }) && len > 0 {
                continue; // Less padding is padding.
            }
            prop_assert_eq!(Frame::parse(&mut Reader::new(&bytes[..len])), Err(FrameError::Malformed));
        }
    }

    #[test]
    fn a_region_comes_back_frame_by_frame(frames in proptest::collection::vec(any_frame(), 0..12)) {
        let frames: Vec<_> = frames.into_iter().filter(|f| !matches!(f, Frame::Padding { .. })).collect();
        let region: Vec<u8> = frames.iter().flat_map(emit).collect();
        prop_assert_eq!(Frames::new(&region).collect::<Result<Vec<_>, _>>(), Ok(frames));
    }

    #[test]
    fn arbitrary_regions_are_read_as_they_would_be_written(
        region in proptest::collection::vec(prop_oneof![0u8..0x18, any::<u8>()], 0..64),
    ) {
        let mut read = Vec::new();
        for frame in Frames::new(&region).map_while(Result::ok) {
            read.extend(emit(&frame));
        }
        prop_assert!(region.starts_with(&read));
    }
}
