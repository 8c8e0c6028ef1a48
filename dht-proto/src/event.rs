//! What became of lookups.

use crate::message::{StoreResult, nodes};
use crate::node::NodeRef;
use crate::query::{Goal, Query};
use crate::record::{Kind, Record};
use crate::store::record;

/// A lookup. Its slot is used again, so an old id names nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct QueryId {
    pub(crate) slot: u8,
    pub(crate) generation: u32,
}

/// News.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The node has asked for its own place, and knows so many others; 0 if nobody answered, and then it tries again.
    Joined(usize),
    /// A lookup has ended.
    Ended(QueryId, Outcome<'a>),
}

/// How a lookup ended.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Outcome<'a> {
    /// These are the nodes nearest to the target.
    Nodes(Closest<'a>),
    /// The record: of signed ones the one with the highest sequence number.
    Found {
        /// It is genuine.
        record: Record<'a>,
        /// Steps of the chain of queries that led to it.
        hops: u8,
    },
    /// Nodes that claim to provide the content.
    Providers {
        /// They.
        providers: Providers<'a>,
        /// Steps of the chain of queries that led to the first.
        hops: u8,
    },
    /// Nobody has the record.
    NotFound,
    /// The record was stored.
    Stored {
        /// Nodes that keep it; 0 is a failure.
        nodes: u8,
        /// What others refused it for. None of them proves that it has such a record.
        conflict: Option<Conflict>,
    },
}

/// Nodes refused a signed record for the sequence number of one that they have, or have not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Conflict {
    /// How many did.
    pub nodes: u8,
    /// The highest number that one of them named; 0 also stands for no record.
    pub seq: u64,
}

/// Nodes that answered, nearest first.
#[derive(Clone, Copy, Debug)]
pub struct Closest<'a>(&'a Query);

impl<'a> Closest<'a> {
    /// The nodes.
    pub fn iter(&self) -> impl Iterator<Item = NodeRef> + use<'a> {
        self.0.list.answered().take(crate::table::K).map(|entry| entry.node.into())
    }
}

/// Nodes that claim to provide a content. Only the content itself proves it.
#[derive(Clone, Copy, Debug)]
pub struct Providers<'a>(&'a Query);

impl<'a> Providers<'a> {
    /// The nodes.
    pub fn iter(&self) -> impl Iterator<Item = NodeRef> + use<'a> {
        nodes(&self.0.record, self.0.providers).map(NodeRef::from)
    }
}

/// Why a lookup did not begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum StartError {
    /// All slots are taken; see [`Limits::queries`](crate::Limits::queries).
    Busy,
    /// This node does not keep the record itself.
    Refused(StoreResult),
}

impl core::fmt::Display for StartError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Busy => "too many lookups at once",
            Self::Refused(StoreResult::NotGenuine) => "the record is too long or its signature is wrong",
            Self::Refused(StoreResult::Full) => "there is no room for more records",
            Self::Refused(_) => "there is a newer record",
        })
    }
}

impl core::error::Error for StartError {}

impl Query {
    pub(crate) fn outcome(&self) -> Outcome<'_> {
        match self.goal {
            Goal::Nodes => Outcome::Nodes(Closest(self)),
            Goal::Put(_) => Outcome::Stored { nodes: self.stored, conflict: self.conflict },
            Goal::Get(Kind::Providers) if self.providers > 0 => {
                Outcome::Providers { providers: Providers(self), hops: self.hops }
            }
            Goal::Get(_) => record(&self.record)
                .map_or(Outcome::NotFound, |record| Outcome::Found { record, hops: self.hops }),
        }
    }
}
