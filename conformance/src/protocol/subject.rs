//! The implementation under test, as its wire and its operator see it.

use std::io;
use std::time::Duration;

use crate::case::Verdict;

/// One of the two addresses that the bench speaks from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Door {
    /// Where sessions are.
    Front,
    /// Another address.
    Back,
}

/// An implementation of the protocol that runs.
///
/// It speaks one application protocol, by which it sends the bytes of each DATAGRAM frame back in a DATAGRAM frame, and
/// takes all bytes of streams.
pub trait Subject {
    /// Who it is, if that is known before it says so.
    fn peer_id(&self) -> Option<[u8; 32]>;

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
    /// What the network says.
    fn settle(&mut self) -> io::Result<()>;

    /// Time since an unknown beginning.
    fn now(&self) -> Duration;

    /// Whether its time is virtual: nothing takes longer than it should.
    fn is_exact(&self) -> bool {
        false
    }

    /// How many datagrams it has dropped, if it tells (`PROTO §1.3`).
    fn dropped(&self) -> Option<u64> {
        None
    }

    /// Makes it dial this peer at [`Door::Front`].
    ///
    /// # Errors
    /// [`Verdict::NotClaimed`] if it only answers.
    fn dial(&mut self, peer: &[u8; 32]) -> Result<(), Verdict> {
        let _ = peer;
        Err(Verdict::NotClaimed("it cannot be made to dial".to_owned()))
    }

    /// Makes its application do something in the latest session.
    ///
    /// # Errors
    /// [`Verdict::NotClaimed`] if nobody can make it.
    fn wish(&mut self, wish: Wish) -> Result<(), Verdict> {
        Err(Verdict::NotClaimed(format!("its application cannot be made to {wish:?}")))
    }
}

/// What a subject's application can be made to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wish {
    /// Open a unidirectional stream and send this many bytes and the end on it.
    SendStream(usize),
    /// Take no bytes of streams from now on.
    RefuseBytes,
    /// Take bytes of streams again, and grant this stream credit up to this offset.
    GrantBytes(u32, u64),
    /// Ask the other end to stop sending on this stream, with this code.
    StopStream(u32, u32),
    /// Admit the other end.
    Authorize,
    /// Close the session with this code.
    Close(u32),
}

/// The subject's side of the handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// It answers.
    Answers,
    /// It dials.
    Dials,
}

/// How a subject is set up for a case.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Variant {
    /// As it is.
    Usual,
    /// It asks its application before it takes application data (`PROTO §6.7`).
    Asks,
    /// It admits nobody (`PROTO §4.17`).
    AdmitsNobody,
    /// It begins an exchange for fresh keys after fewer than 500 packets (`PROTO §5.14`).
    RekeysOften,
}

/// Where subjects come from.
pub trait Target {
    /// The name for reports.
    fn name(&self) -> String;

    /// A subject for one case; everything random of it may follow from `seed`.
    ///
    /// # Errors
    /// [`Verdict::NotClaimed`] for a side or variant that there is not, [`Verdict::Unavailable`] if there is none at all.
    fn subject(&self, side: Side, variant: Variant, seed: u64) -> Result<Box<dyn Subject>, Verdict>;

    /// The application protocol that the subject speaks.
    fn protocol(&self) -> Vec<u8>;
}
