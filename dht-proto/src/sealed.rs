//! A node whose messages are sealed: what travels between hosts (`PROTO §14.2`).

use core::net::SocketAddr;

use wraith_proto::crypto::CryptoProvider;
use wraith_proto::sealed::{Mailbox, NOTE_BODY_AT, NOTE_OVERHEAD};
use wraith_proto::{Identity, Instant};

use crate::config::Limits;
use crate::dht::{Dht, DropReason, Transmit};
use crate::header::{Header, MAX_DATAGRAM};

/// A [`Dht`] and the [`Mailbox`] that seals and opens for it: datagrams in, datagrams out.
///
/// A message makes its keys on the heap and frees them; nothing else is allocated once it is made.
#[derive(Debug)]
pub struct SealedDht {
    dht: Dht,
    mailbox: Mailbox,
}

impl SealedDht {
    /// The node of `identity`. It remembers secrets of `peers` peers, which saves an X25519 of a message, so that many make
    /// sense as it has contacts: 512. All that is random follows from `seed`, which is secret and never used again.
    pub fn new(
        limits: &Limits,
        identity: Identity,
        crypto: &'static dyn CryptoProvider,
        peers: u32,
        seed: &[u8; 32],
        now: Instant,
    ) -> Self {
        let dht = Dht::new(limits, &identity.peer_id(), seed, now);
        Self { dht, mailbox: Mailbox::new(identity, crypto, peers) }
    }

    /// Whether a datagram is for a node of the DHT, by its first byte.
    #[inline]
    pub const fn takes(datagram: &[u8]) -> bool {
        Header::is_dht(datagram)
    }

    /// Takes a datagram, which is opened where it lies. What it may cost is in [`Limits::rate`] and [`Limits::strangers`].
    ///
    /// # Errors
    /// Why it was dropped.
    pub fn handle(&mut self, now: Instant, from: SocketAddr, datagram: &mut [u8]) -> Result<(), DropReason> {
        if datagram.len() > MAX_DATAGRAM {
            return Err(DropReason::Malformed);
        }
        let Some(admitted) = self.dht.admit(now, from, datagram)? else { return Ok(()) };
        let (header, note) = datagram.split_at_mut(admitted.header());
        let (peer, message) = self.mailbox.open_note(header, note).map_err(|_| DropReason::NotGenuine)?;
        self.dht.handle(now, admitted, peer.as_bytes(), message)
    }

    /// Writes the next datagram into `buffer`, which has at least [`MAX_DATAGRAM`] bytes: where to, and its length.
    pub fn poll_transmit(&mut self, now: Instant, buffer: &mut [u8]) -> Option<(SocketAddr, usize)> {
        let buffer = buffer.get_mut(..MAX_DATAGRAM)?;
        loop {
            let transmit = self.dht.poll_transmit(now, buffer)?;
            match self.seal(&transmit, buffer) {
                Some(len) => return Some((transmit.to, len)),
                None => self.dht.give_up(&buffer[..transmit.header]),
            }
        }
    }

    /// The node itself: lookups, news, time.
    pub const fn dht(&self) -> &Dht {
        &self.dht
    }

    /// The node itself: lookups, news, time. Its own `admit`, `handle` and `poll_transmit` are not for messages that are
    /// sealed.
    pub const fn dht_mut(&mut self) -> &mut Dht {
        &mut self.dht
    }

    /// Seals what stands behind the header, and says how long the datagram is; [`None`] if nobody can be sealed to.
    fn seal(&mut self, transmit: &Transmit, buffer: &mut [u8]) -> Option<usize> {
        let Transmit { header, len, key: Some(key), .. } = transmit else { return Some(transmit.len) };
        let (clear, note) = buffer.split_at_mut(*header);
        let body = len - header;
        let note = note.get_mut(..body + NOTE_OVERHEAD)?;
        note.copy_within(..body, NOTE_BODY_AT);
        let to = self.mailbox.recognise(key)?;
        let randomness = self.dht.randomness();
        self.mailbox.seal_note(clear, &to, &randomness, note).ok()?;
        Some(len + NOTE_OVERHEAD)
    }
}
