//! Two endpoints whose datagrams the test carries itself: what no link does.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use wraith_proto::wire::{
    AckRepr, ConnectionId, Frame, Frames, KeyShare, PACKET_HEADER_LEN, PacketHeader, Writer, is_handshake,
    split_body,
};
use wraith_proto::{
    Budget, CloseReason, Config, Dir, Ecn, Endpoint, Event, Identity, Instant, NoSource, OneShot, Payload,
    Peer, Progress, RxMeta, SessionHandle, StreamId, TxStatus, Via,
};
use wraith_sim::{LEFT, RIGHT, Transparent};

use crate::support::MS;

/// One end and what it has sent.
struct End {
    endpoint: Endpoint,
    addr: SocketAddr,
    session: Option<SessionHandle>,
    sent: VecDeque<(Vec<u8>, Ecn)>,
    events: Vec<Event>,
    received: u64,
    /// Numbers of the packets sent.
    numbers: Vec<u64>,
    /// Where they went.
    destination: Option<ConnectionId>,
}

impl End {
    fn new(addr: SocketAddr, seed: u8, now: Instant) -> Self {
        let mut config = Config::new(Identity::from_seed([seed; 32]), b"by-hand");
        config.crypto = Transparent::ACCEPT_ANY;
        let endpoint = Endpoint::new(config, [seed + 100; 32], now).unwrap();
        Self {
            endpoint,
            addr,
            session: None,
            sent: VecDeque::new(),
            events: Vec::new(),
            received: 0,
            numbers: Vec::new(),
            destination: None,
        }
    }

    fn turn(&mut self, now: Instant) {
        while self.endpoint.handle_timeout(now, Budget::UNLIMITED) == Progress::More {}
        loop {
            let mut buffer = [0; 1500];
            let mut queue = OneShot::new(&mut buffer);
            let status = self.endpoint.poll_transmit(now, &mut queue, &mut NoSource, Budget(1));
            if let Some((meta, datagram)) = queue.take() {
                if !is_handshake(datagram) {
                    let header = PacketHeader::parse(datagram).unwrap();
                    self.numbers.push(header.number.into());
                    self.destination = Some(header.destination);
                }
                self.sent.push_back((datagram.to_vec(), meta.ecn));
            } else {
                assert_eq!(status, TxStatus::Idle);
                break;
            }
        }
        while let Some((session, event)) = self.endpoint.poll_event() {
            self.session = Some(session);
            self.events.push(event);
        }
    }

    fn take(&mut self, now: Instant, from: SocketAddr, datagram: &[u8], ecn: Ecn) {
        let meta = RxMeta { from, to: Some(self.addr.ip()), via: Via::default(), ecn };
        let mut bytes = datagram.to_vec();
        let mut received = self.endpoint.handle(now, &meta, &mut bytes);
        while let Some(payload) = received.next() {
            if let Payload::Stream { data, .. } = payload {
                self.received += data.len() as u64;
            }
        }
    }

    /// Hands a datagram in and takes nothing of it.
    fn refuse(&mut self, now: Instant, from: SocketAddr, datagram: &[u8], ecn: Ecn) {
        let meta = RxMeta { from, to: Some(self.addr.ip()), via: Via::default(), ecn };
        drop(self.endpoint.handle(now, &meta, &mut datagram.to_vec()));
    }

    fn write(&mut self, stream: StreamId, len: usize) -> bool {
        let mut session = self.endpoint.session(self.session.unwrap()).unwrap();
        session.write(stream, Bytes::from(vec![7; len])).is_ok()
    }

    /// The frames of the packets that wait to be carried.
    fn seen(&self) -> Vec<Seen> {
        self.sent.iter().flat_map(|(packet, _)| frames_of(packet)).collect()
    }

    fn open(&mut self) -> StreamId {
        self.endpoint.session(self.session.unwrap()).unwrap().open(Dir::Uni).unwrap()
    }
}

struct Hands {
    now: Instant,
    left: End,
    right: End,
    /// What becomes of marks on the way to the right.
    ecn: fn(Ecn) -> Ecn,
}

impl Hands {
    /// Connected, and at rest.
    fn new() -> Self {
        let now = Instant::from_nanos(1_000_000_000);
        let mut hands =
            Self { now, left: End::new(LEFT, 1, now), right: End::new(RIGHT, 2, now), ecn: |mark| mark };
        let peer = Peer { addr: RIGHT, id: Some(hands.right.endpoint.config().identity.peer_id()) };
        hands.left.endpoint.connect(now, peer, Via::default()).unwrap();
        for _ in 0..40 {
            hands.exchange();
        }
        assert_eq!(hands.left.events, [Event::Connected]);
        hands
    }

    /// Both ends act, and what they send arrives 10 ms later.
    fn exchange(&mut self) {
        self.left.turn(self.now);
        self.right.turn(self.now);
        self.now = self.now.saturating_add(MS(10));
        while let Some((datagram, ecn)) = self.left.sent.pop_front() {
            self.right.take(self.now, LEFT, &datagram, (self.ecn)(ecn));
        }
        while let Some((datagram, ecn)) = self.right.sent.pop_front() {
            self.left.take(self.now, RIGHT, &datagram, ecn);
        }
    }

    fn lost(&self) -> u64 {
        self.left.endpoint.stats().packets_lost
    }
}

/// `PROTO §8.9`: for 5 seconds nobody calls the sender, while acknowledgements lie in its socket; whichever verb comes
/// first afterwards, nothing is declared lost, and nothing is sent twice.
#[test]
fn time_in_which_nobody_called_is_no_evidence_of_loss() {
    for timers_first in [false, true] {
        let mut hands = Hands::new();
        let stream = hands.left.open();
        assert!(hands.left.write(stream, 3_300));
        for _ in 0..20 {
            hands.left.turn(hands.now);
            hands.now = hands.now.saturating_add(MS(1));
        }
        assert_eq!(hands.left.sent.len(), 3);
        // The first packet arrives last: time alone could tell it from a lost one.
        hands.now = hands.now.saturating_add(MS(10));
        let late: Vec<_> = hands.left.sent.drain(..1).collect();
        while let Some((datagram, ecn)) = hands.left.sent.pop_front() {
            hands.right.take(hands.now, LEFT, &datagram, ecn);
            hands.right.turn(hands.now);
        }
        for (datagram, ecn) in late {
            hands.right.take(hands.now, LEFT, &datagram, ecn);
            hands.right.turn(hands.now);
        }
        hands.now = hands.now.saturating_add(Duration::from_secs(5));
        let window = |hands: &mut Hands| {
            let session = hands.left.session.unwrap();
            hands.left.endpoint.session(session).unwrap().stats().congestion_window
        };
        let before = window(&mut hands);
        let sent = hands.left.endpoint.stats().datagrams_sent;
        if timers_first {
            hands.left.turn(hands.now);
        }
        // The first answer shows a packet missing; a turn follows each, as with a small budget.
        let answers: Vec<_> = hands.right.sent.drain(..).collect();
        assert!(answers.len() >= 2);
        for (answer, ecn) in answers {
            hands.left.take(hands.now, RIGHT, &answer, ecn);
            assert_eq!(hands.lost(), 0, "timers first: {timers_first}");
            hands.left.turn(hands.now);
            assert_eq!(hands.lost(), 0, "timers first: {timers_first}");
        }
        let resent = hands.left.endpoint.stats().datagrams_sent - sent;
        assert!(resent <= 1, "nothing is repeated; {resent} datagrams");
        assert!(window(&mut hands) >= before);
        assert!(hands.left.events.contains(&Event::Connected));
    }
}

/// `PROTO §8.9`: the timer restarts once; if nothing was in the socket, the data are sent again.
#[test]
fn after_a_pause_the_loss_timer_restarts_once() {
    let mut hands = Hands::new();
    let stream = hands.left.open();
    assert!(hands.left.write(stream, 3_000));
    hands.left.turn(hands.now);
    hands.left.sent.clear();
    hands.now = hands.now.saturating_add(Duration::from_secs(5));
    hands.left.turn(hands.now);
    assert!(hands.left.sent.is_empty(), "no probe at once");
    let deadline = hands.left.endpoint.poll_timeout().unwrap().at;
    assert!(deadline > hands.now && deadline < hands.now.saturating_add(MS(500)), "{deadline:?}");
    // The caller is late again: now it counts.
    hands.now = deadline.saturating_add(Duration::from_secs(5));
    hands.left.turn(hands.now);
    assert!(!hands.left.sent.is_empty(), "a probe");
    for _ in 0..100 {
        hands.exchange();
    }
    assert_eq!(hands.right.received, 3_000);
}

/// `PROTO §8.8`: a path that takes the marks away gets none any more.
#[test]
fn marking_ends_on_a_path_that_bleaches() {
    for bleaches in [false, true] {
        let mut hands = Hands::new();
        if bleaches {
            hands.ecn = |_| Ecn::NotEct;
        }
        let stream = hands.left.open();
        let mut marked = 0;
        for round in 0..60 {
            hands.left.write(stream, 1_000);
            hands.left.turn(hands.now);
            let marks = hands.left.sent.iter().filter(|(_, ecn)| *ecn == Ecn::Ect0).count();
            marked += if round >= 30 { marks } else { 0 };
            hands.exchange();
        }
        assert_eq!(marked > 0, !bleaches, "{marked} marked packets");
        assert_eq!(hands.left.events, [Event::Connected], "the session goes on");
    }
}

/// An unencrypted packet with these frames, as if the left end had sent it to the right one.
fn forge(hands: &Hands, frames: &[Frame<'_>]) -> Vec<u8> {
    forge_with(hands, |writer| frames.iter().for_each(|frame| frame.emit(writer).unwrap()), frames)
}

fn forge_with(hands: &Hands, emit: impl FnOnce(&mut Writer<'_>), frames: &[Frame<'_>]) -> Vec<u8> {
    let mut room = [0; 400];
    let mut writer = Writer::new(&mut room);
    emit(&mut writer);
    let len = writer.len();
    let destination = hands.left.destination.expect("a packet was sent");
    let number = *hands.left.numbers.last().unwrap() as u32 + 50;
    let header = PacketHeader { phase: 0, ignored: false, destination, number };
    let mut packet = header.to_bytes().to_vec();
    let payload: usize = frames.iter().map(Frame::data_len).sum();
    packet.resize(packet.len() + payload, 7);
    packet.extend_from_slice(&room[..len]);
    packet.extend_from_slice(&(len as u16).to_be_bytes());
    packet.resize(packet.len() + 16, 0);
    packet
}

/// What the right end says of a session in which these packets arrived.
fn verdict(prepare: impl FnOnce(&mut Hands), packets: &[&[Frame<'_>]]) -> Option<CloseReason> {
    let mut hands = Hands::new();
    prepare(&mut hands);
    for frames in packets {
        let packet = forge(&hands, frames);
        hands.left.numbers.push(hands.left.numbers.last().unwrap() + 50);
        hands.right.take(hands.now, LEFT, &packet, Ecn::NotEct);
    }
    hands.right.turn(hands.now);
    hands.right.events.iter().find_map(|event| match *event {
        Event::Closed(reason) => Some(reason),
        _ => None,
    })
}

const VIOLATION: Option<CloseReason> = Some(CloseReason::Violation);

/// A unidirectional stream of the left end, and one of the right end.
const OWN: u32 = 2;
const THEIRS: u32 = 3;

fn data(stream: u32, offset: u64, len: u16, fin: bool) -> Frame<'static> {
    Frame::Stream { stream, offset, len, fin }
}

/// `PROTO §7.1`: what the peer may open and name.
#[test]
fn streams_beyond_the_limit_or_of_the_wrong_kind_are_violations() {
    let nothing = |_: &mut Hands| ();
    assert_eq!(verdict(nothing, &[&[data(OWN, 0, 5, false)]]), None);
    assert_eq!(verdict(nothing, &[&[data(255 * 4 + OWN, 0, 5, false)]]), None, "the 256th");
    assert_eq!(verdict(nothing, &[&[data(256 * 4 + OWN, 0, 5, false)]]), VIOLATION);
    assert_eq!(verdict(nothing, &[&[data(THEIRS, 0, 5, false)]]), VIOLATION);
    assert_eq!(verdict(nothing, &[&[data(1, 0, 5, false)]]), VIOLATION, "not opened by the right end");
    assert_eq!(verdict(nothing, &[&[Frame::MaxStreamData { stream: 1, credit: 5 }]]), VIOLATION);
    assert_eq!(verdict(nothing, &[&[Frame::StopSending { stream: OWN, code: 5 }]]), VIOLATION);
    let opened = |hands: &mut Hands| {
        hands.right.open();
    };
    assert_eq!(verdict(opened, &[&[Frame::MaxStreamData { stream: THEIRS, credit: 5 }]]), None);
    assert_eq!(verdict(opened, &[&[data(THEIRS, 0, 5, false)]]), VIOLATION, "only the right end sends there");
}

/// `PROTO §7.2`
#[test]
fn data_beyond_the_credit_are_a_violation() {
    let credit = 1 << 20;
    assert_eq!(verdict(|_| (), &[&[data(OWN, credit - 5, 5, false)]]), None);
    assert_eq!(verdict(|_| (), &[&[data(OWN, credit - 5, 6, false)]]), VIOLATION);
    let reset = |final_size| Frame::ResetStream { stream: OWN, code: 0, final_size };
    assert_eq!(verdict(|_| (), &[&[reset(credit)]]), None);
    assert_eq!(verdict(|_| (), &[&[reset(credit + 1)]]), VIOLATION);
}

/// `PROTO §5.15`, `PROTO §6.8`
#[test]
fn a_share_that_does_not_fit_the_exchange_is_a_violation() {
    let share =
        |epoch, byte: u8| Frame::KeyShare(KeyShare::x25519(epoch, [&[1; 32], &[2; 32]][usize::from(byte)]));
    let whole = KeyShare::x25519(1, &[1; 32]);
    let violation = Some(CloseReason::Violation);
    assert_eq!(verdict(|_| {}, &[&[share(1, 0)], &[share(1, 0)]]), None);
    assert_eq!(verdict(|_| {}, &[&[share(0, 0)]]), violation, "nobody sends a share for the first epoch");
    assert_eq!(verdict(|_| {}, &[&[share(2, 0)]]), violation);
    assert_eq!(verdict(|_| {}, &[&[share(1, 0), share(1, 1)]]), violation);
    assert_eq!(verdict(|_| {}, &[&[share(1, 0)], &[share(2, 0)]]), violation);
    for odd in [
        KeyShare { group: 2, ..whole },
        KeyShare { total: 64, ..whole },
        KeyShare { total: 64, offset: 32, ..whole },
        KeyShare { total: 31, piece: &[1; 31], ..whole },
    ] {
        assert_eq!(verdict(|_| {}, &[&[Frame::KeyShare(odd)]]), violation, "{odd:?}");
    }
}

/// `PROTO §7.3`
#[test]
fn a_final_size_that_cannot_be_is_a_violation() {
    let reset = |final_size| Frame::ResetStream { stream: OWN, code: 0, final_size };
    let fin = data(OWN, 10, 10, true);
    assert_eq!(verdict(|_| (), &[&[fin], &[data(OWN, 0, 10, false)]]), None);
    assert_eq!(verdict(|_| (), &[&[fin], &[fin]]), None, "repeated");
    assert_eq!(verdict(|_| (), &[&[fin], &[reset(20)]]), None);
    assert_eq!(verdict(|_| (), &[&[fin], &[reset(21)]]), VIOLATION);
    assert_eq!(verdict(|_| (), &[&[fin], &[data(OWN, 0, 19, true)]]), VIOLATION);
    assert_eq!(verdict(|_| (), &[&[fin], &[data(OWN, 19, 2, false)]]), VIOLATION);
    assert_eq!(verdict(|_| (), &[&[data(OWN, 0, 20, false)], &[data(OWN, 0, 19, true)]]), VIOLATION);
    assert_eq!(verdict(|_| (), &[&[data(OWN, 0, 20, false)], &[reset(19)]]), VIOLATION);
}

fn ack(hands: &Hands, ranges: &[(u64, u64)]) -> Vec<u8> {
    let emit = |writer: &mut Writer<'_>| {
        let ack = AckRepr { ranges: ranges.iter().copied(), delay_micros: 0, ecn: None };
        ack.emit(writer).unwrap();
    };
    forge_with(hands, emit, &[])
}

/// `PROTO §8.7`: whoever acknowledges a number that was skipped, or not sent yet, has not received what it claims.
#[test]
fn an_ack_of_a_number_that_was_not_sent_closes() {
    let closes = |numbers: fn(&[u64], u64) -> (u64, u64)| {
        let mut hands = Hands::new();
        // The right end sends, so that the forged ACK of the left one speaks of these packets.
        let stream = hands.right.open();
        let mut skipped = None;
        while skipped.is_none() {
            hands.right.write(stream, 500);
            hands.exchange();
            let numbers = &hands.right.numbers;
            skipped = numbers.windows(2).find(|pair| pair[1] == pair[0] + 2).map(|pair| pair[0] + 1);
        }
        let range = numbers(&hands.right.numbers, skipped.unwrap());
        let packet = ack(&hands, &[range]);
        hands.right.take(hands.now, LEFT, &packet, Ecn::NotEct);
        hands.right.turn(hands.now);
        hands.right.events.contains(&Event::Closed(CloseReason::Violation))
    };
    assert!(!closes(|numbers, _| (*numbers.last().unwrap(), *numbers.last().unwrap())));
    assert!(closes(|numbers, _| (*numbers.last().unwrap() + 1, *numbers.last().unwrap() + 1)));
    assert!(closes(|_, skipped| (skipped, skipped)));
    assert!(closes(|_, skipped| (skipped - 1, skipped + 1)), "within a range, too");
}

/// `PROTO §8.4`: 64 packets share one ACK, the 65th never waits.
#[test]
fn no_more_than_64_packets_share_an_ack() {
    let mut hands = Hands::new();
    let stream = hands.left.open();
    let (mut waiting, mut most) = (0, 0);
    for _ in 0..3_000 {
        hands.left.write(stream, 900);
        hands.left.turn(hands.now);
        hands.now = hands.now.saturating_add(Duration::from_micros(20));
        while let Some((datagram, ecn)) = hands.left.sent.pop_front() {
            hands.right.take(hands.now, LEFT, &datagram, ecn);
            waiting += 1;
            most = most.max(waiting);
            hands.right.turn(hands.now);
            while let Some((answer, ecn)) = hands.right.sent.pop_front() {
                waiting = 0;
                hands.left.take(hands.now, RIGHT, &answer, ecn);
            }
        }
    }
    assert!(most <= 64, "{most}");
}

/// `PROTO §7.5`: nothing from the first refused packet on is acknowledged until its report was.
#[test]
fn refused_packets_are_acknowledged_only_after_their_report() {
    let mut hands = Hands::new();
    let stream = hands.left.open();
    hands.left.write(stream, 500);
    hands.left.turn(hands.now);
    let first = *hands.left.numbers.last().unwrap();
    let (datagram, ecn) = hands.left.sent.pop_front().unwrap();
    hands.right.refuse(hands.now, LEFT, &datagram, ecn);
    hands.left.write(stream, 500);
    hands.left.turn(hands.now);
    let (datagram, ecn) = hands.left.sent.pop_front().unwrap();
    hands.right.take(hands.now, LEFT, &datagram, ecn);
    hands.now = hands.now.saturating_add(MS(30));
    hands.right.turn(hands.now);
    let packets: Vec<Vec<u8>> = hands.right.sent.iter().map(|(packet, _)| packet.clone()).collect();
    let mut reports = 0;
    for packet in &packets {
        for frame in frames_of(packet) {
            match frame {
                Seen::Acked(largest) => assert!(largest < first, "{largest} from {first} on"),
                Seen::Report(number, offset, len) => {
                    reports += 1;
                    assert_eq!((number, offset, len), (1, 0, 500));
                }
                Seen::Taken(_) | Seen::Other => {}
            }
        }
    }
    assert_eq!(reports, 1);
    // The report gets lost: it is repeated, identical.
    hands.right.sent.clear();
    hands.now = hands.now.saturating_add(MS(200));
    hands.right.turn(hands.now);
    hands.now = hands.now.saturating_add(MS(400));
    hands.right.turn(hands.now);
    let again = hands.right.sent.iter().flat_map(|(packet, _)| frames_of(packet));
    assert!(again.into_iter().any(|frame| frame == Seen::Report(1, 0, 500)));
    // Once it has arrived, everything is acknowledged, and what was refused waits for the grant.
    for _ in 0..20 {
        hands.exchange();
    }
    assert_eq!(hands.right.received, 500, "the second half");
    let session = hands.right.session.unwrap();
    hands.right.endpoint.session(session).unwrap().grant(stream, 0).unwrap();
    for _ in 0..20 {
        hands.exchange();
    }
    assert_eq!((hands.right.received, hands.lost()), (1_000, 0));
}

/// Connected ends; the left one has sent 500 bytes and the end of a stream, which the right one has refused.
fn refused_stream() -> (Hands, StreamId) {
    let mut hands = Hands::new();
    let stream = hands.left.open();
    hands.left.write(stream, 500);
    hands.left.endpoint.session(hands.left.session.unwrap()).unwrap().finish(stream).unwrap();
    hands.left.turn(hands.now);
    let (datagram, ecn) = hands.left.sent.pop_front().unwrap();
    hands.right.refuse(hands.now, LEFT, &datagram, ecn);
    (hands, stream)
}

/// `PROTO §7.5`: a reset settles the report even of a stream that was stopped when its end had come.
#[test]
fn the_reset_of_a_stopped_stream_lets_acknowledgements_flow() {
    let (mut hands, stream) = refused_stream();
    let first = *hands.left.numbers.last().unwrap();
    hands.right.turn(hands.now);
    hands.right.sent.clear();
    hands.right.endpoint.session(hands.right.session.unwrap()).unwrap().stop(stream, 8).unwrap();
    let reset = Frame::ResetStream { stream: stream.as_u32(), code: 8, final_size: 500 };
    let packet = forge(&hands, &[reset]);
    hands.right.take(hands.now, LEFT, &packet, Ecn::NotEct);
    hands.right.turn(hands.now);
    let acked =
        hands.right.seen().iter().any(|seen| matches!(*seen, Seen::Acked(largest) if largest > first));
    assert!(acked, "{:?}", hands.right.seen());
}

/// `PROTO §7.5, §7.8`: a sender that waits for a grant gets it or hears that it should stop, even if its end came meanwhile.
#[test]
fn a_stopped_stream_does_not_leave_its_sender_waiting() {
    let mut hands = Hands::new();
    let stream = hands.left.open();
    hands.left.write(stream, 500);
    hands.left.turn(hands.now);
    let (first, ecn) = hands.left.sent.pop_front().unwrap();
    hands.left.endpoint.session(hands.left.session.unwrap()).unwrap().finish(stream).unwrap();
    hands.left.turn(hands.now);
    let (last, _) = hands.left.sent.pop_front().unwrap();
    hands.right.refuse(hands.now, LEFT, &first, ecn);
    hands.right.turn(hands.now);
    while let Some((datagram, ecn)) = hands.right.sent.pop_front() {
        hands.left.take(hands.now, RIGHT, &datagram, ecn);
    }
    hands.right.endpoint.session(hands.right.session.unwrap()).unwrap().stop(stream, 8).unwrap();
    hands.right.turn(hands.now);
    hands.right.sent.clear();
    hands.right.take(hands.now, LEFT, &last, ecn);
    for _ in 0..60 {
        hands.exchange();
    }
    let ends = [Event::Stopped { stream, code: 8 }, Event::Delivered(stream)];
    assert!(hands.left.events.last().is_some_and(|last| ends.contains(last)), "{:?}", hands.left.events);
}

/// `PROTO §7.5`: the sender answers each report, whatever became of the stream.
#[test]
fn a_report_for_a_stream_that_was_reset_is_taken() {
    let (mut hands, stream) = refused_stream();
    hands.left.endpoint.session(hands.left.session.unwrap()).unwrap().reset(stream, 9).unwrap();
    hands.right.turn(hands.now);
    while let Some((datagram, ecn)) = hands.right.sent.pop_front() {
        hands.left.take(hands.now, RIGHT, &datagram, ecn);
    }
    hands.left.turn(hands.now);
    assert!(hands.left.seen().contains(&Seen::Taken(1)), "{:?}", hands.left.seen());
}

/// `PROTO §7.5`: a reset is repeated until it arrives, though all that was sent before is acknowledged.
#[test]
fn a_reset_behind_refused_bytes_arrives_in_the_end() {
    let (mut hands, stream) = refused_stream();
    hands.right.turn(hands.now);
    hands.left.endpoint.session(hands.left.session.unwrap()).unwrap().reset(stream, 9).unwrap();
    hands.left.turn(hands.now);
    hands.left.sent.clear();
    for _ in 0..60 {
        hands.exchange();
    }
    assert_eq!(hands.left.events, [Event::Connected]);
    assert_eq!(hands.right.events.last(), Some(&Event::Reset { stream, code: 9 }));
}

/// `PROTO §7.5`: two ends that refuse withhold each other's acknowledgements, which leaves no window.
#[test]
fn reports_are_answered_when_the_congestion_window_is_full() {
    let (mut hands, _) = refused_stream();
    let bulk = hands.left.open();
    while hands.left.write(bulk, 10_000) {}
    for _ in 0..30 {
        hands.now = hands.now.saturating_add(MS(1));
        hands.left.turn(hands.now);
    }
    hands.left.sent.clear();
    hands.right.turn(hands.now);
    while let Some((datagram, ecn)) = hands.right.sent.pop_front() {
        hands.left.take(hands.now, RIGHT, &datagram, ecn);
    }
    hands.left.turn(hands.now);
    assert!(hands.left.seen().contains(&Seen::Taken(1)), "{:?}", hands.left.seen());
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Seen {
    Acked(u64),
    Report(u64, u64, u64),
    Taken(u64),
    Other,
}

fn frames_of(packet: &[u8]) -> Vec<Seen> {
    let mut body = packet[PACKET_HEADER_LEN..packet.len() - 16].to_vec();
    let (_, frames) = split_body(&mut body).unwrap();
    let seen = |frame: Frame<'_>| match frame {
        Frame::Ack(ref ack) => Seen::Acked(ack.largest()),
        Frame::StreamHoles { report, offset, len, .. } => Seen::Report(report, offset, len),
        Frame::HolesTaken { report, .. } => Seen::Taken(report),
        _ => Seen::Other,
    };
    Frames::new(frames).flatten().map(seen).collect()
}
