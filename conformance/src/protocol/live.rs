//! A process as a subject, over UDP.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TrySendError};
use std::thread;
use std::time::{Duration, Instant};

use wraith_proto::wire::{ConnectionId, HandshakeKind, InitRepr, VersionsPacket};

use super::subject::{Door, Side, Subject, Target, Variant};
use crate::case::Verdict;
use crate::peer::peer_id_text;

/// The largest datagram.
const LARGEST: usize = 65_535;

/// So many datagrams are held at most. Whoever sends more at once loses some, as in a socket that is full.
const HELD: usize = 4096;

/// How long a reader waits before it looks whether it is still wanted.
const GLANCE: Duration = Duration::from_millis(50);

/// How long an answer to a probe may take, and how often it is asked for.
const PROBE: Duration = Duration::from_millis(500);
const PROBES: u32 = 10;

/// How long one that only dials, and answers no probe, is left alone instead.
const QUIET: Duration = Duration::from_millis(100);

/// Implementations that run as processes.
#[derive(Clone, Debug)]
pub struct Live {
    /// One that answers: who and where it is.
    pub answers: Option<([u8; 32], SocketAddr)>,
    /// A command that dials; `{}` stands for the peer that it is to dial, as `PEER@ADDR`.
    pub dials: Option<Vec<String>>,
    /// The application protocol that they speak.
    pub protocol: Vec<u8>,
}

impl Target for Live {
    fn name(&self) -> String {
        match (&self.answers, &self.dials) {
            (Some((peer, addr)), _) => format!("{}@{addr}", peer_id_text(peer)),
            (None, Some(command)) => command.join(" "),
            (None, None) => "nobody".to_owned(),
        }
    }

    fn subject(&self, side: Side, variant: Variant, seed: u64) -> Result<Box<dyn Subject>, Verdict> {
        let missing = match side {
            Side::Answers => self.answers.is_none().then_some("no process that answers was named"),
            Side::Dials => self.dials.is_none().then_some("no command that dials was given"),
        };
        if let Some(missing) = missing {
            return Err(Verdict::NotClaimed(missing.to_owned()));
        }
        if variant != Variant::Usual {
            return Err(Verdict::NotClaimed("a process is taken as it is".to_owned()));
        }
        let subject = Process::new(self, side, seed);
        Ok(Box::new(subject.map_err(|error| Verdict::Unavailable(format!("no socket: {error}")))?))
    }

    fn protocol(&self) -> Vec<u8> {
        self.protocol.clone()
    }
}

/// A process, seen through two sockets.
#[derive(Debug)]
struct Process {
    peer: Option<[u8; 32]>,
    addr: Option<SocketAddr>,
    command: Option<Vec<String>>,
    child: Option<Child>,
    doors: [UdpSocket; 2],
    arrivals: Receiver<(Door, SocketAddr, Vec<u8>)>,
    waiting: VecDeque<(Door, Vec<u8>)>,
    stop: Arc<AtomicBool>,
    started: Instant,
    /// Numbers of the probes: before the first, and of the latest.
    probes: (u64, u64),
    /// Whether a probe that is waited for was answered.
    answered: Option<bool>,
    /// It does not answer strangers.
    mute: bool,
}

impl Process {
    fn new(target: &Live, side: Side, seed: u64) -> io::Result<Self> {
        let answers = target.answers.filter(|_| side == Side::Answers);
        let any: IpAddr = match answers {
            Some((_, SocketAddr::V6(_))) => Ipv6Addr::UNSPECIFIED.into(),
            Some((_, SocketAddr::V4(_))) => Ipv4Addr::UNSPECIFIED.into(),
            None => Ipv4Addr::LOCALHOST.into(),
        };
        let (arrival, arrivals) = mpsc::sync_channel(HELD);
        let stop = Arc::new(AtomicBool::new(false));
        let open = |door| {
            let socket = UdpSocket::bind((any, 0))?;
            listen(&socket, door, &arrival, &stop)?;
            io::Result::Ok(socket)
        };
        Ok(Self {
            peer: answers.map(|(peer, _)| peer),
            addr: answers.map(|(_, addr)| addr),
            command: target.dials.clone().filter(|_| side == Side::Dials),
            child: None,
            doors: [open(Door::Front)?, open(Door::Back)?],
            arrivals,
            waiting: VecDeque::new(),
            stop,
            started: Instant::now(),
            probes: (seed, seed),
            answered: None,
            mute: false,
        })
    }

    /// Takes what has arrived, and waits for more until `until` if that is nothing.
    fn gather(&mut self, until: Instant) -> io::Result<()> {
        while self.waiting.len() < HELD {
            let left = until.saturating_duration_since(Instant::now());
            let next = if self.waiting.is_empty() && self.answered != Some(true) {
                self.arrivals.recv_timeout(left)
            } else {
                self.arrivals.try_recv().map_err(|_| RecvTimeoutError::Timeout)
            };
            match next {
                Ok((door, from, datagram)) => {
                    // Whoever dials says by that where it is.
                    if self.child.is_some() && HandshakeKind::of(&datagram) == Some(HandshakeKind::Init) {
                        self.addr = Some(from);
                    }
                    if self.addr == Some(from) && !self.is_of_probe(door, &datagram) {
                        self.waiting.push_back((door, datagram));
                    }
                }
                Err(RecvTimeoutError::Timeout) => return Ok(()),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(io::Error::other("the sockets have no readers"));
                }
            }
        }
        Ok(())
    }

    /// Whether a datagram answers a probe, be it an earlier one; notes if it answers the latest.
    fn is_of_probe(&mut self, door: Door, datagram: &[u8]) -> bool {
        let (Door::Back, Ok(packet)) = (door, VersionsPacket::parse(datagram)) else { return false };
        let (before, latest) = self.probes;
        let number = u64::from_be_bytes(packet.destination().0);
        if number == latest {
            self.answered = self.answered.map(|_| true);
        }
        number != before && number.wrapping_sub(before) <= latest.wrapping_sub(before)
    }

    /// Asks for the list of versions and waits for it (`PROTO §4.16`).
    fn probe(&mut self) -> io::Result<()> {
        if self.mute {
            return self.gather_more(Instant::now() + QUIET);
        }
        self.answered = Some(false);
        let result = self.ask();
        self.answered = None;
        result
    }

    fn ask(&mut self) -> io::Result<()> {
        self.probes.1 = self.probes.1.wrapping_add(1);
        let source = ConnectionId(self.probes.1.to_be_bytes());
        let repr = InitRepr { version: 0x2a2a_2a2a, source, cookie: [0; 16], message_len: 1159 };
        let mut datagram = [0; 1200];
        repr.emit(&mut datagram).map_err(io::Error::other)?;
        for _ in 0..if self.peer.is_some() { PROBES } else { 1 } {
            self.send(Door::Back, &datagram)?;
            let until = Instant::now() + PROBE;
            while Instant::now() < until {
                self.gather_more(until)?;
                if self.answered == Some(true) {
                    return Ok(());
                }
            }
        }
        if self.peer.is_none() {
            self.mute = true;
            return Ok(());
        }
        Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "§4.16: an unknown version is not answered with VERSIONS",
        ))
    }

    /// Waits for one more datagram.
    fn gather_more(&mut self, until: Instant) -> io::Result<()> {
        let held = std::mem::take(&mut self.waiting);
        let result = self.gather(until);
        let fresh = std::mem::replace(&mut self.waiting, held);
        let room = (8 * HELD).saturating_sub(self.waiting.len());
        self.waiting.extend(fresh.into_iter().take(room));
        result
    }
}

impl Subject for Process {
    fn peer_id(&self) -> Option<[u8; 32]> {
        self.peer
    }

    fn send(&mut self, from: Door, datagram: &[u8]) -> io::Result<()> {
        let addr = self.addr.ok_or_else(|| io::Error::other("it has not dialled yet"))?;
        match self.doors[from as usize].send_to(datagram, addr) {
            Ok(_) => Ok(()),
            // An earlier datagram met a closed port.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn receive(&mut self, patience: Duration) -> io::Result<Option<(Door, Vec<u8>)>> {
        self.gather(Instant::now() + patience)?;
        Ok(self.waiting.pop_front())
    }

    fn settle(&mut self) -> io::Result<()> {
        // Answers to strangers leave before others of the same turn: the second probe comes behind them all.
        self.probe()?;
        self.probe()
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn dial(&mut self, peer: &[u8; 32]) -> Result<(), Verdict> {
        let Some(command) = &self.command else {
            return Err(Verdict::NotClaimed("no command that dials was given".to_owned()));
        };
        let unavailable =
            |error: io::Error| Verdict::Unavailable(format!("`{}`: {error}", command.join(" ")));
        let here = self.doors[Door::Front as usize].local_addr().map_err(unavailable)?;
        let target = format!("{}@{here}", peer_id_text(peer));
        let mut words = command.iter().map(|word| word.replace("{}", &target));
        let program = words.next().unwrap_or_default();
        if let Some(mut former) = self.child.take() {
            former.kill().and_then(|()| former.wait()).map_err(unavailable)?;
        }
        (self.addr, self.mute) = (None, false);
        while self.arrivals.try_recv().is_ok() {}
        self.waiting.clear();
        let child = Command::new(program)
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(unavailable)?;
        self.child = Some(child);
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(child) = &mut self.child {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Reads a socket on a thread of its own until `stop`.
fn listen(
    socket: &UdpSocket,
    door: Door,
    arrival: &SyncSender<(Door, SocketAddr, Vec<u8>)>,
    stop: &Arc<AtomicBool>,
) -> io::Result<()> {
    let (socket, arrival, stop) = (socket.try_clone()?, arrival.clone(), stop.clone());
    socket.set_read_timeout(Some(GLANCE))?;
    thread::Builder::new().name("wraith-conformance socket".to_owned()).spawn(move || {
        let mut buffer = vec![0; LARGEST];
        while !stop.load(Ordering::Relaxed) {
            let Ok((len, from)) = socket.recv_from(&mut buffer) else { continue };
            if let Err(TrySendError::Disconnected(_)) = arrival.try_send((door, from, buffer[..len].to_vec()))
            {
                return;
            }
        }
    })?;
    Ok(())
}
