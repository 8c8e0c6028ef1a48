//! The control stream as messages: whole frames out of pieces of any length.

use crate::code::Violation;
use crate::codec::Reader;
use crate::message::{MAX_MESSAGE, Message};
use alloc::vec::Vec;

/// Cuts the bytes of a control stream into messages; holds at most one that is not complete.
#[derive(Debug, Default)]
pub(crate) struct ControlReader {
    partial: Vec<u8>,
    /// The message in `partial` was handed out and may go.
    taken: bool,
}

impl ControlReader {
    /// Type and body of the next message, from what was held and from `input`, which moves on; `None` when
    /// more bytes are needed.
    pub(crate) fn next<'s, 'i: 's>(
        &'s mut self,
        input: &mut &'i [u8],
    ) -> Result<Option<&'s [u8]>, Violation> {
        if self.taken {
            self.partial.clear();
            self.taken = false;
        }
        // Whole in the input: no copy.
        if self.partial.is_empty()
            && let Some((start, end)) = frame(input)?.filter(|(_, end)| *end <= input.len())
        {
            let (whole, rest) = input.split_at(end);
            *input = rest;
            return Ok(Some(&whole[start..]));
        }
        let Some(start) = self.complete(input)? else {
            return Ok(None);
        };
        self.taken = true;
        Ok(Some(&self.partial[start..]))
    }

    /// Moves bytes over until `partial` is a whole frame; where its message begins.
    fn complete(&mut self, input: &mut &[u8]) -> Result<Option<usize>, Violation> {
        loop {
            let missing = match frame(&self.partial)? {
                Some((start, end)) if end == self.partial.len() => return Ok(Some(start)),
                Some((_, end)) => end - self.partial.len(),
                None => 1,
            };
            if input.is_empty() {
                return Ok(None);
            }
            let (now, later) = input.split_at(missing.min(input.len()));
            self.partial.extend_from_slice(now);
            *input = later;
        }
    }
}

/// Where the first message of `bytes` begins and ends, once its length is there.
fn frame(bytes: &[u8]) -> Result<Option<(usize, usize)>, Violation> {
    let Some(first) = bytes.first() else {
        return Ok(None);
    };
    let prefix = 1usize << (first >> 6);
    // Eight bytes always say more than is allowed.
    if prefix > 4 {
        return Err(Violation::MessageLength);
    }
    let Some(head) = bytes.get(..prefix) else {
        return Ok(None);
    };
    let len = Reader::new(head).varint().map_err(|_| Violation::Malformed)?;
    if len == 0 || len > MAX_MESSAGE as u64 {
        return Err(Violation::MessageLength);
    }
    Ok(Some((prefix, prefix + len as usize)))
}

/// Encoded messages on their way out, handed over in pieces of any length.
#[derive(Debug, Default)]
pub(crate) struct ControlWriter {
    bytes: Vec<u8>,
    sent: usize,
}

impl ControlWriter {
    pub(crate) fn push(&mut self, message: &Message<'_>) {
        if self.is_empty() {
            self.bytes.clear();
            self.sent = 0;
        }
        message.encode(&mut self.bytes);
    }

    /// Moves as much as there is and fits into `buffer`; how much that was.
    pub(crate) fn poll(&mut self, buffer: &mut [u8]) -> usize {
        let waiting = &self.bytes[self.sent..];
        let len = waiting.len().min(buffer.len());
        buffer[..len].copy_from_slice(&waiting[..len]);
        self.sent += len;
        len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sent == self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::Code;
    use alloc::vec;
    use proptest::prelude::*;

    fn read(reader: &mut ControlReader, mut bytes: &[u8]) -> Result<Vec<u32>, Violation> {
        let mut transfers = Vec::new();
        while let Some(frame) = reader.next(&mut bytes)? {
            match Message::decode(frame)? {
                Some(Message::DoneAck { transfer } | Message::List { transfer, .. }) => {
                    transfers.push(transfer);
                }
                Some(other) => panic!("{other:?}"),
                None => {}
            }
        }
        assert!(bytes.is_empty());
        Ok(transfers)
    }

    /// `PROTO §10.3`
    #[test]
    fn the_length_in_front_is_capped_before_anything_is_kept() {
        let mut reader = ControlReader::default();
        assert_eq!(read(&mut reader, &[0]), Err(Violation::MessageLength), "no bytes");
        for prefix in [&[0x80, 0x01, 0x00, 0x01][..], &[0xbf, 0xff, 0xff, 0xff], &[0xc0]] {
            let mut reader = ControlReader::default();
            assert_eq!(read(&mut reader, prefix), Err(Violation::MessageLength), "{prefix:?}");
            assert!(reader.partial.capacity() <= 8);
        }
        assert_eq!(
            read(&mut ControlReader::default(), &[0x40, 1]),
            Err(Violation::Malformed),
            "1 in two bytes"
        );
        let mut largest = vec![0x80, 0x01, 0x00, 0x00];
        largest.resize(4 + MAX_MESSAGE, 0x40);
        largest.extend([2, 7, 9]);
        assert_eq!(
            read(&mut ControlReader::default(), &largest),
            Ok(vec![9]),
            "an extension of the largest size"
        );
    }

    #[test]
    fn a_writer_hands_over_what_fits_and_goes_on_there() {
        let mut writer = ControlWriter::default();
        writer.push(&Message::Cancel { transfer: 1, code: Code(2) });
        let mut buffer = [0; 3];
        assert_eq!((writer.poll(&mut buffer), buffer), (3, [3, 9, 1]));
        writer.push(&Message::DoneAck { transfer: 5 });
        assert_eq!((writer.poll(&mut buffer), buffer), (3, [2, 2, 7]));
        assert_eq!((writer.poll(&mut buffer), writer.is_empty()), (1, true));
        assert_eq!(writer.poll(&mut buffer), 0);
    }

    proptest! {
        #[test]
        fn messages_survive_any_cutting(cuts in proptest::collection::vec(1usize..700, 1..60)) {
            let mut writer = ControlWriter::default();
            let values = vec![3; 32 * 40];
            for transfer in 0..12 {
                writer.push(&Message::DoneAck { transfer: 2 * transfer });
                let list = crate::ListId { level: 1, index: 0 };
                writer.push(&Message::List { transfer: 2 * transfer + 1, list, values: &values });
            }
            let (mut reader, mut got) = (ControlReader::default(), Vec::new());
            for cut in cuts.iter().cycle() {
                let mut piece = vec![0; *cut];
                let len = writer.poll(&mut piece);
                if len == 0 {
                    break;
                }
                got.extend(read(&mut reader, &piece[..len]).unwrap());
            }
            prop_assert_eq!(got, (0..24).collect::<Vec<u32>>());
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), cut in 1usize..9) {
            let mut reader = ControlReader::default();
            'all: for mut piece in bytes.chunks(cut) {
                loop {
                    match reader.next(&mut piece) {
                        Ok(Some(_)) => {}
                        Ok(None) => break,
                        Err(_) => break 'all,
                    }
                }
            }
        }
    }
}
