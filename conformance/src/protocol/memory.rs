//! The core as a subject, in virtual time.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use wraith_proto::{
    Budget, Config, Dir, Ecn, Endpoint, Event, Identity, Instant, NoSource, OneShot, Payload, Peer, PeerId,
    Policy, Progress, RxMeta, SessionHandle, StreamId, Via,
};

use super::subject::{Door, Side, Subject, Target, Variant, Wish};
use crate::case::Verdict;

/// The application protocol of the core as a subject.
const PROTOCOL: &[u8] = b"wraith-ping/1";

/// Room for the datagrams that it sends: the other end takes no larger ones.
const LARGEST: usize = 2048;

const START: Instant = Instant::from_nanos(1_000_000_000_000);

const FRONT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)), 4001);
const BACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2)), 4002);

/// The core of this repository, in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Core;

impl Target for Core {
    fn name(&self) -> String {
        "wraith-proto in memory".to_owned()
    }

    fn subject(&self, _: Side, variant: Variant, seed: u64) -> Result<Box<dyn Subject>, Verdict> {
        let [identity, seed] = [b"identity", b"endpoint"].map(|purpose| {
            blake3::derive_key("WRAITH conformance core", &[&purpose[..], &seed.to_be_bytes()].concat())
        });
        let mut config = Config::new(Identity::from_seed(identity), PROTOCOL);
        config.policy = match variant {
            Variant::Usual | Variant::RekeysOften => Policy::All,
            Variant::Asks => Policy::Ask,
            Variant::AdmitsNobody => Policy::Set(Box::new([])),
        };
        if variant == Variant::RekeysOften {
            config.transport = config.transport.with_rekey_packets(50);
        }
        let endpoint = Endpoint::new(config, seed, START)
            .map_err(|error| Verdict::Unavailable(format!("the core refuses its configuration: {error}")))?;
        Ok(Box::new(CoreSubject {
            endpoint,
            now: START,
            sent: VecDeque::new(),
            session: None,
            streams: Vec::new(),
            refuses: false,
        }))
    }

    fn protocol(&self) -> Vec<u8> {
        PROTOCOL.to_vec()
    }
}

/// An endpoint whose application sends datagrams back.
#[derive(Debug)]
struct CoreSubject {
    endpoint: Endpoint,
    now: Instant,
    sent: VecDeque<(Door, Vec<u8>)>,
    session: Option<SessionHandle>,
    /// Streams that the other end opened.
    streams: Vec<StreamId>,
    refuses: bool,
}

impl CoreSubject {
    /// Does what is due now.
    fn turn(&mut self) {
        while self.endpoint.handle_timeout(self.now, Budget::UNLIMITED) == Progress::More {}
        while let Some((session, event)) = self.endpoint.poll_event() {
            match event {
                Event::Connected | Event::Authorize => self.session = Some(session),
                Event::StreamOpened(stream) => self.streams.push(stream),
                _ => {}
            }
        }
        loop {
            let mut buffer = [0; LARGEST];
            let mut queue = OneShot::new(&mut buffer);
            let _ = self.endpoint.poll_transmit(self.now, &mut queue, &mut NoSource, Budget(1));
            let Some((meta, datagram)) = queue.take() else { return };
            let door = if meta.to == BACK { Door::Back } else { Door::Front };
            self.sent.push_back((door, datagram.to_vec()));
        }
    }
}

impl Subject for CoreSubject {
    fn peer_id(&self) -> Option<[u8; 32]> {
        Some(*self.endpoint.config().identity.peer_id().as_bytes())
    }

    fn send(&mut self, from: Door, datagram: &[u8]) -> io::Result<()> {
        let from = if from == Door::Front { FRONT } else { BACK };
        let meta = RxMeta { from, to: None, via: Via(0), ecn: Ecn::NotEct };
        let mut bytes = datagram.to_vec();
        let mut echoes = Vec::new();
        let mut received = self.endpoint.handle(self.now, &meta, &mut bytes);
        while !self.refuses
            && let Some(payload) = received.next()
        {
            if let Payload::Datagram { session, data } = payload {
                echoes.push((session, Bytes::copy_from_slice(data)));
            }
        }
        drop(received);
        for (session, data) in echoes {
            if let Some(mut session) = self.endpoint.session(session) {
                // What does not fit is lost, as on the way.
                let _ = session.send_datagram(data);
            }
        }
        self.turn();
        Ok(())
    }

    fn receive(&mut self, patience: Duration) -> io::Result<Option<(Door, Vec<u8>)>> {
        let end = self.now.saturating_add(patience);
        loop {
            self.turn();
            if let Some(sent) = self.sent.pop_front() {
                return Ok(Some(sent));
            }
            match self.endpoint.poll_timeout() {
                Some(deadline) if deadline.at <= end => self.now = deadline.at.max(self.now),
                _ => {
                    self.now = end;
                    return Ok(None);
                }
            }
        }
    }

    fn settle(&mut self) -> io::Result<()> {
        self.turn();
        Ok(())
    }

    fn now(&self) -> Duration {
        self.now.saturating_since(Instant::MIN)
    }

    fn is_exact(&self) -> bool {
        true
    }

    fn dropped(&self) -> Option<u64> {
        Some(self.endpoint.stats().dropped())
    }

    fn dial(&mut self, peer: &[u8; 32]) -> Result<(), Verdict> {
        let id = PeerId::from_bytes(*peer).map_err(|error| Verdict::Fail(error.to_string()))?;
        let peer = Peer { addr: FRONT, id: Some(id) };
        let session = self.endpoint.connect(self.now, peer, Via(0));
        self.session = Some(session.map_err(|error| Verdict::Fail(format!("it does not dial: {error}")))?);
        self.turn();
        Ok(())
    }

    fn wish(&mut self, wish: Wish) -> Result<(), Verdict> {
        let granted = self.grant(wish).is_some();
        self.turn();
        if granted { Ok(()) } else { Err(Verdict::Fail(format!("its application cannot {wish:?}"))) }
    }
}

impl CoreSubject {
    fn grant(&mut self, wish: Wish) -> Option<()> {
        let session = self.session.and_then(|handle| self.endpoint.session(handle));
        let stream = |id: u32| self.streams.iter().copied().find(|stream| stream.as_u32() == id);
        match wish {
            Wish::RefuseBytes => {
                self.refuses = true;
                Some(())
            }
            Wish::GrantBytes(id, up_to) => {
                self.refuses = false;
                session?.grant(stream(id)?, up_to).ok()
            }
            Wish::SendStream(len) => {
                let mut session = session?;
                let stream = session.open(Dir::Uni).ok()?;
                session.write(stream, Bytes::from(vec![7; len])).ok()?;
                session.finish(stream).ok()
            }
            Wish::StopStream(id, code) => session?.stop(stream(id)?, code).ok(),
            Wish::Authorize => session?.authorize(self.now).ok(),
            Wish::Close(code) => {
                session?.close(self.now, code);
                Some(())
            }
        }
    }
}
