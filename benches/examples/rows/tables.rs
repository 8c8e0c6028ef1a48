//! What was measured and nobody has published.

use wraith_benches::{Step, providers, slug};
use wraith_proto::crypto::{Suite, TAG_LEN};

use crate::results::{Results, missing};
use crate::table::Table;
use crate::units::{rate, time};

/// Every suite of every provider at datagram sizes.
pub(crate) fn seam(results: &Results) -> Table {
    let columns = ["suite", "provider", "", "1,200 B", "1,472 B", "8,192 B", "65,507 B"];
    let mut table = Table::new("Packet keys", &columns);
    for (suite, provider, name) in ciphers() {
        for action in ["seal", "seal_from", "open"] {
            let cells = [1200, 1472, 8192, 65_507].map(|size| {
                let nanos = results.get(&format!("{name}/{action}_{size}"));
                nanos
                    .map_or_else(missing, |nanos| format!("{}, {}", time(nanos), rate(size - TAG_LEN, nanos)))
            });
            table.row(suite.name(), [provider.to_owned(), action.to_owned()].into_iter().chain(cells));
        }
    }
    table
}

/// What a handshake consists of, both ends together.
pub(crate) fn handshake(results: &Results) -> Table {
    let names: Vec<_> = providers().into_iter().map(|(name, _)| name).collect();
    let columns: Vec<_> = ["part"].into_iter().chain(names.iter().copied()).collect();
    let mut table = Table::new("A handshake, both ends", &columns);
    let parts = [
        ("X25519: 2 key pairs, 6 agreements", "dh_operations"),
        ("a peer id checked", "peer_id_check"),
        ("Noise: BLAKE2s and ChaCha20-Poly1305", "noise_symmetric"),
        ("key schedule: BLAKE3", "key_schedule"),
        ("packet keys expanded", "packet_keys"),
    ];
    // A part depends on the provider, or is common to all.
    let part = |provider: &str, part: &str| {
        let own = results.get(&format!("handshake/{provider}/{part}"));
        own.or_else(|| results.get(&format!("handshake/parts/{part}")))
    };
    for (title, name) in parts {
        table.row(title, names.iter().map(|provider| cell(part(provider, name))));
    }
    let rest = names.iter().map(|provider| {
        let known: f64 = parts.iter().map(|(_, name)| part(provider, name)).sum::<Option<f64>>()?;
        Some(part(provider, "whole")? - known)
    });
    table.row("the rest: endpoints, memory, snow", rest.map(cell));
    table.row("**whole**", names.iter().map(|provider| cell(part(provider, "whole"))));
    table
}

/// Every benchmark of level 0.
pub(crate) fn level0(results: &Results) -> Table {
    let mut table = Table::new("Level 0: pure computation", &["benchmark", "time"]);
    for (name, nanos) in results.below("level0/") {
        table.row(&format!("`level0/{name}`"), [time(nanos)]);
    }
    table
}

/// The steps of a packet, without a cipher and with each.
pub(crate) fn packet(results: &Results) -> Table {
    let columns = [
        "cipher",
        "queue",
        "build and seal",
        "open and lend",
        "build ack",
        "take ack",
        "**whole**",
        "stream, filled",
        "stream, lent",
    ];
    let mut table = Table::new("Level 1: a packet of 1,364 bytes, both ends", &columns);
    let mut add = |title: &str, name: &str| {
        let datagram = Step::ALL.map(Step::name).into_iter().chain(["whole"]);
        let datagram = datagram.map(|step| results.get(&format!("level1/datagram_1364/{name}/{step}")));
        let stream = ["fill", "lend"].map(|way| results.get(&format!("level1/stream_1364/{name}/{way}")));
        table.row(title, datagram.chain(stream).map(cell));
    };
    add("none", "none");
    for (suite, provider, name) in ciphers() {
        add(&format!("{}, {provider}", suite.name()), &name);
    }
    table
}

/// Suites and providers with the part of names that stands for them.
fn ciphers() -> impl Iterator<Item = (Suite, &'static str, String)> {
    providers().into_iter().flat_map(|(name, provider)| {
        provider.suites().iter().map(move |&suite| (suite, name, format!("{}/{name}", slug(suite))))
    })
}

fn cell(nanos: Option<f64>) -> String {
    nanos.map_or_else(missing, time)
}
