//! Handshakes under way: their slots, their repeated messages, their end.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use super::hello::{Ids, Introduction};
use super::lifecycle::End;
use super::{Endpoint, Route};
use crate::crypto::{Noise, PeerId, Role};
use crate::error::CloseReason;
use crate::meta::Ecn;
use crate::queue::{Source, TxQueue};
use crate::session::Path;
use crate::time::Instant;
use crate::util::{KeyTable, Links, List, Slab};

/// First repetition of a handshake message, and the longest pause between two (`PROTO §4.10`).
const FIRST_REPEAT: Duration = Duration::from_millis(250);
const MAX_REPEAT: Duration = Duration::from_secs(1);

/// How long a handshake may wait for FINISH before another takes its slot (`PROTO §4.15`).
const LEAST_STAY: Duration = Duration::from_secs(1);

/// Bytes that may be sent to an unproven address per byte received from it (`PROTO §4.11`).
const AMPLIFICATION: u32 = 3;

/// What a handshake waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// The initiator waits for RESPONSE.
    Response,
    /// The initiator's application has to admit the responder.
    Authorize,
    /// The responder waits for FINISH.
    Finish,
    /// The responder refused; a repeated INIT gets the same answer.
    Refused,
    /// The initiator waits for the first protected packet.
    Confirm,
}

/// A handshake under way.
pub(super) struct Handshake {
    pub(super) role: Role,
    pub(super) stage: Stage,
    pub(super) noise: Noise,
    /// Boxed, so that moving the handshake out of its slot leaves no copies behind.
    pub(super) secrets: Box<Secrets>,
    /// The initiator's session.
    pub(super) session: Option<u32>,
    /// Whom the initiator expects.
    pub(super) pin: Option<PeerId>,
    pub(super) path: Path,
    pub(super) ids: Ids,
    /// The datagram that is repeated, byte for byte.
    pub(super) message: Vec<u8>,
    /// Fingerprint of INIT: the same one belongs to the same handshake (`PROTO §4.12`).
    pub(super) first: [u8; 32],
    /// Fingerprint of the lists in INIT.
    pub(super) lists: [u8; 32],
    /// What the responder said, while the application is asked.
    pub(super) introduction: Option<Introduction>,
    pub(super) grease: u64,
    /// Cookies for which INIT was repeated at once.
    pub(super) cookies: u8,
    /// Answers that authenticated but came from somebody else, since INIT was last repeated by timer.
    pub(super) impostors: u8,
    /// Somebody answered who is not the peer, or without proof that the peer speaks no common version.
    pub(super) contested: bool,
    /// Bytes that came from the peer's address, and that went to it.
    pub(super) received: u32,
    sent: u32,
    /// From our message to its answer, if it was sent once.
    pub(super) rtt: Option<Duration>,
    pub(super) started: Instant,
    /// A message was sent more than once: its round trip says nothing.
    pub(super) repeated: bool,
    repeat_at: Option<Instant>,
    pause: Duration,
    pub(super) expires: Instant,
}

/// What the Noise state does not hold itself; wiped on drop.
#[derive(Default)]
pub(super) struct Secrets {
    /// The initiator can begin anew with the same message 1 (`PROTO §4.19`).
    pub(super) ephemeral_seed: [u8; 32],
    pub(super) finish_key: Option<[u8; 32]>,
}

impl Drop for Secrets {
    fn drop(&mut self) {
        use zeroize::Zeroize;
        self.ephemeral_seed.zeroize();
        self.finish_key.zeroize();
    }
}

/// All handshakes of an endpoint.
pub(super) struct Handshakes {
    slab: Slab<Handshake>,
    /// Fingerprints of INIT → slot.
    inits: KeyTable,
    hash_key: [u8; 16],
    links: Links,
    /// Slots with a message to send.
    due: List,
    ages: Links,
    /// Slots of the answering side, the oldest first.
    answered: List,
}

impl Handshakes {
    pub(super) fn new(capacity: u32, hash_key: [u8; 16]) -> Self {
        Self {
            slab: Slab::new(capacity),
            inits: KeyTable::new(capacity, &hash_key),
            hash_key,
            links: Links::new(capacity),
            due: List::EMPTY,
            ages: Links::new(capacity),
            answered: List::EMPTY,
        }
    }

    pub(super) const fn memory(capacity: u32) -> usize {
        let slots = capacity as usize;
        // A slot's Noise state is boxed in parts and its message is on the heap.
        const HEAP: usize = 4096;
        Slab::<Handshake>::memory(slots) + KeyTable::memory(slots) + 2 * Links::memory(slots) + slots * HEAP
    }

    /// The handshake that an INIT with this fingerprint belongs to.
    pub(super) fn find(&self, first: &[u8; 32]) -> Option<u32> {
        let slot = self.inits.get(self.key(first))?;
        let same = self.slab.get(slot).is_some_and(|handshake| handshake.first == *first);
        same.then_some(slot)
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut Handshake> {
        self.slab.get_mut(slot)
    }

    /// Whether a quarter of the slots is occupied (`PROTO §4.13`).
    pub(super) fn is_crowded(&self) -> bool {
        self.slab.len() * 4 >= self.slab.capacity()
    }

    fn is_full(&self) -> bool {
        self.slab.is_full()
    }

    /// The oldest handshake of the answering side, if it had its time (`PROTO §4.15`).
    fn stale(&self, now: Instant) -> Option<u32> {
        let slot = self.answered.front()?;
        let waited = now.saturating_since(self.slab.get(slot)?.started);
        (waited >= LEAST_STAY).then_some(slot)
    }

    /// Handshakes under way.
    #[cfg(test)]
    pub(super) fn len(&self) -> u32 {
        self.slab.len()
    }

    pub(super) fn has_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Adds a handshake; the caller made sure that there is room.
    pub(super) fn insert(&mut self, handshake: Handshake) -> Option<u32> {
        let key = (handshake.role == Role::Responder).then(|| self.key(&handshake.first));
        let slot = self.slab.insert(handshake).ok()?;
        if let Some(key) = key {
            let _ = self.inits.insert(key, slot);
            self.ages.push_back(&mut self.answered, slot);
        }
        Some(slot)
    }

    fn key(&self, first: &[u8; 32]) -> u64 {
        siphasher::sip::SipHasher13::new_with_key(&self.hash_key).hash(first)
    }
}

impl Handshake {
    pub(super) fn new(
        role: Role,
        noise: Noise,
        path: Path,
        ids: Ids,
        now: Instant,
        timeout: Duration,
    ) -> Self {
        Self {
            role,
            stage: if role == Role::Initiator { Stage::Response } else { Stage::Finish },
            noise,
            secrets: Box::default(),
            session: None,
            pin: None,
            path,
            ids,
            message: Vec::new(),
            first: [0; 32],
            lists: [0; 32],
            introduction: None,
            grease: 0,
            cookies: 0,
            impostors: 0,
            contested: false,
            received: 0,
            sent: 0,
            rtt: None,
            started: now,
            repeated: false,
            repeat_at: None,
            pause: FIRST_REPEAT,
            expires: now.saturating_add(timeout),
        }
    }

    /// Puts another message in the place of the one that is repeated.
    pub(super) fn say(&mut self, message: Vec<u8>, now: Instant) {
        self.message = message;
        self.pause = FIRST_REPEAT;
        self.repeat_at = Some(now);
        self.started = now;
        self.repeated = false;
    }

    /// Stops repeating.
    pub(super) fn fall_silent(&mut self) {
        self.repeat_at = None;
    }

    /// The session's round trip: from our message to its answer, if it was sent once. If its repetition was due and did
    /// not happen, the caller was away, and the time says nothing (`PROTO §8.9`).
    pub(super) fn round_trip(&self, now: Instant) -> Option<Duration> {
        let time = now.saturating_since(self.started);
        (!self.repeated && time <= FIRST_REPEAT).then_some(time)
    }

    fn may_send(&self) -> bool {
        let after = self.sent.saturating_add(self.message.len() as u32);
        self.role == Role::Initiator || after <= self.received.saturating_mul(AMPLIFICATION)
    }

    fn on_sent(&mut self, now: Instant) {
        self.repeated |= now > self.started;
        self.sent = self.sent.saturating_add(self.message.len() as u32);
        self.repeat_at = Some(now.saturating_add(self.pause));
        self.pause = (self.pause * 2).min(MAX_REPEAT);
    }
}

impl Endpoint {
    /// A message of the handshake has to leave now.
    pub(super) fn send_handshake(&mut self, slot: u32) {
        let handshakes = &mut self.handshakes;
        handshakes.links.push_back(&mut handshakes.due, slot);
        self.arm_handshake(slot);
    }

    /// Whether a slot is free, if need be in the place of a stranger who lets this end wait.
    pub(super) fn make_room(&mut self) -> bool {
        if self.handshakes.is_full()
            && let Some(slot) = self.handshakes.stale(self.now)
        {
            self.free_handshake(slot);
        }
        !self.handshakes.is_full()
    }

    /// Forgets a handshake.
    pub(super) fn free_handshake(&mut self, slot: u32) {
        let handshakes = &mut self.handshakes;
        handshakes.links.remove(&mut handshakes.due, slot);
        handshakes.ages.remove(&mut handshakes.answered, slot);
        self.wheel.cancel(self.config.limits.sessions + slot);
        let Some(handshake) = handshakes.slab.remove(slot) else { return };
        if handshake.role == Role::Responder {
            let key = handshakes.key(&handshake.first);
            handshakes.inits.remove(key);
            let id = handshake.ids.responder.as_u64();
            if self.routes.get(id) == Some(Route::Handshake(slot).pack()) {
                self.routes.remove(id);
            }
        }
        if let Some(session) = handshake.session.and_then(|index| self.sessions.get_mut(index)) {
            session.handshake = None;
        }
    }

    pub(super) fn arm_handshake(&mut self, slot: u32) {
        let Some(handshake) = self.handshakes.slab.get(slot) else { return };
        let at = handshake.repeat_at.map_or(handshake.expires, |at| at.min(handshake.expires));
        let id = self.config.limits.sessions + slot;
        if at < Instant::NEVER {
            self.wheel.arm(id, at);
        } else {
            self.wheel.cancel(id);
        }
    }

    pub(super) fn on_handshake_timer(&mut self, slot: u32) {
        let now = self.now;
        let Some(handshake) = self.handshakes.slab.get_mut(slot) else { return };
        if handshake.expires <= now {
            self.give_up_handshake(slot);
            return;
        }
        if handshake.repeat_at.is_some_and(|at| at <= now) {
            handshake.repeat_at = None;
            // The right answer to the next one is to be read (`PROTO §4.19`).
            handshake.impostors = 0;
            if handshake.may_send() {
                let handshakes = &mut self.handshakes;
                handshakes.links.push_back(&mut handshakes.due, slot);
            }
        }
        self.arm_handshake(slot);
    }

    /// Sends the handshake messages that are due.
    pub(super) fn transmit_handshakes<Q: TxQueue, S: Source>(
        &mut self,
        tx: &mut Q,
        source: &mut S,
        left: &mut u32,
    ) -> Option<super::TxStatus> {
        while let Some(slot) = self.handshakes.due.front() {
            if *left == 0 {
                return Some(super::TxStatus::Budget);
            }
            let first = {
                let handshake = self.handshakes.slab.get(slot)?;
                handshake.stage == Stage::Confirm && handshake.is_unsent()
            };
            if !self.transmit_handshake(slot, first, tx, source) {
                return Some(super::TxStatus::QueueFull);
            }
            *left -= 1;
            let handshakes = &mut self.handshakes;
            handshakes.links.remove(&mut handshakes.due, slot);
            self.arm_handshake(slot);
        }
        None
    }

    /// Sends one message; FINISH takes a first packet along where it fits (`PROTO §4.18`).
    fn transmit_handshake<Q: TxQueue, S: Source>(
        &mut self,
        slot: u32,
        first: bool,
        tx: &mut Q,
        source: &mut S,
    ) -> bool {
        let Some(handshake) = self.handshakes.slab.get_mut(slot) else { return true };
        if !handshake.may_send() {
            return true;
        }
        let room = usize::from(crate::config::MIN_DATAGRAM).max(handshake.message.len());
        let Some(buffer) = tx.reserve(&handshake.path.meta(Ecn::NotEct), room) else { return false };
        let mut len = handshake.message.len();
        let (packet, rest) = buffer[..room].split_at_mut(len);
        packet.copy_from_slice(&handshake.message);
        handshake.on_sent(self.now);
        self.hook.handshake_sent(self.now, &self.sessions, handshake.session, &handshake.message);
        if let Some(index) = handshake.session.filter(|_| first) {
            len += self.build_packet(index, rest, source).unwrap_or(0);
            self.settle(index);
        }
        tx.commit(len);
        self.count_sent(len);
        true
    }

    fn give_up_handshake(&mut self, slot: u32) {
        let Some(handshake) = self.handshakes.slab.get(slot) else { return };
        let (session, contested) = (handshake.session, handshake.contested);
        match session {
            // Nobody else answered (`PROTO §4.16`, `§4.19`).
            Some(index) if contested => self.end(index, End::silent(CloseReason::Refused)),
            Some(index) => self.end(index, End::silent(CloseReason::HandshakeTimeout)),
            None => {}
        }
        self.free_handshake(slot);
    }
}

impl Handshake {
    /// Whether the message at hand was not sent before.
    fn is_unsent(&self) -> bool {
        self.pause == FIRST_REPEAT
    }
}

#[cfg(test)]
mod tests;
