//! The node under test, as its wire sees it.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use crate::case::Verdict;
use crate::protocol::Door;

/// A node of the DHT that runs.
pub trait Subject {
    /// Who it is.
    fn peer_id(&self) -> [u8; 32];

    /// The address at which it sees one of the bench's.
    fn address(&self, door: Door) -> SocketAddr;

    /// Hands it a datagram from one of the bench's addresses.
    ///
    /// # Errors
    /// What the network says.
    fn send(&mut self, from: Door, datagram: &[u8]) -> io::Result<()>;

    /// The next datagram that it sends, and to which address; time goes by until then, at most `patience`.
    ///
    /// # Errors
    /// What the network says.
    fn receive(&mut self, patience: Duration) -> io::Result<Option<(Door, Vec<u8>)>>;

    /// Returns when it has dealt with all datagrams so far, and its answers can be received without waiting.
    ///
    /// # Errors
    /// What the network says, or that it does not answer at all.
    fn settle(&mut self) -> io::Result<()>;

    /// Time since an unknown beginning.
    fn now(&self) -> Duration;

    /// Whether its time is virtual: an hour takes no longer than a second.
    fn is_exact(&self) -> bool {
        false
    }
}

/// Where the bench's two addresses lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Doors {
    /// Both public, or both where the subject is.
    Alike,
    /// The front one in a private network, the back one public.
    PrivateFront,
}

/// Where subjects come from.
pub trait Target {
    /// The name for reports.
    fn name(&self) -> String;

    /// A subject for one case; everything random of it may follow from `seed`.
    ///
    /// # Errors
    /// [`Verdict::NotClaimed`] for addresses that there are not, [`Verdict::Unavailable`] if there is none at all.
    fn subject(&self, doors: Doors, seed: u64) -> Result<Box<dyn Subject>, Verdict>;
}
