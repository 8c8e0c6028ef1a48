//! A trace in qlog.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::time::Duration;

use serde::Serialize;
use wraith_proto::trace::{Metrics, Role, TraceEvent, Tracer};
use wraith_proto::{Instant, SessionHandle};

use super::events::{
    AckedData, ClosedData, CongestionData, DroppedData, EstablishedData, HandshakeData, KeyData, LostData,
    MetricsData, MtuData, PacketData, SpuriousData, millis,
};
use super::frames::hex;

/// Name of the group of events that belong to no session that is known.
const NO_SESSION: &str = "endpoint";

/// Sessions that are over and still remembered, for what they send in farewell.
const FAREWELLS: usize = 64;

/// Writes a trace as JSON text sequences (RFC 7464): draft-ietf-quic-qlog-main-schema-13, with the events of
/// draft-ietf-quic-qlog-quic-events-12 where they mean the same here, and those of the namespace `wraith`.
///
/// Every event has a `group_id`: the initiator's connection id of its session, or `endpoint`. After an error of `out`
/// nothing more is written. Give it a buffer; it is flushed at the end of each session, and when the value is dropped.
pub struct Qlog<W: io::Write> {
    out: W,
    sessions: BTreeMap<SessionHandle, Traced>,
    /// How many of them are over.
    over: usize,
    acked: Acked,
    failed: bool,
}

/// What is known of a session.
struct Traced {
    group: String,
    role: Option<Role>,
    metrics: Metrics,
    closed: bool,
}

/// Acknowledged packets that are written as one event.
#[derive(Default)]
struct Acked {
    session: Option<SessionHandle>,
    at: Option<Instant>,
    numbers: Vec<u64>,
}

impl<W: io::Write> Qlog<W> {
    /// Writes a new file to `out`, beginning with its header.
    pub fn new(out: W) -> Self {
        let mut qlog = Self::resumed(out);
        put(&mut qlog.out, &mut qlog.failed, &Header::NEW);
        qlog
    }

    /// Writes to `out`, which has a header already.
    pub fn resumed(out: W) -> Self {
        Self { out, sessions: BTreeMap::new(), over: 0, acked: Acked::default(), failed: false }
    }

    /// Learns of a session by the first event that names it.
    fn meet(&mut self, session: Option<SessionHandle>, event: &TraceEvent<'_>) {
        let Some(handle) = session else { return };
        let (initiator, role) = match event {
            TraceEvent::HandshakeSent(message) | TraceEvent::HandshakeReceived(message) => {
                (message.initiator(), None)
            }
            TraceEvent::Established(it) => (it.ids.initiator, Some(it.role)),
            _ => return,
        };
        if self.over > FAREWELLS {
            self.sessions.retain(|_, traced| !traced.closed);
            self.over = 0;
        }
        let group = hex(initiator);
        let traced = Traced { group, role, metrics: Metrics::default(), closed: false };
        let traced = self.sessions.entry(handle).or_insert(traced);
        traced.role = traced.role.or(role);
    }

    fn write(&mut self, now: Instant, session: Option<SessionHandle>, event: &TraceEvent<'_>) {
        match event {
            TraceEvent::HandshakeSent(it) => self.handshake(now, session, "wraith:handshake_sent", it),
            TraceEvent::HandshakeReceived(it) => {
                self.handshake(now, session, "wraith:handshake_received", it);
            }
            TraceEvent::Established(it) => {
                self.event(now, session, "wraith:session_established", &EstablishedData::from(it));
            }
            TraceEvent::EpochBegun { epoch, first } => {
                let role = session.and_then(|session| self.sessions.get(&session)?.role);
                self.event(now, session, "quic:key_updated", &KeyData::new(role, *epoch, *first));
            }
            TraceEvent::PacketSent(it) => {
                self.event(now, session, "quic:packet_sent", &PacketData::from(it));
            }
            TraceEvent::PacketReceived(it) => {
                self.event(now, session, "quic:packet_received", &PacketData::from(it));
            }
            TraceEvent::PacketLost { number, cause, largest_acked } => {
                let data = LostData::new(*number, *cause, *largest_acked);
                self.event(now, session, "quic:packet_lost", &data);
            }
            TraceEvent::SpuriousLoss { first, last } => {
                let data = SpuriousData { first: *first, last: *last };
                self.event(now, session, "wraith:spurious_loss", &data);
            }
            TraceEvent::DatagramDropped { reason, size } => {
                self.event(now, session, "quic:packet_dropped", &DroppedData::new(*reason, *size));
            }
            TraceEvent::Metrics(metrics) => self.metrics(now, session, metrics),
            TraceEvent::MtuUpdated { old, new, done } => {
                self.event(now, session, "quic:mtu_updated", &MtuData { old: *old, new: *new, done: *done });
            }
            TraceEvent::Closed { reason } => {
                self.event(now, session, "quic:connection_closed", &ClosedData::from(*reason));
                if let Some(traced) = session.and_then(|session| self.sessions.get_mut(&session)) {
                    self.over += usize::from(!traced.closed);
                    traced.closed = true;
                }
                self.flush();
            }
            _ => {}
        }
    }

    fn handshake(
        &mut self,
        now: Instant,
        session: Option<SessionHandle>,
        name: &str,
        message: &wraith_proto::trace::HandshakeMessage,
    ) {
        // Before the responder has a session, the message itself says which one it will be.
        let group = hex(message.initiator());
        let known = session.and_then(|session| self.sessions.get(&session));
        let group_id = known.map_or(&*group, |traced| &*traced.group);
        let record = Event { time: time(now), name, group_id, data: &HandshakeData::from(message) };
        put(&mut self.out, &mut self.failed, &record);
    }

    fn metrics(&mut self, now: Instant, session: Option<SessionHandle>, metrics: &Metrics) {
        let traced = session.and_then(|session| self.sessions.get_mut(&session));
        let before =
            traced.map(|traced| std::mem::replace(&mut traced.metrics, *metrics)).unwrap_or_default();
        if before.congestion_events < metrics.congestion_events {
            let data = CongestionData { count: metrics.congestion_events };
            self.event(now, session, "wraith:congestion_event", &data);
        }
        let data = MetricsData::changes(&before, metrics);
        self.event(now, session, "quic:recovery_metrics_updated", &data);
    }

    /// Writes the acknowledged packets that wait, as one event.
    fn write_acked(&mut self) {
        let Acked { session, at: Some(at), numbers } = std::mem::take(&mut self.acked) else { return };
        self.event(at, session, "quic:packets_acked", &AckedData { packet_numbers: &numbers });
    }

    fn event(&mut self, now: Instant, session: Option<SessionHandle>, name: &str, data: &impl Serialize) {
        let known = session.and_then(|session| self.sessions.get(&session));
        let group_id = known.map_or(NO_SESSION, |traced| &*traced.group);
        put(&mut self.out, &mut self.failed, &Event { time: time(now), name, group_id, data });
    }

    fn flush(&mut self) {
        self.failed = self.failed || self.out.flush().is_err();
    }
}

impl<W: io::Write + Send + Sync> Tracer for Qlog<W> {
    fn event(&mut self, now: Instant, session: Option<SessionHandle>, event: &TraceEvent<'_>) {
        if self.failed {
            return;
        }
        if let TraceEvent::PacketAcked { number } = event {
            if self.acked.session != session {
                self.write_acked();
            }
            self.acked.session = session;
            self.acked.at = Some(now);
            self.acked.numbers.push(*number);
            return;
        }
        self.write_acked();
        self.meet(session, event);
        self.write(now, session, event);
    }
}

impl<W: io::Write> Drop for Qlog<W> {
    fn drop(&mut self) {
        self.write_acked();
        self.flush();
    }
}

impl<W: io::Write> fmt::Debug for Qlog<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Qlog")
            .field("sessions", &self.sessions.len())
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}

#[derive(Serialize)]
struct Event<'a, D> {
    time: f64,
    name: &'a str,
    group_id: &'a str,
    data: &'a D,
}

/// The first record of a file.
#[derive(Serialize)]
struct Header {
    file_schema: &'static str,
    serialization_format: &'static str,
    /// This and the next are for tools that know qlog 0.3 alone, as qvis.
    qlog_version: &'static str,
    qlog_format: &'static str,
    title: &'static str,
    trace: Trace,
}

#[derive(Serialize)]
struct Trace {
    common_fields: CommonFields,
    vantage_point: VantagePoint,
    event_schemas: [&'static str; 1],
}

#[derive(Serialize)]
struct CommonFields {
    time_format: &'static str,
    reference_time: ReferenceTime,
}

#[derive(Serialize)]
struct ReferenceTime {
    clock_type: &'static str,
    epoch: &'static str,
}

#[derive(Serialize)]
struct VantagePoint {
    #[serde(rename = "type")]
    kind: &'static str,
}

impl Header {
    const NEW: Self = Self {
        file_schema: "urn:ietf:params:qlog:file:sequential",
        serialization_format: "application/qlog+json-seq",
        qlog_version: "0.3",
        qlog_format: "JSON-SEQ",
        title: "WRAITH",
        trace: Trace {
            common_fields: CommonFields {
                time_format: "relative_to_epoch",
                reference_time: ReferenceTime { clock_type: "monotonic", epoch: "unknown" },
            },
            // An endpoint may dial in one session and answer in another.
            vantage_point: VantagePoint { kind: "unknown" },
            event_schemas: ["urn:ietf:params:qlog:events:quic-12"],
        },
    };
}

fn time(now: Instant) -> f64 {
    millis(Duration::from_nanos(now.as_nanos()))
}

/// Writes a record, unless writing has `failed` before.
fn put(out: &mut impl io::Write, failed: &mut bool, record: &impl Serialize) {
    let mut write = || {
        out.write_all(b"\x1e")?;
        serde_json::to_writer(&mut *out, record)?;
        out.write_all(b"\n")
    };
    *failed = *failed || write().is_err();
}
