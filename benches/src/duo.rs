//! Two endpoints without a network between them: what is left is the protocol.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use wraith_proto::{
    Budget, Config, ConnectError, Dir, Ecn, Endpoint, Event, Identity, Instant, Outcome, Payload, Peer,
    Progress, RxMeta, SessionHandle, Source, StreamId, TxMeta, TxQueue, Via,
};

/// Time that a datagram takes to the other end.
const WAY: Duration = Duration::from_micros(50);

/// Turns after which two ends that do not connect are given up.
const PATIENCE: usize = 1000;

/// Two endpoints, `left` dialling and `right` answering, 50 µs apart.
///
/// Equal arguments and calls give equal datagrams.
#[derive(Debug)]
pub struct Duo {
    /// The dialling end.
    pub left: End,
    /// The answering end.
    pub right: End,
    now: Instant,
}

/// An endpoint, what it sends, and what came of it.
#[derive(Debug)]
pub struct End {
    /// The endpoint.
    pub endpoint: Endpoint,
    /// The session that connected last.
    pub session: Option<SessionHandle>,
    /// Sessions that connected.
    pub connected: usize,
    /// Bytes of application data that arrived.
    pub received: u64,
    addr: SocketAddr,
    outbox: Arena,
    content: Content,
}

/// Memory for outgoing datagrams, made once: the whole of a [`TxQueue`].
#[derive(Debug)]
pub struct Arena {
    slots: Vec<Box<[u8]>>,
    sent: Vec<(TxMeta, usize)>,
    reserved: Option<TxMeta>,
}

/// The same bytes for every stream and offset.
#[derive(Debug)]
struct Content {
    bytes: Bytes,
    lends: bool,
}

impl Duo {
    /// Two ends whose configurations `change` has changed, and room for `slots` datagrams on the way.
    ///
    /// # Panics
    /// If an endpoint refuses its configuration.
    pub fn new(change: impl Fn(&mut Config), slots: usize) -> Self {
        let now = Instant::from_nanos(1_000_000_000);
        let end = |number: u8| {
            let mut config = Config::new(Identity::from_seed([number; 32]), b"wraith-benches");
            change(&mut config);
            End::new(config, number, slots, now)
        };
        Self { left: end(1), right: end(2), now }
    }

    /// The time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Lets time pass.
    pub fn pass(&mut self, time: Duration) {
        self.now = self.now.saturating_add(time);
    }

    /// Begins a session from left to right, the right end's identity pinned.
    ///
    /// # Errors
    /// What the left endpoint says.
    pub fn dial(&mut self) -> Result<SessionHandle, ConnectError> {
        let peer = Peer { addr: self.right.addr, id: Some(self.right.endpoint.config().identity.peer_id()) };
        self.left.endpoint.connect(self.now, peer, Via::default())
    }

    /// Dials and carries datagrams until both ends are connected.
    ///
    /// # Panics
    /// If that does not happen.
    pub fn connect(&mut self) {
        let wanted = (self.left.connected + 1, self.right.connected + 1);
        self.dial().expect("a free session");
        for _ in 0..PATIENCE {
            self.carry();
            if (self.left.connected, self.right.connected) == wanted {
                return;
            }
        }
        panic!("the ends did not connect");
    }

    /// One turn of both ends, each followed by the way to the other.
    pub fn carry(&mut self) {
        self.carry_seen(|_| {});
    }

    /// [`carry`](Self::carry), showing each datagram on its way.
    pub fn carry_seen(&mut self, mut see: impl FnMut(&[u8])) {
        self.left.turn(self.now);
        self.left.waiting().for_each(&mut see);
        self.pass(WAY);
        self.right.take_all(self.now, &mut self.left);
        self.right.turn(self.now);
        self.right.waiting().for_each(&mut see);
        self.pass(WAY);
        self.left.take_all(self.now, &mut self.right);
    }
}

impl End {
    fn new(config: Config, number: u8, slots: usize, now: Instant) -> Self {
        let datagram = config.transport.max_datagram.into();
        let addr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, number)), 40_000);
        let endpoint = Endpoint::new(config, [number; 32], now).expect("the configuration fits");
        let content = Content { bytes: vec![number; datagram].into(), lends: false };
        let outbox = Arena::new(slots, datagram);
        Self { endpoint, session: None, connected: 0, received: 0, addr, outbox, content }
    }

    /// Opens a stream without end, its bytes lent from where they lie or copied.
    ///
    /// # Panics
    /// If no session is connected.
    pub fn open_endless_stream(&mut self, lends: bool) {
        self.content.lends = lends;
        let session = self.session.expect("a session is connected");
        let mut session = self.endpoint.session(session).expect("it is not over");
        let stream = session.open(Dir::Uni).expect("the peer allows streams");
        session.attach(stream, 1 << 60).expect("the stream is new");
    }

    /// Queues unreliable datagrams of the largest size until `count` or a refusal; returns how many.
    pub fn queue_datagrams(&mut self, count: usize) -> usize {
        let Some(mut session) = self.session.and_then(|session| self.endpoint.session(session)) else {
            return 0;
        };
        let data = self.content.bytes.slice(..session.max_datagram());
        (0..count).take_while(|_| session.send_datagram(data.clone()).is_ok()).count()
    }

    /// Timers, news, then everything that may be sent now.
    pub fn turn(&mut self, now: Instant) {
        while self.endpoint.handle_timeout(now, Budget::UNLIMITED) == Progress::More {}
        while let Some((session, event)) = self.endpoint.poll_event() {
            if event == Event::Connected {
                self.session = Some(session);
                self.connected += 1;
            }
        }
        self.transmit(now);
    }

    /// Writes everything that may be sent now; returns how many datagrams wait to be carried.
    pub fn transmit(&mut self, now: Instant) -> usize {
        let _ = self.endpoint.poll_transmit(now, &mut self.outbox, &mut self.content, Budget::UNLIMITED);
        self.outbox.len()
    }

    /// Takes all that `from` has sent; returns how many datagrams that were.
    pub fn take_all(&mut self, now: Instant, from: &mut Self) -> usize {
        let addr = from.addr;
        from.outbox.drain(|meta, datagram| {
            self.take(now, addr, meta.ecn, datagram);
        })
    }

    /// Takes a datagram from `from`, and all of its payload.
    pub fn take(&mut self, now: Instant, from: SocketAddr, ecn: Ecn, datagram: &mut [u8]) -> Outcome {
        let meta = RxMeta { from, to: Some(self.addr.ip()), via: Via::default(), ecn };
        let mut received = self.endpoint.handle(now, &meta, datagram);
        while let Some(payload) = received.next() {
            let (Payload::Stream { data, .. } | Payload::Datagram { data, .. }) = payload else { continue };
            self.received += data.len() as u64;
        }
        received.outcome()
    }

    /// Where it is.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// What waits to be carried.
    fn waiting(&self) -> impl Iterator<Item = &[u8]> {
        self.outbox.sent.iter().zip(&self.outbox.slots).map(|((_, len), slot)| &slot[..*len])
    }
}

impl Arena {
    /// Room for `slots` datagrams of `len` bytes.
    pub fn new(slots: usize, len: usize) -> Self {
        let slots = (0..slots).map(|_| vec![0; len].into_boxed_slice()).collect();
        Self { slots, sent: Vec::new(), reserved: None }
    }

    /// Forgets what was committed; returns how many datagrams that were.
    pub fn clear(&mut self) -> usize {
        let sent = self.len();
        self.sent.clear();
        sent
    }

    /// Hands each committed datagram to `take`, and forgets it; returns how many there were.
    pub(crate) fn drain(&mut self, mut take: impl FnMut(TxMeta, &mut [u8])) -> usize {
        for (&(meta, len), slot) in self.sent.iter().zip(&mut self.slots) {
            take(meta, &mut slot[..len]);
        }
        self.clear()
    }

    /// Committed datagrams.
    pub(crate) fn len(&self) -> usize {
        self.sent.len()
    }
}

impl TxQueue for Arena {
    #[inline]
    fn reserve(&mut self, meta: &TxMeta, len: usize) -> Option<&mut [u8]> {
        let room = self.slots.get_mut(self.sent.len())?.get_mut(..len)?;
        self.reserved = Some(*meta);
        Some(room)
    }

    #[inline]
    fn commit(&mut self, len: usize) {
        if let Some(meta) = self.reserved.take() {
            self.sent.push((meta, len));
        }
    }
}

impl Source for Content {
    fn fill(&mut self, _: SessionHandle, _: StreamId, _: u64, buf: &mut [u8]) -> usize {
        buf.copy_from_slice(&self.bytes[..buf.len()]);
        buf.len()
    }

    fn lend(&mut self, _: SessionHandle, _: StreamId, _: u64, len: usize) -> Option<&[u8]> {
        self.lends.then(|| &self.bytes[..len])
    }
}
