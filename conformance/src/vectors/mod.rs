//! The test vectors of `conformance/vectors`, computed by [`peer`](crate::peer) from inputs that stand in them.
//!
//! `cargo run -p wraith-conformance --example vectors` writes the files. `LOCK` ties each of them to the version of the
//! protocol: a vector may only change with a new version.

mod content;
mod cookie;
mod dht;
mod frames;
mod handshake;
mod identity;
mod keys;
mod packets;
mod parameters;
mod published;
mod rekey;
mod sealed;
mod ticket;
mod transfer;

use std::fmt::Write;

use serde_json::{Value, json};
use wraith_proto::wire::VERSION;

/// A file of vectors.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct File {
    /// Its name.
    pub name: &'static str,
    /// Its JSON text.
    pub text: String,
}

/// Every file, in the order of the names.
pub fn files() -> Vec<File> {
    vec![
        content::file(),
        cookie::file(),
        dht::file(),
        frames::file(),
        handshake::file(),
        identity::file(),
        keys::file(),
        packets::file(),
        parameters::file(),
        published::file(),
        rekey::file(),
        sealed::file(),
        ticket::file(),
        transfer::file(),
    ]
}

/// The line of `LOCK` for a file: version, name, BLAKE3 hash of the text.
pub fn lock_line(file: &File) -> String {
    format!("{VERSION} {} {}", file.name, blake3::hash(file.text.as_bytes()))
}

/// The bytes of a hexadecimal string.
///
/// # Panics
/// If the value is none.
pub fn bytes(value: &Value) -> Vec<u8> {
    let text = value.as_str().unwrap_or_else(|| panic!("{value} is no text"));
    let digit = |at: usize| u8::from_str_radix(&text[at..at + 2], 16);
    (0..text.len()).step_by(2).map(|at| digit(at).unwrap_or_else(|error| panic!("{text}: {error}"))).collect()
}

/// The bytes of a hexadecimal string of this length.
///
/// # Panics
/// If the value is none.
pub fn array<const N: usize>(value: &Value) -> [u8; N] {
    let bytes = bytes(value);
    bytes.try_into().unwrap_or_else(|bytes: Vec<u8>| panic!("{} bytes instead of {N}", bytes.len()))
}

/// A file of these vectors.
fn file_of(name: &'static str, about: &str, clauses: &str, vectors: &[Value]) -> File {
    let whole = json!({ "about": about, "clauses": clauses, "protocol": VERSION, "vectors": vectors });
    let mut text = serde_json::to_string_pretty(&whole).expect("texts, numbers and lists alone");
    text.push('\n');
    File { name, text }
}

/// A vector: what is given, and what has to come out.
#[expect(clippy::needless_pass_by_value, reason = "they are made for it by `json!`")]
fn vector(name: &str, given: Value, gives: Value) -> Value {
    json!({ "name": name, "given": given, "gives": gives })
}

/// Bytes as they stand in the files.
fn hex(bytes: impl AsRef<[u8]>) -> String {
    bytes.as_ref().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Bytes for a purpose: drawn once, and the same for ever.
fn draw<const N: usize>(purpose: &str) -> [u8; N] {
    let mut out = [0; N];
    blake3::Hasher::new_derive_key("WRAITH v1 vectors")
        .update(purpose.as_bytes())
        .finalize_xof()
        .fill(&mut out);
    out
}

/// Writes fields by the document, apart from the core's encoders.
#[derive(Default)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn u8(mut self, value: u8) -> Self {
        self.0.push(value);
        self
    }

    fn u16(self, value: u16) -> Self {
        self.raw(value.to_be_bytes())
    }

    fn u32(self, value: u32) -> Self {
        self.raw(value.to_be_bytes())
    }

    fn u64(self, value: u64) -> Self {
        self.raw(value.to_be_bytes())
    }

    fn raw(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.0.extend_from_slice(bytes.as_ref());
        self
    }

    /// RFC 9000 §16: the two highest bits tell how many bytes there are.
    fn varint(self, value: u64) -> Self {
        match value {
            0..0x40 => self.u8(value as u8),
            0x40..0x4000 => self.u16(value as u16 | 1 << 14),
            0x4000..0x4000_0000 => self.u32(value as u32 | 2 << 30),
            _ => self.u64(value | 3 << 62),
        }
    }
}
