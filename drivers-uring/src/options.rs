//! What the caller may choose.

use std::time::Duration;

/// Settings of a [`UringDriver`](crate::UringDriver).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Socket receive buffer to ask for, in bytes. Only `CAP_NET_ADMIN` gets more than `net.core.rmem_max`. Default:
    /// 4 MiB.
    pub recv_buffer_bytes: usize,
    /// Socket send buffer to ask for, in bytes. Default: 4 MiB.
    pub send_buffer_bytes: usize,
    /// Send equal datagrams in one operation, where the system can. Default: true.
    pub gso: bool,
    /// Let the system join received datagrams, where it can and buffers hold 65,535 bytes. Default: true.
    pub gro: bool,
    /// Memory for datagrams between two flushes, in bytes: bounds what can be committed. Default: 64 KiB.
    pub slot_bytes: usize,
    /// Slots of that size: they hold what was flushed until the network has taken it. Default: 4. Zero-copy sends hold
    /// theirs longer.
    pub slots: usize,
    /// Payload of a receive buffer, in bytes: longer datagrams are counted as truncated and not lent. Default:
    /// 64 KiB.
    pub buffer_bytes: usize,
    /// Receive buffers, rounded up to a power of two. Default: 8.
    pub buffers: u16,
    /// Let the network device read what is sent from the slots, without a copy. Default: never.
    pub zero_copy: ZeroCopy,
    /// A thread of the kernel submits, so that a flush takes no system call, and goes to sleep after so much time
    /// without work. It takes a whole core. Receiving takes system calls as ever. Default: none.
    pub poll_thread: Option<Duration>,
    /// A park polls the network device for so long before it sleeps. Default: not at all.
    pub busy_poll: Option<Duration>,
}

/// When to send without a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ZeroCopy {
    /// Every send copies.
    #[default]
    Never,
    /// Until the system reports that it has copied all the same, as loopback and virtual devices do, or refuses.
    UntilCopied,
    /// Until the system refuses, even if it copies: for measurements.
    Always,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            recv_buffer_bytes: 4 << 20,
            send_buffer_bytes: 4 << 20,
            gso: true,
            gro: true,
            slot_bytes: 64 << 10,
            slots: 4,
            buffer_bytes: 64 << 10,
            buffers: 8,
            zero_copy: ZeroCopy::Never,
            poll_thread: None,
            busy_poll: None,
        }
    }
}
