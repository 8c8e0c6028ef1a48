//! Everything that is decided before the first packet.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::net::SocketAddr;
use core::time::Duration;

use crate::crypto::{CryptoProvider, Identity, PeerId, Suite};
use crate::endpoint::Memory;
use crate::error::ConfigError;
use crate::wire::{MAX_PROTOCOL_LEN, MAX_PROTOCOLS};

/// Smallest datagram size that a path must carry, in bytes of UDP payload (`PROTO §2.1`).
pub const MIN_DATAGRAM: u16 = 1200;

/// Longest delay of acknowledgements: a longer one would stall loss detection (RFC 9000 §18.2, `PROTO §8.3`).
pub(crate) const LONGEST_ACK_DELAY: Duration = Duration::from_millis(1 << 14);

/// Configuration of an [`Endpoint`](crate::Endpoint).
#[derive(Debug)]
pub struct Config {
    /// Who this endpoint is.
    pub identity: Identity,
    /// Sizes of all pools.
    pub limits: Limits,
    /// Protocol timing and sizes.
    pub transport: Transport,
    /// Which part of the connection ids belongs to this endpoint.
    pub shard: Shard,
    /// Ciphers.
    pub crypto: &'static dyn CryptoProvider,
    /// Application protocols, best first: 1 to 8 of 1 to 32 bytes.
    pub protocols: Vec<Box<[u8]>>,
    /// Who may open a session to this endpoint.
    pub policy: Policy,
}

impl Config {
    /// Defaults for `identity` speaking the application protocol `protocol`.
    pub fn new(identity: Identity, protocol: &[u8]) -> Self {
        Self {
            identity,
            limits: Limits::client(),
            transport: Transport::default(),
            shard: Shard::ONLY,
            crypto: &crate::crypto::RustCrypto,
            protocols: alloc::vec![protocol.into()],
            policy: Policy::All,
        }
    }

    /// Streams of each direction that a peer may have open: no more than half of the pool, so that a single session
    /// never waits for room that only it could give.
    pub(crate) fn stream_offer(&self) -> u32 {
        u32::from(self.transport.peer_streams).min((self.limits.streams / 2).max(1))
    }

    /// The suites that this endpoint offers, best first.
    pub(crate) fn suites(&self) -> &'static [Suite] {
        if self.transport.suites.is_empty() { self.crypto.suites() } else { self.transport.suites }
    }

    /// Checks that the parts fit together.
    ///
    /// # Errors
    /// Names the first part that does not.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if self.shard.index >= self.shard.count {
            return Err(ConfigError::ShardOutOfRange);
        }
        self.limits.validate()?;
        let transport = &self.transport;
        if transport.min_datagram < MIN_DATAGRAM || transport.max_datagram < transport.min_datagram {
            return Err(ConfigError::DatagramTooSmall);
        }
        let names = &self.protocols;
        if names.is_empty()
            || names.len() > MAX_PROTOCOLS
            || names.iter().any(|name| name.is_empty() || name.len() > MAX_PROTOCOL_LEN)
        {
            return Err(ConfigError::BadProtocols);
        }
        let available = self.crypto.suites();
        if !available.contains(&Suite::XChaCha20Poly1305) {
            return Err(ConfigError::NoSuite);
        }
        let wanted = transport.suites;
        if wanted
            .iter()
            .enumerate()
            .any(|(at, suite)| !available.contains(suite) || wanted[..at].contains(suite))
        {
            return Err(ConfigError::BadSuites);
        }
        Ok(())
    }
}

/// Which initiators an endpoint accepts.
#[derive(Clone, Debug, Default)]
pub enum Policy {
    /// Everybody who proves an identity.
    #[default]
    All,
    /// These identities only.
    Set(Box<[PeerId]>),
    /// The application decides at `Event::Authorize`; until then the peer may send no application data.
    Ask,
}

/// Sizes of the pools. Nothing grows beyond them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Sessions at the same time.
    pub sessions: u32,
    /// Handshakes at the same time, and as many checks of addresses that peers of sessions have moved to.
    pub handshakes: u32,
    /// New handshakes per second that may cost a Diffie-Hellman operation.
    pub handshake_rate: u32,
    /// Streams at the same time, over all sessions.
    pub streams: u32,
    /// Records of sent packets shared by all sessions, beside 8 that each session owns.
    pub sent_packets: u32,
    /// Gaps in received streams, over all sessions (`PROTO §7.6`).
    pub holes: u32,
    /// Queued unreliable datagrams, over all sessions.
    pub datagrams: u32,
    /// Sessions whose keys are kept expanded, ready for packets. Those of others are expanded for each packet as long as more
    /// sessions than these have traffic at the same time, which takes some 0.3 µs and shows in `Stats::keys_missed`.
    pub expanded_keys: u32,
}

impl Limits {
    /// A few sessions at full speed.
    pub const fn client() -> Self {
        Self {
            sessions: 64,
            handshakes: 64,
            handshake_rate: 1000,
            streams: 2048,
            sent_packets: 32_768,
            holes: 4096,
            datagrams: 1024,
            expanded_keys: 64,
        }
    }

    /// Room for `sessions` sessions.
    pub const fn server(sessions: u32) -> Self {
        Self {
            sessions,
            handshakes: if sessions / 4 < 256 { 256 } else { sessions / 4 },
            handshake_rate: 2000,
            streams: sessions.saturating_mul(4),
            sent_packets: 65_536,
            holes: 4096,
            datagrams: 4096,
            expanded_keys: if sessions < 4096 { sessions } else { 4096 },
        }
    }

    /// One small device.
    pub const fn embedded() -> Self {
        Self {
            sessions: 2,
            handshakes: 2,
            handshake_rate: 10,
            streams: 8,
            sent_packets: 64,
            holes: 64,
            datagrams: 8,
            expanded_keys: 2,
        }
    }

    /// Bytes that an endpoint with these limits and the default provider takes at most, beside the queued data itself.
    pub const fn memory(&self) -> usize {
        self.memory_parts().total()
    }

    /// The same in its parts.
    pub const fn memory_parts(&self) -> Memory {
        Memory::of(self)
    }

    fn validate(&self) -> Result<(), ConfigError> {
        let all = [
            self.sessions,
            self.handshakes,
            self.handshake_rate,
            self.streams,
            self.sent_packets,
            self.holes,
            self.datagrams,
            self.expanded_keys,
        ];
        if all.contains(&0) {
            return Err(ConfigError::LimitZero);
        }
        if all.iter().any(|&limit| limit > 1 << 24) {
            return Err(ConfigError::LimitTooLarge);
        }
        Ok(())
    }
}

/// One of several endpoints that share an address, each with its own connection ids.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shard {
    /// This endpoint, below `count`.
    pub index: u8,
    /// Number of endpoints.
    pub count: u8,
}

impl Shard {
    /// The only shard.
    pub const ONLY: Self = Self { index: 0, count: 1 };
}

/// Protocol timing and sizes; start from [`Transport::default`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
pub struct Transport {
    /// Datagram size that is used without asking the path, in bytes of UDP payload.
    pub min_datagram: u16,
    /// Largest datagram that is sent or received, in bytes of UDP payload.
    pub max_datagram: u16,
    /// Sessions ask their path for more than `min_datagram`, up to `max_datagram`, and notice when it comes to carry
    /// less (`PROTO §8.11`). Only for drivers that never fragment (`Caps::dont_fragment`): of others the answers would
    /// say nothing, which is why this is off unless the caller knows.
    pub mtu_search: bool,
    /// Most bytes of one session sent in one turn; one datagram always may.
    pub burst: u32,
    /// Timers may fire this much late; pacing is finer.
    pub timer_granularity: Duration,
    /// A session ends when nothing arrives for this long; zero means never (`PROTO §9.1`).
    pub idle_timeout: Duration,
    /// A packet is sent when nothing was sent for this long; `None` lets sessions idle out.
    pub keep_alive: Option<Duration>,
    /// A peer that is silent while there is something to send is dialled beside its session, which ends with
    /// `CloseReason::Replaced` when the peer answers in the new one; streams do not move over (`PROTO §9.20`). Off unless
    /// the application can go on in another session than it began.
    pub redial: bool,
    /// A handshake ends when it is not done after this long.
    pub handshake_timeout: Duration,
    /// Acknowledgements wait at most this long, and never more than 2^14 ms.
    pub max_ack_delay: Duration,
    /// Credit that a new stream starts with, in bytes.
    pub stream_window: u64,
    /// Credit that a stream grows to when the path needs it, in bytes.
    pub max_window: u64,
    /// Streams of each direction that a peer may have open; at most half of `Limits::streams` are offered.
    pub peer_streams: u16,
    /// The application grants all credit with `Session::grant`.
    pub manual_credit: bool,
    /// A packet holds at most one of the application's datagrams, so that its loss costs no more than one.
    pub lone_datagrams: bool,
    /// What decides how fast a session sends.
    pub congestion: Congestion,
    /// Packets are marked ECN-capable while the path proves to carry the marks.
    pub ecn: bool,
    /// Fresh keys are agreed on at the latest after this many packets of one end; half of what the suite allows
    /// holds too (`PROTO §5.14`).
    pub rekey_packets: u64,
    /// Fresh keys are agreed on with the first packet that is sent after this time; zero means as often as possible.
    pub rekey_interval: Duration,
    /// The suites to offer, best first; empty means all that the crypto provider has, in its order.
    pub suites: &'static [Suite],
}

/// How a sender finds the rate that a path bears; nothing that a peer has to know.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Congestion {
    /// CUBIC with `HyStart++` (RFC 9438, RFC 9406): fills the queue until it overflows.
    Cubic,
    /// `BBRv3` (draft-ietf-ccwg-bbr): sends at the rate that the path delivers.
    #[default]
    Bbr,
}

impl Default for Transport {
    fn default() -> Self {
        Self {
            min_datagram: MIN_DATAGRAM,
            max_datagram: 65_527,
            mtu_search: false,
            burst: 65_536,
            timer_granularity: Duration::from_millis(1),
            idle_timeout: Duration::from_secs(30),
            keep_alive: None,
            redial: false,
            handshake_timeout: Duration::from_secs(10),
            max_ack_delay: Duration::from_millis(25),
            stream_window: 1 << 20,
            max_window: 128 << 20,
            peer_streams: 256,
            manual_credit: false,
            lone_datagrams: false,
            congestion: Congestion::default(),
            ecn: true,
            rekey_packets: u64::MAX,
            rekey_interval: Duration::from_mins(2),
            suites: &[],
        }
    }
}

macro_rules! setters {
    ($($(#[$doc:meta])* $setter:ident => $field:ident: $kind:ty,)*) => {
        impl Transport {$(
            $(#[$doc])*
            #[must_use]
            pub const fn $setter(mut self, $field: $kind) -> Self {
                self.$field = $field;
                self
            }
        )*}
    };
}

setters! {
    /// Sets the datagram size that is used without asking the path.
    with_min_datagram => min_datagram: u16,
    /// Sets the largest datagram that is sent or received.
    with_max_datagram => max_datagram: u16,
    /// Sets whether sessions search for the largest datagram that their path carries.
    with_mtu_search => mtu_search: bool,
    /// Sets whether each of the application's datagrams gets a packet of its own.
    with_lone_datagrams => lone_datagrams: bool,
    /// Sets the most bytes of one session sent in one turn.
    with_burst => burst: u32,
    /// Sets how late timers may fire.
    with_timer_granularity => timer_granularity: Duration,
    /// Sets the idle time after which a session ends.
    with_idle_timeout => idle_timeout: Duration,
    /// Sets the time without sending after which a packet is sent.
    with_keep_alive => keep_alive: Option<Duration>,
    /// Sets whether silent peers are dialled again.
    with_redial => redial: bool,
    /// Sets the time that a handshake may take.
    with_handshake_timeout => handshake_timeout: Duration,
    /// Sets the longest delay of an acknowledgement.
    with_max_ack_delay => max_ack_delay: Duration,
    /// Sets the credit that a new stream starts with.
    with_stream_window => stream_window: u64,
    /// Sets the credit that a stream may grow to.
    with_max_window => max_window: u64,
    /// Sets how many streams of each direction a peer may have open.
    with_peer_streams => peer_streams: u16,
    /// Leaves every grant of credit to the application.
    with_manual_credit => manual_credit: bool,
    /// Sets what decides how fast a session sends.
    with_congestion => congestion: Congestion,
    /// Sets whether packets are marked ECN-capable.
    with_ecn => ecn: bool,
    /// Sets after how many packets fresh keys are agreed on.
    with_rekey_packets => rekey_packets: u64,
    /// Sets after which time fresh keys are agreed on.
    with_rekey_interval => rekey_interval: Duration,
    /// Sets which suites are offered, best first. A peer that offers none of them is refused.
    with_suites => suites: &'static [Suite],
}

/// Whom to dial.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peer {
    /// Where it is.
    pub addr: SocketAddr,
    /// Who it must be; `None` asks the application by `Event::Authorize`.
    pub id: Option<PeerId>,
}
