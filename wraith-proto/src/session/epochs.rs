//! The keys of a session as they are derived, and how one epoch follows another (`PROTO §5.13` to `§5.18`).

use alloc::boxed::Box;
use core::time::Duration;

use zeroize::Zeroizing;

use super::expanded::Places;
use crate::crypto::{CryptoProvider, Direction, KeyMaterial, Role, Root, SECRET_MEMORY, Suite, X25519Key};
use crate::time::Instant;
use crate::wire::varint;

/// Values of the key phase (`PROTO §5.2`).
const PHASES: u32 = 4;

/// Epochs that may have a receiving key at a time (`PROTO §5.17`).
const OVERLAP: u32 = 3;

/// Packets left for CLOSE when a key is spent: it is repeated at most once for each doubling of late packets.
const CLOSE_RESERVE: u64 = 64;

/// The keys of both directions. What packets are sealed and opened with is expanded from them, in places of
/// [`KeyPool`](super::KeyPool).
pub(crate) struct Keys {
    pub(crate) suite: Suite,
    role: Role,
    /// The newest epoch and at most two before it, each at its number modulo three; boxed like the schedule.
    open: [Option<Box<KeyMaterial>>; OVERLAP as usize],
    /// Where they are expanded, if they still are.
    pub(super) places: Places,
    /// Packets that failed to open (`PROTO §5.12`).
    pub(crate) failures: u64,
    /// The epoch that is sent in: the newest, or the one before.
    epoch: u32,
    /// The newest epoch whose keys are there.
    newest: u32,
    /// The newest epoch in which a packet arrived.
    arrived: u32,
    /// Number of the first packet sent in `epoch`.
    first: u64,
    /// When `epoch` began to be sent in.
    began: Instant,
    schedule: Box<Schedule>,
}

/// Secrets from which keys are made; boxed, so that moving a session leaves no copies behind.
struct Schedule {
    /// The root of the newest epoch.
    root: Root,
    exporter: Zeroizing<[u8; 32]>,
    /// Of `epoch`.
    seal: KeyMaterial,
    seal_header: Zeroizing<[u8; 32]>,
    open_header: Zeroizing<[u8; 32]>,
    exchange: Option<Box<Exchange>>,
}

/// The exchange for an epoch, until the keys of the one before are forgotten.
struct Exchange {
    epoch: u32,
    public: [u8; 32],
    /// Until the peer's share is there.
    secret: Option<Box<dyn X25519Key>>,
    /// The peer has `public`.
    acked: bool,
    theirs: Option<[u8; 32]>,
}

/// When an end begins the exchange for a new epoch, if the suite's limit does not come first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lifetime {
    pub(crate) packets: u64,
    pub(crate) time: Duration,
}

/// A share that breaks the protocol (`PROTO §5.15`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BadShare;

impl Keys {
    pub(crate) fn new(suite: Suite, role: Role, root: Root, now: Instant) -> Self {
        let (out, inward) = directions(role);
        let open = root.packet(0, inward, suite);
        let schedule = Schedule {
            exporter: root.exporter(suite),
            seal: root.packet(0, out, suite),
            seal_header: root.header(out, suite),
            open_header: root.header(inward, suite),
            root,
            exchange: None,
        };
        Self {
            suite,
            role,
            open: [Some(Box::new(open)), None, None],
            places: Places::NONE,
            failures: 0,
            epoch: 0,
            newest: 0,
            arrived: 0,
            first: 0,
            began: now,
            schedule: Box::new(schedule),
        }
    }

    /// Bytes of the heap that a session's keys take at most: in the middle of an exchange, with a secret of the default
    /// provider.
    pub(crate) const fn memory() -> usize {
        size_of::<Schedule>()
            + OVERLAP as usize * size_of::<KeyMaterial>()
            + size_of::<Exchange>()
            + SECRET_MEMORY
    }

    /// Begins the exchange for the next epoch with a fresh `secret` (`PROTO §5.14`).
    pub(crate) fn begin(&mut self, crypto: &dyn CryptoProvider, secret: &[u8; 32]) {
        let secret = crypto.x25519_key(secret);
        let (epoch, public) = (self.newest.saturating_add(1), secret.public());
        let exchange = Exchange { epoch, public, secret: Some(secret), acked: false, theirs: None };
        self.schedule.exchange = Some(Box::new(exchange));
    }

    /// The peer's share for an epoch arrived; returns whether the newest epoch is another one now. For a share that
    /// answers none of this end's, `secret` draws the secret of the answer.
    pub(crate) fn take_share(
        &mut self,
        crypto: &dyn CryptoProvider,
        epoch: u32,
        share: &[u8; 32],
        secret: impl FnOnce() -> Zeroizing<[u8; 32]>,
    ) -> Result<bool, BadShare> {
        let exchange = self.schedule.exchange.as_deref().filter(|exchange| exchange.epoch == epoch);
        if epoch == 0 {
            return Err(BadShare);
        }
        if epoch <= self.newest {
            let former = exchange.and_then(|exchange| exchange.theirs);
            return if former.is_none_or(|former| former == *share) { Ok(false) } else { Err(BadShare) };
        }
        // The peer begins only when this end sent in the epoch before.
        if epoch - 1 != self.newest || self.arrived != self.newest {
            return Err(BadShare);
        }
        if exchange.is_none() {
            self.begin(crypto, &secret());
        }
        self.derive(epoch, share)?;
        Ok(true)
    }

    /// The packet that carried this end's share was acknowledged; `epoch` holds the lower bits of the share's.
    pub(crate) fn on_share_acked(&mut self, epoch: u16) {
        if let Some(exchange) = &mut self.schedule.exchange
            && exchange.epoch as u16 == epoch
        {
            exchange.acked = true;
        }
    }

    /// A packet of this phase opened; returns whether it is the first of its epoch.
    pub(crate) fn on_opened(&mut self, phase: u8) -> bool {
        let epoch = self.newest - self.newest.wrapping_sub(u32::from(phase)) % PHASES;
        if epoch <= self.arrived {
            return false;
        }
        self.arrived = epoch;
        self.forget_before(epoch - 1);
        true
    }

    /// Sends in the newest epoch from packet `number` on, if the peer is known to have its keys (`PROTO §5.16`);
    /// returns whether that is new.
    pub(crate) fn advance(&mut self, number: u64, now: Instant) -> bool {
        let exchange = self.schedule.exchange.as_deref();
        let known = self.arrived == self.newest || exchange.is_some_and(|exchange| exchange.acked);
        if self.epoch == self.newest || !known {
            return false;
        }
        self.epoch = self.newest;
        let (out, _) = directions(self.role);
        self.schedule.seal = self.schedule.root.packet(self.newest, out, self.suite);
        self.first = number;
        self.began = now;
        true
    }

    /// The time for packets of former epochs is over (`PROTO §5.17`).
    pub(crate) fn forget_former(&mut self) {
        self.forget_before(self.arrived);
        self.schedule.exchange.take_if(|exchange| exchange.epoch <= self.arrived);
    }

    /// Whether to begin the exchange for the next epoch, before packet `number` is sent.
    pub(crate) fn is_due(
        &self,
        number: u64,
        largest_acked: Option<u64>,
        now: Instant,
        life: &Lifetime,
    ) -> bool {
        let limit = life.packets.min(self.suite.packet_limit() / 2);
        let aged = number - self.first >= limit || now.saturating_since(self.began) >= life.time;
        aged && self.is_settled()
            && self.newest < u32::MAX
            && largest_acked.is_some_and(|acked| acked >= self.first)
    }

    /// Whether packet `number` must not be sealed any more, but for CLOSE (`PROTO §5.12`).
    pub(crate) fn is_spent(&self, number: u64) -> bool {
        let sealed = number - self.first;
        sealed >= self.suite.packet_limit() - CLOSE_RESERVE || number >= varint::MAX - CLOSE_RESERVE
    }

    /// The share that the peer has to get, with its epoch.
    pub(crate) fn share(&self) -> Option<(u32, &[u8; 32])> {
        let exchange = self.schedule.exchange.as_deref()?;
        (exchange.epoch > self.epoch).then_some((exchange.epoch, &exchange.public))
    }

    /// The key phase of packets that are sent.
    pub(crate) const fn phase(&self) -> u8 {
        (self.epoch % PHASES) as u8
    }

    /// The epoch that is sent in.
    pub(crate) const fn epoch(&self) -> u32 {
        self.epoch
    }

    /// The key of [`epoch`](Self::epoch), which is sent with.
    #[inline]
    pub(super) fn sealing(&self) -> &KeyMaterial {
        &self.schedule.seal
    }

    /// The header protection key of what is sent, or of what is received.
    pub(super) fn header(&self, outward: bool) -> &[u8; 32] {
        if outward { &self.schedule.seal_header } else { &self.schedule.open_header }
    }

    /// The latest epoch of this phase, if there was one.
    #[inline]
    pub(crate) fn epoch_of(&self, phase: u8) -> Option<u32> {
        self.newest.checked_sub(self.newest.wrapping_sub(u32::from(phase)) % PHASES)
    }

    /// The newest epoch whose keys are there, and its root.
    #[cfg(feature = "trace")]
    pub(crate) const fn newest(&self) -> (u32, &Root) {
        (self.newest, &self.schedule.root)
    }

    /// The key for packets of this phase and its epoch, if it is there.
    #[inline]
    pub(super) fn opening(&self, phase: u8) -> Option<(u32, &KeyMaterial)> {
        let epoch = self.epoch_of(phase)?;
        if self.newest - epoch >= OVERLAP {
            return None;
        }
        Some((epoch, self.open[Self::slot(epoch)].as_deref()?))
    }

    /// The key of the newest epoch in which a packet arrived, and that epoch: the one that the next is probably in.
    pub(super) fn arriving(&self) -> (u32, &KeyMaterial) {
        let key = self.open[Self::slot(self.arrived)].as_deref();
        (self.arrived, key.expect("only keys of epochs before are forgotten"))
    }

    /// A secret that both ends share and nobody else knows, for the application (`PROTO §3.9`).
    pub(crate) fn export(&self, label: &'static str) -> [u8; 32] {
        blake3::derive_key(label, &*self.schedule.exporter)
    }

    /// Makes the keys of the next epoch; the secrets behind the former ones are wiped.
    fn derive(&mut self, epoch: u32, theirs: &[u8; 32]) -> Result<(), BadShare> {
        let schedule = &mut *self.schedule;
        let exchange = schedule.exchange.as_deref_mut().ok_or(BadShare)?;
        let secret = exchange.secret.take().ok_or(BadShare)?;
        let shared = Zeroizing::new(secret.agree(theirs));
        // An all-zero result has no secret of this end in it (`PROTO §3.3`).
        if *shared == [0; 32] {
            return Err(BadShare);
        }
        let (initiator, responder) = match self.role {
            Role::Initiator => (&exchange.public, theirs),
            Role::Responder => (theirs, &exchange.public),
        };
        schedule.root = schedule.root.next(&shared, initiator, responder, epoch);
        exchange.theirs = Some(*theirs);
        let (_, inward) = directions(self.role);
        let material = schedule.root.packet(epoch, inward, self.suite);
        self.open[Self::slot(epoch)] = Some(Box::new(material));
        self.newest = epoch;
        Ok(())
    }

    /// Whether nothing of a former exchange is left, nor a new one under way.
    fn is_settled(&self) -> bool {
        self.epoch == self.newest
            && self.schedule.exchange.is_none()
            && self.open.iter().flatten().count() == 1
    }

    const fn slot(epoch: u32) -> usize {
        (epoch % OVERLAP) as usize
    }

    fn forget_before(&mut self, epoch: u32) {
        for former in self.newest.saturating_sub(OVERLAP - 1)..epoch {
            self.open[Self::slot(former)] = None;
        }
    }
}

/// The directions that an end of this role seals and opens.
const fn directions(role: Role) -> (Direction, Direction) {
    match role {
        Role::Initiator => (Direction::ToResponder, Direction::ToInitiator),
        Role::Responder => (Direction::ToInitiator, Direction::ToResponder),
    }
}

#[cfg(test)]
mod tests;
