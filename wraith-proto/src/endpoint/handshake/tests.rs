//! Handshakes with peers that know the protocol and lie.

use alloc::vec;
use core::net::{Ipv4Addr, SocketAddr};
use std::boxed::Box;

use super::super::Budget;
use super::super::hello::{self, Choice, Ids};
use super::*;
use crate::config::{Config, Peer};
use crate::crypto::{Identity, StaticKey, Suite, finish_mac};
use crate::error::DropReason;
use crate::event::{Event, Outcome};
use crate::meta::{RxMeta, Via};
use crate::queue::{NoSource, OneShot};
use crate::wire::{
    ConnectionId, FinishRepr, INIT_MESSAGE_OFFSET, InitPacket, InitRepr, RESPONSE_MESSAGE_OFFSET,
    ResponsePacket, ResponseRepr, VERSION,
};

const NOW: Instant = Instant::from_nanos(1_000_000_000);
const ADDRESS: SocketAddr = SocketAddr::new(core::net::IpAddr::V4(Ipv4Addr::new(192, 0, 2, 9)), 9);
const CHOICE: Choice = Choice { suite: Suite::Aes256Gcm, protocol: 0 };

fn config(seed: u8) -> Config {
    let mut config = Config::new(Identity::from_seed([seed; 32]), b"test");
    config.transport = config.transport.with_suites(&[Suite::Aes256Gcm, Suite::XChaCha20Poly1305]);
    config
}

fn endpoint(seed: u8) -> Endpoint {
    Endpoint::new(config(seed), [seed; 32], NOW).unwrap()
}

fn give(endpoint: &mut Endpoint, mut datagram: Vec<u8>) -> Outcome {
    let meta = RxMeta { from: ADDRESS, to: None, via: Via::default(), ecn: Ecn::NotEct };
    endpoint.handle(NOW, &meta, &mut datagram).outcome()
}

fn take(endpoint: &mut Endpoint) -> Option<Vec<u8>> {
    let mut buffer = [0; 2048];
    let mut queue = OneShot::new(&mut buffer);
    let _ = endpoint.poll_transmit(NOW, &mut queue, &mut NoSource, Budget(1));
    queue.take().map(|(_, bytes)| bytes.to_vec())
}

/// A peer that says one thing in its payloads (`config`) and proves another (`identity`).
struct Liar {
    config: Config,
    noise: Noise,
    ids: Ids,
}

impl Liar {
    fn new(role: Role, config: Config, identity: u8) -> Self {
        let key = StaticKey::new(&Identity::from_seed([identity; 32]), &crate::crypto::RustCrypto);
        let noise = Noise::new(role, &key, VERSION, &[77; 32]);
        let ids = Ids { initiator: ConnectionId([1; 8]), responder: ConnectionId([2; 8]) };
        Self { config, noise, ids }
    }

    fn response(&mut self, init: &[u8], choice: Result<Choice, u32>) -> Vec<u8> {
        let init = InitPacket::parse(init).unwrap();
        self.noise.read(init.message(), &mut [0; 1200]).unwrap();
        self.ids.initiator = init.source();
        let mut message = vec![0; 1200];
        let message_len = 1200 - RESPONSE_MESSAGE_OFFSET;
        let mut payload = vec![0; message_len - 96];
        hello::write_response(&self.config, &[5; 16], self.ids, VERSION, choice, 0, &mut payload).unwrap();
        let Ids { initiator: destination, responder: source } = self.ids;
        let repr = ResponseRepr { version: VERSION, destination, source, message_len: message_len as u16 };
        let at = repr.emit(&mut message).unwrap();
        self.noise.write(&payload, &mut message[at..]).unwrap();
        message
    }

    fn init(&mut self) -> Vec<u8> {
        let mut message = vec![0; 1200];
        let message_len = 1200 - INIT_MESSAGE_OFFSET;
        let mut payload = vec![0; message_len - 32];
        hello::write_init(&self.config, self.ids.initiator, 0, &mut payload).unwrap();
        let message_len = message_len as u16;
        let repr = InitRepr { version: VERSION, source: self.ids.initiator, cookie: [0; 16], message_len };
        let at = repr.emit(&mut message).unwrap();
        self.noise.write(&payload, &mut message[at..]).unwrap();
        message
    }

    /// FINISH for a RESPONSE; its inner ids are changed by `inner`.
    fn finish(&mut self, response: &[u8], choice: Choice, inner: impl FnOnce(&mut Ids)) -> Vec<u8> {
        let response = ResponsePacket::parse(response).unwrap();
        self.noise.read(response.message(), &mut [0; 1200]).unwrap();
        self.ids.responder = response.source();
        let mut ids = self.ids;
        inner(&mut ids);
        let mut payload = [0; 1200];
        let len = hello::write_finish(&self.config, &[5; 16], ids, choice, 0, &mut payload).unwrap();
        let key = self.noise.finish_mac_key().unwrap();
        let (destination, source) = (self.ids.responder, self.ids.initiator);
        let repr = FinishRepr { version: VERSION, destination, source, message_len: (len + 64) as u16 };
        let mut message = vec![0; repr.buffer_len()];
        let (at, end) = (repr.emit(&mut message).unwrap(), repr.mac_offset());
        self.noise.write(&payload[..len], &mut message[at..end]).unwrap();
        let mac = finish_mac(&key, &message[..end]);
        message[end..].copy_from_slice(&mac);
        message
    }
}

/// What an endpoint that dials identity 2 makes of an answer by `liar`; also whether it goes on dialling.
fn answered_by(mut liar: Liar, choice: Result<Choice, u32>, pinned: bool) -> (Outcome, bool) {
    let mut endpoint = endpoint(1);
    let id = pinned.then(|| Identity::from_seed([2; 32]).peer_id());
    endpoint.connect(NOW, Peer { addr: ADDRESS, id }, Via::default()).unwrap();
    let init = take(&mut endpoint).unwrap();
    let outcome = give(&mut endpoint, liar.response(&init, choice));
    assert_eq!(take(&mut endpoint).is_some(), outcome == Outcome::Handshaking && pinned && choice.is_ok());
    let dialling = !matches!(endpoint.poll_event(), Some((_, Event::Closed(CloseReason::Refused))));
    (outcome, dialling)
}

/// What an endpoint makes of a whole handshake begun by `liar`, whose configuration changes before FINISH.
fn dialled_by(
    mut liar: Liar,
    choice: Choice,
    change: impl FnOnce(&mut Config),
    inner: impl FnOnce(&mut Ids),
) -> Outcome {
    let mut endpoint = endpoint(1);
    assert_eq!(give(&mut endpoint, liar.init()), Outcome::Handshaking);
    let response = take(&mut endpoint).unwrap();
    change(&mut liar.config);
    let finish = liar.finish(&response, choice, inner);
    let outcome = give(&mut endpoint, finish);
    let begun = outcome == Outcome::Handshaking;
    assert_eq!(endpoint.sessions(), usize::from(begun));
    assert_eq!(endpoint.poll_event().is_some(), begun);
    assert_eq!(endpoint.stats().dropped(), u64::from(!begun));
    outcome
}

const REFUSED: Outcome = Outcome::Dropped(DropReason::Refused);

#[test]
fn an_honest_peer_of_this_making_is_accepted_on_both_sides() {
    let honest = || Liar::new(Role::Responder, config(2), 2);
    assert_eq!(answered_by(honest(), Ok(CHOICE), true), (Outcome::Handshaking, true));
    assert_eq!(answered_by(honest(), Ok(CHOICE), false), (Outcome::Handshaking, true));
    let honest = Liar::new(Role::Initiator, config(2), 2);
    assert_eq!(dialled_by(honest, CHOICE, |_| {}, |_| {}), Outcome::Handshaking);
}

/// `PROTO §4.7`
#[test]
fn a_responder_whose_static_key_is_not_that_of_its_id_is_an_impostor() {
    let liar = || Liar::new(Role::Responder, config(2), 3);
    assert_eq!(answered_by(liar(), Ok(CHOICE), true), (REFUSED, true));
    assert_eq!(answered_by(liar(), Ok(CHOICE), false), (REFUSED, false));
}

/// `PROTO §4.7, §4.19`
#[test]
fn a_refusal_under_a_strange_name_does_not_end_the_dial() {
    let liar = || Liar::new(Role::Responder, config(2), 3);
    assert_eq!(answered_by(liar(), Err(3), true), (REFUSED, true));
    let honest = Liar::new(Role::Responder, config(2), 2);
    assert_eq!(answered_by(honest, Err(3), true), (Outcome::Handshaking, false));
}

/// `PROTO §4.7`
#[test]
fn an_initiator_whose_static_key_is_not_that_of_its_id_gets_no_session() {
    let liar = Liar::new(Role::Initiator, config(2), 3);
    assert_eq!(dialled_by(liar, CHOICE, |_| {}, |_| {}), REFUSED);
}

/// `PROTO §4.6`
#[test]
fn finish_must_repeat_the_lists_of_init() {
    let other = |config: &mut Config| config.protocols.push(Box::from(&b"more"[..]));
    let liar = || Liar::new(Role::Initiator, config(2), 2);
    assert_eq!(dialled_by(liar(), CHOICE, other, |_| {}), REFUSED);
}

/// `PROTO §4.6`: the responder would have chosen the first that both offer.
#[test]
fn finish_must_name_what_the_responder_chooses_from_its_lists() {
    let mut several = config(2);
    several.protocols = vec![Box::from(&b"test"[..]), Box::from(&b"unknown"[..])];
    let liar = Liar::new(Role::Initiator, several, 2);
    assert_eq!(dialled_by(liar, Choice { protocol: 1, ..CHOICE }, |_| {}, |_| {}), REFUSED);
}

/// `PROTO §4.6`: nobody can make the ends weaker than their lists are, not even one of them.
#[test]
fn response_must_name_the_suite_that_follows_from_both_lists() {
    let other = Ok(Choice { suite: Suite::XChaCha20Poly1305, ..CHOICE });
    let liar = || Liar::new(Role::Responder, config(2), 2);
    assert_eq!(answered_by(liar(), other, true), (REFUSED, true));
    assert_eq!(answered_by(liar(), other, false), (REFUSED, false));
    // With this list of its own, it is the right one, and the former is wrong.
    let slow = || {
        let mut config = config(2);
        config.transport = config.transport.with_suites(&[Suite::XChaCha20Poly1305, Suite::Aes256Gcm]);
        Liar::new(Role::Responder, config, 2)
    };
    assert_eq!(answered_by(slow(), other, true), (Outcome::Handshaking, true));
    assert_eq!(answered_by(slow(), Ok(CHOICE), true), (REFUSED, true));
}

/// `PROTO §4.6`
#[test]
fn finish_must_name_the_suite_that_follows_from_both_lists() {
    let other = Choice { suite: Suite::XChaCha20Poly1305, ..CHOICE };
    let liar = Liar::new(Role::Initiator, config(2), 2);
    assert_eq!(dialled_by(liar, other, |_| {}, |_| {}), REFUSED);
}

/// `PROTO §4.6`
#[test]
fn ids_inside_finish_must_be_those_of_the_outer_headers() {
    let liar = || Liar::new(Role::Initiator, config(2), 2);
    assert_eq!(dialled_by(liar(), CHOICE, |_| {}, |ids| ids.initiator.0[0] ^= 1), REFUSED);
    assert_eq!(dialled_by(liar(), CHOICE, |_| {}, |ids| ids.responder.0[7] ^= 1), REFUSED);
}

#[cfg(target_os = "linux")]
#[test]
fn a_slot_that_its_handshake_has_left_holds_none_of_its_secrets() {
    use std::io::{Read, Seek, SeekFrom};
    use std::vec::Vec;

    let memory = |at: usize, len: usize| {
        let mut bytes = vec![0; len];
        let mut memory = std::fs::File::open("/proc/self/mem").unwrap();
        memory.seek(SeekFrom::Start(at as u64)).unwrap();
        memory.read_exact(&mut bytes).unwrap();
        bytes
    };
    let mut endpoint = endpoint(1);
    endpoint.connect(NOW, Peer { addr: ADDRESS, id: None }, Via::default()).unwrap();
    let handshake = endpoint.handshakes.get_mut(0).unwrap();
    handshake.secrets.finish_key = Some([0xa7; 32]);
    let seed = handshake.secrets.ephemeral_seed;
    let slot = (core::ptr::from_ref(handshake).addr(), size_of::<Handshake>());
    let secrets = (core::ptr::from_ref(&*handshake.secrets).addr(), size_of::<Secrets>());
    let held = |secret: &[u8]| -> Vec<bool> {
        let places = [slot, secrets].into_iter();
        places.map(|(at, len)| memory(at, len).windows(secret.len()).any(|bytes| bytes == secret)).collect()
    };
    assert_eq!([held(&seed), held(&[0xa7; 32])], [[false, true], [false, true]]);
    endpoint.free_handshake(0);
    assert_eq!([held(&seed), held(&[0xa7; 32])], [[false, false], [false, false]]);
}
