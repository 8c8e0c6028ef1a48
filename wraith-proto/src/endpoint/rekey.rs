//! Fresh keys under way: when the exchange begins, and what its frames and packets bring about (`PROTO §5.13` to `§5.18`).

use super::lifecycle::{End, Violation};
use super::{Endpoint, TimerKind};
use crate::session::{BadShare, Control, Lifetime};
use crate::wire::KeyShare;

/// Probe timeouts for which packets of a former epoch may still arrive (`PROTO §5.17`).
const OVERLAP: u32 = 3;

impl Endpoint {
    /// Looks at the age of the key before a packet is sealed: an old one begins the exchange for the next, a spent one
    /// ends the session.
    pub(super) fn mind_keys(&mut self, index: u32) {
        let transport = &self.config.transport;
        let life = Lifetime { packets: transport.rekey_packets, time: transport.rekey_interval };
        let session = &mut self.sessions[index];
        let Some(keys) = session.keys.as_mut().filter(|_| session.ending.is_none()) else { return };
        let number = session.recovery.packet_number();
        if keys.is_spent(number) {
            self.end(index, End::exhausted());
        } else if keys.is_due(number, session.recovery.largest_acked(), self.now, &life) {
            let secret = self.rng.secret();
            keys.begin(self.config.crypto, &secret);
            session.control.0 |= Control::KEY_SHARE;
            self.stats.dh_operations += 1;
        }
    }

    /// A packet of this key phase is authentic.
    pub(super) fn on_phase(&mut self, index: u32, phase: u8) {
        let session = &mut self.sessions[index];
        if session.keys.as_mut().is_some_and(|keys| keys.on_opened(phase)) {
            let until = self.now.saturating_add(session.recovery.pto() * OVERLAP);
            session.timers.set(TimerKind::Rekey, Some(until));
            self.advance_epoch(index);
        }
    }

    /// The peer's share arrived; if this end sent none, it does so now.
    pub(super) fn on_key_share(&mut self, index: u32, share: &KeyShare<'_>) -> Result<(), Violation> {
        // A group that was not agreed on is a violation, and there is one alone.
        let theirs = share.as_x25519().ok_or(Violation)?;
        let session = &mut self.sessions[index];
        let Some(keys) = &mut session.keys else { return Ok(()) };
        let before = keys.share().is_some();
        let rng = &mut self.rng;
        let news = keys
            .take_share(self.config.crypto, share.epoch, theirs, || rng.secret())
            .map_err(|BadShare| Violation)?;
        self.stats.dh_operations += u64::from(news);
        if news && !before {
            session.control.0 |= Control::KEY_SHARE;
            self.stats.dh_operations += 1;
        }
        if news {
            self.trace_keys(index);
        }
        Ok(())
    }

    /// Sends in the newest epoch if the peer is known to have its keys.
    pub(super) fn advance_epoch(&mut self, index: u32) {
        let session = &mut self.sessions[index];
        let number = session.recovery.packet_number();
        if let Some(keys) = &mut session.keys
            && keys.advance(number, self.now)
        {
            self.stats.epochs_begun += 1;
            self.trace_epoch(index, number);
        }
    }
}
