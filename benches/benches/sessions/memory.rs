//! What a session takes of memory, beside the published breakdown.

use wraith_benches::Crowd;
use wraith_proto::Endpoint;
use wraith_proto::crypto::{CryptoProvider, RustCrypto};
use wraith_sim::alloc::live_bytes;

/// Bytes of a session as WRAITH's benchmark document has them: state, keys, buffers, connection, all.
const PUBLISHED: [usize; 5] = [2_100, 128, 65_536, 4_800, 71_000];

/// Prints what a session costs by its parts, as priced, and as taken by an endpoint that is full of idle ones.
pub(crate) fn print(counts: &[u32]) {
    let [state, keys, buffers, connection, all] = PUBLISHED;
    println!("\n### Bytes of a session\n");
    println!("| part | published | here, at most |\n|---|---|---|");
    let parts = Crowd::limits(20_000).memory_parts();
    let half = Crowd::limits(10_000).memory_parts();
    let each = |whole: usize, half: usize| (whole - half) / 10_000;
    let rows = [
        ("state", state, each(parts.sessions, half.sessions)),
        ("keys, in the middle of an exchange", keys, each(parts.keys, half.keys)),
        ("buffers: they are the caller's, one set for all sessions", buffers, 0),
        ("its place in tables and queues", connection, each(parts.tables, half.tables)),
    ];
    for (part, published, here) in rows {
        println!("| {part} | {published} | {here} |");
    }
    println!("| 8 records of packets of its own | – | {} |", each(parts.records, half.records));
    println!("| 4 streams | – | {} |", each(parts.streams, half.streams));
    let expanded = parts.expanded_keys / Crowd::limits(20_000).expanded_keys as usize;
    println!("| expanded keys, while it is one of those with traffic | – | {expanded} |");
    println!("| whole | {all} | {} |", each(parts.total(), half.total()));
    println!(
        "\n| sessions, idle | suite | priced, MB | taken, MB | taken for each, bytes |\n|---|---|---|---|---|"
    );
    for &count in counts {
        for suites in RustCrypto.suites().chunks(1) {
            let mut crowd = Crowd::new(count, &RustCrypto, suites);
            crowd.connect();
            let (taken, priced) = (taken(crowd.into_host()), Crowd::limits(count).memory());
            println!(
                "| {count} | {} | {:.1} | {:.1} | {} |",
                suites[0].name(),
                priced as f64 / 1e6,
                taken as f64 / 1e6,
                taken / count as usize
            );
        }
    }
}

/// Bytes that the endpoint has taken.
fn taken(endpoint: Endpoint) -> usize {
    let (before, own) = (live_bytes(), size_of_val(&endpoint));
    drop(endpoint);
    (before - live_bytes()) as usize + own
}
