//! The Internet checksum (RFC 1071).

/// The sum of `bytes` as 16-bit words, not yet folded; a zero follows an odd last byte.
///
/// Words are of the machine's own byte order: sums are equal but for it (RFC 1071 §2 (B)), and the result goes into the
/// header as it lies in memory. Sums of parts add up if all but the last part are of even length. Words of 32 bits in a
/// sum of 64 are what compilers turn into vector instructions.
#[inline] // where the length is known, hardly anything is left of it
pub(super) fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<4>();
    let sum: u64 = words.iter().map(|word| u64::from(u32::from_ne_bytes(*word))).sum();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    sum + u64::from(u32::from_ne_bytes(last))
}

/// A sum as one word, carries added. Zero only if all words were zero.
pub(super) fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use hex_literal::hex;
    use proptest::prelude::*;

    /// Word by word, as RFC 1071 describes it.
    fn reference(bytes: &[u8]) -> u16 {
        let words = bytes.chunks(2).map(|pair| u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
        words.fold(0, |sum, word| {
            let (sum, carry) = u16::overflowing_add(sum, word);
            sum + u16::from(carry)
        })
    }

    fn checksum(bytes: &[u8]) -> u16 {
        u16::from_be_bytes(fold(sum(bytes)).to_ne_bytes())
    }

    #[test]
    fn the_examples_of_rfc_1071_have_its_sums() {
        assert_eq!(checksum(&hex!("0001 f203 f4f5 f6f7")), 0xddf2);
        // The bytes of each word exchanged: so are those of the sum.
        assert_eq!(checksum(&hex!("0100 03f2 f5f4 f7f6")), 0xf2dd);
        assert_eq!(checksum(&hex!("0001 f2")), 0xf201);
        assert_eq!(checksum(&[]), 0);
    }

    #[test]
    fn a_header_with_its_checksum_sums_up_to_ones() {
        assert_eq!(checksum(&hex!("4500 0073 0000 4000 4011 b861 c0a8 0001 c0a8 00c7")), 0xffff);
        assert_eq!(!checksum(&hex!("4500 0073 0000 4000 4011 0000 c0a8 0001 c0a8 00c7")), 0xb861);
    }

    #[test]
    fn the_largest_packet_of_ones_does_not_overflow() {
        let packet = vec![0xff; 65_535];
        assert_eq!(checksum(&packet), reference(&packet));
    }

    proptest! {
        #[test]
        fn sums_are_those_of_single_words(bytes in prop::collection::vec(any::<u8>(), 0..300), cut in 0_usize..150) {
            prop_assert_eq!(checksum(&bytes), reference(&bytes));
            let (head, tail) = bytes.split_at((2 * cut).min(bytes.len()));
            prop_assert_eq!(fold(sum(head) + sum(tail)), fold(sum(&bytes)));
        }
    }
}
