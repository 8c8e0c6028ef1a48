//! Why `AF_XDP` cannot be used, and what to do about it.

use std::fmt;
use std::io;

use wraith_drivers::Limit;

/// What the system refused, and why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// What was tried.
    pub step: Step,
    /// What it was answered.
    pub reason: Reason,
}

/// What the driver needs from the system, in the order in which it is tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Step {
    /// The network device, found by its name, with an address and in operation.
    Interface,
    /// The kernel's tables of routes and neighbours, read through a socket of their own.
    Tables,
    /// An `AF_XDP` socket (`CAP_NET_RAW`).
    Socket,
    /// Memory shared with the kernel.
    Memory,
    /// The filter, checked and loaded (`CAP_BPF`).
    Load,
    /// The filter on the device (`CAP_NET_ADMIN`).
    Attach,
    /// The rings of the socket, bound to a queue of the device.
    Bind,
    /// The socket in the filter's table of queues.
    Steer,
}

/// Why the system refuses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Reason {
    /// EPERM, EACCES: a privilege is missing.
    Forbidden,
    /// ENOSYS, EAFNOSUPPORT: a system built without it.
    Absent,
    /// ENOMEM, ENOBUFS: the limit on locked memory is too low.
    Memory,
    /// EOPNOTSUPP: the device cannot do it.
    Unsupported,
    /// EBUSY, EEXIST: another program has the queue or the device.
    Busy,
    /// ENODEV, ENXIO: there is no such device or queue.
    Missing,
    /// ENETDOWN: the device is down.
    Down,
    /// EINVAL: the system is too old, or a setting does not suit the device.
    Invalid,
    /// Anything else: the error number.
    Other(i32),
}

impl Refusal {
    pub(crate) fn new(step: Step, error: &io::Error) -> Self {
        Self { step, reason: Reason::of(error.raw_os_error().unwrap_or(0)) }
    }

    /// What to do about it, in a clause.
    pub fn remedy(&self) -> &'static str {
        match self.reason {
            Reason::Forbidden => {
                "run as root, or give the program its privileges: \
                 setcap cap_net_raw,cap_net_admin,cap_bpf+ep PROGRAM"
            }
            Reason::Absent => "use a kernel built with CONFIG_XDP_SOCKETS and CONFIG_BPF_SYSCALL",
            Reason::Memory => {
                "raise the limit on locked memory (ulimit -l, LimitMEMLOCK), or lift it for the program: \
                 setcap cap_net_raw,cap_net_admin,cap_bpf,cap_ipc_lock+ep PROGRAM"
            }
            Reason::Unsupported => "allow copies and the generic mode, or choose another device",
            Reason::Busy => {
                "end the program that holds the queue or the device's filter: ip link show lists it"
            }
            Reason::Missing => "name a device and a queue that exist: ip link, ethtool -l",
            Reason::Down => "bring the device up: ip link set DEVICE up",
            Reason::Invalid => "use Linux 6.6 or later, and an MTU from 1,248 on that the device can carry",
            Reason::Other(_) => "use another driver",
        }
    }

    /// The same as a driver's capabilities name it.
    pub fn limit(&self) -> Limit {
        match self.reason {
            Reason::Forbidden => Limit::Permission,
            Reason::Memory => Limit::Memory,
            Reason::Unsupported | Reason::Busy | Reason::Missing | Reason::Down => Limit::Device,
            Reason::Absent | Reason::Invalid | Reason::Other(_) => Limit::System,
        }
    }
}

impl Reason {
    fn of(code: i32) -> Self {
        match code {
            libc::EPERM | libc::EACCES => Self::Forbidden,
            libc::ENOSYS | libc::EAFNOSUPPORT => Self::Absent,
            libc::ENOMEM | libc::ENOBUFS => Self::Memory,
            libc::EOPNOTSUPP => Self::Unsupported,
            libc::EBUSY | libc::EEXIST => Self::Busy,
            libc::ENODEV | libc::ENXIO => Self::Missing,
            libc::ENETDOWN => Self::Down,
            libc::EINVAL => Self::Invalid,
            _ => Self::Other(code),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.step {
            Step::Interface => "the network device",
            Step::Tables => "the tables of routes and neighbours",
            Step::Socket => "an AF_XDP socket",
            Step::Memory => "memory shared with the kernel",
            Step::Load => "loading the filter",
            Step::Attach => "attaching the filter to the device",
            Step::Bind => "binding to a queue of the device",
            Step::Steer => "steering packets to the socket",
        };
        match self.reason {
            Reason::Forbidden => write!(f, "{what}: not permitted (EPERM)"),
            Reason::Absent => write!(f, "{what}: not there (ENOSYS)"),
            Reason::Memory => write!(f, "{what}: too little memory may be locked (ENOMEM)"),
            Reason::Unsupported => write!(f, "{what}: not supported (EOPNOTSUPP)"),
            Reason::Busy => write!(f, "{what}: somebody else has it (EBUSY)"),
            Reason::Missing => write!(f, "{what}: no such device or queue (ENODEV)"),
            Reason::Down => write!(f, "{what}: the device is down (ENETDOWN)"),
            Reason::Invalid => write!(f, "{what}: not accepted (EINVAL)"),
            Reason::Other(code) => write!(f, "{what}: {}", io::Error::from_raw_os_error(code)),
        }
    }
}

impl std::error::Error for Refusal {}

/// Why a driver could not be bound.
#[derive(Debug)]
#[non_exhaustive]
pub enum BindError {
    /// The system refused the UDP socket or its address, as it would any driver.
    Socket(io::Error),
    /// The system refused `AF_XDP`.
    Refused(Refusal),
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(error) => error.fmt(f),
            Self::Refused(refusal) => write!(f, "{refusal}; {}", refusal.remedy()),
        }
    }
}

impl std::error::Error for BindError {}

impl From<io::Error> for BindError {
    fn from(error: io::Error) -> Self {
        Self::Socket(error)
    }
}

impl From<Refusal> for BindError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<BindError> for io::Error {
    fn from(error: BindError) -> Self {
        match error {
            BindError::Socket(error) => error,
            BindError::Refused(refusal) => Self::new(io::ErrorKind::Unsupported, refusal),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_number_has_its_reason_and_remedy() {
        for (code, reason, limit) in [
            (libc::EPERM, Reason::Forbidden, Limit::Permission),
            (libc::EAFNOSUPPORT, Reason::Absent, Limit::System),
            (libc::ENOMEM, Reason::Memory, Limit::Memory),
            (libc::EOPNOTSUPP, Reason::Unsupported, Limit::Device),
            (libc::EBUSY, Reason::Busy, Limit::Device),
            (libc::ENODEV, Reason::Missing, Limit::Device),
            (libc::ENETDOWN, Reason::Down, Limit::Device),
            (libc::EINVAL, Reason::Invalid, Limit::System),
            (libc::EIO, Reason::Other(libc::EIO), Limit::System),
        ] {
            let refusal = Refusal::new(Step::Bind, &io::Error::from_raw_os_error(code));
            assert_eq!(refusal, Refusal { step: Step::Bind, reason });
            assert_eq!(refusal.limit(), limit);
        }
        let refusal = Refusal { step: Step::Socket, reason: Reason::Forbidden };
        assert_eq!(
            BindError::Refused(refusal).to_string(),
            "an AF_XDP socket: not permitted (EPERM); run as root, or give the program its privileges: \
             setcap cap_net_raw,cap_net_admin,cap_bpf+ep PROGRAM"
        );
    }
}
