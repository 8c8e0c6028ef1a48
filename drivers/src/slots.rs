//! A transmit queue of one buffer a datagram.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use wraith_proto::{Ecn, TxMeta, TxQueue, Via};

/// Memory for a fixed number of datagrams, each in a buffer of its own, taken at once.
///
/// For drivers that hand datagrams over one by one: a flush looks at [`Slots::committed`], sends what the network
/// takes, and retires it.
#[derive(Debug)]
pub struct Slots {
    memory: Box<[Slot]>,
    /// The first ones are committed, the others free.
    committed: usize,
    reserved: Option<(TxMeta, usize)>,
}

/// A buffer, how much of it is a datagram, and where that goes.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) meta: TxMeta,
    pub(crate) data: Box<[u8]>,
    pub(crate) len: usize,
}

impl Slots {
    /// Room for `slots` datagrams of up to `bytes` bytes.
    pub fn new(slots: usize, bytes: usize) -> Self {
        // Overwritten by each commit.
        let to = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
        let meta = TxMeta { to, from: None, via: Via::default(), ecn: Ecn::default() };
        let slot = |_| Slot { meta, data: vec![0; bytes].into(), len: 0 };
        Self { memory: (0..slots).map(slot).collect(), committed: 0, reserved: None }
    }

    /// Frees the oldest `count` committed datagrams; the others keep their order. Ends a reservation.
    ///
    /// # Panics
    /// If fewer are committed.
    pub fn retire(&mut self, count: usize) {
        self.memory[..self.committed].rotate_left(count);
        self.committed -= count;
        // What was reserved stood behind the committed slots, not here.
        self.reserved = None;
    }

    /// The committed datagrams, oldest first.
    pub fn committed(&self) -> impl ExactSizeIterator<Item = (&TxMeta, &[u8])> {
        self.memory[..self.committed].iter().map(|slot| (&slot.meta, &slot.data[..slot.len]))
    }

    /// Datagrams that it has room for when nothing is committed.
    pub fn capacity(&self) -> usize {
        self.memory.len()
    }

    /// The committed slots, for a network that takes buffers.
    pub(crate) fn committed_mut(&mut self) -> &mut [Slot] {
        &mut self.memory[..self.committed]
    }
}

impl TxQueue for Slots {
    fn reserve(&mut self, meta: &TxMeta, len: usize) -> Option<&mut [u8]> {
        self.reserved = None;
        let room = self.memory.get_mut(self.committed)?.data.get_mut(..len)?;
        self.reserved = Some((*meta, len));
        Some(room)
    }

    fn commit(&mut self, len: usize) {
        if let Some((meta, reserved)) = self.reserved.take() {
            let slot = &mut self.memory[self.committed];
            (slot.meta, slot.len) = (meta, len.min(reserved));
            self.committed += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(port: u16) -> TxMeta {
        TxMeta { to: SocketAddr::from(([127, 0, 0, 1], port)), from: None, via: Via(0), ecn: Ecn::NotEct }
    }

    fn commit(slots: &mut Slots, port: u16, data: &[u8]) -> bool {
        let Some(room) = slots.reserve(&to(port), data.len() + 1) else { return false };
        room[..data.len()].copy_from_slice(data);
        slots.commit(data.len());
        true
    }

    fn committed(slots: &Slots) -> Vec<(u16, Vec<u8>)> {
        slots.committed().map(|(meta, data)| (meta.to.port(), data.to_vec())).collect()
    }

    /// `DRV §3.2, §3.6, §3.8`
    #[test]
    fn slots_are_retired_in_order_and_lent_again() {
        let mut slots = Slots::new(3, 10);
        assert!(
            commit(&mut slots, 1, b"one") && commit(&mut slots, 2, b"two") && commit(&mut slots, 3, b"three")
        );
        assert!(!commit(&mut slots, 4, b"four"));
        slots.retire(2);
        assert_eq!(committed(&slots), [(3, b"three".to_vec())]);
        assert!(commit(&mut slots, 4, b"four"));
        assert_eq!(committed(&slots), [(3, b"three".to_vec()), (4, b"four".to_vec())]);
        assert_eq!(slots.capacity(), 3);
    }

    /// `DRV §3.4`
    #[test]
    fn a_commit_takes_a_reservation_once_and_retiring_ends_it() {
        let mut slots = Slots::new(3, 10);
        assert!(commit(&mut slots, 1, b"one"));
        slots.commit(3);
        assert!(slots.reserve(&to(2), 5).is_some());
        slots.retire(0);
        slots.commit(5);
        assert!(slots.reserve(&to(2), 5).is_some() && slots.reserve(&to(2), 11).is_none());
        slots.commit(5);
        assert_eq!(committed(&slots), [(1, b"one".to_vec())]);
        slots.retire(1);
        assert_eq!(slots.committed().len(), 0);
    }
}
