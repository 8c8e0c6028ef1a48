//! The fields of `KEY_SHARE` (`PROTO §6.8`).

use super::{Full, Malformed, Reader, Writer, varint};

/// The X25519 group: shares of 32 bytes (RFC 7748).
pub const GROUP_X25519: u16 = 0x0001;

/// A share of the key exchange for an epoch, or a piece of one.
///
/// Shares of later groups may be longer than a packet, so that they can come in pieces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyShare<'a> {
    /// The epoch that the exchange leads to.
    pub epoch: u32,
    /// The group, [`GROUP_X25519`] or one that this version does not know.
    pub group: u16,
    /// Bytes of the whole share.
    pub total: u16,
    /// Where in it the piece begins; `offset` plus the piece's length is at most `total`.
    pub offset: u16,
    /// The piece.
    pub piece: &'a [u8],
}

impl<'a> KeyShare<'a> {
    /// A whole X25519 share.
    pub const fn x25519(epoch: u32, share: &'a [u8; 32]) -> Self {
        Self { epoch, group: GROUP_X25519, total: 32, offset: 0, piece: share }
    }

    /// The share, if it is a whole one of the X25519 group.
    pub fn as_x25519(&self) -> Option<&'a [u8; 32]> {
        let whole = self.group == GROUP_X25519 && self.total == 32 && self.offset == 0;
        if whole { self.piece.try_into().ok() } else { None }
    }

    /// Reads the fields behind the type.
    pub(super) fn parse(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let epoch = reader.varint32()?;
        let (group, total, offset) = (reader.u16()?, reader.u16()?, reader.u16()?);
        let len = reader.u16()?;
        fits(total, offset, len)?;
        Ok(Self { epoch, group, total, offset, piece: reader.take(usize::from(len))? })
    }

    /// Writes the fields behind the type.
    pub(super) fn emit(&self, w: &mut Writer<'_>) -> Result<(), Full> {
        let len = u16::try_from(self.piece.len()).map_err(|_| Full)?;
        fits(self.total, self.offset, len).map_err(|Malformed| Full)?;
        w.varint(u64::from(self.epoch))?;
        for field in [self.group, self.total, self.offset, len] {
            w.u16(field)?;
        }
        w.bytes(self.piece)
    }

    /// Bytes of the fields behind the type.
    pub(super) const fn encoded_len(&self) -> usize {
        varint::size(self.epoch as u64) + 8 + self.piece.len()
    }
}

/// A piece is not empty and lies within its share.
fn fits(total: u16, offset: u16, len: u16) -> Result<(), Malformed> {
    let end = offset.checked_add(len).ok_or(Malformed)?;
    if len > 0 && end <= total { Ok(()) } else { Err(Malformed) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Frame;

    fn parse(bytes: &[u8]) -> Option<Frame<'_>> {
        Frame::parse(&mut Reader::new(bytes)).ok()
    }

    /// `PROTO §6.8`
    #[test]
    fn a_share_has_these_bytes() {
        let share = [7; 32];
        let frame = Frame::KeyShare(KeyShare::x25519(300, &share));
        let mut out = [0; 64];
        let mut writer = Writer::new(&mut out);
        frame.emit(&mut writer).unwrap();
        let len = writer.len();
        assert_eq!(len, frame.encoded_len());
        assert_eq!(out[..11], [0x15, 0x41, 0x2c, 0, 1, 0, 32, 0, 0, 0, 32]);
        assert_eq!(out[11..len], share);
        assert_eq!(parse(&out[..len]), Some(frame));
        for cut in 0..len {
            assert_eq!(parse(&out[..cut]), None, "cut to {cut}");
        }
    }

    /// `PROTO §6.8`
    #[test]
    fn a_piece_lies_within_its_share() {
        let frame = |total: u16, offset: u16, len: u16| {
            let mut bytes = alloc::vec![0x15, 1];
            for field in [GROUP_X25519, total, offset, len] {
                bytes.extend_from_slice(&field.to_be_bytes());
            }
            bytes.resize(bytes.len() + usize::from(len), 9);
            parse(&bytes).is_some()
        };
        assert!(frame(1216, 0, 800));
        assert!(frame(1216, 800, 416));
        assert!(!frame(1216, 800, 417));
        assert!(!frame(32, 0, 0));
        assert!(!frame(0, 0, 0));
        assert!(!frame(65_535, 65_535, 1));
        assert!(frame(65_535, 65_534, 1));
    }

    #[test]
    fn only_a_whole_share_of_the_group_is_one_of_x25519() {
        let whole = KeyShare::x25519(1, &[3; 32]);
        assert_eq!(whole.as_x25519(), Some(&[3; 32]));
        assert_eq!(KeyShare { group: 2, ..whole }.as_x25519(), None);
        assert_eq!(KeyShare { total: 33, ..whole }.as_x25519(), None);
        assert_eq!(KeyShare { offset: 1, ..whole }.as_x25519(), None);
        assert_eq!(KeyShare { piece: &[3; 31], ..whole }.as_x25519(), None);
    }
}
