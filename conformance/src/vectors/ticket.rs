//! Tickets (`PROTO §11`).

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::{Bytes, File, draw, file_of, hex, vector};
use crate::peer::Identity;

struct Ticket {
    kind: u8,
    hash: [u8; 32],
    size: u64,
    name: Vec<u8>,
    peer: [u8; 32],
    token: [u8; 16],
    addresses: Vec<SocketAddr>,
}

impl Ticket {
    fn new() -> Self {
        Self {
            kind: 0,
            hash: draw("content id"),
            size: 123_456,
            name: b"notes.txt".to_vec(),
            peer: Identity::from_seed(&draw("provider")).id,
            token: draw("token"),
            addresses: vec![
                "192.0.2.7:4433".parse().expect("an address"),
                "[2001:db8::7]:4433".parse().expect("an address"),
            ],
        }
    }

    /// All fields but the checksum.
    fn fields(&self) -> Vec<u8> {
        let head = Bytes::default().u8(1).u8(self.kind).raw(self.hash).varint(self.size);
        let middle = head.u8(self.name.len() as u8).raw(&self.name).raw(self.peer).raw(self.token);
        let mut bytes = middle.u8(self.addresses.len() as u8);
        for address in &self.addresses {
            bytes = match address {
                SocketAddr::V4(address) => bytes.u8(4).raw(address.ip().octets()),
                SocketAddr::V6(address) => bytes.u8(6).raw(address.ip().octets()),
            };
            bytes = bytes.u16(address.port());
        }
        bytes.0
    }

    fn given(&self) -> Value {
        json!({
            "addresses": self.addresses.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "content_id": hex(self.hash),
            "kind": self.kind,
            "name": String::from_utf8_lossy(&self.name),
            "peer_id": hex(self.peer),
            "size": self.size.to_string(),
            "token": hex(self.token),
        })
    }
}

/// The text of these fields with their checksum.
fn text(fields: &[u8]) -> String {
    let checksum = blake3::derive_key("WRAITH v1 ticket checksum", fields);
    format!("wraith1{}", base32(&[fields, &checksum[..4]].concat()))
}

/// RFC 4648 §6 in lower case, without padding.
fn base32(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let bit = |at: usize| bytes.get(at / 8).map_or(0, |byte| usize::from(byte >> (7 - at % 8) & 1));
    let five = |first: usize| (first..first + 5).fold(0, |sum, at| sum << 1 | bit(at));
    (0..bytes.len() * 8).step_by(5).map(|first| char::from(ALPHABET[five(first)])).collect()
}

pub(super) fn file() -> File {
    let mut vectors = Vec::new();
    let folder =
        Ticket { kind: 1, size: 0, name: "Ordner ü".into(), addresses: Vec::new(), ..Ticket::new() };
    let largest = Ticket {
        size: 1 << 60,
        name: vec![b'x'; 255],
        addresses: vec!["192.0.2.7:1".parse().expect("an address"); 8],
        ..Ticket::new()
    };
    for (name, ticket) in [("a file", Ticket::new()), ("a folder", folder), ("the largest fields", largest)] {
        vectors.push(vector(name, ticket.given(), json!({ "text": text(&ticket.fields()) })));
    }
    for (name, text) in refused() {
        vectors.push(vector(&name, json!({ "text": text }), json!({ "refused": true })));
    }
    let about = "Tickets as text, and texts that are none.";
    file_of("ticket.json", about, "PROTO §11.1, §11.2, §11.3, §11.4, §11.5", &vectors)
}

/// The same bytes by another last character, if the text has spare bits.
fn spare_bits(text: &str) -> String {
    let (rest, last) = text.split_at(text.len() - 1);
    format!("{rest}{}", if last == "a" { 'b' } else { char::from(last.as_bytes()[0] + 1) })
}

fn refused() -> Vec<(String, String)> {
    let good = text(&Ticket::new().fields());
    let mut bad = vec![
        ("upper case".to_owned(), good.to_uppercase()),
        ("padding".to_owned(), format!("{good}=")),
        ("a space".to_owned(), format!(" {good}")),
        ("a character too few".to_owned(), good[..good.len() - 1].to_owned()),
        ("another version of the text".to_owned(), good.replacen("wraith1", "wraith2", 1)),
    ];
    let mut wrong = good.clone().into_bytes();
    wrong[20] = if wrong[20] == b'a' { b'b' } else { b'a' };
    bad.push(("a wrong checksum".to_owned(), String::from_utf8_lossy(&wrong).into_owned()));
    bad.push(("set bits behind the last byte".to_owned(), spare_bits(&good)));
    let fields = |change: fn(&mut Ticket)| {
        let mut ticket = Ticket::new();
        change(&mut ticket);
        text(&ticket.fields())
    };
    let address = |text: &str| text.parse().expect("an address");
    for (name, addr) in [
        ("port 0", "192.0.2.7:0"),
        ("an unspecified address", "0.0.0.0:5"),
        ("a multicast address", "224.0.0.1:5"),
        ("the broadcast address", "255.255.255.255:5"),
        ("IPv4 in IPv6 form", "[::ffff:192.0.2.7]:5"),
    ] {
        let ticket = Ticket { addresses: vec![address(addr)], ..Ticket::new() };
        bad.push((name.to_owned(), text(&ticket.fields())));
    }
    bad.push(("an unknown kind".to_owned(), fields(|ticket| ticket.kind = 2)));
    bad.push(("a size over 2^60".to_owned(), fields(|ticket| ticket.size = (1 << 60) + 1)));
    bad.push(("a PeerId of small order".to_owned(), fields(|ticket| ticket.peer = [0; 32])));
    bad.push(("nine addresses".to_owned(), fields(|ticket| ticket.addresses = vec![ticket.addresses[0]; 9])));
    for name in ["", ".", "..", "a/b", "a\\b", "a\nb", "a\u{85}b"] {
        let ticket = Ticket { name: name.into(), ..Ticket::new() };
        bad.push((format!("the name {name:?}"), text(&ticket.fields())));
    }
    bad.push(("a name that is no UTF-8".to_owned(), fields(|ticket| ticket.name = vec![0xff])));
    let mut long = Ticket::new().fields();
    long.push(0);
    bad.push(("a byte behind the last field".to_owned(), text(&long)));
    let mut wide = Ticket { size: 5, ..Ticket::new() }.fields();
    wide.splice(34..35, [0x40, 5]);
    bad.push(("a size in two bytes that fits in one".to_owned(), text(&wide)));
    bad
}
