//! Variable-length integers of RFC 9000 §16, in the fewest bytes only (`PROTO §1.1`).

use super::{Full, Malformed};

/// The largest number that has an encoding, 2^62 − 1.
pub const MAX: u64 = (1 << 62) - 1;

/// The largest encoding in bytes.
pub const MAX_LEN: usize = 8;

/// Bytes that a number takes: 1, 2, 4 or 8. Numbers over [`MAX`] have no encoding; they count as 8.
#[inline]
pub const fn size(value: u64) -> usize {
    match value {
        0..0x40 => 1,
        0x40..0x4000 => 2,
        0x4000..0x4000_0000 => 4,
        _ => 8,
    }
}

/// Reads a number from the front; returns it and the bytes behind it.
///
/// # Errors
/// [`Malformed`] if the bytes end early or a shorter encoding exists (`PROTO §1.1`).
#[inline]
pub fn read(bytes: &[u8]) -> Result<(u64, &[u8]), Malformed> {
    match bytes {
        [first @ 0..0x40, rest @ ..] => Ok((u64::from(*first), rest)),
        _ => read_long(bytes),
    }
}

fn read_long(bytes: &[u8]) -> Result<(u64, &[u8]), Malformed> {
    let (value, least, rest) = match bytes {
        [0x40..0x80, ..] => {
            let (raw, rest) = bytes.split_first_chunk().ok_or(Malformed)?;
            (u64::from(u16::from_be_bytes(*raw) & 0x3fff), 0x40, rest)
        }
        [0x80..0xc0, ..] => {
            let (raw, rest) = bytes.split_first_chunk().ok_or(Malformed)?;
            (u64::from(u32::from_be_bytes(*raw) & 0x3fff_ffff), 0x4000, rest)
        }
        _ => {
            let (raw, rest) = bytes.split_first_chunk().ok_or(Malformed)?;
            (u64::from_be_bytes(*raw) & MAX, 0x4000_0000, rest)
        }
    };
    if value < least { Err(Malformed) } else { Ok((value, rest)) }
}

/// Writes a number to the front of `out`; returns the bytes it took.
///
/// # Errors
/// [`Full`] if `out` is too short or the number is over [`MAX`]; then nothing is written.
#[inline]
pub fn write(value: u64, out: &mut [u8]) -> Result<usize, Full> {
    let len = size(value);
    let out = out.get_mut(..len).ok_or(Full)?;
    match len {
        1 => out.copy_from_slice(&[value as u8]),
        2 => out.copy_from_slice(&(value as u16 | 0x4000).to_be_bytes()),
        4 => out.copy_from_slice(&(value as u32 | 0x8000_0000).to_be_bytes()),
        _ if value <= MAX => out.copy_from_slice(&(value | 0xc000_0000_0000_0000).to_be_bytes()),
        _ => return Err(Full),
    }
    Ok(len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encode(value: u64) -> ([u8; MAX_LEN], usize) {
        let mut out = [0; MAX_LEN];
        let len = write(value, &mut out).unwrap();
        (out, len)
    }

    /// RFC 9000 appendix A.1.
    #[test]
    fn the_samples_of_rfc_9000_read_and_write_alike() {
        let samples: [(&[u8], u64); 4] = [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
        ];
        for (bytes, value) in samples {
            assert_eq!(read(bytes), Ok((value, &[][..])));
            let (out, len) = encode(value);
            assert_eq!(&out[..len], bytes);
        }
    }

    /// `PROTO §1.1`: a varint MUST be encoded in the fewest bytes.
    #[test]
    fn an_encoding_longer_than_needed_is_malformed() {
        for bytes in [
            &[0x40, 0x25][..],
            &[0x40, 0x3f],
            &[0x80, 0, 0, 0],
            &[0x80, 0, 0x3f, 0xff],
            &[0xc0, 0, 0, 0, 0, 0, 0, 1],
            &[0xc0, 0, 0, 0, 0x3f, 0xff, 0xff, 0xff],
        ] {
            assert_eq!(read(bytes), Err(Malformed), "{bytes:02x?}");
        }
    }

    #[test]
    fn each_length_begins_where_the_one_before_ends() {
        for (value, len) in [
            (0, 1),
            (0x3f, 1),
            (0x40, 2),
            (0x3fff, 2),
            (0x4000, 4),
            (0x3fff_ffff, 4),
            (0x4000_0000, 8),
            (MAX, 8),
        ] {
            assert_eq!(size(value), len);
            let (out, written) = encode(value);
            assert_eq!(written, len);
            assert_eq!(read(&out[..len]), Ok((value, &[][..])));
        }
    }

    #[test]
    fn a_number_over_the_largest_is_not_written() {
        let mut out = [7; 8];
        assert_eq!(write(MAX + 1, &mut out), Err(Full));
        assert_eq!(write(u64::MAX, &mut out), Err(Full));
        assert_eq!(out, [7; 8]);
    }

    proptest! {
        #[test]
        fn every_number_comes_back_and_every_shorter_buffer_is_refused(bits in 0u32..=62, raw in any::<u64>()) {
            let value = raw & ((1 << bits) - 1);
            let (out, len) = encode(value);
            prop_assert_eq!(len, size(value));
            prop_assert_eq!(read(&out[..len]), Ok((value, &[][..])));
            for short in 0..len {
                prop_assert_eq!(read(&out[..short]), Err(Malformed));
                prop_assert_eq!(write(value, &mut [0; 8][..short]), Err(Full));
            }
        }

        #[test]
        fn whatever_reads_writes_back_to_the_same_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..12)) {
            if let Ok((value, rest)) = read(&bytes) {
                let (out, len) = encode(value);
                prop_assert_eq!(&out[..len], &bytes[..bytes.len() - rest.len()]);
            }
        }
    }
}
