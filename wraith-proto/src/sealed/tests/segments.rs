//! Messages of several segments, altered in every way.

use super::*;

const SEALED: usize = SEGMENT_HEADER_LEN + SEGMENT_LEN + TAG_LEN;

/// Head and sealed segments of a message.
fn parts(message: &[u8]) -> (Vec<u8>, Vec<Vec<u8>>) {
    let (head, rest) = message.split_at(HEAD_LEN);
    (head.to_vec(), rest.chunks(SEALED).map(<[u8]>::to_vec).collect())
}

fn header(segment: &[u8]) -> [u8; 4] {
    *segment.first_chunk().unwrap()
}

/// What comes out piece by piece, as of a pipe: the bytes before the first error, and how it ended.
fn pieces(message: &[u8]) -> (Vec<u8>, Result<Opened, OpenError>) {
    let mut out = Vec::new();
    let outcome = (|| {
        let (head, mut rest) = message.split_first_chunk().ok_or(OpenError::Truncated)?;
        let mut stream = mailbox(2).open_head(head)?;
        while let Some((header, behind)) = rest.split_first_chunk() {
            let (sealed, behind) =
                behind.split_at_checked(stream.expects(*header)?).ok_or(OpenError::Truncated)?;
            out.extend_from_slice(stream.segment(*header, &mut sealed.to_vec())?);
            rest = behind;
        }
        if rest.is_empty() { stream.end() } else { Err(OpenError::Truncated) }
    })();
    (out, outcome)
}

/// `PROTO §12.8`: what was handed out is always the beginning of the body, whole segments of it.
#[test]
fn an_altered_byte_ends_the_body_before_its_segment() {
    let body = bytes(2 * SEGMENT_LEN + 100);
    for sign in [false, true] {
        let good = message(sign, &body);
        assert!(pieces(&good) == (body.clone(), Ok(opened(1, sign))));
        let edges = [HEAD_LEN, HEAD_LEN + SEALED, HEAD_LEN + 2 * SEALED, good.len()];
        let near_an_edge = |at: usize| edges.iter().any(|edge| at.abs_diff(*edge) <= 24);
        // Inside of a segment one byte is like another; the long form takes more of them.
        let step = if full() { 97 } else { 4001 };
        for at in (0..good.len()).filter(|at| *at < HEAD_LEN || near_an_edge(*at) || at % step == 0) {
            let mut bad = good.clone();
            bad[at] ^= 1 << (at % 8);
            let (out, outcome) = pieces(&bad);
            let whole = at.saturating_sub(HEAD_LEN) / SEALED;
            assert!(out == body[..whole * SEGMENT_LEN], "{at}");
            assert!(outcome.is_err(), "{at}");
            assert_eq!(open(2, &bad).1, [], "{at}");
        }
    }
}

/// Every byte of a segment counts, header and tag too.
#[test]
fn every_byte_of_a_segment_is_authenticated() {
    let good = message(false, &bytes(SEGMENT_LEN + 1));
    let mut stream = mailbox(2).open_head(good[..HEAD_LEN].try_into().unwrap()).unwrap();
    let (_, segments) = parts(&good);
    let step = if full() { 1 } else { 31 };
    for at in (4..segments[0].len()).step_by(step) {
        let mut bad = segments[0].clone();
        bad[at] ^= 0x10;
        assert_eq!(stream.segment(header(&bad), &mut bad[4..]), Err(OpenError::Segment), "{at}");
    }
    // Failures change nothing: the genuine one still opens, and then the next.
    for segment in segments {
        stream.segment(header(&segment), &mut segment[4..].to_vec()).unwrap();
    }
    assert_eq!(stream.end(), Ok(opened(1, false)));
}

/// `PROTO §12.7`
#[test]
fn a_message_that_is_cut_anywhere_fails() {
    let body = bytes(2 * SEGMENT_LEN);
    for sign in [false, true] {
        let good = message(sign, &body);
        let edges = [0, 8, HEAD_LEN, HEAD_LEN + SEALED, good.len()];
        for len in
            edges.iter().flat_map(|edge| edge.saturating_sub(20)..edge + 21).filter(|len| *len < good.len())
        {
            let (out, outcome) = pieces(&good[..len]);
            assert_eq!(outcome, Err(OpenError::Truncated), "{len}");
            // The second one is the last, which may be longer than others.
            let whole = (len.saturating_sub(HEAD_LEN) / SEALED).min(1);
            assert!(out == body[..whole * SEGMENT_LEN], "{len}");
            let (outcome, out) = open(2, &good[..len]);
            let expected = if len < 8 { OpenError::NotSealed } else { OpenError::Truncated };
            assert_eq!((outcome, out), (Err(expected), vec![]), "{len}");
        }
    }
}

/// `PROTO §12.7`
#[test]
fn what_stands_behind_the_last_segment_is_refused() {
    let good = message(false, b"hello");
    for more in [&[0; 4][..], &good, &good[HEAD_LEN..]] {
        let long = [&good[..], more].concat();
        assert_eq!(pieces(&long), (b"hello".to_vec(), Err(OpenError::Trailing)));
        assert_eq!(open(2, &long), (Err(OpenError::Trailing), vec![]));
    }
    assert_eq!(open(2, &[&good[..], &[0]].concat()), (Err(OpenError::Truncated), vec![]));
}

/// `PROTO §12.8`
#[test]
fn segments_stand_where_their_sender_put_them() {
    let body = bytes(3 * SEGMENT_LEN + 5);
    let good = message(false, &body);
    let (head, s) = parts(&good);
    let rest: Vec<u8> = mailbox_message(1, 2, &body, [8; 32]);
    let (other_head, o) = parts(&rest);
    let glued = |head: &[u8], segments: &[&Vec<u8>]| {
        segments.iter().fold(head.to_vec(), |message, segment| [&message[..], segment].concat())
    };
    assert!(pieces(&glued(&head, &[&s[0], &s[1], &s[2], &s[3]])) == (body.clone(), Ok(opened(1, false))));
    for (segments, whole) in [
        ([&s[1], &s[0], &s[2], &s[3]].as_slice(), 0),
        (&[&s[0], &s[2], &s[1], &s[3]], 1),
        (&[&s[0], &s[2], &s[3]], 1),
        (&[&s[0], &s[0], &s[1], &s[2], &s[3]], 1),
        (&[&s[0], &s[1], &s[3]], 2),
        (&[&s[3]], 0),
        // Of two messages between the same two peers, each with its own ephemeral key.
        (&[&s[0], &o[1], &s[2], &s[3]], 1),
        (&[&s[0], &s[1], &s[2], &o[3]], 3),
        (&[&o[0], &o[1], &o[2], &o[3]], 0),
    ] {
        let (out, outcome) = pieces(&glued(&head, segments));
        assert_eq!(outcome, Err(OpenError::Segment));
        assert!(out == body[..whole * SEGMENT_LEN]);
    }
    assert_eq!(pieces(&glued(&other_head, &[&s[0]])).1, Err(OpenError::Segment));
}

fn mailbox_message(from: u8, to: u8, body: &[u8], randomness: [u8; 32]) -> Vec<u8> {
    let mut out = Vec::new();
    mailbox(from).seal(&letter(to, false), &randomness, body, &mut out).unwrap();
    out
}

/// `PROTO §12.7 and §12.8`: neither a last one as another, nor another as the last.
#[test]
fn the_last_segment_is_told_by_its_seal() {
    let good = message(false, &bytes(2 * SEGMENT_LEN));
    let (head, mut segments) = parts(&good);
    segments[0][0] ^= 0x80;
    assert_eq!(pieces(&[&head[..], &segments[0]].concat()), (vec![], Err(OpenError::Segment)));
    segments[0][0] ^= 0x80;
    segments[1][0] ^= 0x80;
    let message = [&head[..], &segments[0], &segments[1]].concat();
    assert!(pieces(&message) == (bytes(SEGMENT_LEN), Err(OpenError::Segment)));
}

/// `PROTO §12.7`
#[test]
fn a_segment_has_no_other_length() {
    let good = message(true, b"hello");
    let stream = mailbox(2).open_head(good[..HEAD_LEN].try_into().unwrap()).unwrap();
    for (header, len) in [(65_536, 65_552), (0x8000_0000, 80), (0x8000_0005, 85), (0x8001_0000, 65_616)] {
        assert_eq!(stream.expects(u32::to_be_bytes(header)), Ok(len), "{header:x}");
    }
    for header in [0, 1, 65_535, 65_537, 0x8001_0001, 0xffff_ffff, 0x4001_0000, 0x0002_0000] {
        assert_eq!(stream.expects(u32::to_be_bytes(header)), Err(OpenError::Malformed), "{header:x}");
    }
    let mut stream = stream;
    assert_eq!(stream.segment([0x80, 0, 0, 5], &mut [0; 84]), Err(OpenError::Malformed));
}

/// `PROTO §12.6`
#[test]
fn another_beginning_is_no_message_of_this_format() {
    let good = message(false, b"hello");
    for at in 0..7 {
        let mut bad = good.clone();
        bad[at] ^= 0x20;
        assert_eq!(open(2, &bad).0, Err(OpenError::NotSealed));
    }
    for version in [0, 2, 0xff] {
        let mut bad = good.clone();
        bad[7] = version;
        assert_eq!(open(2, &bad).0, Err(OpenError::Version));
    }
}

#[test]
fn a_sender_seals_full_segments_and_one_last() {
    let mut head = [0; HEAD_LEN];
    let mut one = mailbox(1);
    let mut out = vec![0; MAX_SEALED_SEGMENT];
    let mut begin = || one.begin(&letter(2, true), &RANDOM, &[], &mut head).unwrap();
    let mut stream = begin();
    for len in [0, 1, SEGMENT_LEN - 1, SEGMENT_LEN + 1] {
        assert_eq!(stream.segment(&bytes(len), &mut out), Err(SealError::Length));
    }
    assert_eq!(stream.segment(&bytes(SEGMENT_LEN), &mut out[..SEALED - 1]), Err(SealError::Room));
    assert_eq!(begin().last(&bytes(SEGMENT_LEN + 1), &mut out), Err(SealError::Length));
    assert_eq!(begin().last(b"hello", &mut out[..88]), Err(SealError::Room));
    assert_eq!(begin().last(b"hello", &mut out[..89]), Ok(89));
    assert_eq!(begin().last(&bytes(SEGMENT_LEN), &mut out), Ok(MAX_SEALED_SEGMENT));
}

/// A sender that finds the end late.
#[test]
fn the_last_segment_may_be_empty() {
    let mut message = vec![0; HEAD_LEN];
    let mut out = vec![0; MAX_SEALED_SEGMENT];
    let first = bytes(SEGMENT_LEN);
    let head = message.first_chunk_mut().unwrap();
    let mut stream = mailbox(1).begin(&letter(2, true), &RANDOM, &first, head).unwrap();
    let len = stream.segment(&first, &mut out).unwrap();
    message.extend_from_slice(&out[..len]);
    let len = stream.last(&[], &mut out).unwrap();
    message.extend_from_slice(&out[..len]);
    assert!(pieces(&message) == (first, Ok(opened(1, true))));
}

#[test]
fn a_message_takes_no_more_room_than_it_has_bytes() {
    for sign in [false, true] {
        for len in [0, 5, 65_536, 65_537, 200_000] {
            let sealed = message(sign, &bytes(len));
            assert_eq!(sealed.capacity(), sealed.len(), "{len}");
        }
    }
}
