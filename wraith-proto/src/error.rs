//! Why something was refused: one small enum per operation, and reasons for drops and closes.

use core::fmt;

macro_rules! errors {
    ($($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident $(($field:ty))? $({ $key:ident: $kind:ty })? => $text:literal,)* })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[non_exhaustive]
        pub enum $name { $($(#[$doc])* $variant $(($field))? $({
            /// The limit that holds.
            $key: $kind
        })?,)* }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$variant { .. } => $text,)* })
            }
        }

        impl core::error::Error for $name {}
    )*};
}

errors! {
    /// Why a stream refused a write.
    WriteError {
        /// No room for another chunk; `Event::Writable` follows.
        Blocked => "the stream's queue is full",
        /// There is no such stream, or not for sending.
        UnknownStream => "no such sending stream",
        /// The stream was finished, reset or attached before.
        Finished => "the stream takes no more data",
        /// The peer asked to stop, with this code.
        Stopped(u32) => "the peer stopped the stream",
        /// The session is closed or not yet authorised.
        Closed => "the session is closed",
    }
    /// Why a call on a receiving stream was refused.
    ReadError {
        /// There is no such stream, or not for receiving.
        UnknownStream => "no such receiving stream",
        /// The peer reset the stream with this code.
        Reset(u32) => "the peer reset the stream",
        /// The session is closed.
        Closed => "the session is closed",
    }
    /// Why an unreliable datagram was refused.
    DatagramError {
        /// The queue is full; `Event::DatagramsUnblocked` follows.
        Blocked => "the datagram queue is full",
        /// It does not fit in one packet of the current path.
        TooLarge { max: usize } => "the datagram is larger than the path carries",
        /// The session is closed or not yet authorised.
        Closed => "the session is closed",
    }
    /// Why no stream was opened.
    OpenError {
        /// The peer allows no more streams now.
        PeerLimit => "the peer allows no more streams",
        /// `Limits::streams` is reached.
        LocalLimit => "the local stream limit is reached",
        /// The session is closed or not yet authorised.
        Closed => "the session is closed",
    }
    /// Why no session was started.
    ConnectError {
        /// `Limits::sessions` or `Limits::handshakes` is reached.
        TableFull => "no free session or handshake slot",
        /// The address cannot be a peer: port 0, unspecified, multicast or broadcast.
        NoRoute => "the address cannot be a peer",
    }
    /// Why a session call was refused.
    SessionError {
        /// The session does not wait for authorisation.
        NotPending => "the session does not wait for authorisation",
        /// The peer has given no further connection id to go by on another path; its next packets may (`PROTO §13.9`).
        NoConnectionId => "the peer has given no fresh connection id yet",
        /// The session is closed.
        Closed => "the session is closed",
    }
    /// Why a configuration was refused.
    ConfigError {
        /// `Shard::index` is not below `Shard::count`, or the count is zero.
        ShardOutOfRange => "the shard index is not below the shard count",
        /// A limit that must be positive is zero.
        LimitZero => "a limit is zero",
        /// A limit is over 2^24.
        LimitTooLarge => "a limit is too large",
        /// `min_datagram` is under 1,200 bytes or over `max_datagram`.
        DatagramTooSmall => "datagram sizes must be 1200 <= min <= max",
        /// No protocol, more than 8, or one that is empty or over 32 bytes.
        BadProtocols => "give 1 to 8 application protocols of 1 to 32 bytes",
        /// The crypto provider lacks the mandatory suite.
        NoSuite => "the crypto provider lacks XChaCha20-Poly1305",
        /// `Transport::suites` names a suite twice, or one that the crypto provider lacks.
        BadSuites => "a suite is listed twice, or the crypto provider lacks it",
    }
}

/// Why a received datagram had no effect. Each reason has a counter in `Stats`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum DropReason {
    /// Not a WRAITH datagram: too short, unknown form, bad lengths or values.
    Malformed,
    /// No session or handshake has its connection id, or the session is over.
    UnknownSession,
    /// Its packet number was received before.
    Replayed,
    /// Its packet number lies behind the replay window.
    TooOld,
    /// Authentication failed.
    BadTag,
    /// Over the admission budget, or an address that is not proven.
    RateLimited,
    /// No free session or handshake slot.
    TableFull,
    /// Its connection id belongs to another shard.
    WrongShard,
    /// A version that is not spoken here.
    UnknownVersion,
    /// A handshake message that authenticates but breaks a rule: identity, parameters, pin or policy.
    Refused,
    /// Of the form that belongs to no session (`PROTO §2.2`), as a sealed datagram is: the caller takes those that it wants
    /// before the endpoint sees them.
    Sealed,
}

impl DropReason {
    /// Number of reasons.
    pub const COUNT: usize = 11;

    /// Every reason, in the order of the counters.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Malformed,
        Self::UnknownSession,
        Self::Replayed,
        Self::TooOld,
        Self::BadTag,
        Self::RateLimited,
        Self::TableFull,
        Self::WrongShard,
        Self::UnknownVersion,
        Self::Refused,
        Self::Sealed,
    ];
}

/// Why a session ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CloseReason {
    /// This end closed it.
    Local,
    /// The peer closed it with this code.
    Peer(u32),
    /// Nothing was received for the idle time.
    IdleTimeout,
    /// The handshake did not finish in time.
    HandshakeTimeout,
    /// An identity, version, suite, application protocol or policy did not fit.
    Refused,
    /// The keys reached their limit and no fresh ones came.
    KeysExhausted,
    /// The peer broke the protocol.
    Violation,
    /// The path has come to carry less than the 1,200 bytes that every path has to (`PROTO §8.15`).
    PathTooSmall,
    /// Both ends dialled each other; the other session stays (`PROTO §4.9`).
    Superseded,
    /// The peer fell silent and was found again in another session: `Session::successor` (`PROTO §9.21`).
    Replaced,
}
