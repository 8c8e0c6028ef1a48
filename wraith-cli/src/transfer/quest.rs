//! Asking networks who has a content, again and again while nobody brings it.

use std::time::Duration;

use wraith_proto::Instant;

use crate::address::Candidate;
use crate::backoff::Backoff;
use crate::discovery::Seeker;
use crate::failure::{Failure, Result};

/// Between an answer and the next question: at first, and at most.
const PAUSE: (Duration, Duration) = (Duration::from_secs(2), Duration::from_mins(1));

/// So often at least a network is asked again while nobody brings anything, if its pauses need not be shorter than the first
/// for that: whoever comes late is found before the patience is over, but at the very end of it.
const LEAST: u32 = 6;

/// A network that knows, or does not, who has a content.
pub(super) trait Network {
    /// Asks it. The answer to the question before has come.
    fn ask(&mut self);

    /// The answer, once it is there: an error if it names nobody.
    fn answer(&mut self) -> Option<Result<Vec<Candidate>>>;
}

/// All that are asked.
pub(super) type Networks = Vec<Box<dyn Network>>;

impl Network for Seeker {
    fn ask(&mut self) {
        Self::ask(self);
    }

    fn answer(&mut self) -> Option<Result<Vec<Candidate>>> {
        Self::answer(self)
    }
}

/// What has come of asking.
#[derive(PartialEq, Eq, Debug, Default)]
pub(super) struct Found {
    pub(super) candidates: Vec<Candidate>,
    /// Lines for people.
    pub(super) notes: Vec<String>,
}

/// The networks that are asked, and for how long.
pub(super) struct Quest {
    asked: Vec<Asked>,
    patience: Duration,
    /// Until when networks are asked again. While somebody brings the content this moves on with the time.
    until: Instant,
    /// When it had its last turn, and whether somebody was needed then.
    last: (Instant, bool),
    /// That time is over.
    is_over: bool,
    /// What of the content was there when it last grew.
    bytes: u64,
    /// Why nobody brings it, while others may still be named.
    waiting: Option<Failure>,
    /// People were told of that.
    is_told: bool,
}

struct Asked {
    network: Box<dyn Network>,
    stage: Stage,
    backoff: Backoff,
    /// Why it named nobody, the last time; people were told.
    why: Option<Failure>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// It was never asked.
    New,
    /// It was asked for the first time.
    First,
    /// It was asked once more.
    More,
    /// It has answered; from then on it may be asked again.
    Rest(Instant),
}

impl Quest {
    /// Asks `networks` once, and again for `patience` while nobody brings anything, since the content has grown for the last
    /// time.
    pub(super) fn new(networks: Networks, patience: Duration, now: Instant) -> Self {
        let asked = |network| Asked {
            network,
            stage: Stage::New,
            backoff: Backoff::new(PAUSE.0, longest_pause(patience)),
            why: None,
        };
        let asked = networks.into_iter().map(asked).collect();
        let until = now.saturating_add(patience);
        Self {
            asked,
            patience,
            until,
            last: (now, true),
            is_over: false,
            bytes: 0,
            waiting: None,
            is_told: false,
        }
    }

    /// Takes answers, and asks where it is time, if somebody is `needed`. `others` says whether there is anybody else to
    /// go on with.
    pub(super) fn turn(&mut self, now: Instant, needed: bool, others: bool) -> Found {
        let mut found = Found::default();
        let (last, was_needed) = std::mem::replace(&mut self.last, (now, needed));
        if !was_needed {
            self.until = self.until.saturating_add(now.saturating_since(last));
        }
        let lasts = now < self.until;
        self.is_over = needed && !lasts;
        for asked in &mut self.asked {
            let answer = if asked.is_waiting() { asked.network.answer() } else { None };
            match answer {
                Some(Ok(candidates)) => {
                    found.candidates.extend(candidates);
                    asked.why = None;
                }
                Some(Err(failure)) => {
                    let what = if needed && lasts {
                        Some(again(&failure, self.patience))
                    } else {
                        others.then(|| format!("{failure}; going on without"))
                    };
                    let is_said = asked.why.replace(failure).is_some();
                    found.notes.extend(what.filter(|_| !is_said));
                }
                None => {
                    asked.ask_if_due(now, needed && lasts);
                    continue;
                }
            }
            asked.stage = Stage::Rest(now.saturating_add(asked.backoff.pause()));
        }
        found
    }

    /// The content has this many bytes now.
    pub(super) fn progress(&mut self, now: Instant, bytes: u64) {
        if bytes > self.bytes {
            self.bytes = bytes;
            self.until = now.saturating_add(self.patience);
        }
    }

    /// Whether somebody may still be named.
    pub(super) fn is_open(&self, now: Instant) -> bool {
        let first = |asked: &Asked| matches!(asked.stage, Stage::New | Stage::First);
        self.asked.iter().any(|asked| first(asked) || now < self.until)
    }

    /// Nobody brings it because of `failure`: others are waited for. Whether anybody was `tried` says how much that
    /// explains. Returns what to tell people, once.
    pub(super) fn wait(&mut self, failure: Failure, now: Instant, tried: bool) -> Option<String> {
        let tells = tried && now < self.until && !std::mem::replace(&mut self.is_told, true);
        let text = tells.then(|| again(&failure, self.patience));
        if tried || self.waiting.is_none() {
            self.waiting = Some(failure);
        }
        text
    }

    /// Somebody brings it.
    pub(super) fn end_wait(&mut self) {
        (self.waiting, self.is_told) = (None, false);
    }

    /// Why nobody brought it, once nobody is waited for any more.
    pub(super) fn take_failure(&mut self, now: Instant) -> Option<Failure> {
        if self.is_open(now) { None } else { self.waiting.take() }
    }

    /// Why the first network that has named nobody did so.
    pub(super) fn take_why(&mut self) -> Option<Failure> {
        self.asked.iter_mut().find_map(|asked| asked.why.take())
    }

    /// When it wants its next turn, if somebody is needed. An answer wakes by itself.
    pub(super) fn wake_at(&self) -> Option<Instant> {
        if self.is_over {
            return None;
        }
        let rest = |asked: &Asked| match asked.stage {
            Stage::New => Some(Instant::MIN),
            Stage::Rest(until) if until < self.until => Some(until),
            _ => None,
        };
        let end = self.waiting.as_ref().map(|_| self.until);
        self.asked.iter().filter_map(rest).chain(end).min()
    }
}

impl Asked {
    const fn is_waiting(&self) -> bool {
        matches!(self.stage, Stage::First | Stage::More)
    }

    fn ask_if_due(&mut self, now: Instant, again: bool) {
        match self.stage {
            Stage::New => self.stage = Stage::First,
            Stage::Rest(until) if again && now >= until => {
                if now >= until.saturating_add(PAUSE.1) {
                    // Nobody was needed for long.
                    self.backoff.reset();
                }
                self.stage = Stage::More;
            }
            _ => return,
        }
        self.network.ask();
    }
}

/// The longest pause between an answer and the next question.
fn longest_pause(patience: Duration) -> Duration {
    (patience / LEAST).clamp(PAUSE.0, PAUSE.1)
}

fn again(failure: &Failure, patience: Duration) -> String {
    format!("{failure}; asking again for up to {} s", patience.as_secs_f64())
}

#[cfg(test)]
mod tests;
