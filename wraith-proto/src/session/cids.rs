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
        let mut bits = 0;
        for slot in 0..IDS {
            if let Some(old) = self.remote[slot]
                && old.sequence.get() < self.retired_below
            {
                bits |= self.retire(old.sequence)?;
                self.remote[slot] = None;
            }
        }
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
