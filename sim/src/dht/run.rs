//! A run: nodes join, some turn, values are stored and looked for.

use std::collections::HashMap;
use std::time::Duration;

use wraith_dht_proto::{Kind, Limits, QueryId, RateLimits, Record, value_key};
use wraith_proto::Instant;

use super::net::{Behaviour, DhtNetwork, End, Ended};

/// What [`run`] assumes of the time that a datagram takes, for reports.
pub const LATENCY_MODEL: &str = "10-60 ms each way, mean 30 (second smallest of 4 uniform draws)";

/// What to simulate.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Plan {
    /// Nodes, at least 2.
    pub nodes: u32,
    /// All that is random follows from it.
    pub seed: u64,
    /// Lookups to measure.
    pub lookups: u32,
    /// Share of the nodes that is replaced per hour, 0 to 1. Lookups are spread over an hour then.
    pub churn: f64,
    /// Who does not behave.
    pub adversaries: Adversaries,
    /// Share of the datagrams that get lost, each way, 0 to 1.
    pub loss: f64,
    /// Share of the nodes that have IPv6, 0 to 1. They are a network of their own: a value is looked for by nodes of the
    /// family that stored it.
    pub ipv6: f64,
}

/// Nodes that join as others do and turn before anything is stored.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Adversaries {
    /// Share of silent nodes.
    pub silent: f64,
    /// Share of lying nodes.
    pub lying: f64,
    /// Share of flooding nodes.
    pub flooding: f64,
}

/// What came out.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// Lookups that were made, by honest nodes that have joined and do not keep the value themselves.
    pub lookups: u32,
    /// Lookups that gave the right value.
    pub found: u32,
    /// Steps of the chain of queries to each value.
    pub hops: Vec<u8>,
    /// Time to each value, sorted.
    pub times: Vec<Duration>,
    /// Honest nodes that knew others when values were stored.
    pub joined: u32,
    /// Contacts of an honest node in the mean.
    pub mean_contacts: f64,
    /// Nodes that each value was stored on, in the mean.
    pub mean_copies: f64,
    /// What an honest node takes the network's size for, in the median.
    pub estimated_nodes: u64,
    /// Datagrams that were sent.
    pub datagrams: u64,
    /// Virtual time that passed.
    pub time: Duration,
}

impl Report {
    /// Steps in the mean; 0 without a find.
    pub fn mean_hops(&self) -> f64 {
        mean(self.hops.iter().map(|&hops| f64::from(hops)), self.hops.len())
    }

    /// Share of lookups that gave the right value.
    pub fn success(&self) -> f64 {
        f64::from(self.found) / f64::from(self.lookups.max(1))
    }

    /// Milliseconds in the mean; 0 without a find.
    pub fn mean_ms(&self) -> f64 {
        mean(self.times.iter().map(Duration::as_secs_f64), self.times.len()) * 1e3
    }

    /// Milliseconds that `share` of the finds took at most; 0 without a find.
    pub fn quantile_ms(&self, share: f64) -> f64 {
        let at = (share * self.times.len() as f64).ceil() as usize;
        self.times.get(at.saturating_sub(1)).map_or(0.0, |time| time.as_secs_f64() * 1e3)
    }
}

/// The mean of `count` values; 0 without any.
fn mean(values: impl Iterator<Item = f64>, count: usize) -> f64 {
    // The sum of none is -0.
    values.fold(0.0, |sum, value| sum + value) / count.max(1) as f64
}

/// Simulates `plan`.
pub fn run(plan: &Plan) -> Report {
    // A value on some 25 nodes and one for ten nodes at most makes 2.5 a node.
    let limits = Limits {
        records: 96,
        record_bytes: 36 << 10,
        rate: RateLimits { all: 1_000, per_prefix: 50 },
        ..Limits::default()
    };
    let mut net = DhtNetwork::new(limits, plan.seed);
    net.lose(ppm(plan.loss));
    net.add_ipv6(ppm(plan.ipv6));
    let start = net.now();
    join(&mut net, plan.nodes);
    turn(&mut net, plan);
    let is_joined =
        |&node: &u32| net.behaviour(node) == Behaviour::Honest && net.node(node).contact_count() > 0;
    let joined = (0..net.len()).filter(is_joined).count() as u32;
    let values = store(&mut net, plan);
    let mut report = look(&mut net, plan, &values);
    report.joined = joined;
    describe(&net, &mut report);
    report.time = net.now().saturating_since(start);
    report
}

fn ppm(share: f64) -> u32 {
    (share * 1e6).round() as u32
}

/// Nodes join 200 a second, and have a minute to settle.
fn join(net: &mut DhtNetwork, nodes: u32) {
    for _ in 0..nodes {
        net.add(Duration::ZERO);
        net.run_for(Duration::from_millis(5));
    }
    net.run_for(Duration::from_mins(1));
}

fn turn(net: &mut DhtNetwork, plan: &Plan) {
    let Adversaries { silent, lying, flooding } = plan.adversaries;
    // Not those through which others join.
    let mut turning = (0..plan.nodes).filter(|&node| !net.is_first(node)).collect::<Vec<_>>().into_iter();
    for (share, behaviour) in
        [(silent, Behaviour::Silent), (lying, Behaviour::Lying), (flooding, Behaviour::Flooding)]
    {
        let count = (share * f64::from(plan.nodes)).round() as u32;
        for node in turning.by_ref().take(count as usize) {
            net.turn(node, behaviour);
        }
    }
}

struct Value {
    bytes: Vec<u8>,
    copies: u8,
    /// The family of the node that stored it.
    ipv6: bool,
}

/// Honest nodes store values, one a lookup but not more than one for ten nodes.
fn store(net: &mut DhtNetwork, plan: &Plan) -> Vec<Value> {
    let count = plan.lookups.min(plan.nodes / 10).max(1);
    let mut values = Vec::new();
    let mut waiting = HashMap::new();
    for _ in 0..count {
        let mut bytes = vec![0; 256];
        net.rng().fill(&mut bytes);
        let node = honest(net);
        if let Ok(id) = net.call(node, |dht, now| dht.put(&Record::Value(&bytes), None, now)) {
            waiting.insert((node, id), values.len());
            values.push(Value { bytes, copies: 0, ipv6: net.is_ipv6(node) });
        }
        net.run_for(Duration::from_millis(20));
    }
    net.run_for(Duration::from_secs(20));
    for End { node, query, ended, .. } in net.take_ended() {
        if let (Some(&at), Ended::Stored(copies)) = (waiting.get(&(node, query)), ended) {
            values[at].copies = copies;
        }
    }
    values
}

/// Honest nodes look for values; others go and come meanwhile.
fn look(net: &mut DhtNetwork, plan: &Plan, values: &[Value]) -> Report {
    let mut report = Report {
        lookups: 0,
        found: 0,
        hops: Vec::new(),
        times: Vec::new(),
        joined: 0,
        mean_contacts: 0.0,
        mean_copies: values.iter().map(|value| f64::from(value.copies)).sum::<f64>()
            / values.len().max(1) as f64,
        estimated_nodes: 0,
        datagrams: 0,
        time: Duration::ZERO,
    };
    let mut waiting: HashMap<(u32, QueryId), (usize, Instant)> = HashMap::new();
    let churning = plan.churn > 0.0;
    let step =
        if churning { Duration::from_hours(1) / plan.lookups.max(1) } else { Duration::from_millis(20) };
    let replaced = plan.churn * f64::from(plan.nodes) / f64::from(plan.lookups.max(1));
    let mut due = 0.0;
    for _ in 0..plan.lookups {
        due += replaced;
        while due >= 1.0 {
            let gone = honest(net);
            // Through the first of a family the others join. Who looks for something stays until it has it.
            if !net.is_first(gone) && !waiting.keys().any(|&(node, _)| node == gone) {
                net.turn(gone, Behaviour::Silent);
                net.add(Duration::ZERO);
            }
            due -= 1.0;
        }
        let at = net.rng().below(values.len() as u64) as usize;
        let key = value_key(&values[at].bytes);
        let node = honest(net);
        if net.is_ipv6(node) == values[at].ipv6
            && net.node(node).contact_count() > 0
            && !net.node(node).holds(&key, Kind::Value, net.now())
            && let Ok(id) = net.call(node, |dht, now| dht.get(key, Kind::Value, now))
        {
            report.lookups += 1;
            waiting.insert((node, id), (at, net.now()));
        }
        advance(net, step, &mut waiting, values, &mut report);
    }
    advance(net, Duration::from_mins(1), &mut waiting, values, &mut report);
    report.times.sort_unstable();
    report
}

/// Lets time pass, and takes note of what has ended.
fn advance(
    net: &mut DhtNetwork,
    time: Duration,
    waiting: &mut HashMap<(u32, QueryId), (usize, Instant)>,
    values: &[Value],
    report: &mut Report,
) {
    net.run_for(time);
    for End { node, query, at: end, ended } in net.take_ended() {
        let Some((at, asked)) = waiting.remove(&(node, query)) else { continue };
        if let Ended::Found { value, hops } = ended
            && value == values[at].bytes
        {
            report.found += 1;
            report.hops.push(hops);
            report.times.push(end.saturating_since(asked));
        }
    }
}

fn describe(net: &DhtNetwork, report: &mut Report) {
    let honest: Vec<u32> = (0..net.len()).filter(|&at| net.behaviour(at) == Behaviour::Honest).collect();
    let contacts: usize = honest.iter().map(|&at| net.node(at).contact_count()).sum();
    report.mean_contacts = contacts as f64 / honest.len().max(1) as f64;
    let mut sizes: Vec<u64> = honest.iter().filter_map(|&at| net.node(at).network_size()).collect();
    sizes.sort_unstable();
    report.estimated_nodes = sizes.get(sizes.len() / 2).copied().unwrap_or(0);
    report.datagrams = net.datagrams();
}

/// An honest node at random.
fn honest(net: &mut DhtNetwork) -> u32 {
    loop {
        let len = u64::from(net.len());
        let at = net.rng().below(len) as u32;
        if net.behaviour(at) == Behaviour::Honest {
            return at;
        }
    }
}
