//! One contract, every driver: a suite that proves a [`Driver`] right.
//!
//! The contract is `docs/DRIVERS.md`, in numbered clauses; each [`Case`] proves one of them or two. Whoever writes a
//! driver implements [`Harness`], which makes two ends on one wire, and lets [`suite!`] write the tests:
//!
//! ```
//! use wraith_conformance::{Harness, Link, Pair, Setup};
//! use wraith_drivers::{MemoryDriver, MemoryOptions};
//!
//! struct Mine;
//!
//! impl Harness for Mine {
//!     type Driver = MemoryDriver;
//!     const NAME: &'static str = "mine";
//!
//!     fn pair(link: &Link) -> Result<Pair<MemoryDriver>, Setup> {
//!         let mtu = usize::from(link.mtu);
//!         let options = MemoryOptions { mtu, tx_slots: link.tx_slots, ..MemoryOptions::default() };
//!         let (left, right) = MemoryDriver::pair(&options);
//!         Ok(Pair::new(left, right))
//!     }
//! }
//!
//! wraith_conformance::counting_allocator!();
//! wraith_conformance::suite!(Mine);
//! # fn main() {}
//! ```
//!
//! The traits behind the harness are claims: `suite!(Mine: Park + Pollable)` adds their cases. Other claims stand in
//! the driver's [`Caps`]. A claim that does not hold fails; what is not claimed is reported as
//! [`Verdict::NotClaimed`], and what cannot be tested here as [`Verdict::Unavailable`], never as passed.
//!
//! [`peer`] is a second implementation of the wire protocol, written from `docs/PROTOCOL.md` alone; [`protocol`] has cases
//! for anything that speaks it, in memory or as a process, and [`dht`] those for nodes of the DHT.
//!
//! [`Driver`]: wraith_drivers::Driver
//! [`Caps`]: wraith_drivers::Caps

#![forbid(unsafe_code)]

pub mod broken;
mod case;
mod cases;
mod context;
pub mod dht;
mod harness;
mod lockstep;
mod options;
pub mod peer;
pub mod protocol;
mod report;
mod suite;
mod suite_macro;
mod talk;
mod untested;
#[doc(hidden)]
pub mod vectors;
mod wire;

pub use case::{Case, Claim, Level, Verdict};
pub use cases::cases;
pub use harness::{Harness, Link, Memory, Pair, Setup};
#[cfg(feature = "mio")]
pub use harness::{Mio, MioIpv6};
#[cfg(all(feature = "uring", target_os = "linux"))]
pub use harness::{Uring, UringBusyPoll, UringIpv6, UringOneBuffer, UringPollThread, UringZeroCopy};
#[cfg(all(feature = "xdp", target_os = "linux"))]
pub use harness::{
    Xdp, Xdp3498, Xdp3498Ipv6, Xdp9000, Xdp9000Ipv6, XdpGeneric, XdpGeneric3498, XdpGeneric3498Ipv6,
    XdpGeneric9000, XdpGeneric9000Ipv6, XdpGenericIpv6, XdpIpv6,
};
pub use options::{BadVariable, Budget, Options};
pub use report::Report;
pub use suite::{Suite, run, run_case};
pub use untested::not_tested;

#[doc(hidden)]
pub mod expansion {
    //! What the macros expand to.
    pub use crate::dht::check as check_dht;
    pub use crate::protocol::check as check_protocol;
    pub use crate::suite_macro::{Place, check};
    pub use wraith_sim::alloc::Counting;
}
