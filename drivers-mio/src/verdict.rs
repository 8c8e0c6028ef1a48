//! What an error of the socket means for a datagram.

use std::io;

/// What to do after a failed send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// The socket's buffer is full: wait until it is writable.
    Full,
    /// The system has no memory for packets: wait a little.
    NoBuffers,
    /// An earlier datagram's error was reported by this call, which did nothing: try again.
    Earlier,
    /// Too long for the path or the protocol.
    TooLong,
    /// The system or the device refused the form of the call, segmentation for instance.
    Unsupported,
    /// It cannot be sent: no route, no permission, wrong address family.
    Unsendable,
}

impl Verdict {
    /// The meaning of `error` as the result of a send.
    pub(crate) fn of_send(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::WouldBlock => return Self::Full,
            io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset => return Self::Earlier,
            _ => {}
        }
        if quinn_udp::is_msg_size_err(error) {
            return Self::TooLong;
        }
        match error.raw_os_error() {
            Some(code) if codes::NO_BUFFERS.contains(&code) => Self::NoBuffers,
            Some(code) if codes::UNSUPPORTED.contains(&code) => Self::Unsupported,
            _ => Self::Unsendable,
        }
    }
}

/// Whether a receive failed because of what other hosts did, not because the socket is unusable.
pub(crate) fn is_remote(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::NetworkDown
            | io::ErrorKind::TimedOut
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::Interrupted
    )
}

#[cfg(unix)]
mod codes {
    pub(super) const NO_BUFFERS: [i32; 2] = [libc::ENOBUFS, libc::ENOMEM];
    pub(super) const UNSUPPORTED: [i32; 4] = [libc::EIO, libc::EINVAL, libc::EOPNOTSUPP, libc::ENOPROTOOPT];
}

#[cfg(windows)]
mod codes {
    /// WSAENOBUFS.
    pub(super) const NO_BUFFERS: [i32; 1] = [10055];
    /// WSAEINVAL, WSAENOPROTOOPT, WSAEOPNOTSUPP.
    pub(super) const UNSUPPORTED: [i32; 3] = [10022, 10042, 10045];
}
