//! Sessions: what an application sees of one, and what the endpoint keeps of it.

mod cids;
mod epochs;
mod expanded;
mod path;
mod replay;
mod state;

use core::net::{IpAddr, SocketAddr};

use bytes::Bytes;

pub(crate) use cids::{Cids, Numbered, Sequence};
pub(crate) use epochs::{BadShare, Keys, Lifetime};
pub(crate) use expanded::KeyPool;
pub(crate) use path::{Ask, CHALLENGE_LEN, Check, CheckSlot, MAX_CHECKS, Stage};
pub(crate) use replay::Seen;
pub(crate) use state::{Control, Ending, EventBits, Path, PeerParameters, Phase, SessionState};

use crate::crypto::{PeerId, Suite};
use crate::endpoint::Endpoint;
use crate::error::{DatagramError, OpenError, ReadError, SessionError, WriteError};
use crate::meta::Via;
use crate::stats::SessionStats;
use crate::stream::{Dir, StreamId};
use crate::time::Instant;

/// Names a session of one endpoint. A handle of a session that is over stays invalid for ever.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct SessionHandle {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

/// A borrowed view of one session.
#[derive(Debug)]
pub struct Session<'a> {
    endpoint: &'a mut Endpoint,
    handle: SessionHandle,
}

impl<'a> Session<'a> {
    pub(crate) fn new(endpoint: &'a mut Endpoint, handle: SessionHandle) -> Self {
        Self { endpoint, handle }
    }

    /// Admits a peer after `Event::Authorize`.
    ///
    /// # Errors
    /// [`SessionError`] if the session does not wait for it.
    pub fn authorize(&mut self, now: Instant) -> Result<(), SessionError> {
        self.endpoint.authorize(self.handle.index, now)
    }

    /// Opens a stream. The peer learns of it with the first data.
    ///
    /// # Errors
    /// [`OpenError`]; after `PeerLimit`, `Event::StreamsUnblocked` follows.
    pub fn open(&mut self, dir: Dir) -> Result<StreamId, OpenError> {
        self.endpoint.open_stream(self.handle.index, dir)
    }

    /// Queues a chunk whole, or refuses it whole. Chunks are kept until they are acknowledged, not copied.
    ///
    /// # Errors
    /// [`WriteError`]; after `Blocked`, `Event::Writable` follows.
    pub fn write(&mut self, stream: StreamId, chunk: Bytes) -> Result<(), WriteError> {
        self.endpoint.write_stream(self.handle.index, stream, chunk)
    }

    /// Makes the stream exactly `len` bytes that the `Source` is asked for; nothing may be written before.
    ///
    /// # Errors
    /// [`WriteError`]
    pub fn attach(&mut self, stream: StreamId, len: u64) -> Result<(), WriteError> {
        self.endpoint.attach_stream(self.handle.index, stream, len)
    }

    /// Ends the stream behind what was written.
    ///
    /// # Errors
    /// [`WriteError`]
    pub fn finish(&mut self, stream: StreamId) -> Result<(), WriteError> {
        self.endpoint.finish_stream(self.handle.index, stream)
    }

    /// Gives up sending on the stream.
    ///
    /// # Errors
    /// [`WriteError`]
    pub fn reset(&mut self, stream: StreamId, code: u32) -> Result<(), WriteError> {
        self.endpoint.reset_stream(self.handle.index, stream, code)
    }

    /// Lets the peer send up to offset `up_to`; after a refusal, also if that is no news (`PROTO §7.5`).
    ///
    /// # Errors
    /// [`ReadError`]
    pub fn grant(&mut self, stream: StreamId, up_to: u64) -> Result<(), ReadError> {
        self.endpoint.grant_stream(self.handle.index, stream, up_to)
    }

    /// Asks the peer to stop sending; what arrives from now on is dropped.
    ///
    /// # Errors
    /// [`ReadError`]
    pub fn stop(&mut self, stream: StreamId, code: u32) -> Result<(), ReadError> {
        self.endpoint.stop_stream(self.handle.index, stream, code)
    }

    /// Sets the stream's priority, 0 (first) to 7; a new stream has 3. Larger values count as 7.
    ///
    /// Streams of one level share evenly; a level sends only when those before it have nothing to send.
    ///
    /// # Errors
    /// [`WriteError`]
    pub fn set_priority(&mut self, stream: StreamId, level: u8) -> Result<(), WriteError> {
        self.endpoint.set_stream_level(self.handle.index, stream, level)
    }

    /// Queues an unreliable datagram.
    ///
    /// # Errors
    /// [`DatagramError`]; after `Blocked`, `Event::DatagramsUnblocked` follows.
    pub fn send_datagram(&mut self, data: Bytes) -> Result<(), DatagramError> {
        self.endpoint.queue_datagram(self.handle.index, data)
    }

    /// Largest datagram that fits in one packet of the present path, in bytes. With `Transport::mtu_search` it grows and
    /// shrinks, as `Event::MaxDatagramChanged` tells.
    pub fn max_datagram(&self) -> usize {
        self.endpoint.max_datagram_of(self.handle.index)
    }

    /// Tells the search for the path's datagram size that somebody knows the path to carry no more than `largest` bytes
    /// of UDP payload: of a datagram of `n` bytes that the system refused with `EMSGSIZE` that is `n - 1`.
    ///
    /// A hint never raises the size, and never lowers it below 1,200 bytes, whatever it says: what a hint took away is
    /// asked for again after a minute (`PROTO §8.16`). Without `Transport::mtu_search` it changes nothing.
    pub fn path_mtu_hint(&mut self, now: Instant, largest: u16) {
        self.endpoint.hint_mtu(self.handle.index, now, largest);
    }

    /// Tells the session that this end's own address has changed, or will: it goes on from the new one, by another
    /// connection id, and asks nothing of what it knew of the path (`PROTO §13.9`).
    ///
    /// `local` and `via` are what datagrams leave with from now on: the new address, or `None` for what the system
    /// chooses, and a driver's token as in `Endpoint::connect`. A change that goes unnoticed, of a NAT on the way, needs
    /// no call: the peer finds out with the next packet.
    ///
    /// # Errors
    /// [`SessionError::NoConnectionId`] if the peer has given no fresh id: nothing has changed, try again after its next
    /// packets. [`SessionError::Closed`] if the session is not up.
    pub fn migrate(&mut self, now: Instant, local: Option<IpAddr>, via: Via) -> Result<(), SessionError> {
        self.endpoint.migrate(self.handle.index, now, local, via)
    }

    /// Sends a packet that the peer acknowledges, and with it measures the round trip.
    ///
    /// # Errors
    /// [`SessionError`] if the session is not up.
    pub fn ping(&mut self) -> Result<(), SessionError> {
        self.endpoint.ping_session(self.handle.index)
    }

    /// Ends the session; the peer learns `code`.
    pub fn close(&mut self, now: Instant, code: u32) {
        self.endpoint.close_session(self.handle.index, now, code);
    }

    /// The session that takes the place of this one, which was closed as `CloseReason::Replaced` by this end
    /// (`PROTO §9.21`). `None` if the peer replaced it: the successor is then the newest session with it.
    pub fn successor(&self) -> Option<SessionHandle> {
        self.endpoint.successor_of(self.handle.index)
    }

    /// Who the peer is, once it has proven it; the pinned identity before.
    pub fn peer(&self) -> Option<PeerId> {
        self.state().peer
    }

    /// Where the peer is; another address after `Event::PathChanged`.
    pub fn remote(&self) -> SocketAddr {
        self.state().path.remote
    }

    /// The application protocol that both ends chose.
    pub fn protocol(&self) -> Option<&[u8]> {
        let state = self.state();
        state.keys.as_ref()?;
        self.endpoint.config().protocols.get(usize::from(state.protocol)).map(|name| &name[..])
    }

    /// The suite that protects the packets.
    pub fn suite(&self) -> Option<Suite> {
        self.state().keys.as_ref().map(|keys| keys.suite)
    }

    /// A secret that both ends of this session get for the same `label`, and nobody else: a channel binding, or keys
    /// of a protocol of the application's own (`PROTO §3.9`). `None` before the handshake is done.
    ///
    /// The label names the purpose, worldwide, for example `"example.com chat 2026-11-30 login"`.
    pub fn export(&self, label: &'static str) -> Option<[u8; 32]> {
        self.state().keys.as_ref().map(|keys| keys.export(label))
    }

    /// Counters and estimates.
    pub fn stats(&self) -> SessionStats {
        self.state().stats()
    }

    fn state(&self) -> &SessionState {
        self.endpoint.state(self.handle.index)
    }
}
