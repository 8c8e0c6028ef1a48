//! A provider that says what a test wants it to say.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use wraith_drivers::{App, Driver, Park, Runner, Turn};
use wraith_drivers_mio::{MioDriver, Options};
use wraith_proto::{
    Assembler, Config, Dir, Endpoint, Event, Identity, Instant, Payload, PeerId, Session, SessionHandle,
    Source, StreamId,
};
use wraith_transfer_proto::{CHUNK, DeliveryHeader, Message, PROTOCOL, Tree};

/// What the liar does otherwise than an honest provider.
pub(crate) trait Lie: Send + 'static {
    /// The size and top list in the offer.
    fn offer(&self, tree: &Tree) -> (u64, Vec<u8>) {
        (tree.size(), tree.top_list().to_vec())
    }

    /// Deliveries in front of the offer's first wanted chunk.
    fn before(&self, _: &Honest<'_>) -> Vec<Vec<u8>> {
        Vec::new()
    }

    /// The stream that answers the want of `chunk`.
    fn delivery(&self, honest: &Honest<'_>, chunk: u64) -> Vec<u8> {
        honest.delivery(chunk)
    }

    /// Bytes on a bidirectional stream of its own, before the offer.
    fn question(&self) -> Option<Vec<u8>> {
        None
    }

    /// Bytes on the control stream in the place of the offer.
    fn instead_of_offer(&self) -> Option<Vec<u8>> {
        None
    }
}

/// The content, to tell the truth or a part of it.
pub(crate) struct Honest<'a> {
    pub(crate) bytes: &'a [u8],
    transfer: u32,
}

impl Honest<'_> {
    pub(crate) fn delivery(&self, chunk: u64) -> Vec<u8> {
        let start = chunk as usize * CHUNK;
        self.delivery_of(chunk, &self.bytes[start..self.bytes.len().min(start + CHUNK)])
    }

    /// A stream that says to be `chunk` and has these bytes.
    pub(crate) fn delivery_of(&self, chunk: u64, bytes: &[u8]) -> Vec<u8> {
        let header = DeliveryHeader { transfer: self.transfer, len: bytes.len() as u32, chunk };
        [&header.encode(), bytes].concat()
    }
}

/// A liar that runs until the value goes away.
pub(crate) struct Liar {
    pub(crate) peer: PeerId,
    pub(crate) address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Liar {
    /// Serves `bytes` to everybody, with this lie.
    pub(crate) fn start(bytes: Vec<u8>, lie: impl Lie) -> Self {
        let identity = Identity::from_seed([0x11; 32]);
        let peer = identity.peer_id();
        let driver = MioDriver::bind("127.0.0.1:0".parse().unwrap(), &Options::default()).unwrap();
        let address = driver.local_addr();
        let endpoint = Endpoint::new(Config::new(identity, PROTOCOL), [0x22; 32], driver.now()).unwrap();
        let tree = Tree::of(&bytes).unwrap();
        let app = LyingApp { bytes, tree, lie, control: None, queue: Vec::new() };
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || run(Runner::new(driver, endpoint, app), &stopped));
        Self { peer, address, stop, thread: Some(thread) }
    }
}

impl Drop for Liar {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        self.thread.take().unwrap().join().unwrap();
    }
}

fn run<L: Lie>(mut runner: Runner<MioDriver, LyingApp<L>>, stop: &AtomicBool) {
    while !stop.load(Ordering::SeqCst) {
        let next = runner.step().unwrap();
        let soon = runner.driver().now().saturating_add(Duration::from_millis(20));
        runner.driver_mut().park(Some(next.map_or(soon, |next| next.min(soon)))).unwrap();
    }
}

struct LyingApp<L> {
    bytes: Vec<u8>,
    tree: Tree,
    lie: L,
    control: Option<(SessionHandle, StreamId, Assembler)>,
    /// What the receiver wants now.
    queue: Vec<Request>,
}

enum Request {
    Get(u32),
    Chunk(u32, u64),
    Done(u32),
}

impl<L: Lie> LyingApp<L> {
    fn read(&mut self) {
        let Some((_, _, incoming)) = &mut self.control else { return };
        loop {
            let ready = incoming.readable();
            let Some(first) = ready.first() else { return };
            let prefix = 1usize << (first >> 6);
            let Some(head) = ready.get(..prefix) else { return };
            let len =
                head[1..].iter().fold(usize::from(first & 0x3f), |len, byte| len << 8 | usize::from(*byte));
            let Some(body) = ready.get(prefix..prefix + len) else { return };
            match Message::decode(body).unwrap() {
                Some(Message::Get { transfer, .. }) => self.queue.push(Request::Get(transfer)),
                Some(Message::Want { transfer, chunks }) => {
                    self.queue.extend(chunks.iter().map(|chunk| Request::Chunk(transfer, chunk)));
                }
                Some(Message::Done { transfer, .. }) => self.queue.push(Request::Done(transfer)),
                _ => {}
            }
            incoming.consume(prefix + len);
        }
    }

    fn answer(&self, session: &mut Session<'_>, control: StreamId, request: &Request) {
        let mut out = Vec::new();
        match *request {
            Request::Get(transfer) => {
                let honest = Honest { bytes: &self.bytes, transfer };
                for stream in self.lie.before(&honest) {
                    deliver(session, Dir::Uni, stream);
                }
                if let Some(question) = self.lie.question() {
                    deliver(session, Dir::Bi, question);
                }
                let (size, top) = self.lie.offer(&self.tree);
                Message::Offer { transfer, size, complete: true, top: &top }.encode(&mut out);
                out = self.lie.instead_of_offer().unwrap_or(out);
            }
            Request::Chunk(transfer, chunk) => {
                let honest = Honest { bytes: &self.bytes, transfer };
                deliver(session, Dir::Uni, self.lie.delivery(&honest, chunk));
            }
            Request::Done(transfer) => Message::DoneAck { transfer }.encode(&mut out),
        }
        // The receiver may have closed the session meanwhile: then it has said why.
        let _ = session.write(control, Bytes::from(out));
    }
}

fn deliver(session: &mut Session<'_>, dir: Dir, bytes: Vec<u8>) {
    if let Ok(stream) = session.open(dir) {
        let _ = session.write(stream, Bytes::from(bytes));
        let _ = session.finish(stream);
    }
}

impl<L: Lie> Source for LyingApp<L> {
    fn fill(&mut self, _: SessionHandle, _: StreamId, _: u64, _: &mut [u8]) -> usize {
        0
    }
}

impl<L: Lie> App for LyingApp<L> {
    fn on_turn(&mut self, _: Instant, endpoint: &mut Endpoint) -> Turn {
        self.read();
        let queue = std::mem::take(&mut self.queue);
        if let Some((session, control, _)) = &self.control
            && let Some(mut session) = endpoint.session(*session)
        {
            for request in &queue {
                self.answer(&mut session, *control, request);
            }
        }
        Turn::Continue
    }

    fn on_payload(&mut self, payload: Payload<'_>) {
        let Payload::Stream { session, stream, offset, data, .. } = payload else { return };
        let control = self.control.get_or_insert_with(|| (session, stream, Assembler::new(1 << 16)));
        if control.1 == stream {
            assert!(control.2.insert(offset, data));
        }
    }

    fn on_event(&mut self, _: Instant, endpoint: &mut Endpoint, session: SessionHandle, event: Event) {
        if let (Event::Stopped { stream, code }, Some(mut session)) = (event, endpoint.session(session)) {
            let _ = session.reset(stream, code);
        }
    }
}
