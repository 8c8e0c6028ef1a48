//! `dht node`: answers, keeps its contacts in a file, and tells where it is.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use wraith_dht_proto::{Conflict, Event, Outcome, QueryId, is_public};
use wraith_drivers::{Park, Runner, Turn};
use wraith_proto::{Identity, Instant};

use super::client::closed_endpoint;
use super::part::{DhtPart, Errand, NoSessions, Role, WithDht};
use super::questions::{Put, Signer};
use super::{state, unix_millis, whereabouts};
use crate::address::{Target, reachable};
use crate::drive::drive;
use crate::driver_pick::{Job, Picked};
use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::stop::Stop;

/// How often to look whether this machine has other addresses.
const LOOK: Duration = Duration::from_mins(1);

/// Until contacts are written for the second time; then twice as long each time, up to what was asked for. A node that has
/// just joined learns much.
const FIRST_SAVE: Duration = Duration::from_secs(5);

/// Milliseconds that the clock of an earlier run may have been ahead: who says that a later record is there lies.
const AHEAD: u64 = 24 * 3_600 * 1_000;

#[derive(Serialize)]
#[serde(tag = "event", rename = "node")]
struct NodeEvent {
    peer: String,
    address: String,
    addresses: Vec<String>,
    driver: &'static str,
    mode: &'static str,
}

#[derive(Serialize)]
#[serde(tag = "event", rename = "joined")]
struct JoinedEvent {
    contacts: usize,
}

#[derive(Serialize)]
#[serde(tag = "event", rename = "published")]
struct PublishedEvent {
    addresses: Vec<String>,
    nodes: u8,
}

/// Runs a node until Ctrl-C.
pub(super) struct NodeJob<'a> {
    pub(super) output: Output,
    pub(super) identity: Identity,
    pub(super) seeds: Vec<Target>,
    /// Where contacts are kept, if anywhere, and how often they are written.
    pub(super) state: Option<PathBuf>,
    pub(super) save_every: Duration,
    /// The device that it listens on, if it is one alone.
    pub(super) interface: Option<String>,
    pub(super) stop: &'a Stop,
}

impl Job for NodeJob<'_> {
    type Output = ();

    fn run<D: Park>(self, driver: D, picked: Picked) -> Result<()> {
        let Self { output, identity, seeds, state, save_every, interface, stop } = self;
        let (local, now) = (driver.local_addr(), driver.now());
        let addresses = reachable(local, interface.as_deref());
        print(output, &identity, local, &addresses, picked);
        let endpoint = closed_endpoint(identity.clone(), now)?;
        let part = DhtPart::new(identity.clone(), Role::Node, seeds, now)?;
        let state = state.map(|path| (path, save_every));
        let keeper = Keeper::new(output, identity, local, interface.as_deref(), state);
        let app = WithDht { app: NoSessions::default(), dht: Some((part, keeper)) };
        let mut runner = Runner::new(driver, endpoint, app);
        drive(&mut runner, stop)?;
        let Some((part, keeper)) = runner.into_parts().2.dht else { return Err(Failure::Interrupted) };
        keeper.save(&part)?;
        // Nothing else ends a node that goes well.
        Err(keeper.failure.unwrap_or(Failure::Interrupted))
    }
}

fn print(output: Output, identity: &Identity, local: SocketAddr, addresses: &[SocketAddr], picked: Picked) {
    let peer = identity.peer_id().to_string();
    let mut text = format!("node of the DHT on {local} as {peer}; to join through it, --bootstrap one of");
    for address in addresses {
        // Writing to a string does not fail.
        let _ = write!(text, "\n  {peer}@{address}");
    }
    let addresses = addresses.iter().map(ToString::to_string).collect();
    let Picked { name: driver, mode } = picked;
    output.result(&NodeEvent { peer, address: local.to_string(), addresses, driver, mode }, text);
}

/// What a node does beside answering: remembers its contacts, and tells others where it is.
pub(crate) struct Keeper {
    output: Output,
    identity: Identity,
    local: SocketAddr,
    interface: Option<String>,
    /// Where contacts are kept, if anywhere, and how often they are written.
    state: Option<(PathBuf, Duration)>,
    save_after: Duration,
    /// Once there is something to save.
    save_at: Option<Instant>,
    /// When to look at the own addresses, once others are there to be told.
    look_at: Option<Instant>,
    /// The addresses that others were told, and the sequence number of that.
    published: Vec<SocketAddr>,
    seq: u64,
    /// What the last one was to outbid: once, for who refuses every number is no hindrance where others keep it.
    outbid: Option<u64>,
    /// The number that others have and that cannot be outbid, once people were told of it.
    ahead: Option<u64>,
    running: Option<QueryId>,
    /// That nobody answers is said once.
    said_alone: bool,
    /// Whether contacts were written in this run.
    has_saved: bool,
    /// That they cannot be written is said once, until they can.
    said_unsaved: bool,
    failure: Option<Failure>,
}

impl Keeper {
    /// Of the node `identity` on `local`, and on this device alone if it is one; `state` says where contacts are kept, and
    /// how often they are written.
    pub(crate) fn new(
        output: Output,
        identity: Identity,
        local: SocketAddr,
        interface: Option<&str>,
        state: Option<(PathBuf, Duration)>,
    ) -> Self {
        Self {
            output,
            identity,
            local,
            interface: interface.map(str::to_owned),
            state,
            save_after: FIRST_SAVE,
            save_at: None,
            look_at: None,
            published: Vec::new(),
            seq: 0,
            outbid: None,
            ahead: None,
            running: None,
            said_alone: false,
            has_saved: false,
            said_unsaved: false,
            failure: None,
        }
    }

    fn joined(&mut self, contacts: usize, part: &DhtPart, now: Instant) {
        if contacts == 0 {
            if !part.seeds().is_empty() && !std::mem::replace(&mut self.said_alone, true) {
                self.output.note("no node answers yet: trying again, and answering whoever comes");
            }
            return;
        }
        self.said_alone = false;
        // Before anybody is told, so that who was told can rely on it.
        self.save_due(part, now);
        self.look_at.get_or_insert(now);
        let text = format!("joined: contacts: {contacts}");
        self.output.result(&JoinedEvent { contacts }, text);
    }

    /// Writes the contacts.
    fn save(&self, part: &DhtPart) -> Result<()> {
        match &self.state {
            // What is there from the last time is better than nothing.
            Some((path, _)) if part.dht().contact_count() > 0 => state::write(path, part.dht()),
            _ => Ok(()),
        }
    }

    fn save_due(&mut self, part: &DhtPart, now: Instant) {
        let after = self.state.as_ref().map(|(_, most)| self.save_after.min(*most));
        self.save_at = after.map(|after| now.saturating_add(after));
        self.save_after = self.save_after.saturating_mul(2);
        match self.save(part) {
            Ok(()) => (self.has_saved, self.said_unsaved) = (true, false),
            // A disk that is full for a while is no reason to leave: the file of the last time is there, and others count on
            // this node.
            Err(failure) if self.has_saved => {
                if !std::mem::replace(&mut self.said_unsaved, true) {
                    self.output.note(format_args!("{failure}; going on, and trying again"));
                }
            }
            Err(failure) => {
                self.failure.get_or_insert(failure);
            }
        }
    }

    /// Tells others where this node is, if that has changed.
    fn publish(&mut self, part: &mut DhtPart, now: Instant) {
        self.look_at = Some(now.saturating_add(LOOK));
        let among_strangers = part.dht().contacts().any(|node| is_public(node.address.ip()));
        let reachable = reachable(self.local, self.interface.as_deref());
        let addresses = whereabouts::published(&reachable, among_strangers);
        if addresses == self.published || self.running.is_some() {
            return;
        }
        // Higher than what an earlier run may have published.
        self.seq = unix_millis().max(self.seq.saturating_add(1));
        let signer = Signer { identity: self.identity.clone(), salt: whereabouts::SALT, seq: self.seq };
        let value = whereabouts::text(&addresses).into_bytes();
        let put = Put { value, signer: Some(signer), expected: None, stored: None };
        self.running = put.with(|record| part.dht_mut().put(record, None, now).ok()).flatten();
        if self.running.is_some() {
            self.published = addresses;
        }
    }

    fn stored(&mut self, nodes: u8, conflict: Option<Conflict>) {
        self.running = None;
        // Nobody proves a number, and no record comes after the highest: what cannot be from an earlier run is not outbid.
        let claimed = conflict.filter(|conflict| conflict.nodes >= nodes).map(|conflict| conflict.seq);
        let earlier = claimed.filter(|&seq| seq <= unix_millis().saturating_add(AHEAD));
        let outbids = std::mem::replace(&mut self.outbid, earlier).is_none() && earlier.is_some();
        if let (Some(seq), None, None) = (claimed, earlier, self.ahead) {
            self.ahead = claimed;
            self.output.note(format_args!(
                "others have an address of this node with the sequence number {seq}, far ahead of this machine's clock, and go \
                 on naming that one: check the clocks, and `dht put --sign --salt {}`; they forget it within two hours",
                whereabouts::SALT
            ));
        }
        if nodes == 0 || outbids {
            // It is tried again with a higher number.
            self.published.clear();
            self.seq = self.seq.max(earlier.unwrap_or(0));
        }
        let addresses: Vec<_> = self.published.iter().map(ToString::to_string).collect();
        self.output
            .detail(format_args!("own addresses were told to {nodes} others: {}", addresses.join(", ")));
        self.output.event(&PublishedEvent { addresses, nodes });
    }
}

impl Errand for Keeper {
    fn on_turn(&mut self, now: Instant, part: &mut DhtPart) -> Turn {
        let (mut joined, mut stored) = (None, None);
        while let Some(event) = part.poll_event() {
            match event {
                Event::Joined(contacts) => joined = Some(contacts),
                Event::Ended(id, Outcome::Stored { nodes, conflict }) if self.running == Some(id) => {
                    stored = Some((nodes, conflict));
                }
                _ => {}
            }
        }
        // To the first node of a network others come.
        if part.seeds().is_empty() && self.look_at.is_none() {
            joined = Some(part.dht().contact_count()).filter(|&contacts| contacts > 0);
        }
        if let Some(contacts) = joined {
            self.joined(contacts, part, now);
        }
        if let Some((nodes, conflict)) = stored {
            self.stored(nodes, conflict);
        }
        if self.save_at.is_some_and(|at| at <= now) {
            self.save_due(part, now);
        }
        if self.look_at.is_some_and(|at| at <= now) {
            self.publish(part, now);
        }
        if self.failure.is_some() { Turn::Stop } else { Turn::Continue }
    }

    fn wake_at(&self) -> Option<Instant> {
        self.save_at.into_iter().chain(self.look_at).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published(seq: u64) -> Keeper {
        let local: SocketAddr = "127.0.0.1:5".parse().unwrap();
        let identity = Identity::from_seed([1; 32]);
        let keeper = Keeper::new(Output::SILENT, identity, local, None, None);
        Keeper { published: vec![local], seq, ..keeper }
    }

    /// Three others say that a record with this number is there.
    fn claimed(seq: u64) -> Conflict {
        Conflict { nodes: 3, seq }
    }

    #[test]
    fn a_number_that_no_earlier_run_can_have_given_is_not_outbid() {
        // The record with the highest number could never be replaced when the node moves.
        for lie in [u64::MAX, u64::MAX - 1, unix_millis() + 2 * AHEAD] {
            let mut keeper = published(7);
            keeper.stored(3, Some(claimed(lie)));
            assert_eq!((keeper.published.len(), keeper.seq), (1, 7), "others keep it");
            keeper.stored(0, Some(claimed(lie)));
            assert_eq!((keeper.published.len(), keeper.seq), (0, 7), "it is tried again");
        }
    }

    #[test]
    fn a_record_of_an_earlier_run_is_outbid_and_who_refuses_every_number_is_passed_over() {
        let ahead = unix_millis() + AHEAD / 2;
        let mut keeper = published(7);
        keeper.stored(4, Some(claimed(ahead)));
        assert_eq!((keeper.published.len(), keeper.seq), (1, 7), "more have taken it");
        keeper.stored(3, Some(claimed(ahead)));
        assert_eq!((keeper.published.len(), keeper.seq), (0, ahead));
        let mut keeper = Keeper { outbid: keeper.outbid, ..published(ahead + 1) };
        keeper.stored(3, Some(claimed(ahead + 2)));
        assert_eq!((keeper.published.len(), keeper.seq), (1, ahead + 1));
        keeper.stored(3, None);
        assert_eq!(keeper.outbid, None);
    }
}
