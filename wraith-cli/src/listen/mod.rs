//! `listen`: accepts sessions, echoes probes, counts what benchmarks send.

mod guest;

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;

use bytes::Bytes;
use serde::Serialize;
use wraith_drivers::{App, Driver, Park, Runner, Turn};
use wraith_proto::{
    CloseReason, Dir, Endpoint, Event, Identity, Instant, Limits, Payload, SessionHandle, Source, StreamId,
    Transport,
};

use crate::address::{Target, any, reachable, within_reach};
use crate::args::{self, Common};
use crate::cipher::Offer;
use crate::dht::{DhtPart, Keeper, Role, WithDht};
use crate::dial::{self, BENCH_PROTOCOL, CODE_INTERRUPTED, PING_PROTOCOL};
use crate::drive::{Task, drive};
use crate::driver_pick::{Job, Picked, has_ipv6, with_driver};
use crate::failure::{Failure, Result};
use crate::identity;
use crate::output::Output;
use crate::stop::Stop;

use guest::Guest;

/// Sessions at the same time.
const SESSIONS: u32 = 256;

/// Echoes that wait for their turn; probes beyond are lost.
const ECHOES: usize = 1024;

#[derive(Serialize)]
#[serde(tag = "event", rename = "listening")]
struct Listening {
    peer: String,
    address: String,
    addresses: Vec<String>,
    driver: &'static str,
    mode: &'static str,
}

#[derive(Serialize)]
#[serde(tag = "event", rename = "connected")]
struct ConnectedEvent {
    peer: String,
    address: String,
    protocol: String,
}

#[derive(Serialize)]
#[serde(tag = "event", rename = "closed")]
struct ClosedEvent {
    peer: String,
    address: String,
    reason: &'static str,
    code: Option<u32>,
}

/// Listens until Ctrl-C.
pub(crate) fn run(common: &Common, args: args::Listen, stop: &Stop) -> Result<()> {
    let output = common.output();
    let seeds = within_reach(common.bind, args.bootstrap)?;
    let identity = identity::for_run(output, common.identity.as_deref())?;
    let bind = common.bind.unwrap_or_else(|| any(has_ipv6()));
    let host = common.device.host();
    let (offer, interface) = (common.suite, host.interface());
    let job = ListenJob { output, identity, offer, interface, seeds, stop };
    with_driver(output, common.driver, &host, bind, job)?;
    // Nothing else ends a listener.
    Err(Failure::Interrupted)
}

struct ListenJob<'a> {
    output: Output,
    identity: Identity,
    offer: Offer,
    /// The device that it listens on, if it is one alone.
    interface: Option<&'a str>,
    /// Nodes of the DHT to join through; without any it is no node.
    seeds: Vec<Target>,
    stop: &'a Stop,
}

impl Job for ListenJob<'_> {
    type Output = ();

    fn run<D: Park>(self, driver: D, picked: Picked) -> Result<()> {
        let peer = self.identity.peer_id().to_string();
        let local = driver.local_addr();
        let dht = if self.seeds.is_empty() {
            None
        } else {
            let part = DhtPart::new(self.identity.clone(), Role::Node, self.seeds, driver.now())?;
            let keeper = Keeper::new(self.output, self.identity.clone(), local, self.interface, None);
            Some((part, keeper))
        };
        let (driver, endpoint, app) = listener(driver, self.identity, self.offer, self.output)?.into_parts();
        let mut runner = Runner::new(driver, endpoint, WithDht { app, dht });
        let addresses: Vec<_> = reachable(local, self.interface).iter().map(ToString::to_string).collect();
        let mut text = format!("listening on {local} as {peer}; to reach it, use one of");
        for address in &addresses {
            let _ = write!(text, "\n  {peer}@{address}");
        }
        let Picked { name: driver, mode } = picked;
        self.output.result(&Listening { peer, address: local.to_string(), addresses, driver, mode }, text);
        drive(&mut runner, self.stop)
    }
}

/// A listener on `driver`.
pub(crate) fn listener<D: Driver>(
    driver: D,
    identity: Identity,
    offer: Offer,
    output: Output,
) -> Result<Runner<D, Listener>> {
    let largest = driver.caps().max_datagram.min(usize::from(u16::MAX)) as u16;
    let largest = largest.min(Transport::default().max_datagram);
    let transport = dial::transport(offer).with_max_datagram(largest);
    let protocols = [PING_PROTOCOL, BENCH_PROTOCOL];
    let endpoint = dial::endpoint(identity, &protocols, Limits::server(SESSIONS), transport, driver.now())?;
    Ok(Runner::new(driver, endpoint, Listener::new(output)))
}

/// Answers everybody.
pub(crate) struct Listener {
    output: Output,
    guests: BTreeMap<SessionHandle, Guest>,
    echoes: VecDeque<(SessionHandle, Bytes)>,
    /// Sessions that sent something since the last turn.
    active: Vec<SessionHandle>,
    /// Sessions that wait for their counts.
    asking: Vec<SessionHandle>,
    stopping: bool,
}

impl Listener {
    fn new(output: Output) -> Self {
        Self {
            output,
            guests: BTreeMap::new(),
            echoes: VecDeque::with_capacity(ECHOES),
            active: Vec::new(),
            asking: Vec::new(),
            stopping: false,
        }
    }

    fn echo(&mut self, endpoint: &mut Endpoint) {
        while let Some((handle, data)) = self.echoes.pop_front() {
            let pings = self.guests.get(&handle).is_some_and(|guest| guest.pings == Some(true));
            if pings && let Some(mut session) = endpoint.session(handle) {
                // What does not fit is lost, as on the way.
                let _ = session.send_datagram(data);
            }
        }
    }

    fn note_arrivals(&mut self, now: Instant) {
        for handle in self.active.drain(..) {
            let Some(guest) = self.guests.get_mut(&handle) else { continue };
            guest.arrived_until(now);
            if guest.asks() && !self.asking.contains(&handle) {
                self.asking.push(handle);
            }
        }
    }

    fn answer(&mut self, now: Instant, endpoint: &mut Endpoint) {
        let guests = &mut self.guests;
        self.asking.retain(|handle| {
            let Some(guest) = guests.get_mut(handle) else { return false };
            let Some((stream, answer)) = guest.answer(now) else { return true };
            if let Some(mut session) = endpoint.session(*handle) {
                // If the peer takes no answer, it is gone.
                let _ = session.write(stream, answer).and_then(|()| session.finish(stream));
            }
            false
        });
    }

    fn on_connected(&mut self, endpoint: &mut Endpoint, handle: SessionHandle) {
        let Some(session) = endpoint.session(handle) else { return };
        let peer = session.peer().map(|peer| peer.to_string()).unwrap_or_default();
        let address = session.remote().to_string();
        let protocol = String::from_utf8_lossy(session.protocol().unwrap_or_default()).into_owned();
        self.output.note(format_args!("{address}: {protocol} session with {peer}"));
        let guest = self.guests.entry(handle).or_default();
        (guest.peer, guest.address) = (peer.clone(), address.clone());
        guest.pings = Some(protocol.as_bytes() == PING_PROTOCOL);
        self.output.event(&ConnectedEvent { peer, address, protocol });
    }

    fn on_closed(&mut self, handle: SessionHandle, reason: CloseReason) {
        let Some(Guest { peer, address, .. }) = self.guests.remove(&handle) else { return };
        let (reason, code) = reason_name(reason);
        self.output.note(format_args!("{address}: session over ({reason})"));
        self.output.event(&ClosedEvent { peer, address, reason, code });
    }
}

impl Source for Listener {
    fn fill(&mut self, _: SessionHandle, _: StreamId, _: u64, _: &mut [u8]) -> usize {
        0
    }
}

impl App for Listener {
    fn on_turn(&mut self, now: Instant, endpoint: &mut Endpoint) -> Turn {
        self.note_arrivals(now);
        self.echo(endpoint);
        self.answer(now, endpoint);
        if !self.stopping {
            return Turn::Continue;
        }
        for handle in self.guests.keys() {
            if let Some(mut session) = endpoint.session(*handle) {
                session.close(now, CODE_INTERRUPTED);
            }
        }
        Turn::Stop
    }

    fn on_payload(&mut self, payload: Payload<'_>) {
        let (session, stream) = match &payload {
            Payload::Datagram { session, .. } => (*session, None),
            Payload::Stream { session, stream, .. } => (*session, Some(*stream)),
            _ => return,
        };
        let guest = self.guests.entry(session).or_default();
        if self.active.last() != Some(&session) {
            self.active.push(session);
        }
        match payload {
            Payload::Datagram { data, .. } => {
                guest.count(data.len());
                if self.echoes.len() < ECHOES && guest.pings != Some(false) {
                    self.echoes.push_back((session, Bytes::copy_from_slice(data)));
                }
            }
            Payload::Stream { offset, data, .. } => match stream {
                Some(stream) if stream.dir() == Dir::Bi => guest.ask(stream, offset, data),
                _ => guest.count(data.len()),
            },
            _ => {}
        }
    }

    fn on_event(&mut self, _: Instant, endpoint: &mut Endpoint, session: SessionHandle, event: Event) {
        match event {
            Event::Connected => self.on_connected(endpoint, session),
            Event::Closed(reason) => self.on_closed(session, reason),
            _ => {}
        }
    }

    fn wake_at(&self) -> Option<Instant> {
        self.asking.iter().filter_map(|handle| self.guests.get(handle)?.answer_at()).min()
    }
}

impl Task for Listener {
    fn stop(&mut self) {
        self.stopping = true;
    }
}

fn reason_name(reason: CloseReason) -> (&'static str, Option<u32>) {
    match reason {
        CloseReason::Local => ("closed here", None),
        CloseReason::Peer(code) => ("closed by the peer", Some(code)),
        CloseReason::IdleTimeout => ("silence", None),
        CloseReason::HandshakeTimeout => ("no handshake", None),
        CloseReason::Refused => ("refused", None),
        CloseReason::KeysExhausted => ("keys used up", None),
        CloseReason::PathTooSmall => ("path too small", None),
        CloseReason::Violation => ("protocol violation", None),
        CloseReason::Superseded | CloseReason::Replaced => ("replaced by another", None),
        _ => ("unknown", None),
    }
}
