//! What can go wrong, for each verb.

use std::fmt;

use crate::wait::Cut;

/// Why there is no node.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// No bootstrap node that was named has an IPv4 address.
    NoBootstrap,
    /// No socket.
    Io(std::io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoBootstrap => f.write_str("no bootstrap node has an IPv4 address"),
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for StartError {}

/// An error enum of variants without fields, whose text is its documentation.
macro_rules! errors {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$doc])* $variant,)*
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Self::$variant => $text,)*
                })
            }
        }

        impl std::error::Error for $name {}

        impl From<Cut> for $name {
            fn from(cut: Cut) -> Self {
                match cut {
                    Cut::Deadline => Self::Deadline,
                    Cut::Stopped => Self::Stopped,
                }
            }
        }
    };
}

errors! {
    /// Why an address was not published.
    PublishError {
        /// No node was found to store it on.
        NoNodes = "no node of the BitTorrent DHT answers",
        /// Nodes were found, and none of them has confirmed.
        NotStored = "no node of the BitTorrent DHT stores it",
        /// The time was over first.
        Deadline = "the BitTorrent DHT has not answered in time",
        /// Nobody wanted it any more.
        Stopped = "stopped",
    }
}

errors! {
    /// Why nothing can be said about where something is.
    FindError {
        /// No node answered.
        NoNodes = "no node of the BitTorrent DHT answers",
        /// The time was over, and nobody had named an address.
        Deadline = "the BitTorrent DHT has not answered in time",
        /// Nobody wanted it any more.
        Stopped = "stopped",
    }
}

errors! {
    /// Why a record was not stored.
    PutError {
        /// The value has more than [`MAX_VALUE`](crate::MAX_VALUE) bytes.
        TooLong = "the value is too long for a record on the BitTorrent DHT",
        /// The sequence number is above [`MAX_SEQ`](crate::MAX_SEQ).
        SeqTooHigh = "the sequence number is too high for the BitTorrent DHT",
        /// Most nodes have a record with a higher sequence number.
        Outdated = "the BitTorrent DHT has a record with a higher sequence number",
        /// Most nodes have another record than the one that was to be replaced.
        Conflict = "the BitTorrent DHT has another record than the one to be replaced",
        /// No node was found to store it on.
        NoNodes = "no node of the BitTorrent DHT answers",
        /// Nodes were found, and none of them has confirmed.
        NotStored = "no node of the BitTorrent DHT stores it",
        /// The time was over first.
        Deadline = "the BitTorrent DHT has not answered in time",
        /// Nobody wanted it any more.
        Stopped = "stopped",
    }
}

errors! {
    /// Why there is no record.
    GetError {
        /// No node has one.
        NotFound = "the BitTorrent DHT has no record under this key and salt",
        /// What nodes have was not made by the peer that it names.
        Forged = "what the BitTorrent DHT has under this key is not a record of the peer that it names",
        /// No node answered.
        NoNodes = "no node of the BitTorrent DHT answers",
        /// The time was over, and nobody had sent one.
        Deadline = "the BitTorrent DHT has not answered in time",
        /// Nobody wanted it any more.
        Stopped = "stopped",
    }
}
