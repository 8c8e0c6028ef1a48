//! What the commands of the DHT take.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use wraith_dht_proto::Id;
use wraith_proto::PeerId;
use wraith_sim::dht::Adversaries;

use super::sim;
use super::verbs::parse_key;
use crate::address::{Target, parse_node};
use crate::args::parse_peer;
use crate::discovery;
use crate::duration;

#[derive(Args, Debug)]
pub(crate) struct Dht {
    #[command(subcommand)]
    pub(crate) command: DhtCommand,
}

#[derive(Subcommand, Debug)]
pub(crate) enum DhtCommand {
    /// Run a node: answer others, keep records, remember contacts
    Node(DhtNode),
    /// Store a value for others to get, and print its key
    Put(DhtPut),
    /// Write the value under a key, or of a peer, to stdout
    Get(DhtGet),
    /// Say that this identity, at this address, has a content
    Announce(DhtAnnounce),
    /// Print who has a content, or where a peer is
    Find(DhtFind),
    /// Let nodes join, store and look up in virtual time, and say how far and how long it was
    Sim(DhtSim),
}

/// How to get into the network.
#[derive(Args, Debug)]
pub(crate) struct Join {
    /// A node to join through; may be given several times
    #[arg(long, value_name = "PEER@ADDR", value_parser = parse_node)]
    pub(crate) bootstrap: Vec<Target>,
    /// Contacts of a node
    #[arg(
        long,
        value_name = "FILE",
        help = "Contacts of a node [default: $XDG_STATE_HOME/wraith/dht, or under ~/.local/state]"
    )]
    pub(crate) state: Option<PathBuf>,
}

/// How to ask.
#[derive(Args, Debug)]
pub(crate) struct Ask {
    #[command(flatten)]
    pub(crate) join: Join,
    #[command(flatten)]
    pub(crate) discovery: discovery::Options,
    /// When to give up
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = duration::parse)]
    pub(crate) timeout: Duration,
}

#[derive(Args, Debug)]
pub(crate) struct DhtNode {
    #[command(flatten)]
    pub(crate) join: Join,
    /// How often to write the contacts
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration::parse)]
    pub(crate) save_every: Duration,
}

#[derive(Args, Debug)]
pub(crate) struct DhtPut {
    /// The value, at most 1000 bytes, 900 with --sign; without it, stdin
    #[arg(value_name = "VALUE")]
    pub(crate) value: Option<String>,
    /// Sign it as this identity, which may replace it later
    #[arg(long)]
    pub(crate) sign: bool,
    /// Which of the identity's records; a node's addresses are in record 1
    #[arg(long, value_name = "N", default_value_t = 0, requires = "sign")]
    pub(crate) salt: u64,
    /// Sequence number, of which the highest wins [default: seconds since 1970]
    #[arg(long, value_name = "N", requires = "sign")]
    pub(crate) seq: Option<u64>,
    /// Replace the record of this sequence number only
    #[arg(long, value_name = "SEQ", requires = "sign")]
    pub(crate) expected: Option<u64>,
    /// Stay as a node and store it again every hour, until Ctrl-C
    #[arg(long)]
    pub(crate) keep: bool,
    #[command(flatten)]
    pub(crate) ask: Ask,
}

#[derive(Args, Debug)]
pub(crate) struct DhtGet {
    /// The key, as `put` prints it
    #[arg(value_name = "KEY", value_parser = parse_key, required_unless_present = "peer")]
    pub(crate) key: Option<Id>,
    /// The record that this peer signed
    #[arg(long, value_name = "PEER", value_parser = parse_peer)]
    pub(crate) peer: Option<PeerId>,
    /// Which of the peer's records [default: 0]
    #[arg(long, value_name = "N")]
    pub(crate) salt: Option<u64>,
    #[command(flatten)]
    pub(crate) ask: Ask,
}

#[derive(Args, Debug)]
pub(crate) struct DhtAnnounce {
    /// Hash of the content, 64 hexadecimal digits
    #[arg(value_name = "HASH", value_parser = parse_key)]
    pub(crate) hash: Id,
    /// Stay as a node and announce it again every hour, until Ctrl-C
    #[arg(long)]
    pub(crate) keep: bool,
    #[command(flatten)]
    pub(crate) ask: Ask,
}

#[derive(Args, Debug)]
pub(crate) struct DhtFind {
    /// Hash of the content, 64 hexadecimal digits
    #[arg(value_name = "HASH", value_parser = parse_key, required_unless_present = "peer")]
    pub(crate) hash: Option<Id>,
    /// Where this peer is
    #[arg(long, value_name = "PEER", value_parser = parse_peer, conflicts_with = "hash")]
    pub(crate) peer: Option<PeerId>,
    #[command(flatten)]
    pub(crate) ask: Ask,
}

#[derive(Args, Debug)]
pub(crate) struct DhtSim {
    /// Nodes of the network
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    pub(crate) nodes: u32,
    /// What all chance follows from: the same seed gives the same run
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Lookups to measure
    #[arg(long, value_name = "L", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) lookups: u32,
    /// Share of the nodes that is replaced within the hour of the lookups, from 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = sim::parse_share)]
    pub(crate) churn: f64,
    /// Share of nodes that misbehave, like 0.2 (a third each), or silent=0.1,lying=0.05,flooding=0.05
    #[arg(long, value_name = "SHARES", default_value = "0", value_parser = sim::parse_adversaries)]
    pub(crate) adversaries: Adversaries,
    /// Share of the datagrams that get lost, each way, from 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = sim::parse_share)]
    pub(crate) loss: f64,
    /// Share of the nodes that have IPv6, and are a network of their own, from 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = sim::parse_share)]
    pub(crate) ipv6: f64,
    /// Add a line with the result to this table
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Draw how times and hops are distributed
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
}
