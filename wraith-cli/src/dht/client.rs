//! A node that joins, looks something up, and goes.

use std::time::Duration;

use wraith_dht_proto::{Dht, Event, Outcome, QueryId, StartError};
use wraith_drivers::{Park, Runner, Turn};
use wraith_proto::{Config, Endpoint, Identity, Instant, Limits, Policy};

use super::part::{DhtPart, Errand, NoSessions, Role, WithDht};
use crate::address::Target;
use crate::dial::{PING_PROTOCOL, endpoint_of};
use crate::drive::drive;
use crate::failure::{Failure, Result, failed};
use crate::output::Output;
use crate::stop::Stop;

/// What is looked up.
pub(crate) trait Question {
    /// Begins the lookups, of which there may be two at a time.
    fn begin(&mut self, dht: &mut Dht, now: Instant) -> std::result::Result<Vec<QueryId>, StartError>;

    /// Takes what became of one; whether the others are not needed any more.
    fn take(&mut self, outcome: &Outcome<'_>) -> bool;

    /// All is known: how the command ends, if it does not stay.
    ///
    /// # Errors
    /// The answer is none.
    fn end(&mut self) -> Result<()> {
        Ok(())
    }
}

/// How to look up.
pub(crate) struct Lookup {
    pub(crate) output: Output,
    pub(crate) identity: Identity,
    pub(crate) seeds: Vec<Target>,
    pub(crate) timeout: Duration,
    /// Beyond the answer, as a node among others, until Ctrl-C.
    pub(crate) keep: bool,
}

/// Asks `question` over `driver`, which comes back whatever came of the question.
///
/// # Errors
/// Those of the network.
pub(crate) fn ask<D: Park, Q: Question>(
    driver: D,
    lookup: Lookup,
    question: Q,
    stop: &Stop,
) -> Result<(D, Result<Q>)> {
    let Lookup { output, identity, seeds, timeout, keep } = lookup;
    let now = driver.now();
    let endpoint = closed_endpoint(identity.clone(), now)?;
    let role = if keep { Role::Node } else { Role::Client };
    let part = DhtPart::new(identity, role, seeds, now)?;
    let until = now.saturating_add(timeout);
    let client = Client { output, question, timeout, until, keep, running: None, outcome: None };
    let app = WithDht { app: NoSessions::default(), dht: Some((part, client)) };
    let mut runner = Runner::new(driver, endpoint, app);
    drive(&mut runner, stop)?;
    let (driver, _, app) = runner.into_parts();
    let (_, client) = app.dht.ok_or(Failure::Interrupted)?;
    let answer = match client.outcome {
        // One that stays is ended by Ctrl-C alone.
        Some(Ok(())) if !keep => Ok(client.question),
        Some(Err(failure)) => Err(failure),
        _ => Err(Failure::Interrupted),
    };
    Ok((driver, answer))
}

/// An endpoint that has no sessions.
pub(super) fn closed_endpoint(identity: Identity, now: Instant) -> Result<Endpoint> {
    let mut config = Config::new(identity, PING_PROTOCOL);
    config.policy = Policy::Set([].into());
    config.limits =
        Limits { sessions: 1, handshakes: 1, streams: 2, sent_packets: 64, holes: 64, ..Limits::client() };
    endpoint_of(config, now)
}

struct Client<Q> {
    output: Output,
    question: Q,
    timeout: Duration,
    until: Instant,
    keep: bool,
    /// Lookups without an answer, once the node has joined.
    running: Option<Vec<QueryId>>,
    outcome: Option<Result<()>>,
}

impl<Q: Question> Client<Q> {
    fn begin(&mut self, dht: &mut Dht, contacts: usize, now: Instant) {
        self.output.detail(format_args!("joined the DHT: contacts: {contacts}"));
        match self.question.begin(dht, now) {
            Ok(running) => self.running = Some(running),
            Err(error) => self.end(Err(failed(format!("cannot look it up: {error}; change it and retry")))),
        }
    }

    fn end(&mut self, outcome: Result<()>) {
        self.outcome.get_or_insert(outcome);
    }

    /// The time is over.
    fn give_up(&mut self, seeds: &[Target]) {
        self.end(Err(unanswered(self.running.is_some(), self.timeout, seeds)));
    }
}

/// Why there is no answer after so long, of those who were to be joined through.
pub(super) fn unanswered(has_joined: bool, timeout: Duration, seeds: &[Target]) -> Failure {
    let seconds = timeout.as_secs_f64();
    failed(if has_joined {
        format!("no answer was complete within {seconds} s: retry with a longer --timeout")
    } else {
        let tried = shown(seeds);
        format!(
            "no node of the DHT answered within {seconds} s, tried {tried}: name one that runs with --bootstrap \
             PEER@ADDR, by the peer id that it has there, and check that no firewall stops UDP"
        )
    })
}

/// The first of these nodes, and how many more there are.
fn shown(seeds: &[Target]) -> String {
    match seeds {
        [] => "none".to_owned(),
        [only] => only.addr.to_string(),
        [first, other] => format!("{} and {}", first.addr, other.addr),
        [first, others @ ..] => format!("{} and {} others", first.addr, others.len()),
    }
}

impl<Q: Question> Errand for Client<Q> {
    fn on_turn(&mut self, now: Instant, part: &mut DhtPart) -> Turn {
        while let Some(event) = part.poll_event() {
            let (Event::Ended(id, outcome), Some(running)) = (event, &mut self.running) else { continue };
            let Some(at) = running.iter().position(|running| *running == id) else { continue };
            running.swap_remove(at);
            if self.question.take(&outcome) || running.is_empty() {
                self.outcome.get_or_insert_with(|| self.question.end());
            }
        }
        // Without the time that silent nodes have.
        if self.running.is_none() && part.dht().can_look_up() {
            let contacts = part.dht().contact_count();
            self.begin(part.dht_mut(), contacts, now);
        }
        if self.outcome.is_none() && now >= self.until {
            self.give_up(part.seeds());
        }
        match &self.outcome {
            None => Turn::Continue,
            Some(Ok(())) if self.keep => Turn::Continue,
            Some(_) => Turn::Stop,
        }
    }

    fn wake_at(&self) -> Option<Instant> {
        self.outcome.is_none().then_some(self.until)
    }
}
