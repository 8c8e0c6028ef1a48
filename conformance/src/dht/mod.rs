//! DHT cases: whether a node keeps to `PROTO §14` with hostile datagrams among genuine ones, seen from the wire.
//!
//! A [`Case`] speaks with a [`Subject`] by means of [`peer::dht`](crate::peer::dht), from two addresses. Subjects come from
//! a [`Target`]: [`Core`] is this repository's node in virtual time, [`Live`] any node at a UDP address.
//! [`specimens`] are nodes that are wrong on purpose; [`dht_suite!`](crate::dht_suite) writes a test for each case.

mod bench;
mod broken;
mod cases;
mod live;
mod memory;
mod run;
mod subject;

pub use broken::{Specimen, specimens};
pub use cases::cases;
pub use live::Live;
pub use memory::Core;
#[doc(hidden)]
pub use run::check;
pub use run::{Case, Report, run_case, verdicts};
pub use subject::{Doors, Subject, Target};
