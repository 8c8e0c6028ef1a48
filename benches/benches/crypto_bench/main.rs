//! Hashes, ciphers and handshakes, by the names of the published figures.
//!
//! `cargo bench crypto`, or a part of it: `cargo bench --bench crypto_bench -- blake3/`.

mod aead;
mod handshake;
mod hash;
mod noise;
mod remembering;
#[path = "../support.rs"]
mod support;

fn main() {
    let mut criterion = support::criterion("crypto_bench");
    hash::benches(&mut criterion);
    aead::benches(&mut criterion);
    handshake::benches(&mut criterion);
    criterion.final_summary();
}
