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

use crate::address::{Target, any, within_reach};
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
    let named = within_reach(common.bind, bootstrap)?;
    let state = state.or_else(state::default_path).map(state::resolve);
    // Held until the end.
    let _lock = state.as_deref().map(state::lock).transpose()?;
    // One that had another address knows others that it cannot write to.
    let known = within_reach(common.bind, known(state.as_deref())?).unwrap_or_default();
    let mut seeds: Vec<_> = named.into_iter().chain(known).collect();
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

/// The nodes to begin with beside something else: those that were named, or the contacts of a node of this user that can
/// be written to.
///
/// # Errors
/// None of those that were named can be written to.
pub(crate) fn seeds(common: &Common, named: &[Target]) -> Result<Vec<Target>> {
    if !named.is_empty() {
        return within_reach(common.bind, named.to_vec());
    }
    // Nobody has named them: without them it is as if there were none.
    Ok(within_reach(common.bind, known(None)?).unwrap_or_default())
}

/// Those that were named, and the contacts of a node of this user, for a command that has to have one.
fn some_seeds(common: &Common, join: &Join) -> Result<Vec<Target>> {
    let mut seeds = join.bootstrap.clone();
    if seeds.is_empty() || join.state.is_some() {
        seeds.extend(known(join.state.as_deref())?);
    }
    let seeds = within_reach(common.bind, seeds)?;
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

/// The contacts in `state`, or in the file where a node of this user keeps them.
fn known(state: Option<&Path>) -> Result<Vec<Target>> {
    let default = state::default_path();
    let known = state.or(default.as_deref()).map_or(Ok(None), state::read)?;
    Ok(known.unwrap_or_default())
}

/// Milliseconds since 1970; 0 on a clock that is set before.
fn unix_millis() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
