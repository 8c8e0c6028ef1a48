//! Where the two ends of a case come from.

mod memory;
#[cfg(feature = "mio")]
mod mio;
#[cfg(all(feature = "uring", target_os = "linux"))]
mod uring;
#[cfg(all(feature = "xdp", target_os = "linux"))]
mod xdp;

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;

use wraith_drivers::Driver;

pub use memory::Memory;
#[cfg(feature = "mio")]
pub use mio::{Mio, MioIpv6};
#[cfg(all(feature = "uring", target_os = "linux"))]
pub use uring::{Uring, UringBusyPoll, UringIpv6, UringOneBuffer, UringPollThread, UringZeroCopy};
#[cfg(all(feature = "xdp", target_os = "linux"))]
pub use xdp::{
    Xdp, Xdp3498, Xdp3498Ipv6, Xdp9000, Xdp9000Ipv6, XdpGeneric, XdpGeneric3498, XdpGeneric3498Ipv6,
    XdpGeneric9000, XdpGeneric9000Ipv6, XdpGenericIpv6, XdpIpv6,
};

/// Makes pairs of drivers: all that the suite has to know of one.
pub trait Harness: 'static {
    /// The driver under test.
    type Driver: Driver;

    /// Its name, as reports print it.
    const NAME: &'static str;

    /// Two ends on one wire, for one case.
    ///
    /// The wire carries datagrams both ways between the two local addresses, in order. It loses none as long as at
    /// most [`Link::WINDOW`] wait at an end; it may hold the sender back before that. Nobody else sends on it.
    ///
    /// # Errors
    /// [`Setup::Unavailable`] if this machine or this user cannot have such a wire, [`Setup::Failed`] if the driver
    /// is at fault.
    fn pair(link: &Link) -> Result<Pair<Self::Driver>, Setup>;

    /// Longest payload that the wire of `link` carries, if it is shorter than the driver's `max_datagram`.
    fn path_limit(link: &Link) -> Option<usize> {
        let _ = link;
        None
    }
}

/// A harness as a value, so that one kind of driver needs its cases once, however many harnesses make it.
pub(crate) trait Workshop<D>: Send + Sync {
    /// [`Harness::NAME`].
    fn name(&self) -> &'static str;
    /// [`Harness::pair`].
    fn pair(&self, link: &Link) -> Result<Pair<D>, Setup>;
    /// [`Harness::path_limit`].
    fn path_limit(&self, link: &Link) -> Option<usize>;
}

/// The workshop of a harness.
pub(crate) struct Of<H>(pub(crate) PhantomData<fn() -> H>);

impl<H: Harness> Workshop<H::Driver> for Of<H> {
    fn name(&self) -> &'static str {
        H::NAME
    }

    fn pair(&self, link: &Link) -> Result<Pair<H::Driver>, Setup> {
        H::pair(link)
    }

    fn path_limit(&self, link: &Link) -> Option<usize> {
        H::path_limit(link)
    }
}

/// Two ends and what keeps their wire up.
pub struct Pair<D> {
    /// One end.
    pub left: D,
    /// The other.
    pub right: D,
    /// Takes the wire down when it is dropped, after both ends: a namespace, a device, files; `Box::new(())` if there
    /// is nothing to take down.
    pub guard: Box<dyn Any>,
}

/// What a case needs of the wire and of the two ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Link {
    /// Longest datagram that must cross, in bytes of UDP payload; over IPv6 no longer than [`Harness::path_limit`].
    pub mtu: u16,
    /// IPv6 addresses, not IPv4.
    pub ipv6: bool,
    /// Datagrams of `mtu` bytes that can be committed before a flush: the driver's smallest setting that has so many.
    pub tx_slots: usize,
    /// Longest datagram that the right end is to receive, where the driver can be set up so that longer ones reach it
    /// and are truncated; others pass over it.
    pub right_slot: Option<usize>,
}

/// Why there is no pair.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Setup {
    /// This machine or user lacks what is needed: a privilege, a device, a recent kernel.
    Unavailable(String),
    /// The driver did not do what it should.
    Failed(String),
}

impl Link {
    /// Datagrams of `mtu` bytes that may wait at an end without loss.
    pub const WINDOW: usize = 64;
}

impl Default for Link {
    /// 1,472-byte datagrams over IPv4, 64 slots.
    fn default() -> Self {
        Self { mtu: 1472, ipv6: false, tx_slots: 64, right_slot: None }
    }
}

impl<D> Pair<D> {
    /// A pair whose wire needs no taking down.
    pub fn new(left: D, right: D) -> Self {
        Self { left, right, guard: Box::new(()) }
    }
}

impl<D: fmt::Debug> fmt::Debug for Pair<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pair").field("left", &self.left).field("right", &self.right).finish_non_exhaustive()
    }
}

impl From<std::io::Error> for Setup {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}
