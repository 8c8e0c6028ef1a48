//! Published figures beside what was measured.

use wraith_benches::{default_provider, slug};
use wraith_proto::crypto::Suite;

use crate::results::{Results, missing};
use crate::table::Table;
use crate::units::digits;

/// Name, what was published, whether it can be reached (numbers in brackets are notes of the document), benchmark.
type Row<'a> = (&'a str, &'a str, &'a str, &'a str);

const COLUMNS: [&str; 5] = ["row", "published", "possible", "here", "benchmark"];

/// The figures of hashes, ciphers and handshakes.
pub(crate) fn crypto(results: &Results) -> Table {
    let (provider, _) = default_provider();
    let handshake = format!("handshake/{provider}");
    let rows: [Row<'_>; 12] = [
        ("BLAKE3, 1 KiB", "412 ns", "no (1)", "blake3/1024_bytes"),
        ("BLAKE3, 64 KiB", "8.2 µs", "not on one thread (2)", "blake3/65536_bytes"),
        ("BLAKE3, 1 MiB", "128 µs", "not on one thread (2)", "blake3/1048576_bytes"),
        ("BLAKE3, 100 MiB", "12.8 ms", "not on one thread (2)", "blake3/104857600_bytes"),
        (
            "XChaCha20-Poly1305, encrypt 1 KiB",
            "205 ns, later 1.95 µs",
            "hardly (3)",
            "xchacha20poly1305/encrypt_1024",
        ),
        ("… 64 KiB", "7.5 µs, later 46.5 µs", "no (3)", "xchacha20poly1305/encrypt_65536"),
        ("… 1 MiB", "118 µs", "no (3)", "xchacha20poly1305/encrypt_1048576"),
        ("… decrypt 1 KiB", "218 ns", "hardly (3)", "xchacha20poly1305/decrypt_1024"),
        ("… 64 KiB", "7.8 µs", "no (3)", "xchacha20poly1305/decrypt_65536"),
        ("… 1 MiB", "121 µs", "no (3)", "xchacha20poly1305/decrypt_1048576"),
        ("Noise XX, both ends", "1.42 ms with loopback, later 424 µs", "yes", &format!("{handshake}/whole")),
        (
            "… its Diffie-Hellman operations",
            "all cryptography below 250 µs",
            "yes",
            &format!("{handshake}/dh_operations"),
        ),
    ];
    let mut table = Table::new("Hashes, ciphers, handshake (WRAITH, Xeon E-2286G)", &COLUMNS);
    for row in rows {
        push(&mut table, row, results.time(row.3));
    }
    table
}

/// The figures of one packet of 1,364 bytes.
pub(crate) fn transport(results: &Results) -> Table {
    let (provider, crypto) = default_provider();
    let suite = crypto.suites()[0];
    let packet = format!("level1/datagram_1364/{}/{provider}/whole", slug(suite));
    let cipher = format!("level0/{}/{provider}/seal_1364", slug(Suite::Aes256Gcm));
    let rows: [Row<'_>; 7] = [
        ("send, a system call for each", "12.7 µs", "yes", "level2/send_1364/one_by_one"),
        ("send, 32 at a time", "–", "yes", "level2/send_1364/mio"),
        ("serialisation", "3.82 µs", "yes", "level1/datagram_1364/none/2_build"),
        ("AES-GCM", "1.14 µs with 128-bit keys", "yes", &cipher),
        ("hand-over", "0.5 µs", "yes", "level1/hand_over/queue"),
        ("nonce, random", "34.7 ns", "yes", "level0/nonce/random"),
        ("nonce, counted", "6.3 ns", "yes", "level0/nonce/counter"),
    ];
    let mut table = Table::new("One packet of 1,364 bytes (Freenet)", &COLUMNS);
    for row in rows {
        push(&mut table, row, results.time(row.3));
    }
    let rates: [(Row<'_>, f64, &str); 3] = [
        (("throughput without system calls", "2.2 Gbit/s", "yes", &packet), 1364.0 * 8.0, "Gbit/s"),
        (("channel of 1", "80 k/s", "yes", "level1/hand_over/channel_1"), 1e6, "k/s"),
        (("channel of 100", "2.2 M/s", "yes", "level1/hand_over/channel_100"), 1e3, "M/s"),
    ];
    for (row, scale, unit) in rates {
        let rate = results.get(row.3).map(|nanos| format!("{} {unit}", digits(scale / nanos)));
        push(&mut table, row, rate.unwrap_or_else(missing));
    }
    table
}

/// The figure of sealed messages.
pub(crate) fn sealed(results: &Results) -> Table {
    let (provider, _) = default_provider();
    let mut table = Table::new("Seal and open 11 bytes (TSP SDK)", &COLUMNS);
    for (name, published, benchmark) in [
        ("peers that meet for the first time", "2,844 pairs/s, signed", "pair_11_fresh"),
        ("… signed", "2,844 pairs/s, signed", "pair_11_fresh_signed"),
        ("peers that are remembered", "–", "pair_11_warm"),
        ("… signed", "–", "pair_11_warm_signed"),
    ] {
        let benchmark = format!("level0/sealed/{provider}/{benchmark}");
        let rate = results.get(&benchmark).map(|nanos| format!("{} pairs/s", digits(1e9 / nanos)));
        push(&mut table, (name, published, "yes", &benchmark), rate.unwrap_or_else(missing));
    }
    table
}

fn push(table: &mut Table, (name, published, possible, benchmark): Row<'_>, here: String) {
    table.row(name, [published.to_owned(), possible.to_owned(), here, format!("`{benchmark}`")]);
}
