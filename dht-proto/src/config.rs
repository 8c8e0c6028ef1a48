//! What a node may use.

use crate::dht::fixed_memory;
use crate::query::Query;
use crate::rate::RateLimits;
use crate::store::Store;
use crate::table::Table;

/// Sizes of what a node sets aside when it is made, and what it answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Contacts, spares among them, that the buckets of both families share.
    pub contacts: u16,
    /// Lookups at one time, at least 1, and one more for the node itself.
    pub queries: u8,
    /// Records that are kept for others and for this node.
    pub records: u32,
    /// Bytes of these records, with up to 200 of form in each.
    pub record_bytes: u32,
    /// Requests that are answered, of who has an address token.
    pub rate: RateLimits,
    /// Requests that are opened though their sender has no address token; others get one instead of an answer. Each
    /// costs up to two X25519, and any sender's address may be forged.
    pub strangers: RateLimits,
}

impl Limits {
    /// Bytes that a node takes without the records that it keeps.
    pub const fn memory(&self) -> usize {
        let queries = (self.queries as usize + 1) * size_of::<Query>();
        fixed_memory() + Table::memory(self.contacts) + queries
    }

    /// Bytes for records.
    pub const fn record_memory(&self) -> usize {
        Store::memory(self.records, self.record_bytes)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            contacts: 512,
            queries: 2,
            records: 10_000,
            record_bytes: 3 << 20,
            rate: RateLimits { all: 1_000, per_prefix: 50 },
            strangers: RateLimits { all: 200, per_prefix: 20 },
        }
    }
}
