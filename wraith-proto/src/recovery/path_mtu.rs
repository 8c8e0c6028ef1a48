//! The size of datagrams that a path carries: searched for with probes, and given up when it proves too large
//! (RFC 8899, `PROTO §8.11` to `§8.17`).
//!
//! A probe is a padded packet of its own, apart from the records of sent packets: its loss says nothing of congestion.
//! Nothing here runs while a session is idle and its search is over: a further one begins with a packet sent late enough.

use core::time::Duration;

use super::congestion::CongestionController;
use super::{AckSink, Recovery};
use crate::config::MIN_DATAGRAM;
use crate::time::Instant;

/// Probes of one size before it counts as too large (`MAX_PROBES`, RFC 8899 §5.1.2).
const MAX_PROBES: u8 = 3;

/// Time after which what did not pass is tried again (`PMTU_RAISE_TIMER`, RFC 8899 §5.1.1).
const RAISE: Duration = Duration::from_mins(10);

/// The same after a black hole or a hint: a detour may be over soon.
const RAISE_SOON: Duration = Duration::from_mins(1);

/// Probe timeouts until a probe is lost that no acknowledgement has decided on.
const PROBE_TIMEOUTS: u32 = 3;

/// Datagrams that fill the packets of Ethernet and of jumbo frames over IPv4; over IPv6 they are 20 bytes shorter.
const COMMON: [u16; 2] = [1_472, 8_972];

/// What a header of IPv6 has more than one of IPv4.
const LONGER_V6: u16 = 20;

/// Largest datagram of UDP over IPv4.
const MOST_V4: u16 = 65_507;

/// Packets lost, probe timeouts passed, and probe timeouts since small packets alone arrive, for a verdict.
const BLACK_HOLE: Verdict = Verdict { lost: 8, timeouts: 3, settled: 1 };

/// The same before a session ends: more, for there is no way back.
const NO_PATH: Verdict = Verdict { lost: 16, timeouts: 10, settled: 6 };

/// Probe timeouts in a row from which on it is in doubt that the path carries what every path has to.
const DOUBTS: u32 = 3;

/// What a path in such doubt is asked with.
const HALF: u16 = MIN_DATAGRAM / 2;

struct Verdict {
    lost: u8,
    timeouts: u32,
    settled: u32,
}

/// Where the search is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// The next probe may leave.
    Asks,
    /// It may leave later.
    Waits,
    /// A probe is on its way.
    Flies,
    /// The search is over.
    Rests,
}

/// What the size of datagrams became.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MtuNews {
    /// Another size.
    Changed,
    /// The path does not even carry the least that it has to.
    NoPath,
}

/// The datagram size of one path, in bytes of UDP payload.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "facts that change apart from each other")]
pub(crate) struct PathMtu {
    size: u16,
    /// Both ends and the address family allow no more.
    most: u16,
    /// Larger ones did not pass in this search.
    ceiling: u16,
    ipv6: bool,
    /// The path is asked; without it the size stays as it is.
    searches: bool,
    /// Lost probes of the present candidate.
    tries: u8,
    step: Step,
    /// When the probe was sent, when the next one may leave, or from when on a packet that is sent begins another search.
    at: Option<Instant>,
    /// Packet number and size of the latest probe.
    number: u64,
    asked: u16,
    /// The next rest is short.
    soon: bool,
    /// Since a packet over the limit was acknowledged: when the first that got lost was sent, how many did, and since
    /// when it is known that smaller ones arrive.
    lost_since: Option<Instant>,
    lost: u8,
    small_since: Option<Instant>,
    /// And that congestion control has taken them for its own business.
    reduced: bool,
    news: Option<MtuNews>,
}

impl PathMtu {
    /// A path that carries `size` and is searched, if at all, up to `most`.
    pub(crate) fn new(size: u16, most: u16, ipv6: bool, searches: bool) -> Self {
        let most = if ipv6 { most } else { most.min(MOST_V4) }.max(size);
        Self {
            size,
            most,
            ceiling: most,
            ipv6,
            searches,
            tries: 0,
            step: Step::Asks,
            at: None,
            number: 0,
            asked: 0,
            soon: false,
            lost_since: None,
            lost: 0,
            small_since: None,
            reduced: false,
            news: None,
        }
    }

    /// A probe left.
    pub(crate) fn on_probe_sent(&mut self, now: Instant, number: u64, size: u16) {
        (self.step, self.at, self.number, self.asked) = (Step::Flies, Some(now), number, size);
    }

    /// The probe had no place among the datagrams to be sent.
    pub(crate) fn on_probe_refused(&mut self, now: Instant, pto: Duration) {
        self.count_try(now, pto);
    }

    /// An ACK arrived: whether it has the probe among its `ranges`, or says that it was overtaken by `threshold`
    /// packets. Returns the probe's number if it arrived.
    pub(crate) fn on_ack(
        &mut self,
        now: Instant,
        ranges: &[(u64, u64)],
        threshold: u64,
        pto: Duration,
    ) -> Option<u64> {
        let number = self.number;
        if self.step != Step::Flies {
            return None;
        }
        if ranges.iter().any(|&(low, high)| low <= number && number <= high) {
            self.trust();
            self.change(self.asked.max(self.size));
            self.go_on(now);
            return Some(number);
        }
        if ranges.first().is_some_and(|&(_, largest)| largest >= number.saturating_add(threshold)) {
            self.count_try(now, pto);
        }
        None
    }

    /// The timer fired. A caller that comes late says nothing of the probe (`PROTO §8.9`).
    pub(crate) fn on_timer(&mut self, now: Instant, pto: Duration) {
        match (self.step, self.at) {
            (Step::Waits, Some(at)) if at <= now => self.step = Step::Asks,
            (Step::Flies, Some(at)) => {
                let due = at.saturating_add(pto * PROBE_TIMEOUTS);
                if due.saturating_add(pto) < now {
                    self.step = Step::Asks;
                } else if due <= now {
                    self.count_try(now, pto);
                }
            }
            _ => {}
        }
    }

    /// A packet that asks for an acknowledgement left: the path is in use, and may be asked again.
    pub(crate) fn on_packet_sent(&mut self, now: Instant) {
        if self.step == Step::Rests && self.at.is_some_and(|at| at <= now) {
            (self.step, self.ceiling) = (Step::Asks, self.most);
        }
    }

    /// A packet of `size` bytes was acknowledged; returns whether it speaks for the present size.
    pub(crate) fn on_acked(&mut self, size: u16) -> bool {
        let speaks = self.searches && size > self.limit();
        if speaks {
            self.trust();
        }
        speaks
    }

    /// A packet of `size` bytes was given up; returns whether that may be for congestion (`PROTO §8.18`).
    pub(crate) fn on_lost(&mut self, size: u16, sent_at: Instant) -> bool {
        if !self.searches || size <= self.limit() {
            return true;
        }
        if size > self.size {
            return false;
        }
        self.lost_since.get_or_insert(sent_at);
        self.lost = self.lost.saturating_add(1);
        size <= MIN_DATAGRAM || !self.reduced
    }

    /// The window was reduced for losses.
    pub(crate) fn on_congestion(&mut self) {
        self.reduced = self.lost_since.is_some();
    }

    /// Packets that were given up had arrived: so may the others have.
    pub(crate) fn on_spurious(&mut self) {
        self.trust();
    }

    /// Of all that is on its way, only small packets arrive now. Judges the path.
    pub(crate) fn on_small_acked(&mut self, now: Instant, pto: Duration) {
        let Some(since) = self.lost_since else { return };
        let small_since = *self.small_since.get_or_insert(now);
        let verdict = if self.size > MIN_DATAGRAM { BLACK_HOLE } else { NO_PATH };
        if self.lost < verdict.lost
            || now < since.saturating_add(pto * verdict.timeouts)
            || now < small_since.saturating_add(pto * verdict.settled)
        {
            return;
        }
        self.trust();
        if self.size == MIN_DATAGRAM {
            self.news = Some(MtuNews::NoPath);
            return;
        }
        self.ceiling = self.size - 1;
        self.soon = true;
        self.change(MIN_DATAGRAM);
        self.go_on(now);
    }

    /// Somebody says that the path carries no more than `largest` bytes. What every path carries stays.
    pub(crate) fn on_hint(&mut self, now: Instant, largest: u16) {
        let largest = largest.max(MIN_DATAGRAM);
        if !self.searches || largest >= self.ceiling {
            return;
        }
        (self.ceiling, self.soon) = (largest, true);
        let shrinks = self.size > largest;
        if shrinks {
            self.change(largest);
        }
        if shrinks || self.step == Step::Flies && self.asked > largest || self.candidate().is_none() {
            self.go_on(now);
        }
    }

    /// The own host refused a datagram of `len` bytes. By how much it is too large nobody says: in use already, the size
    /// falls back to what every path carries, for the next one below is as likely to be refused.
    pub(crate) fn on_refused(&mut self, now: Instant, len: u16) {
        let largest = len.saturating_sub(1).max(MIN_DATAGRAM);
        if !self.searches || self.size <= largest {
            return self.on_hint(now, largest);
        }
        (self.ceiling, self.soon) = (largest, true);
        self.trust();
        self.change(MIN_DATAGRAM);
        self.go_on(now);
    }

    /// The path is asked for more from now on, or not.
    pub(crate) fn search(&mut self, searches: bool) {
        self.searches = searches;
    }

    /// News since the last call.
    pub(crate) fn take_news(&mut self) -> Option<MtuNews> {
        self.news.take()
    }

    /// The size to send now.
    pub(crate) fn size(&self) -> u16 {
        self.size
    }

    /// Whether nothing larger is asked for now.
    #[cfg(feature = "trace")]
    pub(crate) fn is_resting(&self) -> bool {
        self.step == Step::Rests || self.candidate().is_none()
    }

    /// The size of the second packet after `timeouts` probe timeouts in a row: it arrives, should the size be the
    /// reason for their losses.
    pub(crate) fn cautious(&self, timeouts: u32) -> u16 {
        match timeouts {
            _ if !self.searches => self.size,
            DOUBTS.. => HALF,
            _ => self.size.min(MIN_DATAGRAM),
        }
    }

    /// The size of a probe that may leave now.
    pub(crate) fn due(&self) -> Option<u16> {
        if self.searches && self.step == Step::Asks { self.candidate() } else { None }
    }

    /// When the timer is to fire.
    pub(crate) fn deadline(&self, pto: impl FnOnce() -> Duration) -> Option<Instant> {
        match self.step {
            Step::Flies => self.at.map(|at| at.saturating_add(pto() * PROBE_TIMEOUTS)),
            Step::Waits => self.at,
            Step::Asks | Step::Rests => None,
        }
    }

    /// The next size to ask for: the common ones, the most, and then halves of what is left, until less than a
    /// sixty-fourth could be won.
    fn candidate(&self) -> Option<u16> {
        let common = COMMON.map(|size| if self.ipv6 { size - LONGER_V6 } else { size });
        let mut sizes = common.into_iter().filter(|&size| size < self.most).chain([self.most]);
        let next = sizes.find(|&size| size > self.size)?;
        if next <= self.ceiling {
            return Some(next);
        }
        let gap = self.ceiling.saturating_sub(self.size);
        (gap >= (self.size / 64).max(16)).then(|| self.size + gap.div_ceil(2))
    }

    /// A probe got lost: the same size again after a while, or else a smaller one.
    fn count_try(&mut self, now: Instant, pto: Duration) {
        self.tries += 1;
        if self.tries == MAX_PROBES {
            if let Some(size) = self.candidate() {
                self.ceiling = size - 1;
            }
            self.go_on(now);
        }
        if self.step != Step::Rests {
            (self.step, self.at) = (Step::Waits, Some(now.saturating_add(pto)));
        }
    }

    /// Asks for the next size, or rests if there is none.
    fn go_on(&mut self, now: Instant) {
        self.tries = 0;
        if self.candidate().is_some() {
            self.step = Step::Asks;
            return;
        }
        let rest = if core::mem::take(&mut self.soon) { RAISE_SOON } else { RAISE };
        let again = self.size < self.most;
        (self.step, self.at) = (Step::Rests, again.then(|| now.saturating_add(rest)));
    }

    /// The present size proved itself.
    pub(super) fn trust(&mut self) {
        (self.lost_since, self.lost, self.small_since, self.reduced) = (None, 0, None, false);
    }

    fn change(&mut self, size: u16) {
        if size != self.size {
            self.size = size;
            self.news = Some(MtuNews::Changed);
        }
    }

    /// What black holes are told by: packets over it get lost while others arrive.
    fn limit(&self) -> u16 {
        if self.size > MIN_DATAGRAM { MIN_DATAGRAM } else { HALF }
    }
}

impl Recovery {
    /// The size of the next packet: the path's, or less for the second probe, so that one arrives even if the path has
    /// come to carry less (`PROTO §8.14`).
    pub(crate) fn packet_size(&self) -> u16 {
        if self.probes == 1 { self.path_mtu.cautious(self.pto_count) } else { self.path_mtu.size() }
    }

    /// A probe of the path's datagram size left: no congestion, and no record.
    pub(crate) fn on_mtu_probe_sent(&mut self, now: Instant, size: u16) {
        self.path_mtu.on_probe_sent(now, self.next_number - 1, size);
    }

    /// There was no place for a probe of the path's datagram size.
    pub(crate) fn on_mtu_probe_refused(&mut self, now: Instant) {
        self.path_mtu.on_probe_refused(now, self.pto_base());
    }

    /// The timer of the path's datagram size fired.
    pub(crate) fn on_mtu_timer(&mut self, now: Instant) {
        self.path_mtu.on_timer(now, self.pto_base());
    }

    /// When that timer is to fire.
    pub(crate) fn mtu_deadline(&self) -> Option<Instant> {
        self.path_mtu.deadline(|| self.pto_base())
    }

    /// Somebody says that the path carries no more than `largest` bytes.
    pub(crate) fn on_mtu_hint(&mut self, now: Instant, largest: u16) {
        self.path_mtu.on_hint(now, largest);
        self.controller.on_mtu(self.path_mtu.size());
    }

    /// The own host refused a datagram of `len` bytes as too large.
    pub(crate) fn on_mtu_refused(&mut self, now: Instant, len: u16) {
        self.path_mtu.on_refused(now, len);
        self.controller.on_mtu(self.path_mtu.size());
    }

    /// What an ACK says of the path's datagram size. `small`: it is news, and of no packet that speaks for the size.
    pub(super) fn judge_path(
        &mut self,
        now: Instant,
        ranges: &[(u64, u64)],
        small: bool,
        sink: &mut impl AckSink,
    ) {
        let pto = self.pto_base();
        let before = self.path_mtu.size();
        if let Some(number) = self.path_mtu.on_ack(now, ranges, self.packet_threshold, pto) {
            sink.packet_acked(number);
        } else if small {
            self.path_mtu.on_small_acked(now, pto);
        }
        if self.path_mtu.size() != before {
            self.controller.on_mtu(self.path_mtu.size());
        }
    }
}

#[cfg(test)]
mod tests;
