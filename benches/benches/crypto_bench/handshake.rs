//! The whole handshake of both ends in memory, and what it consists of.

use std::hint::black_box;

use criterion::{BatchSize, Criterion};
use wraith_benches::{Duo, providers};
use wraith_proto::crypto::{CryptoProvider, Identity, KeyMaterial};
use wraith_proto::wire::Handshake;
use wraith_proto::{Config, Limits};

use crate::noise::{Payloads, symmetric_operations};
use crate::remembering::Remembering;

pub(crate) fn benches(criterion: &mut Criterion) {
    for (name, provider) in providers() {
        whole(criterion, name, provider);
    }
    key_schedule_of_both(criterion);
}

fn duo(crypto: &'static dyn CryptoProvider) -> Duo {
    let change = |config: &mut Config| {
        config.crypto = crypto;
        config.limits = Limits::embedded();
        config.transport.max_datagram = config.transport.min_datagram;
    };
    Duo::new(change, 16)
}

fn whole(criterion: &mut Criterion, name: &str, provider: &'static dyn CryptoProvider) {
    let mut group = criterion.benchmark_group(format!("handshake/{name}"));
    group.bench_function("whole", |bencher| {
        bencher.iter_batched(|| duo(provider), connected, BatchSize::SmallInput);
    });

    let remembering: &Remembering = Box::leak(Box::new(Remembering::new(provider)));
    let ends = duo(remembering);
    // An endpoint prepares its static key before any handshake.
    remembering.take_calls();
    connected(ends);
    let (calls, known) = (remembering.take_calls(), remembering.known());
    assert_eq!(calls.len(), 8, "two key pairs and six agreements");
    let prepared: Vec<_> = calls.iter().map(|call| provider.x25519_key(&call.secret)).collect();
    group.bench_function("dh_operations", |bencher| {
        bencher.iter(|| {
            for (call, key) in calls.iter().zip(&prepared) {
                black_box(match &call.peer {
                    Some(peer) => key.agree(peer),
                    None => provider.x25519_base(&call.secret),
                });
            }
        });
    });
    group.bench_function("without_dh", |bencher| {
        bencher.iter_batched(
            || {
                remembering.take_calls();
                duo(remembering)
            },
            connected,
            BatchSize::SmallInput,
        );
    });
    assert_eq!(remembering.known(), known, "each handshake is the same");
    // The initiator's at the responder, which hears it for the first time (PROTO §3.2).
    let peer = Identity::from_seed([2; 32]).peer_id();
    let form = peer.static_public();
    group.bench_function("peer_id_check", |bencher| {
        bencher.iter(|| provider.is_peer(black_box(peer.as_bytes()), black_box(&form)));
    });
    let payloads = payloads(&mut duo(provider));
    group.bench_function("noise_symmetric", |bencher| {
        bencher.iter(|| [(); 2].map(|()| symmetric_operations(provider, black_box(payloads))));
    });
    let suite = provider.suites()[0];
    group.bench_function("packet_keys", |bencher| {
        bencher.iter(|| {
            let material = KeyMaterial { key: [1; 32], prefix: [2; 16] };
            [(); 4].map(|()| {
                (provider.key(suite, black_box(&material)), provider.header_key(suite, black_box(&[3; 32])))
            })
        });
    });
}

/// What does not depend on the provider.
fn key_schedule_of_both(criterion: &mut Criterion) {
    let payloads = payloads(&mut duo(providers()[0].1));
    let mut group = criterion.benchmark_group("handshake/parts");
    group.bench_function("key_schedule", |bencher| {
        bencher.iter(|| [(); 2].map(|()| key_schedule(black_box(&[1; 32]), payloads[2])));
    });
}

fn connected(mut duo: Duo) -> Duo {
    duo.connect();
    let stats = duo.right.endpoint.stats();
    assert_eq!((stats.cookies_sent, stats.dropped()), (0, 0), "the shortest handshake");
    duo
}

/// Lengths of the Noise payloads of a handshake.
fn payloads(duo: &mut Duo) -> Payloads {
    let mut lengths = [0; 3];
    duo.dial().expect("a free session");
    while lengths.contains(&0) {
        duo.carry_seen(|datagram| {
            // What a message has besides its payload: e; e, s and two tags; s and two tags.
            match Handshake::parse(datagram) {
                Ok(Handshake::Init(init)) => lengths[0] = init.message().len() - 32,
                Ok(Handshake::Response(response)) => lengths[1] = response.message().len() - 96,
                Ok(Handshake::Finish(finish)) => lengths[2] = finish.message().len() - 64,
                _ => {}
            }
        });
    }
    lengths
}

/// What one end derives with BLAKE3 (`PROTO §3.5`, `§3.6`, `§4.2`); the third message has about `payload` bytes.
fn key_schedule(secret: &[u8; 32], payload: usize) -> [u8; 32] {
    let finish = blake3::derive_key("WRAITH v1 finish mac", &[*secret; 2].concat());
    let mac = blake3::keyed_hash(&finish, &vec![0; payload]);
    let root = blake3::derive_key("WRAITH v1 session root", &[*secret, finish, *mac.as_bytes()].concat());
    let mut last = root;
    for context in ["WRAITH v1 nonce prefix", "WRAITH v1 packet key", "WRAITH v1 header protection"] {
        for direction in 0..2 {
            let mut material = [direction; 39];
            material[..32].copy_from_slice(&root);
            last = blake3::derive_key(context, black_box(&material));
        }
    }
    last
}
