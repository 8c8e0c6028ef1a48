//! The socket: options before and after binding, and what the system granted.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use quinn_udp::UdpSocketState;
use socket2::{Domain, Protocol, SockRef, Type};
use wraith_drivers::{Caps, Family, Limit, Mode, Segments};

use crate::options::Options;

/// Longest UDP payload over IPv4: 65,535 less 20 bytes of IP and 8 of UDP header.
pub(crate) const MAX_V4: usize = 65_507;
/// Longest UDP payload over IPv6, whose length field leaves out its header.
const MAX_V6: usize = 65_527;
/// Smallest receive buffer that holds everything the system may join.
const GRO_BUFFER: usize = 65_535;

#[derive(Debug)]
pub(crate) struct Socket {
    io: UdpSocket,
    family: Family,
    local_addr: SocketAddr,
    tx_segments: usize,
    rx_segments: usize,
    may_fragment: bool,
}

impl Socket {
    pub(crate) fn bind(addr: SocketAddr, options: &Options) -> io::Result<Self> {
        // An IPv6 socket on a mapped address speaks IPv4 alone, and takes only mapped destinations.
        let addr = wraith_drivers::canonical(addr);
        let socket = socket2::Socket::new(Domain::for_address(addr), Type::DGRAM, Some(Protocol::UDP))?;
        let family = Family::of(addr, || socket.set_only_v6(false).is_ok());
        ask_buffers(&socket, options);
        socket.bind(&addr.into())?;
        let io = UdpSocket::from(socket);
        let state = probe(&io)?;
        let gro = options.gro && options.buffer_bytes >= GRO_BUFFER;
        if !gro && state.gro_segments() > 1 {
            use nix::sys::socket::{setsockopt, sockopt};
            setsockopt(&io, sockopt::UdpGroSegment, &false)?;
        }
        Ok(Self {
            family,
            local_addr: io.local_addr()?,
            tx_segments: if options.gso { state.max_gso_segments() } else { 1 },
            rx_segments: if gro { state.gro_segments() } else { 1 },
            may_fragment: state.may_fragment(),
            io,
        })
    }

    pub(crate) fn family(&self) -> Family {
        self.family
    }

    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Bytes that may wait to be received and to be sent, without what Linux adds for its bookkeeping.
    pub(crate) fn buffer_bytes(&self) -> (usize, usize) {
        let socket = SockRef::from(&self.io);
        let usable = |bytes: io::Result<usize>| bytes.unwrap_or(0) / 2;
        (usable(socket.recv_buffer_size()), usable(socket.send_buffer_size()))
    }

    pub(crate) fn caps(&self, options: &Options) -> Caps {
        let protocol = if self.family == Family::V6 { MAX_V6 } else { MAX_V4 };
        let max_datagram = protocol.min(options.slot_bytes).min(options.buffer_bytes);
        let mut caps = Caps::new(Mode::Uring, max_datagram, Segments::BATCHES);
        caps.tx_segments = self.tx_segments;
        caps.rx_segments = self.rx_segments;
        caps.limited_by = self.limited_by(options);
        caps.ecn = true;
        caps.local_ip = true;
        caps.dont_fragment = !self.may_fragment;
        caps
    }

    fn limited_by(&self, options: &Options) -> Option<Limit> {
        let (recv, send) = self.buffer_bytes();
        if !options.gso || !options.gro || options.buffer_bytes < GRO_BUFFER {
            Some(Limit::Options)
        } else if self.tx_segments == 1 || self.rx_segments == 1 {
            Some(Limit::System)
        } else if recv < options.recv_buffer_bytes || send < options.send_buffer_bytes {
            Some(Limit::SocketBuffer)
        } else {
            None
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.io.as_fd()
    }
}

/// Asks for the buffers of `options`; the system caps what is too much without an error.
fn ask_buffers(socket: &socket2::Socket, options: &Options) {
    use nix::sys::socket::{setsockopt, sockopt};
    // CAP_NET_ADMIN passes by the cap. To receive only: what waits to be sent is better off where it can be scheduled.
    if setsockopt(socket, sockopt::RcvBufForce, &options.recv_buffer_bytes).is_err() {
        let _ = socket.set_recv_buffer_size(options.recv_buffer_bytes);
    }
    let _ = socket.set_send_buffer_size(options.send_buffer_bytes);
}

/// Switches on what the socket can do for us, and off what costs and is not wanted.
fn probe(io: &UdpSocket) -> io::Result<UdpSocketState> {
    use nix::sys::socket::{setsockopt, sockopt};
    let state = UdpSocketState::new(io.into())?;
    // Reading the wall clock for every packet of the host is the price of a stamp nobody reads.
    setsockopt(io, sockopt::ReceiveTimestampns, &false)?;
    // A full socket is the ring's business: it waits for room and sends then.
    io.set_nonblocking(false)?;
    Ok(state)
}
