//! One endpoint with many sessions, and what a packet costs it.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant as Clock};

use bytes::Bytes;
use wraith_proto::crypto::{CryptoProvider, Suite};
use wraith_proto::{
    Budget, Config, Congestion, Ecn, Endpoint, Event, Identity, Instant, Limits, NoSource, Peer, Progress,
    RxMeta, SessionHandle, TxStatus, Via,
};

use crate::{Arena, BATCH};

/// Bytes of a packet.
const PACKET: u16 = 1364;

/// Longer than any delay of an acknowledgement.
const PAUSE: Duration = Duration::from_millis(30);

/// From one session to the next: far enough apart that nothing of one is fetched along with another, and prime to
/// every power of ten.
const STRIDE: usize = 7919;

/// Which sessions have traffic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Traffic {
    /// A single one; the others are idle.
    One,
    /// All in turn, a packet each.
    All,
}

/// A step of a packet's way whose cost is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call {
    /// A datagram is taken, and its payload.
    Handle,
    /// A datagram is made.
    PollTransmit,
    /// A timer fires: an acknowledgement is due.
    FireTimer,
    /// Timers are asked for, and nothing is due.
    NothingDue,
}

impl Traffic {
    /// What it is called in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::One => "one",
            Self::All => "all in turn",
        }
    }
}

impl Call {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Handle, Self::PollTransmit, Self::FireTimer, Self::NothingDue];

    /// What it is called in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Handle => "`handle`",
            Self::PollTransmit => "`poll_transmit`",
            Self::FireTimer => "`handle_timeout`, one due",
            Self::NothingDue => "`handle_timeout`, nothing due",
        }
    }
}

/// An endpoint with many sessions, each to a peer with an address of its own; the peers share an endpoint, too.
#[derive(Debug)]
pub struct Crowd {
    host: Endpoint,
    guests: Endpoint,
    /// Handles of each session at the host and at its guest.
    sessions: Vec<(SessionHandle, SessionHandle)>,
    now: Instant,
    /// What one end has sent and the other has not received.
    wire: Arena,
    data: Bytes,
    /// Packets since the beginning: whose turn it is.
    turn: usize,
}

impl Crowd {
    /// An endpoint with room for `sessions` sessions, and none yet.
    ///
    /// # Panics
    /// If the provider has none of the suites.
    pub fn new(sessions: u32, crypto: &'static dyn CryptoProvider, suites: &'static [Suite]) -> Self {
        let now = Instant::from_nanos(1 << 40);
        let endpoint = |seed| endpoint(seed, Self::limits(sessions), crypto, suites, now);
        Self {
            host: endpoint(1),
            guests: endpoint(2),
            sessions: Vec::with_capacity(sessions as usize),
            now,
            wire: Arena::new(4 * BATCH, PACKET.into()),
            data: Bytes::new(),
            turn: 0,
        }
    }

    /// The limits of both endpoints.
    pub const fn limits(sessions: u32) -> Limits {
        // So many handshakes at a time, but one after the other here.
        Limits { handshakes: 64, handshake_rate: 1 << 20, ..Limits::server(sessions) }
    }

    /// Makes all sessions, and lets them come to rest.
    ///
    /// # Panics
    /// If one does not connect.
    pub fn connect(&mut self) {
        let room = self.host.config().limits.sessions;
        for number in self.sessions.len() as u32..room {
            let peer = Peer { addr: peer_addr(number), id: Some(self.host.config().identity.peer_id()) };
            let guest = self.guests.connect(self.now, peer, Via::default()).expect("there is room");
            while self.pass(false) + self.pass(true) > 0 {}
            let (host, event) = self.host.poll_event().expect("it is answered");
            assert_eq!(event, Event::Connected);
            assert_eq!(self.guests.poll_event(), Some((guest, Event::Connected)));
            self.sessions.push((host, guest));
            self.now = self.now.saturating_add(Duration::from_millis(1));
        }
        self.rest();
        let largest = self.host.session(self.sessions[0].0).expect("it is not over").max_datagram();
        self.data = vec![7; largest].into();
        self.warm_up();
    }

    /// Nanoseconds that `call` takes for one packet or timer: the median over batches of 32, behind a round of all
    /// sessions with traffic that does not count. Systems put memory aside that nobody has used for a while.
    ///
    /// # Panics
    /// If a packet does not arrive.
    pub fn cost(&mut self, call: Call, traffic: Traffic, packets: usize) -> f64 {
        if traffic == Traffic::All {
            for _ in 0..self.sessions.len().div_ceil(BATCH) {
                self.batch(call, traffic);
            }
        }
        let mut times: Vec<_> = (0..packets.div_ceil(BATCH)).map(|_| self.batch(call, traffic)).collect();
        times.sort_unstable_by(f64::total_cmp);
        times[times.len() / 2]
    }

    /// The endpoint that is measured, without the others.
    pub fn into_host(self) -> Endpoint {
        self.host
    }

    /// Sessions of the host.
    pub fn sessions(&self) -> usize {
        self.host.sessions()
    }

    /// How many packets make a batch: with all in turn no session has two, which would share what comes with the first.
    fn batch_of(&self, traffic: Traffic) -> usize {
        match traffic {
            Traffic::One => BATCH,
            Traffic::All => BATCH.min(self.sessions.len()),
        }
    }

    fn batch(&mut self, call: Call, traffic: Traffic) -> f64 {
        let time = match call {
            Call::Handle => self.time_handle(traffic),
            Call::PollTransmit => self.time_transmit(traffic),
            Call::FireTimer => self.time_timers(traffic),
            Call::NothingDue => self.time_nothing(traffic),
        };
        self.rest();
        time.as_nanos() as f64 / self.batch_of(traffic) as f64
    }

    fn time_handle(&mut self, traffic: Traffic) -> Duration {
        self.queue(false, traffic, self.batch_of(traffic));
        self.transmit(false, self.batch_of(traffic));
        let start = Clock::now();
        carry(&mut self.wire, &mut self.host, self.now);
        start.elapsed()
    }

    fn time_transmit(&mut self, traffic: Traffic) -> Duration {
        let packets = self.batch_of(traffic);
        self.queue(true, traffic, packets);
        let start = Clock::now();
        self.transmit(true, packets);
        let time = start.elapsed();
        carry(&mut self.wire, &mut self.guests, self.now);
        time
    }

    /// A timer for each packet. Of a single session there is only one at a time.
    fn time_timers(&mut self, traffic: Traffic) -> Duration {
        let mut time = Duration::ZERO;
        let rounds = if traffic == Traffic::One { BATCH } else { 1 };
        for _ in 0..rounds {
            let packets = self.batch_of(traffic) / rounds;
            self.queue(false, traffic, packets);
            self.transmit(false, packets);
            carry(&mut self.wire, &mut self.host, self.now);
            self.now = self.now.saturating_add(PAUSE);
            let start = Clock::now();
            let progress = self.host.handle_timeout(self.now, Budget::UNLIMITED);
            time += start.elapsed();
            assert_eq!(progress, Progress::Done);
            self.pass(true);
        }
        time
    }

    fn time_nothing(&mut self, traffic: Traffic) -> Duration {
        let start = Clock::now();
        for _ in 0..self.batch_of(traffic) {
            self.now = self.now.saturating_add(Duration::from_micros(1));
            let progress = self.host.handle_timeout(self.now, Budget::UNLIMITED);
            assert!(self.host.poll_timeout().is_none_or(|due| due.at > self.now));
            assert_eq!(progress, Progress::Done);
        }
        start.elapsed()
    }

    /// A datagram for each of `count` packets.
    fn queue(&mut self, at_host: bool, traffic: Traffic, count: usize) {
        for _ in 0..count {
            let (host, guest) = self.sessions[match traffic {
                Traffic::One => 0,
                Traffic::All => self.turn * STRIDE % self.sessions.len(),
            }];
            self.turn += 1;
            let (endpoint, session) =
                if at_host { (&mut self.host, host) } else { (&mut self.guests, guest) };
            let mut session = endpoint.session(session).expect("it is not over");
            session.send_datagram(self.data.clone()).expect("there is a place");
        }
    }

    /// Makes `count` packets of what one end has queued.
    fn transmit(&mut self, at_host: bool, count: usize) {
        let endpoint = if at_host { &mut self.host } else { &mut self.guests };
        let status = endpoint.poll_transmit(self.now, &mut self.wire, &mut NoSource, Budget(count as u32));
        assert!(matches!(status, TxStatus::Budget | TxStatus::Idle), "{status:?}");
        assert_eq!(self.wire.len(), count, "nothing but the queue limits a turn");
    }

    /// The first session's congestion window begins with less than a batch.
    fn warm_up(&mut self) {
        for at_host in [false, true] {
            for _ in 0..BATCH {
                self.queue(at_host, Traffic::One, BATCH);
                while self.pass(at_host) > 0 {
                    self.rest();
                }
            }
        }
    }

    /// Lets all acknowledgements arrive.
    fn rest(&mut self) {
        for _ in 0..3 {
            while self.pass(true) + self.pass(false) > 0 {}
            self.now = self.now.saturating_add(PAUSE);
        }
    }

    /// Carries what one end has to say to the other; returns how many datagrams that were.
    fn pass(&mut self, from_host: bool) -> usize {
        let (from, to) =
            if from_host { (&mut self.host, &mut self.guests) } else { (&mut self.guests, &mut self.host) };
        while from.handle_timeout(self.now, Budget::UNLIMITED) == Progress::More {}
        let _ = from.poll_transmit(self.now, &mut self.wire, &mut NoSource, Budget::UNLIMITED);
        carry(&mut self.wire, to, self.now)
    }
}

/// Hands over all that waits on `wire`; returns how many datagrams that were.
fn carry(wire: &mut Arena, to: &mut Endpoint, now: Instant) -> usize {
    wire.drain(|sent, datagram| {
        // The address that a session's datagrams go to stands for their sender, too.
        let meta = RxMeta { from: sent.to, to: None, via: Via::default(), ecn: Ecn::NotEct };
        let mut received = to.handle(now, &meta, datagram);
        while received.next().is_some() {}
    })
}

fn endpoint(
    seed: u8,
    limits: Limits,
    crypto: &'static dyn CryptoProvider,
    suites: &'static [Suite],
    now: Instant,
) -> Endpoint {
    let mut config = Config::new(Identity::from_seed([seed; 32]), b"wraith-benches");
    config.limits = limits;
    config.crypto = crypto;
    config.transport.suites = suites;
    config.transport.idle_timeout = Duration::ZERO;
    // Until all have had their turn, minutes have passed here; every packet would meet keys that are due to be changed.
    config.transport.rekey_interval = Duration::MAX;
    config.transport = config.transport.with_min_datagram(PACKET).with_max_datagram(PACKET);
    // A window, and no rate that time has to pass for.
    config.transport.congestion = Congestion::Cubic;
    Endpoint::new(config, [seed; 32], now).expect("the configuration fits")
}

/// An address for each session, which stands for the peer at both ends; each in a prefix of its own, so that no limit
/// for prefixes bites.
fn peer_addr(number: u32) -> SocketAddr {
    let [_, high, middle, low] = number.to_be_bytes();
    SocketAddr::new(Ipv4Addr::new(10 + high, middle, low, 1).into(), 4433)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers;

    #[test]
    fn every_call_is_measured_for_one_session_and_for_all() {
        let mut crowd = Crowd::new(20, providers()[0].1, &[]);
        crowd.connect();
        assert_eq!(crowd.sessions(), 20);
        for call in Call::ALL {
            for traffic in [Traffic::One, Traffic::All] {
                let before = crowd.host.stats().sessions_visited;
                assert!(crowd.cost(call, traffic, 96) > 0.0);
                let visited = crowd.host.stats().sessions_visited - before;
                assert_eq!(visited > 0, call != Call::NothingDue, "{call:?}: {visited}");
            }
        }
    }
}
