//! The `data` of events: of the namespace `quic` (draft-ietf-quic-qlog-quic-events-12), and of `wraith`.

use std::time::Duration;

use serde::Serialize;
use wraith_proto::trace::{Established, HandshakeMessage, LossCause, Metrics, Packet, Role};
use wraith_proto::wire::{HandshakeKind, PACKET_HEADER_LEN};
use wraith_proto::{CloseReason, DropReason, crypto::TAG_LEN};

use super::frames::{FrameData, Raw, hex};

/// `quic:packet_sent`, `quic:packet_received`.
#[derive(Serialize)]
pub(super) struct PacketData {
    header: Header,
    frames: Vec<FrameData>,
    raw: Raw,
}

#[derive(Serialize)]
struct Header {
    packet_type: &'static str,
    packet_number: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_phase: Option<u32>,
}

impl Header {
    const fn new(packet_number: u64, key_phase: Option<u32>) -> Self {
        Self { packet_type: "1RTT", packet_number, key_phase }
    }
}

impl From<&Packet<'_>> for PacketData {
    fn from(packet: &Packet<'_>) -> Self {
        let payload = packet.size.saturating_sub(PACKET_HEADER_LEN + TAG_LEN);
        Self {
            header: Header::new(packet.number, Some(packet.epoch)),
            frames: packet.frames.clone().flatten().map(FrameData::from).collect(),
            raw: Raw::with_payload(packet.size, payload),
        }
    }
}

/// `quic:packet_lost`; `largest_acked` is WRAITH's own field.
#[derive(Serialize)]
pub(super) struct LostData {
    header: Header,
    trigger: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    largest_acked: Option<u64>,
}

impl LostData {
    pub(super) fn new(number: u64, cause: LossCause, largest_acked: Option<u64>) -> Self {
        let trigger = match cause {
            LossCause::PacketThreshold => "reordering_threshold",
            LossCause::TimeThreshold => "time_threshold",
            LossCause::Probe => "pto_expired",
            _ => "unknown",
        };
        Self { header: Header::new(number, None), trigger, largest_acked }
    }
}

/// `quic:packets_acked`
#[derive(Serialize)]
pub(super) struct AckedData<'a> {
    pub(super) packet_numbers: &'a [u64],
}

/// `wraith:spurious_loss`
#[derive(Serialize)]
pub(super) struct SpuriousData {
    pub(super) first: u64,
    pub(super) last: u64,
}

/// `quic:packet_dropped`
#[derive(Serialize)]
pub(super) struct DroppedData {
    raw: Raw,
    trigger: &'static str,
    details: Details,
}

#[derive(Serialize)]
struct Details {
    reason: &'static str,
}

impl DroppedData {
    pub(super) fn new(reason: DropReason, size: usize) -> Self {
        let (trigger, reason) = match reason {
            DropReason::Malformed => ("invalid", "malformed"),
            DropReason::UnknownSession => ("connection_unknown", "unknown_session"),
            DropReason::Replayed => ("duplicate", "replayed"),
            DropReason::TooOld => ("duplicate", "too_old"),
            DropReason::BadTag => ("decryption_failure", "bad_tag"),
            DropReason::RateLimited => ("rejected", "rate_limited"),
            DropReason::TableFull => ("rejected", "table_full"),
            DropReason::WrongShard => ("connection_unknown", "wrong_shard"),
            DropReason::UnknownVersion => ("unsupported", "unknown_version"),
            DropReason::Refused => ("rejected", "refused"),
            DropReason::Sealed => ("unsupported", "sealed"),
            _ => ("general", "other"),
        };
        Self { raw: Raw::new(size), trigger, details: Details { reason } }
    }
}

/// `quic:recovery_metrics_updated`: what has changed. Times are milliseconds.
#[derive(Serialize)]
pub(super) struct MetricsData {
    #[serde(skip_serializing_if = "Option::is_none")]
    min_rtt: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    smoothed_rtt: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    latest_rtt: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rtt_variance: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pto_count: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    congestion_window: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_in_flight: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ssthresh: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    packets_in_flight: Option<u32>,
}

impl MetricsData {
    pub(super) fn changes(before: &Metrics, after: &Metrics) -> Self {
        Self {
            min_rtt: new(before.min_rtt, after.min_rtt).map(millis),
            smoothed_rtt: new(before.smoothed_rtt, after.smoothed_rtt).map(millis),
            latest_rtt: new(before.latest_rtt, after.latest_rtt).map(millis),
            rtt_variance: new(before.rtt_variation, after.rtt_variation).map(millis),
            pto_count: new(before.pto_count, after.pto_count),
            congestion_window: new(before.congestion_window, after.congestion_window),
            bytes_in_flight: new(before.bytes_in_flight, after.bytes_in_flight),
            ssthresh: new(before.ssthresh, after.ssthresh).flatten(),
            packets_in_flight: new(before.packets_in_flight, after.packets_in_flight),
        }
    }
}

fn new<T: PartialEq + Copy>(before: T, after: T) -> Option<T> {
    (before != after).then_some(after)
}

/// Milliseconds, the unit of qlog, with all digits of the nanoseconds.
pub(super) fn millis(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e6
}

/// `quic:mtu_updated`
#[derive(Serialize)]
pub(super) struct MtuData {
    pub(super) old: u16,
    pub(super) new: u16,
    pub(super) done: bool,
}

/// `wraith:congestion_event`
#[derive(Serialize)]
pub(super) struct CongestionData {
    pub(super) count: u64,
}

/// `quic:key_updated`; `first_packet_number` is WRAITH's own field.
#[derive(Serialize)]
pub(super) struct KeyData {
    pub(super) key_type: &'static str,
    pub(super) key_phase: u32,
    pub(super) first_packet_number: u64,
}

impl KeyData {
    pub(super) fn new(role: Option<Role>, epoch: u32, first: u64) -> Self {
        let key_type = match role {
            Some(Role::Responder) => "server_1rtt_secret",
            _ => "client_1rtt_secret",
        };
        Self { key_type, key_phase: epoch, first_packet_number: first }
    }
}

/// `quic:connection_closed`
#[derive(Serialize)]
pub(super) struct ClosedData {
    #[serde(skip_serializing_if = "Option::is_none")]
    initiator: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    connection_error: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    application_error: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_code: Option<u32>,
    reason: &'static str,
    trigger: &'static str,
}

impl From<CloseReason> for ClosedData {
    fn from(reason: CloseReason) -> Self {
        let plain = |reason, trigger| Self {
            initiator: None,
            connection_error: None,
            application_error: None,
            error_code: None,
            reason,
            trigger,
        };
        match reason {
            CloseReason::Local => Self { initiator: Some("local"), ..plain("local", "application") },
            CloseReason::Peer(code) => Self {
                initiator: Some("remote"),
                application_error: Some("unknown"),
                error_code: Some(code),
                ..plain("peer", "application")
            },
            CloseReason::IdleTimeout => plain("idle_timeout", "idle_timeout"),
            CloseReason::HandshakeTimeout => plain("handshake_timeout", "unspecified"),
            CloseReason::Refused => {
                Self { connection_error: Some("connection_refused"), ..plain("refused", "error") }
            }
            CloseReason::KeysExhausted => {
                Self { connection_error: Some("aead_limit_reached"), ..plain("keys_exhausted", "error") }
            }
            CloseReason::PathTooSmall => {
                Self { connection_error: Some("no_viable_path"), ..plain("path_too_small", "error") }
            }
            CloseReason::Violation => {
                Self { connection_error: Some("protocol_violation"), ..plain("violation", "error") }
            }
            CloseReason::Superseded => plain("superseded", "aborted"),
            CloseReason::Replaced => plain("replaced", "aborted"),
            _ => plain("other", "unspecified"),
        }
    }
}

/// `wraith:handshake_sent`, `wraith:handshake_received`
#[derive(Serialize)]
pub(super) struct HandshakeData {
    kind: &'static str,
    version: String,
    dcid: String,
    scid: String,
    raw: Raw,
}

impl From<&HandshakeMessage> for HandshakeData {
    fn from(message: &HandshakeMessage) -> Self {
        let header = message.header;
        let kind = match header.kind {
            HandshakeKind::Init => "init",
            HandshakeKind::Response => "response",
            HandshakeKind::Finish => "finish",
            HandshakeKind::Cookie => "cookie",
            HandshakeKind::Versions => "versions",
        };
        Self {
            kind,
            version: format!("{:08x}", header.version),
            dcid: hex(header.destination),
            scid: hex(header.source),
            raw: Raw::new(message.size),
        }
    }
}

/// `wraith:session_established`
#[derive(Serialize)]
pub(super) struct EstablishedData {
    role: &'static str,
    peer: String,
    suite: &'static str,
    protocol: String,
    initiator_id: String,
    responder_id: String,
}

impl From<&Established<'_>> for EstablishedData {
    fn from(session: &Established<'_>) -> Self {
        Self {
            role: match session.role {
                Role::Initiator => "initiator",
                Role::Responder => "responder",
            },
            peer: session.peer.to_string(),
            suite: session.suite.name(),
            protocol: String::from_utf8_lossy(session.protocol).into_owned(),
            initiator_id: hex(session.ids.initiator),
            responder_id: hex(session.ids.responder),
        }
    }
}
