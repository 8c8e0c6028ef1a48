//! What the two ends of a benchmark tell each other, on a stream of their own: how much was sent, and how much
//! arrived. Numbers are big-endian.

use std::time::Duration;

/// The sender's question: the number of datagrams it sent; 0 asks for an answer at once.
pub(crate) const QUESTION_LEN: usize = 8;

/// The receiver's answer.
pub(crate) const ANSWER_LEN: usize = 32;

/// Stands for a CPU time that is not known.
const UNKNOWN: u64 = u64::MAX;

/// What arrived at the receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counts {
    /// Application bytes.
    pub(crate) bytes: u64,
    /// Packets that carried them.
    pub(crate) packets: u64,
    /// From the first to the last.
    pub(crate) time: Duration,
    /// CPU time of the receiving thread meanwhile, if it is known.
    pub(crate) cpu: Option<Duration>,
}

impl Counts {
    pub(crate) fn to_bytes(self) -> [u8; ANSWER_LEN] {
        let nanos = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(UNKNOWN - 1);
        let fields = [self.bytes, self.packets, nanos(self.time), self.cpu.map_or(UNKNOWN, nanos)];
        let mut bytes = [0; ANSWER_LEN];
        for (place, field) in bytes.chunks_exact_mut(8).zip(fields) {
            place.copy_from_slice(&field.to_be_bytes());
        }
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8; ANSWER_LEN]) -> Self {
        let (fields, _) = bytes.as_chunks::<8>();
        let field = |index: usize| fields.get(index).map_or(0, |field| u64::from_be_bytes(*field));
        Self {
            bytes: field(0),
            packets: field(1),
            time: Duration::from_nanos(field(2)),
            cpu: Some(field(3)).filter(|nanos| *nanos != UNKNOWN).map(Duration::from_nanos),
        }
    }
}

/// A message of fixed length, put together from stream pieces in any order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message<const LEN: usize> {
    bytes: [u8; LEN],
    filled: usize,
}

impl<const LEN: usize> Default for Message<LEN> {
    fn default() -> Self {
        Self { bytes: [0; LEN], filled: 0 }
    }
}

impl<const LEN: usize> Message<LEN> {
    /// Takes a piece; what lies beyond the message is left out. The core lends each byte once.
    pub(crate) fn take(&mut self, offset: u64, data: &[u8]) {
        let Some(place) = usize::try_from(offset).ok().and_then(|offset| self.bytes.get_mut(offset..)) else {
            return;
        };
        let len = data.len().min(place.len());
        place[..len].copy_from_slice(&data[..len]);
        self.filled += len;
    }

    /// The message, if it is whole.
    pub(crate) fn bytes(&self) -> Option<&[u8; LEN]> {
        (self.filled == LEN).then_some(&self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_survive_the_wire() {
        let counts = Counts {
            bytes: 1 << 40,
            packets: 7,
            time: Duration::from_nanos(11),
            cpu: Some(Duration::from_millis(3)),
        };
        assert_eq!(Counts::from_bytes(&counts.to_bytes()), counts);
        let unknown = Counts { cpu: None, time: Duration::MAX, ..counts };
        let read = Counts::from_bytes(&unknown.to_bytes());
        assert_eq!((read.cpu, read.time), (None, Duration::from_nanos(u64::MAX - 1)));
    }

    #[test]
    fn a_message_is_whole_when_every_byte_came_and_ignores_what_is_beyond() {
        let mut message = Message::<4>::default();
        message.take(2, &[3, 4, 5]);
        message.take(u64::MAX, &[9]);
        message.take(4, &[9]);
        assert_eq!(message.bytes(), None);
        message.take(0, &[1, 2]);
        assert_eq!(message.bytes(), Some(&[1, 2, 3, 4]));
    }
}
