//! Any node at a UDP address as a subject.

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use super::subject::{Doors, Subject, Target};
use crate::case::Verdict;
use crate::peer::dht::Header;
use crate::peer::peer_id_text;
use crate::protocol::Door;

/// The largest datagram.
const LARGEST: usize = 65_535;

/// How long one of the two sockets is waited at before the other is looked at.
const GLANCE: Duration = Duration::from_millis(2);

/// How long an answer to a probe may take, and how often it is asked for.
const PROBE: Duration = Duration::from_millis(500);
const PROBES: u64 = 10;

/// A node that runs somewhere.
#[derive(Clone, Copy, Debug)]
pub struct Live {
    /// Who it is.
    pub peer: [u8; 32],
    /// Where it is.
    pub addr: SocketAddr,
}

impl Target for Live {
    fn name(&self) -> String {
        format!("{}@{}", peer_id_text(&self.peer), self.addr)
    }

    fn subject(&self, doors: Doors, seed: u64) -> Result<Box<dyn Subject>, Verdict> {
        if doors != Doors::Alike {
            return Err(Verdict::NotClaimed("two networks are not to be had here".to_owned()));
        }
        let node = Node::new(self, seed);
        Ok(Box::new(node.map_err(|error| Verdict::Unavailable(format!("no socket: {error}")))?))
    }
}

/// A node, seen through two sockets.
#[derive(Debug)]
struct Node {
    peer: [u8; 32],
    doors: [UdpSocket; 2],
    addresses: [SocketAddr; 2],
    waiting: VecDeque<(Door, Vec<u8>)>,
    started: Instant,
    /// The transaction of the next probe.
    probe: u64,
}

impl Node {
    fn new(target: &Live, seed: u64) -> io::Result<Self> {
        let any = if target.addr.is_ipv4() {
            SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))
        } else {
            (Ipv6Addr::UNSPECIFIED, 0).into()
        };
        let open = || {
            let socket = UdpSocket::bind(any)?;
            // So the socket knows the address that its datagrams come from.
            socket.connect(target.addr)?;
            socket.set_read_timeout(Some(GLANCE))?;
            io::Result::Ok(socket)
        };
        let doors = [open()?, open()?];
        let addresses = [doors[0].local_addr()?, doors[1].local_addr()?];
        Ok(Self {
            peer: target.peer,
            doors,
            addresses,
            waiting: VecDeque::new(),
            started: Instant::now(),
            probe: seed,
        })
    }

    /// Waits for a datagram at each door for a moment.
    fn gather(&mut self) -> io::Result<()> {
        for (door, socket) in [Door::Front, Door::Back].into_iter().zip(&self.doors) {
            let mut buffer = vec![0; LARGEST];
            match socket.recv(&mut buffer) {
                Ok(len) => self.waiting.push_back((door, buffer[..len].to_vec())),
                // Nothing has come, or nobody was there for an earlier one.
                Err(error) if is_quiet(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Takes the answer to a probe from what has come.
    fn take(&mut self, transaction: [u8; 8]) -> bool {
        let is_its = |(_, datagram): &(Door, Vec<u8>)| matches!(Header::read(datagram), Ok((Header::Token { transaction: of, .. }, _)) if of == transaction);
        let at = self.waiting.iter().position(is_its);
        at.and_then(|at| self.waiting.remove(at)).is_some()
    }
}

fn is_quiet(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted | ConnectionRefused)
}

impl Subject for Node {
    fn peer_id(&self) -> [u8; 32] {
        self.peer
    }

    fn address(&self, door: Door) -> SocketAddr {
        self.addresses[usize::from(door == Door::Back)]
    }

    fn send(&mut self, from: Door, datagram: &[u8]) -> io::Result<()> {
        match self.doors[usize::from(from == Door::Back)].send(datagram) {
            Err(error) if !is_quiet(&error) => Err(error),
            _ => Ok(()),
        }
    }

    fn receive(&mut self, patience: Duration) -> io::Result<Option<(Door, Vec<u8>)>> {
        let end = Instant::now() + patience;
        while self.waiting.is_empty() {
            self.gather()?;
            if Instant::now() >= end {
                break;
            }
        }
        Ok(self.waiting.pop_front())
    }

    /// A request without a token that is too short is answered by a token, and at once (`PROTO §14.6`): so is this one,
    /// behind all that was sent before.
    fn settle(&mut self) -> io::Result<()> {
        for _ in 0..PROBES {
            self.probe = self.probe.wrapping_add(1);
            let transaction = self.probe.to_be_bytes();
            self.send(Door::Front, &Header::Request { transaction, token: [0; 16] }.to_bytes())?;
            let end = Instant::now() + PROBE;
            while Instant::now() < end {
                self.gather()?;
                if self.take(transaction) {
                    // What went to the other door before has arrived there.
                    return self.gather();
                }
            }
        }
        Err(io::Error::new(io::ErrorKind::TimedOut, "§14.6: a short request is not answered by a token"))
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }
}
