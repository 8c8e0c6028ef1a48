//! Frames as qlog has them (draft-ietf-quic-qlog-quic-events-12 §8.13), and those that QUIC lacks.

use serde::Serialize;
use wraith_proto::wire::{Ack, ConnectionId, Frame};

/// A frame; the fields are those of the draft.
#[derive(Serialize)]
#[serde(tag = "frame_type", rename_all = "snake_case")]
pub(super) enum FrameData {
    Padding { raw: Raw },
    Ping,
    Ack(AckData),
    ConnectionClose { error_space: &'static str, error: &'static str, error_code: u32 },
    Datagram { raw: Raw },
    Stream { stream_id: u32, offset: u64, fin: bool, raw: Raw },
    ResetStream { stream_id: u32, error: &'static str, error_code: u32, final_size: u64 },
    StopSending { stream_id: u32, error: &'static str, error_code: u32 },
    MaxStreamData { stream_id: u32, maximum: u64 },
    MaxStreams { stream_type: &'static str, maximum: u64 },
    StreamDataBlocked { stream_id: u32, limit: u64 },
    NewConnectionId { sequence_number: u64, retire_prior_to: u64, connection_id: String },
    RetireConnectionId { sequence_number: u64 },
    StreamHoles { stream_id: u32, report: u64, offset: u64, raw: Raw },
    HolesTaken { stream_id: u32, report: u64 },
    Authorized,
    KeyShare { epoch: u32, group: u16, offset: u16, raw: Raw },
    PathChallenge { data: String },
    PathResponse { data: String },
    Unknown { frame_type_bytes: u64, raw: Raw },
}

/// Sizes of a packet, a frame's data or a datagram, in bytes.
#[derive(Serialize)]
pub(super) struct Raw {
    length: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_length: Option<usize>,
}

/// Packets that were received.
#[derive(Serialize)]
pub(super) struct AckData {
    ack_delay: f64,
    acked_ranges: Vec<Range>,
    #[serde(flatten)]
    ecn: Option<Ecn>,
}

/// One packet number, or the first and the last of several.
#[derive(Serialize)]
#[serde(untagged)]
enum Range {
    One([u64; 1]),
    Many([u64; 2]),
}

#[derive(Serialize)]
struct Ecn {
    ect0: u64,
    ect1: u64,
    ce: u64,
}

impl Raw {
    pub(super) const fn new(length: usize) -> Self {
        Self { length, payload_length: None }
    }

    pub(super) const fn with_payload(length: usize, payload_length: usize) -> Self {
        Self { length, payload_length: Some(payload_length) }
    }
}

impl From<&Ack<'_>> for AckData {
    fn from(ack: &Ack<'_>) -> Self {
        let range = |(low, high)| if low == high { Range::One([low]) } else { Range::Many([low, high]) };
        Self {
            ack_delay: ack.delay_micros() as f64 / 1e3,
            acked_ranges: ack.ranges().map(range).collect(),
            ecn: ack.ecn().map(|counts| Ecn { ect0: counts.ect0, ect1: counts.ect1, ce: counts.ce }),
        }
    }
}

impl From<Frame<'_>> for FrameData {
    fn from(frame: Frame<'_>) -> Self {
        // Codes are the application's own, so qlog has no name for them.
        let error = "unknown";
        match frame {
            Frame::Padding { len } => Self::Padding { raw: Raw::with_payload(len.into(), len.into()) },
            Frame::Ping => Self::Ping,
            Frame::Ack(ref ack) => Self::Ack(ack.into()),
            Frame::Close { code } => {
                Self::ConnectionClose { error_space: "transport", error, error_code: code }
            }
            Frame::CloseApp { code } => {
                Self::ConnectionClose { error_space: "application", error, error_code: code }
            }
            Frame::Datagram { len } => Self::Datagram { raw: Raw::new(len.into()) },
            Frame::ResetStream { stream, code, final_size } => {
                Self::ResetStream { stream_id: stream, error, error_code: code, final_size }
            }
            Frame::MaxStreamsBi { count } => {
                Self::MaxStreams { stream_type: "bidirectional", maximum: count }
            }
            Frame::MaxStreamsUni { count } => {
                Self::MaxStreams { stream_type: "unidirectional", maximum: count }
            }
            Frame::NewConnectionId { sequence, retire_prior_to, id } => {
                Self::NewConnectionId { sequence_number: sequence, retire_prior_to, connection_id: hex(id) }
            }
            Frame::RetireConnectionId { sequence } => Self::RetireConnectionId { sequence_number: sequence },
            Frame::Authorized => Self::Authorized,
            Frame::KeyShare(ref share) => Self::KeyShare {
                epoch: share.epoch,
                group: share.group,
                offset: share.offset,
                raw: Raw::new(share.piece.len()),
            },
            Frame::PathChallenge { token } => Self::PathChallenge { data: hex(ConnectionId(token)) },
            Frame::PathResponse { token } => Self::PathResponse { data: hex(ConnectionId(token)) },
            _ => of_stream(frame),
        }
    }
}

/// A frame about a stream, or one of an extension.
fn of_stream(frame: Frame<'_>) -> FrameData {
    match frame {
        Frame::Stream { stream, offset, len, fin } => {
            FrameData::Stream { stream_id: stream, offset, fin, raw: Raw::new(len.into()) }
        }
        Frame::StopSending { stream, code } => {
            FrameData::StopSending { stream_id: stream, error: "unknown", error_code: code }
        }
        Frame::MaxStreamData { stream, credit } => {
            FrameData::MaxStreamData { stream_id: stream, maximum: credit }
        }
        Frame::StreamBlocked { stream, credit } => {
            FrameData::StreamDataBlocked { stream_id: stream, limit: credit }
        }
        Frame::StreamHoles { stream, report, offset, len } => {
            FrameData::StreamHoles { stream_id: stream, report, offset, raw: Raw::new(len as usize) }
        }
        Frame::HolesTaken { stream, report } => FrameData::HolesTaken { stream_id: stream, report },
        frame => FrameData::Unknown { frame_type_bytes: frame.kind(), raw: Raw::new(frame.encoded_len()) },
    }
}

/// A connection id as qlog has it.
pub(super) fn hex(id: ConnectionId) -> String {
    format!("{id:?}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wraith_proto::wire::{AckRepr, EcnCounts, KeyShare, Reader, Writer};

    use super::*;

    fn shown(frame: Frame<'_>) -> serde_json::Value {
        serde_json::to_value(FrameData::from(frame)).unwrap()
    }

    #[test]
    fn acknowledgements_list_single_numbers_and_ranges_and_ecn_counts_where_there_are_any() {
        let show = |ecn| {
            let mut bytes = [0; 64];
            let mut writer = Writer::new(&mut bytes);
            let ranges = [(7, 9), (5, 5)].into_iter();
            AckRepr { ranges, delay_micros: 1500, ecn }.emit(&mut writer).unwrap();
            shown(Frame::parse(&mut Reader::new(&bytes)).unwrap())
        };
        let plain = json!({"frame_type": "ack", "ack_delay": 1.5, "acked_ranges": [[7, 9], [5]]});
        assert_eq!(show(None), plain);
        let marked = show(Some(EcnCounts { ect0: 3, ect1: 0, ce: 1 }));
        assert_eq!((&marked["ect0"], &marked["ect1"], &marked["ce"]), (&json!(3), &json!(0), &json!(1)));
    }

    #[test]
    fn frames_that_quic_has_are_shown_as_it_does() {
        for (frame, value) in [
            (
                Frame::Stream { stream: 6, offset: 1164, len: 1163, fin: true },
                json!({"frame_type": "stream", "stream_id": 6, "offset": 1164, "fin": true, "raw": {"length": 1163}}),
            ),
            (Frame::Datagram { len: 9 }, json!({"frame_type": "datagram", "raw": {"length": 9}})),
            (Frame::Ping, json!({"frame_type": "ping"})),
            (
                Frame::Padding { len: 3 },
                json!({"frame_type": "padding", "raw": {"length": 3, "payload_length": 3}}),
            ),
            (
                Frame::CloseApp { code: 8 },
                json!({"frame_type": "connection_close", "error_space": "application", "error": "unknown", "error_code": 8}),
            ),
            (
                Frame::Close { code: 1 },
                json!({"frame_type": "connection_close", "error_space": "transport", "error": "unknown", "error_code": 1}),
            ),
            (
                Frame::ResetStream { stream: 2, code: 4, final_size: 100 },
                json!({"frame_type": "reset_stream", "stream_id": 2, "error": "unknown", "error_code": 4, "final_size": 100}),
            ),
            (
                Frame::StopSending { stream: 2, code: 4 },
                json!({"frame_type": "stop_sending", "stream_id": 2, "error": "unknown", "error_code": 4}),
            ),
            (
                Frame::MaxStreamData { stream: 2, credit: 5 },
                json!({"frame_type": "max_stream_data", "stream_id": 2, "maximum": 5}),
            ),
            (
                Frame::StreamBlocked { stream: 2, credit: 5 },
                json!({"frame_type": "stream_data_blocked", "stream_id": 2, "limit": 5}),
            ),
            (
                Frame::MaxStreamsBi { count: 5 },
                json!({"frame_type": "max_streams", "stream_type": "bidirectional", "maximum": 5}),
            ),
            (
                Frame::MaxStreamsUni { count: 6 },
                json!({"frame_type": "max_streams", "stream_type": "unidirectional", "maximum": 6}),
            ),
            (
                Frame::NewConnectionId { sequence: 2, retire_prior_to: 1, id: ConnectionId([0xab; 8]) },
                json!({"frame_type": "new_connection_id", "sequence_number": 2, "retire_prior_to": 1,
                    "connection_id": "abababababababab"}),
            ),
            (
                Frame::RetireConnectionId { sequence: 1 },
                json!({"frame_type": "retire_connection_id", "sequence_number": 1}),
            ),
        ] {
            assert_eq!(shown(frame), value);
        }
    }

    #[test]
    fn challenges_and_their_answers_show_what_they_hold() {
        let data = "0a0a0a0a0a0a0a0a";
        let challenge = shown(Frame::PathChallenge { token: [0x0a; 8] });
        assert_eq!(challenge, json!({"frame_type": "path_challenge", "data": data}));
        let response = shown(Frame::PathResponse { token: [0x0a; 8] });
        assert_eq!(response, json!({"frame_type": "path_response", "data": data}));
    }

    #[test]
    fn frames_that_quic_lacks_have_names_of_their_own() {
        for (frame, value) in [
            (
                Frame::StreamHoles { stream: 2, report: 1, offset: 10, len: 20 },
                json!({"frame_type": "stream_holes", "stream_id": 2, "report": 1, "offset": 10, "raw": {"length": 20}}),
            ),
            (
                Frame::HolesTaken { stream: 2, report: 1 },
                json!({"frame_type": "holes_taken", "stream_id": 2, "report": 1}),
            ),
            (Frame::Authorized, json!({"frame_type": "authorized"})),
            (
                Frame::KeyShare(KeyShare::x25519(3, &[7; 32])),
                json!({"frame_type": "key_share", "epoch": 3, "group": 1, "offset": 0, "raw": {"length": 32}}),
            ),
            (
                Frame::Extension { kind: 0x40, body: b"abc" },
                json!({"frame_type": "unknown", "frame_type_bytes": 64, "raw": {"length": 6}}),
            ),
        ] {
            assert_eq!(shown(frame), value);
        }
    }
}
