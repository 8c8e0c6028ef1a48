//! RFC 4648 base32, lower case, without padding, strict.

use alloc::string::String;
use alloc::vec::Vec;

const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Appends the text form of `bytes`.
pub(crate) fn encode(bytes: &[u8], out: &mut String) {
    let (mut bits, mut held) = (0u32, 0u32);
    for byte in bytes {
        bits = bits << 8 | u32::from(*byte);
        held += 8;
        while held >= 5 {
            held -= 5;
            out.push(char::from(ALPHABET[(bits >> held & 31) as usize]));
        }
    }
    if held > 0 {
        out.push(char::from(ALPHABET[(bits << (5 - held) & 31) as usize]));
    }
}

/// The bytes of `text`, or `None` for a foreign character, an impossible length or stray bits at the end.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() * 5 / 8);
    let (mut bits, mut held) = (0u32, 0u32);
    for character in text.bytes() {
        let value = match character {
            b'a'..=b'z' => character - b'a',
            b'2'..=b'7' => character - b'2' + 26,
            _ => return None,
        };
        bits = (bits << 5 | u32::from(value)) & 0xfff;
        held += 5;
        if held >= 8 {
            held -= 8;
            out.push((bits >> held) as u8);
        }
    }
    // Exactly one text stands for the bytes: no whole spare character, no set bit behind the last byte.
    (held < 5 && bits & ((1 << held) - 1) == 0).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vectors_of_rfc_4648_hold_in_lower_case_without_padding() {
        for (bytes, text) in [
            ("", ""),
            ("f", "my"),
            ("fo", "mzxq"),
            ("foo", "mzxw6"),
            ("foob", "mzxw6yq"),
            ("fooba", "mzxw6ytb"),
            ("foobar", "mzxw6ytboi"),
        ] {
            let mut out = String::new();
            encode(bytes.as_bytes(), &mut out);
            assert_eq!(out, text);
            assert_eq!(decode(text).as_deref(), Some(bytes.as_bytes()));
        }
    }

    #[test]
    fn a_second_spelling_of_the_same_bytes_is_refused() {
        for text in ["mz", "MY", "my======", "mya", "m", "m1", "my "] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
