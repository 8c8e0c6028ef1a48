//! Time of a whole handshake with each provider: both ends on one thread, from the dial to the first packets, without a
//! network between them.
//!
//! `cargo run --release -p wraith-crypto-accel --example handshake`

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use wraith_crypto_accel::Accel;
use wraith_proto::crypto::{CryptoProvider, RustCrypto};
use wraith_proto::{
    Budget, Config, Ecn, Endpoint, Event, Identity, Limits, NoSource, OneShot, Peer, RxMeta, Via,
};

const LEFT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 1);
const RIGHT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)), 2);

/// Handshakes with each provider.
const ROUNDS: usize = 1000;

fn main() {
    let providers: [(&str, &'static dyn CryptoProvider); 2] =
        [("accelerated", &Accel), ("pure Rust", &RustCrypto)];
    let mut times = [const { Vec::new() }; 2];
    for round in 1..=ROUNDS {
        // Time enough between two that no budget of handshakes is used up.
        let now = wraith_proto::Instant::from_nanos(round as u64 * 1_000_000_000);
        for ((_, provider), times) in providers.iter().zip(&mut times) {
            let (mut left, mut right) = (endpoint(1, *provider, now), endpoint(2, *provider, now));
            times.push(handshake(&mut left, &mut right, now));
        }
    }
    for ((name, _), mut times) in providers.into_iter().zip(times) {
        times.sort_unstable();
        let at = |part: usize| times[ROUNDS * part / 100].as_secs_f64() * 1e6;
        println!("{name:12} median {:4.0} us, fastest tenth below {:4.0} us", at(50), at(10));
    }
}

fn endpoint(seed: u8, crypto: &'static dyn CryptoProvider, now: wraith_proto::Instant) -> Endpoint {
    let mut config = Config::new(Identity::from_seed([seed; 32]), b"example");
    config.crypto = crypto;
    config.limits = Limits::embedded();
    Endpoint::new(config, [seed; 32], now).expect("the limits are in range")
}

/// How long both ends take together.
fn handshake(left: &mut Endpoint, right: &mut Endpoint, now: wraith_proto::Instant) -> Duration {
    let id = Some(right.config().identity.peer_id());
    let begun = Instant::now();
    let session = left.connect(now, Peer { addr: RIGHT, id }, Via::default()).expect("a free session");
    while carry(left, right, LEFT, now) | carry(right, left, RIGHT, now) {}
    let taken = begun.elapsed();
    assert_eq!(left.poll_event(), Some((session, Event::Connected)));
    assert!(matches!(right.poll_event(), Some((_, Event::Connected))));
    taken
}

/// Carries what one end says to the other, which hears it from `addr`. Tells whether that was anything.
fn carry(from: &mut Endpoint, to: &mut Endpoint, addr: SocketAddr, now: wraith_proto::Instant) -> bool {
    let mut buffer = [0; 2048];
    let mut any = false;
    loop {
        let mut queue = OneShot::new(&mut buffer);
        let _ = from.poll_transmit(now, &mut queue, &mut NoSource, Budget(1));
        let Some((_, datagram)) = queue.take() else { return any };
        let mut datagram = datagram.to_vec();
        let meta = RxMeta { from: addr, to: None, via: Via::default(), ecn: Ecn::NotEct };
        while to.handle(now, &meta, &mut datagram).next().is_some() {}
        any = true;
    }
}
