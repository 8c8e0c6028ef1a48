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
            dialled_at: now,
            again: Again::Rounds { pause, until: now.saturating_add(patience) },
            first: true,
            silent: None,
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
        while let Some(&target) = self.targets.get(self.next) {
            // If nobody is left to wait for, the next one need not wait.
            if now < self.next_at && (self.next == 0 || !self.running.is_empty()) {
                return;
            }
            self.next += 1;
            self.next_at = now.saturating_add(STAGGER);
            self.passed_over.retain(|other| *other != target);
            self.dialled_at = now;
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
        self.running.iter().map(|attempt| attempt.until).chain(next).min()
    }

    /// Whether every target was dialled and has ended.
    fn is_over(&self) -> bool {
        self.running.is_empty() && self.next == self.targets.len()
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
        if at >= until || self.with(End::OtherPeer).is_some() || self.with(End::Silent).is_none() {
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

    /// Whoever was dialled and has not begun a session.
    fn addresses(&self) -> String {
        let addresses: Vec<_> = self.ended.iter().map(|(target, _)| target.addr.to_string()).collect();
        addresses.join(", ")
    }

    fn message(&self) -> String {
        let addresses = self.addresses();
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

    use wraith_proto::{Budget, Config, Event, Identity, Limits, NoSource, OneShot, Progress};

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
        let mut dialer = Dialer::new(targets().map(Candidate::from).to_vec(), at(0), Duration::ZERO);
        let begun = run(&mut dialer, &mut endpoint(), 60_000);
        assert_eq!(begun, [(1, vec![0]), (2, vec![250])].into());
        let failure = dialer.failure().unwrap().to_string();
        assert!(failure.starts_with("no answer from 127.0.0.1:1, 127.0.0.1:2"), "{failure}");
    }

    /// `PROTO §11.7`
    #[test]
    fn who_does_not_answer_is_dialled_again_after_ten_seconds_while_patience_lasts() {
        let mut dialer = Dialer::new(targets().map(Candidate::from).to_vec(), at(0), Duration::from_mins(1));
        let begun = run(&mut dialer, &mut endpoint(), 120_000);
        assert_eq!(begun[&1], [0, 10_250, 20_500, 30_750, 41_000, 51_250]);
        assert_eq!(begun[&2], [250, 10_500, 20_750, 31_000, 41_250, 51_500]);
        assert_eq!(dialer.take_silent().as_deref(), Some("127.0.0.1:1, 127.0.0.1:2"));
        let failure = dialer.failure().unwrap().to_string();
        assert!(failure.starts_with("no answer from 127.0.0.1:1, 127.0.0.1:2"), "{failure}");
    }

    /// `PROTO §11.7`
    #[test]
    fn however_long_the_patience_an_address_that_does_not_answer_is_dialled_ten_times() {
        for patience in [99, 100, 101, 3600] {
            let mut dialer =
                Dialer::new(targets().map(Candidate::from).to_vec(), at(0), Duration::from_secs(patience));
            let begun = run(&mut dialer, &mut endpoint(), 2 * patience * 1_000);
            assert!(begun[&1].len() <= 10 && begun[&1].len() >= 9, "{patience}: {begun:?}");
            let pauses = begun[&1].windows(2).map(|pair| pair[1] - pair[0]);
            assert!(pauses.min().unwrap() >= 10_000, "{begun:?}");
        }
    }

    /// Three datagrams leave for each dial (`PROTO §11.7`).
    #[test]
    fn a_dial_that_nobody_answers_takes_three_datagrams() {
        let mut dialer = Dialer::new(vec![targets()[0].into()], at(0), Duration::from_secs(15));
        let mut endpoint = endpoint();
        let mut left = Vec::new();
        for millis in 0..30_000 {
            dialer.dial_due(at(millis), &mut endpoint);
            while endpoint.handle_timeout(at(millis), Budget(8)) == Progress::More {}
            let mut buffer = [0; 1500];
            let mut queue = OneShot::new(&mut buffer);
            let _ = endpoint.poll_transmit(at(millis), &mut queue, &mut NoSource, Budget(1));
            left.extend(queue.take().map(|_| millis));
            while let Some((session, event)) = endpoint.poll_event() {
                if let Event::Closed(reason) = event {
                    dialer.on_closed(at(millis), session, reason, &endpoint);
                }
            }
        }
        assert_eq!(left, [0, 250, 750, 10_000, 10_250, 10_750]);
    }

    #[test]
    fn whoever_answers_with_another_identity_or_a_refusal_is_not_dialled_again() {
        for reason in [CloseReason::Refused, CloseReason::IdleTimeout] {
            let mut dialer =
                Dialer::new(targets().map(Candidate::from).to_vec(), at(0), Duration::from_mins(1));
            let mut endpoint = endpoint();
            dialer.dial_due(at(0), &mut endpoint);
            dialer.dial_due(at(250), &mut endpoint);
            let sessions: Vec<_> = dialer.running.iter().map(|attempt| attempt.session).collect();
            dialer.on_closed(at(900), sessions[0], reason, &endpoint);
            dialer.on_closed(at(900), sessions[1], CloseReason::HandshakeTimeout, &endpoint);
            let refused = reason == CloseReason::Refused;
            assert_eq!(dialer.failure().is_some(), refused);
            assert_eq!(dialer.wake_at(), (!refused).then(|| at(10_250)));
        }
    }

    /// `PROTO §11.8`
    #[test]
    fn who_was_lost_is_dialled_ever_more_seldom_and_other_addresses_once() {
        let [other, lost] = targets();
        let mut dialer = Dialer::new(vec![other.into(), lost.into()], at(0), Duration::from_mins(1));
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
        let mut dialer = Dialer::new(vec![other.into(), lost.into()], at(0), Duration::from_mins(1));
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
        let mut dialer = Dialer::new([1, 2, 3, 4].map(anybody).to_vec(), at(0), Duration::ZERO);
        let mut endpoint = endpoint();
        assert_eq!(disappoint(&mut dialer, &mut endpoint, 0, 1), (vec![1, 2], true));
        assert_eq!(disappoint(&mut dialer, &mut endpoint, 1_000, 3), (vec![2, 3], true));
        assert_eq!(disappoint(&mut dialer, &mut endpoint, 2_000, 4), (vec![4], false));
    }

    #[test]
    fn other_addresses_of_a_peer_that_has_nothing_are_not_dialled() {
        let [first, second] = targets();
        let mut dialer = Dialer::new(vec![first.into(), second.into()], at(0), Duration::ZERO);
        let mut endpoint = endpoint();
        dialer.dial_due(at(0), &mut endpoint);
        let session = dialer.running[0].session;
        assert_eq!(dialer.win(session, at(10), &mut endpoint), Some(first.into()));
        assert!(!dialer.pass_on(first, at(20)) && dialer.wake_at().is_none());
    }

    #[test]
    fn who_refuses_is_looked_for_no_longer() {
        let [_, lost] = targets();
        let mut dialer = Dialer::new(vec![lost.into()], at(0), Duration::from_mins(1));
        let mut endpoint = endpoint();
        dialer.seek(lost, at(0));
        dialer.dial_due(at(0), &mut endpoint);
        let session = dialer.running[0].session;
        dialer.on_closed(at(5), session, CloseReason::Refused, &endpoint);
        assert!(dialer.failure().unwrap().to_string().contains("refused the session"));
        assert!(dialer.wake_at().is_none());
    }
}
