//! `dht`: nodes of the DHT, what they keep, and networks of them in virtual time.

mod announce;
pub(crate) mod args;
mod client;
mod events;
mod finder;
mod node;
mod part;
#[cfg_attr(not(feature = "mainline"), path = "no_public.rs")]
mod public;
mod questions;
mod report;
mod sim;
mod state;
mod verbs;
mod whereabouts;

use std::path::Path;
use std::time::SystemTime;

use crate::address::{Target, any};
use crate::args::Common;
use crate::driver_pick::{has_ipv6, with_driver};
use crate::failure::{Failure, Result};
use crate::identity;
use crate::output::Output;
use crate::stop::Stop;

pub(crate) use announce::{Addresses, Announcer};
pub(crate) use finder::{Desk, Finder};
pub(crate) use node::Keeper;
pub(crate) use part::{DhtPart, Role, WithDht};

use args::{Dht, DhtCommand, DhtNode, Join};
use node::NodeJob;

/// Runs a command of the DHT.
pub(crate) fn run(common: &Common, output: Output, args: Dht) -> Result<()> {
    let stop = Stop::on_ctrl_c()?;
    match args.command {
        DhtCommand::Node(args) => run_node(common, args, &stop),
        DhtCommand::Put(args) if args.ask.discovery.is_on() => public::put(common, &args, &stop),
        DhtCommand::Get(args) if args.ask.discovery.is_on() => public::get(common, output, &args, &stop),
        DhtCommand::Announce(args) if args.ask.discovery.is_on() => public::announce(common, &args, &stop),
        DhtCommand::Find(args) if args.ask.discovery.is_on() => public::find(common, &args, &stop),
        DhtCommand::Put(args) => verbs::put(common, args, &stop),
        DhtCommand::Get(args) => verbs::get(common, output, &args, &stop),
        DhtCommand::Announce(args) => verbs::announce(common, &args, &stop),
        DhtCommand::Find(args) => verbs::find(common, &args, &stop),
        // It waits for nobody, so a signal ends it where it is.
        DhtCommand::Sim(args) => sim::run(output, &args),
    }
}

fn run_node(common: &Common, args: DhtNode, stop: &Stop) -> Result<()> {
    let output = common.output();
    let Join { bootstrap, state } = args.join;
    let mut seeds = within_reach(common, bootstrap)?;
    let state = state.or_else(state::default_path).map(state::resolve);
    // Held until the end.
    let _lock = state.as_deref().map(state::lock).transpose()?;
    let known = state.as_deref().map_or(Ok(None), state::read)?;
    seeds.extend(known.into_iter().flatten());
    let identity = identity::lasting(output, common.identity.as_deref())?;
    seeds.retain(|seed| seed.id != identity.peer_id());
    if seeds.is_empty() {
        output.note("no node to join through was named: waiting for others, as the first one");
    }
    let host = common.device.host();
    let job = NodeJob {
        output,
        identity,
        seeds,
        state,
        save_every: args.save_every,
        interface: host.interface().map(str::to_owned),
        stop,
    };
    let bind = common.bind.unwrap_or_else(|| any(has_ipv6()));
    with_driver(output, common.driver, &host, bind, job)
}

/// The nodes to begin with: those that were named, or the contacts of a node of this user.
pub(crate) fn seeds(named: &[Target], state: Option<&Path>) -> Result<Vec<Target>> {
    if named.is_empty() || state.is_some() {
        let default = state::default_path();
        let known = state.or(default.as_deref()).map_or(Ok(None), state::read)?;
        return Ok(named.iter().copied().chain(known.into_iter().flatten()).collect());
    }
    Ok(named.to_vec())
}

/// The same for a command that has to have one, and that it can write to.
fn some_seeds(common: &Common, join: &Join) -> Result<Vec<Target>> {
    let seeds = within_reach(common, seeds(&join.bootstrap, join.state.as_deref())?)?;
    if seeds.is_empty() {
        let missing = join.state.as_deref().filter(|path| !path.exists());
        let missing = missing.map(|path| format!(", {} does not exist", state::shown(path)));
        return Err(Failure::Usage(format!(
            "no node of the DHT is known here{}: name one with --bootstrap PEER@ADDR, as `wraith-cli dht node` prints it",
            missing.unwrap_or_default()
        )));
    }
    Ok(seeds)
}

/// Those of `seeds` whose IP version the address that was asked for has.
fn within_reach(common: &Common, seeds: Vec<Target>) -> Result<Vec<Target>> {
    let is_within = |seed: &Target| seed.bind_addr(common.bind).is_ok();
    match seeds.first() {
        Some(first) if !seeds.iter().any(is_within) => first.bind_addr(common.bind).map(|_| Vec::new()),
        _ => Ok(seeds.into_iter().filter(is_within).collect()),
    }
}

/// Milliseconds since 1970; 0 on a clock that is set before.
fn unix_millis() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
