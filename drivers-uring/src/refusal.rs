//! Why `io_uring` cannot be used, and what to do about it.

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

/// What a ring needs from the system, in the order in which it is tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Step {
    /// A ring of one thread that runs completions when it is asked to (Linux 6.1).
    Setup,
    /// Files of the ring: it knows those of a driver by number.
    Files,
    /// A ring of receive buffers (Linux 5.19).
    Buffers,
    /// Polling of the network device (Linux 6.9), if it was asked for.
    BusyPoll,
    /// Operations: sends, receives that go on by themselves (Linux 6.0), reads, writes, cancellations.
    Operations,
    /// Something that passes through the ring: a datagram, for a driver.
    Trial,
}

/// Why the system refuses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Reason {
    /// EPERM, EACCES: a setting of the system or a filter of the container forbids it.
    Forbidden,
    /// ENOSYS: the system has no `io_uring`, or a filter hides it.
    Absent,
    /// ENOMEM: the limit on locked memory is too low.
    Memory,
    /// EOPNOTSUPP: the system has it, and not for this.
    Unsupported,
    /// EINVAL, or an operation that is not known: the system is too old.
    TooOld,
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
                "set the sysctl kernel.io_uring_disabled to 0 and let the container's seccomp filter pass io_uring"
            }
            Reason::Absent => {
                "use a kernel built with CONFIG_IO_URING, and let the container's seccomp filter pass io_uring"
            }
            Reason::Memory => "raise the limit on locked memory: ulimit -l, LimitMEMLOCK",
            Reason::Unsupported | Reason::TooOld => "use Linux 6.1 or later",
            Reason::Other(_) => "use another driver",
        }
    }

    /// The same as a driver's capabilities name it.
    pub fn limit(&self) -> Limit {
        match self.reason {
            Reason::Forbidden => Limit::Permission,
            Reason::Memory => Limit::Memory,
            Reason::Absent | Reason::Unsupported | Reason::TooOld | Reason::Other(_) => Limit::System,
        }
    }
}

impl Reason {
    fn of(code: i32) -> Self {
        match code {
            libc::EPERM | libc::EACCES => Self::Forbidden,
            libc::ENOSYS => Self::Absent,
            libc::ENOMEM => Self::Memory,
            libc::EOPNOTSUPP => Self::Unsupported,
            libc::EINVAL => Self::TooOld,
            _ => Self::Other(code),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.step {
            Step::Setup => "io_uring",
            Step::Files => "io_uring's registered files",
            Step::Buffers => "io_uring's ring of buffers",
            Step::BusyPoll => "io_uring's busy polling",
            Step::Operations => "io_uring's operations",
            Step::Trial => "a trial of io_uring",
        };
        match self.reason {
            Reason::Forbidden => write!(f, "{what}: not permitted (EPERM)"),
            Reason::Absent => write!(f, "{what}: not there (ENOSYS)"),
            Reason::Memory => write!(f, "{what}: too little memory may be locked (ENOMEM)"),
            Reason::Unsupported => write!(f, "{what}: not supported (EOPNOTSUPP)"),
            Reason::TooOld => write!(f, "{what}: this kernel is too old (EINVAL)"),
            Reason::Other(code) => write!(f, "{what}: {}", io::Error::from_raw_os_error(code)),
        }
    }
}

impl std::error::Error for Refusal {}

/// Why a driver could not be bound.
#[derive(Debug)]
#[non_exhaustive]
pub enum BindError {
    /// The system refused the socket or its address, as it would any driver.
    Socket(io::Error),
    /// The system refused `io_uring`.
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
            (libc::ENOSYS, Reason::Absent, Limit::System),
            (libc::ENOMEM, Reason::Memory, Limit::Memory),
            (libc::EOPNOTSUPP, Reason::Unsupported, Limit::System),
            (libc::EINVAL, Reason::TooOld, Limit::System),
            (libc::ENXIO, Reason::Other(libc::ENXIO), Limit::System),
        ] {
            let refusal = Refusal::new(Step::Setup, &io::Error::from_raw_os_error(code));
            assert_eq!(refusal, Refusal { step: Step::Setup, reason });
            assert_eq!(refusal.limit(), limit);
        }
        let refusal = Refusal { step: Step::Buffers, reason: Reason::Memory };
        let text = BindError::Refused(refusal).to_string();
        assert_eq!(
            text,
            "io_uring's ring of buffers: too little memory may be locked (ENOMEM); \
             raise the limit on locked memory: ulimit -l, LimitMEMLOCK"
        );
    }
}
