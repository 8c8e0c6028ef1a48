//! Addresses that networks name while others are dialled already.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use wraith_proto::Instant;

use super::{End, ROUND, ROUNDS, STAGGER};
use crate::address::Candidate;

/// Addresses that are dialled at most, all together: networks may name others for ever.
pub(super) const MOST: usize = 64;

/// Of one IP address: whoever names many ports of a third party, one after the other, aims no more than this at it.
pub(super) const MOST_OF_IP: usize = 4;

/// Who waits for a dial, and who had one.
#[derive(Debug, Default)]
pub(super) struct Named {
    waiting: VecDeque<Candidate>,
    next_at: Option<Instant>,
    /// How often each address was dialled, whoever gave it, and when for the last time.
    dialled: BTreeMap<SocketAddr, (u32, Instant)>,
    /// How the last dial of each ended, if nobody answered there.
    ended: Vec<(Candidate, End)>,
}

impl Named {
    /// Takes an address, unless it was dialled too often or a short while ago (`PROTO §11.7`).
    pub(super) fn push(&mut self, candidate: Candidate, now: Instant) {
        let may = match self.dialled.get(&candidate.addr) {
            Some((times, last)) => *times < ROUNDS && now >= last.saturating_add(ROUND),
            None => self.has_room_for(candidate.addr.ip()),
        };
        if may && self.waiting.iter().all(|other| other.addr != candidate.addr) {
            self.waiting.push_back(candidate);
        }
    }

    /// Whose turn it is; if nobody is waited for, the next one need not wait.
    pub(super) fn next(&mut self, now: Instant, at_once: bool) -> Option<Candidate> {
        if !at_once && self.next_at.is_some_and(|at| now < at) {
            return None;
        }
        let next = self.waiting.pop_front()?;
        self.next_at = Some(now.saturating_add(STAGGER));
        Some(next)
    }

    /// There was no room for it.
    pub(super) fn put_back(&mut self, candidate: Candidate) {
        self.waiting.push_front(candidate);
    }

    /// An address was dialled.
    pub(super) fn count(&mut self, addr: SocketAddr, now: Instant) {
        let (times, last) = self.dialled.entry(addr).or_insert((0, now));
        (*times, *last) = (*times + 1, now);
    }

    /// Nobody answered there, or not the right one.
    pub(super) fn end(&mut self, candidate: Candidate, end: End) {
        self.ended.retain(|(other, _)| other.addr != candidate.addr);
        self.ended.push((candidate, end));
    }

    /// Those that wait, no longer.
    pub(super) fn drain(&mut self) -> Vec<Candidate> {
        self.waiting.drain(..).collect()
    }

    pub(super) fn ended(&self) -> &[(Candidate, End)] {
        &self.ended
    }

    fn has_room_for(&self, ip: IpAddr) -> bool {
        let known = self.dialled.keys().copied().chain(self.waiting.iter().map(|waiting| waiting.addr));
        let of_ip = known.filter(|addr| addr.ip() == ip).count();
        self.dialled.len() + self.waiting.len() < MOST && of_ip < MOST_OF_IP
    }

    pub(super) fn wake_at(&self) -> Option<Instant> {
        let next_at = self.next_at.unwrap_or(Instant::MIN);
        (!self.waiting.is_empty()).then_some(next_at)
    }
}
