//! Writing the fields of messages and tickets; the core's [`Reader`] reads them.

use alloc::vec::Vec;
use wraith_proto::wire::varint;

pub(crate) use wraith_proto::wire::{Malformed, Reader};

/// Appends `value`, at most [`varint::MAX`], in its shortest form.
pub(crate) fn put_varint(out: &mut Vec<u8>, value: u64) {
    let mut bytes = [0; varint::MAX_LEN];
    // Sizes, chunks and codes are far below the largest varint.
    if let Ok(len) = varint::write(value.min(varint::MAX), &mut bytes) {
        out.extend_from_slice(&bytes[..len]);
    }
}

/// `value` if nothing is left, so that no byte of a message is without meaning.
pub(crate) fn end<T>(reader: Reader<'_>, value: T) -> Result<T, Malformed> {
    if reader.is_empty() { Ok(value) } else { Err(Malformed) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `PROTO §1.1`
    #[test]
    fn a_varint_is_appended_in_its_shortest_form() {
        for (value, bytes) in [
            (63, &[0x3f][..]),
            (64, &[0x40, 0x40]),
            (16_384, &[0x80, 0x00, 0x40, 0x00]),
            (1 << 30, &[0xc0, 0, 0, 0, 0x40, 0, 0, 0]),
        ] {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            assert_eq!(out, bytes);
        }
    }
}
