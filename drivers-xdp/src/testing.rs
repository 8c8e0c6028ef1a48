//! What several tests need.

use std::io;

use crate::veth::{Options, Veth};

#[global_allocator]
static COUNTING: wraith_sim::alloc::Counting = wraith_sim::alloc::Counting;

/// Two hosts, or `None` if this user may not make them, which is said aloud.
pub(crate) fn hosts(options: &Options) -> Option<Veth> {
    match Veth::new(options) {
        Ok(veth) => Some(veth),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            wraith_conformance::not_tested(format_args!("hosts of its own take root: {error}"));
            None
        }
        Err(error) => panic!("no hosts: {error}"),
    }
}
