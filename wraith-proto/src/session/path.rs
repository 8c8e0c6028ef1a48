//! The check of an address from which a peer has begun to send (`PROTO §13.1` to `§13.6`).

use core::num::NonZeroU16;
use core::time::Duration;

use super::cids::Sequence;
use super::state::Path;
use crate::config::MIN_DATAGRAM;
use crate::time::Instant;

/// Bytes of a datagram with a challenge and nothing else: header, frame, length of the frames, tag.
pub(crate) const CHALLENGE_LEN: u16 = 13 + 9 + 2 + 16;

/// Most checks at the same time: their slots are numbered in two bytes.
pub(crate) const MAX_CHECKS: u32 = u16::MAX as u32 - 1;

/// Times that an address is asked before the check is given up (`PROTO §13.5`).
const CHALLENGES: u8 = 8;

/// The pause before the first repetition is a probe timeout of the former path within these bounds; each further one is
/// twice as long, up to the longer bound.
const PAUSE: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];

/// Bytes to an address for each byte that came from it, until it is proven (`PROTO §13.4`).
const AMPLIFICATION: u64 = 3;

/// A peer moves at most twice in this time (`PROTO §13.6`).
const PERIOD: Duration = Duration::from_secs(1);

/// The place of a session's check among all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CheckSlot(NonZeroU16);

impl CheckSlot {
    /// `index` is below [`MAX_CHECKS`].
    pub(crate) fn new(index: u32) -> Option<Self> {
        NonZeroU16::new(u16::try_from(index + 1).ok()?).map(Self)
    }

    pub(crate) fn index(self) -> u32 {
        u32::from(self.0.get()) - 1
    }
}

/// How far a check is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// Is the peer there?
    Address,
    /// It is; does the way carry 1,200 bytes?
    Size,
    /// Both are decided. What is left is the memory of when the peer moved.
    Over,
}

/// A challenge, by where it goes and how large it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ask {
    /// To the new address, as small as can be.
    Plain,
    /// To the address where the peer was.
    Former,
    /// To the new address, with 1,200 bytes.
    Padded,
}

impl Ask {
    const ALL: [Self; 3] = [Self::Plain, Self::Former, Self::Padded];

    const fn bit(self) -> u8 {
        1 << self as u8
    }

    /// Bytes of the datagram.
    pub(crate) const fn len(self) -> u16 {
        match self {
            Self::Plain | Self::Former => CHALLENGE_LEN,
            Self::Padded => MIN_DATAGRAM,
        }
    }
}

/// The check of one address, and when the peer moved lately.
#[derive(Debug)]
pub(crate) struct Check {
    pub(crate) session: u32,
    pub(crate) stage: Stage,
    /// The address in question.
    pub(crate) path: Path,
    /// The peer's id that is used there, if it is another than before (`PROTO §13.9`).
    pub(crate) id: Option<Sequence>,
    /// Slot of the own id that the peer uses there.
    pub(crate) used_id: u8,
    /// Congestion events when the check began.
    pub(crate) events: u64,
    /// Whether challenges are padded, and what they hold.
    tokens: [[u8; 8]; 2],
    /// Bytes from and to the address.
    received: u64,
    sent: u64,
    /// Challenges that are to be sent, as bits.
    due: u8,
    /// Times that the address was asked.
    rounds: u8,
    asked_at: Option<Instant>,
    pause: Duration,
    /// The latest two times that the peer moved.
    moves: [Option<Instant>; 2],
}

impl Check {
    /// No check, for a session that has moved at no time.
    pub(crate) fn new(session: u32, path: Path) -> Self {
        Self {
            session,
            stage: Stage::Over,
            path,
            id: None,
            used_id: 0,
            events: 0,
            tokens: [[0; 8]; 2],
            received: 0,
            sent: 0,
            due: 0,
            rounds: 0,
            asked_at: None,
            pause: PAUSE[0],
            moves: [None; 2],
        }
    }

    /// Begins to check the address of `path`. `pto` is a probe timeout of the former path.
    pub(crate) fn begin(&mut self, path: Path, tokens: [[u8; 8]; 2], pto: Duration) {
        self.stage = Stage::Address;
        (self.path, self.tokens) = (path, tokens);
        (self.received, self.sent, self.rounds, self.asked_at) = (0, 0, 1, None);
        self.due = self.questions();
        self.pause = pto.clamp(PAUSE[0], PAUSE[1]);
    }

    /// A packet of so many bytes came from the address.
    pub(crate) fn on_received(&mut self, bytes: usize) {
        self.received += bytes as u64;
    }

    /// So many bytes went to the address.
    pub(crate) fn on_sent(&mut self, bytes: usize) {
        self.sent += bytes as u64;
    }

    /// The challenge left.
    pub(crate) fn on_asked(&mut self, ask: Ask, now: Instant) {
        self.due &= !ask.bit();
        if ask != Ask::Former {
            self.on_sent(ask.len().into());
            self.asked_at.get_or_insert(now);
        }
    }

    /// Nobody has answered for a pause: asks again, or returns `false` when that was done often enough.
    pub(crate) fn ask_again(&mut self) -> bool {
        if self.rounds == CHALLENGES {
            return false;
        }
        self.rounds += 1;
        self.pause = (self.pause * 2).min(PAUSE[1]);
        self.due = self.questions();
        true
    }

    /// The peer is there: it has moved.
    pub(crate) fn on_moved(&mut self, now: Instant) {
        self.moves = [self.moves[1], Some(now)];
        self.stage = Stage::Size;
        self.rounds = 1;
        // A padded challenge that is under way already may yet be answered.
        self.due &= Ask::Padded.bit();
    }

    /// The address is not in question any more.
    pub(crate) fn finish(&mut self) {
        (self.stage, self.due) = (Stage::Over, 0);
    }

    /// The challenge to send now, if any.
    pub(crate) fn due(&self) -> Option<Ask> {
        Ask::ALL
            .into_iter()
            .find(|ask| self.due & ask.bit() != 0 && (*ask == Ask::Former || self.admits(ask.len())))
    }

    /// Whether so many bytes may go to the address (`PROTO §13.4`).
    pub(crate) fn admits(&self, bytes: u16) -> bool {
        self.stage != Stage::Address || self.sent + u64::from(bytes) <= AMPLIFICATION * self.received
    }

    /// What a challenge holds.
    pub(crate) fn token(&self, ask: Ask) -> [u8; 8] {
        self.tokens[usize::from(ask == Ask::Padded)]
    }

    /// The challenge that these bytes answer, if they came from the address.
    pub(crate) fn answered(&self, token: [u8; 8]) -> Option<Ask> {
        [Ask::Plain, Ask::Padded].into_iter().find(|&ask| self.token(ask) == token)
    }

    /// The round trip of the first challenge, unless it was repeated.
    pub(crate) fn round_trip(&self, now: Instant) -> Option<Duration> {
        self.asked_at.filter(|_| self.rounds == 1).map(|at| now.saturating_since(at))
    }

    /// Whether another address may take the place of this one: the peer has not moved twice within a second, and this
    /// one has had the time to answer (`PROTO §13.6`).
    pub(crate) fn yields(&self, now: Instant) -> bool {
        let moved = self.moves[0].is_some_and(|at| now < at.saturating_add(PERIOD));
        !moved && (self.stage != Stage::Address || self.rounds > 1)
    }

    /// When something has to be done.
    pub(crate) fn deadline(&self, now: Instant) -> Option<Instant> {
        match self.stage {
            Stage::Over => self.moves[1].map(|at| at.saturating_add(PERIOD)).filter(|&at| now < at),
            Stage::Address | Stage::Size => Some(now.saturating_add(self.pause)),
        }
    }

    /// The challenges that a round of this stage consists of, as bits.
    fn questions(&self) -> u8 {
        match self.stage {
            Stage::Address => Ask::Plain.bit() | Ask::Former.bit() | Ask::Padded.bit(),
            Stage::Size => Ask::Padded.bit(),
            Stage::Over => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use core::net::{Ipv4Addr, SocketAddr};

    use super::*;
    use crate::meta::Via;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(1 + millis * 1_000_000)
    }

    fn begun() -> Check {
        let remote = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 1);
        let path = Path { remote, local: None, via: Via::default() };
        let mut check = Check::new(0, path);
        check.begin(path, [[1; 8], [2; 8]], Duration::from_millis(60));
        check
    }

    /// `PROTO §13.4`: at the edge, byte by byte.
    #[test]
    fn a_challenge_leaves_when_three_times_what_came_allows_it_and_not_a_byte_earlier() {
        let mut check = begun();
        check.on_asked(Ask::Former, at(0));
        check.on_received(13);
        assert_eq!(check.due(), None, "39 bytes are allowed");
        check.on_received(1);
        assert_eq!(check.due(), Some(Ask::Plain));
        check.on_asked(Ask::Plain, at(0));
        check.on_received(399);
        assert_eq!(check.due(), None, "1,239 bytes are allowed, 40 were sent");
        check.on_received(1);
        assert_eq!(check.due(), Some(Ask::Padded));
        check.on_asked(Ask::Padded, at(0));
        assert!(check.admits(2) && !check.admits(3));
        assert_eq!(check.due(), None);
    }

    /// `PROTO §13.5`: eight times, ever more seldom.
    #[test]
    fn an_address_is_asked_eight_times() {
        let mut check = begun();
        let mut pauses = std::vec![];
        loop {
            pauses.push(check.deadline(at(0)).map(|at| at.as_nanos() / 1_000_000));
            if !check.ask_again() {
                break;
            }
        }
        assert_eq!(pauses, [60, 120, 240, 480, 960, 1000, 1000, 1000].map(Some));
    }

    /// `PROTO §13.6`
    #[test]
    fn a_peer_moves_twice_in_a_second_and_the_third_time_when_it_is_over() {
        let mut check = begun();
        check.on_moved(at(0));
        assert!(check.yields(at(0)));
        check.on_moved(at(999));
        let second = at(1000);
        assert!(!check.yields(Instant::from_nanos(second.as_nanos() - 1)));
        assert!(check.yields(second));
        check.on_moved(second);
        assert!(!check.yields(at(1998)) && check.yields(at(1999)));
        check.finish();
        assert_eq!(check.deadline(at(1999)), Some(at(2000)));
        assert_eq!(check.deadline(at(2000)), None, "nothing is left to remember");
    }

    /// `PROTO §13.6`
    #[test]
    fn an_address_that_has_not_been_asked_twice_keeps_its_place() {
        let mut check = begun();
        assert!(!check.yields(at(5000)));
        assert!(check.ask_again() && check.yields(at(0)));
    }

    #[test]
    fn a_round_trip_is_that_of_the_only_challenge() {
        let mut check = begun();
        check.on_asked(Ask::Plain, at(3));
        assert_eq!(check.round_trip(at(10)), Some(Duration::from_millis(7)));
        check.ask_again();
        assert_eq!(check.round_trip(at(10)), None);
    }

    #[test]
    fn slots_are_numbered_from_zero_to_the_last() {
        for index in [0, 1, MAX_CHECKS - 1] {
            assert_eq!(CheckSlot::new(index).map(CheckSlot::index), Some(index));
        }
        assert_eq!(size_of::<Option<CheckSlot>>(), 2);
    }
}
