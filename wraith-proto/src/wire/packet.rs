//! Protected packets, apart from their keys (`PROTO §5`).

use super::{ConnectionId, Full, Malformed, PACKET_HEADER_LEN, varint};

/// Bytes of ciphertext that header protection samples, right behind the header (`PROTO §5.7`).
pub const SAMPLE_LEN: usize = 16;

/// The smallest packet from which header protection can be removed.
pub const MIN_PACKET_LEN: usize = PACKET_HEADER_LEN + SAMPLE_LEN;

const FORM_MASK: u8 = 0b1110_0000;
const FORM: u8 = 0b0100_0000;
const IGNORED: u8 = 0b0001_0000;
const RESERVED: u8 = 0b0000_1100;
const PHASE: u8 = 0b0000_0011;

/// What can be seen of a packet while its header protection is on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProtectedPacket<'a> {
    destination: ConnectionId,
    sample: &'a [u8; SAMPLE_LEN],
}

impl<'a> ProtectedPacket<'a> {
    /// Checks the form bits and the length of a datagram (`PROTO §2.8`, `§5.1`).
    ///
    /// # Errors
    /// [`Malformed`] if the first byte is not `010` in bits 7 to 5 or there are less than
    /// [`MIN_PACKET_LEN`] bytes.
    #[inline]
    pub fn parse(packet: &'a [u8]) -> Result<Self, Malformed> {
        let (header, ciphertext) = packet.split_first_chunk::<PACKET_HEADER_LEN>().ok_or(Malformed)?;
        let sample = ciphertext.first_chunk().ok_or(Malformed)?;
        if header[0] & FORM_MASK != FORM {
            return Err(Malformed);
        }
        Ok(Self { destination: destination(header), sample })
    }

    /// The connection id of the receiver.
    #[inline]
    pub const fn destination(&self) -> ConnectionId {
        self.destination
    }

    /// The ciphertext from which the mask for [`apply_mask`] is made.
    #[inline]
    pub const fn sample(&self) -> &'a [u8; SAMPLE_LEN] {
        self.sample
    }
}

/// The header of a packet without header protection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketHeader {
    /// Epoch mod 4; higher bits are not sent.
    pub phase: u8,
    /// The bit that senders draw at random and receivers ignore.
    pub ignored: bool,
    /// The connection id of the receiver.
    pub destination: ConnectionId,
    /// The low 32 bits of the packet number.
    pub number: u32,
}

impl PacketHeader {
    /// Reads the header of a packet whose header protection was removed. Form and reserved bits are
    /// not looked at: see [`ProtectedPacket::parse`] and, after the tag, [`unprotected`].
    ///
    /// # Errors
    /// [`Malformed`] with less than [`PACKET_HEADER_LEN`] bytes.
    #[inline]
    pub fn parse(packet: &[u8]) -> Result<Self, Malformed> {
        let header = packet.first_chunk::<PACKET_HEADER_LEN>().ok_or(Malformed)?;
        let [first, _, _, _, _, _, _, _, _, number @ ..] = *header;
        Ok(Self {
            phase: first & PHASE,
            ignored: first & IGNORED != 0,
            destination: destination(header),
            number: u32::from_be_bytes(number),
        })
    }

    /// Writes the header, with zero in the reserved bits; returns [`PACKET_HEADER_LEN`].
    ///
    /// # Errors
    /// [`Full`] if the buffer is shorter; then nothing is written.
    #[inline]
    pub fn emit(&self, out: &mut [u8]) -> Result<usize, Full> {
        *out.first_chunk_mut().ok_or(Full)? = self.to_bytes();
        Ok(PACKET_HEADER_LEN)
    }

    /// The header as bytes: the additional data of the packet (`PROTO §5.5`).
    #[inline]
    pub fn to_bytes(&self) -> [u8; PACKET_HEADER_LEN] {
        let mut out = [0; PACKET_HEADER_LEN];
        out[0] = FORM | self.phase & PHASE | if self.ignored { IGNORED } else { 0 };
        out[1..9].copy_from_slice(&self.destination.0);
        out[9..].copy_from_slice(&self.number.to_be_bytes());
        out
    }
}

/// The connection id that anybody can see in a protected packet; `None` for anything else (`PROTO §5.11`).
#[inline]
pub fn visible_destination(packet: &[u8]) -> Option<ConnectionId> {
    ProtectedPacket::parse(packet).ok().map(|packet| packet.destination())
}

/// Puts header protection on or takes it off, which is the same (`PROTO §5.7`).
///
/// A packet shorter than its header stays as it is.
#[inline]
pub fn apply_mask(packet: &mut [u8], mask: [u8; 5]) {
    let Some([first, _, _, _, _, _, _, _, _, number @ ..]) = packet.first_chunk_mut::<PACKET_HEADER_LEN>()
    else {
        return;
    };
    let [flags, rest @ ..] = mask;
    *first ^= flags & !FORM_MASK;
    *number = (u32::from_ne_bytes(*number) ^ u32::from_ne_bytes(rest)).to_ne_bytes();
}

/// The key phase in an unprotected first byte, and whether the reserved bits are zero.
///
/// The second counts only after the tag was good (`PROTO §5.8`).
#[inline]
pub const fn unprotected(first: u8) -> (u8, bool) {
    (first & PHASE, first & RESERVED == 0)
}

/// The full packet number with these low 32 bits that is nearest to the expected one
/// (`PROTO §5.3`, RFC 9000 appendix A.3).
///
/// `expected` is the largest number received plus one, at most 2^62.
#[inline]
pub const fn expand_number(expected: u64, low: u32) -> u64 {
    const WINDOW: u64 = 1 << 32;
    const HALF: u64 = WINDOW / 2;
    let candidate = expected & !(WINDOW - 1) | low as u64;
    if candidate + HALF <= expected && candidate <= varint::MAX - WINDOW {
        candidate + WINDOW
    } else if (candidate > expected + HALF || candidate > varint::MAX) && candidate >= WINDOW {
        candidate - WINDOW
    } else {
        candidate
    }
}

/// Splits an opened body into the bytes of the data-bearing frames and the frames (`PROTO §5.4`).
///
/// The caller compares the length of the first with the sum of
/// [`Frame::data_len`](super::Frame::data_len): they must be equal.
///
/// # Errors
/// [`Malformed`] if the frames' length is missing or more than there is.
#[inline]
pub fn split_body(plaintext: &mut [u8]) -> Result<(&mut [u8], &[u8]), Malformed> {
    let (body, len) = plaintext.split_last_chunk_mut::<2>().ok_or(Malformed)?;
    let frames = usize::from(u16::from_be_bytes(*len));
    let payload = body.len().checked_sub(frames).ok_or(Malformed)?;
    let (payload, frames) = body.split_at_mut(payload);
    Ok((payload, frames))
}

#[inline]
const fn destination(header: &[u8; PACKET_HEADER_LEN]) -> ConnectionId {
    let [_, id @ .., _, _, _, _] = *header;
    ConnectionId(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ID: ConnectionId = ConnectionId([1, 2, 3, 4, 5, 6, 7, 8]);

    #[test]
    fn a_known_header_has_these_bytes() {
        let header = PacketHeader { phase: 2, ignored: true, destination: ID, number: 0x090a_0b0c };
        let mut out = [0; 14];
        assert_eq!(header.emit(&mut out), Ok(13));
        assert_eq!(out, [0x52, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0]);
        assert_eq!(header.emit(&mut out[..12]), Err(Full));
    }

    /// `PROTO §2.8`: a wrong fixed bit MUST be dropped.
    #[test]
    fn only_form_010_is_a_protected_packet() {
        let mut packet = [0; MIN_PACKET_LEN];
        for first in 0..=255 {
            packet[0] = first;
            assert_eq!(ProtectedPacket::parse(&packet).is_ok(), first >> 5 == 0b010, "{first:#010b}");
        }
    }

    #[test]
    fn the_sample_is_the_16_bytes_behind_the_header() {
        let mut packet: [u8; 30] = core::array::from_fn(|i| i as u8);
        packet[0] = 0x40;
        let view = ProtectedPacket::parse(&packet).unwrap();
        assert_eq!(view.destination(), ID);
        assert_eq!(&view.sample()[..], &packet[13..29]);
        for len in 0..MIN_PACKET_LEN {
            assert_eq!(ProtectedPacket::parse(&packet[..len]), Err(Malformed));
        }
    }

    #[test]
    fn the_mask_covers_5_flag_bits_and_the_number() {
        let mut packet = [0u8; 14];
        apply_mask(&mut packet, [0xff, 1, 2, 3, 4]);
        assert_eq!(packet, [0x1f, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 0]);
        apply_mask(&mut packet[..12], [0xff; 5]);
        assert_eq!(packet[0], 0x1f);
        apply_mask(&mut packet, [0xff, 1, 2, 3, 4]);
        assert_eq!(packet, [0; 14]);
    }

    #[test]
    fn reserved_bits_are_told_apart_from_phase_and_the_ignored_bit() {
        assert_eq!(unprotected(0b0101_0011), (3, true));
        assert_eq!(unprotected(0b0100_0100), (0, false));
        assert_eq!(unprotected(0b0100_1001), (1, false));
    }

    #[test]
    fn numbers_near_the_edges_expand_to_the_nearest() {
        const W: u64 = 1 << 32;
        const H: u64 = 1 << 31;
        for (expected, low, number) in [
            (0, 0, 0),
            (0, u32::MAX, W - 1),
            (0, 0x8000_0000, H),
            (1, 0, 0),
            (H - 1, u32::MAX, W - 1),
            (H - 1, 0, 0),
            (H, 0, W),
            (H, 1, 1),
            (W - 1, 0, W),
            (W - 1, 5, W + 5),
            (W, u32::MAX, W - 1),
            (W, 0x8000_0000, W + H),
            (W, 0x8000_0001, H + 1),
            (W + 7, 7, W + 7),
            (varint::MAX, u32::MAX, varint::MAX),
            (varint::MAX, 0, varint::MAX + 1 - W),
            (varint::MAX + 1, u32::MAX, varint::MAX),
            (varint::MAX + 1, 0, varint::MAX + 1 - W),
            (varint::MAX + 1, 1, varint::MAX + 2 - W),
        ] {
            assert_eq!(expand_number(expected, low), number, "{expected:#x} {low:#x}");
        }
    }

    #[test]
    fn a_body_is_payload_then_frames_then_their_length() {
        let mut body = *b"payloadFRAMES\x00\x06";
        let (payload, frames) = split_body(&mut body).unwrap();
        assert_eq!((&payload[..], frames), (&b"payload"[..], &b"FRAMES"[..]));
        assert_eq!(split_body(&mut []), Err(Malformed));
        assert_eq!(split_body(&mut [0]), Err(Malformed));
        assert_eq!(split_body(&mut [0, 0]), Ok((&mut [][..], &[][..])));
        assert_eq!(split_body(&mut [9, 0, 1]), Ok((&mut [][..], &[9][..])));
        assert_eq!(split_body(&mut [9, 0, 2]), Err(Malformed));
    }

    proptest! {
        #[test]
        fn a_header_comes_back_through_any_mask(
            phase in 0u8..4, ignored: bool, id: [u8; 8], number: u32, mask: [u8; 5],
        ) {
            let header = PacketHeader { phase, ignored, destination: ConnectionId(id), number };
            let mut packet = [0; MIN_PACKET_LEN];
            header.emit(&mut packet).unwrap();
            prop_assert_eq!(&packet[..PACKET_HEADER_LEN], &header.to_bytes());
            apply_mask(&mut packet, mask);
            prop_assert_eq!(ProtectedPacket::parse(&packet).unwrap().destination(), header.destination);
            apply_mask(&mut packet, mask);
            prop_assert_eq!(PacketHeader::parse(&packet), Ok(header));
            prop_assert_eq!(unprotected(packet[0]), (phase, true));
            for len in 0..PACKET_HEADER_LEN {
                prop_assert_eq!(PacketHeader::parse(&packet[..len]), Err(Malformed));
            }
        }

        /// `PROTO §5.3`: whatever is within 2^31 of the expected number is found again.
        #[test]
        fn a_number_near_the_expected_one_comes_back(expected in 0..=varint::MAX + 1, delta in -(1i64 << 31) + 1..1 << 31) {
            let number = expected.saturating_add_signed(delta).min(varint::MAX);
            prop_assert_eq!(expand_number(expected, number as u32), number);
        }

        #[test]
        fn arbitrary_bodies_split_without_loss_or_not_at_all(mut body in proptest::collection::vec(any::<u8>(), 0..64), len in 0u16..80) {
            if let Some(end) = body.last_chunk_mut() {
                *end = len.to_be_bytes();
            }
            let whole = body.len();
            match split_body(&mut body) {
                Ok((payload, frames)) => {
                    prop_assert_eq!(frames.len(), usize::from(len));
                    prop_assert_eq!(payload.len() + frames.len() + 2, whole);
                }
                Err(Malformed) => prop_assert!(whole < usize::from(len) + 2),
            }
        }
    }
}
