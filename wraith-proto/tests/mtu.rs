//! Paths of every width, and paths whose width changes, between two endpoints in virtual time.

#[path = "mtu/black_hole.rs"]
mod black_hole;
#[path = "common/bulk.rs"]
mod bulk;
#[path = "mtu/datagrams.rs"]
mod datagrams;
#[path = "mtu/refused.rs"]
mod refused;
#[path = "mtu/search.rs"]
mod search;
#[path = "mtu/support.rs"]
mod support;
