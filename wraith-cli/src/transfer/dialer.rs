//! Dials the addresses of peers one after the other, without waiting for any, until one answers.

mod named;

use std::time::Duration;

use wraith_proto::{CloseReason, ConnectError, DropReason, Endpoint, Instant, Peer, SessionHandle, Via};

use crate::address::{Candidate, Target};
use crate::failure::{Failure, failed};

use named::Named;

/// Between the first datagrams to two addresses (RFC 8305 §8).
const STAGGER: Duration = Duration::from_millis(250);

/// Long enough for three first messages to each address, after 0, 250 and 750 ms, and too short for a fourth,
/// after 1,750 ms (`PROTO §4.10`, `§11.7`). Whoever answers has the time of the handshake to finish it.
const PATIENCE: Duration = Duration::from_millis(1_700);

/// Between two dials of an address that has not answered yet, at least, and how often it is dialled, at most: three
/// datagrams in ten seconds, thirty in all (`PROTO §11.7`).
const ROUND: Duration = Duration::from_secs(10);
const ROUNDS: u32 = 10;

/// Before a peer that was lost is dialled again: the first time, and at most.
const PAUSE: (Duration, Duration) = (Duration::from_millis(300), Duration::from_secs(5));

/// Where sessions may begin, and what became of the attempts.
#[derive(Debug)]
pub(super) struct Dialer {
    targets: Vec<Candidate>,
    next: usize,
    next_at: Instant,
    running: Vec<Attempt>,
    ended: Vec<(Candidate, End)>,
    /// Whose turn did not come, or was cut short, since another one answered; and whose turn was cut short once.
    passed_over: Vec<Candidate>,
    cut_short: Vec<Candidate>,
    /// Those that networks name while it dials.
    named: Named,
    /// When a dial last began.
    dialled_at: Instant,
    again: Again,
    /// Nobody was dialled twice yet.
    first: bool,
    /// The addresses that have not answered in the first round, until that was said.
    silent: Option<String>,
}

/// Whether who has not answered is dialled again.
#[derive(Clone, Copy, Debug)]
enum Again {
    No,
    /// Nobody has answered yet: all of them, after this pause, if that is before the end.
    Rounds {
        pause: Duration,
        until: Instant,
    },
    /// A peer was lost: it alone, after this pause, and ever more seldom.
    Seek {
        pause: Duration,
    },
}

/// A dial that was not answered yet.
#[derive(Clone, Copy, Debug)]
struct Attempt {
    session: SessionHandle,
    target: Candidate,
    until: Instant,
    /// A network has named it while others were dialled.
    is_named: bool,
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
    /// Dials `targets` until one answers, for `patience` but once at least.
    pub(super) fn new(targets: Vec<Candidate>, now: Instant, patience: Duration) -> Self {
        let pause = ROUND.max(patience / ROUNDS);
        Self {
            targets,
            next: 0,
            next_at: now,
            running: Vec::new(),
            ended: Vec::new(),
            passed_over: Vec::new(),
            cut_short: Vec::new(),
            named: Named::default(),
            dialled_at: now,
            again: Again::Rounds { pause, until: now.saturating_add(patience) },
            first: true,
            silent: None,
        }
    }

    /// Networks have named these: dials each as soon as it can, once, and again no sooner than they name it again.
    pub(super) fn add(&mut self, named: Vec<Candidate>, now: Instant) {
        for candidate in named {
            let is_at = |other: &Candidate| other.addr == candidate.addr;
            let is_coming = self.targets[self.next..].iter().any(is_at);
            if !is_coming && !self.running.iter().any(|attempt| is_at(&attempt.target)) {
                self.named.push(candidate, now);
            }
        }
    }

    /// Networks have named these, and somebody is there already: they are kept for later.
    pub(super) fn keep(&mut self, named: Vec<Candidate>) {
        for candidate in named {
            if self.passed_over.len() < named::MOST && !self.passed_over.contains(&candidate) {
                self.passed_over.push(candidate);
            }
        }
    }

    /// Looks for the peer at `target`, which was lost: there again and again, and once wherever else it may be
    /// (`PROTO §11.8`).
    pub(super) fn seek(&mut self, target: Target, now: Instant) {
        self.targets.retain(|other| !other.may_be(&target));
        self.targets.insert(0, target.into());
        (self.next, self.next_at) = (0, now);
        self.ended.clear();
        self.again = Again::Seek { pause: PAUSE.0 };
        let kept =
            self.passed_over.iter().filter(|other| !self.targets.contains(other) && !other.may_be(&target));
        self.add(kept.copied().collect(), now);
    }

    /// The peer at `target` has nothing: dials those that were passed over. Returns whether there are any.
    pub(super) fn pass_on(&mut self, target: Target, now: Instant) -> bool {
        let mut others = std::mem::take(&mut self.passed_over);
        others.retain(|other| other.id != Some(target.id) && !other.may_be(&target));
        let any = !others.is_empty();
        if any {
            self.targets = others;
            (self.next, self.next_at) = (0, now);
            self.ended.clear();
            self.again = Again::No;
        }
        any
    }

    /// Whether `session` is an attempt that may still win.
    pub(super) fn is_dialling(&self, session: SessionHandle) -> bool {
        self.running.iter().any(|attempt| attempt.session == session)
    }

    /// Dials whoever's turn has come, and gives up whoever did not answer.
    pub(super) fn dial_due(&mut self, now: Instant, endpoint: &mut Endpoint) {
        for attempt in self.running.iter().filter(|attempt| attempt.until <= now) {
            if let Some(mut session) = endpoint.session(attempt.session) {
                session.close(now, 0);
            }
        }
        while let Some(target) = self.named.next(now, self.running.is_empty()) {
            if !self.dial(target, true, now, endpoint) {
                self.named.put_back(target);
                break;
            }
        }
        while let Some(&target) = self.targets.get(self.next) {
            // If nobody is left to wait for, the next one need not wait.
            if now < self.next_at && (self.next == 0 || !self.running.is_empty()) {
                return;
            }
            self.next_at = now.saturating_add(STAGGER);
            self.dialled_at = now;
            if !self.dial(target, false, now, endpoint) {
                return;
            }
            self.next += 1;
        }
        self.begin_again(now);
    }

    /// Dials `target`, if there is room.
    fn dial(&mut self, target: Candidate, is_named: bool, now: Instant, endpoint: &mut Endpoint) -> bool {
        let peer = Peer { addr: target.addr, id: target.id };
        match endpoint.connect(now, peer, Via(0)) {
            Ok(session) => {
                self.named.count(target.addr, now);
                let until = now.saturating_add(PATIENCE);
                self.running.push(Attempt { session, target, until, is_named });
            }
            // A slot comes free when another attempt ends.
            Err(ConnectError::TableFull) if !self.running.is_empty() => return false,
            Err(_) if is_named => self.named.end(target, End::Impossible),
            Err(_) => self.ended.push((target, End::Impossible)),
        }
        self.passed_over.retain(|other| *other != target);
        true
    }

    /// `session` is the one: ends the other attempts.
    pub(super) fn win(
        &mut self,
        session: SessionHandle,
        now: Instant,
        endpoint: &mut Endpoint,
    ) -> Option<Candidate> {
        let at = self.running.iter().position(|attempt| attempt.session == session)?;
        let Attempt { target, .. } = self.running.swap_remove(at);
        if !matches!(self.again, Again::Seek { .. }) {
            // Nobody is dialled for the third time because of others (`PROTO §11.8`).
            for Attempt { target, .. } in &self.running {
                if !self.cut_short.contains(target) {
                    self.cut_short.push(*target);
                    self.passed_over.push(*target);
                }
            }
            self.passed_over.extend(&self.targets[self.next..]);
        }
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
        let waiting = self.named.drain();
        self.keep(waiting);
        if let Again::Seek { .. } = std::mem::replace(&mut self.again, Again::No) {
            // Whoever is lost again is looked for elsewhere no more than once (`PROTO §11.8`).
            self.targets.drain(1..self.next.max(1));
        }
        self.next = self.targets.len();
    }

    /// An attempt has ended.
    pub(super) fn on_closed(
        &mut self,
        now: Instant,
        session: SessionHandle,
        reason: CloseReason,
        endpoint: &Endpoint,
    ) {
        let Some(at) = self.running.iter().position(|attempt| attempt.session == session) else { return };
        let Attempt { target, is_named, .. } = self.running.swap_remove(at);
        let end = match reason {
            // Answers of somebody else are dropped; what remains is a refusal or a timeout (`PROTO §4.19`).
            CloseReason::Local | CloseReason::Refused
                if target.id.is_some() && endpoint.stats().drops(DropReason::Refused) > 0 =>
            {
                End::OtherPeer
            }
            CloseReason::Refused => End::Refused,
            _ => End::Silent,
        };
        if is_named {
            self.named.end(target, end);
        } else {
            self.ended.push((target, end));
        }
        self.begin_again(now);
    }

    /// Why nobody is left to wait for, if so. Who is looked for may still come, unless it has refused.
    pub(super) fn failure(&self) -> Option<Failure> {
        let seeks = matches!(self.again, Again::Seek { .. });
        let ended = if seeks { self.with(End::Refused).is_some() } else { self.is_over() };
        ended.then(|| failed(self.message()))
    }

    /// The addresses that did not answer, when they are to be dialled again for the first time.
    pub(super) fn take_silent(&mut self) -> Option<String> {
        self.silent.take()
    }

    /// Who answered in place of the peer that is looked for, if anybody did.
    pub(super) fn impostor(&self) -> Option<Failure> {
        self.with(End::OtherPeer).map(|_| failed(self.message()))
    }

    /// When the next attempt is due, or one is given up.
    pub(super) fn wake_at(&self) -> Option<Instant> {
        let next = (self.next < self.targets.len()).then_some(self.next_at);
        self.running.iter().map(|attempt| attempt.until).chain(next).chain(self.named.wake_at()).min()
    }

    /// Whether nobody is dialled just now.
    pub(super) fn is_idle(&self) -> bool {
        self.running.is_empty() && self.named.wake_at().is_none()
    }

    /// Whether there was anybody to dial.
    pub(super) fn has_tried(&self) -> bool {
        !self.ended.is_empty() || !self.named.ended().is_empty()
    }

    /// Whether every target was dialled and has ended.
    fn is_over(&self) -> bool {
        self.is_idle() && self.next == self.targets.len()
    }

    /// After a pause, dials again who did not answer.
    fn begin_again(&mut self, now: Instant) {
        if !self.is_over() || self.with(End::Refused).is_some() {
            return;
        }
        match self.again {
            Again::No => {}
            Again::Rounds { pause, until } => self.begin_round(self.dialled_at.saturating_add(pause), until),
            Again::Seek { pause } => {
                self.targets.truncate(1);
                (self.next, self.next_at) = (0, now.saturating_add(pause));
                self.ended.retain(|(_, end)| *end == End::OtherPeer);
                self.ended.truncate(1);
                self.again = Again::Seek { pause: pause.saturating_mul(2).min(PAUSE.1) };
            }
        }
    }

    /// Dials everybody once more at `at`, unless that is too late or somebody has answered.
    fn begin_round(&mut self, at: Instant, until: Instant) {
        if self.targets.is_empty()
            || at >= until
            || self.with(End::OtherPeer).is_some()
            || self.with(End::Silent).is_none()
        {
            return;
        }
        if std::mem::take(&mut self.first) {
            self.silent = Some(self.addresses());
        }
        (self.next, self.next_at) = (0, at);
        self.ended.clear();
    }

    fn with(&self, end: End) -> Option<&Candidate> {
        self.ended.iter().find(|(_, ended)| *ended == end).map(|(target, _)| target)
    }

    /// How dials have ended: those of whoever was given, or else of whom networks have named.
    fn ends(&self) -> &[(Candidate, End)] {
        if self.ended.is_empty() { self.named.ended() } else { &self.ended }
    }

    /// Whoever was dialled and has not begun a session.
    fn addresses(&self) -> String {
        let addresses: Vec<_> = self.ends().iter().map(|(target, _)| target.addr.to_string()).collect();
        addresses.join(", ")
    }

    fn message(&self) -> String {
        let addresses = self.addresses();
        let with = |end| self.ends().iter().find(|(_, ended)| *ended == end).map(|(target, _)| target);
        if let Some(Candidate { addr, .. }) = with(End::Refused) {
            return format!(
                "{addr} refused the session: it sends to another peer only, or speaks another version; ask its owner"
            );
        }
        if let Some(Candidate { id: Some(id), .. }) = with(End::OtherPeer) {
            return format!(
                "another peer than {id} answers at {addresses}: get a new ticket from the sender"
            );
        }
        if self.ends().is_empty() {
            return "no address of a sender can be reached from here: give one with --from PEER@ADDR"
                .to_owned();
        }
        format!(
            "no answer from {addresses}: check that `wraith-cli send` still runs there and that no firewall stops UDP"
        )
    }
}

#[cfg(test)]
mod tests;
