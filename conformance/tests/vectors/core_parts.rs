//! The core's public parts against the vectors.

use std::net::SocketAddr;
use std::str::FromStr;

use serde_json::Value;
use wraith_conformance::vectors::{array, bytes};
use wraith_proto::crypto::{CryptoProvider, KeyMaterial, RustCrypto, Suite};
use wraith_proto::wire::{
    AckRepr, ConnectionId, CookiePacket, EcnCounts, FinishPacket, FinishRepr, Frame, Frames, HandshakeKind,
    InitPacket, InitRepr, KeyShare, PacketHeader, Params, ParamsWriter, ProtectedPacket, Reader,
    ResponsePacket, ResponseRepr, VersionsPacket, Writer, apply_mask, expand_number, split_body, unprotected,
    varint,
};
use wraith_proto::{Identity, PeerId};
use wraith_transfer_proto::{
    ChunkBits, Code, DeliveryHeader, Kind, ListId, Message, Ticket, Tree, chunk_value,
};

use super::{number, text, vectors};

/// `PROTO §3.1, §3.2`
#[test]
fn the_core_has_these_identities() {
    for vector in vectors("identity.json") {
        let (given, gives) = (&vector["given"], &vector["gives"]);
        if gives["refused"] == true {
            let id = PeerId::from_bytes(array(&given["peer_id"]));
            assert!(id.is_err(), "{}", vector["name"]);
            continue;
        }
        let id = Identity::from_seed(array(&given["seed"])).peer_id();
        assert_eq!(*id.as_bytes(), array(&gives["peer_id"]));
        assert_eq!(id.to_string(), text(&gives["text"]));
        assert_eq!(id.static_public(), array(&gives["static_public"]));
    }
}

/// `PROTO §5.1 to §5.7`
#[test]
fn the_core_seals_and_opens_these_packets() {
    let all = [vectors("packets.json"), vectors("rekey.json")].concat();
    let mut packets = 0;
    for vector in all {
        let (given, gives) = (&vector["given"], &vector["gives"]);
        let suite = given["suite"].as_u64().and_then(|suite| Suite::from_wire(suite as u16));
        if given.get("sample").is_some() {
            let mask = RustCrypto
                .header_key(suite.unwrap(), &array(&given["header_key"]))
                .mask(&array(&given["sample"]));
            assert_eq!(mask, array(&gives["mask"]));
            let mut header = bytes(&given["header"]);
            apply_mask(&mut header, mask);
            assert_eq!(header, bytes(&gives["protected_header"]));
        } else if given.get("body").is_some() {
            packets += 1;
            packet(suite.unwrap(), given, gives);
        }
    }
    assert!(packets >= 20, "{packets}");
}

fn packet(suite: Suite, given: &Value, gives: &Value) {
    let material = KeyMaterial { key: array(&given["packet_key"]), prefix: array(&given["nonce_prefix"]) };
    let (key, header_key) =
        (RustCrypto.key(suite, &material), RustCrypto.header_key(suite, &array(&given["header_key"])));
    let (full, first, body) =
        (number(&given["number"]), given["first"].as_u64().unwrap() as u8, bytes(&given["body"]));
    let (phase, _) = unprotected(first);
    let destination = ConnectionId(array(&given["destination"]));
    let header = PacketHeader { phase, ignored: first & 0x10 != 0, destination, number: full as u32 };
    assert_eq!(header.to_bytes(), array(&gives["header"]));
    let mut sealed = [&body[..], &[0; 16]].concat();
    key.seal_in_place(full, &header.to_bytes(), &mut sealed);
    assert_eq!(sealed, bytes(&gives["sealed"]));
    let mut datagram = [&header.to_bytes()[..], &sealed].concat();
    let mask = header_key.mask(ProtectedPacket::parse(&datagram).unwrap().sample());
    assert_eq!(mask, array(&gives["mask"]));
    apply_mask(&mut datagram, mask);
    assert_eq!(datagram, bytes(&gives["datagram"]));
    // And back, as a receiver that expects the number.
    assert_eq!(ProtectedPacket::parse(&datagram).unwrap().destination(), destination);
    apply_mask(&mut datagram, mask);
    assert_eq!(PacketHeader::parse(&datagram), Ok(header));
    assert_eq!(expand_number(full, header.number), full);
    let (aad, packet) = datagram.split_at_mut(13);
    assert_eq!(key.open_in_place(full, aad, packet), Ok(body.len()));
    assert!(split_body(&mut packet[..body.len()]).is_ok());
}

/// `PROTO §1.1, §6.1 to §6.8`
#[test]
fn the_core_writes_and_reads_these_frames() {
    for vector in vectors("frames.json") {
        let (name, given, gives) = (text(&vector["name"]), &vector["given"], &vector["gives"]);
        if gives["violation"] == true {
            assert!(Frames::new(&bytes(&given["frames"])).any(|frame| frame.is_err()), "{name}");
            continue;
        }
        let expected = bytes(&gives["bytes"]);
        let mut room = vec![0; 2000];
        let mut writer = Writer::new(&mut room);
        if name == "varint" {
            let value = number(&given["value"]);
            writer.varint(value).unwrap();
            assert_eq!(writer.written(), expected);
            assert_eq!(varint::read(&expected), Ok((value, &[][..])));
            continue;
        }
        let frame = Frame::parse(&mut Reader::new(&expected)).unwrap();
        frame.emit(&mut writer).unwrap();
        assert_eq!(writer.written(), expected, "{name}");
        assert_eq!(frame.encoded_len(), expected.len(), "{name}");
        if let Frame::Ack(ref ack) = frame {
            let pair = |range: &Value| (number(&range[0]), number(&range[1]));
            let ranges: Vec<(u64, u64)> =
                given["fields"]["ranges"].as_array().unwrap().iter().map(pair).collect();
            let count = |key| given["fields"].get(key).map(number);
            let ecn = count("ect0").map(|ect0| EcnCounts {
                ect0,
                ect1: count("ect1").unwrap(),
                ce: count("ce").unwrap(),
            });
            let repr = AckRepr { ranges: ranges.clone(), delay_micros: count("delay").unwrap(), ecn };
            let mut room = vec![0; 100];
            let mut writer = Writer::new(&mut room);
            repr.emit(&mut writer).unwrap();
            assert_eq!(writer.written(), expected);
            assert_eq!(ack.ranges().collect::<Vec<_>>(), ranges);
        } else {
            with_frame(name, &given["fields"], |built| assert_eq!(built, frame, "{name}"));
        }
    }
}

/// The frame of a vector's fields.
fn with_frame(name: &str, fields: &Value, then: impl FnOnce(Frame<'_>)) {
    let all = |key: &str| number(&fields[key]);
    let small = |key: &str| u32::try_from(all(key)).unwrap();
    let short = |key: &str| u16::try_from(all(key)).unwrap();
    let stream = if fields.get("stream").is_some() { small("stream") } else { 0 };
    let body = ["body", "piece", "id", "data"]
        .iter()
        .find_map(|key| fields.get(*key))
        .map(bytes)
        .unwrap_or_default();
    then(match name {
        "PADDING" => Frame::Padding { len: short("count") },
        "PING" => Frame::Ping,
        "AUTHORIZED" => Frame::Authorized,
        "CLOSE" => Frame::Close { code: small("code") },
        "CLOSE_APP" => Frame::CloseApp { code: small("code") },
        "DATAGRAM" => Frame::Datagram { len: short("length") },
        "STREAM" | "STREAM_FIN" => {
            Frame::Stream { stream, offset: all("offset"), len: short("length"), fin: name == "STREAM_FIN" }
        }
        "RESET_STREAM" => Frame::ResetStream { stream, code: small("code"), final_size: all("final_size") },
        "STOP_SENDING" => Frame::StopSending { stream, code: small("code") },
        "MAX_STREAM_DATA" => Frame::MaxStreamData { stream, credit: all("credit") },
        "STREAM_HOLES" => {
            Frame::StreamHoles { stream, report: all("report"), offset: all("offset"), len: all("length") }
        }
        "STREAM_BLOCKED" => Frame::StreamBlocked { stream, credit: all("credit") },
        "HOLES_TAKEN" => Frame::HolesTaken { stream, report: all("report") },
        "MAX_STREAMS_BI" => Frame::MaxStreamsBi { count: all("count") },
        "MAX_STREAMS_UNI" => Frame::MaxStreamsUni { count: all("count") },
        "NEW_CONNECTION_ID" => Frame::NewConnectionId {
            sequence: all("sequence"),
            retire_prior_to: all("retire_prior_to"),
            id: ConnectionId(body.try_into().unwrap()),
        },
        "RETIRE_CONNECTION_ID" => Frame::RetireConnectionId { sequence: all("sequence") },
        "PATH_CHALLENGE" => Frame::PathChallenge { token: body.try_into().unwrap() },
        "PATH_RESPONSE" => Frame::PathResponse { token: body.try_into().unwrap() },
        "KEY_SHARE" => Frame::KeyShare(KeyShare {
            epoch: small("epoch"),
            group: short("group"),
            total: short("total"),
            offset: short("offset"),
            piece: &body,
        }),
        "extension" => Frame::Extension { kind: short("type"), body: &body },
        other => panic!("{other}"),
    });
}

/// `PROTO §4.4`
#[test]
fn the_core_writes_and_reads_these_parameters() {
    let kind = |name: &str| match name.split(' ').next() {
        Some("INIT") => HandshakeKind::Init,
        Some("RESPONSE") => HandshakeKind::Response,
        _ => HandshakeKind::Finish,
    };
    let mut refused = 0;
    for vector in vectors("parameters.json") {
        let (name, given, gives) = (text(&vector["name"]), &vector["given"], &vector["gives"]);
        if gives["refused"] == true {
            let payload = bytes(&given["payload"]);
            let message = kind(text(&given["message"]));
            let taken = Params::parse(&payload).and_then(|params| params.require(message));
            assert!(taken.is_err(), "{name}");
            refused += 1;
            continue;
        }
        let payload = bytes(&gives["payload"]);
        let params = Params::parse(&payload).unwrap();
        assert_eq!(params.require(kind(name)), Ok(()), "{name}");
        let mut room = vec![0; payload.len()];
        let mut writer = ParamsWriter::new(&mut room);
        params.emit(&mut writer).unwrap();
        assert_eq!(room, payload, "{name}");
    }
    assert!(refused > 200, "{refused}");
}

/// `PROTO §2.3 to §2.5, §4.1`
#[test]
fn the_core_reads_these_handshake_datagrams() {
    for vector in vectors("handshake.json") {
        let (name, given, gives) = (text(&vector["name"]), &vector["given"], &vector["gives"]);
        let id = |key: &str| ConnectionId(array(&given[key]));
        let initiator = id("initiator_id");
        match name {
            "COOKIE" => {
                let datagram = bytes(&gives["datagram"]);
                let packet = CookiePacket::parse(&datagram).unwrap();
                assert_eq!((packet.destination(), *packet.cookie()), (initiator, array(&given["cookie"])));
                continue;
            }
            "VERSIONS" => {
                let datagram = bytes(&gives["datagram"]);
                let packet = VersionsPacket::parse(&datagram).unwrap();
                assert_eq!(packet.destination(), initiator);
                assert!(packet.versions().eq([1, 0x1a2a_3a4a]));
                continue;
            }
            "a refusal" => {}
            _ => initiators_messages(given, gives, initiator, id("responder_id")),
        }
        let datagram = bytes(&gives["response"]);
        let packet = ResponsePacket::parse(&datagram).unwrap();
        assert_eq!((packet.destination(), packet.source()), (initiator, id("responder_id")));
        let message_len = packet.message().len() as u16;
        let (destination, source) = (initiator, packet.source());
        let mut again = vec![0; datagram.len()];
        let at = ResponseRepr { version: 1, destination, source, message_len }.emit(&mut again).unwrap();
        again[at..].copy_from_slice(packet.message());
        assert_eq!(again, datagram);
    }
}

fn initiators_messages(given: &Value, gives: &Value, initiator: ConnectionId, responder: ConnectionId) {
    for (key, cookie) in [("init", [0; 16]), ("init_with_cookie", array(&given["cookie"]))] {
        let datagram = bytes(&gives[key]);
        let packet = InitPacket::parse(&datagram).unwrap();
        assert_eq!((packet.source(), *packet.cookie(), datagram.len()), (initiator, cookie, 1200));
        let message_len = packet.message().len() as u16;
        let mut again = vec![0; datagram.len()];
        let at = InitRepr { version: 1, source: initiator, cookie, message_len }.emit(&mut again).unwrap();
        again[at..].copy_from_slice(packet.message());
        assert_eq!(again, datagram);
    }
    let datagram = bytes(&gives["finish"]);
    let packet = FinishPacket::parse(&datagram).unwrap();
    assert_eq!((packet.destination(), packet.source(), packet.len()), (responder, initiator, datagram.len()));
    let mac = blake3::keyed_hash(&array(&gives["finish_mac_key"]), packet.authenticated());
    assert_eq!(packet.mac()[..], mac.as_bytes()[..16]);
    let message_len = packet.message().len() as u16;
    let repr = FinishRepr { version: 1, destination: responder, source: initiator, message_len };
    let mut again = vec![0; datagram.len()];
    let at = repr.emit(&mut again).unwrap();
    assert_eq!(again[..at], datagram[..at]);
    let whole = bytes(&gives["finish_with_first_packet"]);
    assert_eq!(FinishPacket::parse(&whole).unwrap().len(), datagram.len());
    assert_eq!(ProtectedPacket::parse(&whole[datagram.len()..]).unwrap().destination(), responder);
    let answer = bytes(&gives["responder_first_packet"]);
    assert_eq!(ProtectedPacket::parse(&answer).unwrap().destination(), initiator);
}

/// `PROTO §11.1 to §11.5`
#[test]
fn tickets_have_this_text() {
    for vector in vectors("ticket.json") {
        let (name, given, gives) = (text(&vector["name"]), &vector["given"], &vector["gives"]);
        if gives["refused"] == true {
            assert!(Ticket::from_str(text(&given["text"])).is_err(), "{name}");
            continue;
        }
        let addresses = given["addresses"].as_array().unwrap();
        let ticket = Ticket {
            kind: if given["kind"] == 0 { Kind::File } else { Kind::Folder },
            hash: array(&given["content_id"]),
            size: number(&given["size"]),
            name: text(&given["name"]).to_owned(),
            peer: PeerId::from_bytes(array(&given["peer_id"])).unwrap(),
            token: array(&given["token"]),
            addresses: addresses.iter().map(|addr| text(addr).parse::<SocketAddr>().unwrap()).collect(),
        };
        assert_eq!(ticket.encode().as_deref(), Ok(text(&gives["text"])), "{name}");
        assert_eq!(Ticket::from_str(text(&gives["text"])), Ok(ticket), "{name}");
    }
}

/// `PROTO §10.3, §10.11, §10.15`
#[test]
fn transfer_messages_have_these_bytes() {
    for vector in vectors("transfer.json") {
        let (name, given, gives) = (text(&vector["name"]), &vector["given"], &vector["gives"]);
        if let Some(code) = gives.get("close_app") {
            let violation = Message::decode(&bytes(&given["message"])).unwrap_err();
            assert_eq!(u64::from(violation.code()), code.as_u64().unwrap(), "{name}");
            continue;
        }
        let (fields, expected) = (&given["fields"], bytes(&gives["bytes"]));
        if name == "header of a delivery" {
            let all = |key: &str| number(&given[key]);
            let header = DeliveryHeader {
                transfer: all("transfer") as u32,
                len: all("length") as u32,
                chunk: all("chunk"),
            };
            assert_eq!(header.encode()[..], expected);
            continue;
        }
        let (len, body) = varint::read(&expected).unwrap();
        assert_eq!(len, body.len() as u64, "{name}");
        with_message(name, fields, |message| {
            let mut encoded = Vec::new();
            message.encode(&mut encoded);
            assert_eq!(encoded, expected, "{name}");
            assert_eq!(Message::decode(body), Ok(Some(message)), "{name}");
        });
    }
}

/// The message of a vector's fields.
fn with_message(name: &str, fields: &Value, then: impl FnOnce(Message<'_>)) {
    let transfer = u32::try_from(number(&fields["transfer"])).unwrap();
    let long = ["top", "values"].iter().find_map(|key| fields.get(*key)).map(bytes).unwrap_or_default();
    let list = || ListId { level: fields["level"].as_u64().unwrap() as u8, index: number(&fields["index"]) };
    let code = || Code(number(&fields["code"]) as u32);
    then(match name {
        "Get" => Message::Get {
            transfer,
            kind: if fields["kind"] == 0 { Kind::File } else { Kind::Folder },
            hash: array(&fields["content_id"]),
            token: array(&fields["token"]),
        },
        "Offer" => Message::Offer {
            transfer,
            size: number(&fields["size"]),
            complete: fields["complete"] == 1,
            top: &long,
        },
        "GetList" => Message::GetList { transfer, list: list() },
        "List" => Message::List { transfer, list: list(), values: &long },
        "Want" => {
            let mut chunks = ChunkBits::of(number(&fields["first"]));
            let mut others = fields["chunks"].as_array().unwrap().iter().map(number);
            assert!(others.all(|chunk| chunks.insert(chunk)));
            Message::Want { transfer, chunks }
        }
        "Done" => Message::Done { transfer, hash: array(&fields["content_id"]) },
        "DoneAck" => Message::DoneAck { transfer },
        "Refused" => Message::Refused { transfer, code: code() },
        "Cancel" => Message::Cancel { transfer, code: code() },
        other => panic!("{other}"),
    });
}

/// `PROTO §10.2, §10.4`
#[test]
fn contents_have_these_values() {
    for vector in vectors("content.json") {
        let size = vector["given"]["size"].as_u64().unwrap();
        let content: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
        let values: Vec<[u8; 32]> = vector["gives"]["values"].as_array().unwrap().iter().map(array).collect();
        let tree = Tree::of(&content).unwrap();
        assert_eq!(tree.hash(), array(&vector["gives"]["content_id"]), "{size}");
        assert_eq!(tree.top_list(), values.concat(), "{size}");
        for (index, (chunk, value)) in content.chunks(1 << 20).zip(&values).enumerate() {
            assert_eq!(chunk_value(index as u64, chunk), Ok(*value));
        }
    }
}
