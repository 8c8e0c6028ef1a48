//! Writing a parameter list.

use super::id;
use crate::wire::{Full, Writer, varint};

/// Writes a parameter list to the front of a buffer, parameter by parameter.
///
/// The caller writes no id twice. A parameter that fails with [`Full`] is not written at all.
#[derive(Debug)]
pub struct ParamsWriter<'a> {
    w: Writer<'a>,
}

impl<'a> ParamsWriter<'a> {
    /// Starts a list at the front of `buf`.
    pub const fn new(buf: &'a mut [u8]) -> Self {
        Self { w: Writer::new(buf) }
    }

    /// Writes a parameter with any value.
    ///
    /// # Errors
    /// [`Full`] if it does not fit, or for id 0, which is no parameter.
    pub fn bytes(&mut self, id: u64, value: &[u8]) -> Result<(), Full> {
        self.parameter(id, value.len(), |w| w.bytes(value))
    }

    /// Writes a parameter that is a `u16`.
    ///
    /// # Errors
    /// As [`ParamsWriter::bytes`].
    pub fn u16(&mut self, id: u64, value: u16) -> Result<(), Full> {
        self.bytes(id, &value.to_be_bytes())
    }

    /// Writes a parameter that is a `u32`.
    ///
    /// # Errors
    /// As [`ParamsWriter::bytes`].
    pub fn u32(&mut self, id: u64, value: u32) -> Result<(), Full> {
        self.bytes(id, &value.to_be_bytes())
    }

    /// Writes a parameter that is a varint.
    ///
    /// # Errors
    /// As [`ParamsWriter::bytes`], and [`Full`] for a value over [`varint::MAX`].
    pub fn varint(&mut self, id: u64, value: u64) -> Result<(), Full> {
        self.parameter(id, varint::size(value), |w| w.varint(value))
    }

    /// Writes the list of versions, best first.
    ///
    /// # Errors
    /// As [`ParamsWriter::bytes`].
    pub fn versions(&mut self, versions: impl ExactSizeIterator<Item = u32>) -> Result<(), Full> {
        self.parameter(id::VERSIONS, 4 * versions.len(), |w| {
            versions.into_iter().try_for_each(|version| w.u32(version))
        })
    }

    /// Writes the list of suites, best first.
    ///
    /// # Errors
    /// As [`ParamsWriter::bytes`].
    pub fn suites(&mut self, suites: impl ExactSizeIterator<Item = u16>) -> Result<(), Full> {
        self.parameter(id::SUITES, 2 * suites.len(), |w| {
            suites.into_iter().try_for_each(|suite| w.u16(suite))
        })
    }

    /// Writes the list of application protocols, best first.
    ///
    /// # Errors
    /// As [`ParamsWriter::bytes`], and [`Full`] for a name over 255 bytes.
    pub fn protocols<'n>(&mut self, names: impl Iterator<Item = &'n [u8]> + Clone) -> Result<(), Full> {
        let len = names.clone().map(|name| 1 + name.len()).sum();
        self.parameter(id::PROTOCOLS, len, |w| {
            names.into_iter().try_for_each(|name| {
                w.u8(u8::try_from(name.len()).map_err(|_| Full)?)?;
                w.bytes(name)
            })
        })
    }

    /// Writes a reserved parameter, which every receiver ignores. Its id is 31·n + 27 with n drawn
    /// from `seed`; another seed gives another id unless they are equal modulo about 2^57.
    ///
    /// # Errors
    /// As [`ParamsWriter::bytes`].
    pub fn reserved(&mut self, seed: u64, body: &[u8]) -> Result<(), Full> {
        const COUNT: u64 = (varint::MAX - 27) / 31 + 1;
        self.bytes(31 * (seed % COUNT) + 27, body)
    }

    /// Ends the list and fills it up to `len` bytes in all: id 0 and zeros. Returns `len`.
    ///
    /// # Errors
    /// [`Full`] if the list is longer already or the buffer is shorter.
    pub fn pad_to(mut self, len: usize) -> Result<usize, Full> {
        self.w.zeros(len.checked_sub(self.w.len()).ok_or(Full)?)?;
        Ok(self.w.len())
    }

    /// Bytes written so far. A list that is not padded ends with its last parameter.
    pub const fn len(&self) -> usize {
        self.w.len()
    }

    /// Whether nothing was written yet.
    pub const fn is_empty(&self) -> bool {
        self.w.is_empty()
    }

    fn parameter(
        &mut self,
        id: u64,
        len: usize,
        value: impl FnOnce(&mut Writer<'a>) -> Result<(), Full>,
    ) -> Result<(), Full> {
        if id == id::END {
            return Err(Full);
        }
        self.w.all_or_nothing(|w| {
            w.varint(id)?;
            w.varint(len as u64)?;
            value(w)
        })
    }
}
