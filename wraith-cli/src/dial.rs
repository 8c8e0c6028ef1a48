//! Opening a session to a peer, and saying why one ended.

use std::time::Duration;

use wraith_proto::{
    CloseReason, Config, ConnectError, DropReason, Endpoint, Identity, Instant, Limits, Peer, SessionHandle,
    Transport, Via,
};

use crate::address::Target;
use crate::cipher::{self, Offer};
use crate::failure::{Failure, Result, failed};
use crate::identity;
use crate::trace;

/// Round trips measured by echoes.
pub(crate) const PING_PROTOCOL: &[u8] = b"wraith-ping/1";
/// Throughput counted at the receiver.
pub(crate) const BENCH_PROTOCOL: &[u8] = b"wraith-bench/1";

/// How long a peer may take to answer at all.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// Code of a close after which nothing is missing.
pub(crate) const CODE_DONE: u32 = 0;
/// Code of a close on Ctrl-C.
pub(crate) const CODE_INTERRUPTED: u32 = 1;

/// Timing of every session of this program.
pub(crate) fn transport(offer: Offer) -> Transport {
    Transport::default().with_handshake_timeout(HANDSHAKE_TIMEOUT).with_suites(offer.suites)
}

/// An endpoint that speaks `protocols`.
pub(crate) fn endpoint(
    identity: Identity,
    protocols: &[&[u8]],
    limits: Limits,
    transport: Transport,
    now: Instant,
) -> Result<Endpoint> {
    let mut config = Config::new(identity, b"");
    config.protocols = protocols.iter().map(|&name| name.into()).collect();
    config.limits = limits;
    config.transport = transport;
    endpoint_of(config, now)
}

/// An endpoint of this configuration, with this build's ciphers and fresh randomness.
pub(crate) fn endpoint_of(mut config: Config, now: Instant) -> Result<Endpoint> {
    config.crypto = cipher::PROVIDER;
    let mut endpoint = Endpoint::new(config, identity::random_seed()?, now)
        .map_err(|error| failed(format!("the settings do not fit together: {error}")))?;
    trace::attach(&mut endpoint);
    Ok(endpoint)
}

/// Begins a session with `target`.
pub(crate) fn connect(endpoint: &mut Endpoint, now: Instant, target: &Target) -> Result<SessionHandle> {
    let peer = Peer { addr: target.addr, id: Some(target.id) };
    endpoint.connect(now, peer, Via(0)).map_err(|error| {
        let remedy = match error {
            ConnectError::TableFull => "end other sessions first",
            _ => "use the line that `wraith-cli listen` prints",
        };
        failed(format!("cannot dial {target}: {error}; {remedy}"))
    })
}

/// What a session's end means to a command that was not done with it.
pub(crate) fn ended(endpoint: &Endpoint, target: &Target, reason: CloseReason) -> Failure {
    let addr = target.addr;
    let impostors = endpoint.stats().drops(DropReason::Refused);
    failed(match reason {
        // Answers that prove another identity are dropped; a refusal by the peer itself is not.
        CloseReason::HandshakeTimeout | CloseReason::Refused if impostors > 0 => format!(
            "another identity than {} answers at {addr}: copy PEER@ADDR again from the peer's `wraith-cli listen`",
            target.id
        ),
        CloseReason::HandshakeTimeout => format!(
            "no answer from {addr} within {} s: check the address, that `wraith-cli listen` runs there, and that no \
             firewall stops UDP",
            HANDSHAKE_TIMEOUT.as_secs()
        ),
        CloseReason::Refused => format!(
            "{addr} refused the session: it does not admit this identity, or the ends have no suite, service or version \
             in common: give both the same `--suite`, and commands and versions that fit"
        ),
        CloseReason::Peer(code) => {
            format!("{addr} closed the session (code {code}): start it again and retry")
        }
        CloseReason::IdleTimeout => format!("{addr} fell silent: check the network and retry"),
        CloseReason::KeysExhausted => format!("the keys of the session with {addr} are used up: retry"),
        CloseReason::PathTooSmall => format!(
            "the way to {addr} has come to carry less than 1,200 bytes: check tunnels and the MTU of the interface"
        ),
        CloseReason::Violation => format!("{addr} broke the protocol: use the same version at both ends"),
        _ => format!("the session with {addr} ended: retry"),
    })
}
