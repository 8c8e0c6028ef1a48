//! What stands before a sealed message, in the clear (`PROTO §14.3`).

use wraith_proto::sealed::NOTE_OVERHEAD;
use wraith_proto::wire::{Full, Malformed, Reader, Writer};

use crate::token::Token;

/// Bytes of a datagram at most, and of a request without an address token: what a path carries (`PROTO §2.1`).
pub const MAX_DATAGRAM: usize = 1_200;

/// Bytes of a datagram before its message is sealed at most: header and message.
pub const MAX_UNSEALED: usize = MAX_DATAGRAM - NOTE_OVERHEAD;

/// Bytes of a header at most.
pub const MAX_HEADER: usize = 1 + 8 + 16;

/// What an answer repeats of its request, so that who has not seen that cannot answer.
pub type Transaction = [u8; 8];

const REQUEST: u8 = 0x62;
const ANSWER: u8 = 0x63;
const TOKEN: u8 = 0x64;

/// The beginning of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Header {
    /// A sealed [`Ask`](crate::Ask) follows.
    Request {
        /// To be repeated in the answer.
        transaction: Transaction,
        /// The address token, or zeros for none.
        token: Token,
    },
    /// A sealed [`Reply`](crate::Reply) follows.
    Answer {
        /// Of the request.
        transaction: Transaction,
    },
    /// Nothing follows: the request was not opened, and is to be sent again with this token.
    Token {
        /// Of the request.
        transaction: Transaction,
        /// The address token.
        token: Token,
    },
}

impl Header {
    /// Whether a datagram is one of the DHT, by its first byte.
    #[inline]
    pub const fn is_dht(datagram: &[u8]) -> bool {
        matches!(datagram, [REQUEST | ANSWER | TOKEN, ..])
    }

    /// Reads a header, and says how many bytes it takes.
    ///
    /// # Errors
    /// [`Malformed`] if it is none, or something follows where nothing may.
    pub fn parse(datagram: &[u8]) -> Result<(Self, usize), Malformed> {
        let mut reader = Reader::new(datagram);
        let (kind, transaction) = (reader.u8()?, *reader.array()?);
        let header = match kind {
            REQUEST => Self::Request { transaction, token: *reader.array()? },
            ANSWER => Self::Answer { transaction },
            TOKEN => Self::Token { transaction, token: *reader.array()? },
            _ => return Err(Malformed),
        };
        if kind == TOKEN && !reader.rest().is_empty() {
            return Err(Malformed);
        }
        Ok((header, reader.position()))
    }

    /// Writes it.
    ///
    /// # Errors
    /// [`Full`].
    pub fn write(&self, w: &mut Writer<'_>) -> Result<(), Full> {
        match self {
            Self::Request { transaction, token } => {
                w.u8(REQUEST)?;
                w.array(transaction)?;
                w.array(token)
            }
            Self::Answer { transaction } => {
                w.u8(ANSWER)?;
                w.array(transaction)
            }
            Self::Token { transaction, token } => {
                w.u8(TOKEN)?;
                w.array(transaction)?;
                w.array(token)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    fn written(header: &Header) -> Vec<u8> {
        let mut bytes = [0; MAX_HEADER];
        let mut w = Writer::new(&mut bytes);
        header.write(&mut w).unwrap();
        w.written().to_vec()
    }

    #[test]
    fn each_header_is_read_as_it_was_written() {
        // PROTO §14.3
        let (transaction, token) = ([1, 2, 3, 4, 5, 6, 7, 8], [9; 16]);
        for (header, first, len) in [
            (Header::Request { transaction, token }, 0x62, 25),
            (Header::Answer { transaction }, 0x63, 9),
            (Header::Token { transaction, token }, 0x64, 25),
        ] {
            let bytes = written(&header);
            assert_eq!((bytes[0], bytes.len()), (first, len));
            assert_eq!(Header::parse(&bytes), Ok((header, len)));
            assert!(Header::is_dht(&bytes));
            for shorter in 0..len {
                assert_eq!(Header::parse(&bytes[..shorter]), Err(Malformed));
            }
            let longer = [&bytes[..], &[0]].concat();
            let alone = matches!(header, Header::Token { .. });
            assert_eq!(Header::parse(&longer).is_err(), alone);
        }
    }

    #[test]
    fn other_datagrams_have_no_header() {
        for first in (0..=255).filter(|first| !(0x62..=0x64).contains(first)) {
            let bytes = [first; MAX_HEADER];
            assert!(Header::parse(&bytes).is_err() && !Header::is_dht(&bytes));
        }
        assert!(!Header::is_dht(&[]));
    }
}
