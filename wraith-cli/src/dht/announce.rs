//! Telling the DHT that this node provides a content, again and again.

use std::time::Duration;

use serde::Serialize;
use wraith_dht_proto::{Event, Id, Outcome, QueryId};
use wraith_drivers::Turn;
use wraith_proto::Instant;

use super::part::{DhtPart, Errand};
use super::report::counted;
use crate::output::Output;

/// Between two announcements: nodes forget after two hours.
const AGAIN: Duration = Duration::from_hours(1);

/// Until one that no node has kept is tried again.
const RETRY: Duration = Duration::from_mins(1);

#[derive(Serialize)]
#[serde(tag = "event", rename = "announced")]
struct AnnouncedEvent<'a> {
    hash: &'a str,
    nodes: u8,
}

/// Announces one content for as long as it is run.
pub(crate) struct Announcer {
    output: Output,
    key: Id,
    hash: String,
    /// Whether the node has joined.
    joined: bool,
    /// That nobody answers is said once.
    said_alone: bool,
    running: Option<QueryId>,
    next_at: Instant,
}

impl Announcer {
    pub(crate) fn new(output: Output, key: Id, hash: String) -> Self {
        Self { output, key, hash, joined: false, said_alone: false, running: None, next_at: Instant::MIN }
    }

    fn announced(&mut self, nodes: u8, now: Instant) {
        self.running = None;
        self.next_at = now.saturating_add(if nodes > 0 { AGAIN } else { RETRY });
        self.output.event(&AnnouncedEvent { hash: &self.hash, nodes });
        if !self.output.json {
            self.output.note(if nodes > 0 {
                format!("where {} is was told to {} of the DHT", self.hash, counted(nodes))
            } else {
                "announced to nobody: no node of the DHT keeps it; trying again in a minute".to_owned()
            });
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
                    self.joined |= contacts > 0;
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
        if self.joined && self.running.is_none() && now >= self.next_at {
            // Nothing else is looked up here, so there is room.
            self.running = part.dht_mut().announce(self.key, now).ok();
            self.next_at = now.saturating_add(RETRY);
        }
        Turn::Continue
    }

    fn wake_at(&self) -> Option<Instant> {
        (self.joined && self.running.is_none()).then_some(self.next_at)
    }
}
