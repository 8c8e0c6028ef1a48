//! Reading and writing the fields of messages and tickets.

use alloc::vec::Vec;

/// Largest value of a varint (`PROTO §1.1`).
pub(crate) const VARINT_MAX: u64 = (1 << 62) - 1;

/// A cursor over received bytes; every read says whether there was enough.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub(crate) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.bytes.split_at_checked(len)?;
        self.bytes = tail;
        Some(head)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// A varint in its shortest form; a longer one is malformed (`PROTO §1.1`).
    pub(crate) fn varint(&mut self) -> Option<u64> {
        let first = *self.bytes.first()?;
        let len = 1usize << (first >> 6);
        let bytes = self.take(len)?;
        let value =
            bytes[1..].iter().fold(u64::from(first & 0x3f), |value, byte| value << 8 | u64::from(*byte));
        (varint_len(value) == len).then_some(value)
    }

    /// A varint that fits in 32 bits.
    pub(crate) fn varint32(&mut self) -> Option<u32> {
        u32::try_from(self.varint()?).ok()
    }

    pub(crate) fn rest(&mut self) -> &'a [u8] {
        core::mem::take(&mut self.bytes)
    }

    /// `value` if nothing is left, so that no byte of a message is without meaning.
    pub(crate) fn end<T>(self, value: T) -> Option<T> {
        self.bytes.is_empty().then_some(value)
    }
}

/// Bytes of the shortest form of `value`.
pub(crate) const fn varint_len(value: u64) -> usize {
    match value {
        0..0x40 => 1,
        0x40..0x4000 => 2,
        0x4000..0x4000_0000 => 4,
        _ => 8,
    }
}

/// Appends `value`, at most [`VARINT_MAX`], in its shortest form.
pub(crate) fn put_varint(out: &mut Vec<u8>, value: u64) {
    let value = value.min(VARINT_MAX);
    let len = varint_len(value);
    let tag = u64::from(len.trailing_zeros()) << (8 * len - 2);
    out.extend_from_slice(&(value | tag).to_be_bytes()[8 - len..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `PROTO §1.1`
    #[test]
    fn a_varint_is_written_and_read_in_its_shortest_form_only() {
        for (value, bytes) in [
            (0, &[0x00][..]),
            (63, &[0x3f]),
            (64, &[0x40, 0x40]),
            (16_383, &[0x7f, 0xff]),
            (16_384, &[0x80, 0x00, 0x40, 0x00]),
            ((1 << 30) - 1, &[0xbf, 0xff, 0xff, 0xff]),
            (1 << 30, &[0xc0, 0, 0, 0, 0x40, 0, 0, 0]),
            (VARINT_MAX, &[0xff; 8]),
        ] {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            assert_eq!(out, bytes);
            assert_eq!(Reader::new(bytes).varint(), Some(value));
        }
        assert_eq!(Reader::new(&[0x40, 0x3f]).varint(), None, "63 in two bytes");
        assert_eq!(Reader::new(&[0x80, 0, 0x3f, 0xff]).varint(), None, "16383 in four bytes");
        assert_eq!(Reader::new(&[0x80, 0]).varint(), None, "cut short");
        assert_eq!(Reader::new(&[0xc0, 0, 0, 1, 0, 0, 0, 0]).varint32(), None, "2^32 is no u32");
    }
}
