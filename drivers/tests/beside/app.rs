//! An application with a session, and with datagrams of its own beside it.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use wraith_drivers::{App, Driver, Runner, Turn};
use wraith_proto::{
    Config, Dir, Ecn, Endpoint, Event, Identity, Instant, Payload, Peer, RxMeta, SessionHandle, Source,
    StreamId, Transport, TxMeta, TxQueue, Via,
};

/// Bytes of the stream.
pub(crate) const LEN: u64 = 1_000_000;
/// Questions without an answer at a time.
const WINDOW: usize = 32;
/// A question is repeated after this time: a socket may lose it.
const PATIENCE: Duration = Duration::from_millis(200);
/// The first bytes of a question and of an answer.
const QUESTION: u8 = 0x62;
const ANSWER: u8 = 0x63;

/// Sends a stream to its peer or receives one, and asks the peer or answers by datagrams of no session.
#[derive(Debug, Default)]
pub(crate) struct Beside {
    peer: Option<SocketAddr>,
    /// Questions to be asked.
    pub(crate) questions: u32,
    asked: u32,
    waiting: BTreeMap<u32, Instant>,
    answers: VecDeque<(TxMeta, Vec<u8>)>,
    pub(crate) answered: u32,
    /// Times that the queue had no room.
    pub(crate) refused: usize,
    pub(crate) session: Option<SessionHandle>,
    pub(crate) received: u64,
    pub(crate) delivered: bool,
}

impl Beside {
    pub(crate) fn is_done(&self) -> bool {
        self.delivered && self.answered == self.questions
    }
}

/// The question of a number: of another length than its neighbours.
fn question(number: u32) -> Vec<u8> {
    let mut bytes = vec![number as u8; 5 + (number as usize * 397) % 1_100];
    bytes[0] = QUESTION;
    bytes[1..5].copy_from_slice(&number.to_be_bytes());
    bytes
}

pub(crate) fn meta_to(to: SocketAddr) -> TxMeta {
    TxMeta { to, from: None, via: Via(0), ecn: Ecn::NotEct }
}

pub(crate) fn write(queue: &mut dyn TxQueue, meta: &TxMeta, bytes: &[u8]) -> bool {
    let Some(room) = queue.reserve(meta, bytes.len()) else { return false };
    room[..bytes.len()].copy_from_slice(bytes);
    queue.commit(bytes.len());
    true
}

impl Source for Beside {
    fn fill(&mut self, _: SessionHandle, _: StreamId, offset: u64, buf: &mut [u8]) -> usize {
        let len = (LEN - offset).min(buf.len() as u64) as usize;
        buf[..len].fill(7);
        len
    }
}

impl App for Beside {
    fn on_turn(&mut self, _: Instant, _: &mut Endpoint) -> Turn {
        if self.is_done() { Turn::Stop } else { Turn::Continue }
    }

    fn on_payload(&mut self, payload: Payload<'_>) {
        if let Payload::Stream { data, .. } = payload {
            self.received += data.len() as u64;
        }
    }

    fn on_event(&mut self, _: Instant, endpoint: &mut Endpoint, session: SessionHandle, event: Event) {
        match event {
            Event::Connected => {
                self.session = Some(session);
                if self.peer.is_some() {
                    let mut session = endpoint.session(session).unwrap();
                    let stream = session.open(Dir::Uni).unwrap();
                    session.attach(stream, LEN).unwrap();
                }
            }
            Event::Delivered(_) => self.delivered = true,
            _ => {}
        }
    }

    fn on_sealed(&mut self, _: Instant, meta: &RxMeta, datagram: &mut [u8]) -> bool {
        match datagram {
            [QUESTION, ..] => {
                datagram[0] = ANSWER;
                let meta = TxMeta { to: meta.from, from: meta.to, via: meta.via, ecn: Ecn::NotEct };
                self.answers.push_back((meta, datagram.to_vec()));
                true
            }
            [ANSWER, rest @ ..] => {
                let number = u32::from_be_bytes(*rest.first_chunk().unwrap());
                assert_eq!(rest, &question(number)[1..]);
                self.answered += u32::from(self.waiting.remove(&number).is_some());
                true
            }
            _ => false,
        }
    }

    fn on_transmit(&mut self, now: Instant, queue: &mut dyn TxQueue) {
        while let Some((meta, bytes)) = self.answers.pop_front() {
            if !write(queue, &meta, &bytes) {
                self.refused += 1;
                return self.answers.push_front((meta, bytes));
            }
        }
        let Some(peer) = self.peer else { return };
        let late = self.waiting.iter().find(|(_, asked)| now.saturating_since(**asked) >= PATIENCE);
        let mut again = late.map(|(number, _)| *number);
        while again.is_some() || (self.asked < self.questions && self.waiting.len() < WINDOW) {
            let number = again.unwrap_or(self.asked);
            if !write(queue, &meta_to(peer), &question(number)) {
                self.refused += 1;
                return;
            }
            self.waiting.insert(number, now);
            self.asked += u32::from(again.take().is_none());
        }
    }

    fn wake_at(&self) -> Option<Instant> {
        self.waiting.values().min().map(|asked| asked.saturating_add(PATIENCE))
    }
}

/// An end; one with a `peer` dials it, sends it the stream and asks it `questions` times.
pub(crate) fn end<D: Driver>(
    driver: D,
    number: u8,
    peer: Option<SocketAddr>,
    questions: u32,
    transport: Transport,
) -> Runner<D, Beside> {
    let mut config = Config::new(Identity::from_seed([number; 32]), b"beside");
    config.transport = transport;
    let now = driver.now();
    let mut endpoint = Endpoint::new(config, [number; 32], now).unwrap();
    if let Some(addr) = peer {
        let id = Some(Identity::from_seed([2; 32]).peer_id());
        endpoint.connect(now, Peer { addr, id }, Via(0)).unwrap();
    }
    Runner::new(driver, endpoint, Beside { peer, questions, ..Beside::default() })
}
