//! `receive`: dials whoever may have the content, fetches, verifies, stores.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use wraith_dht_proto::Id;
use wraith_drivers::{Park, Runner, Unpark};
use wraith_proto::{Identity, Instant, Policy};
use wraith_transfer_proto::{Hash, Kind, Request};

use super::dialer::Dialer;
use super::files::Files;
use super::naming::{Existing, Place};
use super::progress::Progress;
use super::quest::{Network, Networks, Quest};
use super::receiver::{Order, Received, Receiver};
use super::report::{Done, Speed};
use super::sink::{Sink, Wake};
use super::store::Store;
use super::stream_out::StreamOut;
use super::wanted::Wanted;
use super::{endpoint, hex, limits, memory, path, transport};
use crate::address::{Candidate, Target, any, reaches, within_reach};
use crate::args::{self, Common};
use crate::cipher::{self, Offer};
use crate::dht::{self, Desk, DhtPart, Finder, Role, WithDht};
use crate::discovery::{self, Subject};
use crate::drive::drive;
use crate::driver_pick::{Job, Picked, has_ipv6, with_driver};
use crate::failure::{Failure, Result, failed};
use crate::identity;
use crate::output::Output;
use crate::stop::Stop;

/// Addresses that a network has named and that are dialled at one time.
const NAMED: u32 = 8;

/// Fetches what a ticket or a hash names.
pub(crate) fn run(common: &Common, args: &args::Receive, stop: Stop) -> Result<()> {
    let output = common.output();
    if args.stdout && output.json {
        return Err(Failure::Usage("--json and --stdout both want stdout: leave one of them out".to_owned()));
    }
    let wanted = Wanted::parse(&args.wanted)?;
    if wanted.token.is_some() && !args.bootstrap.is_empty() {
        // Whoever announces it would get to know what the ticket keeps secret.
        return Err(Failure::Usage(
            "a ticket says itself who has the content: leave --bootstrap out, or give the hash instead"
                .to_owned(),
        ));
    }
    args.discovery.check(common.bind)?;
    // Who names a source, or another network, wants that one.
    let named = !args.from.is_empty() || args.discovery.is_on();
    let asks = wanted.token.is_none() && (!named || !args.bootstrap.is_empty());
    let seeds = if asks { dht::seeds(common, &args.bootstrap)? } else { Vec::new() };
    let candidates = candidates(&wanted, &args.from, args.discovery.is_on() || !seeds.is_empty(), common)?;
    for far in args.from.iter().filter(|target| !candidates.contains(&Candidate::from(**target))) {
        output.note(format_args!("{far} cannot be reached from here for its IP version: going on without"));
    }
    let existing = match (args.overwrite, args.rename) {
        (true, _) => Existing::Overwrite,
        (_, true) => Existing::Rename,
        _ => Existing::Refuse,
    };
    let place = if args.stdout {
        None
    } else {
        Some((Place::new(&args.output, &wanted.name, existing)?, args.files.take(output)))
    };
    let identity = identity::for_run(output, common.identity.as_deref())?;
    let v6 = if seeds.is_empty() {
        candidates.iter().any(|candidate| candidate.addr.is_ipv6())
    } else {
        has_ipv6()
    };
    let bind = common.bind.unwrap_or_else(|| any(v6));
    let (offer, packet_size) = (common.suite, args.packet_size);
    let patience = args.patience;
    let discovery = (&args.discovery, common.bind);
    let job = ReceiveJob {
        output,
        identity,
        offer,
        packet_size,
        wanted,
        seeds,
        discovery,
        candidates,
        patience,
        place,
        stop,
    };
    with_driver(output, common.driver, &common.device.host(), bind, job)
}

struct ReceiveJob<'a> {
    output: Output,
    identity: Identity,
    offer: Offer,
    packet_size: Option<u16>,
    wanted: Wanted,
    /// Nodes of the DHT to ask who has it.
    seeds: Vec<Target>,
    /// Another network to ask, and the address to ask it from.
    discovery: (&'a discovery::Options, Option<SocketAddr>),
    candidates: Vec<Candidate>,
    patience: Duration,
    place: Option<(Place, Files)>,
    stop: Stop,
}

impl Job for ReceiveJob<'_> {
    type Output = ();

    fn run<D: Park>(self, driver: D, picked: Picked) -> Result<()> {
        let Self {
            output,
            identity,
            offer,
            packet_size,
            wanted,
            seeds,
            discovery,
            candidates,
            patience,
            place,
            stop,
        } = self;
        let unparker = driver.unparker();
        let wake: Wake = Arc::new(move || {
            // A loop that cannot be woken ends its wait by itself.
            let _ = unparker.unpark();
        });
        let files = place.as_ref().map(|(_, files)| files.name());
        let sink = match place {
            Some((place, files)) => Sink::file(Store::create(place, &wanted.hash, files)?),
            None => Sink::Stdout(StreamOut::new(Arc::clone(&wake))),
        };
        output.note(format_args!("fetching {}", wanted.shown()));
        let now = driver.now();
        let (mut networks, dht) = own_dht(output, &wanted.hash, seeds, driver.local_addr(), now)?;
        let subject = Subject { hash: wanted.hash, peer: wanted.peer };
        let woken = Arc::clone(&wake);
        let seeker = discovery.0.seek(output, discovery.1, subject, move || woken())?;
        networks.extend(seeker.map(|seeker| Box::new(seeker) as Box<dyn Network>));
        // Nothing is known of the way to whoever else may be named.
        let known = candidates.iter().map(|candidate| candidate.addr).filter(|_| networks.is_empty());
        let transport = path::dialling(transport(offer), known, &driver.caps(), packet_size);
        // One more: a source that is lost may still have its session when another one begins.
        let named = if networks.is_empty() { 0 } else { NAMED };
        let limits = limits(candidates.len() as u32 + named + 1);
        let endpoint = endpoint(identity, Policy::Set([].into()), limits, transport, now)?;
        let order = Order {
            request: Request::new(Kind::File, wanted.hash),
            token: wanted.token,
            dialer: Dialer::new(candidates, now, patience),
            quest: Quest::new(networks, patience, now),
            patience,
            sink,
            wake,
        };
        let progress = Progress::new(output, "receiving");
        let mut runner =
            Runner::new(driver, endpoint, WithDht { app: Receiver::new(output, progress, order), dht });
        drive(&mut runner, &stop)?;
        let received = runner.into_parts().2.app.finish()?;
        report(output, picked, files, &hex(&wanted.hash), &received);
        Ok(())
    }
}

fn report(output: Output, picked: Picked, files: Option<&str>, hash: &str, received: &Received) {
    let Received { bytes, took, kept, peer, address, suite } = received;
    let speed = Speed::new(*bytes, *took, kept.fsync);
    let done = Done {
        bytes: *bytes,
        seconds: speed.seconds,
        gbps: speed.gbps,
        hash,
        driver: picked.name,
        verified: true,
        path: kept.path.as_ref().map(|path| path.to_string_lossy()),
        fsync_seconds: speed.fsync_seconds,
        peer,
        address,
        peak_rss: memory::peak(),
        suite,
        crypto: cipher::LIBRARY,
        files,
    };
    if !output.json {
        let (speed, cipher) = (speed.text(*bytes), cipher::described(suite));
        output.note(format_args!("{speed}, driver {}, {cipher}, verified", picked.name));
    }
    match &kept.path {
        Some(path) => output.path_result(&done, path),
        None => output.event(&done),
    }
}

/// Our own DHT, as it is asked who has the content.
struct OwnDht {
    output: Output,
    /// The port that is dialled from.
    local: SocketAddr,
    desk: Rc<Desk>,
    /// How many had it, the last time that people were told.
    said: Option<usize>,
}

impl Network for OwnDht {
    fn ask(&mut self) {
        self.desk.ask();
    }

    fn answer(&mut self) -> Option<Result<Vec<Candidate>>> {
        let answer = self.desk.answer()?.and_then(|providers| {
            let dialled = |target: &Target| reaches(self.local, target.addr);
            let found: Vec<_> = providers.into_iter().filter(dialled).map(Candidate::from).collect();
            if found.is_empty() {
                return Err(failed(
                    "nobody who can be reached from here announces this content on the DHT: name somebody who has it \
                     with --from PEER@ADDR, or retry later",
                ));
            }
            if self.said.replace(found.len()) != Some(found.len()) {
                self.output.note(if let [only] = &found[..] {
                    format!("one peer says on the DHT that it has it, at {}", only.addr)
                } else {
                    format!("{} peers say on the DHT that they have it", found.len())
                });
            }
            Ok(found)
        });
        Some(answer)
    }
}

/// Our own DHT, and the node that asks it over the port that is dialled from, if there are nodes to ask through.
fn own_dht(
    output: Output,
    hash: &Hash,
    seeds: Vec<Target>,
    local: SocketAddr,
    now: Instant,
) -> Result<(Networks, Option<(DhtPart, Finder)>)> {
    if seeds.is_empty() {
        return Ok((Vec::new(), None));
    }
    // Nodes need not learn who fetches.
    let identity = Identity::from_seed(identity::random_seed()?);
    let part = DhtPart::new(identity, Role::Client, seeds, now)?;
    let desk = Rc::default();
    let finder = Finder::new(Id::from_bytes(*hash), Rc::clone(&desk));
    Ok((vec![Box::new(OwnDht { output, local, desk, said: None })], Some((part, finder))))
}

/// Whom to ask, the ticket's own sender first; nobody may do if networks are asked for others, as `looked_up` says.
fn candidates(wanted: &Wanted, from: &[Target], looked_up: bool, common: &Common) -> Result<Vec<Candidate>> {
    if wanted.token.is_none() && from.is_empty() && !looked_up {
        return Err(Failure::Usage(
            "a hash does not say who has the content: name somebody with --from PEER@ADDR, a node of the DHT with \
             --bootstrap PEER@ADDR, or ask with --discovery"
                .to_owned(),
        ));
    }
    let given = from.iter().copied().map(Candidate::from);
    let mut candidates: Vec<Candidate> = Vec::new();
    for candidate in wanted.candidates.iter().copied().chain(given) {
        if !candidates.contains(&candidate) {
            candidates.push(candidate);
        }
    }
    let any = !candidates.is_empty();
    match within_reach(common.bind, candidates) {
        Ok(candidates) if any || looked_up => Ok(candidates),
        Ok(_) => Err(failed("the ticket names no address of the sender: give one with --from PEER@ADDR")),
        // Whoever is named may be within reach.
        Err(_) if looked_up => Ok(Vec::new()),
        Err(failure) => Err(failure),
    }
}
