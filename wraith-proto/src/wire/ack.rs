//! The fields of ACK and `ACK_ECN` (`PROTO §6.4`).

use super::{Full, Malformed, Reader, Writer, frame::kind, varint};

/// Most ranges in one frame: the first and up to 63 further ones (`PROTO §6.4`).
pub const MAX_ACK_RANGES: usize = 64;

/// A checked acknowledgement: no range reaches below 0.
///
/// Whether the numbers were ever sent is for the receiver of the frame to check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ack<'a> {
    largest: u64,
    delay_micros: u64,
    further: u8,
    /// From the size of the first range on.
    ranges: &'a [u8],
    ecn: Option<EcnCounts>,
}

impl<'a> Ack<'a> {
    /// Reads the fields behind the type; `ecn` tells `ACK_ECN`.
    #[inline]
    pub(super) fn parse(reader: &mut Reader<'a>, ecn: bool) -> Result<Self, Malformed> {
        let largest = reader.varint()?;
        let delay_micros = reader.varint()?;
        let further = reader.varint()?;
        if further >= MAX_ACK_RANGES as u64 {
            return Err(Malformed);
        }
        let from = reader.rest();
        let mut low = largest.checked_sub(reader.varint()?).ok_or(Malformed)?;
        for _ in 0..further {
            let high = next_high(low, reader.varint()?).ok_or(Malformed)?;
            low = high.checked_sub(reader.varint()?).ok_or(Malformed)?;
        }
        let ranges = &from[..from.len() - reader.rest().len()];
        let ecn = if ecn { Some(EcnCounts::parse(reader)?) } else { None };
        Ok(Self { largest, delay_micros, further: further as u8, ranges, ecn })
    }

    /// The largest packet number acknowledged.
    #[inline]
    pub const fn largest(&self) -> u64 {
        self.largest
    }

    /// How long the peer held the acknowledgement of the largest number, in microseconds.
    #[inline]
    pub const fn delay_micros(&self) -> u64 {
        self.delay_micros
    }

    /// The peer's ECN counters, in `ACK_ECN` only.
    #[inline]
    pub const fn ecn(&self) -> Option<EcnCounts> {
        self.ecn
    }

    /// The ranges as `(low, high)`, both included, newest first.
    #[inline]
    pub const fn ranges(&self) -> AckRanges<'a> {
        AckRanges { fields: Reader::new(self.ranges), high: Some(self.largest), further: self.further }
    }

    /// Writes the frame with its type.
    pub(super) fn emit(&self, w: &mut Writer<'_>) -> Result<(), Full> {
        w.u8(kind_of(self.ecn.as_ref()))?;
        w.varint(self.largest)?;
        w.varint(self.delay_micros)?;
        w.u8(self.further)?;
        w.bytes(self.ranges)?;
        self.ecn.map_or(Ok(()), |ecn| ecn.emit(w))
    }

    /// Bytes of the frame with its type.
    pub(super) fn encoded_len(&self) -> usize {
        let ecn = self.ecn.as_ref().map_or(0, EcnCounts::encoded_len);
        2 + varint::size(self.largest) + varint::size(self.delay_micros) + self.ranges.len() + ecn
    }
}

/// The ranges of an [`Ack`]: `(low, high)`, both included, newest first.
#[derive(Clone, Debug)]
pub struct AckRanges<'a> {
    fields: Reader<'a>,
    high: Option<u64>,
    further: u8,
}

impl Iterator for AckRanges<'_> {
    type Item = (u64, u64);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let high = self.high.take()?;
        let low = high.checked_sub(self.fields.varint().ok()?)?;
        if let Some(further) = self.further.checked_sub(1) {
            self.further = further;
            self.high = next_high(low, self.fields.varint().ok()?);
        }
        Some((low, high))
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = if self.high.is_some() { usize::from(self.further) + 1 } else { 0 };
        (left, Some(left))
    }
}

impl ExactSizeIterator for AckRanges<'_> {}

/// How many packets the peer received with each ECN mark (RFC 9000 §19.3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EcnCounts {
    /// Packets marked ECT(0).
    pub ect0: u64,
    /// Packets marked ECT(1).
    pub ect1: u64,
    /// Packets marked as congestion experienced.
    pub ce: u64,
}

impl EcnCounts {
    fn parse(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { ect0: reader.varint()?, ect1: reader.varint()?, ce: reader.varint()? })
    }

    fn emit(&self, w: &mut Writer<'_>) -> Result<(), Full> {
        w.varint(self.ect0)?;
        w.varint(self.ect1)?;
        w.varint(self.ce)
    }

    const fn encoded_len(&self) -> usize {
        varint::size(self.ect0) + varint::size(self.ect1) + varint::size(self.ce)
    }
}

/// An acknowledgement to be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AckRepr<I> {
    /// Ranges as `(low, high)`, both included, newest first, at least one number apart.
    pub ranges: I,
    /// How long the acknowledgement of the largest number was held, in microseconds.
    pub delay_micros: u64,
    /// ECN counters; with them the frame is an `ACK_ECN`.
    pub ecn: Option<EcnCounts>,
}

impl<I: IntoIterator<Item = (u64, u64)>> AckRepr<I> {
    /// Writes the frame with its type and as many ranges as fit, newest first, at most
    /// [`MAX_ACK_RANGES`]; returns how many. No ranges write nothing. A range that does not lie
    /// below its predecessor with a number between ends the list.
    ///
    /// # Errors
    /// [`Full`] if not even the first range fits, or a number has no encoding; then nothing is written.
    pub fn emit(self, w: &mut Writer<'_>) -> Result<usize, Full> {
        let Self { ranges, delay_micros, ecn } = self;
        let mut ranges = ranges.into_iter();
        let Some(first) = ranges.next() else { return Ok(0) };
        w.all_or_nothing(|w| emit_ranges(first, ranges, delay_micros, ecn, w))
    }
}

fn emit_ranges(
    (mut low, high): (u64, u64),
    further: impl Iterator<Item = (u64, u64)>,
    delay_micros: u64,
    ecn: Option<EcnCounts>,
    w: &mut Writer<'_>,
) -> Result<usize, Full> {
    let tail = ecn.as_ref().map_or(0, EcnCounts::encoded_len);
    w.u8(kind_of(ecn.as_ref()))?;
    w.varint(high)?;
    w.varint(delay_micros)?;
    // A count up to 63 is one byte, so it can be filled in later.
    let count_at = w.len();
    w.u8(0)?;
    w.varint(high.checked_sub(low).ok_or(Full)?)?;
    let mut count = 0u8;
    for (next_low, high) in further.take(MAX_ACK_RANGES - 1) {
        let gap = low.checked_sub(high).and_then(|gap| gap.checked_sub(2));
        let (Some(gap), Some(size)) = (gap, high.checked_sub(next_low)) else { break };
        if varint::size(gap) + varint::size(size) + tail > w.remaining() {
            break;
        }
        w.varint(gap)?;
        w.varint(size)?;
        low = next_low;
        count += 1;
    }
    w.patch(count_at, count);
    if let Some(ecn) = ecn {
        ecn.emit(w)?;
    }
    Ok(usize::from(count) + 1)
}

/// The upper end of the range behind a gap, which is the unacknowledged numbers between less one.
#[inline]
fn next_high(low: u64, gap: u64) -> Option<u64> {
    // A varint is below 2^62: the addition cannot overflow.
    low.checked_sub(gap + 2)
}

const fn kind_of(ecn: Option<&EcnCounts>) -> u8 {
    if ecn.is_some() { kind::ACK_ECN as u8 } else { kind::ACK as u8 }
}

#[cfg(test)]
mod tests;
