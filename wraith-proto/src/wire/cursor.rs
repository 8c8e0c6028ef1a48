//! Reading from and writing to a slice, front to back.

use super::{Full, Malformed, varint};

/// Reads fields from the front of a slice. A read that fails leaves the position where it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reader<'a> {
    rest: &'a [u8],
    whole: usize,
}

impl<'a> Reader<'a> {
    /// Starts at the first byte.
    #[inline]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, whole: bytes.len() }
    }

    /// Reads one byte.
    ///
    /// # Errors
    /// [`Malformed`] at the end.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, Malformed> {
        self.array().map(|&[byte]| byte)
    }

    /// Reads a big-endian `u16`.
    ///
    /// # Errors
    /// [`Malformed`] with less than 2 bytes left.
    #[inline]
    pub fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(|bytes| u16::from_be_bytes(*bytes))
    }

    /// Reads a big-endian `u32`.
    ///
    /// # Errors
    /// [`Malformed`] with less than 4 bytes left.
    #[inline]
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(|bytes| u32::from_be_bytes(*bytes))
    }

    /// Reads a [`varint`].
    ///
    /// # Errors
    /// [`Malformed`] if it is cut off or longer than needed (`PROTO §1.1`).
    #[inline]
    pub fn varint(&mut self) -> Result<u64, Malformed> {
        let (value, rest) = varint::read(self.rest)?;
        self.rest = rest;
        Ok(value)
    }

    /// Reads a [`varint`] that must be below 2^32: a stream id or a code (`PROTO §6.3`, `§6.5`).
    ///
    /// # Errors
    /// [`Malformed`] as for [`Reader::varint`], or if the number is 2^32 or more.
    #[inline]
    pub fn varint32(&mut self) -> Result<u32, Malformed> {
        let (value, rest) = varint::read(self.rest)?;
        let value = u32::try_from(value).map_err(|_| Malformed)?;
        self.rest = rest;
        Ok(value)
    }

    /// Takes the next `len` bytes.
    ///
    /// # Errors
    /// [`Malformed`] with less than `len` bytes left.
    #[inline]
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(Malformed)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Takes the next `N` bytes.
    ///
    /// # Errors
    /// [`Malformed`] with less than `N` bytes left.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<&'a [u8; N], Malformed> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(Malformed)?;
        self.rest = rest;
        Ok(taken)
    }

    /// The bytes not read yet.
    #[inline]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether every byte was read.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Bytes read so far.
    #[inline]
    pub const fn position(&self) -> usize {
        self.whole - self.rest.len()
    }
}

/// Writes fields to the front of a slice. A write that fails leaves buffer and position as they were.
#[derive(Debug, Default)]
pub struct Writer<'a> {
    buf: &'a mut [u8],
    len: usize,
}

impl<'a> Writer<'a> {
    /// Starts at the first byte.
    #[inline]
    pub const fn new(buf: &'a mut [u8]) -> Self {
        Self { buf, len: 0 }
    }

    /// Writes one byte.
    ///
    /// # Errors
    /// [`Full`] at the end.
    #[inline]
    pub fn u8(&mut self, value: u8) -> Result<(), Full> {
        self.array(&[value])
    }

    /// Writes a big-endian `u16`.
    ///
    /// # Errors
    /// [`Full`] with less than 2 bytes left.
    #[inline]
    pub fn u16(&mut self, value: u16) -> Result<(), Full> {
        self.array(&value.to_be_bytes())
    }

    /// Writes a big-endian `u32`.
    ///
    /// # Errors
    /// [`Full`] with less than 4 bytes left.
    #[inline]
    pub fn u32(&mut self, value: u32) -> Result<(), Full> {
        self.array(&value.to_be_bytes())
    }

    /// Writes a [`varint`].
    ///
    /// # Errors
    /// [`Full`] if it does not fit or is over [`varint::MAX`].
    #[inline]
    pub fn varint(&mut self, value: u64) -> Result<(), Full> {
        self.len += varint::write(value, &mut self.buf[self.len..])?;
        Ok(())
    }

    /// Writes bytes as they are.
    ///
    /// # Errors
    /// [`Full`] with too few bytes left.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), Full> {
        self.reserve(bytes.len())?.copy_from_slice(bytes);
        Ok(())
    }

    /// Writes an array as it is.
    ///
    /// # Errors
    /// [`Full`] with too few bytes left.
    #[inline]
    pub fn array<const N: usize>(&mut self, bytes: &[u8; N]) -> Result<(), Full> {
        let out = self.buf[self.len..].first_chunk_mut().ok_or(Full)?;
        *out = *bytes;
        self.len += N;
        Ok(())
    }

    /// Writes `len` zero bytes.
    ///
    /// # Errors
    /// [`Full`] with less than `len` bytes left.
    pub fn zeros(&mut self, len: usize) -> Result<(), Full> {
        self.reserve(len)?.fill(0);
        Ok(())
    }

    /// Goes back to an earlier position; what was written behind it is forgotten. A later one changes nothing.
    #[inline]
    pub const fn truncate(&mut self, len: usize) {
        if len < self.len {
            self.len = len;
        }
    }

    /// Bytes written so far.
    #[inline]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing was written yet.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes that still fit.
    #[inline]
    pub const fn remaining(&self) -> usize {
        self.buf.len() - self.len
    }

    /// What was written.
    #[inline]
    pub fn written(&self) -> &[u8] {
        &self.buf[..self.len]
    }

    /// Changes one byte that was written before; a position not yet written changes nothing.
    #[inline]
    pub(super) fn patch(&mut self, at: usize, value: u8) {
        if let Some(byte) = self.buf[..self.len].get_mut(at) {
            *byte = value;
        }
    }

    /// Runs `write`; if it fails, the position goes back to where it was.
    #[inline]
    pub(super) fn all_or_nothing<T>(
        &mut self,
        write: impl FnOnce(&mut Self) -> Result<T, Full>,
    ) -> Result<T, Full> {
        let mark = self.len;
        let result = write(self);
        if result.is_err() {
            self.truncate(mark);
        }
        result
    }

    #[inline]
    fn reserve(&mut self, len: usize) -> Result<&mut [u8], Full> {
        let out = self.buf[self.len..].get_mut(..len).ok_or(Full)?;
        self.len += len;
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_writes_what_its_twin_reads() {
        let mut buf = [0xff; 32];
        let mut w = Writer::new(&mut buf);
        assert!(w.is_empty());
        w.u8(1).unwrap();
        w.u16(0x0203).unwrap();
        w.u32(0x0405_0607).unwrap();
        w.varint(15_293).unwrap();
        w.bytes(b"abc").unwrap();
        w.array(b"de").unwrap();
        w.zeros(2).unwrap();
        assert_eq!((w.len(), w.remaining()), (16, 16));
        assert_eq!(w.written(), [1, 2, 3, 4, 5, 6, 7, 0x7b, 0xbd, b'a', b'b', b'c', b'd', b'e', 0, 0]);

        let mut r = Reader::new(w.written());
        assert_eq!(r.u8(), Ok(1));
        assert_eq!(r.u16(), Ok(0x0203));
        assert_eq!(r.u32(), Ok(0x0405_0607));
        assert_eq!(r.varint(), Ok(15_293));
        assert_eq!(r.take(3), Ok(&b"abc"[..]));
        assert_eq!(r.array(), Ok(b"de"));
        assert_eq!((r.position(), r.rest()), (14, &[0, 0][..]));
        assert_eq!(r.take(2), Ok(&[0, 0][..]));
        assert!(r.is_empty());
    }

    #[test]
    fn a_read_past_the_end_fails_and_moves_nothing() {
        let mut r = Reader::new(&[0x80, 1, 2]);
        assert_eq!(r.u32(), Err(Malformed));
        assert_eq!(r.varint(), Err(Malformed));
        assert_eq!(r.take(4), Err(Malformed));
        assert_eq!(r.array::<4>(), Err(Malformed));
        assert_eq!(r.position(), 0);
        r.take(3).unwrap();
        assert_eq!(r.u8(), Err(Malformed));
    }

    #[test]
    fn a_varint32_ends_below_2_to_the_32() {
        let mut buf = [0; 8];
        varint::write(u64::from(u32::MAX), &mut buf).unwrap();
        assert_eq!(Reader::new(&buf).varint32(), Ok(u32::MAX));
        varint::write(1 << 32, &mut buf).unwrap();
        let mut r = Reader::new(&buf);
        assert_eq!(r.varint32(), Err(Malformed));
        assert_eq!(r.position(), 0);
    }

    #[test]
    fn a_write_past_the_end_fails_and_moves_nothing() {
        let mut buf = [9; 3];
        let mut w = Writer::new(&mut buf);
        assert_eq!(w.u32(0), Err(Full));
        assert_eq!(w.varint(16_384), Err(Full));
        assert_eq!(w.bytes(&[0; 4]), Err(Full));
        assert_eq!(w.zeros(4), Err(Full));
        assert_eq!(w.all_or_nothing(|w| w.u16(7).and_then(|()| w.u16(7))), Err(Full));
        assert_eq!(w.len(), 0);
        w.zeros(3).unwrap();
        w.patch(1, 5);
        w.patch(3, 6);
        assert_eq!(w.written(), [0, 5, 0]);
        w.truncate(8);
        assert_eq!(w.len(), 3);
    }
}
