//! Dials the addresses of peers one after the other, without waiting for any, until one answers.

use std::time::Duration;

use wraith_proto::{CloseReason, ConnectError, DropReason, Endpoint, Instant, Peer, SessionHandle, Via};

use crate::address::Target;
use crate::failure::{Failure, failed};

/// Between the first datagrams to two addresses (RFC 8305 §8).
const STAGGER: Duration = Duration::from_millis(250);

/// Long enough for three first messages to each address, after 0, 250 and 750 ms, and too short for a fourth,
/// after 1,750 ms (`PROTO §4.10`, `§11.7`). Whoever answers has the time of the handshake to finish it.
const PATIENCE: Duration = Duration::from_millis(1_700);

/// Where sessions may begin, and what became of the attempts.
#[derive(Debug)]
pub(super) struct Dialer {
    targets: Vec<Target>,
    next: usize,
    next_at: Instant,
    running: Vec<Attempt>,
    ended: Vec<(Target, End)>,
}

/// A dial that was not answered yet.
#[derive(Clone, Copy, Debug)]
struct Attempt {
    session: SessionHandle,
    target: Target,
    until: Instant,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    Silent,
    /// Somebody answered who is not the peer.
    OtherPeer,
    Refused,
    Impossible,
}

impl Dialer {
    pub(super) fn new(targets: Vec<Target>, now: Instant) -> Self {
        Self { targets, next: 0, next_at: now, running: Vec::new(), ended: Vec::new() }
    }

    /// Dials whoever's turn has come, and gives up whoever did not answer.
    pub(super) fn dial_due(&mut self, now: Instant, endpoint: &mut Endpoint) {
        for attempt in self.running.iter().filter(|attempt| attempt.until <= now) {
            if let Some(mut session) = endpoint.session(attempt.session) {
                session.close(now, 0);
            }
        }
        while let Some(&target) = self.targets.get(self.next) {
            // If nobody is left to wait for, the next one need not wait.
            if now < self.next_at && !self.running.is_empty() {
                return;
            }
            self.next += 1;
            self.next_at = now.saturating_add(STAGGER);
            let peer = Peer { addr: target.addr, id: Some(target.id) };
            match endpoint.connect(now, peer, Via(0)) {
                Ok(session) => {
                    self.running.push(Attempt { session, target, until: now.saturating_add(PATIENCE) });
                }
                // A slot comes free when another attempt ends.
                Err(ConnectError::TableFull) if !self.running.is_empty() => {
                    self.next -= 1;
                    return;
                }
                Err(_) => self.ended.push((target, End::Impossible)),
            }
        }
    }

    /// `session` is the one: ends the other attempts.
    pub(super) fn win(
        &mut self,
        session: SessionHandle,
        now: Instant,
        endpoint: &mut Endpoint,
    ) -> Option<Target> {
        let at = self.running.iter().position(|attempt| attempt.session == session)?;
        let Attempt { target, .. } = self.running.swap_remove(at);
        self.stop(now, endpoint);
        Some(target)
    }

    /// Ends all attempts.
    pub(super) fn stop(&mut self, now: Instant, endpoint: &mut Endpoint) {
        for attempt in self.running.drain(..) {
            if let Some(mut session) = endpoint.session(attempt.session) {
                session.close(now, 0);
            }
        }
        self.next = self.targets.len();
    }

    /// An attempt has ended.
    pub(super) fn on_closed(&mut self, session: SessionHandle, reason: CloseReason, endpoint: &Endpoint) {
        let Some(at) = self.running.iter().position(|attempt| attempt.session == session) else { return };
        let Attempt { target, .. } = self.running.swap_remove(at);
        let end = match reason {
            // Answers of somebody else are dropped; what remains is a refusal or a timeout (`PROTO §4.19`).
            CloseReason::Local | CloseReason::Refused if endpoint.stats().drops(DropReason::Refused) > 0 => {
                End::OtherPeer
            }
            CloseReason::Refused => End::Refused,
            _ => End::Silent,
        };
        self.ended.push((target, end));
    }

    /// Why nobody is left to wait for, if so.
    pub(super) fn failure(&self) -> Option<Failure> {
        (self.running.is_empty() && self.next == self.targets.len()).then(|| failed(self.message()))
    }

    /// When the next attempt is due, or one is given up.
    pub(super) fn wake_at(&self) -> Option<Instant> {
        let next = (self.next < self.targets.len()).then_some(self.next_at);
        self.running.iter().map(|attempt| attempt.until).chain(next).min()
    }

    fn message(&self) -> String {
        let with = |end: End| self.ended.iter().find(|(_, ended)| *ended == end).map(|(target, _)| target);
        let addresses: Vec<_> = self.ended.iter().map(|(target, _)| target.addr.to_string()).collect();
        let addresses = addresses.join(", ");
        if let Some(Target { addr, .. }) = with(End::Refused) {
            return format!(
                "{addr} refused the session: it sends to another peer only, or speaks another version; ask its owner"
            );
        }
        if let Some(Target { id, .. }) = with(End::OtherPeer) {
            return format!(
                "another peer than {id} answers at {addresses}: get a new ticket from the sender"
            );
        }
        if self.targets.is_empty() {
            return "the ticket has no address that can be reached from here: give one with --from PEER@ADDR"
                .to_owned();
        }
        format!(
            "no answer from {addresses}: check that `wraith-cli send` still runs there and that no firewall stops UDP"
        )
    }
}
