//! Lists of versions, suites and application protocols (`PROTO §2.3`, `§4.4`).

use super::{Malformed, Reader};

/// Most application protocols in one list (`PROTO §4.4`).
pub const MAX_PROTOCOLS: usize = 8;

/// Most bytes of an application protocol's name (`PROTO §4.4`).
pub const MAX_PROTOCOL_LEN: usize = 32;

/// One or more versions, best first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Versions<'a>(&'a [[u8; 4]]);

impl<'a> Versions<'a> {
    /// Takes the whole of `bytes`, big-endian `u32` each.
    ///
    /// # Errors
    /// [`Malformed`] if it is empty or no multiple of 4 bytes.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        match bytes.as_chunks() {
            ([], _) => Err(Malformed),
            (list, []) => Ok(Self(list)),
            _ => Err(Malformed),
        }
    }

    /// The versions in order.
    pub fn iter(self) -> impl ExactSizeIterator<Item = u32> + Clone + 'a {
        self.0.iter().map(|bytes| u32::from_be_bytes(*bytes))
    }
}

/// One or more cipher suites, best first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Suites<'a>(&'a [[u8; 2]]);

impl<'a> Suites<'a> {
    /// Takes the whole of `bytes`, big-endian `u16` each.
    ///
    /// # Errors
    /// [`Malformed`] if it is empty or no multiple of 2 bytes.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        match bytes.as_chunks() {
            ([], _) => Err(Malformed),
            (list, []) => Ok(Self(list)),
            _ => Err(Malformed),
        }
    }

    /// The suites in order.
    pub fn iter(self) -> impl ExactSizeIterator<Item = u16> + Clone + 'a {
        self.0.iter().map(|bytes| u16::from_be_bytes(*bytes))
    }
}

/// One to [`MAX_PROTOCOLS`] application protocols, best first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Protocols<'a>(&'a [u8]);

impl<'a> Protocols<'a> {
    /// Takes the whole of `bytes`: per protocol a length `u8` and its name.
    ///
    /// # Errors
    /// [`Malformed`] if there are none or more than [`MAX_PROTOCOLS`], a name is cut off, empty or
    /// longer than [`MAX_PROTOCOL_LEN`].
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let mut count = 0;
        while !reader.is_empty() {
            let len = usize::from(reader.u8()?);
            is_protocol(reader.take(len)?)?;
            count += 1;
        }
        if (1..=MAX_PROTOCOLS).contains(&count) { Ok(Self(bytes)) } else { Err(Malformed) }
    }

    /// The names in order.
    pub const fn iter(self) -> ProtocolIter<'a> {
        ProtocolIter(Reader::new(self.0))
    }
}

/// The names of a [`Protocols`] list, best first.
#[derive(Clone, Debug)]
pub struct ProtocolIter<'a>(Reader<'a>);

impl<'a> Iterator for ProtocolIter<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<Self::Item> {
        let len = usize::from(self.0.u8().ok()?);
        self.0.take(len).ok()
    }
}

/// Refuses a protocol name that is empty or too long.
pub(super) fn is_protocol(name: &[u8]) -> Result<(), Malformed> {
    if (1..=MAX_PROTOCOL_LEN).contains(&name.len()) { Ok(()) } else { Err(Malformed) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn numbers_come_in_order_and_partial_ones_are_refused() {
        let versions = Versions::parse(&[0, 0, 0, 1, 0x1a, 0x2a, 0x3a, 0x4a]).unwrap();
        assert_eq!(versions.iter().collect::<Vec<_>>(), [1, 0x1a2a_3a4a]);
        let suites = Suites::parse(&[0, 2, 0, 1]).unwrap();
        assert_eq!(suites.iter().collect::<Vec<_>>(), [2, 1]);
        for len in [0, 1, 3, 5, 7] {
            assert_eq!(Versions::parse(&[0; 8][..len]), Err(Malformed));
            assert_eq!(Suites::parse(&[0; 8][..len]), Err(Malformed));
        }
    }

    #[test]
    fn a_protocol_list_has_1_to_8_names_of_1_to_32_bytes() {
        let protocols = Protocols::parse(b"\x01a\x03xyz").unwrap();
        assert_eq!(protocols.iter().collect::<Vec<_>>(), [&b"a"[..], b"xyz"]);
        assert_eq!(Protocols::parse(b""), Err(Malformed));
        assert_eq!(Protocols::parse(b"\x00"), Err(Malformed));
        assert_eq!(Protocols::parse(b"\x02a"), Err(Malformed));
        assert!(Protocols::parse(&b"\x01a".repeat(8)).is_ok());
        assert_eq!(Protocols::parse(&b"\x01a".repeat(9)), Err(Malformed));
        let mut name = [b'n'; 34];
        name[0] = 32;
        assert!(Protocols::parse(&name[..33]).is_ok());
        name[0] = 33;
        assert_eq!(Protocols::parse(&name), Err(Malformed));
    }
}
