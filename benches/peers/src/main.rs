//! Sealing and opening 11 bytes, here and with the TSP SDK, alternating on one core.

#![forbid(unsafe_code)]

mod theirs;
#[path = "../../../crypto-accel/compare/src/timing.rs"]
mod timing;

use timing::{Task, nanoseconds};
use wraith_crypto_accel::Accel;
use wraith_proto::Identity;
use wraith_proto::crypto::{CryptoProvider, RustCrypto};
use wraith_proto::sealed::{DATAGRAM_OVERHEAD, Letter, Mailbox, MessageId, SIGNATURE_LEN};

/// The body, as long as in the published figure.
const BODY: &[u8; 11] = b"hello world";

fn main() {
    let mut names = Vec::new();
    let mut tasks: Vec<Task> = Vec::new();
    let mut add = |name: String, task: Task| {
        names.push(name);
        tasks.push(task);
    };
    add("tsp_sdk, a fresh store each time".to_owned(), theirs::fresh_stores());
    add("tsp_sdk, one store".to_owned(), theirs::one_store());
    add("tsp_sdk, without a store".to_owned(), theirs::crypto_alone());
    for (library, crypto) in [("aws-lc", &Accel as &'static dyn CryptoProvider), ("pure Rust", &RustCrypto)] {
        for sign in [false, true] {
            let signed = if sign { ", signed" } else { "" };
            add(format!("here, {library}{signed}: mailboxes made each time"), made_each_time(crypto, sign));
            add(format!("here, {library}{signed}: peers that never met"), pairs(crypto, 0, sign));
            add(format!("here, {library}{signed}: peers that are remembered"), pairs(crypto, 1, sign));
        }
    }
    let times = nanoseconds(tasks);
    let first = times[0];
    println!("{:60} {:>8} {:>9} {:>6}", "seal and open 11 bytes", "µs", "pairs/s", "ratio");
    for (name, time) in names.iter().zip(times) {
        println!("{name:60} {:8.1} {:9.0} {:6.2}", time / 1e3, 1e9 / time, first / time);
    }
}

fn mailbox(seed: u8, crypto: &'static dyn CryptoProvider, peers: u32) -> Mailbox {
    Mailbox::new(Identity::from_seed([seed; 32]), crypto, peers)
}

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("random bytes");
    bytes
}

fn pair(from: &mut Mailbox, to: &mut Mailbox, sign: bool) {
    let letter = Letter { to: to.peer_id(), id: MessageId(random()), time: 0, sign };
    let mut datagram = [0; BODY.len() + DATAGRAM_OVERHEAD + SIGNATURE_LEN];
    let len = from.seal_datagram(&letter, &random(), BODY, &mut datagram).expect("there is room");
    let (opened, body) = to.open_datagram(&mut datagram[..len]).expect("it is genuine");
    assert_eq!((&*body, opened.signed), (&BODY[..], sign));
}

fn pairs(crypto: &'static dyn CryptoProvider, peers: u32, sign: bool) -> Task {
    let (mut from, mut to) = (mailbox(1, crypto, peers), mailbox(2, crypto, peers));
    Box::new(move || pair(&mut from, &mut to, sign))
}

/// Mailboxes of given identities, with their prepared static keys, are part of it.
fn made_each_time(crypto: &'static dyn CryptoProvider, sign: bool) -> Task {
    let identities = [1, 2].map(|seed| Identity::from_seed([seed; 32]));
    Box::new(move || {
        let [mut from, mut to] = identities.clone().map(|identity| Mailbox::new(identity, crypto, 0));
        pair(&mut from, &mut to, sign);
    })
}
