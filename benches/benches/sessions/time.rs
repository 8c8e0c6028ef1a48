//! What a packet costs beside how many sessions there are.

use wraith_benches::{Call, Crowd, Traffic, default_provider};
use wraith_proto::crypto::{CryptoProvider, Suite};
use wraith_sim::Transparent;

/// Prints a table for the protocol alone, and one with the cipher that most machines choose.
pub(crate) fn print(counts: &[u32], packets: usize) {
    let (_, accelerated) = default_provider();
    table("no cipher", Transparent::ACCEPT_ANY, &[], counts, packets);
    table("AES-256-GCM", accelerated, &[Suite::Aes256Gcm], counts, packets);
}

/// A row for each number of sessions, and in brackets its ratio to the first row of the same traffic.
fn table(
    cipher: &str,
    crypto: &'static dyn CryptoProvider,
    suites: &'static [Suite],
    counts: &[u32],
    packets: usize,
) {
    println!("\n### Nanoseconds of a call for a packet of 1,364 bytes, {cipher}\n");
    let names = Call::ALL.map(Call::name).join(" | ");
    println!("| sessions | with traffic | {names} |\n|---|---|{}", "---|".repeat(Call::ALL.len()));
    let mut first = [[None; Call::ALL.len()]; 2];
    for &count in counts {
        let mut crowd = Crowd::new(count, crypto, suites);
        crowd.connect();
        for (traffic, first) in [Traffic::One, Traffic::All].into_iter().zip(&mut first) {
            let cells: Vec<_> = Call::ALL
                .into_iter()
                .zip(first)
                .map(|(call, first)| {
                    let cost = crowd.cost(call, traffic, packets);
                    format!("{cost:.0} ({:.2})", cost / *first.get_or_insert(cost))
                })
                .collect();
            println!("| {count} | {} | {} |", traffic.name(), cells.join(" | "));
        }
    }
}
