//! The core in a loop of your own: two threads, two `std::net::UdpSocket`s, and no other crate of this project.
//!
//! `cargo run -p wraith-proto --example custom_loop` sends a text through a stream, gets it back in capitals, and ends.

use std::error::Error;
use std::net::UdpSocket;
use std::time::{Duration, Instant as Clock};

use wraith_proto::{
    Budget, CloseReason, Config, Dir, Ecn, Endpoint, Event, Identity, Instant, NoSource, OneShot, Payload,
    Peer, RxMeta, SessionHandle, StreamId, Via,
};

type Failure = Box<dyn Error + Send + Sync>;

const QUESTION: &[u8] = b"how do I embed it?";
/// Room for one datagram.
const ROOM: usize = 2048;

/// A socket, an endpoint and a clock: all that a loop needs.
struct Node {
    socket: UdpSocket,
    endpoint: Endpoint,
    start: Clock,
    /// What arrived: a text so short that it comes in one piece, so that no `Assembler` is needed.
    text: Vec<u8>,
}

impl Node {
    /// `seed` has to be 32 fresh bytes from the operating system, and the identity one that you keep.
    #[expect(clippy::disallowed_methods, reason = "the core has no clock, its caller has one")]
    fn new(seed: [u8; 32]) -> Result<Self, Failure> {
        let mut config = Config::new(Identity::from_seed(seed), b"capitals");
        config.transport.max_datagram = ROOM as u16;
        let endpoint = Endpoint::new(config, seed, Instant::MIN)?;
        Ok(Self { socket: UdpSocket::bind("127.0.0.1:0")?, endpoint, start: Clock::now(), text: Vec::new() })
    }

    fn now(&self) -> Instant {
        Instant::MIN.saturating_add(self.start.elapsed())
    }

    /// One turn of the loop: everything that can be sent, a wait, a datagram or what is due. Returns a stream that ended.
    fn turn(&mut self) -> Result<Option<(SessionHandle, StreamId)>, Failure> {
        let mut buffer = [0; ROOM];
        loop {
            let mut queue = OneShot::new(&mut buffer);
            let _ = self.endpoint.poll_transmit(self.now(), &mut queue, &mut NoSource, Budget(1));
            let Some((meta, datagram)) = queue.take() else { break };
            self.socket.send_to(datagram, meta.to)?;
        }
        // Sleep until the core wants to be called again, or a datagram arrives.
        let deadline = self.endpoint.poll_timeout().map(|deadline| deadline.at.saturating_since(self.now()));
        let wait = deadline.unwrap_or(Duration::MAX).clamp(Duration::from_micros(1), Duration::from_secs(1));
        self.socket.set_read_timeout(Some(wait))?;
        let mut ended = None;
        if let Ok((len, from)) = self.socket.recv_from(&mut buffer) {
            let (now, meta) = (self.now(), RxMeta { from, to: None, via: Via(0), ecn: Ecn::NotEct });
            let mut received = self.endpoint.handle(now, &meta, &mut buffer[..len]);
            while let Some(payload) = received.next() {
                if let Payload::Stream { session, stream, data, fin, .. } = payload {
                    self.text.extend_from_slice(data);
                    ended = fin.then_some((session, stream));
                }
            }
        }
        let _ = self.endpoint.handle_timeout(self.now(), Budget::UNLIMITED);
        Ok(ended)
    }

    /// Runs the loop until the conversation is over; returns what arrived.
    fn run(mut self, asks: bool) -> Result<Vec<u8>, Failure> {
        loop {
            if let Some((session, stream)) = self.turn()? {
                let (now, answer) = (self.now(), self.text.to_ascii_uppercase());
                let mut session = self.endpoint.session(session).ok_or("the session is over")?;
                if asks {
                    session.close(now, 0);
                    self.turn()?; // tells the peer
                    return Ok(self.text);
                }
                session.write(stream, answer.into())?;
                session.finish(stream)?;
            }
            while let Some((session, event)) = self.endpoint.poll_event() {
                match event {
                    Event::Connected if asks => {
                        let mut session = self.endpoint.session(session).ok_or("the session is over")?;
                        let stream = session.open(Dir::Bi)?;
                        session.write(stream, QUESTION.into())?;
                        session.finish(stream)?;
                    }
                    Event::Closed(CloseReason::Peer(0)) => return Ok(self.text),
                    Event::Closed(reason) => return Err(format!("closed: {reason:?}").into()),
                    _ => {}
                }
            }
        }
    }
}

fn main() -> Result<(), Failure> {
    // Fixed seeds are for examples and tests alone.
    let (mut asking, answering) = (Node::new([1; 32])?, Node::new([2; 32])?);
    let id = answering.endpoint.config().identity.peer_id();
    let peer = Peer { addr: answering.socket.local_addr()?, id: Some(id) };
    let server = std::thread::spawn(|| answering.run(false));
    asking.endpoint.connect(asking.now(), peer, Via(0))?;
    let answer = asking.run(true)?;
    let question = server.join().map_err(|_| "the answering thread panicked")??;
    println!("{} -> {}", String::from_utf8_lossy(&question), String::from_utf8_lossy(&answer));
    assert_eq!((&question[..], &answer[..]), (QUESTION, &b"HOW DO I EMBED IT?"[..]));
    Ok(())
}
