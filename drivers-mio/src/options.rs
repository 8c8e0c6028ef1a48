//! What the caller may choose.

/// Settings of a [`MioDriver`](crate::MioDriver).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Socket receive buffer to ask for, in bytes. On Linux only `CAP_NET_ADMIN` gets more than
    /// `net.core.rmem_max`. Default: 4 MiB.
    pub recv_buffer_bytes: usize,
    /// Socket send buffer to ask for, in bytes. Default: 4 MiB.
    pub send_buffer_bytes: usize,
    /// Send equal datagrams in one system call, where the system can. Default: true.
    pub gso: bool,
    /// Let the system join received datagrams, where it can and slots hold 65,535 bytes. Default: true.
    pub gro: bool,
    /// Memory for datagrams between two flushes, in bytes: bounds what can be committed. Default: 64 KiB.
    pub arena_bytes: usize,
    /// Size of each of the four receive buffers, in bytes: longer datagrams are counted as truncated and
    /// not lent. Default: 64 KiB.
    pub slot_bytes: usize,
    /// Share the port with other sockets of the same user that ask for it, too: one for each shard, each on a thread of
    /// its own. The system spreads peers over them by their addresses. Not on Windows. Default: false.
    pub reuse_port: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            recv_buffer_bytes: 4 << 20,
            send_buffer_bytes: 4 << 20,
            gso: true,
            gro: true,
            arena_bytes: 64 << 10,
            slot_bytes: 64 << 10,
            reuse_port: false,
        }
    }
}
