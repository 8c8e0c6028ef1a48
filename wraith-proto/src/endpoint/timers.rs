//! Time passes: `handle_timeout`, and which deadline of a session is next.

use super::lifecycle::End;
use super::scope::Scope;
use super::{Budget, Endpoint, Progress, TimerKind};
use crate::error::CloseReason;
use crate::session::{Control, Phase};
use crate::time::Instant;

impl Endpoint {
    /// Does what is due at `now`, for at most `budget` sessions.
    pub fn handle_timeout(&mut self, now: Instant, budget: Budget) -> Progress {
        self.advance(now);
        for _ in 0..budget.0 {
            let Some(id) = self.wheel.pop_due(self.now) else { return Progress::Done };
            self.stats.sessions_visited += 1;
            let (sessions, handshakes) = (self.config.limits.sessions, self.config.limits.handshakes);
            if id >= sessions + handshakes {
                self.on_check_timer(id - sessions - handshakes);
            } else if id >= sessions {
                self.on_handshake_timer(id - sessions);
            } else {
                self.on_session_timer(id);
            }
        }
        match self.wheel.next() {
            Some((at, _)) if at <= self.now => Progress::More,
            _ => Progress::Done,
        }
    }

    /// Brings the session's place in the wheel and in the list of senders up to date; called after every
    /// change of its state.
    pub(super) fn settle(&mut self, index: u32) {
        let Some(session) = self.sessions.get_mut(index) else { return };
        if session.is_open() {
            session.timers.set(TimerKind::Loss, session.recovery.deadline());
            session.timers.set(TimerKind::Ack, session.acks.deadline);
            session.timers.set(TimerKind::Mtu, session.recovery.mtu_deadline());
        }
        if session.has_work() {
            self.ready_links.push_back(&mut self.ready, index);
        }
        let at = session.timers.deadline(self.config.transport.timer_granularity);
        if at == Instant::NEVER {
            self.wheel.cancel(index);
        } else if self.wheel.deadline(index) != Some(at) {
            self.wheel.arm(index, at);
        }
    }

    /// Something authentic arrived: the session lives on.
    pub(super) fn postpone_idle(&mut self, index: u32) {
        let session = &mut self.sessions[index];
        let idle = session.idle_timeout(self.config.transport.idle_timeout);
        let at = idle.map(|idle| self.now.saturating_add(idle.max(session.recovery.pto() * 3)));
        session.timers.set(TimerKind::Idle, at);
    }

    /// Something was sent: no keep-alive is due for a while.
    pub(super) fn postpone_keep_alive(&mut self, index: u32) {
        if let Some(interval) = self.config.transport.keep_alive {
            let at = self.now.saturating_add(interval);
            self.sessions[index].timers.set(TimerKind::KeepAlive, Some(at));
        }
    }

    fn on_session_timer(&mut self, index: u32) {
        let now = self.now;
        let Some(session) = self.sessions.get_mut(index) else { return };
        if session.timers.expire(TimerKind::Close, now) {
            self.on_close_timer(index);
            return;
        }
        if session.timers.expire(TimerKind::Idle, now) && !self.outlives_idle(index) {
            self.end(index, End::silent(CloseReason::IdleTimeout));
            return;
        }
        let session = &mut self.sessions[index];
        if session.timers.expire(TimerKind::KeepAlive, now) {
            session.control.0 |= Control::PING;
        }
        session.timers.expire(TimerKind::Pacing, now);
        if session.timers.expire(TimerKind::Mtu, now) {
            session.recovery.on_mtu_timer(now);
        }
        if session.timers.expire(TimerKind::Ack, now) {
            session.acks.on_timer(now);
        }
        if session.timers.expire(TimerKind::Rekey, now)
            && let Some(keys) = &mut session.keys
        {
            keys.forget_former();
        }
        if session.timers.expire(TimerKind::Loss, now) {
            self.on_loss_timer(index);
        }
        self.settle(index);
    }

    fn on_loss_timer(&mut self, index: u32) {
        let now = self.now;
        let (recovery, scope) = Scope::split(index, &mut self.sessions[index], &mut self.streams);
        let mut scope = self.hook.watch(now, index, scope);
        let before = recovery.packets_lost;
        let probes = recovery.on_timer(now, &mut self.sent, &mut scope);
        self.stats.packets_lost += recovery.packets_lost - before;
        if probes {
            self.repeat_reports(index);
            self.on_silence(index);
        }
        self.after_acks(index);
        self.trace_metrics(index);
    }

    fn on_close_timer(&mut self, index: u32) {
        let session = &mut self.sessions[index];
        if session.phase == Phase::Closing {
            session.phase = Phase::Draining;
            self.forget_close(index);
        }
        self.settle(index);
        self.free_if_over(index);
    }
}
