//! Telling the DHT that this node provides a content, again and again.

use std::net::SocketAddr;
use std::time::Duration;

use wraith_dht_proto::{Event, Id, Outcome, QueryId};
use wraith_drivers::Turn;
use wraith_proto::Instant;

use super::events::AnnouncedEvent;
use super::part::{DhtPart, Errand};
use super::report::counted;
use crate::backoff::Backoff;
use crate::output::Output;

/// Between two announcements: nodes forget after two hours (`PROTO §14.14`).
const AGAIN: Duration = Duration::from_hours(1);

/// Between the beginnings of two announcements at least, however often this machine moves or its neighbours come and go;
/// and how often to look whether it has moved.
const GAP: Duration = Duration::from_mins(1);

/// What this machine's addresses are now.
pub(crate) type Addresses = Box<dyn FnMut() -> Vec<SocketAddr>>;

/// Announces one content for as long as it is run.
pub(crate) struct Announcer {
    output: Output,
    key: Id,
    hash: String,
    /// That nobody answers is said once.
    said_alone: bool,
    /// That nobody keeps it, until somebody does.
    said_unkept: bool,
    running: Option<QueryId>,
    schedule: Schedule,
    addresses: Addresses,
    /// The addresses that others see when they are told, as far as this machine knows; and when to look again.
    known: Vec<SocketAddr>,
    look_at: Instant,
}

impl Announcer {
    pub(crate) fn new(output: Output, key: Id, hash: String, mut addresses: Addresses) -> Self {
        let known = addresses();
        Self {
            output,
            key,
            hash,
            said_alone: false,
            said_unkept: false,
            running: None,
            schedule: Schedule::new(Backoff::of_network()),
            addresses,
            known,
            look_at: Instant::MIN,
        }
    }

    fn announced(&mut self, nodes: u8, now: Instant) {
        self.running = None;
        self.schedule.ended(nodes, now);
        let said_unkept = std::mem::replace(&mut self.said_unkept, nodes == 0);
        self.output.event(&AnnouncedEvent { hash: &self.hash, nodes: Some(nodes) });
        if self.output.json {
            return;
        }
        if nodes > 0 {
            self.output.note(format_args!(
                "where {} is was told to {} of the DHT",
                self.hash,
                counted(nodes)
            ));
        } else if !said_unkept {
            self.output
                .note("announced to nobody: no node of the DHT keeps it; trying again within a minute");
        }
    }

    fn look(&mut self, now: Instant) {
        self.look_at = now.saturating_add(GAP);
        let addresses = (self.addresses)();
        if addresses != self.known {
            self.known = addresses;
            self.schedule.changed(now);
        }
    }
}

impl Errand for Announcer {
    fn on_turn(&mut self, now: Instant, part: &mut DhtPart) -> Turn {
        let (mut nodes, mut unanswered) = (None, false);
        while let Some(event) = part.poll_event() {
            match event {
                Event::Joined(contacts) => {
                    unanswered = contacts == 0;
                    if contacts > 0 {
                        self.schedule.joined(now);
                    }
                }
                Event::Ended(id, Outcome::Stored { nodes: stored, .. }) if self.running == Some(id) => {
                    nodes = Some(stored);
                }
                _ => {}
            }
        }
        if unanswered && !std::mem::replace(&mut self.said_alone, true) {
            self.output.note("no node of the DHT answers: trying again");
        }
        if let Some(nodes) = nodes {
            self.announced(nodes, now);
        }
        if now >= self.look_at {
            self.look(now);
        }
        if self.schedule.is_due(now) {
            self.schedule.begun(now);
            // Nothing else is looked up here, so there is room.
            self.running = part.dht_mut().announce(self.key, now).ok();
            if self.running.is_none() {
                self.schedule.ended(0, now);
            }
        }
        Turn::Continue
    }

    fn wake_at(&self) -> Option<Instant> {
        self.schedule.next().map(|next| next.min(self.look_at))
    }
}

/// When to announce.
struct Schedule {
    /// The node has joined, at least once.
    is_member: bool,
    is_running: bool,
    /// What has changed since one began is not told by it.
    is_outdated: bool,
    begun_at: Option<Instant>,
    next_at: Instant,
    retry: Backoff,
}

impl Schedule {
    const fn new(retry: Backoff) -> Self {
        Self {
            is_member: false,
            is_running: false,
            is_outdated: false,
            begun_at: None,
            next_at: Instant::MIN,
            retry,
        }
    }

    /// The node has joined. If it had before, it had lost everybody whom it had told.
    fn joined(&mut self, now: Instant) {
        if std::mem::replace(&mut self.is_member, true) {
            self.retry.reset();
            self.changed(now);
        }
    }

    /// What was told is not true any more, or nobody may be left who knows it.
    fn changed(&mut self, now: Instant) {
        if self.is_running {
            self.is_outdated = true;
        } else if let Some(begun_at) = self.begun_at {
            self.next_at = self.next_at.min(begun_at.saturating_add(GAP).max(now));
        }
    }

    fn is_due(&self, now: Instant) -> bool {
        self.is_member && !self.is_running && now >= self.next_at
    }

    fn begun(&mut self, now: Instant) {
        (self.is_running, self.is_outdated, self.begun_at) = (true, false, Some(now));
    }

    /// So many nodes keep it.
    fn ended(&mut self, nodes: u8, now: Instant) {
        self.is_running = false;
        let pause = if nodes > 0 {
            self.retry.reset();
            AGAIN
        } else {
            self.retry.pause()
        };
        self.next_at = now.saturating_add(pause);
        if std::mem::take(&mut self.is_outdated) {
            self.changed(now);
        }
    }

    /// When the next one is due, if nothing happens before.
    fn next(&self) -> Option<Instant> {
        (self.is_member && !self.is_running).then_some(self.next_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backoff::NETWORK;

    fn at(seconds: u64) -> Instant {
        Instant::MIN.saturating_add(Duration::from_secs(seconds))
    }

    fn schedule() -> Schedule {
        Schedule::new(Backoff::with_draw(NETWORK.0, NETWORK.1, || 0))
    }

    /// Announces when it is due; each takes no time and is kept by `nodes`. When they began, in seconds.
    fn run(schedule: &mut Schedule, from: u64, to: u64, nodes: u8) -> Vec<u64> {
        let due = |second: &u64| {
            let is_due = schedule.is_due(at(*second));
            if is_due {
                schedule.begun(at(*second));
                schedule.ended(nodes, at(*second));
            }
            is_due
        };
        (from..to).filter(due).collect()
    }

    /// `PROTO §14.14`
    #[test]
    fn it_is_announced_when_the_node_has_joined_and_then_every_hour() {
        let mut schedule = schedule();
        assert_eq!((run(&mut schedule, 0, 5, 1), schedule.next()), (vec![], None));
        schedule.joined(at(5));
        assert_eq!(run(&mut schedule, 5, 7_300, 1), [5, 3_605, 7_205]);
        assert_eq!(schedule.next(), Some(at(10_805)));
    }

    #[test]
    fn what_no_node_keeps_is_announced_again_after_seconds_and_ever_more_seldom() {
        let mut schedule = schedule();
        schedule.joined(at(0));
        assert_eq!(run(&mut schedule, 0, 200, 0), [0, 2, 6, 14, 30, 62, 122, 182]);
        assert_eq!(run(&mut schedule, 200, 4_000, 1), [242, 3_842]);
        assert_eq!(
            run(&mut schedule, 7_440, 7_445, 0),
            [7_442, 7_444],
            "after success pauses are short again"
        );
    }

    #[test]
    fn a_machine_that_moves_and_a_node_that_has_lost_everybody_announce_anew_once_a_minute_at_most() {
        let mut schedule = schedule();
        schedule.joined(at(0));
        assert_eq!(run(&mut schedule, 0, 600, 1), [0]);
        schedule.changed(at(600));
        assert_eq!(run(&mut schedule, 600, 610, 1), [600]);
        for second in 610..720 {
            schedule.changed(at(second));
        }
        assert_eq!(run(&mut schedule, 610, 3_000, 1), [660]);
        schedule.joined(at(3_000));
        assert_eq!(run(&mut schedule, 3_000, 6_000, 1), [3_000]);
    }

    #[test]
    fn a_change_on_the_way_is_told_afterwards() {
        let mut schedule = schedule();
        schedule.joined(at(0));
        schedule.begun(at(0));
        schedule.changed(at(3));
        schedule.ended(1, at(5));
        assert_eq!(schedule.next(), Some(at(60)));
    }
}
