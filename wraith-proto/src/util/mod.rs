//! Fixed-capacity containers: sized once, no allocation afterwards.

mod full;
mod key_table;
mod list;
mod range_pool;
mod slab;
mod wheel;

pub(crate) use full::Full;
pub(crate) use key_table::KeyTable;
pub(crate) use list::{Links, List};
pub(crate) use range_pool::{RangePool, RangeSet};
pub(crate) use slab::Slab;
pub(crate) use wheel::Wheel;
