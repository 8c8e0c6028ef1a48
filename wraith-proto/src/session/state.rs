//! What an endpoint knows of one session.

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

use super::cids::Cids;
use super::epochs::Keys;
use super::path::CheckSlot;
use super::replay::ReceivedWindow;
use crate::config::Transport;
use crate::crypto::{PeerId, Role};
use crate::endpoint::TimerKind;
use crate::error::CloseReason;
use crate::meta::{Ecn, TxMeta, Via};
use crate::recovery::{Acks, PathMtu, Recovery};
use crate::stream::{DatagramQueue, SessionStreams};
use crate::time::{Instant, Millis};

/// Where a session is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// The dialling side, before RESPONSE was taken.
    Handshaking,
    /// The peer is known; this end's application has to admit it.
    Pending,
    /// Keys are there, but the peer's application has not admitted this end.
    Waiting,
    /// Application data flows.
    Live,
    /// This end closed: CLOSE is sent, and again when the peer goes on.
    Closing,
    /// The peer knows, or never will: the session only waits to be forgotten.
    Draining,
}

/// Where the peer is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    pub(crate) remote: SocketAddr,
    pub(crate) local: Option<IpAddr>,
    pub(crate) via: Via,
}

impl Path {
    pub(crate) fn meta(&self, ecn: Ecn) -> TxMeta {
        TxMeta { to: self.remote, from: self.local, via: self.via, ecn }
    }
}

/// What the peer said of itself in the handshake (`PROTO §4.4`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerParameters {
    pub(crate) idle_timeout: Millis,
    pub(crate) max_datagram: u16,
    pub(crate) stream_credit: u64,
    pub(crate) streams_bi: u32,
    pub(crate) streams_uni: u32,
    pub(crate) max_ack_delay: Millis,
    pub(crate) ask: bool,
}

impl PeerParameters {
    /// What holds until the peer has spoken.
    pub(crate) const UNKNOWN: Self = Self {
        idle_timeout: Millis::new(0),
        max_datagram: 1200,
        stream_credit: 0,
        streams_bi: 0,
        streams_uni: 0,
        max_ack_delay: Millis::new(25),
        ask: false,
    };
}

/// Session frames that wait to be sent, as bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Control(pub(crate) u32);

impl Control {
    pub(crate) const PING: u32 = 1;
    pub(crate) const AUTHORIZED: u32 = 2;
    pub(crate) const MAX_BI: u32 = 4;
    pub(crate) const MAX_UNI: u32 = 8;
    /// `NEW_CONNECTION_ID` for the four local slots.
    pub(crate) const NEW_ID: u32 = 0x10;
    /// `RETIRE_CONNECTION_ID` for the four remembered sequence numbers.
    pub(crate) const RETIRE_ID: u32 = 0x100;
    /// `KEY_SHARE`. A record of a sent one has the lower bits of its epoch above [`Self::EPOCH_SHIFT`].
    pub(crate) const KEY_SHARE: u32 = 0x1000;
    /// How many of the bits above are in use.
    pub(crate) const BITS: u32 = 13;
    /// What is sent again when its packet is lost.
    pub(crate) const REPEATED: u32 = ((1 << Self::BITS) - 1) & !Self::PING;
    pub(crate) const EPOCH_SHIFT: u32 = 16;
}

/// Session events that wait to be polled, as bits in the order in which they are reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct EventBits(pub(crate) u8);

impl EventBits {
    pub(crate) const AUTHORIZE: u8 = 1;
    pub(crate) const CONNECTED: u8 = 2;
    pub(crate) const DATAGRAMS: u8 = 4;
    pub(crate) const STREAMS: u8 = 8;
    pub(crate) const CLOSED: u8 = 16;
    pub(crate) const MAX_DATAGRAM: u8 = 32;
    pub(crate) const PATH: u8 = 64;
}

/// How a session ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ending {
    pub(crate) reason: CloseReason,
    /// The CLOSE to send: `true` for the application's, and the code.
    pub(crate) frame: Option<(bool, u32)>,
    /// CLOSE has to be sent now.
    pub(crate) due: bool,
    /// Packets that arrived since.
    pub(crate) late: u32,
}

/// The deadlines of one session, one for each kind.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Timers([Option<Instant>; Self::COUNT]);

impl Timers {
    const COUNT: usize = TimerKind::ALL.len();

    pub(crate) fn set(&mut self, kind: TimerKind, at: Option<Instant>) {
        if let Some(slot) = self.0.get_mut(kind as usize) {
            *slot = at;
        }
    }

    pub(crate) fn clear(&mut self) {
        self.0 = [None; Self::COUNT];
    }

    pub(crate) fn at(&self, kind: TimerKind) -> Option<Instant> {
        self.0.get(kind as usize).copied().flatten()
    }

    /// Clears the timer if it is due; returns whether it was.
    pub(crate) fn expire(&mut self, kind: TimerKind, now: Instant) -> bool {
        let due = self.at(kind).is_some_and(|at| at <= now);
        if due {
            self.set(kind, None);
        }
        due
    }

    /// The next deadline, or `NEVER`. Pacing is exact; the others are rounded up to `granularity`, which keeps their order: the
    /// earliest alone has to be.
    pub(crate) fn deadline(&self, granularity: Duration) -> Instant {
        let (mut pacing, mut earliest) = (Instant::NEVER, Instant::NEVER);
        for (slot, &kind) in self.0.iter().zip(&TimerKind::ALL) {
            let at = slot.unwrap_or(Instant::NEVER);
            let least = if kind == TimerKind::Pacing { &mut pacing } else { &mut earliest };
            *least = at.min(*least);
        }
        pacing.min(round_up(earliest, granularity))
    }

    /// The next deadline, and what it is for.
    pub(crate) fn next(&self, granularity: Duration) -> Option<(Instant, TimerKind)> {
        let deadline = self.deadline(granularity);
        let is_next = |&kind: &TimerKind| {
            let at = self.at(kind)?;
            let at = if kind == TimerKind::Pacing { at } else { round_up(at, granularity) };
            (at == deadline).then_some((at, kind))
        };
        TimerKind::ALL.iter().find_map(is_next)
    }
}

fn round_up(at: Instant, granularity: Duration) -> Instant {
    let step = crate::time::nanos(granularity).max(1);
    Instant::from_nanos(at.as_nanos().checked_next_multiple_of(step).unwrap_or(u64::MAX))
}

/// Everything of one session.
pub(crate) struct SessionState {
    pub(crate) role: Role,
    pub(crate) phase: Phase,
    pub(crate) peer: Option<PeerId>,
    pub(crate) instance: [u8; 16],
    /// When the handshake was done.
    pub(crate) established: Instant,
    /// Index of the application protocol in `Config::protocols`.
    pub(crate) protocol: u8,
    pub(crate) keys: Option<Keys>,
    pub(crate) path: Path,
    pub(crate) peer_parameters: PeerParameters,
    pub(crate) cids: Cids,
    pub(crate) window: ReceivedWindow,
    pub(crate) acks: Acks,
    pub(crate) recovery: Recovery,
    pub(crate) streams: SessionStreams,
    /// Streams whose refused bytes the peer does not know of yet.
    pub(crate) reports: u32,
    pub(crate) datagrams: DatagramQueue,
    pub(crate) control: Control,
    pub(crate) timers: Timers,
    pub(crate) events: EventBits,
    pub(crate) ending: Option<Ending>,
    /// Slot of the handshake that is not over yet.
    pub(crate) handshake: Option<u32>,
    pub(crate) packets_sent: u64,
    pub(crate) packets_received: u64,
    /// A packet was sent since the keep-alive timer was set.
    pub(crate) sent_since: bool,
    /// Probe timeouts since anything authentic arrived (`PROTO §9.20`).
    pub(crate) silent_timeouts: u8,
    /// Challenges are to be sent.
    pub(crate) asks_path: bool,
    /// Slot of the id of this end that the peer uses.
    pub(crate) used_id: u8,
    /// The check of another address, or the memory of recent ones.
    pub(crate) check: Option<CheckSlot>,
}

const _: () = assert!(size_of::<SessionState>() <= 3072, "an idle session must stay within 4 KiB");

impl core::fmt::Debug for SessionState {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("SessionState")
            .field("phase", &self.phase)
            .field("peer", &self.peer)
            .finish_non_exhaustive()
    }
}

impl SessionState {
    pub(crate) fn new(now: Instant, role: Role, path: Path, transport: &Transport) -> Self {
        let size = transport.min_datagram;
        let (mtu, delay) = (PathMtu::new(size, size, false, false), PeerParameters::UNKNOWN.max_ack_delay);
        Self {
            role,
            phase: Phase::Handshaking,
            peer: None,
            instance: [0; 16],
            established: now,
            protocol: 0,
            keys: None,
            path,
            peer_parameters: PeerParameters::UNKNOWN,
            cids: Cids::default(),
            window: ReceivedWindow::new(),
            acks: Acks::new(now),
            recovery: Recovery::new(now, mtu, transport, delay),
            streams: SessionStreams::default(),
            reports: 0,
            datagrams: DatagramQueue::default(),
            control: Control::default(),
            timers: Timers::default(),
            events: EventBits::default(),
            ending: None,
            handshake: None,
            packets_sent: 0,
            packets_received: 0,
            sent_since: false,
            silent_timeouts: 0,
            asks_path: false,
            used_id: 0,
            check: None,
        }
    }

    /// Whether the session takes part in traffic: it has keys and was not closed.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Pending | Phase::Waiting | Phase::Live) && self.keys.is_some()
    }

    /// Size of the datagrams that it sends, in bytes of UDP payload.
    pub(crate) fn mtu(&self) -> u16 {
        self.recovery.path_mtu.size()
    }

    /// How long the peer has been silent at least, of the time that this end was called.
    pub(crate) fn silence(&self) -> Duration {
        self.recovery.after_timeouts(self.silent_timeouts.into())
    }

    /// Whether this end's application may send.
    pub(crate) fn may_send(&self) -> bool {
        self.phase == Phase::Live
    }

    /// The lower bits of the epoch of this end's share.
    pub(crate) fn share_epoch(&self) -> u32 {
        let share = self.keys.as_ref().and_then(Keys::share);
        share.map_or(0, |(epoch, _)| epoch & 0xffff)
    }

    /// The idle time that both ends agree to: the shorter one, zero meaning none.
    pub(crate) fn idle_timeout(&self, own: Duration) -> Option<Duration> {
        [own, self.peer_parameters.idle_timeout.duration()]
            .into_iter()
            .filter(|timeout| !timeout.is_zero())
            .min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_timer_is_the_earliest_after_rounding_and_the_first_of_those_that_fall_together() {
        let step = Duration::from_nanos(10);
        let next = |set: &[(TimerKind, u64)]| {
            let mut timers = Timers::default();
            for &(kind, at) in set {
                timers.set(kind, Some(Instant::from_nanos(at)));
            }
            assert_eq!(timers.deadline(step), timers.next(step).map_or(Instant::NEVER, |(at, _)| at));
            timers.next(step).map(|(at, kind)| (at.as_nanos(), kind))
        };
        use TimerKind::{Ack, Idle, Loss, Pacing};
        assert_eq!(next(&[]), None);
        assert_eq!(next(&[(Idle, 41), (Loss, 55)]), Some((50, Idle)));
        assert_eq!(next(&[(Idle, 41), (Ack, 50), (Loss, 51)]), Some((50, Ack)));
        assert_eq!(next(&[(Ack, 41), (Pacing, 49)]), Some((49, Pacing)));
        assert_eq!(next(&[(Ack, 41), (Pacing, 50)]), Some((50, Ack)));
        assert_eq!(next(&[(Idle, 41), (Pacing, 50)]), Some((50, Pacing)));
        assert_eq!(next(&[(Idle, 41), (Pacing, 51)]), Some((50, Idle)));
        assert_eq!(next(&[(Idle, u64::MAX - 1)]), Some((u64::MAX, Idle)));
    }
}
