//! What an authenticated peer may send, and what a caller may set: nothing of it panics, allocates or goes on for ever.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use wraith_proto::wire::{
    AckRepr, ConnectionId, EcnCounts, Frame, Frames, PACKET_HEADER_LEN, PacketHeader, Reader, Writer,
    is_handshake, split_body,
};
use wraith_proto::{
    Budget, CloseReason, Config, Dir, Ecn, Endpoint, Event, Identity, Instant, Limits, OneShot, Payload,
    Peer, Policy, Progress, RxMeta, SessionHandle, Source, StreamId, Transport, Via,
};
use wraith_sim::alloc::{Counting, measure};
use wraith_sim::{LEFT, RIGHT, Rng, Transparent};

#[global_allocator]
static ALLOCATOR: Counting = Counting::new();

const NOW: Instant = Instant::from_nanos(1_000_000_000);

struct Sevens;

impl Source for Sevens {
    fn fill(&mut self, _: SessionHandle, _: StreamId, _: u64, buf: &mut [u8]) -> usize {
        buf.fill(7);
        buf.len()
    }
}

struct End {
    endpoint: Endpoint,
    addr: SocketAddr,
    session: Option<SessionHandle>,
    events: Vec<Event>,
    sent: Vec<Vec<u8>>,
    /// Where its packets go, and the number of the last.
    destination: Option<ConnectionId>,
    number: u32,
    received: u64,
    buffer: Vec<u8>,
}

impl End {
    fn new(addr: SocketAddr, name: u8, now: Instant, change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::new(Identity::from_seed([name; 32]), b"hostile");
        config.crypto = Transparent::ACCEPT_ANY;
        change(&mut config);
        Self {
            endpoint: Endpoint::new(config, [name; 32], now).unwrap(),
            addr,
            session: None,
            events: Vec::new(),
            sent: Vec::new(),
            destination: None,
            number: 0,
            received: 0,
            buffer: vec![0; 65_535],
        }
    }

    fn dial(&mut self, now: Instant, other: &Self) {
        let peer = Peer { addr: other.addr, id: Some(other.endpoint.config().identity.peer_id()) };
        self.session = Some(self.endpoint.connect(now, peer, Via(0)).unwrap());
    }

    /// Acts at `now`; the work of one turn is bounded.
    fn turn(&mut self, now: Instant) {
        for turn in 0.. {
            assert!(turn < 10_000, "timers that are always due");
            if self.endpoint.handle_timeout(now, Budget(8)) == Progress::Done {
                break;
            }
        }
        while let Some((session, event)) = self.endpoint.poll_event() {
            assert!(!matches!(self.events.last(), Some(Event::Closed(_))), "{event:?} after the end");
            self.session = Some(session);
            self.events.push(event);
        }
        for turn in 0.. {
            assert!(turn < 10_000, "an endless flood");
            let mut queue = OneShot::new(&mut self.buffer);
            let _ = self.endpoint.poll_transmit(now, &mut queue, &mut Sevens, Budget(1));
            let Some((_, datagram)) = queue.take() else { break };
            if !is_handshake(datagram) {
                let header = PacketHeader::parse(datagram).unwrap();
                (self.destination, self.number) = (Some(header.destination), header.number);
            }
            self.sent.push(datagram.to_vec());
        }
    }

    fn take(&mut self, now: Instant, from: SocketAddr, datagram: &mut [u8], refuse: bool) {
        let meta = RxMeta { from, to: Some(self.addr.ip()), via: Via(0), ecn: Ecn::Ect0 };
        let mut received = self.endpoint.handle(now, &meta, datagram);
        while !refuse && let Some(payload) = received.next() {
            if let Payload::Stream { data, .. } | Payload::Datagram { data, .. } = payload {
                self.received += data.len() as u64;
            }
        }
    }
}

/// Both ends act and hear each other after 1 ms, for `rounds`; at rest time moves to the next deadline before `end`.
fn exchange(now: &mut Instant, left: &mut End, right: &mut End, end: Instant, rounds: u32) {
    let mut stuck = 0;
    for _ in 0..rounds {
        left.turn(*now);
        right.turn(*now);
        let (from_left, from_right) = (std::mem::take(&mut left.sent), std::mem::take(&mut right.sent));
        if from_left.is_empty() && from_right.is_empty() {
            let due = [&left.endpoint, &right.endpoint];
            let Some(at) = due.iter().filter_map(|endpoint| endpoint.poll_timeout()).map(|due| due.at).min()
            else {
                return;
            };
            if at > end {
                return;
            }
            stuck = if at <= *now { stuck + 1 } else { 0 };
            assert!(stuck < 50 || now.as_nanos() == u64::MAX, "a deadline that stays in the past");
            *now = at.max(*now);
            continue;
        }
        *now = now.saturating_add(Duration::from_millis(1));
        for mut datagram in from_left {
            right.take(*now, LEFT, &mut datagram, false);
        }
        for mut datagram in from_right {
            left.take(*now, RIGHT, &mut datagram, false);
        }
    }
}

/// A number like those that hurt; `tame` ones are seldom wrong.
fn number(rng: &mut Rng, tame: bool) -> u64 {
    let small = rng.next_u64() % 60;
    match rng.next_u64() % if tame { 2000 } else { 8 } {
        0 => (1 << 62) - 1 - small,
        1 => (1 << (rng.next_u64() % 62)) + small,
        2 => (1 << 20) - 35 + small,
        _ => small,
    }
}

/// A frame of a random kind; returns its bytes of payload.
fn frame(rng: &mut Rng, w: &mut Writer<'_>, largest: u64, tame: bool) -> usize {
    let number = |rng: &mut Rng| number(rng, tame);
    // What the dialling end may send on, and what it may receive on, if the other has opened it.
    let kind = rng.next_u64() % 22;
    let stream = match (tame, kind) {
        (false, _) => (number(rng) % 40) as u32,
        (true, 12..=14) => [0, 4, 8, 1, 3][rng.next_u64() as usize % 5],
        (true, _) => [0, 4, 8, 12, 2, 6, 10, 1][rng.next_u64() as usize % 8],
    };
    let code = number(rng) as u32;
    let len = if rng.next_u64().is_multiple_of(4) { 0 } else { (rng.next_u64() % 40) as u16 };
    let frame = match kind {
        0 => Frame::Padding { len: 1 + len },
        1 => Frame::Ping,
        2..=4 => {
            let high = largest.saturating_sub(rng.next_u64() % 4);
            let low = if tame { high } else { high.saturating_sub(rng.next_u64() % 5) };
            let more = low.saturating_sub(3);
            let ranges = [(low, high), (more.saturating_sub(rng.next_u64() % 9), more)];
            let count = if more + 1 < low && !tame { 2 } else { 1 };
            let ecn = EcnCounts { ect0: number(rng), ect1: 0, ce: number(rng) };
            let ecn = rng.next_u64().is_multiple_of(3).then_some(ecn);
            let ranges = ranges[..count].iter().copied();
            let _ = AckRepr { ranges, delay_micros: number(rng), ecn }.emit(w);
            return 0;
        }
        5 => Frame::Datagram { len },
        6..=10 => {
            let fin = rng.next_u64().is_multiple_of(if tame { 40 } else { 6 });
            let offset = number(rng) % if tame { 24 } else { 1 << 61 };
            Frame::Stream { stream, offset, len, fin }
        }
        11 if tame && !rng.next_u64().is_multiple_of(8) => Frame::Ping,
        11 => Frame::ResetStream { stream, code, final_size: number(rng) },
        12 => Frame::StopSending { stream, code },
        13 => Frame::MaxStreamData { stream, credit: number(rng) },
        14 => Frame::StreamHoles {
            stream,
            report: number(rng) % 4,
            offset: number(rng) % (1 << 60),
            len: number(rng) % (1 << 60),
        },
        15 => Frame::StreamBlocked { stream, credit: number(rng) },
        16 => Frame::HolesTaken { stream, report: number(rng) % 5 },
        17 => Frame::MaxStreamsBi { count: number(rng) },
        18 => Frame::MaxStreamsUni { count: number(rng) },
        19 if tame => Frame::RetireConnectionId { sequence: 1 + rng.next_u64() % 3 },
        19 => {
            let sequence = number(rng) % 9;
            let id = ConnectionId([sequence as u8; 8]);
            let retire_prior_to = number(rng) % (sequence + 1);
            Frame::NewConnectionId { sequence, retire_prior_to, id }
        }
        20 if tame => Frame::MaxStreamsBi { count: 1 << 59 },
        20 => Frame::RetireConnectionId { sequence: number(rng) % 6 },
        _ => Frame::Extension { kind: 0x40 + len, body: &[1, 2, 3] },
    };
    if frame.emit(w).is_ok() { frame.data_len() } else { 0 }
}

/// A packet with random frames, or with random bytes in their place.
fn packet(rng: &mut Rng, destination: ConnectionId, number: u32, largest: u64, tame: bool) -> Vec<u8> {
    let mut frames = [0; 1024];
    let (mut len, mut payload) = (0, 0);
    if !tame && rng.next_u64().is_multiple_of(16) {
        len = (rng.next_u64() % 64) as usize;
        frames[..len].iter_mut().for_each(|byte| *byte = rng.next_u64() as u8);
        payload = (rng.next_u64() % 9) as usize;
    } else {
        for _ in 0..=rng.next_u64() % 6 {
            let mut writer = Writer::new(&mut frames[len..]);
            payload += frame(rng, &mut writer, largest, tame);
            len += writer.len();
        }
    }
    sealed(destination, number, payload, &frames[..len])
}

/// The next packet of `end`, with these frames.
fn forged(end: &mut End, frames: &[Frame<'_>]) -> Vec<u8> {
    end.number += 1;
    let mut body = [0; 256];
    let (mut len, mut payload) = (0, 0);
    for frame in frames {
        let mut writer = Writer::new(&mut body[len..]);
        frame.emit(&mut writer).unwrap();
        (len, payload) = (len + writer.len(), payload + frame.data_len());
    }
    sealed(end.destination.unwrap(), end.number, payload, &body[..len])
}

fn sealed(destination: ConnectionId, number: u32, payload: usize, frames: &[u8]) -> Vec<u8> {
    let header = PacketHeader { phase: 0, ignored: false, destination, number };
    let mut packet = header.to_bytes().to_vec();
    packet.resize(PACKET_HEADER_LEN + payload, 5);
    packet.extend_from_slice(frames);
    packet.extend_from_slice(&(frames.len() as u16).to_be_bytes());
    packet.extend_from_slice(&[0; 16]);
    packet
}

/// Whatever frames an authenticated peer sends, in whatever state: no panic, no allocation, no endless work; and the
/// session ends, or it goes on and still ends well.
#[test]
fn random_frames_of_an_authenticated_peer_do_no_harm() {
    let full = std::env::var("WRAITH_BUDGET").is_ok_and(|budget| budget == "full");
    let rounds = if full { 20_000 } else { 400 };
    let survived = (0..rounds).filter(|&round| random_round(round)).count() as u64;
    assert!((1..rounds / 2).contains(&survived), "{survived} went on");
}

/// A session in which one end sends random frames for a while; returns whether the other never ended it.
fn random_round(round: u64) -> bool {
    let (mut rng, mut now) = (Rng::new(round), NOW);
    let mut left = End::new(LEFT, 1, now, |config| config.limits = Limits::embedded());
    let mut right = End::new(RIGHT, 2, now, |config| {
        config.limits = Limits { holes: 4, ..Limits::embedded() };
        config.transport =
            Transport::default().with_stream_window(if round.is_multiple_of(2) { 1 << 20 } else { 64 });
        if round.is_multiple_of(5) {
            config.policy = Policy::Ask;
        }
    });
    left.dial(now, &right);
    exchange(&mut now, &mut left, &mut right, NOW.saturating_add(Duration::from_millis(500)), 100);
    let handle = right.session.unwrap();
    if let Some(mut session) = right.endpoint.session(handle)
        && (session.authorize(now).is_ok() || !round.is_multiple_of(5))
        && let Ok(stream) = session.open(Dir::Bi)
    {
        let _ = session.write(stream, Bytes::from_static(&[1; 90]));
        if let Ok(stream) = session.open(Dir::Uni) {
            let _ = session.attach(stream, 1 << 40);
        }
    }
    bombard(&mut rng, &mut now, &left, &mut right, !round.is_multiple_of(4));
    right.turn(now);
    let survived = !matches!(right.events.last(), Some(Event::Closed(_)));
    if let Some(mut session) = right.endpoint.session(handle) {
        session.close(now, 0);
    }
    let mut silent = End::new(LEFT, 3, now, |_| ());
    exchange(&mut now, &mut right, &mut silent, Instant::from_nanos(u64::MAX), 20_000);
    assert_eq!((right.endpoint.sessions(), right.endpoint.poll_timeout()), (0, None), "round {round}");
    survived
}

/// `right` receives 60 packets as if from `left`, and acts now and then.
fn bombard(rng: &mut Rng, now: &mut Instant, left: &End, right: &mut End, tame: bool) {
    let (destination, mut number) = (left.destination.unwrap(), left.number + 1);
    for _ in 0..60 {
        if !rng.next_u64().is_multiple_of(3) {
            right.turn(*now);
            right.sent.clear();
        }
        let mut datagram = packet(rng, destination, number, u64::from(right.number), tame);
        number += 1 + (rng.next_u64() % 3) as u32;
        let refuse = rng.next_u64().is_multiple_of(5);
        let ((), counts) = measure(|| right.take(*now, LEFT, &mut datagram, refuse));
        assert_eq!(counts.allocations, 0);
        *now = now.saturating_add(Duration::from_micros(rng.next_u64() % 40_000));
        if rng.next_u64().is_multiple_of(8)
            && let Some(&Event::StreamOpened(stream)) = right.events.last()
            && let Some(mut session) = right.endpoint.session(right.session.unwrap())
        {
            let _ = session.grant(stream, rng.next_u64());
        }
    }
}

/// A pair that is connected and at rest.
fn connected(change: impl Fn(&mut Config)) -> (Instant, End, End) {
    let mut now = NOW;
    let mut left = End::new(LEFT, 1, now, |_| ());
    let mut right = End::new(RIGHT, 2, now, change);
    left.dial(now, &right);
    exchange(&mut now, &mut left, &mut right, NOW.saturating_add(Duration::from_millis(500)), 100);
    (now, left, right)
}

/// `PROTO §7.5`: a report that is taken before it was sent again is not sent any more, and the stream makes room for
/// others like any that is over.
#[test]
fn a_report_that_is_no_news_does_not_keep_its_stream() {
    let (now, mut left, mut right) = connected(|config| config.limits = Limits::embedded());
    for stream in (0..20).map(|sequence| sequence << 2 | 2) {
        let data = Frame::Stream { stream, offset: 0, len: 10, fin: true };
        let mut refused = forged(&mut left, &[data]);
        right.take(now, LEFT, &mut refused, true);
        let mut taken = forged(&mut left, &[Frame::HolesTaken { stream, report: 1 }, data]);
        right.take(now, LEFT, &mut taken, false);
        right.turn(now);
        let opened = right.events.pop();
        assert!(matches!(opened, Some(Event::StreamOpened(id)) if id.as_u32() == stream), "{opened:?}");
        // The grant that lets the peer go on has arrived: nothing keeps the stream any more.
        let mut bytes = [0; 32];
        let mut writer = Writer::new(&mut bytes);
        let last = u64::from(right.number);
        AckRepr { ranges: [(last, last)], delay_micros: 0, ecn: None }.emit(&mut writer).unwrap();
        let mut reader = Reader::new(writer.written());
        let ack = Frame::parse(&mut reader).unwrap();
        let mut acked = forged(&mut left, &[ack]);
        right.take(now, LEFT, &mut acked, false);
    }
    assert_eq!(right.received, 200);
}

/// `PROTO §6.7`: before AUTHORIZED even an empty frame of application data is a violation, and reaches nobody.
#[test]
fn nothing_of_a_stream_comes_before_authorisation() {
    let early = [
        Frame::Stream { stream: 0, offset: 0, len: 0, fin: true },
        Frame::Datagram { len: 0 },
        Frame::ResetStream { stream: 0, code: 0, final_size: 0 },
        Frame::StopSending { stream: 0, code: 0 },
    ];
    for frame in early {
        let (now, mut left, mut right) = connected(|config| config.policy = Policy::Ask);
        let mut ping = forged(&mut left, &[Frame::Ping]);
        right.take(now, LEFT, &mut ping, false);
        right.turn(now);
        assert_eq!(right.events, [Event::Authorize]);
        let mut packet = forged(&mut left, &[frame]);
        right.take(now, LEFT, &mut packet, false);
        right.turn(now);
        assert_eq!(right.events, [Event::Authorize, Event::Closed(CloseReason::Violation)]);
    }
}

/// `PROTO §13.2`: a peer that claims another address does not multiply what goes there, however often a packet asks.
#[test]
fn a_packet_full_of_challenges_gets_one_answer_no_larger_than_itself() {
    let (now, mut left, mut right) = connected(|_| {});
    let third = SocketAddr::from(([203, 0, 113, 9], 4433));
    for (len, answer) in [(1200, 1200), (1199, 40)] {
        left.number += 1;
        let mut frames = vec![0; len - PACKET_HEADER_LEN - 2 - 16];
        for (token, room) in (7u64..).zip(frames.chunks_exact_mut(9)) {
            let challenge = Frame::PathChallenge { token: token.to_be_bytes() };
            challenge.emit(&mut Writer::new(room)).unwrap();
        }
        right.take(now, third, &mut sealed(left.destination.unwrap(), left.number, 0, &frames), false);
        right.turn(now);
        let mut answers: Vec<_> = right.sent.drain(..).filter(|sent| response(sent).is_some()).collect();
        assert_eq!(answers.iter().map(Vec::len).collect::<Vec<_>>(), [answer], "{len} bytes");
        assert_eq!(answers.pop().as_deref().and_then(response), Some(7u64.to_be_bytes()));
    }
}

/// What the `PATH_RESPONSE` in a packet holds.
fn response(packet: &[u8]) -> Option<[u8; 8]> {
    let mut body = packet[PACKET_HEADER_LEN..packet.len() - 16].to_vec();
    let (_, frames) = split_body(&mut body).unwrap();
    Frames::new(frames).flatten().find_map(|frame| match frame {
        Frame::PathResponse { token } => Some(token),
        _ => None,
    })
}

/// `PROTO §9.3`: what comes behind CLOSE, before the application has heard of it, changes nothing.
#[test]
fn a_packet_behind_close_opens_no_stream() {
    let (now, mut left, mut right) = connected(|_| ());
    let close = forged(&mut left, &[Frame::CloseApp { code: 5 }]);
    let stream = forged(&mut left, &[Frame::Stream { stream: 0, offset: 0, len: 0, fin: true }]);
    for mut packet in [close, stream] {
        right.take(now, LEFT, &mut packet, false);
    }
    right.turn(now);
    assert_eq!(right.events, [Event::Connected, Event::Closed(CloseReason::Peer(5))]);
}

type Change = fn(Transport) -> Transport;

const SETTINGS: [(&str, Change); 22] = [
    ("default", |it| it),
    ("no burst", |it| it.with_burst(0)),
    ("small burst", |it| it.with_burst(1199)),
    ("huge burst", |it| it.with_burst(u32::MAX)),
    ("no granularity", |it| it.with_timer_granularity(Duration::ZERO)),
    ("coarse", |it| it.with_timer_granularity(Duration::from_secs(1))),
    ("never", |it| it.with_timer_granularity(Duration::MAX)),
    ("no idle timeout", |it| it.with_idle_timeout(Duration::ZERO)),
    ("short idle timeout", |it| it.with_idle_timeout(Duration::from_nanos(1))),
    ("long idle timeout", |it| it.with_idle_timeout(Duration::MAX)),
    ("always alive", |it| it.with_keep_alive(Some(Duration::ZERO))),
    ("never alive", |it| it.with_keep_alive(Some(Duration::MAX))),
    ("no time to shake hands", |it| it.with_handshake_timeout(Duration::ZERO)),
    ("all the time to shake hands", |it| it.with_handshake_timeout(Duration::MAX)),
    ("prompt", |it| it.with_max_ack_delay(Duration::ZERO)),
    ("slow", |it| it.with_max_ack_delay(Duration::MAX)),
    ("no credit", |it| it.with_stream_window(0)),
    ("all credit", |it| it.with_stream_window(u64::MAX).with_max_window(u64::MAX)),
    ("more credit", |it| it.with_max_window(u64::MAX)),
    ("no streams", |it| it.with_peer_streams(0)),
    ("many streams", |it| it.with_peer_streams(u16::MAX)),
    ("large datagrams", |it| it.with_max_datagram(65_507).with_min_datagram(65_507)),
];

/// Extreme settings and times: sessions come up, or are refused in time; nothing panics or goes on for ever.
#[test]
fn extreme_settings_and_times_do_no_harm() {
    for start in [1, 1 << 40, u64::MAX - (1 << 36), u64::MAX - 1_000_000, u64::MAX] {
        for (name, change) in SETTINGS {
            let mut now = Instant::from_nanos(start);
            let mut left = End::new(LEFT, 1, now, |config| config.transport = change(config.transport));
            let mut right = End::new(RIGHT, 2, now, |config| config.transport = change(config.transport));
            left.dial(now, &right);
            let end = now.saturating_add(Duration::from_secs(2));
            exchange(&mut now, &mut left, &mut right, end, 400);
            let connected = left.events.first() == Some(&Event::Connected) && !right.events.is_empty();
            let never = ["no time to shake hands", "never"].contains(&name) || end.as_nanos() == u64::MAX;
            assert!(connected || never, "{name} at {start}: {:?} {:?}", left.events, right.events);
            let Some(mut session) = left.endpoint.session(left.session.unwrap()) else { continue };
            if let Ok(stream) = session.open(Dir::Bi) {
                session.attach(stream, 10_000).unwrap();
            }
            let _ = session.send_datagram(Bytes::from_static(b"hello"));
            exchange(&mut now, &mut left, &mut right, end, 2000);
            let expected = if ["no credit", "no streams"].contains(&name) { 5 } else { 10_005 };
            assert!(right.received == expected || never, "{name} at {start}: {} bytes", right.received);
        }
    }
}

/// The smallest pools carry a stream, and any mixture of extremes ends in time.
#[test]
fn the_smallest_pools_and_mixed_extremes_do_no_harm() {
    let one = Limits {
        sessions: 1,
        handshakes: 1,
        handshake_rate: 1,
        streams: 1,
        sent_packets: 1,
        holes: 1,
        datagrams: 1,
        expanded_keys: 1,
    };
    for round in 0..200 {
        let mut rng = Rng::new(round);
        let changes: Vec<Change> =
            (0..round.min(4)).map(|_| SETTINGS[rng.next_u64() as usize % SETTINGS.len()].1).collect();
        let change = |config: &mut Config| {
            config.limits = one;
            config.transport = changes.iter().fold(config.transport, |transport, change| change(transport));
        };
        let mut now = NOW;
        let (mut left, mut right) = (End::new(LEFT, 1, now, change), End::new(RIGHT, 2, now, change));
        left.dial(now, &right);
        let end = now.saturating_add(Duration::from_secs(20));
        exchange(&mut now, &mut left, &mut right, end, 300);
        if let Some(mut session) = left.endpoint.session(left.session.unwrap())
            && let Ok(stream) = session.open(Dir::Uni)
        {
            session.attach(stream, 50_000).unwrap();
        }
        exchange(&mut now, &mut left, &mut right, end, 1000);
        assert!(right.received == 50_000 || round > 0, "{} bytes", right.received);
    }
}
