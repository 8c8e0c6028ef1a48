//! Everything that was sent, as one hash and, if wanted, in full.

use wraith_proto::Instant;

/// A running BLAKE3 hash over sender, time and bytes of each datagram, in the order of sending.
///
/// Two runs with equal hashes sent the same bytes at the same times.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    hasher: blake3::Hasher,
    datagrams: u64,
    recording: Option<Recording>,
}

/// One recorded datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry<'a> {
    /// Who sent it: the number of a node, or 0 for the left and 1 for the right one of a pair.
    pub sender: u32,
    /// When it was sent.
    pub at: Instant,
    /// The datagram.
    pub bytes: &'a [u8],
}

#[derive(Clone, Debug, Default)]
struct Recording {
    entries: Vec<(u32, Instant, usize)>,
    bytes: Vec<u8>,
}

impl Transcript {
    /// An empty transcript that keeps the hash alone and allocates nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty transcript that keeps the datagrams as well, for replay.
    pub fn recording() -> Self {
        Self { recording: Some(Recording::default()), ..Self::default() }
    }

    /// Adds a datagram.
    pub fn record(&mut self, sender: u32, at: Instant, bytes: &[u8]) {
        self.datagrams += 1;
        self.hasher.update(&sender.to_le_bytes());
        self.hasher.update(&at.as_nanos().to_le_bytes());
        self.hasher.update(&(bytes.len() as u64).to_le_bytes());
        self.hasher.update(bytes);
        if let Some(recording) = &mut self.recording {
            recording.bytes.extend_from_slice(bytes);
            recording.entries.push((sender, at, recording.bytes.len()));
        }
    }

    /// The hash of everything so far.
    pub fn hash(&self) -> [u8; 32] {
        *self.hasher.finalize().as_bytes()
    }

    /// The same hash in hexadecimal, as tests commit it.
    pub fn hex(&self) -> String {
        self.hasher.finalize().to_hex().to_string()
    }

    /// Datagrams so far.
    pub fn datagrams(&self) -> u64 {
        self.datagrams
    }

    /// The recorded datagrams; none without [`Transcript::recording`].
    pub fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        self.recording.iter().flat_map(|recording| {
            let mut start = 0;
            recording.entries.iter().map(move |&(sender, at, end)| {
                let bytes = &recording.bytes[start..end];
                start = end;
                Entry { sender, at, bytes }
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::from_nanos(5);

    #[test]
    fn the_hash_covers_sender_time_bytes_and_their_borders() {
        let hash = |datagrams: &[(u32, u64, &[u8])]| {
            let mut transcript = Transcript::new();
            for &(sender, at, bytes) in datagrams {
                transcript.record(sender, Instant::from_nanos(at), bytes);
            }
            transcript.hash()
        };
        let base = hash(&[(0, 1, b"ab"), (1, 2, b"c")]);
        assert_eq!(base, hash(&[(0, 1, b"ab"), (1, 2, b"c")]));
        assert_ne!(base, hash(&[(1, 1, b"ab"), (1, 2, b"c")]));
        assert_ne!(base, hash(&[(0, 1, b"ab"), (1, 3, b"c")]));
        assert_ne!(base, hash(&[(0, 1, b"a"), (1, 2, b"bc")]));
        assert_ne!(base, hash(&[(1, 2, b"c"), (0, 1, b"ab")]));
    }

    #[test]
    fn a_recording_gives_the_datagrams_back() {
        let mut transcript = Transcript::recording();
        transcript.record(0, NOW, b"abc");
        transcript.record(1, NOW, b"");
        transcript.record(0, NOW, b"d");
        let entries: Vec<_> = transcript.entries().map(|entry| (entry.sender, entry.bytes)).collect();
        assert_eq!(entries, [(0, &b"abc"[..]), (1, b""), (0, b"d")]);
        assert_eq!(transcript.datagrams(), 3);

        let mut plain = Transcript::new();
        plain.record(0, NOW, b"abc");
        assert_eq!(plain.entries().count(), 0);
    }
}
