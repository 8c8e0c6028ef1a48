//! Notices a peer that is connected and does nothing.

use std::time::Duration;

use wraith_proto::Instant;

/// A peer that did nothing for so long is named.
const WARN: Duration = Duration::from_secs(5);

/// A peer that did nothing for so long is given up.
pub(super) const GIVE_UP: Duration = Duration::from_secs(30);

/// A session that asks for nothing for so long makes room for others.
pub(super) const IDLE: Duration = Duration::from_secs(10);

/// A check that comes so late says that this process stood still, not the peer.
const LATE: Duration = Duration::from_secs(2);

/// When something last moved.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch {
    since: Instant,
    warned: bool,
}

/// What to do about a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stall {
    /// Nothing yet.
    No,
    /// Say that nothing comes from it; once for each pause.
    Warn,
    /// End the transfer.
    GiveUp,
}

impl Watch {
    pub(super) const fn new(now: Instant) -> Self {
        Self { since: now, warned: false }
    }

    /// Something moved.
    pub(super) fn moved(&mut self, now: Instant) {
        *self = Self::new(now);
    }

    /// Judges the pause up to `now`; to be called by [`Watch::next`] at the latest.
    pub(super) fn check(&mut self, now: Instant) -> Stall {
        if now > self.next().saturating_add(LATE) {
            self.moved(now);
        }
        let pause = now.saturating_since(self.since);
        if pause >= GIVE_UP {
            return Stall::GiveUp;
        }
        if pause < WARN || self.warned {
            return Stall::No;
        }
        self.warned = true;
        Stall::Warn
    }

    /// When to check again.
    pub(super) const fn next(&self) -> Instant {
        self.since.saturating_add(if self.warned { GIVE_UP } else { WARN })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_named_once_after_five_seconds_and_ends_after_thirty() {
        let at = |seconds| Instant::MIN.saturating_add(Duration::from_secs(seconds));
        let mut watch = Watch::new(at(0));
        assert_eq!((watch.check(at(4)), watch.next()), (Stall::No, at(5)));
        assert_eq!((watch.check(at(5)), watch.next()), (Stall::Warn, at(30)));
        assert_eq!(watch.check(at(29)), Stall::No);
        assert_eq!(watch.check(at(30)), Stall::GiveUp);
        watch.moved(at(31));
        assert_eq!((watch.check(at(35)), watch.check(at(36))), (Stall::No, Stall::Warn));
    }

    #[test]
    fn time_in_which_nobody_looked_is_no_pause_of_the_peer() {
        let at = |seconds| Instant::MIN.saturating_add(Duration::from_secs(seconds));
        let mut watch = Watch::new(at(0));
        assert_eq!((watch.check(at(600)), watch.next()), (Stall::No, at(605)));
        assert_eq!((watch.check(at(605)), watch.next()), (Stall::Warn, at(630)));
        assert_eq!(watch.check(at(633)), Stall::No, "away again");
        assert_eq!(watch.check(at(638)), Stall::Warn);
        assert_eq!(watch.check(at(665)), Stall::GiveUp, "a little late is not away");
    }
}
