//! Sessions over the driver.

use std::time::Instant as Std;

use wraith_drivers::{Driver, Runner};
use wraith_proto::{Config, Endpoint, Identity, Peer, Via};

use crate::case::{Outcome, Verdict, ensure, ensure_eq};
use crate::context::Context;
use crate::harness::{Harness, Link, Memory, Pair};
use crate::lockstep;
use crate::talk::{Plan, Role, Talk};

/// Bytes of a mebibyte.
const MIB: u64 = 1 << 20;

pub(super) fn a_session_opens_and_closes<D: Driver>(context: &mut Context<D>) -> Outcome {
    for _ in 0..10 {
        same_as_in_memory(context, Plan::default())?;
        context.options.seed = context.options.seed.wrapping_add(1);
    }
    Ok(())
}

pub(super) fn a_stream_arrives<D: Driver>(context: &mut Context<D>) -> Outcome {
    let stream = context.options.budget.pick(2 * MIB, 64 * MIB);
    same_as_in_memory(context, Plan { stream, datagrams: 0 })
}

pub(super) fn datagrams_of_a_session_arrive<D: Driver>(context: &mut Context<D>) -> Outcome {
    same_as_in_memory(context, Plan { stream: 50_000, datagrams: 1300 })
}

pub(super) fn a_bad_network_is_made_good<D: Driver>(context: &mut Context<D>) -> Outcome {
    let plan = Plan { stream: context.options.budget.pick(MIB / 2, 8 * MIB), datagrams: 0 };
    let (seed, patience) = (context.options.seed, context.options.patience);
    let link = Link::default();
    let expected = lockstep::talk_through_netem(Memory::pair(&link)?, plan, seed, patience)?;
    let found = lockstep::talk_through_netem(context.pair(&link)?, plan, seed, patience)?;
    ensure_eq!(found, expected, "what was said");
    Ok(())
}

pub(super) fn a_session_in_real_time<D: Driver>(context: &mut Context<D>) -> Outcome {
    let stream = context.options.budget.pick(4 * MIB, 64 * MIB);
    let Pair { left, right, guard } = context.pair(&Link::default())?;
    let [mut left, mut right] = runners(context, left, right, Plan { stream, datagrams: 0 })?;
    let (mut before, mut since) = (String::new(), Std::now());
    while !(left.is_stopped() && right.is_stopped()) {
        left.step()?;
        right.step()?;
        let progress = format!("{}; {}", left.app_mut().progress(), right.app_mut().progress());
        if progress == before {
            // What is under way may need this processor to arrive.
            std::thread::yield_now();
        } else {
            (before, since) = (progress, Std::now());
        }
        let patience = context.options.patience;
        ensure!(since.elapsed() < patience, "two sessions got no further for {patience:?}: {before}");
    }
    left.app_mut().verdict()?;
    right.app_mut().verdict()?;
    drop((left, right));
    drop(guard);
    Ok(())
}

/// A leader at the left end and a follower at the right one.
pub(super) fn runners<D: Driver>(
    context: &mut Context<D>,
    left: D,
    right: D,
    plan: Plan,
) -> Outcome<[Runner<D, Talk>; 2]> {
    let identities = [Identity::from_seed(context.rng.bytes32()), Identity::from_seed(context.rng.bytes32())];
    let peer = Peer { addr: right.local_addr(), id: Some(identities[1].peer_id()) };
    let [first, second] = identities;
    let patience = context.options.patience;
    let mut runner = |driver: D, identity, role| {
        let mut config = Config::new(identity, b"conformance");
        config.transport = config.transport.with_handshake_timeout(patience).with_idle_timeout(patience);
        let endpoint = Endpoint::new(config, context.rng.bytes32(), driver.now())
            .map_err(|error| Verdict::Fail(format!("no endpoint: {error}")))?;
        Ok::<_, Verdict>(Runner::new(driver, endpoint, Talk::new(plan, role)))
    };
    let mut left = runner(left, first, Role::Leader)?;
    let right = runner(right, second, Role::Follower)?;
    let now = left.driver().now();
    let dialled = left.endpoint_mut().connect(now, peer, Via::default());
    dialled.map_err(|error| Verdict::Fail(format!("no session: {error}")))?;
    Ok([left, right])
}

/// Has the talk over the driver and over memory, and compares what was said.
fn same_as_in_memory<D: Driver>(context: &mut Context<D>, plan: Plan) -> Outcome {
    let (seed, patience) = (context.options.seed, context.options.patience);
    let link = Link::default();
    let expected = lockstep::talk(Memory::pair(&link)?, plan, seed, patience)?;
    let found = lockstep::talk(context.pair(&link)?, plan, seed, patience)?;
    ensure_eq!(found, expected, "what was said");
    Ok(())
}
