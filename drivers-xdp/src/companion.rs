//! The system's UDP socket on the same port.
//!
//! It keeps the port from others, receives what the filter leaves to the kernel (fragments, other queues, other
//! devices), and sends what cannot go straight to the device, by which the kernel finds neighbours.

use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::socket::{setsockopt, sockopt};
use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSocketState};
use socket2::{Domain, Protocol, Type};
use wraith_drivers::{Family, canonical};
use wraith_proto::{Ecn, RxMeta, TxMeta, Via};

/// Longest datagram that it can receive, and one byte more.
const BUFFER: usize = 65_536;
/// Bytes that may wait in the socket.
const SOCKET_BUFFER: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct Companion {
    io: UdpSocket,
    state: UdpSocketState,
    family: Family,
    local_addr: SocketAddr,
    buffer: Box<[u8]>,
}

/// What became of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sent {
    /// The system took it.
    Taken,
    /// The system will never take it.
    Refused,
    /// It is too long for the system to send in one piece.
    TooLong,
    /// The socket is full.
    Full,
}

/// What one look for a datagram brought.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Found {
    Lent,
    Truncated,
    /// An error that other hosts caused.
    Error,
    Nothing,
}

impl Companion {
    /// Binds the socket; several may have the port if it is `shared` by the queues of one driver.
    pub(crate) fn bind(addr: SocketAddr, shared: bool) -> io::Result<Self> {
        let addr = canonical(addr);
        let socket = socket2::Socket::new(Domain::for_address(addr), Type::DGRAM, Some(Protocol::UDP))?;
        let family = Family::of(addr, || socket.set_only_v6(false).is_ok());
        // What is too much is capped without an error.
        let _ = socket.set_recv_buffer_size(SOCKET_BUFFER);
        let _ = socket.set_send_buffer_size(SOCKET_BUFFER);
        socket.set_reuse_port(shared)?;
        socket.bind(&addr.into())?;
        let io = UdpSocket::from(socket);
        let state = UdpSocketState::new((&io).into())?;
        // One datagram a call, so that nothing is kept here between two.
        setsockopt(&io, sockopt::UdpGroSegment, &false)?;
        setsockopt(&io, sockopt::ReceiveTimestampns, &false)?;
        let local_addr = io.local_addr()?;
        Ok(Self { io, state, family, local_addr, buffer: vec![0; BUFFER].into() })
    }

    pub(crate) fn family(&self) -> Family {
        self.family
    }

    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Lends the next datagram, if there is one.
    ///
    /// # Errors
    /// The socket is unusable.
    pub(crate) fn recv(&mut self, on_datagram: impl FnOnce(&RxMeta, &mut [u8])) -> io::Result<Found> {
        let mut metas = [RecvMeta::default()];
        let mut slots = [IoSliceMut::new(&mut self.buffer)];
        match self.state.recv((&self.io).into(), &mut slots, &mut metas) {
            Ok(0) => return Ok(Found::Nothing),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Found::Nothing),
            Err(error) if is_remote(&error) => return Ok(Found::Error),
            Err(error) => return Err(error),
        }
        let [received] = metas;
        if received.len == BUFFER {
            return Ok(Found::Truncated);
        }
        let meta = RxMeta {
            from: canonical(received.addr),
            to: received.dst_ip.map(|ip| ip.to_canonical()),
            via: Via::default(),
            ecn: Ecn::from_bits(received.ecn.map_or(0, |mark| mark as u8)),
        };
        on_datagram(&meta, &mut self.buffer[..received.len]);
        Ok(Found::Lent)
    }

    pub(crate) fn send(&self, meta: &TxMeta, contents: &[u8]) -> Sent {
        let transmit = Transmit {
            destination: self.family.outgoing(meta.to),
            ecn: EcnCodepoint::from_bits(meta.ecn.bits()),
            contents,
            segment_size: None,
            src_ip: meta.from.map(|ip| self.family.outgoing_ip(ip)),
        };
        // The second try is for an earlier datagram's error, which the first reported.
        for _ in 0..2 {
            match self.state.try_send((&self.io).into(), &transmit) {
                Ok(()) => return Sent::Taken,
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM | libc::EINTR) => return Sent::Full,
                    Some(libc::ECONNREFUSED | libc::ECONNRESET) => {}
                    Some(libc::EMSGSIZE) => return Sent::TooLong,
                    _ => return Sent::Refused,
                },
            }
        }
        Sent::Refused
    }
}

impl AsFd for Companion {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.io.as_fd()
    }
}

/// Whether a receive failed because of what other hosts did, not because the socket is unusable.
fn is_remote(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(
        error.kind(),
        Kind::ConnectionRefused
            | Kind::ConnectionReset
            | Kind::HostUnreachable
            | Kind::NetworkUnreachable
            | Kind::NetworkDown
            | Kind::TimedOut
            | Kind::PermissionDenied
            | Kind::Interrupted
    ) || matches!(
        error.raw_os_error(),
        Some(libc::EPROTO | libc::EHOSTDOWN | libc::ENOPROTOOPT | libc::EMSGSIZE | libc::ENOMEM)
    )
}
