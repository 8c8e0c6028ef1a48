//! The socket: options before and after binding, and what the system granted.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
#[cfg(unix)]
use std::os::fd::{AsFd, BorrowedFd};
#[cfg(windows)]
use std::os::windows::io::{AsSocket, BorrowedSocket};

use mio::net::UdpSocket;
use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use socket2::{Domain, Protocol, SockRef, Type};
use wraith_drivers::{Caps, Family, Limit, Mode, Segments};

use crate::options::Options;

/// Longest UDP payload over IPv4: 65,535 less 20 bytes of IP and 8 of UDP header.
pub(crate) const MAX_V4: usize = 65_507;
/// Longest UDP payload over IPv6, whose length field leaves out its header.
const MAX_V6: usize = 65_527;
/// Smallest receive buffer that holds everything the system may join.
const GRO_SLOT: usize = 65_535;

#[derive(Debug)]
pub(crate) struct Socket {
    io: UdpSocket,
    state: UdpSocketState,
    family: Family,
    local_addr: SocketAddr,
    gro: bool,
}

impl Socket {
    pub(crate) fn bind(addr: SocketAddr, options: &Options) -> io::Result<Self> {
        // An IPv6 socket on a mapped address speaks IPv4 alone, and takes only mapped destinations.
        let addr = wraith_drivers::canonical(addr);
        let socket = socket2::Socket::new(Domain::for_address(addr), Type::DGRAM, Some(Protocol::UDP))?;
        let family = Family::of(addr, || socket.set_only_v6(false).is_ok());
        ask(options.recv_buffer_bytes, |bytes| set_recv_buffer(&socket, bytes));
        ask(options.send_buffer_bytes, |bytes| socket.set_send_buffer_size(bytes));
        if options.reuse_port {
            share_port(&socket)?;
        }
        socket.bind(&addr.into())?;
        let io = UdpSocket::from_std(socket.into());
        let local_addr = io.local_addr()?;
        let gro = options.gro
            && options.slot_bytes >= GRO_SLOT
            && cfg!(any(target_os = "linux", target_os = "android"));
        let state = probe(&io, gro)?;
        Ok(Self { io, state, family, local_addr, gro })
    }

    /// Finds out again what the socket can do.
    pub(crate) fn probe(&mut self) -> io::Result<()> {
        self.state = probe(&self.io, self.gro)?;
        Ok(())
    }

    /// What mio registers.
    pub(crate) fn source(&mut self) -> &mut UdpSocket {
        &mut self.io
    }

    pub(crate) fn send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        // Through mio, which on Windows asks for the next readiness when a call would block.
        self.io.try_io(|| self.state.try_send((&self.io).into(), transmit))
    }

    pub(crate) fn recv(&self, slots: &mut [IoSliceMut<'_>], metas: &mut [RecvMeta]) -> io::Result<usize> {
        self.io.try_io(|| self.state.recv((&self.io).into(), slots, metas))
    }

    pub(crate) fn family(&self) -> Family {
        self.family
    }

    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    pub(crate) fn buffer_bytes(&self) -> (usize, usize) {
        let socket = SockRef::from(&self.io);
        let share = if cfg!(any(target_os = "linux", target_os = "android")) { 2 } else { 1 };
        let usable = |bytes: io::Result<usize>| bytes.unwrap_or(0) / share;
        (usable(socket.recv_buffer_size()), usable(socket.send_buffer_size()))
    }

    pub(crate) fn caps(&self, options: &Options) -> Caps {
        let protocol = if self.family == Family::V6 { MAX_V6 } else { MAX_V4 };
        let max_datagram = protocol.min(options.arena_bytes).min(options.slot_bytes);
        let mut caps = Caps::new(Mode::Syscall, max_datagram, Segments::BATCHES);
        if options.gso && self.state.max_gso_segments() > 1 {
            caps.mode = Mode::SyscallGso;
            caps.tx_segments = self.state.max_gso_segments();
        }
        if self.gro {
            caps.rx_segments = self.state.gro_segments();
        }
        caps.limited_by = self.limited_by(options, &caps);
        caps.ecn = cfg!(any(target_os = "linux", target_os = "android", windows))
            || (cfg!(target_vendor = "apple") && self.family != Family::Dual);
        caps.local_ip =
            cfg!(any(target_os = "linux", target_os = "android", target_vendor = "apple", windows));
        caps.dont_fragment = !self.state.may_fragment();
        caps
    }

    /// Lets the system report ICMP errors, as some systems always do.
    #[cfg(all(test, target_os = "linux"))]
    pub(crate) fn report_refusals(&self) -> io::Result<()> {
        self.state.enable_transport_errors((&self.io).into())
    }

    fn limited_by(&self, options: &Options, caps: &Caps) -> Option<Limit> {
        let (recv, send) = self.buffer_bytes();
        if !options.gso || !options.gro || options.slot_bytes < GRO_SLOT {
            Some(Limit::Options)
        } else if caps.tx_segments == 1 || caps.rx_segments == 1 {
            Some(Limit::System)
        } else if recv < options.recv_buffer_bytes || send < options.send_buffer_bytes {
            Some(Limit::SocketBuffer)
        } else {
            None
        }
    }
}

#[cfg(unix)]
impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.io.as_fd()
    }
}

#[cfg(windows)]
impl AsSocket for Socket {
    fn as_socket(&self) -> BorrowedSocket<'_> {
        self.io.as_socket()
    }
}

/// Switches on what the socket can do for us, and off what costs and is not wanted.
fn probe(io: &UdpSocket, gro: bool) -> io::Result<UdpSocketState> {
    let state = UdpSocketState::new(io.into())?;
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        use nix::sys::socket::{setsockopt, sockopt};
        if !gro && state.gro_segments() > 1 {
            setsockopt(io, sockopt::UdpGroSegment, &false)?;
        }
        // Reading the wall clock for every packet of the host is the price of a stamp nobody reads.
        setsockopt(io, sockopt::ReceiveTimestampns, &false)?;
    }
    // Elsewhere it is off unless asked for, or does not exist.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let _ = gro;
    Ok(state)
}

/// Asks for a buffer of `bytes`, and for less where the system refuses instead of capping.
fn ask(mut bytes: usize, set: impl Fn(usize) -> io::Result<()>) {
    while bytes > 0 && set(bytes).is_err() {
        bytes /= 2;
    }
}

/// Asks for a receive buffer of `bytes`. On Linux `CAP_NET_ADMIN` passes by the system's cap.
fn set_recv_buffer(socket: &socket2::Socket, bytes: usize) -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        use nix::sys::socket::{setsockopt, sockopt};
        if setsockopt(socket, sockopt::RcvBufForce, &bytes).is_ok() {
            return Ok(());
        }
    }
    socket.set_recv_buffer_size(bytes)
}

/// Lets other sockets of this user bind the same port.
#[cfg(unix)]
fn share_port(socket: &socket2::Socket) -> io::Result<()> {
    socket.set_reuse_port(true)
}

#[cfg(not(unix))]
fn share_port(_: &socket2::Socket) -> io::Result<()> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "this system cannot share a port between sockets: bind one",
    ))
}
