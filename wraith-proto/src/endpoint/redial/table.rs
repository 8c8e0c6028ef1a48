//! Which sessions have peers that are looked for, and by which dials.

use crate::session::SessionHandle;
use crate::time::Instant;
use crate::util::{KeyTable, Slab};

/// Sessions whose peers are looked for, found by their own index and by that of the dial. Sessions hold nothing of it
/// themselves, for few are ever here.
pub(in crate::endpoint) struct Redials {
    entries: Slab<Redial>,
    places: KeyTable,
}

/// One silent peer.
#[derive(Clone, Copy, Default)]
struct Redial {
    /// The session whose peer is silent, until it is forgotten.
    former: Option<u32>,
    /// The session that dials the peer.
    dial: Option<u32>,
    /// The dial is not wanted any more.
    abandoned: bool,
    /// The session that took the place.
    successor: Option<SessionHandle>,
    /// Dials in vain since the peer was heard.
    failed: u8,
    /// Until then the peer is not dialled again.
    not_before: Option<Instant>,
}

impl Redials {
    /// Room for `capacity` silent peers.
    pub(in crate::endpoint) fn new(capacity: u32) -> Self {
        // The keys are indices that nobody outside chooses.
        Self { entries: Slab::new(capacity), places: KeyTable::new(capacity.saturating_mul(2), &[0; 16]) }
    }

    /// Bytes that room for `capacity` silent peers takes.
    pub(in crate::endpoint) const fn memory(capacity: u32) -> usize {
        Slab::<Redial>::memory(capacity as usize) + KeyTable::memory(capacity as usize * 2)
    }

    /// `dial` looks for the peer of `former`; `false` if there is no room.
    pub(super) fn begin(&mut self, former: u32, dial: u32) -> bool {
        let Some(place) = self.place(former_key(former)).or_else(|| self.enter(former)) else { return false };
        let _ = self.places.insert(dial_key(dial), place);
        self.change(place, |entry| (entry.dial, entry.abandoned) = (Some(dial), false));
        true
    }

    /// A dial has ended, however.
    pub(super) fn end_dial(&mut self, dial: u32) {
        if let Some(place) = self.places.remove(dial_key(dial)) {
            self.change(place, |entry| entry.dial = None);
            self.free_if_empty(place);
        }
    }

    /// The dial for `former` is not wanted any more; which one that is.
    pub(super) fn abandon(&mut self, former: u32) -> Option<u32> {
        let place = self.place(former_key(former))?;
        self.change(place, |entry| entry.abandoned = true);
        self.entries.get(place)?.dial
    }

    /// A dial for `former` was in vain.
    pub(super) fn fail(&mut self, former: u32, not_before: Instant) {
        if let Some(place) = self.place(former_key(former)) {
            self.change(place, |entry| {
                entry.failed = entry.failed.saturating_add(1);
                entry.not_before = Some(not_before);
            });
        }
    }

    /// `successor` takes the place of `former`.
    pub(super) fn succeed(&mut self, former: u32, successor: SessionHandle) {
        if let Some(place) = self.place(former_key(former)) {
            self.change(place, |entry| entry.successor = Some(successor));
        }
    }

    /// The peer of `former` was heard, or the session is forgotten. A dial that still runs stays one.
    pub(in crate::endpoint) fn leave(&mut self, former: u32) {
        if !self.is_empty()
            && let Some(place) = self.places.remove(former_key(former))
        {
            self.change(place, |entry| entry.former = None);
            self.free_if_empty(place);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.len() == 0
    }

    /// Whether `dial` is one of which the application has not heard.
    pub(in crate::endpoint) fn is_pending(&self, dial: u32) -> bool {
        !self.is_empty() && self.place(dial_key(dial)).is_some()
    }

    /// Whether the peer of `former` is being dialled.
    pub(in crate::endpoint) fn is_dialling(&self, former: u32) -> bool {
        self.of(former).is_some_and(|entry| entry.dial.is_some())
    }

    /// Whether the peer of `former` may be dialled at `now`.
    pub(super) fn may_dial(&self, former: u32, now: Instant) -> bool {
        let waits = |entry: &Redial| entry.dial.is_some() || entry.not_before.is_some_and(|at| at > now);
        !self.of(former).is_some_and(waits)
    }

    /// Dials for `former` in vain since its peer was heard.
    pub(super) fn failed(&self, former: u32) -> u8 {
        self.of(former).map_or(0, |entry| entry.failed)
    }

    /// The session in whose place `dial` is wanted.
    pub(super) fn former_of(&self, dial: u32) -> Option<u32> {
        let entry = self.entries.get(self.place(dial_key(dial))?)?;
        entry.former.filter(|_| !entry.abandoned)
    }

    /// The session that took the place of `former`.
    pub(super) fn successor(&self, former: u32) -> Option<SessionHandle> {
        self.of(former)?.successor
    }

    fn of(&self, former: u32) -> Option<&Redial> {
        if self.is_empty() {
            return None;
        }
        self.entries.get(self.place(former_key(former))?)
    }

    fn enter(&mut self, former: u32) -> Option<u32> {
        let place = self.entries.insert(Redial { former: Some(former), ..Redial::default() }).ok()?;
        // There is room for two keys of each entry.
        let _ = self.places.insert(former_key(former), place);
        Some(place)
    }

    fn place(&self, key: u64) -> Option<u32> {
        self.places.get(key)
    }

    fn change(&mut self, place: u32, change: impl FnOnce(&mut Redial)) {
        if let Some(entry) = self.entries.get_mut(place) {
            change(entry);
        }
    }

    fn free_if_empty(&mut self, place: u32) {
        if self.entries.get(place).is_some_and(|entry| entry.former.is_none() && entry.dial.is_none()) {
            self.entries.remove(place);
        }
    }
}

const fn former_key(index: u32) -> u64 {
    index as u64
}

const fn dial_key(index: u32) -> u64 {
    1 << 32 | index as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const HANDLE: SessionHandle = SessionHandle { index: 9, generation: 3 };

    #[test]
    fn an_entry_lives_as_long_as_its_session_or_its_dial() {
        let mut redials = Redials::new(1);
        assert!(redials.begin(1, 2) && redials.is_pending(2) && redials.is_dialling(1));
        assert!(!redials.begin(3, 4), "full");
        redials.leave(1);
        assert_eq!((redials.is_pending(2), redials.former_of(2)), (true, None));
        redials.end_dial(2);
        assert!(redials.is_empty() && redials.begin(3, 4));
        redials.end_dial(4);
        assert!(!redials.is_empty() && !redials.is_pending(4));
        redials.leave(3);
        assert!(redials.is_empty());
    }

    #[test]
    fn a_peer_is_dialled_once_at_a_time_and_not_before_its_pause_is_over() {
        let (start, later) = (Instant::from_nanos(10), Instant::from_nanos(20));
        let mut redials = Redials::new(2);
        assert!(redials.may_dial(1, start) && redials.begin(1, 2) && !redials.may_dial(1, later));
        redials.end_dial(2);
        redials.fail(1, later);
        assert_eq!(
            (redials.may_dial(1, start), redials.may_dial(1, later), redials.failed(1)),
            (false, true, 1)
        );
        redials.leave(1);
        assert_eq!((redials.may_dial(1, start), redials.failed(1)), (true, 0));
    }

    #[test]
    fn a_dial_that_is_not_wanted_any_more_is_nobodys() {
        let mut redials = Redials::new(2);
        assert!(redials.begin(1, 2));
        assert_eq!((redials.former_of(2), redials.abandon(1)), (Some(1), Some(2)));
        assert_eq!((redials.former_of(2), redials.is_pending(2)), (None, true));
        redials.succeed(1, HANDLE);
        assert_eq!((redials.successor(1), redials.successor(2)), (Some(HANDLE), None));
    }
}
