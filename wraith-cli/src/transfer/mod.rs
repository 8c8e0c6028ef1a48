//! Files between two machines: `send`, `receive`, and `demo` of both.

mod child;
mod control;
mod demo;
mod dialer;
pub(crate) mod files;
mod hashing;
mod memory;
mod naming;
mod path;
mod progress;
mod quest;
mod receive;
mod receiver;
mod report;
mod send;
mod sender;
mod sink;
pub(crate) mod size;
mod source;
mod store;
mod stream_out;
mod wanted;
mod watch;

use std::fmt::Write as _;
use std::time::Duration;

use wraith_proto::{Config, Endpoint, Identity, Instant, Limits, Policy, Transport};
use wraith_transfer_proto::{CHUNK, Hash, PROTOCOL};

use crate::cipher::Offer;
use crate::dial::endpoint_of;
use crate::failure::Result;

pub(crate) use demo::run as demo;
pub(crate) use receive::run as receive;
pub(crate) use send::run as send;

/// A peer that is silent for so long is gone.
const IDLE_TIMEOUT: Duration = Duration::from_secs(15);

/// Keeps sessions alive while one end is busy elsewhere.
const KEEP_ALIVE: Duration = Duration::from_secs(2);

/// How long a last message may take to be acknowledged before the session is closed on it.
const FAREWELL: Duration = Duration::from_millis(500);

/// Credit of a stream: a whole delivery without waiting for more.
const STREAM_WINDOW: u64 = CHUNK as u64 + (64 << 10);

/// Sizes for a few sessions at full speed within some MiB.
fn limits(sessions: u32) -> Limits {
    Limits {
        sessions,
        handshakes: sessions.max(16),
        streams: 64 * sessions,
        sent_packets: 8192,
        holes: 2048,
        datagrams: 1,
        ..Limits::client()
    }
}

/// Timing and sizes of every session that carries files.
fn transport(offer: Offer) -> Transport {
    Transport::default()
        .with_suites(offer.suites)
        .with_idle_timeout(IDLE_TIMEOUT)
        .with_keep_alive(Some(KEEP_ALIVE))
        .with_stream_window(STREAM_WINDOW)
        .with_max_window(STREAM_WINDOW)
}

/// An endpoint that speaks file transfer.
fn endpoint(
    identity: Identity,
    policy: Policy,
    limits: Limits,
    transport: Transport,
    now: Instant,
) -> Result<Endpoint> {
    let mut config = Config::new(identity, PROTOCOL);
    config.policy = policy;
    config.limits = limits;
    config.transport = transport;
    endpoint_of(config, now)
}

/// A content id as people and scripts write it.
fn hex(hash: &Hash) -> String {
    let mut text = String::with_capacity(64);
    for byte in hash {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
