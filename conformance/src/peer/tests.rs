use std::net::SocketAddr;

use bytes::Bytes;
use wraith_proto::wire::{ConnectionId, Frame};
use wraith_proto::{
    Budget, Config, Ecn, Endpoint, Event, Identity as CoreIdentity, Instant, NoSource, OneShot, Outcome,
    Payload, Peer, PeerId, Progress, RxMeta, Via,
};

use super::*;

const PROTOCOL: &[u8] = b"conformance";
const ADDR: &str = "192.0.2.1:4000";
const NOW: Instant = Instant::from_nanos(1_000_000_000);

fn core_endpoint() -> Endpoint {
    let config = Config::new(CoreIdentity::from_seed([7; 32]), PROTOCOL);
    Endpoint::new(config, [8; 32], NOW).unwrap()
}

fn profile() -> Profile {
    Profile::new(Identity::from_seed(&[1; 32]), PROTOCOL)
}

fn deliver(endpoint: &mut Endpoint, datagram: &[u8]) -> (Outcome, Vec<Vec<u8>>) {
    let from: SocketAddr = ADDR.parse().unwrap();
    let meta = RxMeta { from, to: None, via: Via(0), ecn: Ecn::NotEct };
    let mut bytes = datagram.to_vec();
    let mut received = endpoint.handle(NOW, &meta, &mut bytes);
    let mut datagrams = Vec::new();
    while let Some(payload) = received.next() {
        if let Payload::Datagram { data, .. } = payload {
            datagrams.push(data.to_vec());
        }
    }
    (received.outcome(), datagrams)
}

fn transmit(endpoint: &mut Endpoint) -> Vec<Vec<u8>> {
    assert_eq!(endpoint.handle_timeout(NOW, Budget::UNLIMITED), Progress::Done);
    let mut sent = Vec::new();
    loop {
        let mut buffer = [0; 2048];
        let mut queue = OneShot::new(&mut buffer);
        let _ = endpoint.poll_transmit(NOW, &mut queue, &mut NoSource, Budget(1));
        let Some((_, datagram)) = queue.take() else { return sent };
        sent.push(datagram.to_vec());
    }
}

/// `PROTO §4.1`: a dial by the document alone reaches the core, and datagrams go both ways.
#[test]
fn the_core_answers_a_dial_and_exchanges_datagrams() {
    let mut core = core_endpoint();
    let dial = Dial::new(&profile(), ConnectionId([1; 8]), KeyPair::new([2; 32])).unwrap();
    assert_eq!(deliver(&mut core, dial.init()).0, Outcome::Handshaking);
    let response = transmit(&mut core).pop().unwrap();
    let Answer::Met(met) = dial.read(&response).unwrap() else { panic!("refused") };
    assert_eq!(met.theirs().peer, *core.config().identity.peer_id().as_bytes());
    let (mut finish, mut channel) = met.finish().unwrap();
    finish.extend(channel.seal(&[Frame::Datagram { len: 5 }], b"hello"));
    let (outcome, datagrams) = deliver(&mut core, &finish);
    let Outcome::Authenticated(session) = outcome else { panic!("{outcome:?}") };
    assert_eq!(datagrams, [b"hello"]);
    assert_eq!(core.poll_event(), Some((session, Event::Connected)));
    core.session(session).unwrap().send_datagram(Bytes::from_static(b"world")).unwrap();
    let mut heard = Vec::new();
    for packet in transmit(&mut core) {
        let opened = channel.open(&packet).unwrap();
        for (frame, data) in opened.frames().unwrap() {
            if let Frame::Datagram { .. } = frame {
                heard.push(data.to_vec());
            }
        }
    }
    assert_eq!(heard, [b"world"]);
}

/// `PROTO §4.1`: the core's dial is answered by the document alone.
#[test]
fn the_core_dials_and_exchanges_datagrams() {
    let mut core = core_endpoint();
    let profile = profile();
    let peer = Peer { addr: ADDR.parse().unwrap(), id: PeerId::from_bytes(profile.identity.id).ok() };
    let session = core.connect(NOW, peer, Via(0)).unwrap();
    let init = transmit(&mut core).pop().unwrap();
    let reception = Reception::new(&profile, &init).unwrap();
    let response = reception.respond(ConnectionId([9; 8]), KeyPair::new([3; 32])).unwrap();
    assert_eq!(deliver(&mut core, response.datagram()).0, Outcome::Handshaking);
    core.session(session).unwrap().send_datagram(Bytes::from_static(b"hello")).unwrap();
    let sent = transmit(&mut core);
    let (mut channel, behind) = response.read(&sent[0]).unwrap();
    assert_eq!(channel.theirs().peer, *core.config().identity.peer_id().as_bytes());
    let opened = channel.open(behind).unwrap();
    assert!(opened.frames().unwrap().contains(&(Frame::Datagram { len: 5 }, b"hello")));
    let (outcome, datagrams) = deliver(&mut core, &channel.seal(&[Frame::Datagram { len: 5 }], b"world"));
    assert_eq!((outcome, datagrams), (Outcome::Authenticated(session), vec![b"world".to_vec()]));
}

/// `PROTO §3.1`: the text of a `PeerId` is the one that the core reads.
#[test]
fn the_text_of_a_peer_id_is_that_of_the_core() {
    for seed in 0..20 {
        let identity = Identity::from_seed(&[seed; 32]);
        let core = CoreIdentity::from_seed([seed; 32]).peer_id();
        assert_eq!((identity.id, peer_id_text(&identity.id)), (*core.as_bytes(), core.to_string()));
        assert_eq!(x25519_form(&identity.id), Ok(identity.keys.public));
        assert_eq!(core.static_public(), identity.keys.public);
    }
}
