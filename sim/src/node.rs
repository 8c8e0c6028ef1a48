//! One endpoint with its application and its address.

use std::net::SocketAddr;

use wraith_proto::{
    Budget, Config, Ecn, Endpoint, Event, Instant, Outcome, Payload, PeerId, Progress, RxMeta, SessionHandle,
    Source, TxMeta, TxQueue, TxStatus,
};

use crate::link::LinkMeta;

/// The application of a node.
pub trait Host: Source {
    /// Takes a piece of data.
    fn on_payload(&mut self, now: Instant, payload: Payload<'_>);

    /// Takes news of a session.
    fn on_event(&mut self, now: Instant, endpoint: &mut Endpoint, session: SessionHandle, event: Event);

    /// Opens, writes and closes; called in each turn after the events and before sending.
    fn on_turn(&mut self, now: Instant, endpoint: &mut Endpoint) {
        let _ = (now, endpoint);
    }

    /// True to leave the rest of the current datagram's payloads unread.
    fn refuses(&mut self) -> bool {
        false
    }
}

/// An endpoint, the application on it, and where it is.
#[derive(Debug)]
pub struct Node<H> {
    /// The endpoint.
    pub endpoint: Endpoint,
    /// The application.
    pub host: H,
    addr: SocketAddr,
    peer_id: PeerId,
    last_connected: Option<SessionHandle>,
    connected: u64,
    closed: u64,
}

/// What travels beside a datagram between nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Flight {
    pub(crate) to: SocketAddr,
    pub(crate) meta: RxMeta,
}

/// Units of work per call, small enough that tests meet spent budgets.
const BUDGET: Budget = Budget(64);

/// Calls in one turn after which an endpoint is taken to be stuck.
const PATIENCE: u32 = 1_000_000;

impl<H: Host> Node<H> {
    /// A node at `addr`.
    ///
    /// # Panics
    /// If the endpoint refuses `config`.
    pub(crate) fn new(config: Config, addr: SocketAddr, host: H, seed: [u8; 32], now: Instant) -> Self {
        let peer_id = config.identity.peer_id();
        let endpoint = Endpoint::new(config, seed, now).expect("the endpoint takes its configuration");
        Self { endpoint, host, addr, peer_id, last_connected: None, connected: 0, closed: 0 }
    }

    /// Hands a datagram to the endpoint and its payloads to the host.
    pub(crate) fn deliver(&mut self, now: Instant, meta: &RxMeta, datagram: &mut [u8]) -> Outcome {
        let mut received = self.endpoint.handle(now, meta, datagram);
        while !self.host.refuses()
            && let Some(payload) = received.next()
        {
            self.host.on_payload(now, payload);
        }
        received.outcome()
    }

    /// Timers, events, the host's turn, then everything that may be sent now.
    pub(crate) fn turn(&mut self, now: Instant, queue: &mut impl TxQueue) {
        self.pass_timers(now);
        self.pass_events(now);
        for _ in 0..PATIENCE {
            self.host.on_turn(now, &mut self.endpoint);
            self.transmit(now, queue);
            if !self.pass_events(now) {
                return;
            }
        }
        panic!("an endpoint's events do not end at {now:?}");
    }

    /// Moves the node; datagrams to its former address are lost from now on.
    pub(crate) fn set_addr(&mut self, addr: SocketAddr) {
        self.addr = addr;
    }

    /// Where it is.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Who it is.
    pub fn peer_id(&self) -> PeerId {
        self.peer_id
    }

    /// The session that connected last.
    pub fn last_connected(&self) -> Option<SessionHandle> {
        self.last_connected
    }

    /// Sessions that connected so far.
    pub fn connected(&self) -> u64 {
        self.connected
    }

    /// Sessions that closed so far.
    pub fn closed(&self) -> u64 {
        self.closed
    }

    fn pass_timers(&mut self, now: Instant) {
        for _ in 0..PATIENCE {
            if self.endpoint.handle_timeout(now, BUDGET) == Progress::Done {
                return;
            }
        }
        panic!("an endpoint's timers do not end at {now:?}: {:?}", self.endpoint.poll_timeout());
    }

    fn pass_events(&mut self, now: Instant) -> bool {
        for passed in 0..PATIENCE {
            let Some((session, event)) = self.endpoint.poll_event() else {
                return passed > 0;
            };
            match event {
                Event::Connected => {
                    self.last_connected = Some(session);
                    self.connected += 1;
                }
                Event::Closed(_) => self.closed += 1,
                _ => {}
            }
            self.host.on_event(now, &mut self.endpoint, session, event);
        }
        panic!("an endpoint's events do not end at {now:?}");
    }

    fn transmit(&mut self, now: Instant, queue: &mut impl TxQueue) {
        for _ in 0..PATIENCE {
            match self.endpoint.poll_transmit(now, queue, &mut self.host, BUDGET) {
                TxStatus::Budget => {}
                TxStatus::Idle | TxStatus::QueueFull => return,
            }
        }
        panic!("an endpoint does not stop sending at {now:?}");
    }
}

impl Flight {
    /// A datagram on its way from `from`, as `meta` asks.
    pub(crate) fn new(meta: &TxMeta, from: SocketAddr) -> Self {
        let rx = RxMeta { from, to: Some(meta.to.ip()), via: meta.via, ecn: meta.ecn };
        Self { to: meta.to, meta: rx }
    }
}

impl LinkMeta for Flight {
    fn ecn(&self) -> Ecn {
        self.meta.ecn
    }

    fn set_ecn(&mut self, ecn: Ecn) {
        self.meta.ecn = ecn;
    }
}
