//! Connection ids of one session (`PROTO §5.11`, `PROTO §6.6`).

use core::num::NonZeroU64;

use crate::wire::ConnectionId;

/// Ids that each end keeps of the other.
pub(crate) const IDS: usize = 4;

/// The number of an id or a packet, below 2^62. Kept one higher, so that an absent one takes no room.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Sequence(NonZeroU64);

impl Sequence {
    pub(crate) const fn new(number: u64) -> Self {
        Self(NonZeroU64::MIN.saturating_add(number))
    }

    pub(crate) const fn get(self) -> u64 {
        self.0.get() - 1
    }
}

/// An id and its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Numbered {
    pub(crate) sequence: Sequence,
    pub(crate) id: ConnectionId,
}

/// The peer broke the rules of connection ids.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BadId;

/// Ids that address this end, and ids that address the peer.
#[derive(Debug, Default)]
pub(crate) struct Cids {
    local: [Option<Numbered>; IDS],
    issued: u64,
    remote: [Option<Numbered>; IDS],
    /// The highest number of an id of the peer that went anywhere.
    used: u64,
    retired_below: u64,
    /// Sequence numbers that `RETIRE_CONNECTION_ID` has to name.
    retiring: [Option<Sequence>; IDS],
}

impl Cids {
    /// Adds an id for this end; returns its slot.
    pub(crate) fn issue(&mut self, id: ConnectionId) -> Option<usize> {
        let slot = self.local.iter().position(Option::is_none)?;
        self.local[slot] = Some(Numbered { sequence: Sequence::new(self.issued), id });
        self.issued += 1;
        Some(slot)
    }

    /// The id of the peer from the handshake.
    pub(crate) fn set_remote(&mut self, id: ConnectionId) {
        self.remote[0] = Some(Numbered { sequence: Sequence::new(0), id });
    }

    /// The peer gave another id; returns the bits of ids that have to be retired now, one for each slot.
    pub(crate) fn on_new(&mut self, new: Numbered, retire_prior_to: u64) -> Result<u8, BadId> {
        if retire_prior_to > new.sequence.get() {
            return Err(BadId);
        }
        if let Some(known) = self.remote.iter().flatten().find(|known| known.sequence == new.sequence) {
            return if known.id == new.id { Ok(0) } else { Err(BadId) };
        }
        if self.remote.iter().flatten().any(|known| known.id == new.id) {
            return Err(BadId);
        }
        self.retired_below = self.retired_below.max(retire_prior_to);
        let bits = self.retire_old()?;
        if new.sequence.get() < self.retired_below {
            return Ok(bits | self.retire(new.sequence)?);
        }
        let free = self.remote.iter_mut().find(|slot| slot.is_none()).ok_or(BadId)?;
        *free = Some(new);
        Ok(bits)
    }

    /// The peer will not use one of our ids any more; returns it.
    pub(crate) fn on_retire(&mut self, sequence: u64) -> Result<Option<ConnectionId>, BadId> {
        if sequence >= self.issued {
            return Err(BadId);
        }
        let slot =
            self.local.iter_mut().find(|slot| slot.is_some_and(|known| known.sequence.get() == sequence));
        Ok(slot.and_then(Option::take).map(|known| known.id))
    }

    /// `RETIRE_CONNECTION_ID` of this slot reached the peer.
    pub(crate) fn on_retire_acked(&mut self, slot: usize) {
        self.retiring[slot] = None;
    }

    /// The id to send to: the oldest that is not retired.
    pub(crate) fn remote(&self) -> Option<ConnectionId> {
        self.remote.iter().flatten().min_by_key(|known| known.sequence).map(|known| known.id)
    }

    /// Uses the id with this number from now on and retires those before it; returns the bits of what has to be said,
    /// as `on_new`, or `None` if earlier retirements have not reached the peer yet.
    pub(crate) fn move_to(&mut self, sequence: Sequence) -> Option<u8> {
        // With no more than two under way there is room for whatever the peer may retire.
        if self.retiring.iter().any(Option::is_some) {
            return None;
        }
        self.follow_to(sequence)
    }

    /// The same for an id that has been used where the peer is now: it is not to be seen beside the one before, so earlier
    /// retirements are not waited for as long as there is room for these.
    pub(crate) fn follow_to(&mut self, sequence: Sequence) -> Option<u8> {
        let leaving = self.remote.iter().flatten().filter(|known| known.sequence < sequence).count();
        let room = self.retiring.iter().filter(|slot| slot.is_none()).count();
        if self.by_number(sequence).is_none() || leaving > room {
            return None;
        }
        self.used = self.used.max(sequence.get());
        self.retired_below = self.retired_below.max(sequence.get());
        self.retire_old().ok()
    }

    /// Retires the id with this number, and those before it, if there is a later one.
    pub(crate) fn abandon(&mut self, sequence: Sequence) -> Option<u8> {
        let later =
            self.remote.iter().flatten().map(|known| known.sequence).filter(|&known| known > sequence);
        self.move_to(later.min()?)
    }

    /// The number of an id of the peer that went nowhere yet (`PROTO §13.9`).
    pub(crate) fn fresh(&self) -> Option<Sequence> {
        let current = self.remote.iter().flatten().map(|known| known.sequence).min()?;
        let used = current.max(Sequence::new(self.used));
        self.remote.iter().flatten().map(|known| known.sequence).filter(|&known| known > used).min()
    }

    /// The same, which counts as used from now on, wherever it goes.
    pub(crate) fn take_fresh(&mut self) -> Option<Sequence> {
        let fresh = self.fresh()?;
        self.used = fresh.get();
        Some(fresh)
    }

    /// The id of the peer with this number.
    pub(crate) fn by_number(&self, sequence: Sequence) -> Option<ConnectionId> {
        self.remote.iter().flatten().find(|known| known.sequence == sequence).map(|known| known.id)
    }

    /// The slot of an id that addresses this end.
    pub(crate) fn local_slot(&self, id: ConnectionId) -> Option<usize> {
        self.local.iter().position(|slot| slot.is_some_and(|known| known.id == id))
    }

    pub(crate) fn local(&self, slot: usize) -> Option<Numbered> {
        self.local[slot]
    }

    /// All ids that address this end.
    pub(crate) fn locals(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        self.local.iter().flatten().map(|known| known.id)
    }

    pub(crate) fn retiring(&self, slot: usize) -> Option<u64> {
        self.retiring[slot].map(Sequence::get)
    }

    fn retire_old(&mut self) -> Result<u8, BadId> {
        let mut bits = 0;
        for slot in 0..IDS {
            if let Some(old) = self.remote[slot]
                && old.sequence.get() < self.retired_below
            {
                bits |= self.retire(old.sequence)?;
                self.remote[slot] = None;
            }
        }
        Ok(bits)
    }

    fn retire(&mut self, sequence: Sequence) -> Result<u8, BadId> {
        let slot = self.retiring.iter().position(Option::is_none).ok_or(BadId)?;
        self.retiring[slot] = Some(sequence);
        Ok(1 << slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(byte: u8) -> ConnectionId {
        ConnectionId([byte; 8])
    }

    fn numbered(number: u64, id: ConnectionId) -> Numbered {
        Numbered { sequence: Sequence::new(number), id }
    }

    #[test]
    fn an_absent_id_takes_no_room() {
        assert_eq!(size_of::<Option<Numbered>>(), 16);
        assert_eq!(Sequence::new(u64::MAX >> 2).get(), u64::MAX >> 2);
    }

    fn with_remote(count: u8) -> Cids {
        let mut cids = Cids::default();
        cids.set_remote(id(0));
        for n in 1..count {
            assert_eq!(cids.on_new(numbered(u64::from(n), id(n)), 0), Ok(0));
        }
        cids
    }

    /// `PROTO §6.6`
    #[test]
    fn a_fifth_id_is_a_violation() {
        let mut cids = with_remote(4);
        assert_eq!(cids.on_new(numbered(4, id(4)), 0), Err(BadId));
    }

    /// `PROTO §6.6`
    #[test]
    fn a_number_given_twice_must_name_the_same_id() {
        let mut cids = with_remote(3);
        assert_eq!(cids.on_new(numbered(2, id(2)), 0), Ok(0));
        assert_eq!(cids.on_new(numbered(2, id(9)), 0), Err(BadId));
        assert_eq!(cids.on_new(numbered(3, id(1)), 0), Err(BadId));
    }

    /// `PROTO §6.6`
    #[test]
    fn retire_prior_to_moves_to_the_next_id() {
        let mut cids = with_remote(2);
        assert_eq!(cids.on_new(numbered(2, id(2)), 1), Ok(1));
        assert_eq!(cids.remote(), Some(id(1)));
        assert_eq!(cids.retiring(0), Some(0));
        cids.on_retire_acked(0);
        assert_eq!(cids.retiring(0), None);
        assert_eq!(cids.on_new(numbered(3, id(3)), 4), Err(BadId));
    }

    /// `PROTO §13.9`
    #[test]
    fn a_move_takes_the_next_id_and_waits_until_the_peer_knows_of_the_one_before() {
        let mut cids = with_remote(3);
        assert_eq!(cids.fresh(), Some(Sequence::new(1)));
        assert_eq!(cids.by_number(Sequence::new(1)), Some(id(1)));
        assert_eq!(cids.move_to(Sequence::new(1)), Some(1));
        assert_eq!((cids.remote(), cids.retiring(0)), (Some(id(1)), Some(0)));
        assert_eq!(cids.move_to(Sequence::new(2)), None);
        cids.on_retire_acked(0);
        assert_eq!(cids.move_to(Sequence::new(2)), Some(1));
        cids.on_retire_acked(0);
        assert_eq!(cids.fresh(), None);
        // Given again, a retired id is not used again.
        assert_eq!(cids.on_new(numbered(1, id(1)), 0), Ok(1));
        assert_eq!((cids.remote(), cids.fresh()), (Some(id(2)), None));
    }

    /// `PROTO §13.9`
    #[test]
    fn an_id_that_a_check_has_used_in_vain_goes_with_those_before_it() {
        let mut cids = with_remote(3);
        assert_eq!(cids.abandon(Sequence::new(2)), None, "there is no other");
        assert_eq!(cids.abandon(Sequence::new(1)), Some(0b11));
        assert_eq!((cids.remote(), cids.fresh()), (Some(id(2)), None));
    }

    /// `PROTO §13.9`
    #[test]
    fn an_id_that_a_check_has_taken_is_not_fresh_again_and_goes_with_the_next_move() {
        let mut cids = with_remote(4);
        assert_eq!(cids.take_fresh(), Some(Sequence::new(1)));
        assert_eq!((cids.remote(), cids.fresh()), (Some(id(0)), Some(Sequence::new(2))));
        assert_eq!(cids.move_to(Sequence::new(2)), Some(0b11));
        assert_eq!((cids.remote(), cids.fresh()), (Some(id(2)), Some(Sequence::new(3))));
        assert_eq!((cids.retiring(0), cids.retiring(1)), (Some(0), Some(1)));
        assert_eq!(cids.take_fresh(), Some(Sequence::new(3)));
        assert_eq!((cids.abandon(Sequence::new(3)), cids.fresh()), (None, None), "nor if it cannot go yet");
        assert_eq!(cids.move_to(Sequence::new(3)), None, "two retirements are under way");
        assert_eq!((cids.follow_to(Sequence::new(3)), cids.remote()), (Some(0b100), Some(id(3))));
        for number in 4..6 {
            assert_eq!(cids.on_new(numbered(number, id(number as u8)), 0), Ok(0));
        }
        assert_eq!(cids.follow_to(Sequence::new(5)), None, "there is room for one more");
        assert_eq!(cids.follow_to(Sequence::new(4)), Some(0b1000));
    }

    #[test]
    fn own_ids_are_issued_retired_and_replaced() {
        let mut cids = Cids::default();
        for n in 0..4 {
            assert_eq!(cids.issue(id(n)), Some(usize::from(n)));
        }
        assert_eq!(cids.issue(id(9)), None);
        assert_eq!(cids.on_retire(4), Err(BadId));
        assert_eq!(cids.on_retire(1), Ok(Some(id(1))));
        assert_eq!(cids.on_retire(1), Ok(None));
        assert_eq!(cids.issue(id(5)), Some(1));
        assert_eq!(cids.local(1), Some(numbered(4, id(5))));
    }
}
