//! The fields of `STREAM_HOLES`: what of a stream was received but could not be kept (`PROTO §6.1`).

use core::ops::Range;

use super::{Full, Malformed, Reader, Writer, frame::kind, varint};

/// Most ranges in one frame (`PROTO §6.1`).
pub const MAX_HOLES: usize = 32;

/// A checked list of holes: at least one, none empty, in order, none past 2^62 − 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Holes<'a> {
    stream: u32,
    count: u8,
    ranges: &'a [u8],
}

impl<'a> Holes<'a> {
    /// Reads the fields behind the type.
    pub(super) fn parse(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let stream = reader.varint32()?;
        let count = reader.varint()?;
        if !(1..=MAX_HOLES as u64).contains(&count) {
            return Err(Malformed);
        }
        let from = reader.rest();
        let mut end = 0;
        for _ in 0..count {
            let hole = next_hole(end, reader)?;
            if hole.is_empty() || hole.end > varint::MAX {
                return Err(Malformed);
            }
            end = hole.end;
        }
        let ranges = &from[..from.len() - reader.rest().len()];
        Ok(Self { stream, count: count as u8, ranges })
    }

    /// The stream whose bytes are missing.
    #[inline]
    pub const fn stream(&self) -> u32 {
        self.stream
    }

    /// The missing ranges of stream offsets, lowest first.
    #[inline]
    pub const fn ranges(&self) -> HoleRanges<'a> {
        HoleRanges { fields: Reader::new(self.ranges), end: 0, left: self.count }
    }

    /// Writes the frame with its type.
    pub(super) fn emit(&self, w: &mut Writer<'_>) -> Result<(), Full> {
        w.u8(kind::STREAM_HOLES as u8)?;
        w.varint(u64::from(self.stream))?;
        w.u8(self.count)?;
        w.bytes(self.ranges)
    }

    /// Bytes of the frame with its type.
    pub(super) const fn encoded_len(&self) -> usize {
        2 + varint::size(self.stream as u64) + self.ranges.len()
    }
}

/// The ranges of [`Holes`], lowest first.
#[derive(Clone, Debug)]
pub struct HoleRanges<'a> {
    fields: Reader<'a>,
    end: u64,
    left: u8,
}

impl Iterator for HoleRanges<'_> {
    type Item = Range<u64>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let hole = next_hole(self.end, &mut self.fields).ok()?;
        self.end = hole.end;
        Some(hole)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::from(self.left), Some(usize::from(self.left)))
    }
}

impl ExactSizeIterator for HoleRanges<'_> {}

/// A `STREAM_HOLES` frame to be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HolesRepr<I> {
    /// The stream whose bytes are missing.
    pub stream: u32,
    /// Missing ranges of stream offsets, lowest first, none empty, none overlapping.
    pub ranges: I,
}

impl<I: IntoIterator<Item = Range<u64>>> HolesRepr<I> {
    /// Writes the frame with its type and as many ranges as fit, lowest first, at most [`MAX_HOLES`];
    /// returns how many. No ranges write nothing. A range that is empty or begins before the end of
    /// its predecessor ends the list.
    ///
    /// # Errors
    /// [`Full`] if not even the first range fits or is valid; then nothing is written.
    pub fn emit(self, w: &mut Writer<'_>) -> Result<usize, Full> {
        let mut ranges = self.ranges.into_iter().take(MAX_HOLES).peekable();
        if ranges.peek().is_none() {
            return Ok(0);
        }
        w.all_or_nothing(|w| {
            w.u8(kind::STREAM_HOLES as u8)?;
            w.varint(u64::from(self.stream))?;
            // A count up to 32 is one byte, so it can be filled in later.
            let count_at = w.len();
            w.u8(0)?;
            let mut count = 0u8;
            let mut end = 0;
            for hole in ranges {
                let Some(gap) = hole.start.checked_sub(end) else { break };
                let valid = !hole.is_empty() && hole.end <= varint::MAX;
                if !valid || w.all_or_nothing(|w| emit_hole(gap, &hole, w)).is_err() {
                    break;
                }
                end = hole.end;
                count += 1;
            }
            w.patch(count_at, count);
            if count == 0 { Err(Full) } else { Ok(usize::from(count)) }
        })
    }
}

fn emit_hole(gap: u64, hole: &Range<u64>, w: &mut Writer<'_>) -> Result<(), Full> {
    w.varint(gap)?;
    w.varint(hole.end - hole.start)
}

/// Reads the hole that begins a gap behind `end`, which is at most 2^62 − 1.
#[inline]
fn next_hole(end: u64, reader: &mut Reader<'_>) -> Result<Range<u64>, Malformed> {
    // Three numbers below 2^62: no addition overflows.
    let start = end + reader.varint()?;
    Ok(start..start + reader.varint()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::{vec, vec::Vec};

    fn parse(bytes: &[u8]) -> Result<Holes<'_>, Malformed> {
        let mut reader = Reader::new(bytes);
        let holes = Holes::parse(&mut reader)?;
        if reader.is_empty() { Ok(holes) } else { Err(Malformed) }
    }

    #[test]
    fn a_known_frame_has_these_bytes() {
        let mut buf = [0; 16];
        let mut w = Writer::new(&mut buf);
        assert_eq!(HolesRepr { stream: 4, ranges: [10..15, 20..21] }.emit(&mut w), Ok(2));
        assert_eq!(w.written(), [0x0d, 4, 2, 10, 5, 5, 1]);
        let holes = parse(&w.written()[1..]).unwrap();
        assert_eq!(holes.stream(), 4);
        assert_eq!(holes.ranges().collect::<Vec<_>>(), [10..15, 20..21]);
        assert_eq!(holes.ranges().len(), 2);
    }

    #[test]
    fn a_count_outside_1_to_32_is_malformed() {
        assert_eq!(parse(&[0, 0]), Err(Malformed));
        let mut frame = vec![0, 32];
        frame.extend([1; 64]);
        assert_eq!(parse(&frame).unwrap().ranges().len(), 32);
        frame[1] = 33;
        frame.extend([1; 2]);
        assert_eq!(parse(&frame), Err(Malformed));
    }

    #[test]
    fn an_empty_hole_or_one_past_the_largest_offset_is_malformed() {
        assert_eq!(parse(&[0, 1, 5, 0]), Err(Malformed));
        for (start, len, ok) in [(varint::MAX - 1, 1, true), (varint::MAX, 1, false)] {
            let mut buf = [0; 32];
            let mut w = Writer::new(&mut buf);
            w.bytes(&[0, 1]).unwrap();
            w.varint(start).unwrap();
            w.varint(len).unwrap();
            assert_eq!(parse(w.written()).is_ok(), ok);
            let mut buf = [0; 32];
            let emitted = HolesRepr { stream: 0, ranges: std::iter::once(start..start + len) }
                .emit(&mut Writer::new(&mut buf));
            assert_eq!(emitted, if ok { Ok(1) } else { Err(Full) });
        }
    }

    #[test]
    fn what_does_not_fit_or_is_out_of_order_ends_the_list() {
        let mut buf = [0; 6];
        let mut w = Writer::new(&mut buf);
        assert_eq!(HolesRepr { stream: 0, ranges: [1..2, 100..200] }.emit(&mut w), Ok(1));
        assert_eq!(w.written(), [0x0d, 0, 1, 1, 1]);
        let mut buf = [0; 64];
        let mut w = Writer::new(&mut buf);
        assert_eq!(HolesRepr { stream: 0, ranges: [5..6, 3..4] }.emit(&mut w), Ok(1));
        let mut w = Writer::new(&mut buf);
        assert_eq!(HolesRepr { stream: 0, ranges: [] }.emit(&mut w), Ok(0));
        assert_eq!(HolesRepr { stream: 0, ranges: [Range { start: 7, end: 7 }] }.emit(&mut w), Err(Full));
        assert_eq!(w.len(), 0);
        let mut buf = [0; 128];
        let many = (0..40).map(|i| i * 2..i * 2 + 1);
        assert_eq!(HolesRepr { stream: 0, ranges: many }.emit(&mut Writer::new(&mut buf)), Ok(32));
    }

    proptest! {
        #[test]
        fn holes_come_back_and_every_truncation_is_malformed(
            stream in any::<u32>(),
            steps in proptest::collection::vec((0u64..1 << 40, 1u64..1 << 40), 1..=32),
        ) {
            let mut end = 0;
            let ranges: Vec<_> = steps.iter().map(|(gap, len)| {
                let start = end + gap;
                end = start + len;
                start..end
            }).collect();
            let mut buf = [0; 1024];
            let mut w = Writer::new(&mut buf);
            prop_assert_eq!(HolesRepr { stream, ranges: ranges.iter().cloned() }.emit(&mut w), Ok(ranges.len()));
            let bytes = &w.written()[1..];
            let holes = parse(bytes).unwrap();
            prop_assert_eq!(holes.stream(), stream);
            prop_assert_eq!(holes.ranges().collect::<Vec<_>>(), ranges);
            for len in 0..bytes.len() {
                prop_assert_eq!(parse(&bytes[..len]), Err(Malformed));
            }
        }
    }
}
