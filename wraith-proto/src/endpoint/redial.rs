//! A peer that fell silent is dialled beside its session (`PROTO §9.20` and on).

mod table;

use core::time::Duration;

use super::Endpoint;
use super::lifecycle::End;
use crate::crypto::Role;
use crate::error::CloseReason;
use crate::session::{EventBits, Path, Phase, SessionHandle};

pub(super) use table::Redials;

/// Probe timeouts without an answer before the peer is dialled (`PROTO §9.20`).
const TIMEOUTS: u8 = 2;

/// Time without an answer before the peer is dialled: a burst of losses is shorter.
const SILENCE: Duration = Duration::from_secs(1);

/// After a dial without success: the first pause, and the longest (`PROTO §9.22`).
const PAUSE: (Duration, Duration) = (Duration::from_secs(5), Duration::from_mins(1));

impl Endpoint {
    /// A probe timeout has passed: dials the peer if nothing was heard of it for long enough.
    pub(super) fn on_silence(&mut self, index: u32) {
        let session = &mut self.sessions[index];
        session.silent_timeouts = session.silent_timeouts.saturating_add(1);
        let silent = session.silent_timeouts >= TIMEOUTS && session.silence() >= SILENCE;
        if silent && self.config.transport.redial {
            self.redial(index);
        }
    }

    /// The idle time has passed; whether the session still waits for what a dial of its peer brings.
    pub(super) fn outlives_idle(&mut self, index: u32) -> bool {
        if !self.config.transport.redial {
            return false;
        }
        if self.redials.is_dialling(index) {
            return true;
        }
        // Who was dialled in vain before is not dialled once more at the end.
        let wants = self.config.transport.keep_alive.is_some() || self.sessions[index].owes_data();
        wants && self.redials.failed(index) == 0 && self.redial(index)
    }

    /// A packet of the session authenticated and took effect. The peer is there, so nothing has to be dialled; or this is
    /// the dial, and the peer has answered.
    pub(super) fn settle_redial(&mut self, index: u32) {
        if self.redials.is_empty() || !self.sessions[index].is_open() {
            return;
        }
        if !self.redials.is_pending(index) {
            self.cancel_redial(index);
            self.redials.leave(index);
        } else if self.sessions[index].phase == Phase::Live {
            if let Some(former) = self.redials.former_of(index) {
                self.replace(former, index);
            }
            self.redials.end_dial(index);
            self.notify(index, EventBits::CONNECTED);
        }
    }

    /// The peer, which has proven to be it, wants no session: it will not want the former one either.
    pub(super) fn refuse_redial(&mut self, dial: u32, reason: CloseReason) {
        if let Some(former) = self.redials.former_of(dial) {
            self.redials.end_dial(dial);
            self.end(former, End::silent(reason));
        }
    }

    /// Of two crossing sessions `loser` has to go. If it was dialled in the place of another, `winner` takes that.
    pub(super) fn pass_on_redial(&mut self, loser: u32, winner: u32) {
        if let Some(former) = self.redials.former_of(loser) {
            self.replace(former, winner);
        }
    }

    /// A session has ended. So has the dial in its place, unless the peer has replaced it as well; and if it was such a
    /// dial, the former session goes on alone.
    pub(super) fn end_redial(&mut self, index: u32, reason: CloseReason) {
        if self.redials.is_empty() {
            return;
        }
        if reason != CloseReason::Replaced {
            self.cancel_redial(index);
        }
        if !self.redials.is_pending(index) {
            return;
        }
        let refused = matches!(reason, CloseReason::Refused | CloseReason::Peer(_));
        if refused && self.sessions[index].keys.is_some() {
            self.refuse_redial(index, reason);
        }
        self.on_redial_failed(index);
    }

    /// The session that took the place of one that has ended.
    pub(crate) fn successor_of(&self, index: u32) -> Option<SessionHandle> {
        self.redials.successor(index)
    }

    /// Dials the peer of a session where it was heard last; whether there is a dial now.
    fn redial(&mut self, index: u32) -> bool {
        let now = self.now;
        let session = &self.sessions[index];
        let settled = session.phase == Phase::Live && session.handshake.is_none();
        let Some(peer) = session.peer.filter(|_| settled && self.redials.may_dial(index, now)) else {
            return false;
        };
        let path = Path { local: None, ..session.path };
        // Strangers keep their room: dials of this kind never take more than a quarter of it.
        if self.handshakes.is_crowded() {
            return false;
        }
        let Some(dial) = self.new_session(Role::Initiator, path) else { return false };
        if self.begin_dial(dial, path, Some(peer)).is_none() || !self.redials.begin(index, dial) {
            self.free(dial);
            return false;
        }
        self.sessions[dial].peer = Some(peer);
        self.stats.handshakes_initiated += 1;
        self.stats.redials += 1;
        true
    }

    /// The former session ends, for its peer answers in another one.
    fn replace(&mut self, former: u32, successor: u32) {
        let successor = self.handle_of(successor);
        self.redials.succeed(former, successor);
        self.end(former, End::replaced());
    }

    /// Ends the dial in the place of a session, of which the application never hears.
    fn cancel_redial(&mut self, index: u32) {
        if let Some(dial) = self.redials.abandon(index) {
            self.end(dial, End::local(0));
        }
    }

    fn on_redial_failed(&mut self, dial: u32) {
        let former = self.redials.former_of(dial);
        self.redials.end_dial(dial);
        let Some(former) = former else { return };
        let pause = PAUSE.0.saturating_mul(1 << self.redials.failed(former).min(6)).min(PAUSE.1);
        self.redials.fail(former, self.now.saturating_add(pause));
        let own = self.config.transport.idle_timeout;
        let session = &self.sessions[former];
        if session.timers.at(super::TimerKind::Idle).is_none() && session.idle_timeout(own).is_some() {
            self.end(former, End::silent(CloseReason::IdleTimeout));
        }
    }
}
