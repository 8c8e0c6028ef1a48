//! Providers that lie, and tickets that point elsewhere.

use std::fs;
use std::path::Path;

use wraith_proto::Identity;
use wraith_transfer_proto::{CHUNK, Kind, MAX_SIZE, Message, Ticket, Tree};

use crate::liar::{Honest, Liar, Lie};
use crate::support::Done;
use crate::transfer::{Scene, content, done, error, finish};

/// What becomes of a transfer of three chunks from this liar.
fn meet(name: &str, lie: impl Lie) -> (Scene, Vec<u8>, Done) {
    let bytes = content(2 * CHUNK + 1000);
    let liar = Liar::start(bytes.clone(), lie);
    let ticket = Ticket {
        kind: Kind::File,
        hash: Tree::of(&bytes).unwrap().hash(),
        size: bytes.len() as u64,
        name: "file.bin".to_owned(),
        peer: liar.peer,
        token: [7; 16],
        addresses: vec![liar.address],
    };
    let scene = Scene::empty(name);
    let end = finish(&mut scene.receive(&ticket.encode().unwrap(), &[]));
    (scene, bytes, end)
}

/// Asserts that the lie ends in one line with `text`, and leaves nothing.
fn ends_with(name: &str, lie: impl Lie, text: &str) {
    let (scene, _, end) = meet(name, lie);
    assert!(error(&end).contains(text), "{}", end.stderr);
    assert_eq!(scene.names(), Vec::<String>::new());
}

struct HonestOne;
impl Lie for HonestOne {}

#[test]
fn the_liar_of_these_tests_can_tell_the_truth() {
    let (scene, bytes, end) = meet("truth", HonestOne);
    done(&end);
    assert!(fs::read(scene.received()).unwrap() == bytes);
}

pub(crate) struct WrongChunk;
impl Lie for WrongChunk {
    fn delivery(&self, honest: &Honest<'_>, chunk: u64) -> Vec<u8> {
        let mut stream = honest.delivery(chunk);
        if chunk == 1 {
            *stream.last_mut().unwrap() ^= 1;
        }
        stream
    }
}

/// PROTO §10.8
#[test]
fn a_chunk_that_does_not_match_ends_the_transfer() {
    ends_with("wrong-chunk", WrongChunk, "the source sent bytes that do not match the content, twice");
}

struct WrongList;
impl Lie for WrongList {
    fn offer(&self, tree: &Tree) -> (u64, Vec<u8>) {
        let mut top = tree.top_list().to_vec();
        top[40] ^= 1;
        (tree.size(), top)
    }
}

/// PROTO §10.4
#[test]
fn a_list_that_does_not_match_ends_the_transfer() {
    ends_with("wrong-list", WrongList, "the source sent chunk values that do not match the content");
}

/// Claims more bytes than there are, or fewer.
struct WrongSize(i64);
impl Lie for WrongSize {
    fn offer(&self, tree: &Tree) -> (u64, Vec<u8>) {
        (tree.size().wrapping_add_signed(self.0), tree.top_list().to_vec())
    }
}

/// PROTO §10.8, §10.9
#[test]
fn a_size_that_the_last_chunk_does_not_prove_ends_the_transfer() {
    ends_with("longer", WrongSize(1), "delivered a chunk with a wrong length");
    ends_with("shorter", WrongSize(-1), "delivered a chunk with a wrong length");
    ends_with("another-count", WrongSize(1 << 20), "size is not that of the content");
}

/// Makes up bytes for the size that it claims.
struct ClaimKept;
impl Lie for ClaimKept {
    fn offer(&self, tree: &Tree) -> (u64, Vec<u8>) {
        (tree.size() + 1, tree.top_list().to_vec())
    }

    fn delivery(&self, honest: &Honest<'_>, chunk: u64) -> Vec<u8> {
        if chunk < 2 {
            return honest.delivery(chunk);
        }
        honest.delivery_of(chunk, &[&honest.bytes[2 * CHUNK..], &[0]].concat())
    }
}

/// PROTO §10.9
#[test]
fn bytes_made_up_for_a_claimed_size_are_not_the_content() {
    ends_with("claim", ClaimKept, "the source sent bytes that do not match the content, twice");
}

struct Endless(u64);
impl Lie for Endless {
    fn offer(&self, _: &Tree) -> (u64, Vec<u8>) {
        (self.0, vec![0; 1024 * 32])
    }
}

/// PROTO §10.6, §10.9
#[test]
fn an_endless_size_reserves_nothing_and_ends_the_transfer() {
    ends_with("endless", Endless(MAX_SIZE), "do not match the content");
    ends_with("beyond", Endless(MAX_SIZE + 1), "the source broke the protocol: a malformed message");
}

/// Delivers before anything was wanted, and what is not wanted.
struct Unsolicited;
impl Lie for Unsolicited {
    fn before(&self, honest: &Honest<'_>) -> Vec<Vec<u8>> {
        vec![honest.delivery(1), honest.delivery_of(77, &[1; 5000]), vec![9; 3]]
    }

    fn delivery(&self, honest: &Honest<'_>, chunk: u64) -> Vec<u8> {
        honest.delivery(chunk)
    }
}

/// PROTO §10.11
#[test]
fn chunks_that_nobody_wants_are_refused_and_the_transfer_goes_on() {
    let (scene, bytes, end) = meet("unsolicited", Unsolicited);
    done(&end);
    assert!(fs::read(scene.received()).unwrap() == bytes);
    assert_eq!(scene.names(), ["file.bin"]);
}

/// Sends a stream that does not end where its chunk does.
struct TooLong;
impl Lie for TooLong {
    fn delivery(&self, honest: &Honest<'_>, chunk: u64) -> Vec<u8> {
        let mut stream = honest.delivery(chunk);
        stream.extend([0; 3]);
        stream
    }
}

/// PROTO §10.8
#[test]
fn a_stream_that_goes_on_behind_its_chunk_ends_the_transfer() {
    ends_with("too-long", TooLong, "delivered a chunk with a wrong length");
}

struct Garbage(&'static [u8]);
impl Lie for Garbage {
    fn instead_of_offer(&self) -> Option<Vec<u8>> {
        Some(self.0.to_vec())
    }
}

/// PROTO §10.3
#[test]
fn what_is_no_message_ends_the_transfer() {
    ends_with("unknown", Garbage(&[2, 0x3f, 0]), "the source broke the protocol: a message of unknown type");
    ends_with(
        "huge",
        Garbage(&[0xbf, 0xff, 0xff, 0xff]),
        "the source broke the protocol: a message of forbidden length",
    );
}

struct Asking;
impl Lie for Asking {
    fn question(&self) -> Option<Vec<u8>> {
        let mut question = Vec::new();
        let get = Message::Get { transfer: 0, kind: Kind::File, hash: [1; 32], token: [0; 16] };
        get.encode(&mut question);
        Some(question)
    }
}

/// PROTO §10.1
#[test]
fn a_receiver_that_is_asked_for_something_closes_the_session() {
    ends_with("asking", Asking, "broke the protocol: use the same version at both ends");
}

/// A ticket that no honest writer makes: with any name.
fn ticket_named(name: &[u8]) -> String {
    let mut bytes = vec![1, 0];
    bytes.extend([7; 32]);
    bytes.push(5);
    bytes.push(name.len() as u8);
    bytes.extend(name);
    bytes.extend(Identity::from_seed([3; 32]).peer_id().as_bytes());
    bytes.extend([9; 16]);
    bytes.extend([1, 4, 127, 0, 0, 1, 0, 9]);
    let sum = blake3::derive_key("WRAITH v1 ticket checksum", &bytes);
    bytes.extend(&sum[..4]);
    format!("wraith1{}", base32(&bytes))
}

fn base32(bytes: &[u8]) -> String {
    let bits = bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1)).collect::<Vec<_>>();
    let five = |bits: &[u8]| (0..5).fold(0, |value, at| value << 1 | bits.get(at).unwrap_or(&0));
    let digit = |value: u8| char::from(if value < 26 { b'a' + value } else { b'2' + value - 26 });
    bits.chunks(5).map(|bits| digit(five(bits))).collect()
}

/// PROTO §11.5
#[test]
fn a_ticket_cannot_name_a_path_or_command_the_terminal() {
    for name in [&b"../name"[..], b"..", b"", b"/etc/passwd", b"a\\b", b"a\x1b[2Jb", b"a\0b", b"a\xff"] {
        let scene = Scene::empty("names");
        let end = finish(&mut scene.receive(&ticket_named(name), &[]));
        let line = error(&end);
        assert!(line.starts_with("the ticket's name is not one safe path component"), "{line}");
        assert_eq!(scene.names(), Vec::<String>::new());
    }
    assert!(!Path::new("/etc/passwd/name").exists());
}

/// PROTO §11.5
#[test]
fn a_name_that_would_mislead_the_eye_is_shown_escaped() {
    let scene = Scene::empty("eye");
    let mut command = crate::support::program(["receive", &ticket_named("exe.\u{202e}txt".as_bytes()), "-o"]);
    let end = finish(command.arg(&scene.target).args(["--patience", "0"]));
    assert_eq!(end.code, Some(1));
    assert!(end.stderr.starts_with("fetching exe.\\u{202e}txt (5 bytes)\n"), "{}", end.stderr);
}
