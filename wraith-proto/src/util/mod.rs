//! Fixed-capacity containers: sized once, no allocation afterwards.

mod full;
mod key_table;
mod list;
mod slab;

pub(crate) use full::Full;
pub(crate) use key_table::KeyTable;
pub(crate) use list::{Links, List};
pub(crate) use slab::Slab;
