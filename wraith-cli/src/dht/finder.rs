//! Asking the DHT who provides a content, beside an application that fetches it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use wraith_dht_proto::{Event, Id, QueryId};
use wraith_drivers::Turn;
use wraith_proto::Instant;

use super::client::{Question as _, unanswered};
use super::part::{DhtPart, Errand};
use super::questions::FindProviders;
use crate::address::Target;
use crate::failure::Result;

/// How long to wait for an answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// Where a question is put down, and its answer.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    asked: Cell<bool>,
    answer: RefCell<Option<Result<Vec<Target>>>>,
}

impl Desk {
    /// Asks, from the next turn on.
    pub(crate) fn ask(&self) {
        self.asked.set(true);
    }

    /// The answer, once it is there. Nobody may provide it.
    pub(crate) fn answer(&self) -> Option<Result<Vec<Target>>> {
        self.answer.take()
    }
}

/// Answers the questions on its desk.
pub(crate) struct Finder {
    key: Id,
    desk: Rc<Desk>,
    /// Until when the question waits for its answer.
    until: Option<Instant>,
    running: Option<QueryId>,
}

impl Finder {
    /// Of whoever provides `key`.
    pub(crate) fn new(key: Id, desk: Rc<Desk>) -> Self {
        Self { key, desk, until: None, running: None }
    }

    fn end(&mut self, answer: Result<Vec<Target>>) {
        (self.until, self.running) = (None, None);
        self.desk.answer.replace(Some(answer));
    }
}

impl Errand for Finder {
    fn on_turn(&mut self, now: Instant, part: &mut DhtPart) -> Turn {
        let mut providers = None;
        while let Some(event) = part.poll_event() {
            match event {
                Event::Ended(id, outcome) if self.running == Some(id) => {
                    let mut question = FindProviders { key: self.key, providers: Vec::new() };
                    question.take(&outcome);
                    providers = Some(question.providers);
                }
                _ => {}
            }
        }
        if let Some(providers) = providers {
            self.end(Ok(providers));
        }
        if self.desk.asked.take() {
            self.until = Some(now.saturating_add(PATIENCE));
        }
        if self.until.is_some_and(|until| now >= until) {
            let answer = Err(unanswered(self.running.is_some(), PATIENCE, part.seeds()));
            self.end(answer);
        } else if self.until.is_some() && self.running.is_none() && part.dht().can_look_up() {
            let mut question = FindProviders { key: self.key, providers: Vec::new() };
            // If there is no room, the time runs out.
            self.running = question.begin(part.dht_mut(), now).ok().and_then(|begun| begun.first().copied());
        }
        Turn::Continue
    }

    fn wake_at(&self) -> Option<Instant> {
        if self.desk.asked.get() { Some(Instant::MIN) } else { self.until }
    }
}
