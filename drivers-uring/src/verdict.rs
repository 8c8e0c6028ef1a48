//! What an error of the socket means for a datagram.

/// What to do after a failed send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// A send before it failed, so this one was not tried.
    Cancelled,
    /// The system has no memory for packets: wait a little.
    NoBuffers,
    /// What was reported by this send is no fault of its own, and it did nothing: try again.
    Earlier,
    /// Too long for the path or the protocol.
    TooLong,
    /// The system or the device refused the form of the send, segmentation for instance.
    Unsupported,
    /// It cannot be sent: no route, no permission, wrong address family.
    Unsendable,
}

impl Verdict {
    /// The meaning of an error number as the result of a send.
    pub(crate) fn of_send(code: i32) -> Self {
        match code {
            libc::ECANCELED => Self::Cancelled,
            libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM | libc::EINTR => Self::NoBuffers,
            // The last one if the thread that submitted the send has ended: no memory of ours is bad.
            libc::ECONNREFUSED | libc::ECONNRESET | libc::EFAULT => Self::Earlier,
            libc::EMSGSIZE => Self::TooLong,
            libc::EIO | libc::EINVAL | libc::EOPNOTSUPP | libc::ENOPROTOOPT => Self::Unsupported,
            _ => Self::Unsendable,
        }
    }
}

/// Whether a receive failed because of what other hosts did, not because the socket is unusable.
pub(crate) fn is_remote(code: i32) -> bool {
    matches!(
        code,
        libc::ECONNREFUSED
            | libc::ECONNRESET
            | libc::EHOSTUNREACH
            | libc::ENETUNREACH
            | libc::ENETDOWN
            | libc::ETIMEDOUT
            | libc::EPERM
            | libc::EACCES
            | libc::EPROTO
            | libc::EHOSTDOWN
            | libc::ENOPROTOOPT
            | libc::EMSGSIZE
            | libc::EINTR
            | libc::EAGAIN
            | libc::ENOMEM
    )
}
