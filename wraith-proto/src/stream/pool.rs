//! All streams of all sessions, in one pool of fixed size.

use super::{DEFAULT_LEVEL, Dir, LEVELS, RecvHalf, SendHalf, StreamCount, StreamId};
use crate::util::{KeyTable, Links, List, RangePool, Slab};

/// Small sets of flags: frames that a stream has to send, or events that it has to report.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Bits(u8);

impl Bits {
    /// Frames: `RESET_STREAM`, `STOP_SENDING`, `MAX_STREAM_DATA`, `STREAM_HOLES`, `STREAM_BLOCKED`,
    /// `HOLES_TAKEN`.
    pub(crate) const RESET: Self = Self(1);
    pub(crate) const STOP: Self = Self(2);
    pub(crate) const CREDIT: Self = Self(4);
    pub(crate) const HOLES: Self = Self(8);
    pub(crate) const BLOCKED: Self = Self(16);
    pub(crate) const TAKEN: Self = Self(32);
    /// No frame of its own: the grant that was sent ends the peer's wait after the last report (`PROTO §7.5`).
    pub(crate) const SETTLES: Self = Self(64);
    /// Events.
    pub(crate) const OPENED: Self = Self(1);
    pub(crate) const WAS_RESET: Self = Self(2);
    pub(crate) const STOPPED: Self = Self(4);
    pub(crate) const WRITABLE: Self = Self(8);
    pub(crate) const DELIVERED: Self = Self(16);

    pub(crate) fn insert(&mut self, other: Self) {
        self.0 |= other.0;
    }

    pub(crate) fn remove(&mut self, other: Self) {
        self.0 &= !other.0;
    }

    /// Removes `other` and returns whether any of it was there.
    pub(crate) fn take(&mut self, other: Self) -> bool {
        let had = self.contains(other);
        self.remove(other);
        had
    }

    pub(crate) const fn contains(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// Streams looked at for reports to repeat.
const REPEATED_REPORTS: u32 = 256;

/// One stream.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) id: StreamId,
    pub(crate) level: u8,
    pub(crate) send: Option<SendHalf>,
    pub(crate) recv: Option<RecvHalf>,
    /// Frames to send.
    pub(crate) pending: Bits,
    /// Events to report.
    pub(crate) events: Bits,
}

impl Stream {
    /// Whether both halves are over and the application knows.
    fn is_over(&self) -> bool {
        self.events.is_empty()
            && self.pending.is_empty()
            && self.send.as_ref().is_none_or(SendHalf::is_over)
            && self.recv.as_ref().is_none_or(|recv| recv.is_over() && recv.is_settled())
    }
}

/// The streams of one session: heads of its lists in the pool, and counts.
#[derive(Debug, Default)]
pub(crate) struct SessionStreams {
    pub(crate) ready: [List; LEVELS],
    pub(crate) control: List,
    pub(crate) events: List,
    all: List,
    pub(crate) bi: StreamCount,
    pub(crate) uni: StreamCount,
    /// Streams of each direction that the peer may have open.
    pub(crate) offer: u32,
    /// An `open` was refused for want of the peer's permission.
    pub(crate) wanted: bool,
}

impl SessionStreams {
    pub(crate) fn count(&mut self, dir: Dir) -> &mut StreamCount {
        match dir {
            Dir::Bi => &mut self.bi,
            Dir::Uni => &mut self.uni,
        }
    }

    /// The stream whose turn it is.
    pub(crate) fn next_ready(&self) -> Option<u32> {
        self.ready.iter().find_map(List::front)
    }

    pub(crate) fn has_ready(&self) -> bool {
        self.ready.iter().any(|list| !list.is_empty())
    }
}

/// Every stream of an endpoint.
pub(crate) struct StreamPool {
    slab: Slab<Stream>,
    table: KeyTable,
    ready: Links,
    control: Links,
    events: Links,
    all: Links,
    pub(crate) ranges: RangePool,
}

impl StreamPool {
    pub(crate) fn new(streams: u32, holes: u32, hash_key: [u8; 16]) -> Self {
        let links = || Links::new(streams);
        Self {
            slab: Slab::new(streams),
            table: KeyTable::new(streams, &hash_key),
            ready: links(),
            control: links(),
            events: links(),
            all: links(),
            ranges: RangePool::new(holes),
        }
    }

    pub(crate) const fn memory(streams: u32, holes: u32) -> usize {
        Slab::<Stream>::memory(streams as usize)
            + KeyTable::memory(streams as usize)
            + 4 * Links::memory(streams as usize)
            + RangePool::memory(holes as usize)
    }

    /// Makes a stream; `None` if the pool is full.
    pub(crate) fn open(
        &mut self,
        lists: &mut SessionStreams,
        session: u32,
        id: StreamId,
        send: Option<SendHalf>,
        recv: Option<RecvHalf>,
    ) -> Option<u32> {
        let stream = Stream {
            id,
            level: DEFAULT_LEVEL,
            send,
            recv,
            pending: Bits::default(),
            events: Bits::default(),
        };
        let slot = self.slab.insert(stream).ok()?;
        if self.table.insert(key(session, id), slot).is_err() {
            self.slab.remove(slot);
            return None;
        }
        self.all.push_back(&mut lists.all, slot);
        Some(slot)
    }

    /// Frees the stream if it is over; returns its id then.
    pub(crate) fn free_if_over(
        &mut self,
        lists: &mut SessionStreams,
        session: u32,
        slot: u32,
    ) -> Option<StreamId> {
        let stream = self.slab.get(slot)?;
        if !stream.is_over() {
            return None;
        }
        let id = stream.id;
        self.free(lists, session, slot);
        Some(id)
    }

    /// Frees every stream of a session.
    pub(crate) fn free_all(&mut self, lists: &mut SessionStreams, session: u32) {
        while let Some(slot) = lists.all.front() {
            self.free(lists, session, slot);
        }
    }

    /// Puts the stream into the list of those with data to send, if it has some.
    pub(crate) fn refresh_ready(&mut self, lists: &mut SessionStreams, slot: u32) {
        let stream = &self.slab[slot];
        let list = &mut lists.ready[stream.level as usize];
        if stream.send.as_ref().is_some_and(SendHalf::wants_to_send) {
            self.ready.push_back(list, slot);
        } else {
            self.ready.remove(list, slot);
        }
    }

    /// Moves the stream behind the others of its level: its turn is over.
    pub(crate) fn rotate(&mut self, lists: &mut SessionStreams, slot: u32) {
        let list = &mut lists.ready[self.slab[slot].level as usize];
        if self.ready.remove(list, slot) {
            self.ready.push_back(list, slot);
        }
    }

    pub(crate) fn set_level(&mut self, lists: &mut SessionStreams, slot: u32, level: u8) {
        let old = self.slab[slot].level;
        self.ready.remove(&mut lists.ready[old as usize], slot);
        self.slab[slot].level = level;
        self.refresh_ready(lists, slot);
    }

    /// Notes frames to send.
    pub(crate) fn want(&mut self, lists: &mut SessionStreams, slot: u32, bits: Bits) {
        self.slab[slot].pending.insert(bits);
        self.control.push_back(&mut lists.control, slot);
    }

    /// Notes that frames are not to be sent after all.
    pub(crate) fn unwant(&mut self, lists: &mut SessionStreams, slot: u32, bits: Bits) {
        self.slab[slot].pending.remove(bits);
        self.refresh_control(lists, slot);
    }

    /// Notes reports of refused bytes that the peer has not taken as frames to send, for a bounded number of streams.
    pub(crate) fn repeat_reports(&mut self, lists: &mut SessionStreams) {
        let mut cursor = lists.all.front();
        for _ in 0..REPEATED_REPORTS {
            let Some(slot) = cursor else { return };
            cursor = self.all.next(slot);
            if self.slab[slot].recv.as_ref().is_some_and(|recv| recv.report.is_some()) {
                self.want(lists, slot, Bits::HOLES);
            }
        }
    }

    /// Takes the stream off the list of those with frames to send, if it has none left.
    pub(crate) fn refresh_control(&mut self, lists: &mut SessionStreams, slot: u32) {
        if self.slab[slot].pending.is_empty() {
            self.control.remove(&mut lists.control, slot);
        }
    }

    /// Notes an event.
    pub(crate) fn notify(&mut self, lists: &mut SessionStreams, slot: u32, bits: Bits) {
        self.slab[slot].events.insert(bits);
        self.events.push_back(&mut lists.events, slot);
    }

    /// Takes the stream off the list of those with events, if it has none left.
    pub(crate) fn refresh_events(&mut self, lists: &mut SessionStreams, slot: u32) {
        if self.slab[slot].events.is_empty() {
            self.events.remove(&mut lists.events, slot);
        }
    }

    /// The stream behind `slot` among those with frames to send.
    pub(crate) fn next_control(&self, slot: u32) -> Option<u32> {
        self.control.next(slot)
    }

    pub(crate) fn stream(&mut self, slot: u32) -> &mut Stream {
        &mut self.slab[slot]
    }

    /// The stream and the range descriptors, which live side by side.
    pub(crate) fn parts(&mut self, slot: u32) -> (&mut Stream, &mut RangePool) {
        (&mut self.slab[slot], &mut self.ranges)
    }

    /// The stream that a record of a sent packet speaks of, if it still exists.
    pub(crate) fn lookup(&mut self, slot: u32, generation: u32) -> Option<&mut Stream> {
        self.slab.lookup_mut(slot, generation)
    }

    pub(crate) fn find(&self, session: u32, id: StreamId) -> Option<u32> {
        self.table.get(key(session, id))
    }

    pub(crate) fn generation(&self, slot: u32) -> u32 {
        self.slab.generation(slot)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> u32 {
        self.slab.len()
    }

    /// Streams that can still be made.
    pub(crate) fn free_slots(&self) -> u32 {
        self.slab.capacity() - self.slab.len()
    }

    fn free(&mut self, lists: &mut SessionStreams, session: u32, slot: u32) {
        let Some(mut stream) = self.slab.remove(slot) else { return };
        if let Some(recv) = &mut stream.recv {
            recv.clear(&mut self.ranges);
        }
        self.table.remove(key(session, stream.id));
        self.ready.remove(&mut lists.ready[stream.level as usize], slot);
        self.control.remove(&mut lists.control, slot);
        self.events.remove(&mut lists.events, slot);
        self.all.remove(&mut lists.all, slot);
    }
}

fn key(session: u32, id: StreamId) -> u64 {
    u64::from(session) << 32 | u64::from(id.0)
}
