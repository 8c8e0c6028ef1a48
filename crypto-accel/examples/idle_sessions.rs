//! Memory of an idle session with each provider and suite: what the process grows by, C heap included.
//!
//! `cargo run --release -p wraith-crypto-accel --example idle_sessions` (Linux)

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use wraith_crypto_accel::Accel;
use wraith_proto::crypto::{CryptoProvider, RustCrypto, Suite};
use wraith_proto::{
    Budget, Config, Ecn, Endpoint, Identity, Instant, Limits, NoSource, OneShot, Peer, RxMeta, Transport, Via,
};

const SESSIONS: u32 = 4000;

/// Bytes of a page.
const PAGE: u64 = 4096;

type Case = (&'static str, &'static dyn CryptoProvider, &'static [Suite]);

const CASES: [Case; 4] = [
    ("pure Rust, XChaCha20-Poly1305", &RustCrypto, &[Suite::XChaCha20Poly1305]),
    ("pure Rust, AES-256-GCM", &RustCrypto, &[Suite::Aes256Gcm]),
    ("accelerated, XChaCha20-Poly1305", &Accel, &[Suite::XChaCha20Poly1305]),
    ("accelerated, AES-256-GCM", &Accel, &[Suite::Aes256Gcm]),
];

fn main() {
    let Some(number) = std::env::args().nth(1) else {
        // Each in a process of its own, for memory that was used before would not count.
        for number in 0..CASES.len() {
            let me = std::env::current_exe().expect("Linux knows it");
            let status = std::process::Command::new(me).arg(number.to_string()).status();
            assert!(status.expect("it starts").success());
        }
        return;
    };
    let (name, provider, suites) = CASES[number.parse::<usize>().expect("a number")];
    println!("{name:32} {:5} bytes", idle_session(provider, suites));
}

/// Bytes that one end takes for a session, its share of the tables included.
fn idle_session(provider: &'static dyn CryptoProvider, suites: &'static [Suite]) -> u64 {
    let second = |seconds: u32| Instant::from_nanos(u64::from(seconds) * 1_000_000_000);
    // The first session pays for what is needed once.
    let (mut left, mut right) = (endpoint(1, provider, suites), endpoint(2, provider, suites));
    connect(&mut left, &mut right, 0, second(1));
    let before = resident();
    for number in 1..SESSIONS {
        connect(&mut left, &mut right, number, second(1 + number));
    }
    let grown = resident() - before;
    assert_eq!((left.sessions(), right.sessions()), (SESSIONS as usize, SESSIONS as usize));
    grown / 2 / u64::from(SESSIONS - 1)
}

fn endpoint(seed: u8, provider: &'static dyn CryptoProvider, suites: &'static [Suite]) -> Endpoint {
    let mut config = Config::new(Identity::from_seed([seed; 32]), b"example");
    config.crypto = provider;
    config.transport = Transport::default().with_idle_timeout(Duration::from_hours(24)).with_suites(suites);
    config.limits = Limits { sessions: SESSIONS, ..Limits::embedded() };
    Endpoint::new(config, [seed; 32], Instant::MIN).expect("the limits are in range")
}

/// Makes session `number`, whose ends know each other by an address of its own.
fn connect(left: &mut Endpoint, right: &mut Endpoint, number: u32, now: Instant) {
    let [_, high, middle, low] = number.to_be_bytes();
    let addr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10 + high, middle, low, 1)), 9);
    let id = Some(right.config().identity.peer_id());
    left.connect(now, Peer { addr, id }, Via::default()).expect("a free session");
    while carry(left, right, now) | carry(right, left, now) {}
    while left.poll_event().is_some() {}
    while right.poll_event().is_some() {}
}

/// Carries what one end says to the other. Tells whether that was anything.
fn carry(from: &mut Endpoint, to: &mut Endpoint, now: Instant) -> bool {
    let mut buffer = [0; 2048];
    let mut any = false;
    loop {
        let _ = from.handle_timeout(now, Budget::UNLIMITED);
        let mut queue = OneShot::new(&mut buffer);
        let _ = from.poll_transmit(now, &mut queue, &mut NoSource, Budget(1));
        let Some((sent, datagram)) = queue.take() else { return any };
        let mut datagram = datagram.to_vec();
        let meta = RxMeta { from: sent.to, to: None, via: Via::default(), ecn: Ecn::NotEct };
        while to.handle(now, &meta, &mut datagram).next().is_some() {}
        any = true;
    }
}

/// Resident memory of this process, in bytes.
fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages: u64 = pages.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("a number");
    pages * PAGE
}
