//! Dials the addresses of peers one after the other, without waiting for any, until one answers.

use std::time::Duration;

use wraith_proto::{CloseReason, ConnectError, DropReason, Endpoint, Instant, Peer, SessionHandle, Via};

use crate::address::{Candidate, Target};
use crate::failure::{Failure, failed};

/// Between the first datagrams to two addresses (RFC 8305 §8).
const STAGGER: Duration = Duration::from_millis(250);

/// Long enough for three first messages to each address, after 0, 250 and 750 ms, and too short for a fourth,
/// after 1,750 ms (`PROTO §4.10`, `§11.7`). Whoever answers has the time of the handshake to finish it.
const PATIENCE: Duration = Duration::from_millis(1_700);

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
    /// While a peer that was lost is looked for: the pause before it is dialled again.
    pause: Option<Duration>,
}

/// A dial that was not answered yet.
#[derive(Clone, Copy, Debug)]
struct Attempt {
    session: SessionHandle,
    target: Candidate,
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
    pub(super) fn new(targets: Vec<Candidate>, now: Instant) -> Self {
        Self {
            targets,
            next: 0,
            next_at: now,
            running: Vec::new(),
            ended: Vec::new(),
            passed_over: Vec::new(),
            cut_short: Vec::new(),
            pause: None,
        }
    }

    /// Looks for the peer at `target`, which was lost: there again and again, and once wherever else it may be
    /// (`PROTO §11.8`).
    pub(super) fn seek(&mut self, target: Target, now: Instant) {
        self.targets.retain(|other| !other.may_be(&target));
        self.targets.insert(0, target.into());
        (self.next, self.next_at) = (0, now);
        self.ended.clear();
        self.pause = Some(PAUSE.0);
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
            self.pause = None;
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
        while let Some(&target) = self.targets.get(self.next) {
            // If nobody is left to wait for, the next one need not wait.
            if now < self.next_at && (self.next == 0 || !self.running.is_empty()) {
                return;
            }
            self.next += 1;
            self.next_at = now.saturating_add(STAGGER);
            self.passed_over.retain(|other| *other != target);
            let peer = Peer { addr: target.addr, id: target.id };
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
        self.begin_again(now);
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
        if self.pause.is_none() {
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
        if self.pause.take().is_some() {
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
        let Attempt { target, .. } = self.running.swap_remove(at);
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
        self.ended.push((target, end));
        self.begin_again(now);
    }

    /// Why nobody is left to wait for, if so. Who is looked for may still come, unless it has refused.
    pub(super) fn failure(&self) -> Option<Failure> {
        let over = self.is_over() && self.pause.is_none();
        (over || self.pause.is_some() && self.with(End::Refused).is_some()).then(|| failed(self.message()))
    }

    /// Who answered in place of the peer that is looked for, if anybody did.
    pub(super) fn impostor(&self) -> Option<Failure> {
        self.with(End::OtherPeer).map(|_| failed(self.message()))
    }

    /// When the next attempt is due, or one is given up.
    pub(super) fn wake_at(&self) -> Option<Instant> {
        let next = (self.next < self.targets.len()).then_some(self.next_at);
        self.running.iter().map(|attempt| attempt.until).chain(next).min()
    }

    /// Whether every target was dialled and has ended.
    fn is_over(&self) -> bool {
        self.running.is_empty() && self.next == self.targets.len()
    }

    /// After a pause, dials again who is looked for.
    fn begin_again(&mut self, now: Instant) {
        if let Some(pause) = self.pause
            && self.is_over()
            && self.with(End::Refused).is_none()
        {
            self.targets.truncate(1);
            (self.next, self.next_at) = (0, now.saturating_add(pause));
            self.ended.retain(|(_, end)| *end == End::OtherPeer);
            self.ended.truncate(1);
            self.pause = Some(pause.saturating_mul(2).min(PAUSE.1));
        }
    }

    fn with(&self, end: End) -> Option<&Candidate> {
        self.ended.iter().find(|(_, ended)| *ended == end).map(|(target, _)| target)
    }

    fn message(&self) -> String {
        let addresses: Vec<_> = self.ended.iter().map(|(target, _)| target.addr.to_string()).collect();
        let addresses = addresses.join(", ");
        if let Some(Candidate { addr, .. }) = self.with(End::Refused) {
            return format!(
                "{addr} refused the session: it sends to another peer only, or speaks another version; ask its owner"
            );
        }
        if let Some(Candidate { id: Some(id), .. }) = self.with(End::OtherPeer) {
            return format!(
                "another peer than {id} answers at {addresses}: get a new ticket from the sender"
            );
        }
        if self.targets.is_empty() {
            return "no address of a sender can be reached from here: give one with --from PEER@ADDR"
                .to_owned();
        }
        format!(
            "no answer from {addresses}: check that `wraith-cli send` still runs there and that no firewall stops UDP"
        )
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use wraith_proto::{Config, Event, Identity, Limits};

    use super::*;

    fn endpoint() -> Endpoint {
        let mut config = Config::new(Identity::from_seed([1; 32]), b"test");
        config.limits = Limits { sessions: 3, ..Limits::client() };
        Endpoint::new(config, [1; 32], Instant::MIN).unwrap()
    }

    fn targets() -> [Target; 2] {
        let id = Identity::from_seed([2; 32]).peer_id();
        ["127.0.0.1:1", "127.0.0.1:2"].map(|addr| Target { id, addr: addr.parse().unwrap() })
    }

    fn at(millis: u64) -> Instant {
        Instant::MIN.saturating_add(Duration::from_millis(millis))
    }

    /// Nobody answers up to `end`; when dials to each port began, in milliseconds.
    fn run(dialer: &mut Dialer, endpoint: &mut Endpoint, end: u64) -> BTreeMap<u16, Vec<u64>> {
        let (mut seen, mut begun) = (Vec::new(), BTreeMap::<u16, Vec<u64>>::new());
        let mut millis = 0;
        while millis < end {
            dialer.dial_due(at(millis), endpoint);
            for attempt in &dialer.running {
                if !seen.contains(&attempt.session) {
                    seen.push(attempt.session);
                    begun.entry(attempt.target.addr.port()).or_default().push(millis);
                }
            }
            while let Some((session, event)) = endpoint.poll_event() {
                if let Event::Closed(reason) = event {
                    dialer.on_closed(at(millis), session, reason, endpoint);
                }
            }
            let Some(next) = dialer.wake_at() else { break };
            millis = (next.as_nanos() / 1_000_000).max(millis + 1);
        }
        begun
    }

    #[test]
    fn addresses_are_dialled_once_each_and_then_the_dialer_has_failed() {
        let mut dialer = Dialer::new(targets().map(Candidate::from).to_vec(), at(0));
        let begun = run(&mut dialer, &mut endpoint(), 60_000);
        assert_eq!(begun, [(1, vec![0]), (2, vec![250])].into());
        let failure = dialer.failure().unwrap().to_string();
        assert!(failure.starts_with("no answer from 127.0.0.1:1, 127.0.0.1:2"), "{failure}");
    }

    /// `PROTO §11.8`
    #[test]
    fn who_was_lost_is_dialled_ever_more_seldom_and_other_addresses_once() {
        let [other, lost] = targets();
        let mut dialer = Dialer::new(vec![other.into(), lost.into()], at(0));
        dialer.seek(lost, at(0));
        let begun = run(&mut dialer, &mut endpoint(), 30_000);
        assert_eq!(begun[&1], [250]);
        assert_eq!(begun[&2], [0, 2_250, 4_550, 7_450, 11_550, 18_050, 24_750]);
        assert!(dialer.failure().is_none());
        dialer.stop(at(30_000), &mut endpoint());
        assert!(dialer.wake_at().is_none());
    }

    /// `PROTO §11.8`
    #[test]
    fn other_addresses_are_dialled_once_however_often_a_peer_is_lost() {
        let [other, lost] = targets();
        let mut dialer = Dialer::new(vec![other.into(), lost.into()], at(0));
        let mut dialled = Vec::new();
        for found_after in [200, 300, 300] {
            let mut endpoint = endpoint();
            dialer.seek(lost, at(0));
            let begun = run(&mut dialer, &mut endpoint, found_after);
            assert_eq!(begun[&2], [0]);
            dialled.push(begun.get(&1).map_or(0, Vec::len));
            dialer.stop(at(found_after), &mut endpoint);
        }
        assert_eq!(dialled, [0, 1, 0], "it was found before the other's turn, after it, and again");
    }

    /// Who is dialled within 250 ms; then `wins` answers and turns out to have nothing. Whether others are left.
    fn disappoint(dialer: &mut Dialer, endpoint: &mut Endpoint, millis: u64, wins: u16) -> (Vec<u16>, bool) {
        for at_millis in [millis, millis + 250] {
            dialer.dial_due(at(at_millis), endpoint);
        }
        let ports = dialer.running.iter().map(|attempt| attempt.target.addr.port()).collect();
        let winner = dialer.running.iter().find(|attempt| attempt.target.addr.port() == wins).unwrap();
        let (winner, addr) = (winner.session, winner.target.addr);
        dialer.win(winner, at(millis + 251), endpoint).unwrap();
        endpoint.session(winner).unwrap().close(at(millis + 251), 0);
        while endpoint.poll_event().is_some() {}
        let id = Identity::from_seed([wins as u8; 32]).peer_id();
        (ports, dialer.pass_on(Target { id, addr }, at(millis + 252)))
    }

    /// `PROTO §11.7`, `§11.8`
    #[test]
    fn whose_dial_was_cut_short_by_a_peer_that_has_nothing_is_dialled_once_more_and_others_for_the_first_time()
     {
        let anybody = |port| Candidate { id: None, addr: format!("127.0.0.1:{port}").parse().unwrap() };
        let mut dialer = Dialer::new([1, 2, 3, 4].map(anybody).to_vec(), at(0));
        let mut endpoint = endpoint();
        assert_eq!(disappoint(&mut dialer, &mut endpoint, 0, 1), (vec![1, 2], true));
        assert_eq!(disappoint(&mut dialer, &mut endpoint, 1_000, 3), (vec![2, 3], true));
        assert_eq!(disappoint(&mut dialer, &mut endpoint, 2_000, 4), (vec![4], false));
    }

    #[test]
    fn other_addresses_of_a_peer_that_has_nothing_are_not_dialled() {
        let [first, second] = targets();
        let mut dialer = Dialer::new(vec![first.into(), second.into()], at(0));
        let mut endpoint = endpoint();
        dialer.dial_due(at(0), &mut endpoint);
        let session = dialer.running[0].session;
        assert_eq!(dialer.win(session, at(10), &mut endpoint), Some(first.into()));
        assert!(!dialer.pass_on(first, at(20)) && dialer.wake_at().is_none());
    }

    #[test]
    fn who_refuses_is_looked_for_no_longer() {
        let [_, lost] = targets();
        let mut dialer = Dialer::new(vec![lost.into()], at(0));
        let mut endpoint = endpoint();
        dialer.seek(lost, at(0));
        dialer.dial_due(at(0), &mut endpoint);
        let session = dialer.running[0].session;
        dialer.on_closed(at(5), session, CloseReason::Refused, &endpoint);
        assert!(dialer.failure().unwrap().to_string().contains("refused the session"));
        assert!(dialer.wake_at().is_none());
    }
}
