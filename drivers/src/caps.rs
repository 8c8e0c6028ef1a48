//! What a driver can do, and what a call did.

use std::fmt;
use std::net::SocketAddr;

/// Facts about a driver after probing; not wishes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Caps {
    /// How datagrams really travel.
    pub mode: Mode,
    /// What kept the driver from more, if anything did.
    pub limited_by: Option<Limit>,
    /// Largest datagram that the driver sends and receives, in bytes of UDP payload; a path may carry less.
    pub max_datagram: usize,
    /// Datagrams that can be committed before a flush; large ones may use up the memory earlier.
    pub tx_slots: usize,
    /// Datagrams that one system call or descriptor may carry.
    pub tx_segments: usize,
    /// Datagrams that may arrive in one buffer; they are lent one by one all the same.
    pub rx_segments: usize,
    /// ECN marks are sent and received.
    pub ecn: bool,
    /// `RxMeta::to` is filled, and `TxMeta::from` respected.
    pub local_ip: bool,
    /// Datagrams are never fragmented by this host, so that path MTU discovery may rely on losses.
    pub dont_fragment: bool,
}

impl Caps {
    /// Single datagrams of up to `max_datagram` bytes, `tx_slots` at a time, and no extras.
    pub const fn new(mode: Mode, max_datagram: usize, tx_slots: usize) -> Self {
        Self {
            mode,
            limited_by: None,
            max_datagram,
            tx_slots,
            tx_segments: 1,
            rx_segments: 1,
            ecn: false,
            local_ip: false,
            dont_fragment: false,
        }
    }
}

/// How datagrams travel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Mode {
    /// One system call a datagram.
    Syscall,
    /// One system call a batch of equal datagrams.
    SyscallGso,
    /// `io_uring`.
    Uring,
    /// `io_uring` with registered buffers.
    UringFixed,
    /// `io_uring` with zero-copy sends.
    UringZeroCopy,
    /// `AF_XDP`.
    Xdp {
        /// The device reads and writes the shared memory itself.
        zero_copy: bool,
        /// The filter runs in the device driver, not in the generic hook.
        native: bool,
    },
    /// Within the process.
    Memory,
    /// Another driver's own name.
    Other(&'static str),
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            Self::Syscall => "system calls",
            Self::SyscallGso => "system calls with segmentation offload",
            Self::Uring => "io_uring",
            Self::UringFixed => "io_uring with registered buffers",
            Self::UringZeroCopy => "io_uring with zero-copy sends",
            Self::Xdp { zero_copy: true, native: true } => "AF_XDP, zero-copy, native",
            Self::Xdp { zero_copy: true, native: false } => "AF_XDP, zero-copy, generic",
            Self::Xdp { zero_copy: false, native: true } => "AF_XDP, copy, native",
            Self::Xdp { zero_copy: false, native: false } => "AF_XDP, copy, generic",
            Self::Memory => "memory",
            Self::Other(name) => name,
        })
    }
}

/// What held a driver back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Limit {
    /// The caller's options.
    Options,
    /// A missing privilege (EPERM).
    Permission,
    /// A system without the feature (ENOSYS, ENOPROTOOPT).
    System,
    /// A cap on locked or registered memory (ENOMEM).
    Memory,
    /// A network device or path without the feature (EIO, EOPNOTSUPP).
    Device,
    /// Socket buffers smaller than asked for.
    SocketBuffer,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Options => "switched off by an option",
            Self::Permission => "a privilege is missing",
            Self::System => "this system lacks the feature",
            Self::Memory => "the limit on locked memory is too low",
            Self::Device => "the network device refused the feature",
            Self::SocketBuffer => "the system's limit on socket buffers is too low",
        })
    }
}

/// What one call of `Driver::recv` did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RxReport {
    /// Datagrams that were lent.
    pub datagrams: usize,
    /// Datagrams longer than a buffer; they were not lent.
    pub truncated: usize,
    /// The budget ended the call: there may be more.
    pub budget_hit: bool,
}

/// What one call of `Driver::flush` did, and what it left.
///
/// Over the life of a driver, committed = all `sent` + all `dropped` + the last `in_flight`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TxReport {
    /// Datagrams that the network took since the last report.
    pub sent: usize,
    /// Datagrams that can never leave (too long, no route), given up since the last report.
    pub dropped: usize,
    /// Datagrams that are committed and neither sent nor dropped now.
    pub in_flight: usize,
    /// System calls made to send since the last report.
    pub syscalls: usize,
    /// The shortest of the dropped datagrams that were too long for this host to send in one piece.
    pub too_long: Option<TooLong>,
}

/// A datagram that was dropped because this host does not carry it in one piece (`EMSGSIZE`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooLong {
    /// Where it was to go.
    pub to: SocketAddr,
    /// Its bytes.
    pub len: usize,
}

impl TxReport {
    /// Notes one that was dropped for its length; the shortest is kept.
    pub fn note_too_long(&mut self, to: SocketAddr, len: usize) {
        if self.too_long.is_none_or(|noted| len < noted.len) {
            self.too_long = Some(TooLong { to, len });
        }
    }

    /// Takes over what `other` has noted, as [`TxReport::note_too_long`] does.
    pub fn join_too_long(&mut self, other: &Self) {
        if let Some(TooLong { to, len }) = other.too_long {
            self.note_too_long(to, len);
        }
    }
}
